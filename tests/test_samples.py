"""The sample complaints in data/: well formed, and each gives the cause that the index promises."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from lim_core.cases import read_case
from lim_core.evidence import gold_of, holders
from lim_core.prompts import lay_out
from lim_core.text.normalise import contains_any
from lim_core.types import Case, Cause

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT / "data"
INDEX = json.loads((DATA / "samples.json").read_text(encoding="utf-8"))
POSITION = "lost-in-the-middle.json"
EARLY = {
    Cause.TRUNCATED,
    Cause.OUTPUT_BUDGET,
    Cause.MISSING_DOCUMENT,
    Cause.NOT_RETRIEVED,
    Cause.RANKED_OUT,
    Cause.CONFLICTING_SOURCES,
    Cause.ASSEMBLY_LOSS,
}
FILES = [entry["file"] for entry in INDEX]
EARLY_ENTRIES = [entry for entry in INDEX if entry["cause"] in EARLY]


def load(file: str) -> Case:
    return read_case((DATA / file).read_bytes(), file).case


def diagnose(file: str, *options: str, timeout: float = 280) -> dict:
    done = subprocess.run(
        [sys.executable, "-m", "lim_core", "diagnose", str(DATA / file), "--json", "--no-store", *options],
        cwd=ROOT,
        capture_output=True,
        timeout=timeout,
    )
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)


def test_the_index_names_every_sample_once_and_the_position_sample_first() -> None:
    cases = {path.name for path in DATA.glob("*.json")} - {"samples.json"}
    assert sorted(FILES) == sorted(cases)
    assert len(INDEX) >= 10
    assert FILES[0] == POSITION
    assert INDEX[0]["cause"] == Cause.LOST_IN_THE_MIDDLE


def test_the_index_says_what_happened_in_plain_words() -> None:
    for entry in INDEX:
        assert set(entry) == {"file", "title", "complaint", "cause"}
        Cause(entry["cause"])
        assert "\n" not in entry["complaint"]
        assert 20 <= len(entry["complaint"]) <= 200, entry["file"]
    assert len({entry["title"] for entry in INDEX}) == len(INDEX)


def test_every_early_cause_has_a_sample() -> None:
    assert {entry["cause"] for entry in INDEX} >= EARLY | {Cause.LOST_IN_THE_MIDDLE}


@pytest.mark.parametrize("file", FILES)
def test_a_sample_is_read_without_a_warning(file: str) -> None:
    loaded = read_case((DATA / file).read_bytes(), file)
    assert loaded.warnings == ()
    case = loaded.case
    assert case.id == file.removesuffix(".json")
    assert 6 <= len(case.chunks) <= 20
    scores = [chunk.score for chunk in case.chunks]
    assert None not in scores
    assert scores == sorted(scores, key=lambda score: -(score or 0)), "retrieved order is by falling score"


@pytest.mark.parametrize("file", FILES)
def test_only_the_gold_chunk_holds_the_answer(file: str) -> None:
    case = load(file)
    everywhere = {chunk.id: chunk for part in (case.chunks, case.candidates or (), case.corpus or ()) for chunk in part}
    holding = [chunk.id for chunk in everywhere.values() if contains_any(case.answers, chunk.text)]
    assert holding == list(case.gold_ids)
    assert gold_of(case).spoilers == ()


@pytest.mark.parametrize("file", FILES)
def test_the_recorded_answer_is_wrong_where_there_is_one(file: str) -> None:
    case = load(file)
    assert not contains_any(case.answers, case.answer or "")


def test_the_position_sample_is_what_the_issue_asks_for() -> None:
    case = load(POSITION)
    assert 12 <= len(case.chunks) <= 20
    assert all(30 <= len(chunk.text.split()) <= 80 for chunk in case.chunks)
    ids = [chunk.id for chunk in case.chunks]
    assert ids.index(case.gold_ids[0]) == (len(ids) - 1) // 2
    assert holders(case, case.chunks) == case.gold_ids
    assert case.answer


def test_the_prompt_of_the_position_sample_is_the_default_layout() -> None:
    case = load(POSITION)
    assert case.prompt == lay_out(case.question, case.chunks).messages


@pytest.mark.parametrize("entry", EARLY_ENTRIES, ids=[entry["file"] for entry in EARLY_ENTRIES])
def test_the_first_three_stages_find_the_cause_without_a_model(entry: dict) -> None:
    found = diagnose(entry["file"], "--stages", "truncation,retrieval,assembly")
    assert found["cause"] == entry["cause"]
    assert found["calls"]["made"] == 0


def test_both_ways_of_truncation_and_of_assembly_loss_are_shown() -> None:
    cut = {e["file"]: diagnose(e["file"], "--stages", "truncation") for e in INDEX if e["cause"] == Cause.TRUNCATED}
    evidence = {name: found["stages"][0]["evidence"] for name, found in cut.items()}
    assert evidence["truncated-end.json"]["cut_end"] == "end"
    assert evidence["truncated-end.json"]["lost_chunk_ids"][0] == "claims"
    server = evidence["truncated-by-server.json"]
    assert server["reported_tokens"] < 0.9 * server["low"]
    states = {}
    for file in ("assembly-omission.json", "assembly-clipped.json"):
        found = next(s for s in diagnose(file, "--stages", "assembly")["stages"] if s["stage"] == "assembly")
        gold = load(file).gold_ids[0]
        states[file] = next(chunk for chunk in found["evidence"]["chunks"] if chunk["id"] == gold)
    assert states["assembly-omission.json"]["state"] == "missing"
    assert states["assembly-clipped.json"]["state"] == "clipped"
    assert states["assembly-clipped.json"]["answer_lost"] is True


def test_the_published_curves_carry_their_source() -> None:
    lines = (DATA / "liu2023_curves.csv").read_text(encoding="utf-8").splitlines()
    assert lines[0] == "model,documents,gold_index,accuracy_percent,questions,source"
    assert all("Liu et al. 2023" in line for line in lines[1:])
    assert len(lines) > 30


@pytest.mark.model
@pytest.mark.timeout(900)
def test_the_embedded_model_loses_the_position_sample_in_the_middle() -> None:
    found = diagnose(POSITION, timeout=880)
    assert found["cause"] == Cause.LOST_IN_THE_MIDDLE
    points = {point["arm"]: point for point in found["position"]["points"]}
    first, middle, last = (points[f"position:{slot}"]["accuracy"] for slot in ("first", "middle", "last"))
    assert min(first, last) >= 0.8
    assert middle <= 0.2
    assert found["position"]["oracle"]["accuracy"] == 1.0
    assert found["position"]["closed_book"]["accuracy"] == 0.0
    assert found["position"]["e_value"] >= 20
