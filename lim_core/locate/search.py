"""Finding the retrieved chunks in a prompt as it was sent.

Both sides are reduced first (canonical.py), so that white space, escapes, quotes and markup do not matter. Chunks that
stand there whole are found and take their place; what is left of the prompt is then searched for parts of the others.
A part that belongs to a whole chunk is nobody else's: of two near-duplicates only the one that was sent is found.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from lim_core.locate.canonical import Canonical, canonical
from lim_core.locate.grams import GRAM, GramIndex, Matches, densest, extended, gram_hashes
from lim_core.locate.located import Found, Located, Region, State
from lim_core.types import Chunk, Message

if TYPE_CHECKING:
    from numpy.typing import NDArray

# A shorter text may well stand twice in a prompt without having been put there twice.
_DOUBLE_CHARS = 24
# Less than this share of a chunk is chance or boilerplate, unless it is one end of it, at least so long, as a clip leaves.
_CLIPPED_SHARE = 0.15
_CLIPPED_CHARS = 40
_MOST_COPIES = 64
# Marks are looked for in so many characters at an edge.
_EDGE = 400
_GAP = 200
# No text of a prompt can hold it: the reduction drops control characters.
_BETWEEN = "\0"
# What a client may put where it cut, and the stump of an escape that it cut through.
_MARK = (
    r"(?:…|\.{3,}|[\[(<{][^\[\](){}<>]{0,40}?(?:truncat|omitted|cut off|shortened|…|\.{3})[^\[\](){}<>]{0,40}[\])>}])"
)
_STUMP = r"\\u?[0-9a-fA-F]{0,3}|<[a-z/]{0,10}|&[#a-z0-9]{0,8}"
_MARK_END = re.compile(rf"(?:\s|{_MARK}|{_STUMP})+\Z", re.IGNORECASE)
# Numbers with their separators, and words: what must agree where only punctuation was changed.
_TOKENS = re.compile(r"\d+(?:[.,:/-]\d+)*|[^\W\d_]+")
_MARK_START = re.compile(rf"\A(?:\s|{_MARK})+", re.IGNORECASE)


def locate(chunks: Sequence[Chunk], messages: Sequence[Message], question: str = "") -> Located:
    """Find every chunk and the question in a prompt.

    A chunk without text counts as whole: there is nothing to lose. Of chunks with the same text each takes a copy of its
    own while there are enough, else they share one. A chunk that only stands inside a longer one counts as whole.
    """
    return _Search(chunks, messages, question).run()


class _Search:
    def __init__(self, chunks: Sequence[Chunk], messages: Sequence[Message], question: str) -> None:
        self.chunks = chunks
        self.messages = messages
        self.sides = [canonical(message.content) for message in messages]
        self.text = _BETWEEN.join(side.text for side in self.sides)
        self.bases = np.cumsum([0, *(len(side.text) + 1 for side in self.sides)])
        self.codes = np.frombuffer(self.text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
        self.taken = np.zeros(len(self.codes), dtype=bool)
        self.index = GramIndex.of(self.codes)
        self.question = canonical(question).text
        self.reduced = [canonical(chunk.text) for chunk in chunks]
        self.groups: dict[str, list[int]] = {}
        for number, side in enumerate(self.reduced):
            self.groups.setdefault(side.text, []).append(number)
        self.found: list[Found | None] = [None] * len(chunks)
        self.starts, self.ends = self._limits()
        self.begins_inside: str | None = None
        self.ends_inside: str | None = None

    def run(self) -> Located:
        self._place_empty()
        texts = sorted(self.groups, key=len, reverse=True)
        rest = [text for text in texts if not self._place_whole(text)]
        asked = self._find_question()
        self._place_parts(rest)
        for text in rest:
            for number in self.groups[text]:
                if self.found[number] is None:
                    self.found[number] = Found(self.chunks[number].id, State.MISSING, 0.0)
        found = tuple(each for each in self.found if each is not None)
        return Located(
            found,
            self.begins_inside,
            self.ends_inside,
            self._seam([each for each in found if each.state is State.CLIPPED]),
            asked,
            asked is None and self._ends_in_question(),
        )

    def _place_empty(self) -> None:
        """Chunks of marks alone are looked for as they are; those without any text are whole."""
        for number in self.groups.pop("", []):
            chunk = self.chunks[number]
            text = chunk.text.strip()
            self.found[number] = Found(chunk.id, State.WHOLE, 1.0, chunk.text)
            if text:
                places = [(at, message.content.find(text)) for at, message in enumerate(self.messages)]
                hits = [Region(at, start, start + len(text)) for at, start in places if start >= 0]
                self.found[number] = (
                    Found(chunk.id, State.WHOLE, 1.0, chunk.text, hits[0], tuple(hits[:1]))
                    if hits
                    else Found(chunk.id, State.MISSING, 0.0)
                )

    def _place_whole(self, text: str) -> bool:
        starts = self._occurrences(text)
        if not starts:
            return False
        size = len(text)
        # Longer chunks came before: a copy inside one of them is that chunk's text.
        own: list[int] = []
        for at in starts:
            if not self.taken[at : at + size].all() and (not own or at >= own[-1] + size):
                own.append(at)
        places = own or starts[:1]
        for at in places:
            self.taken[at : at + size] = True
        numbers = self.groups[text]
        spare = places[len(numbers) :] if size >= _DOUBLE_CHARS else []
        for turn, number in enumerate(numbers):
            mine = [places[min(turn, len(places) - 1)], *(spare if turn == 0 else ())]
            regions = tuple(self._region(at, at + size) for at in mine)
            state = State.DOUBLED if len(mine) > 1 else State.WHOLE
            chunk = self.chunks[number]
            self.found[number] = Found(chunk.id, state, 1.0, chunk.text, regions[0], regions)
        return True

    def _occurrences(self, text: str) -> list[int]:
        if len(text) < GRAM:
            return [at for at in self._scan(text) if self._stands_alone(at, at + len(text))]
        codes = self.reduced[self.groups[text][0]].codes
        last = len(text) - GRAM
        probes = sorted({last * i // 7 for i in range(8)})
        # Hashed in one go; those that straddle two probes are skipped.
        pieces = gram_hashes(np.concatenate([codes[at : at + GRAM] for at in probes]))[::GRAM]
        counts = self.index.counts(pieces)
        rarest = int(np.argmin(counts))
        if counts[rarest] == 0:
            return []
        if counts[rarest] > 4 * _MOST_COPIES:
            return self._scan(text)
        starts = (int(at) - probes[rarest] for at in self.index.places(pieces[rarest]))
        return [at for at in starts if at >= 0 and self.text.startswith(text, at)][:_MOST_COPIES]

    def _scan(self, text: str) -> list[int]:
        starts: list[int] = []
        at = self.text.find(text)
        while at >= 0 and len(starts) < _MOST_COPIES:
            starts.append(at)
            at = self.text.find(text, at + len(text))
        return starts

    def _stands_alone(self, start: int, end: int) -> bool:
        """Whether a short text is not part of a longer word or number: "12" does not stand in "112"."""
        region = self._region(start, end)
        content = self.messages[region.message].content
        edges = ((region.start - 1, region.start), (region.end - 1, region.end))
        return not any(
            a >= 0 and b < len(content) and all(content[i].isascii() and content[i].isalnum() for i in (a, b))
            for a, b in edges
        )

    def _find_question(self) -> Region | None:
        if not self.question:
            return None
        starts = self._scan(self.question)
        if not starts:
            # Templates often drop the question mark or put another one.
            bare = self.question.rstrip("?!.:;？。؟")
            starts = self._scan(bare) if len(bare) >= GRAM else []
        if len(self.question) >= GRAM:
            for at in starts:
                self.taken[at : at + len(self.question)] = True
        return self._region(starts[-1], min(starts[-1] + len(self.question), len(self.text))) if starts else None

    def _place_parts(self, texts: Sequence[str]) -> None:
        """Parts of chunks in what no whole chunk has taken, the best-covered chunk first, each part once."""
        free = self.index.without(self.taken)
        queue: list[tuple[int, int, str]] = []
        matched: dict[str, Matches] = {}

        def seek(text: str, number: int) -> int:
            codes = self.reduced[number].codes
            matches = free.matches(gram_hashes(codes), self.taken)
            if len(matches):
                matches = densest(matches, len(text))
                if len(matches) < len(text) // 8:
                    along = extended(matches, codes, self.codes, self.taken)
                    matches = along if len(along) > len(matches) else matches
            matched[text] = matches
            return len(matches)

        for text in texts:
            number = self.groups[text][0]
            if weight := seek(text, number):
                heapq.heappush(queue, (-weight, number, text))
        while queue:
            _, number, text = heapq.heappop(queue)
            there = matched[text].there
            if self.taken[there].any() or self.taken[there + GRAM - 1].any():
                # Part of it went to a better-covered chunk; look again at what is left.
                weight = seek(text, number)
                if weight and queue and (-weight, number) > queue[0][:2]:
                    heapq.heappush(queue, (-weight, number, text))
                    continue
            if len(matched[text]):
                self._place_part(text, matched[text])

    def _place_part(self, text: str, matches: Matches) -> None:
        covered = _spread(matches.own, len(text))
        self._fill(text, matches, covered)
        start, end = int(matches.there.min()), int(matches.there.max()) + GRAM
        share = float(covered.mean())
        lost = np.flatnonzero(~covered)
        whole = not any(text[at].isalnum() for at in lost.tolist()[:1000]) and len(lost) <= 1000
        head, tail = not whole and not covered[0], not whole and not covered[-1]
        opens, closes = head and start in self.starts, tail and end in self.ends
        one_end = covered[:_CLIPPED_CHARS].all() or covered[-_CLIPPED_CHARS:].all()
        if not (whole or opens or closes or one_end or share >= _CLIPPED_SHARE):
            return
        self.taken[start:end] |= _spread(matches.there - start, end - start)
        region = self._region(start, end)
        if opens:
            self.begins_inside = self.chunks[self.groups[text][0]].id
        if closes:
            self.ends_inside = self.chunks[self.groups[text][0]].id
        for number in self.groups[text]:
            chunk, side = self.chunks[number], self.reduced[number]
            if whole:
                self.found[number] = Found(chunk.id, State.WHOLE, 1.0, chunk.text, region, (region,))
            else:
                kept = _kept(chunk.text, side, covered)
                self.found[number] = Found(
                    chunk.id, State.CLIPPED, share, kept, region, (region,), lost_head=head, lost_tail=tail
                )

    def _fill(self, text: str, matches: Matches, covered: NDArray[np.bool_]) -> None:
        """Cover the gaps in which the prompt has the same words and numbers, with other punctuation between them."""
        own, there = matches.own, matches.there
        for at in np.flatnonzero((np.diff(own) > GRAM) & (np.diff(own) < _GAP)).tolist():
            a, b = int(own[at]) + GRAM, int(own[at + 1])
            c, d = int(there[at]) + GRAM, int(there[at + 1])
            # The words at the rim of a gap may be cut in two, so compare from the pieces' own ends on both sides.
            if c <= d <= c + _GAP and _TOKENS.findall(text[a:b]) == _TOKENS.findall(self.text[c:d]):
                covered[a:b] = True

    def _limits(self) -> tuple[set[int], set[int]]:
        """Where, in the reduced prompt, a message may be said to begin or to end: with a mark of a cut, or without it."""
        starts: set[int] = set()
        ends: set[int] = set()
        for base, side, message in zip(self.bases.tolist(), self.sides, self.messages, strict=False):
            head, tail = _MARK_START.match(message.content), _mark_end(message.content)
            first = int(np.searchsorted(side.places, head.end())) if head else 0
            last = int(np.searchsorted(side.places, tail.start())) if tail else len(side.text)
            starts.update(range(base, base + first + 1))
            ends.update(range(base + last, base + len(side.text) + 1))
        return starts, ends

    def _seam(self, clipped: Sequence[Found]) -> tuple[str, str] | None:
        inside = sorted(
            (f for f in clipped if f.region), key=lambda f: (f.region.message, f.region.start) if f.region else (0, 0)
        )
        for first, second in pairwise(inside):
            if first.region and second.region and first.lost_tail and second.lost_head:
                between = self.messages[first.region.message].content[first.region.end : second.region.start]
                same = first.region.message == second.region.message
                if same and _only_a_mark(between):
                    return (first.chunk_id, second.chunk_id)
        for each in inside:
            if each.region and not (each.lost_head or each.lost_tail):
                stretch = self.messages[each.region.message].content[each.region.start : each.region.end]
                if re.search(_MARK, stretch, re.IGNORECASE) and not re.search(_MARK, each.kept, re.IGNORECASE):
                    return (each.chunk_id, each.chunk_id)
        return None

    def _ends_in_question(self) -> bool:
        content = self.messages[-1].content if self.messages else ""
        mark = _mark_end(content)
        end = mark.start() if mark else len(content)
        tail = canonical(content[max(0, end - 8 * len(self.question) - _EDGE) : end]).text
        asked = self.question.rstrip("?!.:;？。؟")
        least = max(GRAM, len(asked) // 2)
        return any(tail.endswith(asked[:size]) for size in range(len(asked) - 1, least - 1, -1))

    def _region(self, start: int, end: int) -> Region:
        message = int(np.searchsorted(self.bases, start, "right")) - 1
        base, side = int(self.bases[message]), self.sides[message]
        return Region(message, side.start(start - base), side.end(min(end - base, len(side.text))))


def _mark_end(content: str) -> re.Match[str] | None:
    return _MARK_END.search(content, max(0, len(content) - _EDGE))


def _only_a_mark(between: str) -> bool:
    """Whether nothing, or only the mark of a cut, stands between two chunks; a label or a title is more than that."""
    if not between.strip():
        return True
    if len(between) > _EDGE or not re.search(_MARK, between, re.IGNORECASE):
        return False
    return not any(char.isalnum() for char in re.sub(_MARK, "", between, flags=re.IGNORECASE))


def _spread(starts: NDArray[np.int64], length: int) -> NDArray[np.bool_]:
    """Which of `length` characters lie in one of the pieces that start here."""
    steps = np.zeros(length + 1, dtype=np.int64)
    np.add.at(steps, starts, 1)
    np.add.at(steps, starts + GRAM, -1)
    return np.cumsum(steps[:-1]) > 0


def _kept(text: str, side: Canonical, covered: NDArray[np.bool_]) -> str:
    """The original text of the covered runs, with an ellipsis between two of them."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], covered.astype(np.int8), [0]])))
    runs = [text[side.start(int(a)) : side.end(int(b))] for a, b in zip(edges[::2], edges[1::2], strict=True)]
    return " … ".join(runs)
