"""Finds rows and lists of documents in a file, through the envelopes that people and tools put around them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from lim_core.importers.drafts.draft import Draft, DraftChunk, Reading, Sighting, Skipped
from lim_core.importers.files.source import Source
from lim_core.importers.shapes.fields import expected_in, first, label, listed, text
from lim_core.importers.shapes.messages import read_messages
from lim_core.types import Json

# Envelopes deeper than this hold something else.
MAX_ENVELOPES = 10
_MAX_SKIPS = 1_000
# Rows or spans of one file; more would keep a page waiting.
MAX_ROWS = 10_000
# Twice what a case is built to hold.
MAX_CHUNKS = 10_000
# What a list holds is told by its head.
_LOOKED_AT = 200
_QUESTIONS = ("question", "query", "user_input", "user_query", "user_question", "query_str", "q", "input")
_ANSWERS = ("answer", "response", "output", "result", "generation", "actual_output", "llm_output")
_FINAL = ("rerank", "final", "selected", "filtered", "top", "context", "used", "compressed")
_EARLY = ("candidate", "initial", "before", "raw", "first_stage", "retriev", "unranked", "all", "fetched")

ToChunk = Callable[[Json], DraftChunk | None]


@dataclass(frozen=True, slots=True)
class Hit:
    """A value that was looked for: the objects around it, its key there, its depth, and where it stands."""

    value: Json
    depth: int
    around: tuple[Mapping[str, Json], ...]
    key: str
    line: int | None
    place: str


@dataclass(frozen=True, slots=True)
class Found:
    """All hits in file order, and what stood beside them but is none."""

    hits: tuple[Hit, ...]
    skipped: tuple[Skipped, ...]


def find_rows(source: Source, wanted: Callable[[Mapping[str, Json]], bool]) -> Found:
    """Objects that are wanted, the shallowest of each record; other objects in the same list are listed as skipped."""
    hits: list[Hit] = []
    skipped: list[Skipped] = []
    for number, record in enumerate(source.records, 1):
        own, others = _in_record(record.value, record.line, wanted)
        place = f"record {number}" if len(source.records) > 1 else ""
        hits += [replace(hit, place=hit.place or place) for hit in own]
        if own:
            skipped += others
        elif len(skipped) < _MAX_SKIPS:
            skipped.append(Skipped("not a record of this format", record.line, place))
    if len(hits) > MAX_ROWS:
        skipped.append(Skipped(f"{len(hits) - MAX_ROWS} more records: at most {MAX_ROWS} of a file are read"))
    return Found(tuple(hits[:MAX_ROWS]), tuple(skipped))


def _in_record(
    value: Json, line: int | None, wanted: Callable[[Mapping[str, Json]], bool]
) -> tuple[list[Hit], list[Skipped]]:
    level: list[tuple[Json, tuple[Mapping[str, Json], ...], str]] = [(value, (), "")]
    for depth in range(MAX_ENVELOPES + 1):
        hits: list[Hit] = []
        skipped: list[Skipped] = []
        below: list[tuple[Json, tuple[Mapping[str, Json], ...], str]] = []
        for item, around, key in level:
            if isinstance(item, Mapping):
                if wanted(item):
                    hits.append(Hit(item, depth, around, key, line, ""))
                else:
                    inside = (*around, item)
                    below += [(v, inside, k) for k, v in item.items() if isinstance(v, list | dict)]
            elif isinstance(item, list):
                good = [isinstance(row, Mapping) and wanted(row) for row in item]
                if any(good):
                    for index, row in enumerate(item, 1):
                        place = f"item {index}"
                        if good[index - 1]:
                            hits.append(Hit(row, depth, around, key, line if len(item) == 1 else None, place))
                        elif len(skipped) < _MAX_SKIPS:
                            skipped.append(Skipped("not a record of this format", None, place))
                else:
                    below += [(v, around, key) for v in item if isinstance(v, list | dict)]
        if hits:
            return hits, skipped
        if not below:
            break
        level = below
    return [], []


def see_rows(source: Source, wanted: Callable[[Mapping[str, Json]], bool], sure: float, why: str) -> Sighting | None:
    """A sighting of rows, less sure where few of the records are such rows."""
    found = find_rows(source, wanted)
    if not found.hits:
        return None
    share = len(found.hits) / (len(found.hits) + len(found.skipped))
    return Sighting(sure * (0.5 + 0.5 * share), min(hit.depth for hit in found.hits), why)


def read_rows(
    source: Source,
    wanted: Callable[[Mapping[str, Json]], bool],
    to_draft: Callable[[Mapping[str, Json], Hit], Draft | str],
) -> Reading:
    """Map every row; a string in place of a draft is the reason for skipping it."""
    found = find_rows(source, wanted)
    drafts: list[Draft] = []
    skipped = list(found.skipped)
    for hit in found.hits:
        if isinstance(hit.value, Mapping):
            made = to_draft(hit.value, hit)
            if isinstance(made, str):
                skipped.append(Skipped(made, hit.line, hit.place))
            else:
                drafts.append(replace(made, line=hit.line, place=hit.place))
    return Reading(tuple(drafts), tuple(skipped))


# --- lists of documents -----------------------------------------------------------------------------------


def find_lists(source: Source, to_chunk: ToChunk) -> Found:
    """Lists of which most items are such documents. Records that are each one document make one list together."""
    records = [record for record in source.records if isinstance(record.value, Mapping | list)]
    values = [_unwrapped(record.value) if len(records) > 1 else record.value for record in records]
    single = sum(to_chunk(value) is not None for value in values[:_LOOKED_AT])
    if records and single * 2 > len(values[:_LOOKED_AT]):
        return Found((Hit(values, 0, (), "", records[0].line, ""),), ())
    hits: list[Hit] = []
    skipped: list[Skipped] = []
    for number, record in enumerate(source.records, 1):
        place = f"record {number}" if len(source.records) > 1 else ""
        own = _lists_in(record.value, record.line, to_chunk, place)
        hits += own
        if not own and len(skipped) < _MAX_SKIPS:
            skipped.append(Skipped("no documents of this format in it", record.line, place))
    return Found(tuple(hits), tuple(skipped))


def _unwrapped(value: Json) -> Json:
    """The one object inside envelopes that hold nothing to ask or answer; lines of a log wrap their documents so."""
    for _ in range(4):
        if isinstance(value, list) and len(value) == 1:
            value = value[0]
        elif isinstance(value, Mapping) and len(value) <= 3 and not any(name in value for name in _QUESTIONS):
            inside = [item for item in value.values() if isinstance(item, list | dict)]
            if len(inside) != 1 or "page_content" in value or "content" in value or "text" in value or "node" in value:
                return value
            value = inside[0]
        else:
            return value
    return value


def _lists_in(value: Json, line: int | None, to_chunk: ToChunk, place: str) -> list[Hit]:
    level: list[tuple[Json, tuple[Mapping[str, Json], ...], str]] = [(value, (), "")]
    for depth in range(MAX_ENVELOPES + 1):
        hits: list[Hit] = []
        below: list[tuple[Json, tuple[Mapping[str, Json], ...], str]] = []
        for item, around, key in level:
            if isinstance(item, list) and _is_list_of(item, to_chunk):
                hits.append(Hit(item, depth, around, key, line, place))
            elif isinstance(item, Mapping):
                inside = (*around, item)
                below += [(v, inside, k) for k, v in item.items() if isinstance(v, list | dict)]
            elif isinstance(item, list):
                below += [(v, around, key) for v in item if isinstance(v, list | dict)]
        if hits:
            return hits
        if not below:
            break
        level = below
    return []


def _is_list_of(items: Sequence[Json], to_chunk: ToChunk) -> bool:
    if not items or not all(isinstance(item, Mapping | list) for item in items[:20]):
        return False
    head = items[:_LOOKED_AT]
    good = sum(to_chunk(item) is not None for item in head)
    return good * 5 >= len(head) * 3


def see_lists(source: Source, to_chunk: ToChunk, sure: float, why: str) -> Sighting | None:
    """A sighting of lists of documents."""
    found = find_lists(source, to_chunk)
    if not found.hits:
        return None
    share = len(found.hits) / (len(found.hits) + len(found.skipped))
    return Sighting(sure * (0.5 + 0.5 * share), min(hit.depth for hit in found.hits), why)


def read_lists(source: Source, to_chunk: ToChunk) -> Reading:
    """One case a list; lists side by side in one object are one case, candidates and final list told apart."""
    found = find_lists(source, to_chunk)
    skipped = list(found.skipped)
    drafts: list[Draft] = []
    for group in _side_by_side(found.hits):
        lists: list[tuple[str, tuple[DraftChunk, ...]]] = []
        for hit in group:
            chunks, lost = _chunks(hit, to_chunk)
            skipped += lost
            lists.append((hit.key, chunks))
        drafts += [_case(group[0], *parts) for parts in _told_apart(lists)]
    joined = len(source.records) > 1 and len(found.hits) == 1 and found.hits[0].key == "" and not found.hits[0].around
    note = f"{len(source.records)} records of one document each were taken as one list, in the order of the file"
    return Reading(tuple(drafts), tuple(skipped), (note,) if joined else ())


def _chunks(hit: Hit, to_chunk: ToChunk) -> tuple[tuple[DraftChunk, ...], list[Skipped]]:
    chunks: list[DraftChunk] = []
    lost: list[Skipped] = []
    items = listed(hit.value)
    where = f"{hit.key} " if hit.key else ""
    if len(items) > MAX_CHUNKS:
        lost.append(Skipped(f"{len(items) - MAX_CHUNKS} more documents: at most {MAX_CHUNKS} of a case are read"))
        items = items[:MAX_CHUNKS]
    for index, item in enumerate(items, 1):
        chunk = to_chunk(item)
        if chunk is None:
            lost.append(Skipped("no document of this format", None, f"{where}item {index}"))
        elif not chunk.text.strip():
            lost.append(Skipped("a document without text", None, f"{where}item {index}"))
        else:
            chunks.append(chunk)
    return tuple(chunks), lost[:_MAX_SKIPS]


def _side_by_side(hits: Sequence[Hit]) -> list[list[Hit]]:
    groups: list[list[Hit]] = []
    owner: object = None
    for hit in hits:
        around = hit.around[-1] if hit.around else None
        if around is not None and around is owner and hit.key != groups[-1][-1].key:
            groups[-1].append(hit)
        else:
            groups.append([hit])
        owner = around
    return groups


def _told_apart(
    lists: Sequence[tuple[str, tuple[DraftChunk, ...]]],
) -> list[tuple[tuple[DraftChunk, ...], tuple[DraftChunk, ...] | None, str]]:
    """Final list and candidates of each case: by containment, else by their names; else every list is a case."""
    if len(lists) != 2:
        return [(chunks, None, "") for _, chunks in lists]
    (key_a, a), (key_b, b) = lists
    texts_a, texts_b = {c.text for c in a}, {c.text for c in b}
    if texts_a < texts_b or (texts_a == texts_b and _hint(key_a, key_b) >= 0):
        final, early, names = a, b, (key_a, key_b)
    elif texts_b < texts_a or texts_a == texts_b:
        final, early, names = b, a, (key_b, key_a)
    elif _hint(key_a, key_b) > 0:
        final, early, names = a, b, (key_a, key_b)
    elif _hint(key_a, key_b) < 0:
        final, early, names = b, a, (key_b, key_a)
    else:
        return [(a, None, ""), (b, None, "")]
    return [(final, early, f"{names[0]} was taken for the chunks, {names[1]} for the candidates before them")]


def _hint(a: str, b: str) -> int:
    """Above 0 where name a sounds like the final list and b like the one before it."""

    def late(name: str) -> int:
        low = name.lower()
        return any(word in low for word in _FINAL) - any(word in low for word in _EARLY)

    return late(a) - late(b)


def _case(hit: Hit, chunks: tuple[DraftChunk, ...], candidates: tuple[DraftChunk, ...] | None, note: str) -> Draft:
    """A case around a list of documents, with what the objects around it say."""
    record: dict[str, Json] = {}
    for outer in hit.around:
        record |= outer
    question = next((found for name in _QUESTIONS if (found := text(record.get(name)))), None)
    answer = next((found for name in _ANSWERS if (found := text(record.get(name)))), None)
    sent = first(record, "messages", "prompt", "final_prompt", "formatted_prompt")
    prompt = sent if isinstance(sent, str) and sent.strip() else read_messages(sent)
    return Draft(
        line=hit.line,
        place=hit.place,
        id=first(record, "case_id", "id", "run_id", "trace_id"),
        question=question,
        answers=expected_in(record),
        chunks=chunks,
        candidates=candidates,
        prompt=prompt,
        answer=answer,
        model=label(first(record, "model", "model_name")) or None,
        notes=(note,) if note else (),
    )
