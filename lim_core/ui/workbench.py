"""The case in hand: what its record holds and lacks, every guess with a way to overrule it, its chunks to confirm."""

from __future__ import annotations

import json
from functools import partial

import streamlit as st

from lim_core.cases import NEEDS_CHUNKS, NEEDS_QUESTION, LoadedCase, case_to_json
from lim_core.cases.editing import answered, asked, directed
from lim_core.drawing.words import clip, count, stage_words
from lim_core.errors import InputError
from lim_core.importers import Imported, Proposal, accept
from lim_core.importers.drafts.report import CaseReport, disabled_stages
from lim_core.types import Case, Chunk, ScoreDirection
from lim_core.ui import session, views
from lim_core.ui.chunk_list import chunk_list
from lim_core.ui.gold_form import gold_form
from lim_core.ui.more_fields import more_fields

_QUESTION, _ANSWERS, _DIRECTION, _ASKED = "work-question", "work-answers", "work-direction", "work-asked"
_PIECES_SHOWN = 30
# Fields whose names in a case file could be taken for something else beside the labels of the page.
_WORDS = {"answers": "right answers", "answer": "answer given", "prompt": "prompt as sent", "ids": "chunk ids"}
_DIRECTIONS: dict[str, ScoreDirection | None] = {
    "not known": None,
    "similarity: higher is better": ScoreDirection.SIMILARITY,
    "distance: lower is better": ScoreDirection.DISTANCE,
}


def work_bench(read: Imported, imported: Case) -> LoadedCase:
    """Draw the case with its changes and return it.

    Raises:
        InputError: its question or its chunks are still to be confirmed.
    """
    work = session.work()
    case = imported if work is None else work.case(imported)
    report = next(one for one in read.report.cases if one.case_id == imported.id)
    with st.container(gap=None):
        _record(report, case)
    proposal = report.proposal
    if NEEDS_CHUNKS in case.tags and proposal is not None:
        _confirm(imported, case, proposal)
    else:
        _asked(imported, case, report)
    if NEEDS_CHUNKS in case.tags:
        if proposal is None:
            raise InputError(
                "No chunks can be told apart in this prompt: paste the chunks as the retriever gave them, or use the form."
            )
        raise InputError("Confirm the chunks that were found in the prompt, then the case is ready.")
    more_fields(imported, case)
    gold_form(imported, case)
    chunk_list(imported, case)
    _copy(case)
    if NEEDS_QUESTION in case.tags:
        raise InputError("The question is not known: write what the user asked.")
    return LoadedCase(case, report.notes)


def _record(report: CaseReport, case: Case) -> None:
    """What the record held, and what its absent fields switch off as the case stands now."""
    views.note(f"Found: {_names(report.found)}.")
    if report.missing:
        views.note(f"Not in it: {_names(report.missing)}.")
    # While its chunks wait to be confirmed, a stage may lack them only for now.
    for one in () if NEEDS_CHUNKS in case.tags else disabled_stages(case):
        views.note(f"{stage_words(one.stage)} will be skipped: add {one.needs.replace('_', ' ')}.")
    if NEEDS_CHUNKS in case.tags or NEEDS_QUESTION in case.tags:
        # A case that is ready says them beside what it costs.
        for said in report.notes[:10]:
            views.note(f"Note: {said}")
    for group in report.same_text[:10]:
        views.note(f"These chunks have the same text: {', '.join(clip(one, 40) for one in group[:20])}.")
    for old, new in report.renamed[:10]:
        views.note(f"The id {clip(old, 60)} stood twice; the later chunk is now {clip(new, 60)}.")
    for name, groups in (("same texts", report.same_text), ("doubled ids", report.renamed)):
        if len(groups) > 10:
            views.note(f"And {count(len(groups) - 10)} more {name}.")


