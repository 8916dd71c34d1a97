"""Models: which model this session tests on, a test of its connection, and what models cost."""

from lim_core.ui import shell

shell.open_page("Models")

with shell.guarded():
    from lim_core.ui.model_form import model_form

    model_form()

with shell.guarded():
    from lim_core.ui.price_form import price_form

    price_form()
