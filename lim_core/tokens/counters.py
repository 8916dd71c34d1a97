"""Counting tokens: exactly for the OpenAI families, else an estimate with its band. Nothing is ever downloaded."""

from __future__ import annotations

import re
import threading
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import ceil, floor
from statistics import median
from typing import Protocol

import numpy as np

from lim_core.tokens.estimate import token_shares
from lim_core.types import Counter, Message, Prompt, TokenCount

# Of a reported count over the lower end of our own: below this the server did not read all (design.md, section 3).
READ_SHARE = 0.9
# What chat templates add. A message: 3 to 5 tokens for its role and marks (OpenAI's cookbook says 3 and the role; Llama 3
# and ChatML 4 or 5). A prompt: the opening of the reply, and in Llama 3 and Qwen a preamble of 20 to 30 tokens.
_PER_MESSAGE = 4
_PER_PROMPT = 3
_MOST_PER_MESSAGE = 8
_MOST_PER_PROMPT = 40
# bpe-openai refuses texts of a million characters.
_PIECE = 500_000
_EXACT_FAMILIES = (
    (re.compile(r"(?:chatgpt-4o|gpt-4o|gpt-4\.1|gpt-4\.5|gpt-5|gpt-oss|o[134])(?:$|[-.:@])"), "o200k_base"),
    (re.compile(r"(?:gpt-4|gpt-3\.5|gpt-35)(?:$|[-.:@])"), "cl100k_base"),
)
# gpt-oss puts its own system message of some 70 tokens first.
_OSS_PREAMBLE = 150


@dataclass(frozen=True, slots=True)
class TokenSpan:
    """Where one chunk stands in a prompt: half-open token range, and the prompt's tokens. `total` counts the template."""

    chunk_id: str
    start: int
    end: int
    total: int


@dataclass(frozen=True, slots=True)
class Place:
    """A point in a prompt: 0-based message and character in it."""

    message: int
    char: int


@dataclass(frozen=True, slots=True)
class Offsets:
    """Tokens before each place asked for, in the order asked, and the tokens of the whole prompt."""

    before: tuple[int, ...]
    total: TokenCount


@dataclass(frozen=True, slots=True)
class Observed:
    """A prompt that was answered, and the prompt tokens its server reported."""

    messages: tuple[Message, ...]
    reported: int


def counter_for(model_name: str | None) -> Counter:
    """The best counter that needs no server: exact for OpenAI families, an estimate for any other name and for None.

    Prefixes of routers ("openai/gpt-4o") and of fine-tunes ("ft:gpt-4o-mini:...") are understood. Never raises.
    """
    name = (model_name or "").strip().lower().rsplit("/", 1)[-1].removeprefix("ft:")
    for family, encoding in _EXACT_FAMILIES:
        if family.match(name):
            return OpenAICounter(encoding, _OSS_PREAMBLE if name.startswith("gpt-oss") else _MOST_PER_PROMPT)
    return EstimateCounter()


@dataclass(frozen=True, slots=True)
class EstimateCounter:
    """Estimates by script and word length, for a model whose tokenizer is unknown; see token_estimate.py for the band."""

    source: str = "estimate"

    def count(self, text: str) -> TokenCount:
        """Tokens of a bare text; `n` is the geometric middle of the band."""
        shares = token_shares(text)
        return _banded(float(shares.low.sum(dtype=float)), float(shares.high.sum(dtype=float)), self.source)

    def count_messages(self, messages: Sequence[Message]) -> TokenCount:
        """Tokens of a prompt, with room in the band for a chat template of unknown make."""
        shares = [token_shares(message.content) for message in messages]
        body = _banded(
            sum(float(s.low.sum(dtype=float)) for s in shares),
            sum(float(s.high.sum(dtype=float)) for s in shares),
            self.source,
        )
        return _with_template(body, len(messages), _MOST_PER_PROMPT)


@dataclass(frozen=True, slots=True)
class OpenAICounter:
    """Counts with OpenAI's own tables. A text is exact; of a prompt only the few template tokens are uncertain."""

    encoding: str
    most_per_prompt: int = _MOST_PER_PROMPT

    @property
    def source(self) -> str:
        """`bpe-openai:` and the name of the table."""
        return f"bpe-openai:{self.encoding}"

    def count(self, text: str) -> TokenCount:
        """Tokens of a bare text, exact."""
        n = self._tokens(text)
        return TokenCount(n, n, n, self.source)

    def count_messages(self, messages: Sequence[Message]) -> TokenCount:
        """Tokens of a prompt: the texts, plus 3 a message, its role, and 3 for the reply (OpenAI cookbook)."""
        n = sum(self._tokens(message.content) for message in messages)
        return _with_template(TokenCount(n, n, n, self.source), len(messages), self.most_per_prompt)

    def _tokens(self, text: str) -> int:
        table = _open_table(self.encoding)
        if len(text) <= _PIECE:
            return len(table.encode_ordinary(text))
        return sum(len(table.encode_ordinary(text[at : at + _PIECE])) for at in range(0, len(text), _PIECE))


