"""Home: what lim does, sample complaints ready to run, the last runs."""

from lim_core.ui import shell

shell.open_page("Home", "Which stage lost the answer?")

with shell.guarded():
    from lim_core.ui.home import show_home

    show_home()
