"""The JSON object of `diagnose --json`: what the pages, the store, exports and scripts read. Schema 1."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from lim_core.diagnose import Diagnosis
from lim_core.runner import CallTally
from lim_core.types import Case, Finding, Json, Outcome

SCHEMA = 1
Document = dict[str, Json]


def build_document(
    case: Case,
    diagnosis: Diagnosis,
    *,
    run_id: str | None,
    tested_model: str,
    same_model: bool | None,
    tally: CallTally,
    seconds: float,
    outcomes: Mapping[str, int],
    release: Mapping[str, Json],
    warnings: Sequence[str],
) -> Document:
    """Every key of the contract, unknown as null; the additions (`question`, `warnings`, ...) come last."""
    return {
        "schema": SCHEMA,
        "run_id": run_id,
        "case_id": case.id,
        "cause": diagnosis.cause.value,
        "also": [cause.value for cause in diagnosis.also],
        "summary": diagnosis.summary,
        "tested_model": tested_model,
        "same_model": same_model,
        "stages": [_stage(finding) for finding in diagnosis.findings],
        "position": _position(diagnosis.findings),
        "remedies": [asdict(remedy) for remedy in diagnosis.remedies],
        "outcomes": {outcome.value: outcomes.get(outcome.value, 0) for outcome in Outcome},
        "calls": calls_json(tally, seconds),
        "release": dict(release),
        "question": case.question,
        "warnings": list(warnings),
        "stopped": str(diagnosis.stopped) if diagnosis.stopped is not None else None,
    }


def calls_json(tally: CallTally, seconds: float) -> dict[str, Json]:
    """What a run has sent; `made` counts HTTP requests, retries included, `cost` is null where a price is unknown."""
    return {
        "made": tally.made,
        "failed": tally.failed,
        "retried": tally.retried,
        "cached": tally.cached,
        "prompt_tokens": tally.prompt_tokens,
        "cached_prompt_tokens": tally.cached_prompt_tokens,
        "completion_tokens": tally.completion_tokens,
        "cost": tally.cost,
        "seconds": round(seconds, 3),
        "latency_p50": _quantile(tally.latencies, 0.5),
        "latency_p95": _quantile(tally.latencies, 0.95),
    }


def _quantile(latencies: Sequence[float], share: float) -> float | None:
    """Nearest-rank quantile of the uncached calls' seconds; None without one."""
    if not latencies:
        return None
    ranked = sorted(latencies)
    return round(ranked[max(0, math.ceil(share * len(ranked)) - 1)], 4)


def _stage(finding: Finding) -> Json:
    return {
        "stage": finding.stage,
        "status": finding.status.value,
        "summary": finding.summary,
        "evidence": dict(finding.evidence),
        "missing_fields": list(finding.missing_fields),
        "cause": finding.cause.value if finding.cause is not None else None,
        "advice": finding.advice,
    }


def _position(findings: Sequence[Finding]) -> Json:
    for finding in findings:
        if finding.stage == "position" and "points" in finding.evidence:
            return dict(finding.evidence)
    return None
