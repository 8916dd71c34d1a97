"""Runs that outlive their server, their key or their own process, in a real browser on the real app."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace

from driver import ROOT, App, Visit

from lim_core.backends.scripted import ScriptedOptions, read_script
from lim_core.backends.scripted_server import ScriptedServer
from lim_core.cases import case_to_json
from lim_core.prices import Price, PriceTable, read_prices, write_prices
from lim_core.store import Store
from lim_core.ui.samples import list_samples, load_sample
from tests.questions import office_case

Open = Callable[..., Visit]
KEY = "sk-planted-0123456789abcdef"


def main_text(seen: Visit) -> str:
    return seen.page.locator("[data-testid=stMain]").inner_text()


def test_a_killed_server_loses_the_key_and_not_the_run(app: App, visit: Open) -> None:
    samples = list_samples()
    (place,) = [at for at, sample in enumerate(samples) if sample.file == "lost-in-the-middle.json"]
    needles = load_sample(samples[place]).case.answers
    options = ScriptedOptions(profile="u", edge=1.0, middle=0.0, latency=0.6, needles=needles)
    with ScriptedServer(read_script(options, key=KEY)) as server:
        app.start()
        seen = visit(f"{app.url}/Models")
        seen.page.get_by_role("radio", name="Endpoint").click()
        seen.settle()
        seen.page.get_by_label("Base URL").fill(server.base_url)
        seen.page.get_by_label("Model name").fill("scripted")
        seen.page.get_by_role("textbox", name="Key for this address").fill(KEY)
        seen.page.get_by_role("button", name="Use this endpoint").click()
        seen.wait_for_text("This session tests on scripted")
        seen.page.get_by_role("link", name="Home").first.click()
        seen.settle()
        seen.page.locator(f".st-key-sample-{place} button").click()
        seen.page.wait_for_url("**/Diagnose?run=*", timeout=60_000)
        link = seen.page.url
        deadline = time.monotonic() + 60
        while server.traffic.chats < 12 and time.monotonic() < deadline:
            seen.page.wait_for_timeout(100)
        assert app.process is not None
        app.process.kill()
        app.process.wait(20)
        seen.context.close()
        paid = server.traffic.chats
        server.script = replace(server.script, latency=0.0)
        app.start()
        other = visit(f"{app.url}/Runs?{link.partition('?')[2]}")
        assert "This run waits for its key" in main_text(other)
        other.page.get_by_role("textbox", name="Key for http").fill(KEY)
        other.page.get_by_role("button", name="Continue").click()
        other.page.get_by_role("button", name="Continue").wait_for(state="detached", timeout=120_000)
        other.page.get_by_role("button", name="Run again").wait_for(timeout=120_000)
        other.settle()
        assert "waits for its key" not in main_text(other)
        assert KEY not in other.page.content()
        assert not other.faults
        sent = server.traffic.chats - paid
    app.stop()
    with Store.open(app.store) as store:
        calls = (store.document(link.partition("run=")[2]) or {})["calls"]
        assert isinstance(calls, dict)
        # The whole run is counted; at most what was in flight at the kill is unknown, and sent twice.
        assert paid - 8 <= calls["made"] - sent <= paid
        assert calls["cached"] >= paid - 8
    assert KEY.encode() not in b"".join(path.read_bytes() for path in app.folder.rglob("*") if path.is_file())


def test_a_run_of_the_command_line_appears_in_an_open_browser(app: App, visit: Open) -> None:
    app.start()
    seen = visit(f"{app.url}/Runs")
    assert "No runs match." in main_text(seen)
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("LIM_", "OPENAI_"))}
    done = subprocess.run(
        [sys.executable, "-m", "lim_core", "diagnose", "-", "--model", "scripted", "--max-calls", "26"],
        cwd=ROOT,
        env=environ | {"LIM_STORE": str(app.store), "HF_HUB_OFFLINE": "1"},
        input=json.dumps(case_to_json(office_case())).encode(),
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (file,) = (app.folder / "inbox").glob("*.duckdb")
    seen.page.get_by_role("link", name="Home").first.click()
    seen.settle()
    seen.wait_for_text("Lost in the middle of the prompt")
    assert not file.exists()
    seen.page.goto(f"{app.url}/Diagnose?run={file.stem}")
    seen.page.get_by_role("button", name="Run again").wait_for(timeout=60_000)
    assert "LOST_IN_THE_MIDDLE" in main_text(seen)


def test_a_price_is_typed_into_the_grid_and_a_key_of_the_keyboard_empties_it(app: App, visit: Open) -> None:
    write_prices(app.folder, PriceTable("USD", {"big-model": Price(2.5, 10.0, 1.25)}))
    app.start(LIM_BASE_URL="http://127.0.0.1:9/v1", LIM_MODEL="big-model")
    seen = visit(f"{app.url}/Models")
    assert "Price of big-model: 2.5 input, 1.25 cached input, 10 output, USD per million tokens." in main_text(seen)
    grid = seen.page.locator("[data-testid=stDataFrame]")
    grid.scroll_into_view_if_needed()
    box = grid.bounding_box()
    assert box is not None
    # The first cell of the first row, then one to the right: the input price.
    seen.page.mouse.click(box["x"] + 120, box["y"] + 52)
    seen.page.keyboard.press("ArrowRight")
    seen.page.keyboard.press("Enter")
    editor = seen.page.locator(".gdg-style input, #portal input").last
    editor.wait_for(timeout=20_000)
    editor.fill("3.75")
    seen.page.wait_for_timeout(300)
    seen.page.keyboard.press("Enter")
    seen.page.wait_for_timeout(300)
    seen.page.keyboard.press("ArrowUp")
    seen.page.keyboard.press("ArrowRight")
    seen.page.keyboard.press("Delete")
    seen.page.wait_for_timeout(500)
    seen.settle()
    seen.page.get_by_role("button", name="Save prices").click()
    seen.wait_for_text("The prices are saved.")
    assert read_prices(app.folder) == PriceTable("USD", {"big-model": Price(3.75, 10.0, None)})
    assert "Price of big-model: 3.75 input, 10 output" in main_text(seen)
