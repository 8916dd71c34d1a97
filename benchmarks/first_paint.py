"""Time to first paint of the pages in a fresh browser, and what the server has imported by then.

python benchmarks/first_paint.py [--repeats 3] [--store FILE [--paths "/Position_curves?run=ID" ...]]

With a store of yours, that file is served (stop the app first) and the paths are measured too: until their heading, and until
their first chart.
"""

from __future__ import annotations

import argparse
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HEAVY = ("torch", "sentence_transformers", "xllamacpp", "transformers")
PAGES = ["/", "/Diagnose", "/Position_curves", "/Accuracy_vs_tokens", "/Orderings", "/Runs", "/Models"]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def loaded(pid: int) -> list[str]:
    """Heavy libraries that the server process has mapped."""
    maps = Path(f"/proc/{pid}/maps").read_text(encoding="utf-8", errors="replace")
    return [name for name in HEAVY if f"/{name}/" in maps or f"/{name}." in maps]


def peak(pid: int) -> int:
    """The most memory the process held, in MB."""
    lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) // 1024 for line in lines if line.startswith("VmHWM"))


def main() -> None:
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--store", type=Path)
    parser.add_argument("--paths", nargs="*", default=[])
    arguments = parser.parse_args()
    port = free_port()
    with tempfile.TemporaryDirectory() as home, sync_playwright() as playwright:
        server = subprocess.Popen(
            [sys.executable, "-m", "streamlit", "run", "app.py", "--server.port", str(port)],
            cwd=ROOT,
            env=os.environ | {"LIM_STORE": str(arguments.store or f"{home}/lim.duckdb")},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            url = f"http://127.0.0.1:{port}"
            for _ in range(300):
                try:
                    urllib.request.urlopen(f"{url}/_stcore/health", timeout=1)  # noqa: S310
                    break
                except OSError:
                    time.sleep(0.1)
            flags = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
            for path in [*PAGES, *arguments.paths]:
                times, drawn = [], []
                for _ in range(arguments.repeats):
                    browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=flags)
                    page = browser.new_page()
                    started = time.monotonic()
                    page.goto(f"{url}{path}")
                    page.locator("h1").first.wait_for()
                    times.append(time.monotonic() - started)
                    if path in arguments.paths:
                        page.locator(".js-plotly-plot").first.wait_for(timeout=60_000)
                        drawn.append(time.monotonic() - started)
                    browser.close()
                chart = f"; first chart {drawn[0]:.2f} s, median {statistics.median(drawn):.2f} s" if drawn else ""
                print(
                    f"{path:<40} first {times[0]:.2f} s, median {statistics.median(times):.2f} s of {len(times)}{chart}"
                )
            print(f"server's peak memory: {peak(server.pid)} MB")
            print(f"heavy libraries in the server after all pages: {loaded(server.pid) or 'none'}")
        finally:
            server.terminate()
            server.wait(10)


if __name__ == "__main__":
    main()
