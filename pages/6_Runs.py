"""Runs: every stored run, filtered; `?run=ID` shows one below the list."""

import streamlit as st

from lim_core.ui import shell

shell.open_page("Runs")

with shell.guarded():
    from lim_core.ui.running import show_run
    from lim_core.ui.runs_list import old_runs, run_tools, runs_table

    link = shell.RunLink.from_query(st.query_params)
    run = runs_table() or link.run
    old_runs()
    if run is not None:
        st.query_params["run"] = run
        run_tools(run)
        show_run(run)
