"""Marks the gold: chunks that hold a right answer, else the nearest by meaning, and those that would spoil a test."""

from __future__ import annotations

from functools import partial

import streamlit as st

from lim_core.cases.editing import marked
from lim_core.drawing.words import SIGNS, clip, count
from lim_core.embeddings import open_embedder
from lim_core.errors import ConfigError
from lim_core.evidence import gold_of
from lim_core.evidence.marks import GoldMarks, mark_gold
from lim_core.types import Case, Status
from lim_core.ui import session, views

_LISTED = 8
_LONG_ID = 24


def gold_form(imported: Case, case: Case) -> None:
    """Say where the answer stands and what is open, with one click for each way to settle it."""
    if not case.chunks:
        views.note("The retriever returned no chunk.")
        return
    if not case.answers and not case.gold_ids:
        views.note("Give the right answers, and the chunks that hold one light up; or tick the gold chunk yourself.")
        return
    marks = marks_of(case)
    gold = gold_of(case)
    with st.container(gap="xsmall"):
        if gold.spoilers:
            views.caution(
                f"{_these(case, gold.spoilers)} not marked gold, and would spoil a position test: tick gold, or harmless "
                "where it does not answer this question."
            )
        elif gold.ambiguous:
            views.caution(f"{_these(case, gold.ambiguous)} not marked yet: tick the gold one, or take them all.")
            _mark(imported, gold.ambiguous, f"Take all {count(len(gold.ambiguous))} as gold", "mark-all")
        elif gold.found_by == "alias":
            st.markdown(views.sign(SIGNS[Status.PASS], views.escape(f"{_named(case, gold.ids)} holds the answer.")))
            _mark(imported, gold.ids, "Mark it as gold", "mark-one")
        elif gold.ids:
            several = ": several, taken together as one case" if len(gold.ids) > 1 else ""
            st.markdown(
                views.sign(
                    SIGNS[Status.PASS],
                    views.escape(f"{_named(case, gold.ids)} {'are' if len(gold.ids) > 1 else 'is'} gold{several}."),
                )
            )
        else:
            views.caution("No chunk holds a right answer word for word.")
        _suggested(imported, case)
        if case.answers and not marks.marks and not gold.ids:
            _by_meaning(imported, case)


def marks_of(case: Case) -> GoldMarks:
    """The answers found in the chunks; looked for once for each change."""
    return session.remembered(
        "marks", (case.answers, case.chunks, case.gold_ids, case.harmless_ids), lambda: mark_gold(case)
    )


def _by_meaning(imported: Case, case: Case) -> None:
    """Propose the nearest chunks, on a click: the embedding model takes seconds to load."""
    key = (case.question, case.answers, case.chunks)
    asked_for = st.session_state.get("work-nearest-for") == key
    if not asked_for and st.button("Find the nearest by meaning", icon=":material/search:", key="nearest"):
        st.session_state["work-nearest-for"] = key
        asked_for = True
    if not asked_for:
        return
    try:
        with st.spinner("Comparing by meaning"):
            marks = session.remembered("nearest", key, lambda: mark_gold(case, open_embedder))
    except ConfigError as error:
        views.caution(str(error))
        return
    views.note(
        "Nearest to question and answer by the embedding; a proposal to check, for nothing matches word for word."
    )
    texts = {chunk.id: chunk.text for chunk in case.chunks}
    for place, near in enumerate(marks.nearest):
        with st.container(horizontal=True, vertical_alignment="center"):
            _mark(imported, (near.chunk_id,), "Mark as gold", f"near-{place}")
            views.line(f"{_rank(case, near.chunk_id)}, cosine {near.similarity:.2f}: {clip(texts[near.chunk_id], 160)}")


def _suggested(imported: Case, case: Case) -> None:
    work = session.work()
    one = work.suggested if work is not None else None
    texts = {c.id: c.text for part in (case.chunks, case.candidates or (), case.corpus or ()) for c in part}
    if one is None or one not in texts or one in case.gold_ids:
        return
    views.line(f"The run found that {_rank(case, one)} seems to state the answer: {clip(texts[one], 300)}")
    _mark(imported, (one,), "Mark it as gold", "mark-suggested")


def _mark(imported: Case, ids: tuple[str, ...], label: str, key: str) -> None:
    st.button(
        label, icon=":material/check:", key=key, on_click=session.change,
        args=(imported, partial(marked, gold=ids), f"gold: {', '.join(ids[:3])}"),
    )  # fmt: skip


def _these(case: Case, ids: tuple[str, ...]) -> str:
    return f"{_named(case, ids)} {'hold' if len(ids) > 1 else 'holds'} the answer and {'are' if len(ids) > 1 else 'is'}"


def _named(case: Case, ids: tuple[str, ...]) -> str:
    more = f" and {count(len(ids) - _LISTED)} more" if len(ids) > _LISTED else ""
    listed = ", ".join(_rank(case, one) for one in ids[:_LISTED]) + more
    return listed[:1].upper() + listed[1:]


def short_id(chunk_id: str) -> str:
    """An id that fits a line: a long one loses its middle, for hashes and paths may differ at either end only."""
    return chunk_id if len(chunk_id) <= _LONG_ID else f"{chunk_id[: _LONG_ID // 2]}…{chunk_id[-(_LONG_ID // 2 - 1) :]}"


def _rank(case: Case, chunk_id: str) -> str:
    """A chunk by its rank, as the list below numbers it, with its id."""
    rank = next((place for place, chunk in enumerate(case.chunks, 1) if chunk.id == chunk_id), None)
    return f"chunk {short_id(chunk_id)}" + (f" (rank {rank})" if rank is not None else " (not retrieved)")
