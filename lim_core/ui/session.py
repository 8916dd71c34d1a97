"""What this browser session has in hand: the source, the changes to its cases, and things computed from them."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TypeVar

import streamlit as st

from lim_core.types import Case
from lim_core.ui.work import Source, Work

T = TypeVar("T")

WAY, PASTED = "case-way", "case-json"
PASTE, UPLOAD, FORM = "Paste", "Upload a file", "Form"
_WORK, _KEPT, _GENERATION = "work", "kept-source", "generation"


def way() -> str:
    """How the case is given: one of PASTE, UPLOAD, FORM."""
    return str(st.session_state.get(WAY) or PASTE)


def kept() -> Source | None:
    """The file that was uploaded, or the case that was opened from a run; a browser gives an upload only once."""
    found = st.session_state.get(_KEPT)
    return found if isinstance(found, Source) else None


def keep(source: Source | None) -> None:
    """Hold on to a file, or let it go."""
    st.session_state[_KEPT] = source


def source() -> Source | None:
    """What was pasted or uploaded; None while there is nothing, and for the form."""
    if way() == UPLOAD:
        return kept()
    text = st.session_state.get(PASTED)
    if way() == PASTE and isinstance(text, str) and text.strip():
        return Source.of("the pasted text", text.encode("utf-8", "replace"))
    return None


def work_on(source: Source) -> Work:
    """The changes to the cases of this source; another source begins without any."""
    held = st.session_state.get(_WORK)
    if not isinstance(held, Work) or held.digest != source.digest:
        held = Work(source.digest)
        st.session_state[_WORK] = held
    return held


def work() -> Work | None:
    """The changes so far."""
    held = st.session_state.get(_WORK)
    return held if isinstance(held, Work) else None


def set_work(changed: Work) -> None:
    """Replace the changes so far."""
    st.session_state[_WORK] = changed


def change(imported: Case, edit: Callable[[Case], Case], said: str) -> None:
    """Make one change to a case; what changes nothing is no step."""
    held = work()
    if held is None:
        return
    before = held.case(imported)
    after = edit(before)
    if after != before:
        set_work(held.changed(imported.id, after, said))


def remembered(name: str, key: Hashable, make: Callable[[], T]) -> T:
    """A value computed once for a key in this session; only the last key of a name is kept."""
    held = st.session_state.get(f"remembered-{name}")
    if isinstance(held, tuple) and held[0] == key:
        return held[1]  # type: ignore[no-any-return]
    value = make()
    st.session_state[f"remembered-{name}"] = (key, value)
    return value


def generation() -> int:
    """How many drafts were opened or thrown away in this session."""
    return int(st.session_state.get(_GENERATION, 0))


def forget() -> None:
    """Let everything go that belongs to a case in the making."""
    st.session_state[_GENERATION] = generation() + 1
    for name in [str(key) for key in st.session_state]:
        if name.startswith(("form-", "work-", "remembered-", "chunk-")) or name in (_WORK, _KEPT, PASTED):
            del st.session_state[name]
