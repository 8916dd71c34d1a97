"""Takes a complaint in: pasted, as a file, or by a form. Says which stages the fields that are there enable."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import streamlit as st

from lim_core.cases import LoadedCase, case_from_json
from lim_core.drawing.words import clip, count
from lim_core.errors import InputError
from lim_core.importers.drafts.report import disabled_stages
from lim_core.types import Case, Json
from lim_core.ui import session
from lim_core.ui.drafting import hand_over, keep_draft, open_draft, start_over
from lim_core.ui.intake import pick, take_paste, take_upload, understand
from lim_core.ui.workbench import work_bench

_SPLIT, _BOXES = "Split a text", "One box each"
_MAX_BOXES = 60
_SEPARATORS: Mapping[str, str] = {"a line of ---": "\n---\n", "an empty line": "\n\n", "each line": "\n"}

_WANTS: Mapping[str, str] = {
    "truncation": "the prompt as sent, the context window, the reported prompt tokens or the finish reason",
    "retrieval": "the right answers, or tick the gold chunk",
    "assembly": "the prompt as sent",
    "position": "the right answers and at least 4 chunks",
}


@dataclass(frozen=True, slots=True)
class Enabled:
    """Whether a stage has what it needs, and which fields it lacks or would gain from."""

    stage: str
    ready: bool
    says: str


def take_case() -> LoadedCase | None:
    """Draw the input and return the case it makes, or None while it is empty.

    Raises:
        InputError: what was given is no case; the message says which field.
    """
    open_draft()
    with st.container(horizontal=True, vertical_alignment="bottom", horizontal_alignment="distribute"):
        st.segmented_control(
            "Give the complaint as",
            [session.PASTE, session.UPLOAD, session.FORM],
            default=session.PASTE,
            required=True,
            key=session.WAY,
            persist_state="session",
        )
        st.button("Start over", icon=":material/ink_eraser:", key="start-over", on_click=start_over, type="tertiary")
    try:
        taken = _taken()
    except InputError:
        keep_draft()
        raise
    keep_draft()
    return taken


def enabled_stages(case: Case | None) -> tuple[Enabled, ...]:
    """What each stage can do with the fields that are there; without a case, what each stage wants."""
    if case is None:
        return tuple(Enabled(stage, False, wants) for stage, wants in _WANTS.items())
    lists = case.candidates is not None and case.corpus is not None
    off = {one.stage: _WANTS[one.stage] for one in disabled_stages(case)}
    if "position" in off and case.answers:
        off["position"] = "at least 4 chunks"
    elif "position" in off and len(case.chunks) >= 4:
        off["position"] = "the right answers"
    has = {
        "truncation": "prompt, window or usage is there",
        "retrieval": "all lists are there"
        if lists
        else "answers or gold are there; candidates and corpus, in JSON, would add to it",
        "assembly": "the prompt is there",
        "position": "answers and chunks are there",
    }
    return tuple(
        Enabled(stage, stage not in off, f"add {off[stage]}" if stage in off else said) for stage, said in has.items()
    )


def _taken() -> LoadedCase | None:
    way = session.way()
    if way == session.FORM:
        return _filled()
    source = take_upload() if way == session.UPLOAD else take_paste()
    read = understand(source) if source is not None else None
    return None if read is None else work_bench(read, pick(read))


def _filled() -> LoadedCase | None:
    question = _area("Question", "form-question", 70, "What the user asked")
    answers = _area(
        "Right answers, one a line",
        "form-answers",
        90,
        "Every wording that counts as right; numbers are read with care",
    )
    chunks, gold = _chunks()
    left, right = st.columns(2)
    with left:
        prompt = _area(
            "Prompt as sent (optional)", "form-prompt", 120, "Shows whether each chunk reached the model whole"
        )
    with right:
        answer = _area("Answer given (optional)", "form-answer", 120, "What the bot said")
    numbers = _numbers()
    if not question.strip() and not chunks:
        return None
    case: dict[str, Json] = {
        "id": "from-form",
        "question": question.strip(),
        "answers": [row.strip() for row in answers.splitlines() if row.strip()],
        "chunks": [{"id": f"c{place}", "text": text} for place, text in enumerate(chunks, 1)],
        "gold_ids": [f"c{place}" for place in gold],
        "tags": ["form"],
        **numbers,
    }
    if prompt.strip():
        case["prompt"] = prompt
    if answer.strip():
        case["answer"] = answer.strip()
    loaded = case_from_json(case)
    if chunks and st.button(
        "Order and tick the chunks", icon=":material/swap_vert:", key="form-arrange", help="Opens the case as a list."
    ):
        hand_over(loaded.case)
    return loaded


def _area(label: str, key: str, height: int, hint: str) -> str:
    return st.text_area(label, key=key, height=height, placeholder=hint, persist_state="session") or ""


def _chunks() -> tuple[list[str], list[int]]:
    """The chunk texts, best first, and the numbers (from 1) of those ticked as gold."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        way = st.segmented_control(
            "Retrieved chunks, best first",
            [_SPLIT, _BOXES],
            default=_SPLIT,
            required=True,
            key="form-chunk-way",
            persist_state="session",
        )
        separator = ""
        if way != _BOXES:
            choice = st.selectbox(
                "Parted by", list(_SEPARATORS), key="form-separator", width=180, persist_state="session"
            )
            separator = _SEPARATORS.get(choice or "", "\n---\n")
    return _split(separator) if separator else _boxes()


