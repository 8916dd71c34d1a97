"""The arms of each experiment: which chunks, in which order, in which template, block by block.

A block is one order of the distractors, shared by all its arms, so arms are compared in pairs. Block 0 is the user's own
order; further blocks are distinct seeded orders, for a repeated order adds no evidence.
"""

from __future__ import annotations

import math
import random
from collections import Counter as Tally
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations

from lim_core.importers.prompt.template import template_of
from lim_core.prompts import DEFAULT_LAYOUT, as_sent, closed_book
from lim_core.types import Case, Chunk, Frame, Trial

# Depths of the named slots, as shares of the way from the first slot to the last.
NAMED_SLOTS: Mapping[str, float] = {"first": 0.0, "q1": 0.25, "middle": 0.5, "q3": 0.75, "last": 1.0}
# Up to this many distractors all orders are listed; above it random draws hardly ever repeat.
_LIST_ALL = 6


@dataclass(frozen=True, slots=True)
class Split:
    """The chunks of a case, parted into gold (in their own order) and distractors (in the user's order)."""

    gold: tuple[Chunk, ...]
    distractors: tuple[Chunk, ...]
    own_index: int

    @property
    def last_index(self) -> int:
        """The largest index at which the gold group can begin."""
        return len(self.distractors)


@dataclass(frozen=True, slots=True)
class Slot:
    """A place for the gold: its arm's name and the 0-based index of the (first) gold chunk."""

    arm: str
    index: int


@dataclass(frozen=True, slots=True)
class Framing:
    """The frame that a case's arms are laid out in, and why it is not the user's own, where it is not."""

    frame: Frame
    note: str = ""


def frame_of(case: Case) -> Framing:
    """The user's own template, learnt from the prompt as sent, so that the test is of what production sends; else lim's."""
    learned = template_of(case)
    if learned.template is not None:
        return Framing(learned.template)
    return Framing(DEFAULT_LAYOUT, learned.reason)


def in_order(chunks: Sequence[Chunk], ids: Sequence[str]) -> tuple[Chunk, ...]:
    """Chunks in the order of `ids`; those not named keep their place in line behind them."""
    place = {name: index for index, name in enumerate(ids)}
    return tuple(sorted(chunks, key=lambda chunk: place.get(chunk.id, len(place))))


def split(chunks: Sequence[Chunk], gold_ids: Sequence[str]) -> Split:
    """Part chunks into gold and distractors; `own_index` is where the first gold chunk stands among them."""
    wanted = set(gold_ids)
    gold = tuple(chunk for chunk in chunks if chunk.id in wanted)
    rest = tuple(chunk for chunk in chunks if chunk.id not in wanted)
    own = next((index for index, chunk in enumerate(chunks) if chunk.id in wanted), 0)
    # Gold chunks move as one group, so where they are spread the group cannot begin past the last distractor.
    return Split(gold, rest, min(own, len(rest)))


def slot_index(share: float, parts: Split) -> int:
    """Index of the slot at `share` of the way: floor(share * (n - g)) for n chunks of which g are gold."""
    return math.floor(share * parts.last_index)


def named_slots(parts: Split, names: Sequence[str] = ("first", "middle", "last")) -> tuple[Slot, ...]:
    """Slots by name, in the order given; a slot that coincides with an earlier one is dropped.

    Besides the names of `NAMED_SLOTS`, `all` stands for every index and `own` for the gold's own place.
    """
    slots: list[Slot] = []
    taken: set[int] = set()
    for name in names:
        if name == "all":
            wanted = [Slot(f"position:{index}", index) for index in range(parts.last_index + 1)]
        elif name == "own":
            wanted = [Slot("position:own", parts.own_index)]
        elif name.isdecimal():
            wanted = [Slot(f"position:{int(name)}", min(int(name), parts.last_index))]
        else:
            wanted = [Slot(f"position:{name}", slot_index(NAMED_SLOTS[name], parts))]
        for slot in wanted:
            if slot.index not in taken:
                taken.add(slot.index)
                slots.append(slot)
    return tuple(slots)


