"""Accuracy vs tokens: how many chunks are enough; `?run=ID` opens a stored run."""

from lim_core.ui import shell

shell.open_page("Accuracy vs tokens")

with shell.guarded():
    from lim_core.ui.budgets import draw, start
    from lim_core.ui.experiment_run import open_or_start

    open_or_start(draw, start, ("tokens",))
