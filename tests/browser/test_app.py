"""The app in a real browser: cold links, two browsers, a restart, hostile text, narrow screens, the keyboard."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from driver import App, Visit, an_app

from lim_core.backends.scripted import ScriptedOptions, read_script
from lim_core.backends.scripted_server import ScriptedServer
from lim_core.cases import case_from_json
from lim_core.store import Store

DOCUMENT = json.loads(Path(__file__).parents[1].joinpath("fixtures/document.json").read_text("utf-8"))
HOSTILE = "![x](http://evil.example/p.png) <img src=x onerror=alert(1)> $x^2$ :red[hi] www.evil.example :material/bolt:"
Open = Callable[..., Visit]


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    """One started app for the tests that only look: a run as it should be, and one of hostile text."""
    with an_app(tmp_path_factory.mktemp("shown")) as app:
        put_run(app)
        put_run(app, "run-hostile", HOSTILE)
        app.start()
        yield app


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
        store.start_run(run_id, case_from_json(body).case, {"model": "embedded", "judge": "contains"}, {})
        store.save_document(run_id, document)
        store.set_status(run_id, "done")


def test_a_cold_link_shows_the_result_and_calls_no_other_host(shown: App, visit: Open) -> None:
    seen = visit(f"{shown.url}/Diagnose?run=run-1")
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
    assert [url for url in seen.requests if not url.startswith((shown.url, "data:", "blob:"))] == []


def test_hostile_text_stays_text(shown: App, visit: Open) -> None:
    for path in ("Diagnose?run=run-hostile", "Runs?run=run-hostile", ""):
        seen = visit(f"{shown.url}/{path}")
        main = seen.page.locator("[data-testid=stMain]")
        assert "![x](http://evil.example/p.png) <img src=x" in main.inner_text()
        assert main.locator("img[src*=evil], a[href*=evil], .katex").count() == 0
        assert not seen.faults
        assert not [url for url in seen.requests if "evil" in url]


@pytest.mark.parametrize("width", [1400, 380])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_page_is_wider_than_the_screen(shown: App, visit: Open, width: int, scheme: str) -> None:
    for path in ("", "Diagnose", "Diagnose?run=run-1", "Runs?run=run-1", "Models"):
        seen = visit(f"{shown.url}/{path}", width=width, scheme=scheme)
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
    seen.page.get_by_role("radio", name="Form").click()
    seen.settle()
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
    seen.page.wait_for_url("**/Diagnose?draft=*")
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
    later.wait_for_text("This address opens on this machine only")
    assert link in later.page.locator("[data-testid=stPopoverBody] code").inner_text()


def test_stages_are_reached_with_the_keyboard(shown: App, visit: Open) -> None:
    seen = visit(f"{shown.url}/Diagnose?run=run-1")
    light = seen.page.get_by_role("radio", name="Retrieval")
    light.wait_for(timeout=60_000)
    seen.settle()
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


KEY = "sk-planted-0123456789abcdef"


def scripted(latency: float) -> ScriptedServer:
    """A real endpoint on loopback that reads the edges of a prompt and not its middle."""
    return ScriptedServer(read_script(ScriptedOptions(profile="u", edge=1.0, middle=0.0, latency=latency)))


def sixteen() -> str:
    """A case of 16 chunks with the evidence in the middle."""
    texts = [f"Notice {place} of the archive is about room {place + 100} and its opening hours." for place in range(16)]
    texts[7] = "Raw sensor logs of the archive are kept for 45 days."
    body = {"id": "logs", "question": "How long are raw sensor logs kept?", "answers": ["45 days"], "chunks": texts}
    return json.dumps(body | {"gold_ids": ["c8"], "answer": "30 days"})


def start_run(seen: Visit, text: str) -> str:
    """Paste a case, press the button, and return the link of the run."""
    seen.page.get_by_label("What you have").fill(text)
    seen.page.keyboard.press("Control+Enter")
    seen.settle()
    seen.page.get_by_role("button", name="Diagnose", exact=True).click()
    seen.page.wait_for_url("**/Diagnose?run=*", timeout=60_000)
    return seen.page.url


def test_a_run_goes_on_without_its_browser_is_seen_by_another_cancelled_and_continued(app: App, visit: Open) -> None:
    with scripted(latency=0.8) as endpoint:
        app.start(LIM_BASE_URL=endpoint.base_url, LIM_MODEL="scripted")
        seen = visit(f"{app.url}/Diagnose")
        link = start_run(seen, sixteen())
        seen.page.get_by_role("button", name="Cancel").wait_for(timeout=60_000)
        seen.context.close()
        calls = endpoint.traffic.chats
        deadline = time.monotonic() + 60
        while endpoint.traffic.chats < calls + 8 and time.monotonic() < deadline:
            time.sleep(0.1)
        assert endpoint.traffic.chats >= calls + 8  # it went on while nobody looked
        other = visit(link)
        main = other.page.locator("[data-testid=stMain]")
        assert "prompt tokens" in main.inner_text()
        other.page.get_by_role("button", name="Cancel").click()
        other.page.get_by_role("button", name="Continue").wait_for(timeout=60_000)
        assert "was cancelled" in main.inner_text()
        paid = endpoint.traffic.chats
        assert paid < 100
        endpoint.script = replace(endpoint.script, latency=0.0)
        other.page.get_by_role("button", name="Continue").click()
        other.page.get_by_role("button", name="Continue").wait_for(state="detached", timeout=60_000)
        other.page.get_by_role("button", name="Run again").wait_for(timeout=120_000)
        assert "LOST_IN_THE_MIDDLE" in main.inner_text()
        sent = endpoint.traffic.chats - paid
    app.stop()
    with Store.open(app.store) as store:
        calls_said = (store.document(link.partition("run=")[2]) or {})["calls"]
        assert isinstance(calls_said, dict)
        assert calls_said["cached"] > 0  # what was finished was not paid for again
        # The whole run is counted, give or take what was in flight at the cancel.
        assert paid - 8 <= calls_said["made"] - sent <= paid + 8


def test_a_whole_diagnosis_over_http_ends_in_a_verdict_with_trials(app: App, visit: Open) -> None:
    with scripted(latency=0.0) as endpoint:
        app.start(LIM_BASE_URL=endpoint.base_url, LIM_MODEL="scripted", LIM_API_KEY=KEY)
        seen = visit(f"{app.url}/Diagnose")
        start_run(seen, sixteen())
        seen.page.get_by_role("button", name="Run again").wait_for(timeout=120_000)
        seen.settle()
        main = seen.page.locator("[data-testid=stMain]").inner_text()
        assert "LOST_IN_THE_MIDDLE" in main
        assert "Trials" in main
        seen.page.wait_for_selector(".js-plotly-plot .errorbar", timeout=60_000)
        assert {sent.authorization for sent in endpoint.traffic.seen} == {KEY}
        assert KEY not in seen.page.content()
        assert not seen.faults
    app.stop()
    assert KEY.encode() not in b"".join(path.read_bytes() for path in app.folder.rglob("*") if path.is_file())


def test_the_connection_test_shows_what_the_endpoint_said_and_keeps_the_key(app: App, visit: Open) -> None:
    with scripted(latency=0.0) as first, scripted(latency=0.0) as second:
        app.start()
        seen = visit(f"{app.url}/Models")
        seen.page.get_by_role("radio", name="Endpoint").click()
        seen.settle()
        seen.page.get_by_label("Base URL").fill(first.base_url)
        seen.page.get_by_label("Model name").fill("scripted")
        seen.page.keyboard.press("Tab")
        seen.settle()
        seen.page.get_by_role("textbox", name="Key for this address").fill(KEY)
        seen.page.keyboard.press("Tab")
        seen.page.get_by_role("button", name="Test connection").click()
        seen.wait_for_text("The endpoint answered.")
        assert [sent.authorization for sent in first.traffic.seen][-1].endswith(KEY)
        seen.page.get_by_label("Base URL").fill(second.base_url)
        seen.page.keyboard.press("Tab")
        seen.settle()
        assert seen.page.get_by_role("textbox", name="Key for this address").input_value() == ""
        seen.page.get_by_role("button", name="Test connection").click()
        deadline = time.monotonic() + 60
        while not second.traffic.chats and time.monotonic() < deadline:
            seen.page.wait_for_timeout(200)
        assert second.traffic.seen
        assert not [sent for sent in second.traffic.seen if KEY in json.dumps([sent.authorization, dict(sent.headers)])]


def brightness(colour: str) -> float:
    """Relative luminance, WCAG 2.2."""
    parts = [float(part) / 255 for part in colour[colour.index("(") + 1 : -1].split(",")[:3]]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """Contrast ratio, WCAG 2.2."""
    high, low = sorted((brightness(one), brightness(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)
