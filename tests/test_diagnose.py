"""The diagnosis over real HTTP on the scripted model: every cause that stage 4 can name, and the ways it must not."""

import json

import pytest

from lim_core import arms as engine
from lim_core import runs
from lim_core.prompts import lay_out
from lim_core.types import Chunk, Message
from tests.questions import OFFICERS, office_case


def diagnose(case, *, max_calls=200, seed=0, cancelled=lambda: False, **options):
    options.setdefault("needles", list(case.answers))
    settings = runs.RunSettings(model="scripted", max_calls=max_calls, seed=seed, options=options)
    outcome = runs.run_diagnosis(case, settings, store=None, run_id="test", cancelled=cancelled)
    json.dumps(outcome.document, allow_nan=False)
    return outcome.document


def arms(document):
    return {point["arm"]: point for point in document["position"]["points"]}


def test_a_planted_u_is_lost_in_the_middle():
    document = diagnose(office_case(), edge=1.0, middle=0.0)
    position = document["position"]
    assert document["cause"] == "LOST_IN_THE_MIDDLE"
    assert position["shape"] == "u"
    assert position["e_value"] >= 20
    assert position["gap"] == 1.0
    assert position["blocks"] <= 8
    assert arms(document)["position:first"]["correct"] == position["blocks"]
    assert arms(document)["position:middle"]["index"] == 7
    assert position["oracle"]["n"] == 4
    assert position["oracle"]["distinct"] == 1
    assert document["same_model"] is None
    assert "on scripted" in document["summary"]


def test_made_counts_every_http_request_and_outcomes_every_trial():
    document = diagnose(office_case(), edge=1.0, middle=0.0)
    calls, outcomes = document["calls"], document["outcomes"]
    assert calls["made"] + calls["cached"] == sum(outcomes.values())
    assert calls["failed"] == calls["retried"] == 0
    assert calls["cost"] is None


@pytest.mark.parametrize(
    ("profile", "shape"), [("0:1,0.2:0,1:0", "primacy"), ("recency", "recency"), ("inverted", "inverted")]
)
def test_other_shapes_are_position_sensitive(profile, shape):
    document = diagnose(office_case(), profile=profile, edge=1.0, middle=0.0)
    assert document["cause"] == "POSITION_SENSITIVE"
    assert document["position"]["shape"] == shape


def test_a_cliff_is_named_with_five_slots():
    document = diagnose(office_case(), profile="0:1,0.3:1,0.4:0,1:0")
    assert document["cause"] == "POSITION_SENSITIVE"
    assert document["position"]["shape"] == "cliff"
    assert set(arms(document)) >= {"position:q1", "position:q3"}


def test_wrong_everywhere_but_right_alone_is_volume():
    document = diagnose(office_case(), profile="distracted", middle=0.0)
    assert document["cause"] == "DISTRACTED"
    assert document["position"]["blocks"] >= 6
    assert {remedy["name"] for remedy in document["remedies"]} >= {"rerank:bm25", "ordering:edges"}


def test_oracle_wrong_is_cannot_answer_and_stops_early():
    document = diagnose(office_case(), profile="distracted", middle=0.0, oracle=0.0)
    assert document["cause"] == "CANNOT_ANSWER"
    assert "0 of 4" in document["summary"]
    assert document["calls"]["made"] == 8
    assert document["position"]["points"] == []


def test_all_right_without_a_recorded_answer_is_no_fault():
    document = diagnose(office_case(), profile="flat", edge=1.0)
    assert document["cause"] == "NO_FAULT_FOUND"
    assert document["position"]["blocks"] == 6
    assert document["position"]["shape"] != "flat"
    assert document["remedies"] == []


def test_all_right_with_a_recorded_wrong_answer_is_not_reproduced():
    document = diagnose(office_case(answer="Ivo Stanek", model="other-model"), profile="flat", edge=1.0)
    assert document["cause"] == "NOT_REPRODUCED"
    assert document["same_model"] is False


def test_a_recorded_right_answer_costs_no_call():
    document = diagnose(office_case(answer=f"It is {OFFICERS[7]}."))
    assert document["cause"] == "UNDETERMINED"
    assert document["calls"]["made"] == 0
    assert "counts as right" in document["summary"]


