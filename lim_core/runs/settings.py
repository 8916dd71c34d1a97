"""How a run is made: model, judge, caps, levels; what goes into its store row and comes back out of it."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace

from lim_core.backends import ModelSpec, spec_for
from lim_core.backends.weights import weights_name
from lim_core.config import Settings
from lim_core.errors import ConfigError, InputError
from lim_core.judges import judges
from lim_core.prices import Price, read_prices
from lim_core.stages import stages
from lim_core.types import Json

EMBEDDED = "embedded"
_COUNTS = ("max_calls", "max_tokens", "in_flight", "requests_per_minute", "tokens_per_minute")


@dataclass(frozen=True, slots=True)
class RunSettings:
    """How a run is made; stored with it, so it never holds a key. `plan` holds the options of an experiment."""

    model: str = EMBEDDED
    base_url: str | None = None
    judge: str = "contains"
    alpha: float = 0.05
    delta: float = 0.2
    seed: int = 0
    max_calls: int | None = 200
    max_tokens: int | None = None
    max_cost: float | None = None
    in_flight: int | None = None
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    stages: tuple[str, ...] | None = None
    all_stages: bool = False
    # Whether a key was at hand: a resumed run that had one waits until it has one again.
    keyed: bool = False
    # The backend's own options, as its `Options` class declares them.
    options: Mapping[str, Json] = field(default_factory=dict, hash=False)
    plan: Mapping[str, Json] = field(default_factory=dict, hash=False)
    # How many trials an experiment has when it is finished, so that reading it back need not lay out its prompts.
    planned: int | None = None
    # What reading the case warned of, here so that a run that was cut off before its document keeps it.
    warnings: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not 0 < self.alpha < 1:
            raise InputError(f"alpha is {self.alpha}: give a number between 0 and 1, such as 0.05.")
        if not 0 < self.delta < 1:
            raise InputError(f"delta is {self.delta}: give a number between 0 and 1, such as 0.2.")
        for name in _COUNTS:
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InputError(f"{name.replace('_', '-')} is {value}: give a whole number above 0.")
        if self.max_cost is not None and not self.max_cost > 0:
            raise InputError(f"max-cost is {self.max_cost}: give an amount above 0.")
        for name in self.stages or ():
            stages[name]  # raises UnknownName with the list of stages
        judges[self.judge]

    @property
    def spec(self) -> ModelSpec:
        """The model to open."""
        return replace(spec_for(self.model, self.base_url), options=self.options)

    @property
    def lane(self) -> str:
        """Runs of one lane wait for one another: those on the embedded model, which all need the same two cores."""
        return EMBEDDED if self.model == EMBEDDED and self.base_url is None else ""

    @property
    def tested_model(self) -> str:
        """The model's name as verdicts say it, known without loading it."""
        if self.model == EMBEDDED and self.base_url is None:
            return weights_name(Settings.from_environment().gguf)
        return self.model

    def to_json(self) -> dict[str, Json]:
        """As stored with the run."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Json]) -> RunSettings:
        """Settings of a stored run.

        Raises:
            ConfigError: a key that this version does not know.
        """
        known = {name: item for name, item in value.items() if name in cls.__dataclass_fields__}
        if len(known) != len(value):
            raise ConfigError("The run's settings were written by another version of lim; start a new run instead.")
        if known.get("stages") is not None:
            known["stages"] = tuple(known["stages"])  # type: ignore[arg-type]
        known["warnings"] = tuple(known.get("warnings") or ())  # type: ignore[arg-type]
        return cls(**known)  # type: ignore[arg-type]


def price_of(settings: RunSettings) -> Price | None:
    """The tested model's price in the user's table beside the default store; None is unknown.

    Raises:
        ConfigError: the table cannot be read.
    """
    return read_prices(Settings.from_environment().store_path.parent).find(settings.tested_model)


def new_run_id() -> str:
    """A fresh run id: 12 hex digits, safe in links and file names."""
    return uuid.uuid4().hex[:12]