def _split(separator: str) -> tuple[list[str], list[int]]:
    text = st.text_area(
        "Chunks",
        key="form-chunks",
        height=220,
        placeholder="Paste the chunks as the retriever returned them, best first",
        label_visibility="collapsed",
        persist_state="session",
    )
    whole = (text or "").replace("\r\n", "\n")
    chunks = [part.strip() for part in f"\n{whole}\n".split(separator) if part.strip()]
    if not chunks:
        return [], []
    gold = st.multiselect(
        f"Gold chunk: the one that holds the answer ({count(len(chunks))} chunks)",
        list(range(1, min(len(chunks), 500) + 1)),
        format_func=lambda place: f"{place}: {clip(chunks[place - 1], 70)}" if place <= len(chunks) else str(place),
        key="form-gold",
        placeholder="Left open, a single chunk with a right answer is taken",
        persist_state="session",
    )
    return chunks, [place for place in gold if isinstance(place, int) and place <= len(chunks)]


def _boxes() -> tuple[list[str], list[int]]:
    boxes = int(st.session_state.setdefault("form-box-count", 4))
    chunks: list[str] = []
    gold: list[int] = []
    for place in range(1, boxes + 1):
        left, right = st.columns([6, 1], vertical_alignment="center")
        with left:
            text = st.text_area(f"Chunk {place}", key=f"form-box-{place}", height=80, persist_state="session") or ""
        with right:
            ticked = st.checkbox("gold", key=f"form-box-gold-{place}", persist_state="session")
        if text.strip():
            chunks.append(text.strip())
            if ticked:
                gold.append(len(chunks))
    if boxes < _MAX_BOXES and st.button("Add a chunk", icon=":material/add:", key="form-add"):
        st.session_state["form-box-count"] = boxes + 1
        st.rerun()
    return chunks, gold


def _numbers() -> dict[str, Json]:
    """The optional figures: window, output budget, finish reason, reported prompt tokens, model."""
    with st.expander("Window, output budget, usage, model (optional)"):
        left, right = st.columns(2)
        with left:
            window = _number("Context window, tokens", "form-window")
            reported = _number("Prompt tokens the server reported", "form-reported")
            model = st.text_input("Model that gave the answer", key="form-model", persist_state="session")
        with right:
            budget = _number("Max output tokens", "form-budget")
            reason = st.selectbox(
                "Finish reason",
                ["stop", "length", "content_filter", "tool_calls"],
                index=None,
                placeholder="not known",
                key="form-finish",
                persist_state="session",
            )
    given: dict[str, Json] = {
        "context_window": window,
        "max_output_tokens": budget,
        "finish_reason": reason,
        "usage": None if reported is None else {"prompt_tokens": reported},
        "model": model.strip() if model and model.strip() else None,
    }
    return {name: value for name, value in given.items() if value is not None}


def _number(label: str, key: str) -> int | None:
    value = st.number_input(
        label, min_value=1, value=None, step=1, key=key, placeholder="not known", persist_state="session"
    )
    return None if value is None else int(value)
