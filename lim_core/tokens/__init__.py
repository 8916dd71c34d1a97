"""Counts tokens: exactly where a tokenizer is at hand, else with a band."""

from lim_core.tokens.counters import (
    READ_SHARE,
    EstimateCounter,
    Observed,
    OpenAICounter,
    Place,
    calibrated,
    counter_for,
    token_offsets,
    token_spans,
)

__all__ = [
    "READ_SHARE",
    "EstimateCounter",
    "Observed",
    "OpenAICounter",
    "Place",
    "calibrated",
    "counter_for",
    "token_offsets",
    "token_spans",
]