def _asked(imported: Case, case: Case, report: CaseReport) -> None:
    """Question, answers and score direction; what was guessed says from what."""
    st.session_state[_QUESTION] = case.question
    st.text_area("Question", key=_QUESTION, height=70, on_change=_set_question, args=(imported,))
    proposed = report.proposal.question if report.proposal is not None else None
    for guess in report.guesses:
        if guess.field == "question" and case.question == imported.question:
            views.note(f"Guessed: {guess.why}. Change it where it is wrong.")
    if not case.question and proposed:
        views.line(f"Proposed: {clip(proposed, 300)}")
        if report.proposal is not None:
            views.note(f"Told by: {report.proposal.question_why}.")
        st.button(
            "Take this question", icon=":material/check:", key="take-question", on_click=session.change,
            args=(imported, partial(asked, question=proposed), "question"),
        )  # fmt: skip
    st.session_state[_ANSWERS] = "\n".join(case.answers)
    st.text_area(
        "Right answers, one a line", key=_ANSWERS, height=80, on_change=_set_answers, args=(imported,),
        placeholder="Every wording that counts as right: the fact, not a whole sentence",
    )  # fmt: skip
    _direction(imported, case, report)


def _direction(imported: Case, case: Case, report: CaseReport) -> None:
    guess = next((one for one in report.guesses if one.field == "score_direction"), None)
    if guess is None and case.score_direction is None and all(chunk.score is None for chunk in case.chunks):
        return
    st.session_state[_DIRECTION] = next(name for name, way in _DIRECTIONS.items() if way is case.score_direction)
    st.selectbox("Scores are", list(_DIRECTIONS), key=_DIRECTION, on_change=_set_direction, args=(imported,))
    if guess is not None and case.score_direction is imported.score_direction:
        views.note(f"{'Guessed' if guess.value else 'Not guessed'}: {guess.why}.")


def _confirm(imported: Case, case: Case, proposal: Proposal) -> None:
    """The chunks found in the prompt as sent, to be taken with one click."""
    with st.container(border=True, gap="xsmall"):
        total = len(proposal.chunks)
        st.subheader("Chunks found in the prompt", anchor=False)
        views.note(
            f"{count(total)} chunks, told by {proposal.how}, {proposal.sure:.0%} sure. "
            "The template around them is kept, so that tests send your own prompt."
        )
        rows: list[views.Row] = [
            _proposed(place, chunk) for place, chunk in enumerate(proposal.chunks[:_PIECES_SHOWN], 1)
        ]
        views.table(rows, alt="Chunks proposed from the prompt, in its order")
        if total > _PIECES_SHOWN:
            views.note(f"The first {_PIECES_SHOWN} are shown.")
        st.session_state.setdefault(f"{_ASKED}-{imported.id}", case.question or proposal.question or "")
        question = st.text_area("Question", key=f"{_ASKED}-{imported.id}", height=70)
        if proposal.question and not case.question:
            views.note(f"Guessed: {proposal.question_why}. Change it where it is wrong.")
        st.button(
            f"Use these {count(total)} chunks", type="primary", icon=":material/check:", key="accept",
            on_click=_accept, args=(imported, proposal), disabled=not question.strip(),
        )  # fmt: skip


def _proposed(place: int, chunk: Chunk) -> views.Row:
    """A row of the proposal; the title stands before the text, which may run past the edge."""
    title = {"title": chunk.title} if chunk.title else {}
    return {"rank": place, "id": chunk.id, **title, "text": clip(chunk.text, 240)}


def _copy(case: Case) -> None:
    """The case as its file would hold it; written only when asked for, since it may be long."""
    box = st.expander("Case as JSON", icon=":material/data_object:", key="work-json", on_change="rerun")
    if box.open:
        with box:
            views.block(json.dumps(case_to_json(case), ensure_ascii=False, indent=1), height=320)


def _accept(imported: Case, proposal: Proposal) -> None:
    question = str(st.session_state.get(f"{_ASKED}-{imported.id}") or "").strip()
    session.change(imported, lambda case: accept(case, proposal, question or None), "chunks from the prompt")


def _set_question(imported: Case) -> None:
    typed = str(st.session_state.get(_QUESTION) or "")
    session.change(imported, partial(asked, question=typed), "question")


def _set_answers(imported: Case) -> None:
    typed = str(st.session_state.get(_ANSWERS) or "")
    session.change(imported, partial(answered, lines=typed), "right answers")


def _set_direction(imported: Case) -> None:
    chosen = _DIRECTIONS.get(str(st.session_state.get(_DIRECTION)))
    session.change(imported, partial(directed, direction=chosen), "score direction")


def _names(fields: tuple[str, ...]) -> str:
    return ", ".join(_WORDS.get(name, name.replace("_", " ")) for name in fields) or "nothing"
