"""The table of experiments, and what one is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, TypeVar

from lim_core.experiments.cells import Table
from lim_core.experiments.options import Levels
from lim_core.experiments.subjects import Subject
from lim_core.registry import Registry
from lim_core.types import Json, Trial

Options = TypeVar("Options")
Result = TypeVar("Result")


class Experiment(Protocol[Options, Result]):
    """Arms over a suite, and the figures made of their trials.

    `needs_retrieved_gold` says whether a case whose gold was not retrieved must stay out; `anytime` whether the test of a
    single case may be looked at while it grows.
    """

    needs_retrieved_gold: bool = True
    anytime: bool = False

    def read(self, options: Mapping[str, Json]) -> Options:
        """Options from what a run stored or a caller gave.

        Raises:
            InputError: one of them cannot be used.
        """

    def templates(self, options: Options) -> tuple[str, ...]:
        """The template options compared, `plain` alone where none are."""

    def blocks(self, suite: Sequence[Subject], options: Options) -> int:
        """How many distractor orders a case is sent in."""

    def trials(
        self, subject: Subject, suite: Sequence[Subject], block: int, options: Options, seed: int
    ) -> tuple[Trial, ...]:
        """The trials of one case in one block, in sending order; empty where the case has no such block."""

    def analyse(self, table: Table, options: Options, levels: Levels) -> Result:
        """The figures of what has finished so far; a frozen dataclass."""

    def summary(self, result: Result) -> str:
        """One or two sentences with n and interval."""


experiments: Registry[Experiment] = Registry("experiment")  # type: ignore[type-arg]
