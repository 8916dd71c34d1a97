"""The chunks of a case as a list to reorder and tick: rank, source, score, tokens, and the answer where it stands."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import streamlit as st

from lim_core.cases.editing import Tick, moved, ticked
from lim_core.drawing.words import SIGNS, clip, count
from lim_core.evidence import gold_of
from lim_core.evidence.marks import Mark
from lim_core.tokens import counter_for
from lim_core.types import Case, Chunk, Counter, Status
from lim_core.ui import session, views
from lim_core.ui.gold_form import marks_of, short_id

PAGE = 20
# Characters of a chunk's text on its own line, before and after the answer, and in full on demand.
_HEAD, _AROUND, _WHOLE = 110, 70, 20_000
_SOURCES = ("source", "file_name", "filename", "file_path", "url", "document_id", "doc_id")
_FROM, _TO = "work-move-from", "work-move-to"
_ALL, _HOLDING, _TICKED = "all", "with the answer", "ticked"


def chunk_list(imported: Case, case: Case) -> None:
    """Draw the list, one page of it where it is long."""
    if not case.chunks:
        return
    marks: dict[str, list[Mark]] = {}
    for mark in marks_of(case).marks:
        marks.setdefault(mark.chunk_id, []).append(mark)
    gold = gold_of(case)
    _head(imported, case)
    counter = counter_for(case.model)
    for rank in _page(case, set(marks)):
        chunk = case.chunks[rank]
        is_open = chunk.id in gold.spoilers or chunk.id in case.harmless_ids
        _row(imported, case, rank, marks.get(chunk.id, ()), counter, offer_harmless=is_open)


def snippet(text: str, mark: Mark) -> str:
    """The answer in its place, between brackets, with some text around it, on one line."""
    start, end = max(0, mark.start - _AROUND), min(len(text), mark.end + _AROUND)
    before, after = " ".join(text[start : mark.start].split()), " ".join(text[mark.end : end].split())
    left = " " if mark.start > start and text[mark.start - 1].isspace() else ""
    right = " " if mark.end < end and text[mark.end].isspace() else ""
    found = clip(text[mark.start : mark.end], 200)
    return f"{'…' if start else ''}{before}{left}⟦{found}⟧{right}{after}{'…' if end < len(text) else ''}"


def source_of(chunk: Chunk) -> str:
    """Where a chunk is from: its title, or what its metadata call the source, with the page."""
    page = chunk.metadata.get("page")
    named = next((str(chunk.metadata[name]) for name in _SOURCES if chunk.metadata.get(name)), "")
    found = chunk.title or named
    return f"{found}, page {page}" if found and isinstance(page, int | str) and page != "" else found


def _head(imported: Case, case: Case) -> None:
    total = len(case.chunks)
    work = session.work()
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        st.subheader(f"Chunks, best first: {count(total)}", anchor=False)
        step = work.past[-1].said if work is not None and work.past else ""
        st.button(
            "Undo", icon=":material/undo:", key="undo", on_click=_undo, disabled=not step,
            help=f"Takes back: {views.escape(clip(step, 80))}" if step else None,
        )  # fmt: skip
        if total > PAGE:
            with st.popover("Move …", icon=":material/swap_vert:"):
                st.number_input("The chunk at rank", 1, total, 1, key=_FROM)
                st.number_input("to rank", 1, total, 1, key=_TO)
                st.button("Move", key="move", on_click=_move_far, args=(imported,))


def _page(case: Case, holding: set[str]) -> Sequence[int]:
    """The places, from 0, of the chunks to draw."""
    total = len(case.chunks)
    if total <= PAGE:
        return range(total)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        shown = st.segmented_control(
            "Show",
            [_ALL, _HOLDING, _TICKED],
            default=_ALL,
            required=True,
            key="work-show",
            label_visibility="collapsed",
        )
        marked = {*case.gold_ids, *case.forbidden_ids, *case.harmless_ids}
        wanted = holding if shown == _HOLDING else marked
        places = [at for at, chunk in enumerate(case.chunks) if shown == _ALL or chunk.id in wanted]
        pages = max(1, -(-len(places) // PAGE))
        number = 1
        if pages > 1:
            if int(st.session_state.get("work-page", 1)) > pages:
                st.session_state["work-page"] = pages
            number = int(st.number_input(f"Page, of {pages}", 1, pages, key="work-page", width=140))
    if not places:
        views.note("None.")
    return places[(number - 1) * PAGE : number * PAGE]


def _row(
    imported: Case, case: Case, rank: int, marks: Sequence[Mark], counter: Counter, *, offer_harmless: bool
) -> None:
    chunk = case.chunks[rank]
    with st.container(border=True, gap="xsmall", key=f"chunk-{rank}"):
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            with st.container(width="stretch"):
                views.note(_facts(chunk, rank, counter))
            _tick(imported, case, chunk, Tick.GOLD, "gold")
            if offer_harmless:
                _tick(imported, case, chunk, Tick.HARMLESS, "confirmed harmless")
            _tick(imported, case, chunk, Tick.FORBIDDEN, "forbidden")
            last = len(case.chunks) - 1
            for label, icon, end in (("Up", "arrow_upward", rank - 1), ("Down", "arrow_downward", rank + 1)):
                st.button(
                    label, icon=f":material/{icon}:", key=f"{label.lower()}-{rank}", type="tertiary",
                    disabled=not 0 <= end <= last, on_click=_move, args=(imported, rank, end, f"{chunk.id} {label.lower()}"),
                )  # fmt: skip
        # The key holds the id, so that an opened text stays with its chunk when it is moved.
        box = st.expander(_opening(case, chunk, marks), key=f"work-text-{chunk.id}", on_change="rerun", type="compact")
        if box.open:
            with box:
                if short_id(chunk.id) != chunk.id:
                    views.note(f"id {clip(chunk.id, 400)}")
                views.block(chunk.text[:_WHOLE], height=260 if len(chunk.text) > 800 else None)
                if len(chunk.text) > _WHOLE:
                    views.note(f"The first {count(_WHOLE)} of {count(len(chunk.text))} characters.")


def _opening(case: Case, chunk: Chunk, marks: Sequence[Mark]) -> str:
    """Markdown for a row's text: its beginning, or the answer in its place with a sign that it is there."""
    if not marks:
        return views.escape(clip(chunk.text, _HEAD)) or "empty"
    look = SIGNS[Status.PASS if chunk.id in case.gold_ids else Status.UNDETERMINED]
    more = f" (and {count(len(marks) - 1)} more)" if len(marks) > 1 else ""
    return views.sign(look, f"**holds the answer{more}:** {views.escape(snippet(chunk.text, marks[0]))}")


