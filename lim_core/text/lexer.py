"""Tokens of a folded text: numbers with sign and currency, words, single characters of scripts without word breaks."""

from __future__ import annotations

import re
from functools import lru_cache

from lim_core.text.folding import OTHER_NUMBERS, SUPERSCRIPTS, letter_ranges, mark_ranges
from lim_core.text.numerals import number_tokens

ARTICLES = frozenset(["a", "an", "the"])
# Stops of scripts that match as substrings: a match must not run across them.
BREAKS = frozenset(["。", "、"])

# Han, kana, bopomofo, hangul, Thai, Lao, Tibetan, Burmese, Khmer: words are not set apart by spaces, or (Korean)
# carry particles.
_UNSPACED = (
    "\u0e00-\u0eff\u0f00-\u0fff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u2e80-\u2fdf\u3005-\u3007\u3021-\u303c"
    "\u3040-\u318f\u31a0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff"
)
_CURRENCY = "$\u00a2-\u00a5\u058f\u060b\u09f2\u09f3\u0e3f\u17db\u20a0-\u20c0"
_DASHES = "\\-\u2010\u2011\u2012\u2013\u2212"
_CODES = "eur|usd|gbp|jpy|chf|inr|cny"
_SCALES = "thousand|million|billion|trillion|mio|mrd|bn|m|k"

_SAME = {
    "&": "and",
    "%": "percent",
    "\u066a": "percent",
    "\u2030": "permille",
    "eur": "€",
    "euro": "€",
    "euros": "€",
    "usd": "$",
    "us$": "$",
    "dollar": "$",
    "dollars": "$",
    "gbp": "£",
    "jpy": "¥",
    "yen": "¥",
}
_SIGN = re.compile(rf"minus|[{_DASHES}](?=\s?(?:[{_CURRENCY}\d.]|us\$|{_CODES}))")
_UNIT = re.compile(rf"us\$|[{_CURRENCY}]|\b(?:{_CODES})(?![a-z])")
_SCALE = re.compile(rf"\s?({_SCALES})$")


@lru_cache(maxsize=1)
def token_pattern() -> re.Pattern[str]:
    """The pattern of one token of a folded text; what it does not match separates tokens."""
    letter = rf"[^\W\d_{_UNSPACED}{SUPERSCRIPTS}{OTHER_NUMBERS}]"
    # Spelt out, because one class is matched much faster than an alternation of two.
    in_word = f"[{letter_ranges(_UNSPACED)}{mark_ranges()}]"
    # Repeats that can fail late are bounded, so that no text takes more than linear time.
    # A dash is a minus only where nothing it could join or range from stands before it.
    sign = rf"(?<!{letter})(?<![\d)\]}}%°{_DASHES}\u2014])(?<!\d\s)(?:[{_DASHES}]|minus\s+)"
    spaced = r"[1-9]\d{0,2}(?:\ \d{3}){0,5}?\ 0\d\d(?:\ \d{3}){0,5}(?:\.\d+)?(?!\d|[.,:]\d)"
    scientific = rf"\d+(?:\.\d+)?e[+{_DASHES}]?\d+(?!{letter}|\d|[.,:]\d)"
    run = r"(?:\d+|(?<![\w.])\.\d+)(?:[.,:]\d+|['’_]\d{3}(?!\d))*"
    number = rf"(?:{spaced}|{scientific}|{run})(?:[{SUPERSCRIPTS}]+|\ ?[{OTHER_NUMBERS}])?"
    money = rf"(?:us\$|[{_CURRENCY}]|(?<!{letter})(?:{_CODES}))\s?[{_DASHES}]?{number}(?:\s?(?:{_SCALES})(?!{letter}))?"
    return re.compile(
        "|".join(
            [
                # The first look keeps most words from trying the long alternatives: it lists all they can begin with.
                rf"(?=[{_DASHES}\d.{_CURRENCY}megujci])(?:{sign})?(?:{money}|{number})",
                rf"(?<!{letter})per\s?cent(?!{letter})",
                rf"(?<!{letter})us\s?dollars?(?!{letter})|us\$",
                rf"{letter}(?:\.{letter}){{1,9}}(?!{letter}|\.{letter})",  # U.S., p.m.
                # m²; after longer words a superscript is a footnote mark
                rf"{letter}{in_word}*(?:(?<!{letter}{{4}})[{SUPERSCRIPTS}]+|[+#]{{1,2}}(?!{letter}|\d))?",
                rf"(?=\w)[{_UNSPACED}][{mark_ranges()}]*",
                rf"[{OTHER_NUMBERS}{_CURRENCY}&%\u066a\u2030{''.join(BREAKS)}]",
            ]
        )
    )


@lru_cache(maxsize=65536)
def canonical(token: str) -> str:
    """The one form of a token as `token_pattern` finds it; several words, joined by spaces, for some numbers."""
    same = _SAME.get(token)
    if same is not None:
        return same
    if token.isalpha():
        return token
    if any("0" <= character <= "9" for character in token):
        return _number(token)
    if token.startswith("per"):
        return "percent"
    if token.startswith("us") and token.endswith(("dollar", "dollars")):
        return "$"
    return token.replace(".", "")


def _number(token: str) -> str:
    """Value first, then its scale word, then its currency, whatever side the text has that on."""
    sign = "-" if _SIGN.search(token) and not re.match(r"\d", token) else ""
    unit = _UNIT.search(token)
    scale = _SCALE.search(token) if unit else None
    body = token[: scale.start()] if scale else token
    body = body[unit.end() :] if unit else body
    values = number_tokens(re.sub(rf"^(?:minus|[{_DASHES}]|\s)+", "", body))
    if sign and values[0].strip("0.") != "":
        values[0] = sign + values[0]
    if scale:
        values.append(scale[1])
    if unit:
        values.append(_SAME.get(unit[0], unit[0]))
    return " ".join(values)