def test_known_without_documents():
    document = diagnose(office_case(), profile="flat", edge=1.0, closed_book=1.0)
    assert document["cause"] == "CLOSED_BOOK_KNOWN"


def test_a_known_answer_that_the_middle_loses_is_position_sensitive():
    document = diagnose(office_case(), edge=1.0, middle=0.0, closed_book=1.0)
    assert document["cause"] == "POSITION_SENSITIVE"
    assert document["also"] == ["CLOSED_BOOK_KNOWN"]


def test_a_flat_model_is_not_called_lost_in_the_middle():
    for seed in range(6):
        document = diagnose(office_case(), profile="flat", edge=0.6, seed=seed, max_calls=120)
        assert document["cause"] == "UNDETERMINED", document["summary"]
        assert document["position"]["e_value"] < 20


def test_the_gold_where_it_is_read_right_is_not_blamed_on_position():
    case = office_case(gold=0)
    sent = lay_out(case.question, case.chunks).messages
    document = diagnose(office_case(gold=0, prompt=sent, answer="Ivo Stanek"), edge=1.0, middle=0.0)
    assert document["cause"] == "NOT_REPRODUCED"
    assert "POSITION_SENSITIVE" in document["also"]


def test_the_golds_own_slot_as_sent_is_an_arm():
    case = office_case(gold=4)
    sent = lay_out(case.question, case.chunks).messages
    document = diagnose(office_case(gold=4, prompt=sent), edge=1.0, middle=0.0)
    assert arms(document)["position:own"]["index"] == 4


def hidden_template(case):
    """A prompt in a template that the scripted model, which reads numbered documents only, cannot read."""
    return (Message("user", "\n\n".join(f"<p>{chunk.text}</p>" for chunk in case.chunks) + f"\n\n{case.question}"),)


def test_a_template_that_loses_the_answer_is_prompt_sensitive():
    document = diagnose(office_case(prompt=hidden_template(office_case())), profile="flat", edge=1.0)
    assert document["cause"] == "PROMPT_SENSITIVE"
    assert document["position"]["oracle"]["correct"] == 0
    assert document["position"]["template"].startswith("user-")
    assert "a plain one in 4 of 4" in document["summary"]


def test_a_model_that_fails_in_both_templates_cannot_answer():
    document = diagnose(
        office_case(prompt=hidden_template(office_case())), profile="distracted", middle=0.0, oracle=0.0
    )
    assert document["cause"] == "CANNOT_ANSWER"


def test_arms_are_laid_out_in_the_users_own_template():
    case = office_case(gold=4)
    lines = "\n".join(
        f"Document [{number}](Title: {chunk.title}) {chunk.text}" for number, chunk in enumerate(case.chunks, 1)
    )
    sent = (
        Message("system", "You work for the town of Lindholm."),
        Message("user", f"Look here:\n\n{lines}\n\nQuestion: {case.question}\nBe brief."),
    )
    document = diagnose(office_case(gold=4, prompt=sent), edge=1.0, middle=0.0)
    assert document["position"]["template"].startswith("user-")
    assert document["position"]["template_note"] is None
    assert arms(document)["position:own"]["index"] == 4


def test_the_as_sent_order_is_block_zero():
    case = office_case(gold=4)
    shuffled = (*case.chunks[8:], *case.chunks[:8])
    sent = lay_out(case.question, shuffled).messages
    asked = office_case(gold=4, prompt=sent)
    seen = []
    settings = runs.RunSettings(model="scripted", max_calls=30, options={"needles": list(case.answers)})
    document = runs.run_diagnosis(
        asked, settings, store=None, run_id="test", report=lambda progress: seen.append(progress)
    ).document
    assert document["position"]["own_index"] == 12
    parts = engine.split(engine.in_order(asked.chunks, [chunk.id for chunk in shuffled]), asked.gold_ids)
    frame = engine.frame_of(asked).frame
    own = engine.position_block(asked, parts, parts.distractors, 0, engine.named_slots(parts, ("own",)), frame)
    assert own[0].prompt.messages == sent


