"""What calls cost: a price table that the user edits. A price that is not in it is unknown, never 0."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from lim_core.errors import ConfigError
from lim_core.types import Json, Usage

FILE_NAME = "prices.json"
_MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Price:
    """Prices per million tokens. `cached_input` None charges cached prompt tokens as input, the dearer reading."""

    input: float
    output: float
    cached_input: float | None = None

    def cost(self, usage: Usage) -> float | None:
        """What one call cost; None where the server reported no usage."""
        if usage.prompt_tokens is None or usage.completion_tokens is None:
            return None
        cached = min(usage.cached_prompt_tokens or 0, usage.prompt_tokens)
        cached_price = self.input if self.cached_input is None else self.cached_input
        fresh = usage.prompt_tokens - cached
        return (fresh * self.input + cached * cached_price + usage.completion_tokens * self.output) / _MILLION


@dataclass(frozen=True, slots=True)
class PriceTable:
    """Prices by model name, in one currency."""

    currency: str = "USD"
    models: Mapping[str, Price] = field(default_factory=dict)

    def find(self, model: str) -> Price | None:
        """The price of exactly this model name; a relative's price would be a guess."""
        return self.models.get(model)


def read_prices(folder: Path) -> PriceTable:
    """The table kept in `folder` (that of the store), empty where there is none.

    Raises:
        ConfigError: the file cannot be read or is not a price table.
    """
    path = folder / FILE_NAME
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return PriceTable()
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(f"The price table {path} cannot be read: mend it or delete it.") from error
    if not isinstance(value, dict) or not isinstance(value.get("models"), dict):
        raise ConfigError(f'The price table {path} needs an object "models": mend it or delete it.')
    models = {str(name): _price(path, str(name), row) for name, row in value["models"].items()}
    return PriceTable(str(value.get("currency", "USD")), models)


def write_prices(folder: Path, table: PriceTable) -> None:
    """Write the table, in one step so that no reader sees half of it.

    Raises:
        ConfigError: the folder cannot be written.
    """
    body = {"currency": table.currency, "models": {name: asdict(price) for name, price in table.models.items()}}
    path = folder / FILE_NAME
    draft = path.with_suffix(".new")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        draft.write_text(json.dumps(body, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        os.replace(draft, path)
    except OSError as error:
        raise ConfigError(f"The price table {path} cannot be written ({error.strerror or error}).") from error


def _price(path: Path, name: str, row: Json) -> Price:
    if not isinstance(row, Mapping):
        raise ConfigError(f"The price of {name} in {path} must be an object with input and output.")
    return make_price(name, row.get("input"), row.get("output"), row.get("cached_input"))


def make_price(name: str, input_price: Json, output_price: Json, cached_input: Json = None) -> Price:
    """A price from what a user typed.

    Raises:
        ConfigError: a price that is no finite number of 0 or more.
    """
    return Price(
        _amount(name, "input", input_price),
        _amount(name, "output", output_price),
        None if cached_input is None else _amount(name, "cached_input", cached_input),
    )


def _amount(name: str, part: str, value: Json) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
        raise ConfigError(f"The {part} price of {name} must be a number of 0 or more, per million tokens.")
    return float(value)