def _facts(chunk: Chunk, rank: int, counter: Counter) -> str:
    tokens = counter.count(chunk.text)
    about = count(tokens.n) if tokens.exact else f"{count(tokens.low)} to {count(tokens.high)}"
    score = "no score" if chunk.score is None else f"score {chunk.score:.4g}"
    parts = [f"rank {rank + 1}", short_id(chunk.id), clip(source_of(chunk), 80), score, f"{about} tokens"]
    return " · ".join(part for part in parts if part)


def _tick(imported: Case, case: Case, chunk: Chunk, tick: Tick, label: str) -> None:
    key = f"chunk-{tick.value}-{chunk.id}"
    st.session_state[key] = chunk.id in getattr(case, tick.value)
    st.checkbox(label, key=key, on_change=_set_tick, args=(imported, chunk.id, tick, label, key))


def _set_tick(imported: Case, chunk_id: str, tick: Tick, label: str, key: str) -> None:
    on = bool(st.session_state.get(key))
    said = f"{label} {'on' if on else 'off'}: {chunk_id}"
    session.change(imported, partial(ticked, tick=tick, chunk_id=chunk_id, on=on), said)


def _move(imported: Case, start: int, end: int, said: str) -> None:
    # Two clicks can meet one list that has changed between them.
    session.change(imported, lambda case: moved(case, start, end) if max(start, end) < len(case.chunks) else case, said)


def _move_far(imported: Case) -> None:
    # Arguments of a callback are as old as the last run; what was typed since stands in the session.
    start, end = st.session_state.get(_FROM), st.session_state.get(_TO)
    if isinstance(start, int) and isinstance(end, int):
        _move(imported, start - 1, end - 1, f"rank {start} to {end}")


def _undo() -> None:
    work = session.work()
    if work is not None:
        session.set_work(work.undone())
