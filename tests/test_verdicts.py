"""Verdicts that stage 4 must not give: on unscored brackets, on slots and chunk sets that were not the user's own."""

from dataclasses import replace

import pytest

from lim_core import runs
from lim_core.diagnose import summarise
from lim_core.prompts import lay_out
from lim_core.types import Cause, Chunk, Finding, Message, Status
from tests.questions import office_case
from tests.test_diagnose import arms, diagnose, hidden_template


def sent_as(case, chunks):
    return replace(case, prompt=lay_out(case.question, chunks).messages)


def position(document):
    return next(stage for stage in document["stages"] if stage["stage"] == "position")


@pytest.mark.parametrize("fault", ["content-filter", "tool-call", "empty"])
def test_an_oracle_that_was_never_scored_is_not_called_unable(fault):
    document = diagnose(office_case(), edge=1.0, middle=0.0, faults=[fault] * 4)
    assert document["cause"] == "UNDETERMINED"
    assert "could not be scored" in document["summary"]
    assert document["position"]["oracle"]["n"] == 0


def test_an_oracle_that_is_right_now_and_then_is_asked_eight_times():
    seen = set()
    for seed in range(6):
        document = diagnose(office_case(), profile="distracted", middle=0.0, oracle=0.3, fresh=True, seed=seed)
        oracle = document["position"]["oracle"]
        if document["cause"] == "CANNOT_ANSWER":
            assert (oracle["n"] == 8) == ("cannot reliably" in document["summary"]) == (oracle["correct"] > 0)
            seen.add(oracle["n"])
    assert 8 in seen


def test_an_oracle_cut_by_the_output_cap_is_output_budget():
    document = diagnose(office_case(), edge=1.0, middle=0.0, faults=["reasoning"] * 4)
    assert document["cause"] == "OUTPUT_BUDGET"


@pytest.mark.parametrize(("model", "cause"), [("scripted", "OUTPUT_BUDGET"), ("some-model", "UNDETERMINED")])
def test_an_output_budget_spent_by_another_model_is_no_fault_of_the_case(model, cause):
    document = diagnose(office_case(model=model), edge=1.0, middle=0.0, faults=["reasoning"] * 4)
    assert document["cause"] == cause
    assert "OUTPUT_BUDGET" not in document["also"]
    if cause == "UNDETERMINED":
        assert position(document)["status"] == "undetermined"
        assert "a limit of that model, not of some-model" in document["summary"]


def test_a_bracket_with_one_unscored_call_is_asked_once_more():
    document = diagnose(office_case(), edge=1.0, middle=0.0, faults=["content-filter"])
    assert document["cause"] == "LOST_IN_THE_MIDDLE"
    assert document["position"]["oracle"]["n"] == 4
    assert document["outcomes"]["error"] == 1


def test_lost_in_the_middle_needs_a_closed_book_that_was_seen_to_be_wrong():
    document = diagnose(office_case(), edge=1.0, middle=0.0, faults=["ok"] * 4 + ["content-filter"] * 4)
    assert document["position"]["closed_book"]["n"] == 0
    assert document["position"]["shape"] == "u"
    assert document["cause"] == "POSITION_SENSITIVE"


def test_unscored_trials_keep_an_early_end_from_coming_early():
    """Six blocks with one unscored trial are five observations at that slot: a seventh block is needed."""
    document = diagnose(office_case(), profile="flat", edge=1.0, faults=["ok"] * 8 + ["content-filter"])
    assert document["cause"] == "NO_FAULT_FOUND"
    assert min(point["n"] for point in document["position"]["points"]) == 6
    assert document["position"]["blocks"] == 7


def test_a_prompt_with_chunks_left_out_is_no_proof_against_the_template():
    case = office_case()
    kept = (*(Message("user", chunk.text) for chunk in case.chunks[4:12]), Message("user", case.question))
    document = diagnose(replace(case, prompt=kept), profile="flat", edge=1.0)
    assert document["position"]["as_sent"]["correct"] == 0
    assert position(document)["status"] == "undetermined"
    assert document["cause"] == "UNDETERMINED"


def test_chunks_that_the_prompt_builder_left_out_are_not_tested_or_brought_back():
    """Seven of sixteen were sent, in an order of the builder's own: they are the case that production has."""
    case = office_case(gold=7, answer="Ivo Stanek")
    sent = tuple(case.chunks[index] for index in (12, 3, 9, 7, 1, 5, 10))
    document = diagnose(sent_as(case, sent), edge=1.0, middle=0.0)
    assert document["cause"] == "LOST_IN_THE_MIDDLE"
    assert document["position"]["order_as_sent"] == [chunk.id for chunk in sent]
    assert document["position"]["own_index"] == 3
    assert max(point["index"] for point in document["position"]["points"]) == 6
    assert len(document["position"]["left_out"]) == 9
    assert "Tested are the 7 chunks that were sent; 9 retrieved ones were left out" in document["summary"]
    notes = {remedy["name"]: remedy["note"] for remedy in document["remedies"]}
    assert notes["rerank:bm25"] == "ranks the gold chunk 1 of 7"


