"""Arms: slots, distinct blocks, the same chunks in every arm, prompts that share their prefixes."""

import math
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lim_core import arms
from lim_core.prompts import Layout, closed_book, lay_out
from lim_core.types import Case, Chunk


def case(n: int, gold: int = 0) -> Case:
    chunks = tuple(Chunk(f"c{i}", f"Passage {i} speaks of matter {i}.", title=f"T{i}") for i in range(n))
    return Case("case", "What is it?", chunks, answers=("x",), gold_ids=(f"c{gold}",))


def parts(one: Case) -> arms.Split:
    return arms.split(one.chunks, one.gold_ids)


def test_named_slots_sit_at_floor_of_the_share():
    slots = arms.named_slots(parts(case(16)), ("first", "q1", "middle", "q3", "last"))
    assert [(slot.arm, slot.index) for slot in slots] == [
        ("position:first", 0),
        ("position:q1", 3),
        ("position:middle", 7),
        ("position:q3", 11),
        ("position:last", 15),
    ]


def test_slots_that_coincide_are_dropped():
    assert [slot.index for slot in arms.named_slots(parts(case(2)), ("first", "q1", "middle", "q3", "last"))] == [0, 1]
    own = arms.named_slots(parts(case(16, gold=7)), ("first", "middle", "last", "own"))
    assert [slot.arm for slot in own] == ["position:first", "position:middle", "position:last"]
    assert arms.named_slots(parts(case(16, gold=5)), ("first", "own"))[1] == arms.Slot("position:own", 5)


def test_all_gives_every_slot_once():
    assert [slot.index for slot in arms.named_slots(parts(case(5)), ("all",))] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("m", [0, 1, 2, 3, 4, 5])
def test_orders_are_distinct_and_all_of_them(m):
    distractors = case(m + 1).chunks[1:]
    orders = list(arms.distractor_orders(distractors, seed=1))
    assert len(orders) == len(set(orders)) == math.factorial(m) == arms.count_orders(distractors)
    assert orders[0] == distractors


def test_equal_texts_do_not_make_new_orders():
    same = [Chunk("a", "same"), Chunk("b", "same"), Chunk("c", "other")]
    assert arms.count_orders(same) == 3
    assert len(list(arms.distractor_orders(same, 0))) == 3
    many = [Chunk(str(i), "same") for i in range(9)]
    assert len(list(arms.distractor_orders(many, 0))) == 1


def test_many_distractors_give_distinct_seeded_orders():
    distractors = case(20).chunks[1:]
    first = list(islice(arms.distractor_orders(distractors, 5), 64))
    assert len(set(first)) == 64
    assert first == list(islice(arms.distractor_orders(distractors, 5), 64))
    assert first[1:] != list(islice(arms.distractor_orders(distractors, 6), 64))[1:]


def test_a_block_moves_only_the_gold():
    one = case(12, gold=4)
    split = parts(one)
    order = next(islice(arms.distractor_orders(split.distractors, 0), 1, None))
    slots = arms.named_slots(split, ("first", "q1", "middle", "q3", "last"))
    trials = arms.position_block(one, split, order, 1, slots)
    for trial in trials:
        laid = [span.chunk_id for span in trial.prompt.spans]
        assert laid[trial.slot] == "c4"
        assert [name for name in laid if name != "c4"] == [chunk.id for chunk in order]
    assert [trial.slot for trial in trials] == [0, 2, 5, 8, 11]
    assert [trial.slot for trial in arms.position_block(one, split, order, 2, slots)] == [11, 8, 5, 2, 0]


def test_several_gold_chunks_move_together_in_their_order():
    one = case(8)
    split = arms.split(one.chunks, ("c6", "c2"))
    assert [chunk.id for chunk in split.gold] == ["c2", "c6"]
    assert split.own_index == 2
    last = arms.named_slots(split, ("last",))[0]
    assert last.index == 6
    placed = arms.place(split.distractors, split.gold, last.index)
    assert [chunk.id for chunk in placed][-2:] == ["c2", "c6"]


def test_a_remedy_keeps_its_slot_and_takes_the_blocks_distractors():
    one = case(6, gold=3)
    split = parts(one)
    arranged = (one.chunks[3], *one.chunks[:3])
    orders = list(arms.distractor_orders(split.distractors, 0))
    real = arms.arranged_block(one, split, "rerank:x+k:4", arranged, orders[0], 0)
    assert [span.chunk_id for span in real.prompt.spans] == ["c3", "c0", "c1", "c2"]
    other = arms.arranged_block(one, split, "rerank:x+k:4", arranged, orders[5], 5)
    kept = [chunk.id for chunk in orders[5] if chunk.id in {"c0", "c1", "c2"}]
    assert [span.chunk_id for span in other.prompt.spans] == ["c3", *kept]
    assert other.slot == 0


def test_oracle_repeats_are_sent_again_each():
    trials = arms.oracle(case(4), parts(case(4)), range(4))
    assert [trial.repeat for trial in trials] == [0, 1, 2, 3]
    assert len({trial.prompt for trial in trials}) == 1


chunk_texts = st.lists(st.tuples(st.text(max_size=40), st.text(max_size=8)), max_size=6)


@given(chunk_texts, st.sampled_from(["after", "before_and_after"]), st.booleans())
def test_spans_cover_exactly_the_chunk_texts(texts, position, citations):
    chunks = [Chunk(f"c{i}", text, title) for i, (text, title) in enumerate(texts)]
    prompt = lay_out("Why?", chunks, Layout(question_position=position, citations=citations))
    content = prompt.messages[0].content
    assert [content[span.start : span.end] for span in prompt.spans] == [chunk.text for chunk in chunks]
    assert content.endswith("Question: Why?\nAnswer:")
    assert content.count("Question: Why?") >= (2 if position == "before_and_after" else 1)


def test_documents_are_numbered_in_presentation_order():
    content = lay_out("Q", [Chunk("z", "one", "A"), Chunk("y", "two")]).messages[0].content
    assert "\nDocument [1](Title: A) one\nDocument [2] two\n\nQuestion: Q\nAnswer:" in content


def test_closed_book_is_the_question_alone():
    assert closed_book("Q").messages[0].content == "Question: Q\nAnswer:"
