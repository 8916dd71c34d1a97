"""From the thing at hand to a verdict in a real browser: one paste, at most two clicks, then the run."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from driver import App, Visit
from playwright.sync_api import expect

from lim_core.store import Store

SHAPES = Path(__file__).parents[1] / "fixtures/importers"
# Set, it is the folder that screenshots to look at go to.
SHOTS = os.environ.get("LIM_SHOTS")
Open = Callable[..., Visit]


@dataclass(frozen=True)
class Given:
    """A fixture, the title of its shape, and what is still to be done until the case can be run."""

    file: str
    title: str
    question: str = ""
    accept: bool = False
    answer: str = ""


GIVEN = (
    Given("langchain_repr.txt", "LangChain documents", question="How much does a ticket for a large dog cost?"),
    Given("langfuse_trace.json", "Langfuse traces"),
    Given("openai_request.json", "OpenAI and Anthropic request bodies", accept=True),
    Given("ragas_rows.json", "Ragas rows"),
    Given("langsmith_nested.json", "LangSmith runs"),
    Given("haystack_flat.json", "Haystack documents", question="How much does a ticket for a large dog cost?"),
    Given("otel_genai_sdk.json", "OpenTelemetry GenAI spans"),
    Given("chunks.csv", "CSV, TSV and tables of chunks"),
)


def paste(seen: Visit, text: str) -> None:
    box = seen.page.get_by_label("What you have")
    box.fill(text)
    box.press("Control+Enter")
    seen.settle()


def shot(seen: Visit, name: str) -> None:
    """Keep a picture of the whole page to look at, where a folder is named."""
    if SHOTS:
        height = seen.page.evaluate("document.querySelector('[data-testid=stMain]').scrollHeight")
        size = seen.page.viewport_size or {"width": 1400, "height": 900}
        seen.page.set_viewport_size({"width": size["width"], "height": min(4000, max(900, int(height)))})
        seen.page.wait_for_timeout(300)
        seen.page.screenshot(path=str(Path(SHOTS, f"import-{name}.png")))
        seen.page.set_viewport_size(size)


def main_text(seen: Visit) -> str:
    return seen.page.locator("[data-testid=stMain]").inner_text()


def test_one_paste_and_at_most_two_clicks_from_each_shape_to_a_stored_run(app: App, visit: Open) -> None:
    app.start()
    made = {given: run_from(visit(f"{app.url}/Diagnose"), given) for given in GIVEN}
    app.stop()
    with Store.open(app.store) as store:
        for given, run_id in made.items():
            stages = (store.document(run_id) or {})["stages"]
            assert isinstance(stages, list)
            told = {stage["stage"]: stage["status"] for stage in stages if isinstance(stage, dict)}
            assert {"truncation", "retrieval", "assembly"} <= set(told), given.file
            if given.file in ("langfuse_trace.json", "openai_request.json", "langsmith_nested.json"):
                assert told["assembly"] != "skipped", given.file
            assert len(store.case(run_id).chunks) >= 2, given.file


def run_from(seen: Visit, given: Given) -> str:
    """Paste the fixture, do what is still to be done, run it; the run's id."""
    paste(seen, (SHAPES / given.file).read_text("utf-8"))
    assert f"{given.title}: " in main_text(seen)
    button = seen.page.get_by_role("button", name="Diagnose", exact=True)
    if given.accept:
        assert button.is_disabled()
        shot(seen, f"{given.file}-proposal")
        seen.page.get_by_role("button", name="Use these 6 chunks").click()
        seen.settle()
    if given.question:
        assert button.is_disabled()
        seen.page.get_by_label("Question", exact=True).fill(given.question)
        seen.page.keyboard.press("Tab")
        seen.settle()
    shot(seen, given.file)
    # The answers are taken out: stages 1 to 3 need none, and so no model is called.
    answers = seen.page.get_by_label("Right answers, one a line")
    if answers.input_value():
        answers.fill("")
        seen.page.keyboard.press("Tab")
        seen.settle()
    button.click()
    seen.page.wait_for_url("**/Diagnose?run=*", timeout=60_000)
    seen.page.get_by_role("button", name="Run again").wait_for(timeout=60_000)
    seen.settle()
    shot(seen, f"{given.file}-result")
    assert not seen.faults
    run_id = seen.page.url.partition("run=")[2]
    seen.context.close()
    return run_id


def test_gold_is_marked_chunks_are_moved_and_a_reload_keeps_it_all(app: App, visit: Open) -> None:
    app.start()
    seen = visit(f"{app.url}/Diagnose")
    texts = ["The office opens at nine.", "Raw logs are kept 45 days.", "A trial lasts 45 days.", "Lunch is at noon."]
    paste(seen, json.dumps({"question": "How long are raw logs kept?", "chunks": texts}))
    seen.page.get_by_label("Right answers, one a line").fill("45 days")
    seen.page.keyboard.press("Tab")
    seen.wait_for_text("Raw logs are kept ⟦45 days⟧.")
    seen.page.get_by_text("gold", exact=True).nth(1).click()
    seen.wait_for_text("would spoil a position test")
    seen.settle()
    shot(seen, "spoiler")
    seen.page.get_by_text("confirmed harmless", exact=True).click()
    seen.page.get_by_text("would spoil a position test").wait_for(state="detached")
    seen.page.get_by_role("button", name="Down").first.click()
    seen.settle()
    assert "draft=" in seen.page.url
    # Another page and back, then a reload: a new session that has the address alone.
    seen.page.get_by_role("link", name="Runs").first.click()
    seen.page.wait_for_url("**/Runs")
    seen.settle()
    seen.page.get_by_role("link", name="Diagnose").first.click()
    seen.page.wait_for_url("**/Diagnose?draft=*")
    seen.settle()
    assert facts(seen)[:2] == ["rank 1 · c2", "rank 2 · c1"]
    seen.page.reload()
    seen.wait_for_text("rank 4")
    assert facts(seen)[:2] == ["rank 1 · c2", "rank 2 · c1"]
    expect(seen.page.get_by_label("Right answers, one a line")).to_have_value("45 days")
    expect(seen.page.get_by_role("checkbox", name="gold").first).to_be_checked()
    assert "Chunk c2 (rank 1) is gold." in main_text(seen)
    seen.page.get_by_role("button", name="Undo").click()
    seen.wait_for_text("rank 1 · c1")
    seen.page.get_by_text("Case as JSON").click()
    seen.wait_for_text('"harmless_ids"')
    shot(seen, "reloaded")
    assert not seen.faults


def test_the_workbench_fits_the_screen(app: App, visit: Open) -> None:
    app.start()
    for width, scheme in ((380, "light"), (380, "dark"), (1400, "dark")):
        seen = visit(f"{app.url}/Diagnose", width=width, scheme=scheme)
        paste(seen, (SHAPES / "ragas_rows.json").read_text("utf-8"))
        over = seen.page.evaluate(
            "(() => { const m = document.querySelector('[data-testid=stMain]'); return m.scrollWidth - m.clientWidth })()"
        )
        shot(seen, f"ragas-{width}-{scheme}")
        assert over <= 1, (width, scheme)
        assert not seen.faults


def facts(seen: Visit) -> list[str]:
    """Rank and id of each row of the list."""
    lines = [line for line in main_text(seen).splitlines() if line.startswith("rank ")]
    return [" · ".join(line.split(" · ")[:2]) for line in lines]
