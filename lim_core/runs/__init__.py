"""Starts, resumes and loads runs: what pages and command line call."""

from lim_core.runs.diagnosis import run_diagnosis
from lim_core.runs.engine import RunOutcome
from lim_core.runs.experiment import ExperimentView, load_experiment, run_experiment
from lim_core.runs.preflight import Preflight, preflight, preflight_experiment
from lim_core.runs.resume import rejudge, resume_run
from lim_core.runs.settings import EMBEDDED, RunSettings, new_run_id, price_of

__all__ = [
    "EMBEDDED",
    "ExperimentView",
    "Preflight",
    "RunOutcome",
    "RunSettings",
    "load_experiment",
    "new_run_id",
    "preflight",
    "preflight_experiment",
    "price_of",
    "rejudge",
    "resume_run",
    "run_diagnosis",
    "run_experiment",
]
