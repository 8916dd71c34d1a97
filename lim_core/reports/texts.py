"""The questions, answers, chunk texts and prompts of a run, once a case, cut where the file would grow too large."""

from __future__ import annotations

from collections.abc import Sequence

from lim_core.drawing.words import count
from lim_core.reports.markup import NOTHING, Html, details, element, join, line, note, section, size, text
from lim_core.types import Case, Chunk

# Characters a text is cut to, the longest that fits.
_CAPS = (200_000, 50_000, 20_000, 8_000, 3_000, 1_000, 300)


def texts_section(cases: Sequence[Case], room: int) -> Html:
    """The texts of the cases in at most `room` bytes; says what was cut and what was left out."""
    for cap in _CAPS:
        shown = _some(cases, cap, room)
        if len(shown) == len(cases):
            break
    said = []
    if cap != _CAPS[0]:
        said.append(f"Texts are cut after {count(cap)} characters, so that the file stays small.")
    if len(shown) < len(cases):
        said.append(f"Of {count(len(cases))} cases {count(len(shown))} are shown; `runs export` writes them all.")
    return section("Texts" if len(cases) > 1 else "The case", note(" ".join(said)) if said else NOTHING, *shown)


def _some(cases: Sequence[Case], cap: int, room: int) -> list[Html]:
    shown: list[Html] = []
    for case in cases:
        # Long lists of chunks are not even built where they cannot fit.
        if sum(min(len(chunk.text), cap) for chunk in case.chunks) > room:
            break
        drawn = _case(case, cap)
        room -= size(drawn)
        if room < 0:
            break
        shown.append(drawn)
    return shown


def _case(case: Case, cap: int) -> Html:
    counted = "".join(
        f" · {count(len(part))} {name}, not shown"
        for name, part in (("candidates", case.candidates), ("chunks in the corpus", case.corpus))
        if part is not None
    )
    gold = set(case.gold_ids)
    parts = (
        _named("question", case.question, cap),
        _named("right answers", " · ".join(case.answers), cap),
        _named("answer given", case.answer or "", cap),
        note(f"{count(len(case.chunks))} chunks in retrieved order{counted}"),
        join(_chunk(rank, chunk, chunk.id in gold, cap) for rank, chunk in enumerate(case.chunks, 1)),
        join(
            details(f"Prompt as sent: {message.role}", element("pre", text(_cut(message.content, cap))))
            for message in case.prompt or ()
        ),
    )
    return details(f"{case.id}: {_cut(case.question, 300)}", *parts)


def _named(name: str, value: str, cap: int) -> Html:
    return join((note(name), element("div", text(_cut(value, cap)), klass="text"))) if value else NOTHING


def _chunk(rank: int, chunk: Chunk, gold: bool, cap: int) -> Html:
    head = f"{rank} · {chunk.id}{' · gold' if gold else ''}{f' · {_cut(chunk.title, 300)}' if chunk.title else ''}"
    return element(
        "div", note(head), element("div", text(_cut(chunk.text, cap)), klass="text"), klass="gold" if gold else "chunk"
    )


def _cut(value: str, cap: int) -> str:
    return value if len(value) <= cap else f"{value[:cap]} … [cut, {count(len(value))} characters in all]"


def redaction_note() -> Html:
    """What a redacted report leaves out."""
    return line(
        "Redacted: questions, answers, chunk texts and titles, and prompts are left out of this file, and struck out of "
        "the sentences in it. Ids, figures and outcomes are kept.",
        "note",
    )
