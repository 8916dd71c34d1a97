"""What importers hand on: drafts of cases, still with the ids, scores and texts as the file had them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lim_core.types import Json


@dataclass(frozen=True, slots=True)
class Sighting:
    """A shape that was recognised. `sure` is in [0, 1]; `depth` counts the envelopes around it; `why` names the evidence."""

    sure: float
    depth: int
    why: str


@dataclass(frozen=True, slots=True)
class Skipped:
    """A line or record that gave no case. `line` counts from 1; `place` says where in the file, for JSON without lines."""

    reason: str
    line: int | None = None
    place: str = ""


@dataclass(frozen=True, slots=True)
class DraftChunk:
    """A chunk as the file has it: any id or none, any score or none."""

    text: str
    id: Json = None
    title: str = ""
    score: Json = None
    metadata: Mapping[str, Json] = field(default_factory=dict)
    gold: bool = False
    # The name the score had, for a hint of its direction: "distance", "similarity_score".
    score_name: str = ""


@dataclass(frozen=True, slots=True)
class Draft:
    """One case in the making. Chunk lists are best first; None means that the file does not say.

    `question_why` is set where the question was guessed, and says from what. `notes` go into the case's report.
    """

    line: int | None = None
    place: str = ""
    id: Json = None
    question: str | None = None
    question_why: str = ""
    answers: tuple[str, ...] = ()
    chunks: tuple[DraftChunk, ...] | None = None
    candidates: tuple[DraftChunk, ...] | None = None
    gold_ids: tuple[Json, ...] = ()
    gold_texts: tuple[str, ...] = ()
    prompt: str | tuple[Mapping[str, str], ...] | None = None
    answer: str | None = None
    model: str | None = None
    finish_reason: str | None = None
    usage: Mapping[str, Json] = field(default_factory=dict)
    params: Mapping[str, Json] = field(default_factory=dict)
    max_output_tokens: int | None = None
    answerable: bool | None = None
    tags: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    # A case that is in lim's own shape already; only checked, never rebuilt.
    own: Mapping[str, Json] | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """What one importer made of a file."""

    drafts: tuple[Draft, ...]
    skipped: tuple[Skipped, ...] = ()
    notes: tuple[str, ...] = ()
