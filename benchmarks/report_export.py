"""How long a report of a 2,000-trial run takes and how large it is. Run: python benchmarks/report_export.py

A suite of 40 cases of 16 chunks on the scripted model, five positions with both brackets, in as many blocks as make 2,000
trials; then the diagnosis-shaped worst case: one case of 700 long chunks and 6,000 trials with long answers.
"""

from __future__ import annotations

import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from lim_core.reports import html_report
from lim_core.runs import run_experiment
from lim_core.store import Store
from lim_core.types import Chunk
from tests.reported import a_case, settings
from tests.stored import a_trial, put, start

CASES, CHUNKS, BLOCKS = 40, 16, 10


def main() -> None:
    """Build both stores and print seconds (the first report in a process, then the best of three) and bytes."""
    with tempfile.TemporaryDirectory() as folder, Store.open(Path(folder, "lim.duckdb")) as store:
        plan = settings({"positions": ["first", "q1", "middle", "q3", "last"], "blocks": BLOCKS})
        suite = [a_case(number, CHUNKS) for number in range(CASES)]
        run_experiment("positions", "bench", suite, plan, store=store, run_id="suite")
        chunks = tuple(Chunk(f"c{place}", "many words & more " * 700) for place in range(700))
        start(store, "worst", replace(a_case(), id="ferry", chunks=chunks))
        put(store, *(a_trial(number, text="<answer> " * 400) for number in range(6_000)), run_id="worst")
        for run_id in ("suite", "worst"):
            for redact in (False, True):
                _measure(store, run_id, redact)


def _measure(store: Store, run_id: str, redact: bool) -> None:
    times: list[float] = []
    made = b""
    for _ in range(4):
        began = time.perf_counter()
        made = html_report(store, run_id, redact)
        times.append(time.perf_counter() - began)
    name = f"{run_id}{', redacted' if redact else ''}"
    print(
        f"{name:<18}{store.count_trials(run_id):>6} trials  first {times[0]:5.2f} s  then {min(times[1:]):5.2f} s  "
        f"{len(made) / 1e6:5.2f} MB"
    )


if __name__ == "__main__":
    main()