@pytest.mark.parametrize("n", [2, 3])
def test_too_few_chunks_is_undetermined(n):
    document = diagnose(office_case(n=n, gold=1), edge=1.0, middle=0.0)
    assert document["cause"] == "UNDETERMINED"
    assert "too few chunks" in document["summary"]


def test_four_chunks_have_six_orders_and_no_more():
    document = diagnose(office_case(n=4, gold=1), profile="flat", edge=1.0)
    assert document["cause"] == "NO_FAULT_FOUND"
    assert document["position"]["blocks"] == 6


def test_an_unmarked_chunk_with_the_answer_skips_the_test():
    case = office_case()
    spoiler = Chunk("spoiler", f"{OFFICERS[7]} was here.")
    spoilt = office_case(chunks=(*case.chunks, spoiler))
    document = diagnose(spoilt, edge=1.0, middle=0.0)
    stage = document["stages"][3]
    assert stage["status"] == "skipped"
    assert "spoiler" in stage["summary"]
    assert document["calls"]["made"] == 0
    confirmed = diagnose(office_case(chunks=(*case.chunks, spoiler), harmless_ids=("spoiler",)), edge=1.0, middle=0.0)
    assert confirmed["position"] is not None


def test_no_answers_runs_the_early_stages_only():
    document = diagnose(office_case(answers=()), needles=["x"])
    assert document["cause"] == "UNDETERMINED"
    assert document["stages"][3]["missing_fields"] == ["answers"]


def test_the_budget_caps_http_requests_and_keeps_what_was_learnt():
    document = diagnose(office_case(), max_calls=20, profile="flat", edge=0.5)
    assert document["calls"]["made"] == 20
    assert document["cause"] == "UNDETERMINED"
    assert sum(document["outcomes"].values()) == 20
    assert "cap of 20 calls" in document["summary"]


def test_over_the_window_of_another_model_skips_position():
    document = diagnose(office_case(model="some-model", context_window=128000), window=100)
    assert document["stages"][3]["status"] == "skipped"
    assert "longer than the tested model's window" in document["stages"][3]["summary"]
    assert document["cause"] == "UNDETERMINED"
    assert document["calls"]["made"] == 1


def test_over_the_window_where_nothing_else_is_known_is_truncated():
    document = diagnose(office_case(), window=100)
    assert document["cause"] == "TRUNCATED"


def test_a_silent_cut_is_seen_by_the_servers_own_count():
    case = office_case()
    document = diagnose(case, window=150, cut_silently=True)
    assert document["cause"] == "TRUNCATED"
    assert document["outcomes"]["error"] > 0


def test_cancelled_keeps_what_was_done():
    seen = []

    def cancel():
        seen.append(1)
        return len(seen) > 4

    document = diagnose(office_case(), cancelled=cancel, latency=0.2, slots=1)
    assert document["cause"] == "UNDETERMINED"
    assert "cancelled" in document["stopped"]


def stage_of(seen):
    return seen[-1].stage if seen else ""


def test_a_cancel_while_remedies_are_tried_leaves_the_cause_undetermined_and_keeps_what_was_certain():
    case, seen = office_case(), []
    settings = runs.RunSettings(
        model="scripted",
        options={"needles": list(case.answers), "edge": 1.0, "middle": 0.0, "latency": 0.02, "slots": 1},
    )
    outcome = runs.run_diagnosis(
        case, settings, store=None, run_id="test", report=seen.append, cancelled=lambda: stage_of(seen) == "remedies"
    )
    document = outcome.document
    assert outcome.exit_code == 130
    assert document["cause"] == "UNDETERMINED"
    assert document["also"] == ["LOST_IN_THE_MIDDLE"]
    assert document["stages"][3]["cause"] == "LOST_IN_THE_MIDDLE"
    assert "cancelled; what was finished is kept. Certain by then: LOST_IN_THE_MIDDLE." in document["summary"]


