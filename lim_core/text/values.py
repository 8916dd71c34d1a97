"""Values in a sentence - amounts, times, dates, shares, numbers - and the dates that documents carry."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from lim_core.text.sentences import stem
from lim_core.types import Chunk, Json

_MONTHS = re.findall(
    r"\w+",
    "january february march april may june july august september october november december "
    "januar februar märz april mai juni juli august september oktober november dezember",
)
_MONTH = "|".join(
    sorted({*_MONTHS, "jan", "feb", "mar", "apr", "jun", "jul", "aug", "sep", "sept", "oct", "nov", "dec"}, key=len)[
        ::-1
    ]
)
_WORDS = dict(
    zip(
        re.findall(
            r"\w+",
            "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
            "eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety",
        ),
        [*range(1, 21), 30, 40, 50, 60, 70, 80, 90],
        strict=True,
    )
)
_TENS = "twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety"
_NUMBER = rf"(?:\d+(?:[.,]\d+)*|\b(?:{_TENS})[- ](?:{'|'.join([*_WORDS][:9])})\b|\b(?:{'|'.join(_WORDS)})\b)"
_CURRENCY = r"(?:euros?|eur|dollars?|usd|pounds?|gbp|chf|francs?|crowns?|yen|yuan|rupees?|zloty|cents?)\b"
_VALUE = re.compile(
    rf"""(?P<date>\b\d{{4}}-\d{{2}}-\d{{2}}\b
            |\b\d{{1,2}}(?:st|nd|rd|th|\.)?\ (?:of\ )?(?:{_MONTH})\b\.?(?:,?\ \d{{4}})?
            |\b(?:{_MONTH})\ \d{{1,2}}(?:st|nd|rd|th)?\b(?:,?\ \d{{4}})?
            |\b(?:{_MONTH})\ \d{{4}}\b|\b\d{{4}}年\d{{1,2}}月(?:\d{{1,2}}日)?)
    |(?P<time>\b\d{{1,2}}[:h]\d{{2}}(?:\s?[ap]\.?m\b\.?)?|\b\d{{1,2}}(?:\.\d{{2}})?\s?(?:[ap]\.?m\b\.?|uhr\b|o'clock\b))
    |(?P<share>{_NUMBER}\s?(?:%|percent\b|per\ cent\b|prozent\b))
    |(?P<money>[€$£¥]\s?{_NUMBER}|{_NUMBER}\s?(?:[€$£¥元円]|{_CURRENCY}))
    |(?P<number>{_NUMBER})""",
    re.IGNORECASE | re.VERBOSE,
)
_AFTER = re.compile(r"[ \u00a0-]([^\W\d_]+)")
_CJK_AFTER = re.compile(r"[\u4e00-\u9fff\u3040-\u30ff\uac00-\ud7af]")
_BEFORE = re.compile(r"([^\W\d_]+)[ \u00a0#:.]*$")
_DATE_KEYS = re.findall(
    r"\w+",
    "effective effective_date effective_from valid_from updated updated_at last_updated last_modified modified modified_at "
    "date published published_at created created_at timestamp year",
)
_ISO = re.compile(r"\b((?:19|20)\d{2})(?:-(\d{2})(?:-(\d{2}))?)?(?![\d-])(?:T|\b)")
_WRITTEN = re.compile(
    rf"(?:(\d{{1,2}})(?:st|nd|rd|th|\.)?\ (?:of\ )?)?"
    rf"\b({_MONTH})\b\.?(?:\ (\d{{1,2}})(?:st|nd|rd|th)?\b)?,?\ ((?:19|20)\d{{2}})\b",
    re.I,
)


class Kind(StrEnum):
    """What a value measures. Only values of one kind can contradict each other."""

    DATE = "date"
    TIME = "time"
    SHARE = "share"
    MONEY = "money"
    NUMBER = "number"


@dataclass(frozen=True, slots=True)
class Value:
    """A value as written, its half-open range in the sentence, and what makes it comparable.

    `unit` is the stem of the word after a number, or before it where there is none ("room 214"); `key` is equal for
    equal values ("1,000" and "1000"), `core` the bare number or time.
    """

    kind: Kind
    text: str
    start: int
    end: int
    unit: str
    key: str
    core: str


def values(sentence: str) -> tuple[Value, ...]:
    """All values of a sentence, in their order."""
    found = []
    for match in _VALUE.finditer(sentence):
        kind = Kind(match.lastgroup or "number")
        text, end = match[0].strip(), match.end()
        core = re.search(_NUMBER, text, re.IGNORECASE)
        number = core[0] if core else text
        unit = ""
        if kind is Kind.NUMBER:
            after, cjk = _AFTER.match(sentence, end), _CJK_AFTER.match(sentence, end)
            before = _BEFORE.search(sentence, max(0, match.start() - 40), match.start())
            if cjk:
                unit, end = cjk[0], end + 1
            elif after and not _is_function_word(after[1]):
                unit, end = stem(after[1].lower()), after.end(1)
            elif before:
                unit = "before:" + stem(before[1].lower())
            text = sentence[match.start() : end]
        elif kind is Kind.MONEY:
            unit = re.sub(r"[\d.,\s]", "", text).lower().rstrip("s")
            unit = {"€": "euro", "eur": "euro", "$": "dollar", "usd": "dollar", "£": "pound", "gbp": "pound"}.get(
                unit, unit
            )
        key = _key(kind, text, number)
        found.append(
            Value(kind, text, match.start(), end, unit, key, text if kind in (Kind.DATE, Kind.TIME) else number)
        )
    return tuple(found)


def document_date(chunk: Chunk) -> tuple[int, ...] | None:
    """When a chunk is dated, as (year), (year, month) or (year, month, day): by its metadata, else by title and text.

    Of several dates in the text the latest counts, for a later rule often names the one that it replaces.
    """
    for key in _DATE_KEYS:
        if (dated := _metadata_date(chunk.metadata.get(key))) is not None:
            return dated
    for text in (chunk.title, chunk.text):
        if dates := [*_dates(text)]:
            return max(dates)
    return None


def later_of(first: Chunk, second: Chunk) -> str | None:
    """The id of the chunk dated later; None where one has no date or both have the same as far as they are given."""
    one, two = document_date(first), document_date(second)
    if one is None or two is None:
        return None
    size = min(len(one), len(two))
    if one[:size] == two[:size]:
        return None
    return first.id if one > two else second.id


def _is_function_word(word: str) -> bool:
    return word.lower() in {
        "and", "or", "is", "are", "was", "were", "in", "on", "at", "to", "of", "for", "from", "by", "with", "the", "a", "an",
        "will", "has", "have", "had", "opens", "closes", "until", "und", "oder", "ist", "et", "ou", "est", "y", "o", "es",
    }  # fmt: skip


def _key(kind: Kind, text: str, number: str) -> str:
    if kind is Kind.TIME:
        digits = [int(part) for part in re.findall(r"\d+", text)]
        late = bool(re.search(r"p\.?m", text, re.IGNORECASE)) and digits[0] < 12
        return f"{digits[0] + 12 * late}:{digits[1] if len(digits) > 1 else 0:02d}"
    if kind is Kind.DATE:
        dates = [*_dates(text)]
        return str(dates[0]) if dates else re.sub(r"\W+", " ", text.lower()).strip()
    parts = re.split(r"[- ]", number.lower())
    if all(part in _WORDS for part in parts):
        return str(sum(_WORDS[part] for part in parts))
    bare = re.sub(r"(?<=\d),(?=\d{3}(?:\D|$))", "", number)
    return re.sub(r"[.,]0+$", "", bare)


def _dates(text: str) -> list[tuple[int, ...]]:
    found: list[tuple[int, ...]] = []
    for match in _WRITTEN.finditer(text):
        month = _month(match[2])
        day = match[1] or match[3]
        found.append((int(match[4]), month, int(day)) if day else (int(match[4]), month))
    for match in _ISO.finditer(text):
        found.append(tuple(int(part) for part in match.groups() if part is not None))
    return found


def _month(name: str) -> int:
    lower = name.lower()
    for number, full in enumerate(_MONTHS):
        if full.startswith(lower[:3]) and (full == lower or len(lower) <= 4):
            return number % 12 + 1
    return 1


def _metadata_date(value: Json) -> tuple[int, ...] | None:
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        if 1900 <= value <= 2100:
            return (int(value),)
        if 1e8 < value < 1e13:
            moment = datetime.fromtimestamp(value / 1000 if value > 1e11 else value, UTC)
            return (moment.year, moment.month, moment.day)
        return None
    dates = _dates(value) if isinstance(value, str) else []
    return dates[0] if dates else None
