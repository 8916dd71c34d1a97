"""A suite measured from Home in a real browser: watched by two, opened cold after a restart, at 380 pixels too."""

from __future__ import annotations

import time
from collections.abc import Callable

from driver import App, Visit

from lim_core.backends.scripted import ScriptedOptions, read_script
from lim_core.backends.scripted_server import ScriptedServer
from lim_core.runs import load_experiment
from lim_core.store import Store
from lim_core.ui.suites import sample_suite
from tests.reported import experiment_into

Open = Callable[..., Visit]


def main_text(seen: Visit) -> str:
    return seen.page.locator("[data-testid=stMain]").inner_text()


def use_endpoint(seen: Visit, url: str) -> None:
    seen.page.get_by_role("radio", name="Endpoint").click()
    seen.settle()
    seen.page.get_by_label("Base URL").fill(url)
    seen.page.get_by_label("Model name").fill("scripted")
    seen.page.get_by_role("button", name="Use this endpoint").click()
    seen.wait_for_text("This session tests on scripted")


def test_a_curve_is_measured_from_home_and_watched_by_two(app: App, visit: Open) -> None:
    needles = tuple(answer for case in sample_suite().cases for answer in case.answers)
    options = ScriptedOptions(profile="u", edge=1.0, middle=0.0, latency=0.25, needles=needles)
    with ScriptedServer(read_script(options)) as server:
        app.start()
        first = visit(f"{app.url}/Models")
        use_endpoint(first, server.base_url)
        first.page.get_by_role("link", name="Home").first.click()
        first.settle()
        first.page.locator(".st-key-measure-positions button").click()
        first.page.wait_for_url("**/Position_curves?run=*", timeout=60_000)
        link = first.page.url
        second = visit(link)
        for seen in (first, second):
            seen.wait_for_text("calls")
            seen.wait_for_text("Unfinished,")
        deadline = time.monotonic() + 180
        while "Run again" not in main_text(second) and time.monotonic() < deadline:
            second.page.wait_for_timeout(500)
        for seen in (first, second):
            seen.page.get_by_role("button", name="Run again").wait_for(timeout=60_000)
            # The rule tells the first fact it reads, and the chunks of a handbook hold other cases' facts: so only a gold
            # chunk at the start is told.
            assert "The start is read best (48 cases" in main_text(seen)
            assert seen.page.locator(".js-plotly-plot").count() >= 3
        app.stop()
        app.start()
        cold = visit(f"{link}&published=true&tag=source%3Aferry", width=380)
        cold.wait_for_text("Published, not measured here")
        cold.page.locator(".js-plotly-plot").first.wait_for(timeout=60_000)
        assert "Liu" in main_text(cold)
        wide = cold.page.evaluate("document.querySelector('[data-testid=stMain]').scrollWidth")
        assert wide <= 380
        assert not first.faults
        assert not cold.faults


def test_a_click_anywhere_in_a_cell_of_the_grid_shows_its_trials(app: App, visit: Open) -> None:
    with Store.open(app.store) as store:
        experiment_into(store, "grid")
        shown = load_experiment(store, "grid").result
    cell = shown.cells[-1]
    app.start()
    seen = visit(f"{app.url}/Position_curves?run=grid")
    drawn = seen.page.locator(".st-key-grid-chart-grid .bars").last.locator(".point path").nth(len(shown.cells) - 1)
    drawn.wait_for(timeout=60_000)
    drawn.scroll_into_view_if_needed()
    box = drawn.bounding_box()
    assert box is not None
    # Near its edge, far from the number in the middle.
    seen.page.mouse.click(box["x"] + 0.9 * box["width"], box["y"] + 0.8 * box["height"])
    seen.wait_for_text(f"{cell.figures.trials} trial")
    assert f"{cell.length} tokens, {round(cell.depth * 100)}% of the way" in main_text(seen)
    assert not seen.faults
