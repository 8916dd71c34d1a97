"""Runs killed (SIGKILL) at a random moment, then resumed: trials lost, stores damaged, calls paid twice.

The scripted endpoint lives in this process and counts what it answered, so what was paid for is known from its side. Calls
that were in flight or uncommitted at the kill are counted apart: they may be paid again.

    python benchmarks/kill_runs.py [--runs 50] [--seed 0]
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from lim_core.backends.scripted import ScriptedOptions, read_script
from lim_core.backends.scripted_server import ScriptedServer
from lim_core.cases import case_to_json
from lim_core.errors import LimError
from lim_core.store import Store
from tests.questions import office_case


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "lim_core", *arguments]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    rng = random.Random(arguments.seed)
    case = office_case()
    lost = damaged = twice = flying = committed_total = killed = 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "case.json"
        path.write_text(json.dumps(case_to_json(case)), encoding="utf-8")
        for number in range(arguments.runs):
            options = ScriptedOptions(profile="flat", edge=0.5, latency=0.02, needles=case.answers, seed=number)
            with ScriptedServer(read_script(options)) as server:
                store_path = Path(folder) / f"{number}.duckdb"
                environment = os.environ | {"LIM_STORE": str(store_path)}
                target = ["--model", "scripted", "--base-url", server.base_url]
                run = subprocess.Popen(
                    command("diagnose", str(path), *target, "--max-calls", "120", "--in-flight", "4", "--json"),
                    cwd=ROOT,
                    env=environment,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                )
                while not server.traffic.chats and run.poll() is None:
                    time.sleep(0.01)
                time.sleep(rng.uniform(0, 1.5))
                killed += run.poll() is None
                run.kill()
                run.wait()
                paid_before = Counter(json.dumps(seen.body, sort_keys=True) for seen in server.traffic.seen)
                try:
                    with Store.open(store_path) as store:
                        rows = store.runs(limit=2, offset=0).rows
                        run_id = rows[0].id
                        kept = {row.call_id for row in store.trials(run_id, limit=10_000)}
                except (LimError, IndexError):
                    damaged += 1
                    continue
                # What the endpoint answered beyond what was committed was in flight when the process died.
                in_flight = sum(paid_before.values()) - len(kept)
                resumed = subprocess.run(
                    command("runs", "resume", run_id, "--json"),
                    cwd=ROOT,
                    env=environment,
                    capture_output=True,
                    text=True,
                )
                if resumed.returncode != 0:
                    damaged += 1
                    print(f"run {number}: resume ended with {resumed.returncode}: {resumed.stderr.strip()[-200:]}")
                    continue
                with Store.open(store_path) as store:
                    after = {row.call_id for row in store.trials(run_id, limit=10_000)}
                lost += len(kept - after)
                # Oracle and closed-book are sent four times by design, so paying twice shows in the total.
                document = json.loads(resumed.stdout)
                paid = sum(1 for seen in server.traffic.seen)
                needed = document["calls"]["made"] + len(kept)
                twice += max(0, paid - needed - in_flight)
                flying += in_flight
                committed_total += len(kept)
    print(
        f"{arguments.runs} runs, {killed} killed while running, {committed_total} trials committed before the kill: "
        f"trials lost {lost}, stores damaged {damaged}, calls paid twice {twice} (in flight at the kill: {flying})"
    )


if __name__ == "__main__":
    main()
