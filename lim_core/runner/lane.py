"""How hard an endpoint is driven: requests in flight, adapting to 429s, and limits per minute."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Pace:
    """How hard the endpoint is driven. `in_flight` None takes what the model says it works on at once.

    `requests_per_minute` and `tokens_per_minute` (prompt tokens, as estimated from text) are upper limits; None is none.
    `longest_wait` is the longest Retry-After, in seconds, that is waited out; a longer one stops the run for resuming.
    """

    in_flight: int | None = None
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    tries: int = 5
    longest_wait: float = 60.0
    first_backoff: float = 0.5


class Lane:
    """How many requests may be in flight, adapting down on 429 and up again, and the per-minute limits.

    Additive increase, multiplicative decrease (Chiu and Jain 1989). Used from the loop thread only.
    """

    def __init__(self, pace: Pace, slots: int) -> None:
        self._most = pace.in_flight or slots
        self._limit = float(self._most)
        self._flying = 0
        self._change = asyncio.Event()
        self._pace = pace
        self._sent: deque[tuple[float, int]] = deque()
        self._slowed = 0.0
        self.answered = 0

    def try_acquire(self) -> bool:
        """Take a place in flight if there is one."""
        if self._flying >= int(self._limit):
            self._change.clear()
            return False
        self._flying += 1
        return True

    @property
    def wide(self) -> bool:
        """Whether more than one request may be in flight."""
        return self._most > 1

    async def changed(self) -> None:
        """Wait until a place may be free, or `poke` is called."""
        await self._change.wait()

    def release(self) -> None:
        self._flying -= 1
        self._change.set()

    def poke(self) -> None:
        self._change.set()

    def slow_down(self) -> None:
        # Requests that were in flight together are refused together: one halving for all of them.
        now = time.monotonic()
        if now - self._slowed > 1.0:
            self._slowed = now
            self._limit = max(1.0, self._limit / 2)

    def speed_up(self) -> None:
        self.answered += 1
        self._limit = min(float(self._most), self._limit + 1 / self._limit)

    async def pace(self, tokens: int) -> None:
        """Wait until the per-minute limits admit a request of this many prompt tokens."""
        requests, most = self._pace.requests_per_minute, self._pace.tokens_per_minute
        if requests is None and most is None:
            return
        while True:
            now = time.monotonic()
            while self._sent and now - self._sent[0][0] >= 60:
                self._sent.popleft()
            used = sum(count for _, count in self._sent)
            room = requests is None or len(self._sent) < requests
            if room and (most is None or used + tokens <= most or not self._sent):
                self._sent.append((now, tokens))
                return
            await asyncio.sleep(60 - (now - self._sent[0][0]) + 0.01)