def test_an_endpoint_that_fails_while_remedies_are_tried_leaves_the_cause_undetermined():
    case, seen = office_case(), []
    options = {"needles": list(case.answers), "edge": 1.0, "middle": 0.0, "slots": 1}
    whole = runs.run_diagnosis(
        case, runs.RunSettings(model="scripted", options=options), store=None, run_id="test", report=seen.append
    )
    assert whole.document["cause"] == "LOST_IN_THE_MIDDLE"
    before = max(progress.calls for progress in seen if progress.stage == "position")
    settings = runs.RunSettings(model="scripted", options={**options, "faults": ["ok"] * (before + 2) + ["quota"]})
    outcome = runs.run_diagnosis(case, settings, store=None, run_id="test")
    assert outcome.exit_code == 3
    assert outcome.document["cause"] == "UNDETERMINED"
    assert outcome.document["also"] == ["LOST_IN_THE_MIDDLE"]
    assert "Certain by then: LOST_IN_THE_MIDDLE." in outcome.document["summary"]


def test_a_cap_met_while_remedies_are_tried_keeps_the_cause():
    case, seen = office_case(), []
    options = {"needles": list(case.answers), "edge": 1.0, "middle": 0.0}
    settings = runs.RunSettings(model="scripted", options=options)
    runs.run_diagnosis(case, settings, store=None, run_id="test", report=seen.append)
    before = max(progress.calls for progress in seen if progress.stage == "position")
    document = diagnose(case, max_calls=before + 2, edge=1.0, middle=0.0)
    assert document["stopped"].startswith("The cap of")
    assert document["cause"] == "LOST_IN_THE_MIDDLE"
    assert document["also"] == []


def test_a_remedy_is_run_with_its_paired_gain():
    document = diagnose(office_case(), edge=1.0, middle=0.0)
    remedies = {remedy["name"]: remedy for remedy in document["remedies"]}
    rerank = remedies["rerank:bm25"]
    assert rerank["tried"]
    assert rerank["n"] == 6
    assert rerank["before"] == 0.0
    assert rerank["after"] == 1.0
    assert rerank["low"] > 0
    # The gold chunk is retrieved in the middle, so no cut by rank below it is offered, and an ordering cannot help it.
    assert "k:5" not in remedies
    assert remedies["ordering:reverse"]["after"] < 1.0


def with_rival(profile, **options):
    """The gold says 12.50 from 2026 on, an older chunk 9.00; the scripted model reads the gold only."""
    case = office_case()
    gold = Chunk("new", "Fee notice of 2026: the fee for a mooring is 12.50 euros a month.", "Mooring fee")
    rival = Chunk("old", "Fee notice of 2019: the fee for a mooring is 9.00 euros a month.", "Mooring fee")
    chunks = (*case.chunks[:6], rival, *case.chunks[6:14], gold)
    return diagnose(
        office_case(question="What is the fee for a mooring?", answers=("12.50",), chunks=chunks, gold_ids=("new",)),
        profile=profile,
        **options,
    )


def test_a_rival_value_is_tried_by_removal_and_not_blamed_where_that_changes_nothing():
    document = with_rival("distracted", middle=0.0)
    assert document["cause"] == "DISTRACTED"
    assert "CONFLICTING_SOURCES" in document["also"]
    removal = document["position"]["removal"]
    assert removal["rivals"] == ["old"]
    assert removal["n"] == 8
    assert not removal["restores"]


def test_a_rival_whose_removal_restores_the_answer_is_the_cause():
    # The scripted model tells the first document that holds one of the two fees: the rival, wherever it stands earlier.
    document = with_rival("flat", edge=1.0, needles=["9.00", "12.50"])
    removal = document["position"]["removal"]
    assert (removal["right_with"], removal["right_without"]) == (0, 8)
    assert document["cause"] == "CONFLICTING_SOURCES"
    assert "POSITION_SENSITIVE" in document["also"]
    assert document["stages"][3]["cause"] == "CONFLICTING_SOURCES"


@pytest.mark.parametrize("seed", range(3))
def test_the_verdict_on_a_strong_u_does_not_hang_on_the_seed(seed):
    assert diagnose(office_case(), edge=0.95, middle=0.1, seed=seed)["cause"] == "LOST_IN_THE_MIDDLE"
