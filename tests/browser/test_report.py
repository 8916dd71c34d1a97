"""A report opened from disk in a real Chromium with the network off: charts are drawn, nothing is asked for, nothing runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from driver import App, Visit
from playwright.sync_api import Browser, Page

from lim_core.reports import html_report
from lim_core.store import Store
from tests.reported import NEEDLE, PLANS, diagnose_into, experiment_into

Open = Callable[..., Visit]
KINDS = ("diagnosis", *PLANS)


@dataclass
class Opened:
    """One report in a browser of its own, with all that it asked for and said."""

    page: Page
    requests: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A report of each kind of run, on disk."""
    folder = tmp_path_factory.mktemp("report")
    found = {}
    with Store.open(folder / "lim.duckdb") as store:
        diagnose_into(store, "diagnosis")
        for kind in PLANS:
            experiment_into(store, kind)
        for kind in KINDS:
            found[kind] = folder / f"{kind}.html"
            found[kind].write_bytes(html_report(store, kind))
    return found


@pytest.fixture
def open_report(browser: Browser) -> Iterator[object]:
    contexts = []

    def open_one(file: Path, width: int = 1200, scheme: str = "light") -> Opened:
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme="dark" if scheme == "dark" else "light", offline=True
        )
        contexts.append(context)
        opened = Opened(context.new_page())
        opened.page.on("request", lambda request: opened.requests.append(request.url))
        opened.page.on("console", lambda message: opened.said.append(message.text))
        opened.page.on("pageerror", lambda error: opened.said.append(str(error)))
        opened.page.on("dialog", lambda dialog: (opened.said.append(dialog.message), dialog.dismiss()))
        opened.page.goto(file.as_uri())
        opened.page.wait_for_selector(".plot svg.main-svg")
        opened.page.wait_for_timeout(300)
        return opened

    yield open_one
    for context in contexts:
        context.close()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("width", "scheme"), [(1200, "light"), (1200, "dark"), (380, "light")])
def test_charts_are_drawn_from_disk_and_nothing_is_fetched(
    files: dict[str, Path], open_report, kind: str, width: int, scheme: str
) -> None:
    opened = open_report(files[kind], width, scheme)
    page = opened.page
    for part in page.locator("details").all():
        part.evaluate("part => { part.open = true; }")
    page.wait_for_timeout(300)
    plots = page.locator(".plot").count()
    assert plots >= 1
    for place in range(plots):
        plot = page.locator(".plot").nth(place)
        assert plot.locator("svg.main-svg").count() >= 1
        # Something is in it: a line, a bar or a mark.
        assert plot.locator("svg .points path, svg .js-line, svg .shapelayer path").count() >= 1
        assert abs(plot.locator("svg.main-svg").first.bounding_box()["width"] - plot.bounding_box()["width"]) < 2
    assert opened.requests == [files[kind].as_uri()]
    assert opened.said == []
    # The hostile texts are text.
    assert page.title().startswith("lim report, run ")
    assert page.locator("img, iframe, a").count() == 0
    assert page.locator("main script").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_colours_follow_the_scheme_and_paper_is_light(files: dict[str, Path], open_report) -> None:
    page = open_report(files["diagnosis"], scheme="dark").page
    line = page.locator(".plot").first.locator(".js-line").last
    dark = line.evaluate("line => getComputedStyle(line).stroke")
    assert dark == "rgb(111, 164, 248)"
    page.emulate_media(color_scheme="light")
    page.wait_for_timeout(300)
    assert line.evaluate("line => getComputedStyle(line).stroke") != dark
    page.emulate_media(color_scheme="dark")
    page.wait_for_timeout(300)
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert line.evaluate("line => getComputedStyle(line).stroke") != dark
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert line.evaluate("line => getComputedStyle(line).stroke") == dark


@pytest.mark.parametrize("kind", KINDS)
def test_a_printed_page_holds_its_tables_whole(files: dict[str, Path], open_report, kind: str) -> None:
    page = open_report(files[kind], width=700).page
    page.emulate_media(media="print")
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate("document.documentElement.scrollWidth") <= 700


def test_trials_can_be_narrowed(files: dict[str, Path], open_report) -> None:
    page = open_report(files["positions"]).page
    rows = page.locator("[data-trials] tbody tr")
    assert rows.count() == 42
    page.get_by_role("combobox", name="arm").select_option("middle")
    assert page.locator("[data-trials] tbody tr:visible").count() == 6
    page.get_by_role("combobox", name="case").select_option("case-3")
    assert page.locator("[data-trials] tbody tr:visible").count() == 1
    assert page.locator("output").text_content() == "1 of 42 shown"


def test_the_policy_stops_a_script_that_is_not_the_reports_own(files: dict[str, Path], open_report) -> None:
    opened = open_report(files["tokens"])
    opened.page.evaluate(
        "const script = document.createElement('script'); script.textContent = 'window.ran = 1'; document.body.append(script)"
    )
    assert opened.page.evaluate("window.ran") is None
    assert any("Content Security Policy" in said for said in opened.said)
    opened.page.evaluate("fetch('https://example.org/').catch(() => {})")
    opened.page.wait_for_timeout(200)
    assert opened.requests == [files["tokens"].as_uri()]


def test_the_page_hands_out_the_report_and_the_rows(app: App, visit: Open, tmp_path: Path) -> None:
    with Store.open(app.store) as store:
        diagnose_into(store, "d1")
    app.start()
    page = visit(f"{app.url}/Diagnose?run=d1").page
    page.get_by_role("button", name="Report", exact=True).click()
    for redacted in (False, True):
        if redacted:
            page.get_by_text("Leave out texts").click()
            page.wait_for_timeout(1_000)
        with page.expect_download() as waiting:
            page.get_by_role("button", name="Download report").click()
        file = tmp_path / waiting.value.suggested_filename
        waiting.value.save_as(file)
        assert file.name == f"lim-d1{'-redacted' if redacted else ''}.html"
        assert (NEEDLE in file.read_text("utf-8")) is not redacted
    page = visit(f"{app.url}/Runs?run=d1").page
    for form, begins in (("CSV", b"run_id,model,seq,"), ("JSONL", b'{"run_id": "d1", ')):
        with page.expect_download() as waiting:
            page.get_by_role("button", name=f"Export {form}", exact=True).click()
        waiting.value.save_as(tmp_path / "rows")
        assert (tmp_path / "rows").read_bytes().startswith(begins)
