"""Case files: read strictly, checked field by field, written back."""

from lim_core.cases.case_files import (
    NEEDS_CHUNKS,
    NEEDS_QUESTION,
    LoadedCase,
    case_from_json,
    check_ready,
    read_case,
    read_suite,
)
from lim_core.cases.decoding import MAX_BYTES
from lim_core.cases.writing import case_to_json

__all__ = [
    "MAX_BYTES",
    "NEEDS_CHUNKS",
    "NEEDS_QUESTION",
    "LoadedCase",
    "case_from_json",
    "case_to_json",
    "check_ready",
    "read_case",
    "read_suite",
]
