"""Models: which model this session tests on, and a test of its connection."""

from lim_core.ui import shell

shell.open_page("Models")

with shell.guarded():
    from lim_core.ui.model_form import model_form

    model_form()
