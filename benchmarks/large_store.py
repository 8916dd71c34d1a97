"""Server time of reads on a store of 1,000 runs and 1,000,000 trials, and memory. Run: python benchmarks/large_store.py [FILE]

One experiment of each kind over 40 cases of the shipped suite, some 1,000 trials each, one of 2,000 and one diagnosis are
really run on the scripted model; the experiments are then copied inside the file under ids of their own until there are
1,000 runs. The runs draw on 25 suites. FILE (default: in a temporary folder of its own) is kept and used again where it
exists. The reads happen in a process of their own, as in a server that was just started: each read once, then the best of
three.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from lim_core.cases import read_suite
from lim_core.runs import RunSettings, load_experiment, run_diagnosis, run_experiment
from lim_core.store import Store
from lim_core.types import Json

RUNS, SUITES, CASES, BATCH = 1_000, 25, 40, 25
PLANS: dict[str, dict[str, Json]] = {
    "positions": {"blocks": 5},
    "tokens": {"k": [1, 2, 3, 5, 8], "blocks": 4},
    "orderings": {"orderings": ["as-retrieved", "edges", "reverse", "langchain"], "blocks": 4},
    "grid": {"lengths": [250, 500, 1000, 1500, 2000], "depths": 5},
}


def build(path: Path) -> None:
    """Fill a new store."""
    suite = read_suite((ROOT / "data" / "handbook-suite.jsonl").read_bytes(), "handbook").cases[:CASES]
    base = RunSettings(model="scripted", max_calls=100_000, options={"middle": 0.5})
    began = time.perf_counter()
    with Store.open(path) as store:
        run_diagnosis(suite[0], base, store=store, run_id="diagnosis")
        plans = {**{kind: (kind, plan) for kind, plan in PLANS.items()}, "large": ("positions", {"blocks": 10})}
        for run_id, (kind, plan) in plans.items():
            run_experiment(kind, "handbook", suite, replace(base, plan=plan), store=store, run_id=run_id)
        copies = -(-(RUNS - len(plans) - 1) // len(PLANS))
        for first in range(1, copies + 1, BATCH):
            _copy(store, first, min(first + BATCH, copies + 1))
        store._database.checkpoint()
        with store._database.cursor() as cursor:
            counted = cursor.execute(
                "SELECT (SELECT count(DISTINCT run_id) FROM runs), count(*) FROM trials"
            ).fetchone()
    print(
        f"built {counted} runs and trials in {time.perf_counter() - began:.0f} s, {path.stat().st_size / 1e6:,.0f} MB"
    )


def _copy(store: Store, first: int, end: int) -> None:
    """Copy the run of each kind to `kind-N` for every N of the range, over suite N modulo 25."""
    kinds = ", ".join(f"'{kind}'" for kind in PLANS)
    run, suite = "run_id || '-' || i AS run_id", f"case_hash || '-' || i % {SUITES} AS case_hash"
    moved = "added_at - 600 * i AS added_at"
    tables = {
        "runs": (
            "row",
            f"{run}, {suite}, {moved}, created_at - 600 * i AS created_at, document_id || i AS document_id",
        ),
        "run_cases": ("position", f"{run}, {suite}"),
        "releases": ("row", f"{run}, {moved}"),
        "arms": ("added_at", f"{run}, {moved}"),
        "trials": ("seq", f"{run}, {moved}, call_id || '-' || i AS call_id"),
        "scores": ("row", f"{run}, {moved}, key || '-' || i AS key"),
    }
    with store._database.write() as cursor:
        numbers = f"CROSS JOIN range({first}, {end}) AS t(i)"
        for table, (order, changes) in tables.items():
            # A row's number is the file's own, given in the order of the rows copied.
            dropped = "i, row" if order == "row" else "i"
            cursor.execute(
                f"INSERT INTO {table} BY NAME SELECT * EXCLUDE ({dropped}) REPLACE ({changes}) "  # noqa: S608
                f"FROM {table} {numbers} WHERE run_id IN ({kinds}) ORDER BY i, run_id, {order}"
            )
        cursor.execute(
            f"INSERT INTO calls BY NAME SELECT calls.* REPLACE (id || '-' || i AS id) FROM calls {numbers} "  # noqa: S608
            f"WHERE id IN (SELECT call_id FROM trials WHERE run_id IN ({kinds})) ORDER BY i, started_at"
        )
        cursor.execute(
            f"INSERT INTO cases BY NAME SELECT * EXCLUDE (i) REPLACE ({suite}) FROM cases {numbers} "  # noqa: S608
            f"WHERE NOT contains(case_hash, '-') AND i <= {SUITES}"
        )


def read(path: Path) -> None:
    """Time each read and print the process's memory."""
    # DuckDB imports it with the first bound value; in the app Streamlit has done so before.
    import pandas  # noqa: F401

    with Store.open(path) as store:
        print(f"{'read':<28}{'first':>10}{'then':>10}  peak MB")
        _time("runs, 50 newest", lambda: store.runs(limit=50))
        _time("runs, one kind", lambda: store.runs(limit=50, kind="positions"))
        _time("runs, text, page 10", lambda: store.runs(limit=50, offset=450, text="handbook", status="done"))
        for kind in PLANS:
            _time(f"load_experiment {kind}", lambda run_id=f"{kind}-120": load_experiment(store, run_id))
        _time("load_experiment of 2,080", lambda: load_experiment(store, "large"))
        _time("run", lambda: store.run("positions-120"))
        _time("document", lambda: store.document("positions-120"))
        _time("suite", lambda: store.suite("positions-120"))
        _time("cells", lambda: store.cells("positions-120"))
        _time("trials, 100", lambda: store.trials("positions-120", limit=100))
        _time("count of trials", lambda: store.count_trials("positions-120", outcome="wrong"))
        _time("arms", lambda: store.arms("positions-120"))


def _time(name: str, act: Callable[[], object]) -> None:
    times: list[float] = []
    for _ in range(4):
        began = time.perf_counter()
        act()
        times.append(1000 * (time.perf_counter() - began))
    print(f"{name:<28}{times[0]:>7.0f} ms{min(times[1:]):>7.0f} ms{_peak():>9.0f}", flush=True)


def _peak() -> float:
    """Most memory this process has held, in MB; getrusage would count the parent's too."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return next(int(line.split()[1]) / 1000 for line in status.splitlines() if line.startswith("VmHWM"))


def main() -> None:
    """Build where needed, then read in a process of its own."""
    if sys.argv[1:2] == ["--read"]:
        read(Path(sys.argv[2]))
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(folder, "lim.duckdb")
        if not path.exists():
            build(path)
        subprocess.run([sys.executable, __file__, "--read", str(path)], check=True)


if __name__ == "__main__":
    main()
