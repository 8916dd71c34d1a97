"""Calls a second through lim's runner, store writes on, over a bare asyncio loop around AsyncOpenAI, in one run.

Both talk to one scripted endpoint over HTTP, in a process of its own so that its work does not count as lim's.

    python benchmarks/throughput.py [--calls 2000] [--in-flight 64] [--latency 0.05] [--rounds 3]
"""

from __future__ import annotations

import argparse
import asyncio
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from lim_core.backends import ModelSpec, open_model
from lim_core.judges import judges
from lim_core.runner.lane import Pace
from lim_core.prompts import lay_out
from lim_core.runner import Runner
from lim_core.store import Store
from lim_core.types import Budget, Case, Chunk, Trial

SERVER = """
import sys, time
from lim_core.backends.scripted import ScriptedOptions, read_script
from lim_core.backends.scripted_server import ScriptedServer
server = ScriptedServer(read_script(ScriptedOptions(latency=float(sys.argv[1]), needles=("amber",))))
print(server.base_url, flush=True)
sys.stdin.read()
"""


def trials(case: Case, calls: int, salt: str) -> list[Trial]:
    return [
        Trial(case.id, "position:first", n, 0, lay_out(f"{salt} {n}: which colour?", case.chunks), 0)
        for n in range(calls)
    ]


def cpu() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


async def bare(base_url: str, work: list[Trial], in_flight: int) -> None:
    from openai import AsyncOpenAI

    async with AsyncOpenAI(base_url=base_url, api_key="none", max_retries=0) as client:
        gate = asyncio.Semaphore(in_flight)

        async def one(trial: Trial) -> None:
            async with gate:
                await client.chat.completions.create(
                    model="scripted",
                    messages=[{"role": "user", "content": trial.prompt.messages[0].content}],
                    temperature=0,
                    max_tokens=48,
                )

        await asyncio.gather(*map(one, work))


def ours(base_url: str, case: Case, work: list[Trial], in_flight: int, folder: Path) -> None:
    spec = ModelSpec("openai-compat", "scripted", base_url)
    model = open_model(spec)
    with Store.open(folder / f"{time.monotonic_ns()}.duckdb") as store:
        store.start_run("bench", case, {}, {})
        sink = store.sink("bench", "contains", "1")
        with Runner(
            lambda: model,
            {case.id: case},
            judges["contains"].part,
            sink=sink,
            budget=Budget(calls=None),
            pace=Pace(in_flight=in_flight),
        ) as runner:
            done = sum(1 for _ in runner.run(work, "bench"))
            assert done == len(work), runner.stopped
        sink.flush()
    model.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--in-flight", type=int, default=64)
    parser.add_argument("--latency", type=float, default=0.05)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    case = Case(
        "bench", "?", tuple(Chunk(f"c{i}", f"Room {i} is painted amber.") for i in range(3)), answers=("amber",)
    )
    server = subprocess.Popen(
        [sys.executable, "-c", SERVER, str(arguments.latency)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdout is not None
    base_url = server.stdout.readline().strip()
    ratios = []
    try:
        with tempfile.TemporaryDirectory() as folder:
            asyncio.run(bare(base_url, trials(case, 100, "warm"), arguments.in_flight))
            ours(base_url, case, trials(case, 99, "too"), arguments.in_flight, Path(folder))
            for round_ in range(arguments.rounds):
                started, used = time.monotonic(), cpu()
                asyncio.run(bare(base_url, trials(case, arguments.calls, f"bare {round_}"), arguments.in_flight))
                bare_seconds, bare_cpu = time.monotonic() - started, cpu() - used
                started, used = time.monotonic(), cpu()
                ours(base_url, case, trials(case, arguments.calls, f"ours {round_}"), arguments.in_flight, Path(folder))
                our_seconds, our_cpu = time.monotonic() - started, cpu() - used
                ratios.append(bare_seconds / our_seconds)
                per_call = 1000 / arguments.calls
                print(
                    f"round {round_ + 1}: bare {arguments.calls / bare_seconds:.0f} calls/s, "
                    f"{per_call * bare_cpu:.2f} ms CPU a call; lim {arguments.calls / our_seconds:.0f} calls/s, "
                    f"{per_call * our_cpu:.2f} ms; ratio {ratios[-1]:.2f}"
                )
    finally:
        server.communicate("", timeout=10)
    print(f"median ratio {statistics.median(ratios):.2f} (aim: at least 0.8)")


if __name__ == "__main__":
    main()
