"""The trials of a run as a table that can be narrowed by case, arm and outcome."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lim_core.drawing.rows import Row
from lim_core.drawing.words import OUTCOME_SHAPES, arm_words, clip, count, percent
from lim_core.reports.markup import NOTHING, Html, element, join, note, section, size, table, text

if TYPE_CHECKING:
    from lim_core.store.records import ArmRow, TrialRow

MOST_TRIALS = 5_000
_ANSWER = 160
_CHOICES = ("case", "arm", "outcome")


def arms_section(arms: Sequence[ArmRow]) -> Html:
    """How the trials of each arm came out."""
    rows: list[Row] = [
        {
            "arm": arm_words(row.arm),
            "trials": row.trials,
            "correct": row.correct,
            "wrong": row.wrong,
            "abstained": row.abstained,
            "empty, not scored": row.empty,
            "error, not scored": row.error,
        }
        for row in arms
    ]
    return section("Outcomes by arm", table(rows, "All trials of the run, brackets and remedies included"))


def trials_section(trials: Sequence[TrialRow], total: int, room: int, *, answers: bool) -> Html:
    """The trials in the order they finished, as many as fit into `room` bytes; without `answers` no answer is shown."""
    if not trials:
        return NOTHING
    several = len({row.case_id for row in trials}) > 1
    rows: list[Row] = []
    left = room
    for trial in trials:
        row = _cells(trial, several, answers)
        left -= sum(size(text(str(value))) + len("<td></td>") + 16 for value in row.values())
        if left < 0:
            break
        rows.append(row)
    said = f"{count(total)} trials, in the order they finished."
    if len(rows) < total:
        said += f" The first {count(len(rows))} are listed; `runs export` writes them all."
    if not rows:
        return section("Trials", note(said))
    names = list(rows[0])
    choices = [_choice(name, names.index(name), rows) for name in _CHOICES if name in names]
    choose = element("div", *choices, element("output", klass="note"), klass="choose")
    listing = Html(f"<div data-trials>{choose}{table(rows, 'Trials')}</div>")
    return section("Trials", note(said), listing)


def _choice(name: str, column: int, rows: Sequence[Row]) -> Html:
    values = dict.fromkeys(str(row[name]) for row in rows)
    options = join(element("option", text(value), value=value) for value in values)
    select = Html(f'<select data-column="{column}" aria-label="{name}"><option value="">all</option>{options}</select>')
    return element("label", text(f"{name} "), select)


def _cells(row: TrialRow, several: bool, answers: bool) -> Row:
    cells: dict[str, str | int | None] = {"trial": row.seq + 1}
    if several:
        cells["case"] = row.case_id
    cells |= {
        "arm": arm_words(row.arm),
        "block": row.block,
        "repeat": row.repeat,
        "slot": None if row.slot is None else row.slot + 1,
        "depth": percent(row.depth),
        # The shape stays beside its word.
        "outcome": OUTCOME_SHAPES.get(row.outcome, row.outcome).replace(" ", "\u00a0"),
    }
    if answers:
        cells["answer"] = clip(row.answer, _ANSWER) if row.fault is None else f"fault: {row.fault}"
    cells |= {
        "prompt tokens": row.prompt_tokens,
        "of these cached": row.cached_prompt_tokens,
        "answer tokens": row.completion_tokens,
        "ms": round(row.seconds * 1000),
        "call": "from cache" if row.cached else "sent",
    }
    return cells