def count_orders(distractors: Sequence[Chunk]) -> int:
    """How many distinct orders the distractors have: m! over the factorials of equal texts."""
    equal = Tally((chunk.title, chunk.text) for chunk in distractors)
    total = math.factorial(len(distractors))
    for times in equal.values():
        total //= math.factorial(times)
    return total


def distractor_orders(distractors: Sequence[Chunk], seed: int) -> Iterator[tuple[Chunk, ...]]:
    """Distinct orders, the given one first, then seeded ones until all are used up.

    Orders count as the same where they would make the same prompt, so chunks of equal title and text are interchangeable.
    """
    rng = random.Random(seed)  # noqa: S311 - an experiment's shuffle, not a secret
    seen: set[tuple[tuple[str, str], ...]] = set()

    def fresh(order: Sequence[Chunk]) -> bool:
        look = tuple((chunk.title, chunk.text) for chunk in order)
        if look in seen:
            return False
        seen.add(look)
        return True

    first = tuple(distractors)
    fresh(first)
    yield first
    if len(first) <= _LIST_ALL:
        rest = list(permutations(first))
        rng.shuffle(rest)
        yield from (order for order in rest if fresh(order))
        return
    left = count_orders(first) - 1
    while left > 0:
        order = list(first)
        rng.shuffle(order)
        if fresh(order):
            left -= 1
            yield tuple(order)


def place(order: Sequence[Chunk], gold: Sequence[Chunk], index: int) -> tuple[Chunk, ...]:
    """The gold group inserted so that it begins at `index`; the distractors keep their relative order."""
    return (*order[:index], *gold, *order[index:])


def position_block(
    case: Case,
    parts: Split,
    order: Sequence[Chunk],
    block: int,
    slots: Sequence[Slot],
    frame: Frame = DEFAULT_LAYOUT,
) -> tuple[Trial, ...]:
    """The trials of one block, in sending order.

    Even blocks run last slot to first, odd ones first to last: both walk the prompts' common prefixes without a jump back,
    and a slot is not confounded with time or cache.
    """
    ordered = sorted(slots, key=lambda slot: slot.index, reverse=block % 2 == 0)
    return tuple(
        Trial(
            case.id,
            slot.arm,
            block,
            0,
            frame.lay_out(case.question, place(order, parts.gold, slot.index)),
            slot.index,
        )
        for slot in ordered
    )


def oracle(case: Case, parts: Split, repeats: range, frame: Frame = DEFAULT_LAYOUT) -> tuple[Trial, ...]:
    """The gold alone, sent again for each repeat."""
    prompt = frame.lay_out(case.question, parts.gold)
    return tuple(Trial(case.id, "oracle", 0, repeat, prompt, 0) for repeat in repeats)


def closed(case: Case, repeats: range) -> tuple[Trial, ...]:
    """The question alone, sent again for each repeat."""
    prompt = closed_book(case.question)
    return tuple(Trial(case.id, "closed-book", 0, repeat, prompt) for repeat in repeats)


def sent(case: Case, repeats: range) -> tuple[Trial, ...]:
    """The prompt as production sent it, sent again for each repeat; empty where it is not known."""
    if case.prompt is None:
        return ()
    prompt = as_sent(case.prompt)
    return tuple(Trial(case.id, "as-sent", 0, repeat, prompt) for repeat in repeats)


def arranged_block(
    case: Case,
    parts: Split,
    arm: str,
    arranged: Sequence[Chunk],
    order: Sequence[Chunk],
    block: int,
    frame: Frame = DEFAULT_LAYOUT,
) -> Trial:
    """One remedy or ordering in one block.

    Block 0 is the arrangement itself. In further blocks the gold stays in the places that the arrangement gives it, and
    the distractors it keeps follow the block's order: so the arm shares its layout with the other arms of the block.
    """
    gold_ids = {chunk.id for chunk in parts.gold}
    chunks = tuple(arranged)
    if block:
        kept = {chunk.id for chunk in arranged}
        fill = iter(chunk for chunk in order if chunk.id in kept)
        chunks = tuple(chunk if chunk.id in gold_ids else next(fill) for chunk in arranged)
    own = next((index for index, chunk in enumerate(chunks) if chunk.id in gold_ids), None)
    return Trial(case.id, arm, block, 0, frame.lay_out(case.question, chunks), own)
