"""How long the store's reads take with 1,000 runs and 1,000,000 trials. Run: python -m benchmarks.store_lists"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from lim_core.store import Store
from tests.stored import a_document, a_trial, put, start


def main() -> None:
    """Build the store and print the best of five for each read."""
    with tempfile.TemporaryDirectory() as folder, Store.open(Path(folder, "lim.duckdb")) as store:
        start(store, "r0")
        put(store, a_trial(0, prompt="word " * 400), run_id="r0")
        store.save_document("r0", a_document("r0"), "done")
        _multiply(store)
        for name, act in (
            ("runs, 50 of 1,000", lambda: store.runs(limit=50)),
            ("runs, text and status", lambda: store.runs(limit=50, text="ferry", status="done")),
            ("run", lambda: store.run("r500")),
            ("document", lambda: store.document("r500")),
            ("trials, 100 of 1,000", lambda: store.trials("r500", limit=100)),
            ("arms", lambda: store.arms("r500")),
            ("prompt", lambda: store.prompt("c500500")),
            ("cache", lambda: store.cache("r500")),
        ):
            print(f"{name:<24}{_best(act) * 1000:8.1f} ms")
        began = time.perf_counter()
        store.delete("r500")
        print(f"{'delete, once':<24}{(time.perf_counter() - began) * 1000:8.1f} ms")


def _multiply(store: Store) -> None:
    with store._database.write() as cursor:
        copies = "CROSS JOIN range(1, 1000) AS t(i)"
        cursor.execute(f"INSERT INTO runs SELECT * EXCLUDE (i) REPLACE ('r' || i AS run_id) FROM runs {copies}")  # noqa: S608
        many = "CROSS JOIN range(1000, 1000000) AS t(i)"
        for table, own in (("trials", "'c' || i AS call_id"), ("scores", "'k' || i AS key, i AS row")):
            cursor.execute(
                f"INSERT INTO {table} SELECT * EXCLUDE (i) "  # noqa: S608 - names from here
                f"REPLACE ('r' || (i // 1000) AS run_id, i % 1000 AS seq, {own}) FROM {table} {many}"
            )
        cursor.execute(f"INSERT INTO calls SELECT * EXCLUDE (i) REPLACE ('c' || i AS id) FROM calls {many}")  # noqa: S608
    store._database.checkpoint()


def _best(act: Callable[[], object]) -> float:
    times: list[float] = []
    for _ in range(5):
        began = time.perf_counter()
        act()
        times.append(time.perf_counter() - began)
    return min(times)


if __name__ == "__main__":
    main()
