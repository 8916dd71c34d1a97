"""What a notebook prints: Python literals and calls such as `[Document(page_content='...', metadata={})]`.

Nothing is evaluated. A call becomes an object of its keyword arguments with the key `__class__`; what is printed as
`<...>` becomes a string. Bounded in depth and linear in time.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable

from lim_core.importers.files.strict import MAX_DEPTH, BadJson
from lim_core.types import Json

CLASS = "__class__"
_BLANK = re.compile(r"\s*(?:#[^\n]*\s*)*")
_NAME = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*")
_NUMBER = re.compile(r"[+-]?(?:0[xX][0-9a-fA-F]+|(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)")
_PREFIX = re.compile(r"(?:[bBuUfF]|[rR][bB]?|[bB][rR])?(?=['\"])")
_PLAIN = {quote: re.compile(rf"[^\\{quote}]*") for quote in "'\""}
_ESCAPES = {
    "n": "\n",
    "t": "\t",
    "r": "\r",
    "\\": "\\",
    "'": "'",
    '"': '"',
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "v": "\v",
    "0": "\0",
    "\n": "",
}
_WORDS: dict[str, Json] = {
    "None": None,
    "True": True,
    "False": False,
    "null": None,
    "true": True,
    "false": False,
    "nan": math.nan,
    "NaN": math.nan,
    "inf": math.inf,
    "Infinity": math.inf,
}
_HEX_ESCAPES = {"x": 2, "u": 4, "U": 8}


def read_literal(text: str) -> Json:
    """Parse one printed Python value, or several `name=value` fields in a row, as `print(document)` shows them.

    Raises:
        BadJson: it is no such text.
    """
    return _Reader(text).whole()


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.depth = 0

    def whole(self) -> Json:
        self._skip()
        values: list[Json] = []
        while self.at < len(self.text):
            values.append(self._fields() if self._at_field() else self._value())
            self._skip()
            if self._peek(","):
                self.at += 1
                self._skip()
        if not values:
            raise self._bad("no value")
        return values[0] if len(values) == 1 else values

    def _fields(self) -> Json:
        """`page_content='a' metadata={}`; a name that was seen begins the next object."""
        found: dict[str, Json] = {}
        while self._at_field():
            start = self.at
            name = self._name()
            self._skip()
            self.at += 1
            if name in found:
                self.at = start
                break
            self._skip()
            found[name] = self._value()
            self._skip()
        return found

    def _at_field(self) -> bool:
        name = _NAME.match(self.text, self.at)
        if name is None:
            return False
        after = _skip_blank(self.text, name.end())
        return self.text[after : after + 1] == "=" and self.text[after : after + 2] != "=="

    def _value(self) -> Json:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise BadJson("nested too deeply", bomb=True)
        try:
            return self._bare_value()
        finally:
            self.depth -= 1

    def _bare_value(self) -> Json:
        self._skip()
        character = self.text[self.at : self.at + 1]
        if character == "[":
            return self._sequence("]")
        if character == "(":
            return self._sequence(")")
        if character == "{":
            return self._braces()
        if character == "<":
            return self._angle()
        if _PREFIX.match(self.text, self.at) and self._string_ahead():
            return self._strings()
        number = _NUMBER.match(self.text, self.at)
        if number:
            return self._number(number)
        return self._word()

    def _string_ahead(self) -> bool:
        found = _PREFIX.match(self.text, self.at)
        return found is not None and self.text[found.end() : found.end() + 1] in ("'", '"')

    def _sequence(self, close: str) -> Json:
        items: list[Json] = []
        self.at += 1
        self._each(close, lambda: items.append(self._fields() if self._at_field() else self._value()))
        return items

    def _braces(self) -> Json:
        found: dict[str, Json] = {}
        members: list[Json] = []

        def entry() -> None:
            key = self._value()
            self._skip()
            if self._peek(":"):
                self.at += 1
                found[str(key)] = self._value()
            else:
                members.append(key)

        self.at += 1
        self._each("}", entry)
        return members if members and not found else found

    def _each(self, close: str, entry: Callable[[], None]) -> None:
        """Read entries up to the closing bracket; a trailing comma is let in."""
        self._skip()
        while not self._peek(close):
            entry()
            self._skip()
            if self._peek(","):
                self.at += 1
                self._skip()
            elif not self._peek(close):
                raise self._bad(f"no comma and no {close}")
        self.at += 1

    def _angle(self) -> Json:
        end = self.text.find(">", self.at)
        if end < 0 or end - self.at > 2_000:
            raise self._bad("a < that is not closed")
        found = self.text[self.at : end + 1]
        self.at = end + 1
        return found

    def _strings(self) -> Json:
        """One string, or several in a row that Python would join."""
        parts = [self._string()]
        while True:
            mark = self.at
            self._skip()
            if not self._string_ahead():
                self.at = mark
                return "".join(parts)
            parts.append(self._string())

    def _string(self) -> str:
        prefix = _PREFIX.match(self.text, self.at)
        raw = prefix is not None and "r" in prefix.group().lower()
        self.at = prefix.end() if prefix else self.at
        quote = self.text[self.at]
        close = quote * 3 if self.text.startswith(quote * 3, self.at) else quote
        self.at += len(close)
        parts: list[str] = []
        while True:
            run = _PLAIN[quote].match(self.text, self.at)
            if run:
                parts.append(run.group())
                self.at = run.end()
            if self.at >= len(self.text):
                raise self._bad("a string that is not closed")
            if self.text.startswith(close, self.at):
                self.at += len(close)
                return "".join(parts)
            if self.text[self.at] == quote:
                parts.append(quote)
                self.at += 1
            else:
                parts.append(self._escape(raw))

    def _escape(self, raw: bool) -> str:
        following = self.text[self.at + 1 : self.at + 2]
        self.at += 2
        if raw:
            return "\\" + following
        width = _HEX_ESCAPES.get(following)
        if width is not None:
            digits = self.text[self.at : self.at + width]
            try:
                found = chr(int(digits, 16))
            except (ValueError, OverflowError):
                return "\\" + following
            self.at += width
            return found
        return _ESCAPES.get(following, "\\" + following)

    def _number(self, found: re.Match[str]) -> Json:
        word = found.group().replace("_", "")
        self.at = found.end()
        after = self.text[self.at : self.at + 1]
        if after.isalnum() or (after in "-:" and after):
            # An id that is printed without quotes, as Haystack does.
            self.at = found.start()
            return self._unquoted()
        try:
            return int(word, 0) if not re.search(r"[.eE]", word) or "x" in word.lower() else float(word)
        except ValueError:
            return word

    def _unquoted(self) -> Json:
        found = re.compile(r"[^\s,()\[\]{}'\"]+").match(self.text, self.at)
        if found is None:
            raise self._bad("something that is no value")
        self.at = found.end()
        return found.group()

    def _name(self) -> str:
        found = _NAME.match(self.text, self.at)
        if found is None:
            raise self._bad("something that is no value")
        self.at = found.end()
        return found.group()

    def _word(self) -> Json:
        start = self.at
        if self._peek("-"):
            self.at += 1
        name = self._name()
        if self._peek("("):
            return self._call(name)
        if name in _WORDS:
            return _WORDS[name]
        if self._peek("-"):
            self.at = start
            return self._unquoted()
        return name

    def _call(self, name: str) -> Json:
        """`Document(page_content='a')`, or with colons after some names, as Haystack prints them."""
        found: dict[str, Json] = {}
        bare: list[Json] = []

        def argument() -> None:
            key = re.compile(r"([^\W\d]\w*)\s*(?:=(?!=)|:)\s*").match(self.text, self.at)
            if key:
                self.at = key.end()
                found[key.group(1)] = self._value()
            else:
                bare.append(self._value())

        self.at += 1
        self._each(")", argument)
        if not found and len(bare) == 1:
            return bare[0]
        found[CLASS] = name.rpartition(".")[2]
        if bare:
            found["args"] = bare
        return found

    def _skip(self) -> None:
        self.at = _skip_blank(self.text, self.at)

    def _peek(self, mark: str) -> bool:
        return self.text.startswith(mark, self.at)

    def _bad(self, what: str) -> BadJson:
        line = self.text.count("\n", 0, self.at) + 1
        return BadJson(what, line, self.at - self.text.rfind("\n", 0, self.at))


def _skip_blank(text: str, start: int) -> int:
    found = _BLANK.match(text, start)
    return found.end() if found else start
