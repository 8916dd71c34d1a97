"""Parts what stands between the chunks of a prompt into what belongs to a chunk, to a place, and to the frame."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_TOKEN = re.compile(r"\d+|\D")
_DIGITS = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class Count:
    """A number that follows the place of a chunk: `base` at the first place, padded with zeros to `width`."""

    base: int
    width: int = 0


@dataclass(frozen=True, slots=True)
class Titled:
    """Where the chunk's own title goes, in the wrapper of a chunk that the prompt did not hold."""


@dataclass(frozen=True, slots=True)
class Wrapper:
    """Text before or after one chunk, with numbers that follow its place."""

    parts: tuple[str | Count | Titled, ...] = ()

    def at(self, place: int, title: str) -> str:
        """The text at a 0-based place."""
        return "".join(
            f"{part.base + place:0{part.width}d}"
            if isinstance(part, Count)
            else title
            if isinstance(part, Titled)
            else part
            for part in self.parts
        )


@dataclass(frozen=True, slots=True)
class Wrapped:
    """A prompt without its n chunks: frame, n headers and footers, n - 1 joins; `header` and `footer` suit any chunk."""

    prefix: str
    suffix: str
    joins: tuple[str, ...]
    headers: tuple[Wrapper, ...]
    footers: tuple[Wrapper, ...]
    header: Wrapper
    footer: Wrapper


def learn_wrappers(
    head: str, gaps: Sequence[str], tail: str, own: Sequence[Sequence[str]], titles: Sequence[str]
) -> Wrapped:
    """Part the text before the first chunk, the gaps between chunks (at least one) and the text after the last.

    `own` are for each chunk the words that are its own, such as title and id: a figure in them never follows the place.
    """
    tokens = [_TOKEN.findall(gap) for gap in gaps]
    size = _footer_size([*tokens, _TOKEN.findall(tail)])
    footers = ["".join(gap[:size]) for gap in tokens]
    footers.append("".join(_TOKEN.findall(tail)[:size]))
    rests = [gap[size:] for gap in tokens]
    cut = _join_size(rests, head)
    joins = tuple("".join(rest[:cut]) for rest in rests)
    headers = ["".join(rest[cut:]) for rest in rests]
    opening = _first_header(head, headers)
    headers.insert(0, head[opening:])
    made_headers, made_footers = _counted(headers, own), _counted(footers, own)
    return Wrapped(
        prefix=head[:opening],
        suffix=tail[len(footers[-1]) :],
        joins=joins,
        headers=made_headers,
        footers=made_footers,
        header=_shared(made_headers, titles),
        footer=_shared(made_footers, titles),
    )


def _same(a: str, b: str) -> bool:
    return a == b or (a.isdecimal() and b.isdecimal())


def _common(lists: Sequence[Sequence[str]]) -> int:
    """Length of the common beginning in tokens, any number being like any other."""
    size = min(map(len, lists))
    for index in range(size):
        if any(not _same(tokens[index], lists[0][index]) for tokens in lists):
            return index
    return size


def _footer_size(lists: Sequence[Sequence[str]]) -> int:
    """What closes every chunk, the last one too: up to a line break or the end of a tag."""
    common = _common(lists)
    for index in range(common, 0, -1):
        if lists[0][index - 1] in ("\n", ">", "}", "]"):
            return index
    return 0


def _join_size(rests: Sequence[Sequence[str]], head: str) -> int:
    """How much of the rest of a gap belongs to the place: up to the line on which the next chunk's own header begins."""
    common = _common(rests)
    first = rests[0]
    number = next((index for index in range(common) if first[index].isdecimal()), None)
    if number is None and all(len(rest) == common for rest in rests):
        # All gaps are alike: what also stands before the first chunk is its header.
        shared = 0
        while shared < min(common, len(head)) and first[common - 1 - shared] == head[-1 - shared]:
            shared += 1
        start = common - shared
        while start < common and first[start].isspace():
            start += 1
        return start
    limit = common if number is None else number
    if number is not None:
        # What also stands before the first chunk, its number included, is the header.
        before = _TOKEN.findall(head[-400:])
        shared = 0
        while shared < min(len(first), len(before)) and _same(first[-1 - shared], before[-1 - shared]):
            shared += 1
        start = len(first) - shared
        if start <= number:
            while start < number and first[start].isspace():
                start += 1
            return start
    for index in range(limit, 0, -1):
        if first[index - 1] == "\n":
            return index
    start = 0
    while start < limit and first[start].isspace():
        start += 1
    return start


