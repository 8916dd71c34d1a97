"""The figures of a diagnosis as table rows, in the words of the page: what stands beside or below each chart. No Streamlit."""

from __future__ import annotations

from collections.abc import Mapping

from lim_core.drawing.reading import Reading, StageRow
from lim_core.drawing.words import arm_words, count, interval, percent, points
from lim_core.types import Json

Row = Mapping[str, Json]

# Keys of the evidence whose value needs a unit beside its name.
_LABELS: Mapping[str, str] = {
    "prompt_tokens": "prompt length, tokens",
    "low": "lower end of the count, tokens",
    "high": "upper end of the count, tokens",
    "token_source": "counted by",
    "reported_tokens": "prompt tokens the server reported",
    "context_window": "context window, tokens",
    "max_output_tokens": "output budget, tokens",
    "cut_end": "cut at",
    "lost_chunk_ids": "chunks lost",
    "system_survives": "system text survives",
    "question_survives": "question survives",
    "gold_ids": "gold chunks",
    "found_by": "found by",
}


def evidence_rows(row: StageRow, reading: Reading) -> list[Row]:
    """A stage's evidence as table rows, in the words of the page."""
    if row.stage == "assembly" and reading.assembly is not None:
        return assembly_rows(reading)
    if row.stage == "position" and reading.position is not None:
        return position_rows(reading)
    if row.stage == "retrieval":
        return _retrieval_rows(row.evidence)
    return [
        {"what": _LABELS.get(name, name.replace("_", " ")), "value": _say(value)}
        for name, value in row.evidence.items()
        if not isinstance(value, Mapping)
    ]


def position_rows(reading: Reading) -> list[Row]:
    """The figures of the position curve, brackets included."""
    if reading.position is None:
        return []
    brackets = (reading.position.oracle, reading.position.closed_book)
    return [
        {
            "arm": arm_words(point.arm),
            "slot": None if point.index is None else point.index + 1,
            "token depth": percent(point.depth),
            "right": point.correct,
            "n": point.n,
            "distinct": point.distinct,
            "accuracy": percent(point.accuracy),
            "95% interval": interval(point.low, point.high),
        }
        for point in (*reading.position.points, *(bracket for bracket in brackets if bracket is not None))
    ]


def assembly_rows(reading: Reading) -> list[Row]:
    """The figures of the prompt strip."""
    if reading.assembly is None:
        return []
    return [
        {
            "rank": chunk.rank + 1,
            "chunk": chunk.id,
            "gold": "gold" if chunk.gold else "",
            "state": chunk.state,
            "kept": percent(chunk.share),
            "answer lost": "yes" if chunk.answer_lost else "",
            "token offset": chunk.token_offset,
            "depth": percent(chunk.depth),
            "tokens": chunk.tokens,
        }
        for chunk in reading.assembly.chunks
    ]


def _retrieval_rows(evidence: Mapping[str, Json]) -> list[Row]:
    """One row a gold chunk: its rank, counted from 1, in each list it is in."""
    lists = {name: evidence.get(f"{name}_ranks") for name in ("chunk", "candidate", "corpus")}
    ids: dict[str, None] = {}
    gold = evidence.get("gold_ids")
    if isinstance(gold, list | tuple):
        ids.update((str(item), None) for item in gold)
    for ranks in lists.values():
        if isinstance(ranks, Mapping):
            ids.update((str(item), None) for item in ranks)
    titles = {"chunk": "rank in chunks", "candidate": "rank in candidates", "corpus": "rank in corpus"}
    found = evidence.get("found_by")
    return [
        {
            "chunk": item,
            "found by": str(found).replace("_", " ") if found else "–",
            **{
                titles[name]: rank + 1
                if isinstance(ranks, Mapping) and isinstance(rank := ranks.get(item), int)
                else None
                for name, ranks in lists.items()
            },
        }
        for item in ids
    ]


def conflict_lines(evidence: Mapping[str, Json]) -> list[str]:
    """The contradictions that the retrieval stage saw, a sentence each."""
    conflicts = evidence.get("conflicts")
    if not isinstance(conflicts, list | tuple):
        return []
    lines = []
    for conflict in conflicts:
        if isinstance(conflict, Mapping):
            ids, values = _say(conflict.get("ids")), _say(conflict.get("values"))
            later = conflict.get("later_id")
            lines.append(f"Conflict to look at: {ids} say {values}." + (f" {later} is dated later." if later else ""))
    return lines


def _say(value: Json) -> str:
    if value is None:
        return "unknown"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return count(value)
    if isinstance(value, float):
        return f"{value:.3g}"
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {_say(item)}" for name, item in value.items())
    return ", ".join(_say(item) for item in value) or "none"


def remedy_rows(reading: Reading) -> list[Row]:
    """The figures of the remedies."""
    return [
        {
            "remedy": row.title,
            "before": percent(row.before),
            "after": percent(row.after),
            "paired gain": points(row.gain),
            "95% interval": interval(row.low, row.high, "pts"),
            "n, blocks": row.n if row.tried else None,
            "tried": "tried on this case" if row.tried else "not tried",
            "note": row.note,
        }
        for row in reading.remedies
    ]
