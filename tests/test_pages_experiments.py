"""The pages of experiments: forms, stored runs opened from a cold link, comparison, filters; on a real scripted endpoint."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from lim_core.backends.scripted import ScriptedOptions, read_script
from lim_core.backends.scripted_server import ScriptedServer
from lim_core.cases import case_from_json
from lim_core.runs import RunSettings, run_experiment
from lim_core.types import Case, Json
from lim_core.ui import shell
from lim_core.ui.experiment_start import start_experiment
from lim_core.ui.suites import sample_suite

ROOT = Path(__file__).resolve().parents[1]
HOSTILE = "![x](http://evil.example/p.png) <script>alert(1)</script> :red[hi] **b**"
PAGE_OF = {
    "positions": "pages/2_Position_curves.py",
    "grid": "pages/2_Position_curves.py",
    "tokens": "pages/3_Accuracy_vs_tokens.py",
    "orderings": "pages/4_Orderings.py",
}


@pytest.fixture(autouse=True)
def own_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A store of its own for every test; the caches forget the one before."""
    monkeypatch.setenv("LIM_STORE", str(tmp_path / "lim.duckdb"))
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("LIM_BASE_URL", "LIM_API_KEY", "LIM_MODEL", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    st.cache_resource.clear()
    yield
    for job in shell.jobs().active():
        shell.jobs().cancel(job.id)
        shell.jobs().wait(job.id, timeout=60)
    shell.store().close()
    st.cache_resource.clear()


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    """A model that reads both edges and never the middle."""
    script = read_script(
        ScriptedOptions(profile="u", edge=1.0, middle=0.0, needles=tuple(f"kept {n} days" for n in range(60)))
    )
    with ScriptedServer(script) as server:
        yield server.base_url


def suite(size: int = 8, chunks: int = 7) -> tuple[Case, ...]:
    cases = []
    for number in range(size):
        texts = [f"Notice {number}-{place}: the office opens at {place} o'clock." for place in range(1, chunks)]
        texts.insert(number % chunks, f"Logs of unit {number} are kept {number} days.")
        record: dict[str, Json] = {
            "id": f"case-{number}",
            "question": f"How long are the logs of unit {number} kept?",
            "answers": [f"kept {number} days"],
            "chunks": [{"id": f"{number}-{place}", "text": text} for place, text in enumerate(texts)],
            "tags": ["even" if number % 2 == 0 else "odd"],
        }
        cases.append(case_from_json(record).case)
    return tuple(cases)


def ran(kind: str, endpoint: str, run_id: str, cases: tuple[Case, ...] | None = None, **plan: Json) -> str:
    settings = RunSettings(model="scripted", base_url=endpoint, max_calls=None, plan=plan)
    run_experiment(kind, "unit-suite", cases or suite(), settings, store=shell.store(), run_id=run_id)
    return run_id


def page(name: str, **query: str) -> AppTest:
    test = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    test.switch_page(name)
    for key, value in query.items():
        test.query_params[key] = value
    return test.run()


def healthy(test: AppTest) -> AppTest:
    assert not test.exception, [item.value for item in test.exception]
    assert not test.error, [item.value for item in test.error]
    return test


def texts(test: AppTest) -> str:
    parts = [*test.text, *test.caption, *test.markdown, *test.subheader]
    # As it reads: escapes and their seams are for the Markdown parser.
    return "\n".join(str(part.value) for part in parts).replace(":small[]", "").replace("\\", "")


def charts(test: AppTest) -> list[dict[str, Json]]:
    return [json.loads(drawn.proto.spec) for drawn in test.get("plotly_chart")]


@pytest.mark.parametrize("kind", list(PAGE_OF))
def test_a_stored_run_opens_from_a_cold_link_with_its_figures(kind: str, endpoint: str) -> None:
    plan: dict[str, Json] = {"lengths": [100, 200], "depths": 3} if kind == "grid" else {}
    ran(kind, endpoint, "seen", **plan)
    test = healthy(page(PAGE_OF[kind], run="seen"))
    document = shell.store().document("seen")
    assert document is not None
    assert str(document["summary"]) in texts(test)
    assert charts(test)
    assert "8 cases" in texts(test)


def test_the_curve_drawn_is_the_curve_measured(endpoint: str) -> None:
    ran("positions", endpoint, "seen")
    test = healthy(page(PAGE_OF["positions"], run="seen"))
    document = shell.store().document("seen")
    assert document is not None
    points = document["result"]["curves"][0]["points"]  # type: ignore[index,call-overload]
    (curve,) = [trace for trace in charts(test)[0]["data"] if trace.get("name") == "measured"]  # type: ignore[union-attr]
    assert curve["y"] == pytest.approx([100 * point["accuracy"] for point in points])
    assert (curve["y"][0], curve["y"][2], curve["y"][4]) == (100, 0, 100)
    assert "both edges are read better" in texts(test).lower()


def test_a_run_of_another_page_opens_there(endpoint: str) -> None:
    ran("tokens", endpoint, "cut")
    test = page(PAGE_OF["positions"], run="cut")
    assert not test.exception
    assert "prompt tokens" in texts(test)


def test_a_tag_narrows_the_cases_and_another_run_is_laid_over(endpoint: str) -> None:
    ran("positions", endpoint, "one")
    ran("positions", endpoint, "two")
    test = healthy(page(PAGE_OF["positions"], run="one"))
    test.selectbox(key="tag").select("even").run()
    assert "28 of 28 trials, 4 cases" in texts(healthy(test))
    test.multiselect(key="with").select("two").run()
    labels = [str(trace.get("name")) for trace in charts(healthy(test))[0]["data"]]  # type: ignore[union-attr]
    assert any("one" in label for label in labels)
    assert any("two" in label for label in labels)


def test_hostile_ids_and_texts_stay_text(endpoint: str) -> None:
    record: dict[str, Json] = {
        "id": HOSTILE,
        "question": f"{HOSTILE}?",
        "answers": ["kept 3 days"],
        "chunks": [
            {"id": f"{HOSTILE}{n}", "text": f"{HOSTILE} {n}" if n else "Logs are kept 3 days."} for n in range(6)
        ],
        "tags": [HOSTILE, "other"],
    }
    ran("orderings", endpoint, "bad", (case_from_json(record).case, *suite(3)))
    test = healthy(page(PAGE_OF["orderings"], run="bad"))
    for part in (*test.markdown, *test.caption, *test.subheader):
        assert "![x](" not in str(part.value)
        assert "<script>" not in str(part.value)
    assert "<script>" not in json.dumps([chart["data"] for chart in charts(test)])


@pytest.mark.parametrize("kind", ["positions", "tokens", "orderings"])
def test_the_form_says_what_a_run_costs_before_it_starts(kind: str) -> None:
    test = healthy(page(PAGE_OF[kind]))
    assert "calls, about" in texts(test)
    assert "48 cases" in texts(test)
    assert not test.button(key=f"{kind}-run").disabled


def test_more_arms_than_six_are_refused_in_a_sentence() -> None:
    test = healthy(page(PAGE_OF["orderings"]))
    test.multiselect(key="sides-templates").set_value(["question-twice"]).run()
    assert len(test.error) == 1
    assert "choose 6 or fewer" in str(test.error[0].value)


def test_the_run_button_starts_a_run_that_another_session_sees(endpoint: str) -> None:
    cases = suite(3)
    run_id = start_experiment("positions", "unit", cases, RunSettings(model="scripted", base_url=endpoint))
    shell.jobs().wait(run_id, timeout=60)
    test = healthy(page(PAGE_OF["positions"], run=run_id))
    assert "3 cases" in texts(test)
    record = shell.store().run(run_id)
    assert record is not None
    assert record.status.value == "done"


def test_the_sample_suite_can_take_part_whole() -> None:
    from lim_core.runs import preflight_experiment

    found = sample_suite()
    assert len(found.cases) >= 40
    for kind in PAGE_OF:
        cost = preflight_experiment(kind, found.cases, RunSettings())
        assert cost.calls_high >= 3 * len(found.cases)
        assert not [note for note in cost.notes if "stays out" in note]
