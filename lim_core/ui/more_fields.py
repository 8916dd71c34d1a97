"""What the record did not hold and the stages could use: prompt, answer given, window, usage, finish reason, model."""

from __future__ import annotations

from functools import partial

import streamlit as st

from lim_core.cases.editing import ended, prompted, sized, told
from lim_core.drawing.words import count
from lim_core.types import Case
from lim_core.ui import session, views

_PROMPT, _ANSWER, _MODEL, _REASON = "work-prompt", "work-answer", "work-model", "work-finish"
_WINDOW, _BUDGET, _REPORTED = "work-window", "work-budget", "work-reported"
_SHOWN, _WHOLE = 20, 20_000
_REASONS = ("stop", "length", "content_filter", "tool_calls")


def more_fields(imported: Case, case: Case) -> None:
    """The further fields of the case, to see and to change."""
    with st.expander("Prompt as sent, answer given, window, usage, model", icon=":material/edit_note:"):
        _prompt(imported, case)
        st.session_state[_ANSWER] = case.answer or ""
        st.text_area("Answer given", key=_ANSWER, height=80, on_change=_set_answer, args=(imported,))
        usage = case.usage
        left, right = st.columns(2)
        with left:
            _number(imported, "Context window, tokens", _WINDOW, case.context_window)
            _number(imported, "Prompt tokens the server reported", _REPORTED, usage.prompt_tokens if usage else None)
            st.session_state[_MODEL] = case.model or ""
            st.text_input("Model that gave the answer", key=_MODEL, on_change=_set_end, args=(imported,))
        with right:
            _number(imported, "Max output tokens", _BUDGET, case.max_output_tokens)
            st.session_state[_REASON] = case.finish_reason
            reasons = dict.fromkeys((*_REASONS, *([case.finish_reason] if case.finish_reason else [])))
            st.selectbox(
                "Finish reason", list(reasons), index=None, key=_REASON, placeholder="not known", on_change=_set_end,
                args=(imported,),
            )  # fmt: skip


def _prompt(imported: Case, case: Case) -> None:
    messages = case.prompt or ()
    if len(messages) > 1 or (messages and messages[0].role != "user"):
        roles = ", ".join(message.role for message in messages[:20])
        said = "1 message" if len(messages) == 1 else f"{count(len(messages))} messages"
        views.note(f"The prompt as sent has {said} ({roles}).")
        for message in messages[:_SHOWN]:
            views.note(message.role)
            views.block(message.content[:_WHOLE], height=120 if len(message.content) > 300 else None)
        if len(messages) > _SHOWN or any(len(message.content) > _WHOLE for message in messages[:_SHOWN]):
            views.note(f"The first {_SHOWN} messages are shown, each up to {count(_WHOLE)} characters.")
        return
    st.session_state[_PROMPT] = messages[0].content if messages else ""
    st.text_area("Prompt as sent", key=_PROMPT, height=120, on_change=_set_prompt, args=(imported,))


def _number(imported: Case, label: str, key: str, value: int | None) -> None:
    # The server may report 0 tokens; a window and a budget begin at 1.
    least = 0 if key == _REPORTED else 1
    st.session_state[key] = value
    st.number_input(
        label,
        min_value=least,
        value=None,
        step=1,
        key=key,
        placeholder="not known",
        on_change=_set_sizes,
        args=(imported,),
    )


def _set_prompt(imported: Case) -> None:
    session.change(imported, partial(prompted, text=str(st.session_state.get(_PROMPT) or "")), "prompt as sent")


def _set_answer(imported: Case) -> None:
    session.change(imported, partial(told, answer=str(st.session_state.get(_ANSWER) or "")), "answer given")


def _set_sizes(imported: Case) -> None:
    window, budget, reported = (_whole(key) for key in (_WINDOW, _BUDGET, _REPORTED))
    session.change(imported, partial(sized, window=window, budget=budget, reported=reported), "window and usage")


def _set_end(imported: Case) -> None:
    reason, model = st.session_state.get(_REASON), str(st.session_state.get(_MODEL) or "")
    session.change(
        imported,
        partial(ended, reason=reason if isinstance(reason, str) else None, model=model),
        "finish reason and model",
    )


def _whole(key: str) -> int | None:
    value = st.session_state.get(key)
    return None if value is None else int(value)
