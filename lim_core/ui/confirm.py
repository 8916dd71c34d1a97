"""From a finished run whose gold is open back to the form, to confirm it."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from lim_core.evidence import gold_of
from lim_core.types import Json
from lim_core.ui import session, shell, views
from lim_core.ui.drafting import hand_over


def offer_confirmation(document: Mapping[str, Json], run_id: str) -> None:
    """A line and a button, where the run suggests a gold chunk or several chunks hold the answer."""
    suggested = suggestion_in(document)
    said = f"Chunk {suggested} seems to state the answer in other words." if suggested else _open_question(run_id)
    if not said:
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        views.line(said)
        if st.button("Confirm the gold", icon=":material/fact_check:", key=f"confirm-{run_id}"):
            hand_over(shell.store().case(run_id), suggested)


def suggestion_in(document: Mapping[str, Json]) -> str | None:
    """The chunk that the retrieval stage found by meaning, for the user to confirm."""
    stages = document.get("stages")
    for stage in stages if isinstance(stages, list | tuple) else ():
        if isinstance(stage, Mapping) and stage.get("stage") == "retrieval":
            evidence = stage.get("evidence")
            found = evidence.get("suggestion") if isinstance(evidence, Mapping) else None
            one = found.get("id") if isinstance(found, Mapping) else None
            return one if isinstance(one, str) else None
    return None


def _open_question(run_id: str) -> str:
    def look() -> str:
        if shell.store().run(run_id) is None:
            return ""
        gold = gold_of(shell.store().case(run_id))
        if gold.spoilers:
            return f"{', '.join(gold.spoilers[:5])}: not marked gold, yet with the answer in it."
        return f"{', '.join(gold.ambiguous[:5])}: with the answer, none marked gold." if gold.ambiguous else ""

    return session.remembered("open-question", run_id, look)
