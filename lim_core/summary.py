"""The summary of five plain lines that fits a ticket."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lim_core.types import Json

_WIDTH = 300


def five_lines(document: Mapping[str, Json], link: str | None = None) -> str:
    """Verdict, stages, position, remedy, and what it rests on, a line each, control characters and line breaks removed.

    `document` is the object of `diagnose --json`.
    """
    return "\n".join(
        _plain(line)
        for line in (
            f"lim: {document['cause']} - {document['summary']}",
            f"Stages: {_stages(document)}",
            f"Position: {_position(document)}",
            f"Remedy: {_remedy(document)}",
            f"Basis: {_basis(document, link)}",
        )
    )


def experiment_lines(document: Mapping[str, Json], link: str | None = None) -> str:
    """What was measured, the outcomes and what it rests on, a line each, then every arm's share with its interval.

    `document` is that of an experiment, such as `sweep --json` prints.
    """
    outcomes = document.get("outcomes")
    counted = (
        ", ".join(f"{name} {number}" for name, number in outcomes.items()) if isinstance(outcomes, Mapping) else ""
    )
    cases = "1 case" if document.get("cases") == 1 else f"{document.get('cases')} cases"
    lines = [
        f"lim: {document.get('kind')} over {document.get('suite')}, {cases} - {document['summary']}",
        f"Outcomes: {counted}",
        f"Basis: {_basis(document, link)}",
    ]
    lines += [
        f"{row.get('arm')}: {row.get('right')}/{row.get('trials')} right, {_number(row.get('accuracy')):.0%} "
        f"[{_number(row.get('low')):.0%}, {_number(row.get('high')):.0%}], n = {row.get('n')}"
        for row in _figures(document.get("result"))
        if row.get("n")
    ]
    return "\n".join(_plain(line) for line in lines)


def _figures(value: Json) -> list[Mapping[str, Json]]:
    """Every arm's figures in a result, in their order, wherever they stand in it."""
    if isinstance(value, Mapping):
        if "arm" in value and "trials" in value:
            return [value]
        return [row for part in value.values() for row in _figures(part)]
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [row for part in value for row in _figures(part)]
    return []


def plain_line(text: str, width: int = _WIDTH) -> str:
    """One line without control characters, cut at `width` with an ellipsis that shows the cut."""
    line = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    return line if len(line) <= width else f"{line[: width - 1]}…"


def _plain(line: str) -> str:
    return plain_line(line, 2 * _WIDTH)


def _stages(document: Mapping[str, Json]) -> str:
    return ", ".join(f"{row.get('stage')} {row.get('status')}" for row in _rows(document.get("stages")))


def _position(document: Mapping[str, Json]) -> str:
    position = document.get("position")
    if not isinstance(position, Mapping):
        return "not tested"
    parts = [
        f"{_short(point.get('arm'))} {point.get('correct')}/{point.get('n')}" for point in _rows(position.get("points"))
    ]
    for name, key in (("oracle", "oracle"), ("closed-book", "closed_book")):
        score = position.get(key)
        if isinstance(score, Mapping):
            parts.append(f"{name} {score.get('correct')}/{score.get('n')}")
    parts.append(f"shape {position.get('shape')}")
    return ", ".join(parts)


def _remedy(document: Mapping[str, Json]) -> str:
    tried = [row for row in _rows(document.get("remedies")) if row.get("tried")]
    if not tried:
        return "none tried"
    best = max(tried, key=lambda row: _number(row.get("gain")))
    before, after, gain, low, high = (_number(best.get(key)) for key in ("before", "after", "gain", "low", "high"))
    return (
        f"{best.get('name')}: {before:.0%} -> {after:.0%} right, gain {gain:+.2f} [{low:+.2f}, {high:+.2f}], "
        f"n = {best.get('n')}"
    )


def _basis(document: Mapping[str, Json], link: str | None) -> str:
    calls = document.get("calls")
    position = document.get("position")
    parts = [f"model {document.get('tested_model')}"]
    if isinstance(position, Mapping) and position.get("blocks"):
        parts.append(f"{position.get('blocks')} blocks, e = {_number(position.get('e_value')):.3g}")
    if isinstance(calls, Mapping):
        parts.append(f"{calls.get('made')} calls, {_number(calls.get('seconds')):.0f} s")
    run = document.get("run_id")
    parts.append(link or (f"run {run}" if run else "not stored"))
    return ", ".join(parts)


def _rows(value: Json) -> list[Mapping[str, Json]]:
    if not isinstance(value, Sequence) or isinstance(value, str):
        return []
    return [row for row in value if isinstance(row, Mapping)]


def _number(value: Json) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def _short(arm: Json) -> str:
    return str(arm).removeprefix("position:")
