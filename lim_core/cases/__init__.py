"""Case files: read strictly, checked field by field, written back."""

from lim_core.cases.case_files import (
    NEEDS_CHUNKS,
    NEEDS_QUESTION,
    LoadedCase,
    case_from_json,
    case_to_json,
    check_ready,
    read_case,
    read_suite,
)
from lim_core.cases.decoding import MAX_BYTES

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
