"""Diagnose: a complaint goes in, a verdict comes out; `?run=ID` opens a stored run."""

import streamlit as st

from lim_core.ui import shell

shell.open_page("Diagnose")

with shell.guarded():
    from lim_core.ui.running import show_run
    from lim_core.ui.start import new_diagnosis

    link = shell.RunLink.from_query(st.query_params)
    if link.run is None:
        new_diagnosis()
    else:
        show_run(link.run)