def test_a_remedy_that_makes_the_prompt_as_sent_again_is_not_tried():
    """Production reverses what was retrieved: reversing is no remedy there, the retrieved order would be one."""
    case = office_case(gold=7)
    document = diagnose(sent_as(case, case.chunks[::-1]), edge=1.0, middle=0.0)
    assert document["cause"] == "LOST_IN_THE_MIDDLE"
    remedies = {remedy["name"]: remedy for remedy in document["remedies"]}
    assert not remedies["ordering:reverse"]["tried"]
    assert "leaves every chunk where it is" in remedies["ordering:reverse"]["note"]


def test_gold_that_was_read_right_among_the_chunks_sent_is_not_blamed_on_those_left_out():
    case = office_case(gold=7, answer="Ivo Stanek")
    document = diagnose(sent_as(case, case.chunks[7:12]), edge=1.0, middle=0.0)
    assert arms(document)["position:first"]["index"] == document["position"]["own_index"] == 0
    assert document["cause"] == "NOT_REPRODUCED"


def test_a_prompt_that_clips_the_gold_leaves_the_test_to_all_that_was_retrieved():
    case = office_case(gold=7)
    clipped = replace(case.chunks[7], text=case.chunks[7].text.removesuffix(" at the Lindholm office."))
    document = diagnose(sent_as(case, (*case.chunks[3:7], clipped, *case.chunks[8:12])), edge=1.0, middle=0.0)
    assert document["cause"] == "LOST_IN_THE_MIDDLE"
    assert "left_out" not in document["position"]
    assert max(point["index"] for point in document["position"]["points"]) == 15
    assert document["position"]["order_as_sent"] is None


def test_the_own_slot_is_unknown_where_assembly_was_not_asked_for():
    case = office_case(gold=0, answer="Ivo Stanek")
    settings = runs.RunSettings(
        model="scripted",
        stages=("position",),
        options={"needles": list(case.answers), "edge": 1.0, "middle": 0.0},
    )
    asked = sent_as(case, (*case.chunks[1:8], case.chunks[0], *case.chunks[8:]))
    document = runs.run_diagnosis(asked, settings, store=None, run_id="test").document
    assert document["cause"] == "LOST_IN_THE_MIDDLE"
    assert "where the gold chunk was sent" not in document["summary"]


def test_a_prompt_as_sent_without_the_question_is_tested_in_a_plain_template_that_asks_it():
    case = office_case()
    unasked = (Message("user", "\n\n".join(chunk.text for chunk in case.chunks) + "\n\nAnswer briefly:"),)
    document = diagnose(replace(case, prompt=unasked), edge=1.0, middle=0.0)
    assert document["position"]["template"] == "lim-qa-1"
    assert "the question is not in the prompt as sent" in document["position"]["template_note"]
    assert document["position"]["oracle"]["correct"] == 4


def test_gold_chunks_spread_over_the_prompt_have_no_slot_of_their_own():
    case = office_case(gold=0, answer="Ivo Stanek")
    spread = replace(case, gold_ids=("c0", "c8"))
    document = diagnose(sent_as(spread, spread.chunks), edge=1.0, middle=0.0)
    assert document["cause"] != "NOT_REPRODUCED"


def test_a_gold_slot_that_fails_now_and_then_is_left_open():
    case = office_case(gold=3, answer="Orla Finch")
    profile = "0:1,0.19:1,0.2:0.7,0.21:0,0.9:0,1:1"
    causes = set()
    for seed in range(8):
        document = diagnose(sent_as(case, case.chunks), profile=profile, seed=seed)
        own = arms(document)["position:own"]
        if 2 * own["correct"] > own["n"] and own["correct"] < own["n"] and document["position"]["e_value"] >= 20:
            causes.add(document["cause"])
            assert position(document)["status"] == "undetermined"
    assert causes == {"UNDETERMINED"}


def test_a_question_marked_as_not_answerable_is_not_tested():
    document = diagnose(office_case(answerable=False), edge=1.0, middle=0.0)
    assert position(document)["status"] == "skipped"
    assert document["calls"]["made"] == 0


