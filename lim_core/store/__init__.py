"""The store of runs: one DuckDB file, rows only added, one owner process."""

from lim_core.store.calls import RunCache
from lim_core.store.file import Store
from lim_core.store.records import ArmRow, Rescore, RunPage, RunRecord, RunStatus, RunSummary, TrialRow
from lim_core.store.sink import RunSink

__all__ = [
    "ArmRow",
    "Rescore",
    "RunCache",
    "RunPage",
    "RunRecord",
    "RunSink",
    "RunStatus",
    "RunSummary",
    "Store",
    "TrialRow",
]
