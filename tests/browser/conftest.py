"""The real app on a free port with a store and a home of its own, and a real Chromium that may reach nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from driver import App, Visit, an_app
from playwright.sync_api import Browser, BrowserContext, sync_playwright

CHROMIUM = Path("/usr/bin/chromium")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in Path(str(item.fspath)).parents:
            item.add_marker(pytest.mark.browser)


@pytest.fixture
def app(tmp_path: Path) -> Iterator[App]:
    """Not started yet, so that a test can put runs into the store first."""
    with an_app(tmp_path) as running:
        yield running


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    if not CHROMIUM.exists():
        pytest.skip(f"{CHROMIUM} is not installed")
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(
            executable_path=str(CHROMIUM), args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        )
        yield opened
        opened.close()


@pytest.fixture
def visit(browser: Browser) -> Iterator[object]:
    """Opens a fresh browser profile at a width and in a colour scheme."""
    contexts: list[BrowserContext] = []

    def open_one(url: str, width: int = 1400, scheme: str = "light") -> Visit:
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme="dark" if scheme == "dark" else "light"
        )
        contexts.append(context)
        seen = Visit(context, context.new_page())
        seen.page.on("request", lambda request: seen.requests.append(request.url))
        seen.page.on("pageerror", lambda error: seen.faults.append(str(error)))
        seen.page.on("dialog", lambda dialog: (seen.faults.append(dialog.message), dialog.dismiss()))
        seen.page.goto(url)
        seen.settle()
        return seen

    yield open_one
    for context in contexts:
        context.close()
