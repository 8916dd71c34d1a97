"""Keeps the case in the making through a change of page and a reload: a small file, named in the address as `?draft=ID`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NoReturn

import streamlit as st

from lim_core.cases import case_from_json, case_to_json
from lim_core.config import Settings
from lim_core.errors import InputError, StoreError
from lim_core.store.drafts import Draft, Drafts, is_draft_id, new_draft_id
from lim_core.types import Case, Json
from lim_core.ui import session, shell, views
from lim_core.ui.work import Source, Step, Work

# A step back holds the whole case, so a reload brings back a few of them, and none of a long source (in bytes).
_MOST_PAST, _LONG = 10, 300_000
_ID, _SAVED = "draft-id", "draft-saved"
# Buttons cannot be set, so they are no part of a draft.
_BUTTONS = frozenset(["form-add", "form-arrange"])


def open_draft() -> None:
    """Bring back the draft that the address names, and name the session's own one in the address."""
    wanted = st.query_params.get("draft")
    held = st.session_state.get(_ID)
    if wanted is not None and wanted != held:
        draft = drafts().load(wanted) if is_draft_id(wanted) else None
        if draft is not None:
            session.forget()
            _restore(draft)
            st.session_state[_ID] = held = wanted
        else:
            views.caution("This draft is not here any more: drafts are kept for 7 days. Start a new one.")
            del st.query_params["draft"]
    if isinstance(held, str) and st.query_params.get("draft") != held:
        st.query_params["draft"] = held


def keep_draft() -> None:
    """Write the draft where something has changed since; a fault is said, and stops nothing."""
    source, work = session.source(), session.work()
    widgets = _form_values()
    if source is None and not any(isinstance(value, str) and value.strip() for value in _typed(widgets)):
        return
    if source is None or (work is not None and work.digest != source.digest):
        work = None
    digest = source.digest if source else ""
    change = (session.way(), repr(widgets), work and (work.format, work.picked, work.serial, work.suggested))
    saved = st.session_state.get(_SAVED)
    if saved == (digest, change):
        return
    try:
        draft_id = st.session_state.get(_ID)
        if not isinstance(draft_id, str):
            drafts().sweep()
            draft_id = st.session_state[_ID] = new_draft_id()
            st.query_params["draft"] = draft_id
            saved = None
        if saved is None or saved[0] != digest:
            drafts().save_source(draft_id, source.data if source else None)
        drafts().save(draft_id, _fields(source, work, widgets))
        st.session_state[_SAVED] = (digest, change)
    except StoreError as error:
        views.caution(str(error))


def start_over() -> None:
    """Throw the draft away and begin with an empty form."""
    held = st.session_state.pop(_ID, None)
    st.session_state.pop(_SAVED, None)
    if isinstance(held, str):
        drafts().delete(held)
    st.query_params.pop("draft", None)
    session.forget()


def hand_over(case: Case, suggested: str | None = None) -> NoReturn:
    """Open the form with a case that exists already, as a draft of its own. Does not return."""
    source = Source.of(f"{case.id}.json", json.dumps(case_to_json(case), ensure_ascii=False).encode("utf-8", "replace"))
    draft_id = new_draft_id()
    drafts().sweep()
    drafts().save_source(draft_id, source.data)
    drafts().save(draft_id, _fields(source, Work(source.digest, "lim", suggested=suggested), {}, session.UPLOAD))
    st.switch_page(shell.DIAGNOSE.path, query_params={"draft": draft_id})


def drafts() -> Drafts:
    """The drafts beside the store of this server."""
    return Drafts.beside(Settings.from_environment().store_path)


def _form_values() -> dict[str, Json]:
    return {
        name: st.session_state[name]
        for name in sorted(str(key) for key in st.session_state)
        if name.startswith("form-") and name not in _BUTTONS
    }


def _typed(widgets: Mapping[str, Json]) -> list[Json]:
    choices = ("form-chunk-way", "form-separator")
    return [value for name, value in widgets.items() if name not in choices]


def _fields(source: Source | None, work: Work | None, widgets: Mapping[str, Json], way: str = "") -> dict[str, Json]:
    fields: dict[str, Json] = {"schema": 1, "way": way or session.way(), "form": dict(widgets)}
    if source is not None:
        fields["name"] = source.name
    if source is not None and work is not None:
        fields["format"] = work.format
        fields["picked"] = work.picked
        fields["suggested"] = work.suggested
        fields["edits"] = {key: case_to_json(case) for key, case in work.edits.items()}
        fields["past"] = [_step(step) for step in work.past[-_MOST_PAST:]] if len(source.data) < _LONG else []
    return fields


def _restore(draft: Draft) -> None:
    fields = draft.fields
    way = fields.get("way")
    st.session_state[session.WAY] = way if way in (session.PASTE, session.UPLOAD, session.FORM) else session.PASTE
    form = fields.get("form")
    for name, value in form.items() if isinstance(form, Mapping) else ():
        if name.startswith("form-") and name not in _BUTTONS:
            st.session_state[name] = value
    if draft.source is None:
        return
    named = fields.get("name")
    source = Source.of(named if isinstance(named, str) else "case.json", draft.source)
    if way == session.UPLOAD:
        session.keep(source)
    else:
        st.session_state[session.PASTED] = draft.source.decode("utf-8", "replace")
    format, picked, suggested = fields.get("format"), fields.get("picked"), fields.get("suggested")
    session.set_work(
        Work(
            source.digest,
            format if isinstance(format, str) else "auto",
            picked if isinstance(picked, str) else None,
            _edits(fields.get("edits")),
            _past(fields.get("past")),
            suggested=suggested if isinstance(suggested, str) else None,
        )
    )


def _edits(value: Json) -> dict[str, Case]:
    found: dict[str, Case] = {}
    for key, case in value.items() if isinstance(value, Mapping) else ():
        # A case of an older lim is left out: the source is there, so only the changes to it are lost.
        try:
            found[key] = case_from_json(case).case
        except InputError:
            continue
    return found


def _step(step: Step) -> dict[str, Json]:
    return {
        "said": step.said,
        "case": step.case_id,
        "before": None if step.before is None else case_to_json(step.before),
    }


def _past(value: Json) -> tuple[Step, ...]:
    found: list[Step] = []
    for step in value if isinstance(value, list) else ():
        if isinstance(step, Mapping):
            before = step.get("before")
            old = None if before is None else _edits({"": before}).get("")
            if before is None or old is not None:
                found.append(Step(str(step.get("said")), str(step.get("case")), old))
    return tuple(found)