def test_a_missing_second_gold_chunk_is_not_put_down_to_the_model():
    case = office_case()
    second = Chunk("g2", "The office moved to Ellen Way.", "Offices")
    case = replace(case, gold_ids=("c7", "g2"), candidates=(*case.chunks, second))
    document = diagnose(case, profile="distracted", middle=0.0, oracle=0.0)
    assert document["cause"] == "UNDETERMINED"
    assert "RANKED_OUT" in document["also"]
    assert "g2" in position(document)["summary"]


def test_equal_distractors_give_too_few_orders():
    case = office_case(n=1, gold=0)
    same = tuple(Chunk(f"d{i}", "The office is closed on Mondays.", "Hours") for i in range(5))
    document = diagnose(replace(case, chunks=(*case.chunks, *same)), edge=1.0, middle=0.0)
    assert document["cause"] == "UNDETERMINED"
    assert "too few chunks" in document["summary"]


def test_four_chunks_that_stay_unsettled_are_not_told_to_buy_more_calls():
    for seed in range(4):
        document = diagnose(office_case(n=4, gold=1), profile="flat", edge=0.5, seed=seed)
        if document["cause"] == "UNDETERMINED":
            assert "distinct orders" in document["summary"]
            assert "more calls would" not in document["summary"]
            return
    raise AssertionError("no unsettled run among the seeds")


def test_a_known_answer_is_said_beside_a_model_that_the_gold_chunk_misleads():
    document = diagnose(office_case(), profile="distracted", middle=0.0, oracle=0.0, closed_book=1.0)
    assert document["cause"] == "CANNOT_ANSWER"
    assert document["also"] == ["CLOSED_BOOK_KNOWN"]


def test_a_prompt_as_sent_that_cannot_be_scored_leaves_it_open():
    case = office_case()
    sent = lay_out(case.question, case.chunks).messages
    # Eight brackets and six blocks of three; block 0 holds the prompt as sent, so three more of it are sent.
    faults = ["ok"] * (8 + 18) + ["content-filter"] * 4
    document = diagnose(office_case(prompt=sent), profile="flat", edge=1.0, faults=faults)
    assert document["cause"] == "UNDETERMINED"
    assert "what the prompt as sent gives is unknown" in document["summary"]


def test_a_cap_met_while_the_prompt_as_sent_is_tried_leaves_it_open():
    case = office_case()
    asked = office_case(prompt=lay_out(case.question, case.chunks).messages)
    document = diagnose(asked, profile="flat", edge=1.0, max_calls=27)
    assert document["cause"] == "UNDETERMINED"
    assert "cap of 27" in document["summary"]


def test_what_stopped_a_test_is_told_with_one_full_stop():
    def done_by(calls, case, **options):
        seen = []
        settings = runs.RunSettings(
            model="scripted",
            options={
                "needles": list(case.answers),
                "edge": 1.0,
                "middle": 1.0,
                "profile": "flat",
                "slots": 1,
                **options,
            },
        )
        return runs.run_diagnosis(
            case, settings, store=None, run_id="test", report=seen.append,
            cancelled=lambda: bool(seen) and seen[-1].calls >= calls,
        ).document  # fmt: skip

    case = office_case()
    asked = replace(case, prompt=lay_out(case.question, case.chunks).messages)
    told = [
        done_by(2, case, latency=0.05),
        done_by(14, case, latency=0.05),
        done_by(27, asked, latency=0.05),
        diagnose(case, window=100),
        diagnose(replace(case, model="other"), window=100),
        diagnose(case, edge=1.0, middle=0.0, faults=["reasoning"] * 4),
    ]
    for document in told:
        for text in (document["summary"], position(document)["summary"]):
            assert ".." not in text
            assert ".:" not in text
            assert ".)" not in text
    for document in told[:3]:
        assert "cancelled; what was finished is kept." in position(document)["summary"]


def test_a_template_needs_more_than_a_lucky_call_to_be_blamed():
    """The gold alone is right now and then in either template: chance makes one of them look better."""
    template = hidden_template(office_case())
    for seed in range(10):
        document = diagnose(
            office_case(prompt=template), profile="distracted", middle=0.0, oracle=0.6, closed_book=0.3, fresh=True,
            seed=seed,
        )  # fmt: skip
        shown, plain = document["position"]["oracle"], document["position"]["oracle_plain"]
        if plain is not None and plain["correct"] - shown["correct"] < 4 and document["cause"] == "PROMPT_SENSITIVE":
            raise AssertionError(document["summary"])


def test_what_the_calls_showed_is_told_before_a_field_that_was_lacking():
    findings = (
        Finding("truncation", Status.SKIPPED, "The window is not known."),
        Finding("position", Status.PASS, "Position makes no difference that matters here."),
    )
    assert (
        summarise(Cause.UNDETERMINED, findings, ()) == "Undetermined: Position makes no difference that matters here."
    )
