"""Position curves: accuracy by the slot of the gold chunk, and length by position; `?run=ID` opens a stored run."""

from lim_core.ui import shell

shell.open_page("Position curves")

with shell.guarded():
    from lim_core.ui.curves import draw, start
    from lim_core.ui.experiment_run import open_or_start

    open_or_start(draw, start, ("positions", "grid"))
