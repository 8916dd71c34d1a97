"""What a run had sent before it was resumed, so that its document counts the whole run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lim_core.prices import Price
from lim_core.runner import CallTally
from lim_core.store.records import RunStatus
from lim_core.types import Json, Usage

if TYPE_CHECKING:
    from lim_core.store import Store


@dataclass(frozen=True, slots=True)
class Earlier:
    """Calls and seconds of the parts that came before; nothing for a new run."""

    tally: CallTally = field(default_factory=CallTally)
    seconds: float = 0.0


def sent_before(store: Store, run_id: str, price: Price | None) -> Earlier:
    """Read it from the stored run, before it is started again.

    A part that was killed left no document: its seconds are unknown and not counted, and requests that failed without a
    trial to show for it are not known either. `cached` is left to the part that is running.
    """
    record = store.run(run_id)
    if record is None:
        return Earlier()
    rows = [row for row in store.trials(run_id, limit=store.count_trials(run_id)) if not row.cached]
    made = max(record.calls or 0, len(rows))
    answered = [row for row in rows if row.seconds > 0]
    retried = made - len(rows)
    tally = CallTally(made=made, retried=retried, failed=retried + len(rows) - len(answered))
    for row in answered:
        tally.answered(Usage(row.prompt_tokens, row.completion_tokens, row.cached_prompt_tokens), row.seconds, price)
    document = store.document(run_id)
    calls: Json = document.get("calls") if document is not None else None
    if not isinstance(calls, Mapping):
        return Earlier(tally)
    if record.status is not RunStatus.INTERRUPTED:
        tally.failed, tally.retried = int(_number(calls.get("failed"))), int(_number(calls.get("retried")))
    return Earlier(tally, _number(calls.get("seconds")))


def _number(value: Json) -> float:
    return float(value) if isinstance(value, int | float) else 0.0
