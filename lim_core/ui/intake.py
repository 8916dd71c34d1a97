"""Takes in what people have at hand, pasted or uploaded, and shows what lim understood of it; every guess can be overruled."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from lim_core.cases import MAX_BYTES
from lim_core.drawing.words import clip, count
from lim_core.errors import InputError
from lim_core.importers import Imported, ImportReport, import_file, importers
from lim_core.types import Case
from lim_core.ui import session, views
from lim_core.ui.work import Source, Work

_FORMAT, _PICK, _FILE = "work-format", "work-pick", "case-file"
_MOST_SKIPPED = 500
_PLACEHOLDER = """A trace export, a log line, a printed list of documents, a request body, a CSV, or a case of lim:

[Document(page_content='Raw logs are kept 45 days.', metadata={'source': 'ops.md'}), ...]

{"user_input": "...", "retrieved_contexts": ["...", "..."], "reference": "..."}

{"messages": [{"role": "user", "content": "Context: [1] ... Question: ..."}]}"""


def take_paste() -> Source | None:
    """The box for a paste."""
    st.text_area("What you have", key=session.PASTED, height=260, placeholder=_PLACEHOLDER, persist_state="session")
    return session.source()


def take_upload() -> Source | None:
    """The box for a file; what was uploaded stays through a change of page.

    Raises:
        InputError: the file is too large.
    """
    megabytes = MAX_BYTES // 1_000_000
    # A new uploader after a draft was opened or thrown away: the browser keeps its file in the old one.
    key = f"{_FILE}~{session.generation()}" if session.generation() else _FILE
    st.file_uploader(
        f"A trace export, a file of chunks, a case (up to {megabytes} MB, .gz too)",
        key=key,
        max_upload_size=megabytes,
        on_change=_uploaded,
        args=(key,),
    )
    held = session.kept()
    if held is None:
        return None
    # The browser's limits are a courtesy; a page or script may send more.
    if len(held.data) > MAX_BYTES:
        raise InputError(f"The file is larger than {megabytes} MB: cut it down.")
    views.note(f"In hand: {clip(held.name, 80)}, {count(len(held.data))} bytes.")
    return held


def understand(source: Source) -> Imported | None:
    """Read the source, show what it was taken for, and let the user name another format; None where that gives no case."""
    work = session.work_on(source)
    if work.format != "auto" and work.format not in importers:
        work = work.reformatted("auto")
        session.set_work(work)
    st.session_state[_FORMAT] = work.format
    with st.container(border=True, gap="xsmall"):
        left, right = st.columns([3, 2], vertical_alignment="top")
        with right:
            st.selectbox(
                "Read as", ["auto", *(entry.name for entry in importers)], key=_FORMAT, format_func=_format_title,
                on_change=_reformat, help="Overrules the shape that lim found.",
            )  # fmt: skip
        with left:
            read = _imported(source, work.format)
            if isinstance(read, str):
                # The name of a file keeps its case; a paste has a name of our own.
                views.caution(read[:1].upper() + read[1:] if session.way() == session.PASTE else read)
                return None
            with st.container(gap=None):
                _shape(read.report)
        _skipped(read.report)
    return read


def pick(read: Imported) -> Case:
    """The case in hand, as imported; with several the user picks one."""
    work = session.work()
    ids = [case.id for case in read.cases]
    place = ids.index(work.picked) if work is not None and work.picked in ids else 0
    if len(ids) > 1:
        st.session_state[_PICK] = place
        st.selectbox(
            f"Which of the {count(len(ids))} cases",
            range(len(ids)),
            key=_PICK,
            format_func=lambda at: _case_title(read.cases[at]),
            on_change=_picked,
            args=(ids,),
        )
    return read.cases[place]


def sureness(sure: float) -> str:
    """How sure a shape is, in a word and a figure."""
    word = "recognised" if sure >= 0.85 else "probably" if sure >= 0.6 else "a guess"
    return f"{word}, {sure:.0%} sure"


def _imported(source: Source, format: str) -> Imported | str:
    """The cases, or the sentence that says why there are none; read once for a source and a format."""

    def read() -> Imported | str:
        try:
            return import_file(source.data, source.name, format)
        except InputError as error:
            return str(error)

    return session.remembered("import", (source.digest, format), read)


def _shape(report: ImportReport) -> None:
    named = report.sure == 0.0
    views.line(f"{report.title}: {'named by you' if named else sureness(report.sure)}")
    if not named:
        views.note(f"Told by: {report.why}.")
    kind = ", ".join(word for word in (report.packing, report.kind, report.encoding) if word)
    left_out = f"{count(len(report.skipped))} skipped" if report.skipped else "none skipped"
    views.note(f"{count(report.read)} {'case' if report.read == 1 else 'cases'} read, {left_out} · {kind}")
    if report.others:
        views.note(
            "It could also be: " + ", ".join(f"{_format_title(name)} ({sure:.0%})" for name, sure in report.others)
        )
    for note in report.notes[:20]:
        views.note(f"Note: {note}")


def _skipped(report: ImportReport) -> None:
    if not report.skipped:
        return
    with st.expander(f"Skipped: {count(len(report.skipped))}", icon=":material/block:"):
        rows = [{"line": one.line, "where": one.place or None, "reason": one.reason} for one in report.skipped]
        views.table(rows[:_MOST_SKIPPED], alt="Records that were skipped, with the reason")
        if len(rows) > _MOST_SKIPPED:
            views.note(f"The first {count(_MOST_SKIPPED)} are shown.")


def _uploaded(key: str) -> None:
    file = st.session_state.get(key)
    session.keep(None if file is None else Source.of(file.name, file.getvalue()))


def _reformat() -> None:
    work, chosen = session.work(), st.session_state.get(_FORMAT)
    if isinstance(work, Work) and isinstance(chosen, str):
        session.set_work(work.reformatted(chosen))


def _picked(ids: list[str]) -> None:
    work, at = session.work(), st.session_state.get(_PICK)
    if work is not None and isinstance(at, int) and 0 <= at < len(ids):
        session.set_work(replace(work, picked=ids[at], serial=work.serial + 1))


def _format_title(name: str) -> str:
    return "what lim finds" if name == "auto" else importers[name].title if name in importers else name


def _case_title(case: Case) -> str:
    return f"{clip(case.id, 40)}: {clip(case.question, 80) or 'no question yet'}"
