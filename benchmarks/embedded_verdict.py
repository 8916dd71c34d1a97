"""The position sample on the embedded model: calls, tokens, seconds, peak memory, and whether the verdict holds by seed.

python benchmarks/embedded_verdict.py [--seeds 5] [--case data/lost-in-the-middle.json]
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))


def peak_before_embedding(case_path: Path) -> int:
    """Peak memory, in MB, of a process that opens the model and answers the brackets and one block, nothing else."""
    script = f"""
import resource, sys
sys.path.insert(0, {str(ROOT)!r})
from pathlib import Path
from lim_core import arms, cases
from lim_core.backends import open_model, spec_for
from lim_core.judges import judges
from lim_core.runner import Runner
case = cases.read_case(Path({str(case_path)!r}).read_bytes(), "case").case
model = open_model(spec_for("embedded"))
parts = arms.split(case.chunks, case.gold_ids)
with Runner(lambda: model, {{case.id: case}}, judges["contains"].part) as runner:
    list(runner.run(arms.position_block(case, parts, parts.distractors, 0, arms.named_slots(parts)), "x"))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
model.close()
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return int(done.stdout.split()[-1])


def main() -> None:
    from lim_core import cases, runs
    from lim_core.backends import open_model, spec_for

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--case", default=None)
    arguments = parser.parse_args()
    index = json.loads((ROOT / "data" / "samples.json").read_text(encoding="utf-8"))
    path = Path(arguments.case) if arguments.case else ROOT / "data" / index[0]["file"]
    case = cases.read_case(path.read_bytes(), path.name).case
    print(f"{path.name}: {len(case.chunks)} chunks; peak memory before any embedding {peak_before_embedding(path)} MB")
    started = time.monotonic()
    keep = open_model(spec_for("embedded"))
    print(f"model loaded in {time.monotonic() - started:.1f} s")
    for seed in range(arguments.seeds):
        settings = runs.RunSettings(seed=seed)
        started = time.monotonic()
        document = runs.run_diagnosis(case, settings, store=None, run_id=runs.new_run_id()).document
        calls, seconds = document["calls"], time.monotonic() - started
        position = document["position"] or {}
        told = " ".join(
            f"{p['arm'].removeprefix('position:')} {p['correct']}/{p['n']}" for p in position.get("points", [])
        )
        print(
            f"seed {seed}: {document['cause']}, {told}, e = {position.get('e_value') or 0:.3g}, "
            f"{position.get('blocks')} blocks; "
            f"{calls['made']} calls, {calls['prompt_tokens']} prompt tokens ({calls['cached_prompt_tokens']} cached), "
            f"{seconds:.0f} s"
        )
        for remedy in document["remedies"]:
            if remedy["tried"]:
                print(
                    f"    {remedy['name']:<26} {remedy['before']:.2f} -> {remedy['after']:.2f} "
                    f"gain {remedy['gain']:+.2f} [{remedy['low']:+.2f}, {remedy['high']:+.2f}] n {remedy['n']}"
                )
    print(f"peak memory with embeddings {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024} MB")
    keep.close()


if __name__ == "__main__":
    main()
