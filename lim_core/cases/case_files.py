"""Case files: reading and checking them, to the letter of the contract in the README.

A case is one JSON object; a suite is JSON lines (or an array) of them. Types are strict, `null` means absent, an unknown
key is a warning with the key that was probably meant. What cannot be used raises InputError with one sentence that
names the field; what can be used in spite of an oddity is used, and the oddity is a warning.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import PurePath

from lim_core.cases.decoding import MAX_BYTES, Record, read_records
from lim_core.cases.fields import Fields, Notes, few, kind_of, meant_for, shown, text_of
from lim_core.cases.lists import Lists, read_lists, read_prompt
from lim_core.errors import InputError
from lim_core.text.folding import is_blank
from lim_core.text.normalise import normalise
from lim_core.types import Case, Json, ScoreDirection, Usage

__all__ = [
    "MAX_BYTES",
    "LoadedCase",
    "LoadedSuite",
    "case_from_json",
    "check_ready",
    "read_case",
    "read_suite",
]

NEEDS_CHUNKS = "needs-chunks"
NEEDS_QUESTION = "needs-question"

_FIELDS = (
    "id",
    "question",
    "answers",
    "chunks",
    "gold_ids",
    "candidates",
    "corpus",
    "score_direction",
    "prompt",
    "answer",
    "usage",
    "finish_reason",
    "params",
    "context_window",
    "max_output_tokens",
    "model",
    "forbidden_ids",
    "answerable",
    "tags",
    "harmless_ids",
)
_USAGE = ("prompt_tokens", "completion_tokens", "cached_prompt_tokens", "reasoning_tokens")
# OpenAI's own names, read so that a usage object can be pasted as it came.
_USAGE_DETAILS = (
    ("prompt_tokens_details", "cached_tokens", "cached_prompt_tokens"),
    ("completion_tokens_details", "reasoning_tokens", "reasoning_tokens"),
)


@dataclass(frozen=True, slots=True)
class LoadedCase:
    """A case and what was odd in its file, one sentence each."""

    case: Case
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LoadedSuite:
    """Cases in file order, ids unique, and what was odd in the file."""

    cases: tuple[Case, ...]
    warnings: tuple[str, ...] = ()


def read_case(data: bytes, name: str) -> LoadedCase:
    """The one case in a file; `name` names the file in messages and gives a case without id its id.

    Raises:
        InputError: not exactly one case, or one that cannot be used; the message names the field.
    """
    records = read_records(data, name)
    if len(records.items) != 1:
        many = f"holds {len(records.items)} cases" if records.items else "holds no case"
        raise InputError(f"{name} {many}, and one is wanted here: keep one object with question and chunks.")
    record = records.items[0]
    notes = Notes()
    _note_doubled(records.doubled, notes)
    with _placed(_place(name, record)):
        case = _case(record.value, _stem(name), notes)
    return LoadedCase(case, notes.lines())


def read_suite(data: bytes, name: str) -> LoadedSuite:
    """All cases of a file of JSON lines, a JSON array or a single object.

    Raises:
        InputError: no case, a case that cannot be used (its line is named), or an id that stands twice.
    """
    records = read_records(data, name)
    if not records.items:
        raise InputError(f"{name} holds no case: give one object with question and chunks a line.")
    shared = Notes()
    _note_doubled(records.doubled, shared)
    cases: list[Case] = []
    warnings: list[str] = list(shared.lines())
    for number, record in enumerate(records.items, 1):
        notes = Notes()
        default = f"{_stem(name)}-{number}" if len(records.items) > 1 else _stem(name)
        with _placed(_place(name, record)):
            cases.append(_case(record.value, default, notes))
        warnings += [f"{record.where}: {line}" if record.where else line for line in notes.lines()]
    if doubled := _doubles(case.id for case in cases):
        raise InputError(f"{name} has several cases with the id {_listed(doubled)}: give each its own id.")
    return LoadedSuite(tuple(cases), few(warnings))


def case_from_json(obj: object) -> LoadedCase:
    """A case from an object that is already parsed, such as a stored one.

    Raises:
        InputError: it is no case; the message names the field.
    """
    if not isinstance(obj, Mapping):
        raise InputError("A case must be an object with question and chunks.")
    notes = Notes()
    with _placed(""):
        case = _case(dict(obj), "case", notes)
    return LoadedCase(case, notes.lines())


def check_ready(case: Case) -> None:
    """Refuse a case that an import left unfinished.

    Raises:
        InputError: its tags say that chunks or the question are still to be added.
    """
    if NEEDS_QUESTION in case.tags:
        raise InputError(f"The case has no question yet: add one and remove the tag {NEEDS_QUESTION}.")
    if NEEDS_CHUNKS in case.tags:
        raise InputError(f"The case has no retrieved chunks yet: add them and remove the tag {NEEDS_CHUNKS}.")


def _case(values: dict[str, Json], default_id: str, notes: Notes) -> Case:
    fields = Fields(values, "", notes)
    fields.warn_unknown(_FIELDS)
    tags = fields.texts("tags")
    question = _question(fields, NEEDS_QUESTION in tags)
    if not fields.has("chunks"):
        raise InputError(f"The key chunks is missing (an empty list is fine){meant_for('chunks', _FIELDS, values)}")
    lists = read_lists(fields)
    answers = fields.texts("answers")
    for index, alias in enumerate(answers):
        if not normalise(alias):
            notes.add(f"answers[{index}]", "holds no letter or digit to look for: write it in words or remove it")
    case = Case(
        id=fields.identifier("id") or default_id,
        question=question,
        chunks=lists.chunks,
        answers=answers,
        gold_ids=fields.identifiers("gold_ids"),
        candidates=lists.candidates,
        corpus=lists.corpus,
        score_direction=_direction(fields),
        prompt=read_prompt(fields),
        answer=fields.text("answer"),
        usage=_usage(fields),
        finish_reason=fields.text("finish_reason"),
        params=fields.mapping("params"),
        context_window=fields.count("context_window", 1),
        max_output_tokens=fields.count("max_output_tokens", 1),
        model=fields.text("model"),
        forbidden_ids=fields.identifiers("forbidden_ids"),
        answerable=fields.flag("answerable"),
        tags=tags,
        harmless_ids=fields.identifiers("harmless_ids"),
    )
    _note_strangers(case, lists, notes)
    return case


def _question(fields: Fields, unfinished: bool) -> str:
    question = fields.text("question") or ""
    if is_blank(question) and not unfinished:
        if fields.has("question"):
            raise InputError("The question is empty: write what the user asked.")
        raise InputError(f"The key question is missing{meant_for('question', _FIELDS, fields.values)}")
    return question


def _direction(fields: Fields) -> ScoreDirection | None:
    word = fields.text("score_direction")
    if word is None:
        return None
    if word not in list(ScoreDirection):
        raise InputError(f'score_direction must be "similarity", "distance" or null, not {shown(word)}.')
    return ScoreDirection(word)


def _usage(fields: Fields) -> Usage | None:
    value = fields.values.get("usage")
    if value is None:
        return None
    if not isinstance(value, Mapping):
        raise InputError(f"usage must be an object with prompt_tokens, not {kind_of(value)}.")
    usage = Fields(value, "usage", fields.notes)
    usage.warn_unknown((*_USAGE, "total_tokens", *(outer for outer, _, _ in _USAGE_DETAILS)))
    counts = {name: usage.count(name, 0) for name in _USAGE}
    for outer, inner, name in _USAGE_DETAILS:
        details = value.get(outer)
        if counts[name] is None and isinstance(details, Mapping):
            counts[name] = Fields(details, f"usage.{outer}", fields.notes).count(inner, 0)
    return Usage(**counts)


def _note_strangers(case: Case, lists: Lists, notes: Notes) -> None:
    """Warn of ids that stand in no list; they may still be right, the document being missing."""
    known = {chunk.id for part in (lists.chunks, lists.candidates, lists.corpus) for chunk in part or ()}
    for name, ids in (
        ("gold_ids", case.gold_ids),
        ("forbidden_ids", case.forbidden_ids),
        ("harmless_ids", case.harmless_ids),
    ):
        for one in ids:
            if one not in known:
                notes.add(name, f"names {shown(one)}, which is in none of chunks, candidates and corpus")


def _note_doubled(keys: Sequence[str], notes: Notes) -> None:
    for key in keys:
        notes.add("The file", f"has the key {key} twice in one object, and the last one counts")


def _doubles(ids: Iterator[str]) -> list[str]:
    return [one for one, times in Counter(ids).items() if times > 1]


def _listed(ids: Sequence[str]) -> str:
    return ", ".join(shown(one) for one in ids[:5]) + (" and more" if len(ids) > 5 else "")


def _stem(name: str) -> str:
    """A case id from a file name: printable, short, "case" where the name is no file's (`-`, "the pasted text")."""
    path = PurePath(text_of(name, "name", Notes()))
    stem = "".join(c for c in path.stem if c.isprintable()).strip()
    return stem[:80] if path.suffix and stem else "case"


def _place(name: str, record: Record) -> str:
    return f"{name}, {record.where}" if record.where else name


@contextmanager
def _placed(place: str) -> Iterator[None]:
    """Put the file and line before a complaint about a field."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{place}: {error}" if place else str(error)) from error
    except RecursionError as error:
        raise InputError(f"{place or 'The case'} is nested too deeply: flatten it.") from error
