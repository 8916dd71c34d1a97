"""Published position curves, read from a CSV file: faint references beside what was measured, never mixed with it."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from lim_core.errors import InputError

# The curves that come with lim; the file names the source of each number.
PUBLISHED = Path(__file__).resolve().parents[2] / "data" / "liu2023_curves.csv"
_COLUMNS = ("model", "documents", "gold_index", "accuracy_percent", "questions", "source")
_BRACKETS = ("oracle", "closed-book")
_MOST_DOCUMENTS = 100_000


@dataclass(frozen=True, slots=True)
class ReferencePoint:
    """Published accuracy, a share in [0, 1], with the gold document at a 0-based index."""

    index: int
    accuracy: float


@dataclass(frozen=True, slots=True)
class Reference:
    """One published curve: model, documents in the prompt, points by index, its brackets and n questions, and its source."""

    model: str
    documents: int
    points: tuple[ReferencePoint, ...]
    oracle: float | None
    closed_book: float | None
    questions: int
    source: str

    @property
    def label(self) -> str:
        """Model and number of documents."""
        return f"{self.model}, {self.documents} documents"

    def share(self, point: ReferencePoint) -> float:
        """Where a point lies, as a share of the way from the first document to the last."""
        return point.index / (self.documents - 1)


def read_references(path: Path = PUBLISHED) -> tuple[Reference, ...]:
    """All curves of the file, in file order.

    Raises:
        InputError: the file cannot be read, or a row lacks a column or holds a number that cannot be.
    """
    try:
        with path.open(encoding="utf-8", newline="") as file:
            table = csv.DictReader(file)
            missing = [name for name in _COLUMNS if name not in (table.fieldnames or ())]
            if missing:
                raise InputError(f"{path.name} has no column {missing[0]}: give {', '.join(_COLUMNS)}.")
            return tuple(_curves(table, path.name))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"The published curves in {path.name} cannot be read ({error}): restore the file.") from error


def _curves(table: csv.DictReader[str], name: str) -> Iterator[Reference]:
    curves: dict[str, Reference] = {}
    brackets: dict[str, float] = {}
    for row in table:
        where = f"{name}, line {table.line_num}"
        model, index, source = (_text(row, column, where) for column in ("model", "gold_index", "source"))
        accuracy = _number(row, "accuracy_percent", where, 0, 100) / 100
        if index in _BRACKETS:
            brackets[f"{index} of {model}"] = accuracy
            continue
        documents = _whole(row, "documents", where, 2, _MOST_DOCUMENTS)
        point = ReferencePoint(_whole(row, "gold_index", where, 0, documents - 1), accuracy)
        questions = _whole(row, "questions", where, 1, 10**9)
        key = f"{documents} of {model}"
        known = curves.get(key) or Reference(model, documents, (), None, None, questions, source)
        curves[key] = replace(known, points=(*known.points, point))
    for curve in curves.values():
        oracle, closed = (brackets.get(f"{bracket} of {curve.model}") for bracket in _BRACKETS)
        points = tuple(sorted(curve.points, key=lambda point: point.index))
        yield replace(curve, points=points, oracle=oracle, closed_book=closed)


def _text(row: Mapping[str, str | None], column: str, where: str) -> str:
    value = (row.get(column) or "").strip()
    if not value:
        raise InputError(f"{where}: {column} is empty.")
    return value


def _number(row: Mapping[str, str | None], column: str, where: str, low: float, high: float) -> float:
    text = _text(row, column, where)
    try:
        value = float(text)
    except ValueError as error:
        raise InputError(f"{where}: {column} is {text!r}, give a number.") from error
    if not low <= value <= high:
        raise InputError(f"{where}: {column} is {text}, give a number from {low:g} to {high:g}.")
    return value


def _whole(row: Mapping[str, str | None], column: str, where: str, low: int, high: int) -> int:
    value = _number(row, column, where, low, high)
    if value != int(value):
        raise InputError(f"{where}: {column} is {value:g}, give a whole number.")
    return int(value)
