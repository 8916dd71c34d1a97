"""Starts and stops the app, and opens browsers on it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from playwright.sync_api import BrowserContext, Page

ROOT = Path(__file__).resolve().parents[2]


@dataclass
class App:
    """The app as a process; `stop` and `start` keep its port and its store."""

    folder: Path
    port: int
    process: subprocess.Popen[bytes] | None = field(default=None)
    more: dict[str, str] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def store(self) -> Path:
        return self.folder / "lim.duckdb"

    def start(self, **more: str) -> None:
        """Start it; `more` is added to its environment, also when it is started again."""
        self.more |= more
        environ = {name: value for name, value in os.environ.items() if not name.startswith(("LIM_", "OPENAI_"))}
        environ |= {"LIM_STORE": str(self.store), "HOME": str(self.folder), "HF_HUB_OFFLINE": "1", **self.more}
        command = [sys.executable, "-m", "streamlit", "run", "app.py", "--server.port", str(self.port)]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(command, cwd=ROOT, env=environ, stdout=log, stderr=log)
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            try:
                with urllib.request.urlopen(f"{self.url}/_stcore/health", timeout=1) as reply:  # noqa: S310
                    if reply.status == 200:
                        return
            except OSError:
                time.sleep(0.2)
        raise AssertionError((self.folder / "log").read_text("utf-8"))

    def stop(self) -> None:
        if self.process is not None:
            self.process.terminate()
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait(20)
            self.process = None


@contextmanager
def an_app(folder: Path) -> Iterator[App]:
    """An app on a free port with its store and its home in the folder; not started yet, stopped at the end."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    app = App(folder, port)
    try:
        yield app
    finally:
        app.stop()


@dataclass
class Visit:
    """One browser of its own with what it asked for and what went wrong in it."""

    context: BrowserContext
    page: Page
    requests: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    def wait_for_text(self, text: str) -> None:
        """Wait until the text is seen at least once; a chart or a table may say it beside the page."""
        self.page.get_by_text(text).locator("visible=true").first.wait_for(timeout=60_000)

    def settle(self) -> None:
        """Wait until the script has run and nothing moves any more."""
        self.page.wait_for_selector("h1", timeout=60_000)
        self.page.wait_for_function(
            "document.querySelector('[data-testid=stApp]')?.getAttribute('data-test-script-state') === 'notRunning'",
            timeout=120_000,
        )
        self.page.wait_for_timeout(400)
