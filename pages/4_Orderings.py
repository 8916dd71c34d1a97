"""Orderings: the same chunks in several orders and templates, side by side; `?run=ID` opens a stored run."""

from lim_core.ui import shell

shell.open_page("Orderings")

with shell.guarded():
    from lim_core.ui.experiment_run import open_or_start
    from lim_core.ui.sides import draw, start

    open_or_start(draw, start, ("orderings",))