@dataclass(frozen=True, slots=True)
class CalibratedCounter:
    """Another counter, scaled by what servers reported for prompts other than the one under test."""

    counter: Counter
    low: float
    middle: float
    high: float
    observations: int

    @property
    def source(self) -> str:
        """The counter's source, and that it was calibrated."""
        return f"{self.counter.source}, calibrated on {self.observations}"

    def count(self, text: str) -> TokenCount:
        """Tokens of a bare text."""
        return self._scale(self.counter.count(text))

    def count_messages(self, messages: Sequence[Message]) -> TokenCount:
        """Tokens of a whole prompt."""
        return self._scale(self.counter.count_messages(messages))

    def _scale(self, count: TokenCount) -> TokenCount:
        middle = round(count.n * self.middle)
        return TokenCount(
            middle, min(middle, floor(count.n * self.low)), max(middle, ceil(count.n * self.high)), self.source
        )


def calibrated(counter: Counter, observed: Iterable[Observed], under_test: Sequence[Message] = ()) -> Counter:
    """Narrow an estimate by reported usage; an exact counter, or one without a usable observation, comes back as it is.

    A silent truncation reports too few tokens, and must not teach the counter that this is normal. So the prompt under
    test is left out, and so is any report below `READ_SHARE` of the lower end of our own band. The new band spans the
    observed ratios, widened by 15%, or by 5% from five observations on.
    """
    if counter.count("tokens").exact:
        return counter
    tested = tuple(under_test)
    ratios = []
    for seen in observed:
        if seen.messages == tested:
            continue
        own = counter.count_messages(seen.messages)
        if own.n > 0 and seen.reported >= READ_SHARE * own.low:
            ratios.append(seen.reported / own.n)
    if not ratios:
        return counter
    slack = 0.05 if len(ratios) >= 5 else 0.15
    return CalibratedCounter(counter, min(ratios) * (1 - slack), median(ratios), max(ratios) * (1 + slack), len(ratios))


def token_spans(prompt: Prompt, counter: Counter) -> tuple[TokenSpan, ...]:
    """The token range of every chunk laid out in a prompt, in the order of `prompt.spans`."""
    places = [Place(span.message, at) for span in prompt.spans for at in (span.start, span.end)]
    offsets = token_offsets(prompt.messages, places, counter)
    return tuple(
        TokenSpan(span.chunk_id, offsets.before[2 * i], offsets.before[2 * i + 1], offsets.total.n)
        for i, span in enumerate(prompt.spans)
    )


def token_offsets(messages: Sequence[Message], places: Sequence[Place], counter: Counter) -> Offsets:
    """Tokens before each place, for any number of places at the cost of one count.

    OpenAI tables count the text between two neighbouring places, off by at most one token each. For any other counter
    (a server's may cost a request) the whole is counted once and shared out by the estimate's weights.
    """
    total = counter.count_messages(messages)
    cut_here: list[set[int]] = [set() for _ in messages]
    for place in places:
        cut_here[place.message].add(place.char)
    weights: list[dict[int, float]] = []
    for message, cuts in zip(messages, cut_here, strict=True):
        points = sorted({0, len(message.content), *(min(cut, len(message.content)) for cut in cuts)})
        if isinstance(counter, OpenAICounter):
            steps = [counter.count(message.content[a:b]).n for a, b in pairwise(points)]
            sums = np.concatenate([[0.0], np.cumsum(steps)]) if steps else np.zeros(1)
        else:
            shares = token_shares(message.content)
            sums = np.concatenate([[0.0], np.cumsum((shares.low + shares.high) / 2, dtype=float)])[points]
        weights.append(dict(zip(points, sums.tolist(), strict=True)))
    lengths = [len(message.content) for message in messages]
    text_weight = sum(weight[length] for weight, length in zip(weights, lengths, strict=True))
    template = min(float(total.n), _PER_MESSAGE * len(messages) + _PER_PROMPT)
    scale = (total.n - template) / text_weight if text_weight else 0.0
    head = template / (len(messages) + 1)
    opened, starts = 0.0, []
    for weight, length in zip(weights, lengths, strict=True):
        opened += head
        starts.append(opened)
        opened += weight[length] * scale
    before = tuple(
        round(starts[p.message] + weights[p.message][min(p.char, lengths[p.message])] * scale) for p in places
    )
    return Offsets(before, total)


class _Table(Protocol):
    def encode_ordinary(self, text: str) -> list[int]: ...


@dataclass(slots=True)
class _Tables:
    # Guards the one-time load: catch_warnings changes state that all threads share.
    lock: threading.Lock = field(default_factory=threading.Lock)
    opened: dict[str, _Table] = field(default_factory=dict)


_tables = _Tables()


def _open_table(encoding: str) -> _Table:
    with _tables.lock:
        if encoding not in _tables.opened:
            with warnings.catch_warnings():
                # It still reads its tables through importlib.resources.open_binary.
                warnings.simplefilter("ignore", DeprecationWarning)
                import bpe_openai

                _tables.opened[encoding] = bpe_openai.get_encoding(encoding)
        return _tables.opened[encoding]


def _banded(low: float, high: float, source: str) -> TokenCount:
    # One token either way: short texts break the averages that the factors are.
    if low == high == 0.0:
        return TokenCount(0, 0, 0, source)
    return TokenCount(max(1, round((low * high) ** 0.5)), max(0, floor(low) - 1), ceil(high) + 1, source)


def _with_template(body: TokenCount, messages: int, most_per_prompt: int) -> TokenCount:
    return TokenCount(
        body.n + _PER_MESSAGE * messages + _PER_PROMPT,
        body.low,
        body.high + _MOST_PER_MESSAGE * messages + most_per_prompt,
        body.source,
    )
