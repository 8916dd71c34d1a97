"""Runs trials on the tested model."""

from lim_core.runner.runner import CallTally, Runner, call_key

__all__ = ["CallTally", "Runner", "call_key"]
