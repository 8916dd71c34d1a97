"""Judges: what one answer is worth, given the case.

`contains` is the default; `liu` reproduces the published score. The version of a judge is part of the key of its scores.
"""

from __future__ import annotations

import re
import string
from collections.abc import Sequence

from lim_core.judges.abstention import is_abstention
from lim_core.registry import Registry
from lim_core.text.folding import is_blank
from lim_core.text.normalise import Match, check_aliases, find_aliases, normalise
from lim_core.types import Case, Judge, Outcome, Verdict

judges: Registry[Judge] = Registry("judge")

# Raised whenever a judge could score the same answer differently.
_VERSIONS = {"contains": "contains/1", "liu": "liu/1"}

# Words that turn round what follows them; Chinese ones as the single characters they are matched as.
_NEGATIONS = frozenset(
    re.findall(
        r"\w+",
        "not never nor neither cannot t nicht kein keine keinen pas jamais nunca não non mai niet geen nie не нет "
        "değil ليس ليست لا 不 非 没 沒",
    )
)


# Models that think aloud put it before the reply; one that was cut off while thinking has not replied.
_THOUGHT = re.compile(r"\A\s*<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL)
_CITATION = re.compile(r"(?<=[\w.,;:!?)\]\"'’”])(\s?)\[(\d{1,4}(?:\s?[,;–-]\s?\d{1,4})*)\]")


def judge_version(name: str) -> str:
    """Name and version of a judge, for the key of a score.

    Raises:
        UnknownName: no such judge.
    """
    return _VERSIONS[judges[name].name]


def check_answers(case: Case) -> None:
    """Refuse a case whose answers the `contains` judge cannot look for.

    Raises:
        InputError: an alias normalises to nothing (it would match nothing, or everything).
    """
    check_aliases(case.answers)


@judges.register("contains", title="Contains an answer", order=0)
def contains(case: Case, text: str) -> Verdict:
    """Correct where any accepted answer stands in the reply, whatever else it says.

    Case, articles, punctuation and spelling variants do not matter; numbers are compared as values. A reasoning block
    at the start is not part of the reply, and a number in square brackets that can be a citation of a chunk is no
    answer. A reply with no accepted answer that declines is abstained, an empty one is empty.

    Raises:
        InputError: an alias of the case normalises to nothing.
    """
    check_aliases(case.answers)
    text = _THOUGHT.sub("", text)
    if is_blank(text):
        return _empty()
    said = _CITATION.sub(lambda mark: _without_citation(mark, len(case.chunks)), text)
    found = find_aliases(case.answers, said)
    if found:
        return Verdict(Outcome.CORRECT, f"Contains {_shown(found[0].alias)}{_doubt(found[0], said)}.")
    verdict = _without_match(case, said)
    if verdict.outcome is Outcome.WRONG and (cited := find_aliases(case.answers, text)):
        return Verdict(Outcome.WRONG, f"Holds {_shown(cited[0].alias)} only in what reads as a citation mark.")
    return verdict


@judges.register("liu", title="Liu et al. 2023", order=1)
def liu(case: Case, text: str) -> Verdict:
    """The published score of "Lost in the Middle": an accepted answer is a substring of the reply's first line.

    It knows no word boundaries ("14" is in "2014"), sees nothing after the first newline, and an accepted answer made
    of punctuation or articles alone matches any reply. Kept for comparison with published figures.
    """
    if is_blank(text):
        return _empty()
    if best_subspan_em(_first_line(text), case.answers):
        prediction = _liu_normalise(_first_line(text))
        alias = next(a for a in case.answers if _liu_normalise(a) in prediction)
        if not _liu_normalise(alias):
            warning = "is empty once normalised, so it matches any reply: correct the answers of the case"
            return Verdict(Outcome.CORRECT, f"Warning: the answer {_shown(alias)} {warning}.")
        return Verdict(Outcome.CORRECT, f"The first line contains {_shown(alias)}.")
    verdict = _without_match(case, text)
    if verdict.outcome is Outcome.WRONG and best_subspan_em(text, case.answers):
        where = "after the first newline, where this judge does not look"
        return Verdict(Outcome.WRONG, f"An accepted answer stands only {where}; judge contains would see it.")
    return verdict


def best_subspan_em(prediction: str, answers: Sequence[str]) -> float:
    """1.0 if any normalised answer is a substring of the normalised prediction, else 0.0.

    Source: Liu et al., TACL 12 (2024), src/lost_in_the_middle/metrics.py. The cut at the first newline is made by the
    caller, as in the published scripts.
    """
    normal = _liu_normalise(prediction)
    return 1.0 if any(_liu_normalise(answer) in normal for answer in answers) else 0.0


def _first_line(text: str) -> str:
    # No strip before the cut: a reply that begins with a newline scores 0, as published.
    return text.split("\n")[0].strip()


_PUNCTUATION = str.maketrans("", "", string.punctuation)


def _liu_normalise(text: str) -> str:
    bare = text.lower().translate(_PUNCTUATION)
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", bare).split())


def _without_citation(mark: re.Match[str], chunks: int) -> str:
    """Spaces for a mark whose numbers can all be those of chunks, counted from 1; any other bracket stays."""
    numbers = re.findall(r"\d+", mark[2])
    return " " * len(mark[0]) if all(1 <= int(number) <= chunks for number in numbers) else mark[0]


def _empty() -> Verdict:
    return Verdict(Outcome.EMPTY, "The reply is empty.")


def _without_match(case: Case, text: str) -> Verdict:
    if is_abstention(text):
        return Verdict(Outcome.ABSTAINED, "The reply declines to answer.")
    if not case.answers:
        return Verdict(Outcome.ERROR, "The case has no answers to compare the reply with: add them.")
    expected = " or ".join(_shown(alias) for alias in case.answers[:3])
    return Verdict(
        Outcome.WRONG, f"Holds none of the accepted answers ({expected}{', ...' if case.answers[3:] else ''})."
    )


def _doubt(match: Match, text: str) -> str:
    """A remark for the reader where the match may not be meant as the answer; the outcome stays."""
    before = normalise(re.split(r"[.!?。;:]\s", text[max(0, match.start - 200) : match.start])[-1]).split()[-3:]
    if any(word in _NEGATIONS for word in before):
        return ", but right after a negation: read it"
    if is_abstention(text):
        return ", though the reply also declines: read it"
    return ""


def _shown(alias: str) -> str:
    """An alias in quotes, cut where it is long."""
    return f'"{alias}"' if len(alias) <= 60 else f'"{alias[:60]}..."'
