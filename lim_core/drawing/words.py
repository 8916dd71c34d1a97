"""How figures and names are written for people: units, shapes, plain names. No Streamlit."""

from __future__ import annotations

from dataclasses import dataclass

from lim_core.types import Outcome, Status


@dataclass(frozen=True, slots=True)
class Sign:
    """How a status looks: a word, a shape (text and icon) and a theme colour, so that colour never stands alone."""

    word: str
    shape: str
    icon: str
    colour: str


SIGNS: dict[Status, Sign] = {
    Status.PASS: Sign("pass", "●", ":material/check_circle:", "green"),
    Status.FAIL: Sign("fail", "◆", ":material/dangerous:", "red"),
    Status.UNDETERMINED: Sign("undetermined", "▲", ":material/change_history:", "violet"),
    Status.SKIPPED: Sign("skipped", "○", ":material/radio_button_unchecked:", "gray"),
}

OUTCOME_SHAPES: dict[str, str] = {
    Outcome.CORRECT: "● correct",
    Outcome.WRONG: "◆ wrong",
    Outcome.ABSTAINED: "▲ abstained",
    Outcome.EMPTY: "○ empty",
    Outcome.ERROR: "✕ error",
}

CAUSES: dict[str, str] = {
    "TRUNCATED": "The prompt was cut",
    "OUTPUT_BUDGET": "No room was left for the answer",
    "RANKED_OUT": "The evidence was found, then ranked out",
    "NOT_RETRIEVED": "The evidence was not retrieved",
    "MISSING_DOCUMENT": "The document is not in the corpus",
    "CONFLICTING_SOURCES": "Two sources disagree",
    "ASSEMBLY_LOSS": "The prompt builder lost the evidence",
    "LOST_IN_THE_MIDDLE": "Lost in the middle of the prompt",
    "POSITION_SENSITIVE": "The answer depends on where the evidence stands",
    "DISTRACTED": "The other chunks distract the model",
    "PROMPT_SENSITIVE": "The template loses the answer, not the order",
    "NOT_REPRODUCED": "The fault did not come back",
    "CLOSED_BOOK_KNOWN": "The model knows the answer without the context",
    "CANNOT_ANSWER": "The model cannot answer from the evidence",
    "UNGROUNDED": "The answer is not supported by what it cites",
    "POLICY": "A rule about documents was broken",
    "OPERATIONS": "A latency, token or failure budget was passed",
    "NO_FAULT_FOUND": "No fault found",
    "UNDETERMINED": "Undetermined",
}

STAGES: dict[str, str] = {
    "truncation": "Truncation",
    "retrieval": "Retrieval",
    "assembly": "Assembly",
    "position": "Position",
    "reasoning": "Reasoning",
    "grounding": "Grounding",
    "policy": "Policy",
    "operations": "Operations",
}

SHAPES: dict[str, str] = {
    "u": "U-shape: both edges beat the middle",
    "primacy": "primacy: the start is read best",
    "recency": "recency: the end is read best",
    "cliff": "a cliff past one slot",
    "flat": "flat within delta",
    "inverted": "inverted: the middle is read best",
    "unclear": "no shape established",
}


def cause_words(cause: str) -> str:
    """A cause in plain words; an unknown one as it is."""
    return CAUSES.get(cause, cause.replace("_", " ").capitalize())


def stage_words(stage: str) -> str:
    """A stage's title."""
    return STAGES.get(stage, stage.replace("-", " ").capitalize())


def percent(share: float | None) -> str:
    """A share in whole percent, or a dash where unknown."""
    return "–" if share is None else f"{share * 100:.0f}%"


def points(difference: float | None) -> str:
    """A difference of shares in percentage points, signed."""
    return "–" if difference is None else f"{difference * 100:+z.0f} pts"


def interval(low: float | None, high: float | None, unit: str = "%") -> str:
    """An interval of shares, in whole percent or points."""
    if low is None or high is None:
        return "–"
    sign = "+z" if unit == "pts" else ""
    return f"{low * 100:{sign}.0f} to {high * 100:{sign}.0f} {unit}".replace(" %", "%")


def count(amount: int | None) -> str:
    """A count with thousands separators, or a dash."""
    return "–" if amount is None else f"{amount:,}"


def duration(seconds: float | None) -> str:
    """Seconds as people read them: 0.4 s, 71 s, 3 min 20 s."""
    if seconds is None:
        return "–"
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"


def arm_words(arm: str) -> str:
    """An arm's name for people, its template options behind a comma; slots counted from 1."""
    base, *options = arm.split("+")
    return ", ".join((_base_words(base), *options))


def _base_words(arm: str) -> str:
    kind, _, name = arm.partition(":")
    if kind == "position":
        return (
            f"slot {int(name) + 1}"
            if name.isdecimal()
            else {"q1": "25%", "q3": "75%", "own": "own slot"}.get(name, name)
        )
    if kind == "k":
        return "all chunks" if name == "all" else f"k = {name}"
    if kind == "ordering":
        return name
    if kind == "grid":
        length, _, depth = name.partition(":")
        return f"{length} tokens, {depth}% of the way"
    return {
        "as-sent": "prompt as sent",
        "distraction:without-hard": "without the best-ranked distractors",
        "distraction:without-easy": "without the worst-ranked distractors",
    }.get(arm, arm)


def tally(right: int, trials: int, n: int, accuracy: float | None) -> str:
    """How often an arm was right: k/n where each unit is one trial, else the mean over units with their number."""
    if accuracy is None or not n:
        return "–"
    return f"{right}/{n}" if trials == n else f"{percent(accuracy)}, n {n}"


def clip(text: str, length: int) -> str:
    """Text on one line of at most `length` characters, marked where it was cut."""
    line = " ".join(text.split())
    return line if len(line) <= length else line[: length - 1] + "…"


def clip_middle(text: str, length: int) -> str:
    """Text on one line of at most `length` characters, cut in the middle: ids of one suite mostly differ at their ends."""
    line = " ".join(text.split())
    if len(line) <= length:
        return line
    tail = (length - 1) * 2 // 3
    return f"{line[: length - 1 - tail]}…{line[-tail:]}"
