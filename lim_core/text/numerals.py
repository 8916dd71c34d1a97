"""Numbers as written, compared as values where the value is beyond doubt and as written where it is not.

| written | means |
| --- | --- |
| 1,000  1'000  1 000 (no-break space)  10 000  1,00,000 | grouped thousands: 1000, 1000, 1000, 10000, 100000 |
| 10.0  3.50  .5  03.5 | 10, 3.5, 0.5, 3.5 (so a version 3.10 equals 3.1: write it out where that matters) |
| 3,5  1.234,56 | not guessed: equal only to the same spelling, never to 3.5, 35, 3 or 5 |
| 1.000  3.142 | one to three digits, a point, three digits: thousands or decimals, so only the same spelling |
| 1,2,3  1.5,2.5 | a list of numbers |
| 14:30  3:1 | one value, 09:30 being 9:30; 14 is not in it |
| 12.05.2024  2024.05.12 | a date, the same three numbers as 12/05/2024 and 2024-05-12 |
| 1.2.3  192.168.0.1 | a version or an address: as written |
| 05  007 | 5 (days, months, hours); longer codes that begin with 0 as written |
| 10²  2½  1e-5 | as written; 10, 2 and 1 are not in them |

A dash is a minus only where no letter, digit or closing bracket stands before it: -5 is never 5, "3-5" is 3 and 5.
"""

from __future__ import annotations

import re

_GROUPED = re.compile(r"[1-9]\d{0,2}(?:,\d{3})+(?:\.\d+)?|[1-9]\d?(?:,\d\d)+,\d{3}(?:\.\d+)?")
_MARKED = re.compile(r"[1-9]\d{0,2}(?:['’_ ]\d{3})+(?:[.,]\d+)?")
_DECIMAL_COMMA = re.compile(r"\d+,\d+|\d{1,3}(?:\.\d{3})+,\d+|\d{1,3},\d{3}(?:,\d+)+")
_AMBIGUOUS_POINT = re.compile(r"[1-9]\d{0,2}\.\d{3}")
_DATE = re.compile(r"\d{1,2}\.\d{1,2}\.\d{4}|\d{4}\.\d{1,2}\.\d{1,2}")
_PLAIN = re.compile(r"[\d.,:'’_ ]+")


def number_tokens(written: str) -> list[str]:
    """Canonical forms of an unsigned number or list of numbers with ASCII digits; at least one."""
    if not _PLAIN.fullmatch(written):
        return [re.sub(r"[\u2010-\u2013\u2212]", "-", written.replace(" ", "").replace("e+", "e"))]
    if re.search(r"['’_ ]", written):
        if not _MARKED.fullmatch(written):
            return [token for part in re.split(r"['’_ ]", written) for token in number_tokens(part)]
        bare = re.sub(r"['’_ ]", "", written)
        return [bare if "," in bare else _decimal(bare)]
    if ":" in written:
        return [part.lstrip("0") if re.match(r"0\d", part) else part for part in written.split(",")]
    if "," not in written:
        return _pointed(written)
    if _GROUPED.fullmatch(written):
        return [_decimal(written.replace(",", ""))]
    if _DECIMAL_COMMA.fullmatch(written):
        return [written]
    return [token for part in written.split(",") for token in _pointed(part)]


def _pointed(written: str) -> list[str]:
    points = written.count(".")
    if points == 0:
        return [_whole(written)]
    if points == 1:
        return [written if _AMBIGUOUS_POINT.fullmatch(written) else _decimal(written)]
    return [_whole(part) for part in written.split(".")] if _DATE.fullmatch(written) else [written]


def _whole(digits: str) -> str:
    return digits[1] if len(digits) == 2 and digits[0] == "0" else digits


def _decimal(written: str) -> str:
    head, _, tail = written.partition(".")
    tail = tail.rstrip("0")
    if not tail:
        return (head.lstrip("0") or "0") if "." in written else head
    return f"{head.lstrip('0') or '0'}.{tail}"
