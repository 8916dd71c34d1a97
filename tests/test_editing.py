"""Changes to a case, one at a time, and the way back."""

from __future__ import annotations

import pytest

from lim_core.cases import NEEDS_QUESTION
from lim_core.cases.editing import Tick, answered, asked, marked, moved, prompted, sized, ticked
from lim_core.errors import InputError
from lim_core.types import Case, Chunk, Usage
from lim_core.ui.work import Work

CASE = Case("a", "Who?", tuple(Chunk(f"c{place}", f"text {place}") for place in range(4)))


def ids(case: Case) -> list[str]:
    return [chunk.id for chunk in case.chunks]


@pytest.mark.parametrize(
    ("start", "end", "order"),
    [(0, 3, ["c1", "c2", "c3", "c0"]), (3, 0, ["c3", "c0", "c1", "c2"]), (1, 2, ["c0", "c2", "c1", "c3"])],
)
def test_a_chunk_is_moved_and_the_others_keep_their_order(start: int, end: int, order: list[str]) -> None:
    assert ids(moved(CASE, start, end)) == order
    assert ids(CASE) == ["c0", "c1", "c2", "c3"]


@pytest.mark.parametrize(("start", "end"), [(-1, 0), (0, 4), (4, 0)])
def test_a_rank_that_is_not_there_is_refused(start: int, end: int) -> None:
    with pytest.raises(InputError, match="ranks from 1 to 4"):
        moved(CASE, start, end)


def test_ticks_stand_in_the_order_of_the_chunks_and_keep_ids_of_no_list_out() -> None:
    case = marked(CASE, ("c3", "c1"))
    assert case.gold_ids == ("c1", "c3")
    harmless = ticked(case, Tick.HARMLESS, "c1", True)
    assert (harmless.gold_ids, harmless.harmless_ids) == (("c3",), ("c1",))
    assert ticked(harmless, Tick.HARMLESS, "c1", False).harmless_ids == ()
    forbidden = ticked(case, Tick.FORBIDDEN, "c1", True)
    assert (forbidden.gold_ids, forbidden.forbidden_ids) == (("c1", "c3"), ("c1",))


def test_gold_in_candidates_or_of_unknown_ids_is_kept() -> None:
    case = Case("a", "Who?", CASE.chunks, gold_ids=("gone", "x"), candidates=(Chunk("x", "text"),))
    assert set(ticked(case, Tick.GOLD, "c0", True).gold_ids) == {"c0", "x", "gone"}


def test_question_answers_prompt_and_sizes() -> None:
    assert asked(CASE, " ").tags == (NEEDS_QUESTION,)
    assert asked(asked(CASE, " "), "Where?").tags == ()
    assert answered(CASE, " one \n\none\ntwo").answers == ("one", "two")
    assert prompted(CASE, " ").prompt is None
    kept = Case("a", "Who?", (), usage=Usage(7, 5))
    assert sized(kept, 10, None, None).usage == Usage(None, 5)
    assert sized(CASE, 10, 2, None).usage is None


def test_undo_goes_back_step_by_step_also_over_several_cases() -> None:
    other = Case("b", "When?", ())
    work = Work("d").changed("a", moved(CASE, 0, 1), "one").changed("b", asked(other, "x"), "two")
    assert work.undone().case(other) is other
    assert ids(work.undone().case(CASE)) == ["c1", "c0", "c2", "c3"]
    back = work.undone().undone()
    assert back.case(CASE) is CASE
    assert back.undone() == back
    assert back.serial > work.serial  # what was computed before is not taken for what is now
