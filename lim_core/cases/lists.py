"""The lists of a case file: chunks, candidates, corpus, and the messages of its prompt."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lim_core.cases.fields import Fields, Notes, kind_of, meant_for, shown, text_of
from lim_core.errors import InputError
from lim_core.types import Chunk, Json, Message

_CHUNK = ("id", "text", "title", "score", "metadata")
_MESSAGE = ("role", "content")
# What chat APIs put beside role and content; of no use here and no mistake either.
_MESSAGE_EXTRAS = (
    "name",
    "tool_calls",
    "tool_call_id",
    "function_call",
    "refusal",
    "audio",
    "annotations",
    "reasoning_content",
)
_TEXT_PARTS = ("text", "input_text", "output_text")


@dataclass(frozen=True, slots=True)
class Lists:
    """The three lists of a case; ids are unique in each."""

    chunks: tuple[Chunk, ...]
    candidates: tuple[Chunk, ...] | None
    corpus: tuple[Chunk, ...] | None


@dataclass(frozen=True, slots=True)
class _Draft:
    """A chunk whose id may still have to be given."""

    id: str | None
    text: str
    title: str
    score: float | None
    metadata: Mapping[str, Json]


def read_lists(fields: Fields) -> Lists:
    """The lists of a case, every chunk with an id.

    A chunk without id gets `cN`, N its place in its list from 1; in candidates and corpus it gets the id of the chunk
    that has the same text, so that the lists can be compared. Where `cN` is taken by another text it becomes `cN-2`.

    Raises:
        InputError: a wrong type, or an id that stands twice in one list.
    """
    drafts = {name: _drafts(fields, name) for name in ("chunks", "candidates", "corpus")}
    taken = {draft.id: draft.text for part in drafts.values() for draft in part or () if draft.id is not None}
    by_text: dict[str, str] = {}
    chunks = _named(drafts["chunks"] or (), "chunks", taken, by_text)
    candidates, corpus = (
        None if (part := drafts[name]) is None else _named(part, name, taken, by_text)
        for name in ("candidates", "corpus")
    )
    _note_changed_texts(chunks, {"candidates": candidates, "corpus": corpus}, fields.notes)
    return Lists(chunks, candidates, corpus)


def read_prompt(fields: Fields) -> tuple[Message, ...] | None:
    """The prompt as sent: a text is one user message, of content parts only the text is kept.

    Raises:
        InputError: neither a text nor a list of messages.
    """
    value = fields.values.get("prompt")
    if value is None:
        return None
    if isinstance(value, str):
        messages = [Message("user", text_of(value, "prompt", fields.notes))]
    elif isinstance(value, list):
        messages = [_message(item, f"prompt[{index}]", fields.notes) for index, item in enumerate(value)]
    else:
        raise InputError(f"prompt must be a text or a list of messages, not {kind_of(value)}.")
    if not any(message.content.strip() for message in messages):
        fields.notes.add("prompt", "holds no text and is taken as absent")
        return None
    return tuple(messages)


def _drafts(fields: Fields, name: str) -> list[_Draft] | None:
    items = fields.items(name)
    if items is None:
        return None
    return [_draft(item, f"{name}[{index}]", fields.notes) for index, item in enumerate(items)]


def _draft(item: Json, where: str, notes: Notes) -> _Draft:
    if isinstance(item, str):
        return _Draft(None, text_of(item, where, notes), "", None, {})
    if not isinstance(item, Mapping):
        raise InputError(f"{where} must be an object with id and text, or a text, not {kind_of(item)}.")
    fields = Fields(item, where, notes)
    text = fields.text("text")
    if text is None:
        raise InputError(f"{where}.text is missing{meant_for('text', _CHUNK, item)}")
    fields.warn_unknown(_CHUNK)
    return _Draft(
        fields.identifier("id"), text, fields.text("title") or "", fields.score("score"), fields.mapping("metadata")
    )


def _named(drafts: Sequence[_Draft], name: str, taken: dict[str, str], by_text: dict[str, str]) -> tuple[Chunk, ...]:
    ids = [draft.id for draft in drafts if draft.id is not None]
    own = set(ids)
    if len(own) < len(ids):
        doubled = [one for one, times in Counter(ids).items() if times > 1]
        listed = ", ".join(shown(one) for one in doubled[:5]) + (" and more" if len(doubled) > 5 else "")
        raise InputError(f"{name} has several entries with the id {listed}: give each its own id.")
    chunks = []
    for number, draft in enumerate(drafts, 1):
        key = draft.id or _free_id(number, draft.text, own, taken, by_text)
        own.add(key)
        by_text.setdefault(draft.text, key)
        chunks.append(Chunk(key, draft.text, draft.title, draft.score, draft.metadata))
    return tuple(chunks)


def _free_id(number: int, text: str, own: set[str], taken: dict[str, str], by_text: Mapping[str, str]) -> str:
    same = by_text.get(text)
    if same is not None and same not in own:
        return same
    key, copy = f"c{number}", 1
    while key in own or key in taken:
        copy += 1
        key = f"c{number}-{copy}"
    taken[key] = text
    return key


def _note_changed_texts(chunks: Sequence[Chunk], others: Mapping[str, tuple[Chunk, ...] | None], notes: Notes) -> None:
    texts = {chunk.id: chunk.text for chunk in chunks}
    for name, part in others.items():
        for chunk in part or ():
            if texts.get(chunk.id, chunk.text) != chunk.text:
                notes.add(f"{name} {shown(chunk.id)}", "has another text than the chunk of that id")


def _message(item: Json, where: str, notes: Notes) -> Message:
    if not isinstance(item, Mapping):
        raise InputError(f"{where} must be an object with role and content, not {kind_of(item)}.")
    fields = Fields(item, where, notes)
    role = fields.text("role")
    if not role:
        raise InputError(f'{where}.role is missing: write "system", "user" or "assistant".')
    fields.warn_unknown((*_MESSAGE, *_MESSAGE_EXTRAS))
    content = item.get("content")
    if content is None:
        return Message(role, "")
    if isinstance(content, list):
        parts = [_part(part, f"{where}.content[{index}]", notes) for index, part in enumerate(content)]
        return Message(role, "\n".join(part for part in parts if part is not None))
    return Message(role, text_of(content, f"{where}.content", notes))


def _part(part: Json, where: str, notes: Notes) -> str | None:
    """The text of one content part; None for images, sound and files."""
    if isinstance(part, str):
        return text_of(part, where, notes)
    if not isinstance(part, Mapping):
        raise InputError(f"{where} must be an object with type and text, not {kind_of(part)}.")
    kind = part.get("type")
    if part.get("text") is not None and (kind is None or kind in _TEXT_PARTS):
        return text_of(part["text"], f"{where}.text", notes)
    notes.add(where, "is no text and is left out")
    return None
