"""The app in a real browser: cold links, two browsers, a restart, hostile text, narrow screens, the keyboard."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from driver import App, Visit

from lim_core.cases import case_from_json
from lim_core.store import Store

DOCUMENT = json.loads(Path(__file__).parents[1].joinpath("fixtures/document.json").read_text("utf-8"))
HOSTILE = "![x](http://evil.example/p.png) <img src=x onerror=alert(1)> $x^2$ :red[hi] www.evil.example :material/bolt:"
Open = Callable[..., Visit]


def put_run(app: App, run_id: str = "run-1", text: str | None = None) -> None:
    """A finished run in the store; `text` stands in place of everything that documents and models say."""
    question = text or "How many days does the Halden archive keep raw sensor logs?"
    body = {"id": text or "logs", "question": question, "chunks": [text or "45 days"], "answers": ["45 days"]}
    document = {**DOCUMENT, "run_id": run_id, "question": question}
    if text is not None:
        document |= {"summary": text, "warnings": [text], "also": [text], "tested_model": text}
        document["stages"] = [{**stage, "summary": text, "advice": text} for stage in DOCUMENT["stages"]]
        document["remedies"] = [{**remedy, "title": text, "note": text} for remedy in DOCUMENT["remedies"]]
    with Store.open(app.store) as store:
        store.start_run(run_id, "diagnosis", case_from_json(body).case, {"model": "embedded", "judge": "contains"}, {})
        store.save_document(run_id, document)
        store.set_status(run_id, "done")


def test_a_cold_link_shows_the_result_and_calls_no_other_host(app: App, visit: Open) -> None:
    put_run(app)
    app.start()
    seen = visit(f"{app.url}/Diagnose?run=run-1")
    body = seen.page.locator("[data-testid=stMain]")
    assert "Lost in the middle" in body.inner_text()
    seen.page.wait_for_selector(".js-plotly-plot .errorbar", timeout=30_000)
    assert seen.page.locator(".js-plotly-plot").count() == 3
    # One click on a light shows that stage's evidence.
    seen.page.get_by_role("radio", name="Truncation").click()
    seen.settle()
    assert "fit the window of 16,384 tokens" in body.inner_text()
    assert not seen.faults
    # data: and blob: addresses stay in the browser.
    assert [url for url in seen.requests if not url.startswith((app.url, "data:", "blob:"))] == []


def test_hostile_text_stays_text(app: App, visit: Open) -> None:
    put_run(app, text=HOSTILE)
    app.start()
    for path in ("Diagnose?run=run-1", "Runs?run=run-1", ""):
        seen = visit(f"{app.url}/{path}")
        main = seen.page.locator("[data-testid=stMain]")
        assert "![x](http://evil.example/p.png) <img src=x" in main.inner_text()
        assert main.locator("img[src*=evil], a[href*=evil], .katex").count() == 0
        assert not seen.faults
        assert not [url for url in seen.requests if "evil" in url]


@pytest.mark.parametrize("width", [1400, 380])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_page_is_wider_than_the_screen(app: App, visit: Open, width: int, scheme: str) -> None:
    put_run(app)
    app.start()
    for path in ("", "Diagnose", "Diagnose?run=run-1", "Runs?run=run-1", "Models"):
        seen = visit(f"{app.url}/{path}", width=width, scheme=scheme)
        over = seen.page.evaluate(
            "(() => { const m = document.querySelector('[data-testid=stMain]'); return m.scrollWidth - m.clientWidth })()"
        )
        assert over <= 1, path
        ink, paper = seen.page.evaluate(
            "(() => { const s = getComputedStyle(document.querySelector('[data-testid=stApp]'));"
            " return [s.color, s.backgroundColor] })()"
        )
        assert contrast(ink, paper) > 7
        assert (brightness(paper) < 0.2) == (scheme == "dark")


def test_a_case_typed_here_is_diagnosed_and_its_link_opens_elsewhere_and_after_a_restart(app: App, visit: Open) -> None:
    app.start()
    seen = visit(f"{app.url}/Diagnose")
    seen.page.get_by_label("Question", exact=True).fill("How long are raw logs kept?")
    seen.page.get_by_label("Chunks", exact=True).fill("The office opens at nine.\n---\nRaw logs are kept 45 days.")
    seen.page.get_by_label("Prompt as sent (optional)").fill("The office opens at nine. How long are raw logs kept?")
    seen.page.keyboard.press("Tab")
    seen.settle()
    # A draft is still there after a look at another page.
    seen.page.get_by_role("link", name="Models").first.click()
    seen.page.wait_for_url("**/Models")
    seen.settle()
    seen.page.get_by_role("link", name="Diagnose").first.click()
    seen.page.wait_for_url("**/Diagnose")
    seen.settle()
    assert seen.page.get_by_label("Question", exact=True).input_value() == "How long are raw logs kept?"
    seen.page.get_by_role("button", name="Diagnose", exact=True).click()
    seen.page.wait_for_url("**/Diagnose?run=*", timeout=60_000)
    seen.page.get_by_role("button", name="Run again").wait_for(timeout=60_000)
    link = seen.page.url
    assert "How long are raw logs kept?" in seen.page.locator("[data-testid=stMain]").inner_text()
    other = visit(link, width=380, scheme="dark")
    other.page.get_by_role("button", name="Run again").wait_for(timeout=60_000)
    app.stop()
    app.start()
    later = visit(link)
    later.page.get_by_role("button", name="Run again").wait_for(timeout=60_000)
    later.page.get_by_role("button", name="Copy link").click()
    later.page.get_by_text("This address opens on this machine only").wait_for()
    assert link in later.page.locator("[data-testid=stPopoverBody] code").inner_text()


def test_stages_are_reached_with_the_keyboard(app: App, visit: Open) -> None:
    put_run(app)
    app.start()
    seen = visit(f"{app.url}/Diagnose?run=run-1")
    light = seen.page.get_by_role("radio", name="Retrieval")
    for _ in range(60):
        seen.page.keyboard.press("Tab")
        if seen.page.evaluate("document.activeElement.closest('[data-testid=stButtonGroup]') !== null"):
            break
    else:
        raise AssertionError("the stage strip is not in the tab order")
    for _ in range(6):
        if light.evaluate("node => node === document.activeElement"):
            break
        seen.page.keyboard.press("ArrowRight")
    seen.page.keyboard.press("Enter")
    seen.settle()
    assert "ranked 8 of 16" in seen.page.locator("[data-testid=stMain]").inner_text()


@pytest.mark.model
def test_a_run_goes_on_without_its_browser_is_seen_by_another_cancelled_and_continued(app: App, visit: Open) -> None:
    app.start()
    seen = visit(app.url)
    samples = json.loads(Path(__file__).parents[2].joinpath("data/samples.json").read_text("utf-8"))
    rows = samples["samples"] if isinstance(samples, dict) else samples
    place = next(i for i, row in enumerate(rows) if "LOST" in json.dumps(row) or "POSITION" in json.dumps(row))
    seen.page.locator(f".st-key-sample-{place} button").click()
    seen.page.wait_for_url("**/Diagnose?run=*", timeout=60_000)
    link = seen.page.url
    seen.page.get_by_role("button", name="Cancel").wait_for(timeout=60_000)
    seen.context.close()
    other = visit(link)
    other.page.wait_for_function("/[1-9]\\d* of at most/.test(document.body.innerText)", timeout=120_000)
    time.sleep(2)
    other.page.get_by_role("button", name="Cancel").click()
    other.page.get_by_role("button", name="Continue").wait_for(timeout=120_000)
    assert "was cancelled" in other.page.locator("[data-testid=stMain]").inner_text()
    other.page.get_by_role("button", name="Continue").click()
    other.page.get_by_role("button", name="Run again").wait_for(timeout=280_000)
    other.page.wait_for_selector(".js-plotly-plot .errorbar", timeout=60_000)
    assert not other.faults


def brightness(colour: str) -> float:
    """Relative luminance, WCAG 2.2."""
    parts = [float(part) / 255 for part in colour[colour.index("(") + 1 : -1].split(",")[:3]]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """Contrast ratio, WCAG 2.2."""
    high, low = sorted((brightness(one), brightness(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)