def _first_header(head: str, headers: Sequence[str]) -> int:
    """Where in the text before the first chunk its header begins, judged by the headers of the others."""
    model = headers[0]
    if not any(headers):
        return len(head)
    pattern = "".join(r"\d+" if token.isdecimal() else re.escape(token) for token in _TOKEN.findall(model))
    window = max(0, len(head) - len(model) - 40)
    exact = re.compile(pattern + r"\Z").search(head, window)
    if exact:
        return exact.start()
    tokens = [_TOKEN.findall(header) for header in headers]
    lead = ""
    for token in tokens[0][: _common(tokens)]:
        if token.isdecimal():
            break
        lead += token
    lines = model.count("\n")
    start = len(head)
    for _ in range(lines + 1):
        start = head.rfind("\n", 0, start)
        if start < 0:
            break
    start += 1
    if len(headers) == 1:
        lead = _opening(model)
    at = head.find(lead, start) if lead else -1
    if at >= 0:
        return at
    return start if not lead else len(head)


def _opening(header: str) -> str:
    """The constant beginning of a lone header: up to its first number, quote or colon."""
    found = re.match(r"[^\d\"':=]*", header)
    return found.group() if found else ""


def _runs(text: str, own: Sequence[str]) -> list[tuple[int, int]]:
    """Where numbers stand that may count places: outside the chunk's own words. A bare number is nobody's own."""
    taken: list[tuple[int, int]] = []
    for word in own:
        if len(word) > 1 and not word.isdecimal():
            at = text.find(word)
            while at >= 0:
                taken.append((at, at + len(word)))
                at = text.find(word, at + len(word))
    spans = [match.span() for match in _DIGITS.finditer(text)]
    return [(start, end) for start, end in spans if not any(low <= start < high for low, high in taken)]


def _counted(texts: Sequence[str], own: Sequence[Sequence[str]]) -> tuple[Wrapper, ...]:
    """The texts with those numbers as counts that rise by one from each place to the next."""
    runs = [_runs(text, words) for text, words in zip(texts, own, strict=True)]
    slots: dict[int, Count] = {}
    for order in (range(min(map(len, runs), default=0)), range(-1, -1 - min(map(len, runs), default=0), -1)):
        for index in order:
            words = [text[slice(*run[index])] for text, run in zip(texts, runs, strict=True)]
            base = int(words[0]) if len(words[0]) < 6 else -1
            if base < 0 or any(len(w) > 6 or int(w) != base + place for place, w in enumerate(words)):
                break
            width = len(words[0]) if words[0].startswith("0") and len(words[0]) > 1 else 0
            slots[index] = Count(base, width)
    made: list[Wrapper] = []
    for place, (text, run) in enumerate(zip(texts, runs, strict=True)):
        parts: list[str | Count | Titled] = []
        at = 0
        for index, (start, end) in enumerate(run):
            count = slots.get(index) or slots.get(index - len(run))
            if count is not None and f"{count.base + place:0{count.width}d}" == text[start:end]:
                parts += [text[at:start], count]
                at = end
        parts.append(text[at:])
        made.append(Wrapper(tuple(part for part in parts if part != "")))
    return tuple(made)


def _shared(wrappers: Sequence[Wrapper], titles: Sequence[str]) -> Wrapper:
    """A wrapper for a chunk that the prompt did not hold: what all have in common, its own title in between.

    Where the wrappers differ in figures alone (scores), those of the first one stay.
    """
    if all(wrapper == wrappers[0] for wrapper in wrappers):
        return wrappers[0]
    if all(title and title in "".join(_words(wrapper)) for wrapper, title in zip(wrappers, titles, strict=True)):
        return _untitled(wrappers[0], titles[0])
    pieces = [_spread(wrapper) for wrapper in wrappers]
    size = min(map(len, pieces))
    front = next((i for i in range(size) if any(p[i] != pieces[0][i] for p in pieces)), size)
    back = next((i for i in range(size - front) if any(p[-1 - i] != pieces[0][-1 - i] for p in pieces)), size - front)
    end = pieces[0][len(pieces[0]) - back :]
    middles = ["".join(part for part in p[front : len(p) - back] if isinstance(part, str)) for p in pieces]
    if not any(character.isalpha() for middle in middles for character in middle):
        return wrappers[0]
    return Wrapper((*pieces[0][:front], Titled(), *end))


def _words(wrapper: Wrapper) -> list[str]:
    return [part for part in wrapper.parts if isinstance(part, str)]


def _untitled(wrapper: Wrapper, title: str) -> Wrapper:
    parts: list[str | Count | Titled] = []
    for part in wrapper.parts:
        if isinstance(part, str) and title in part:
            before, _, after = part.partition(title)
            parts += (before, Titled(), after)
        else:
            parts.append(part)
    return Wrapper(tuple(part for part in parts if part != ""))


def _spread(wrapper: Wrapper) -> list[str | Count | Titled]:
    spread: list[str | Count | Titled] = []
    for part in wrapper.parts:
        if isinstance(part, str):
            spread += part
        else:
            spread.append(part)
    return spread
