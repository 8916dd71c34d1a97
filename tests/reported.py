"""Real runs of the scripted model for the tests of reports: texts that try to break out of every place they come to."""

from __future__ import annotations

from collections.abc import Mapping

from lim_core.prompts import lay_out
from lim_core.runs import RunSettings, run_diagnosis, run_experiment
from lim_core.store import Store
from lim_core.types import Case, Chunk, Json

BREAKOUT = "</script><img src=x onerror=\"document.title='owned';alert(1)\">"
HOSTILE = f"{BREAKOUT}</title></style><script>alert(2)</script><!-- \u2028 ${{x}} &lt; javascript:alert(3)"
NEEDLE = "Ottilie Brandt"
PLANS: Mapping[str, Mapping[str, Json]] = {
    "positions": {"positions": ["first", "q1", "middle", "q3", "last"]},
    "tokens": {"k": [1, 2, 5, 10]},
    "orderings": {"orderings": ["as-retrieved", "edges", "reverse"]},
    "grid": {"lengths": [300, 600], "depths": 3},
}


def a_case(number: int = 0, chunks: int = 12) -> Case:
    """One case whose gold chunk is in the middle; ids, texts and titles are hostile."""
    gold = chunks // 2
    body = tuple(
        Chunk(
            f"c{place}{BREAKOUT if place == 0 else ''}",
            f"Harbour ledger {number}.{place}: the keeper of the ledger was {NEEDLE}. {HOSTILE}"
            if place == gold
            else f"Quay note {number}.{place} tells of ropes, tar and the price of salted herring. {HOSTILE}",
            title=f"Page {place} {BREAKOUT}",
        )
        for place in range(chunks)
    )
    question = f"Who was the keeper of the harbour ledger {number}? {BREAKOUT}"
    return Case(
        id=f"case-{number}{BREAKOUT if number == 0 else ''}",
        question=question,
        chunks=body,
        answers=(NEEDLE,),
        gold_ids=(f"c{gold}",),
        prompt=lay_out(question, body).messages if number == 0 else None,
        answer="Somebody else entirely kept it.",
    )


def settings(plan: Mapping[str, Json] | None = None, **options: Json) -> RunSettings:
    """The scripted model with a planted U-shape."""
    rule = {"needles": [NEEDLE], "edge": 0.95, "middle": 0.1, **options}
    return RunSettings(model="scripted", options=rule, max_calls=4_000, plan=plan or {})


def diagnose_into(store: Store, run_id: str = "d1") -> None:
    """A whole diagnosis."""
    run_diagnosis(a_case(), settings(), store=store, run_id=run_id)


def experiment_into(store: Store, kind: str, cases: int = 6) -> str:
    """A whole experiment over a suite; its kind is its run id."""
    suite = tuple(a_case(number) for number in range(cases))
    run_experiment(kind, "ledgers.jsonl", suite, settings(PLANS[kind]), store=store, run_id=kind)
    return kind
