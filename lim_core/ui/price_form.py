"""The price table as its user edits it. An empty price is unknown, never 0."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import streamlit as st

from lim_core.config import Settings
from lim_core.errors import ConfigError
from lim_core.prices import Price, PriceTable, make_price, read_prices, write_prices
from lim_core.types import Json
from lim_core.ui import views
from lim_core.ui.model_form import chosen_model

MODEL, INPUT, CACHED, OUTPUT = "model", "input", "cached input", "output"
_TURN, _BASE, _SAVED = "prices-turn", "prices-base", "prices-saved"
_CURRENCY_LETTERS = 8


def price_form() -> None:
    """Say what the chosen model costs, and draw the table with its button.

    Raises:
        ConfigError: the table cannot be read.
    """
    folder = Settings.from_environment().store_path.parent
    table = read_prices(folder)
    st.subheader("Prices", anchor=False)
    choice = chosen_model()
    tested = choice.settings().tested_model
    views.line(f"Price of {tested}: {price_words(table, tested)}.")
    views.note(
        "Per million tokens, for a model by exactly the name its endpoint uses. An empty price is unknown and never counts "
        "as 0; an empty cached input is charged as input. The table is shared by everybody on this server."
    )
    turn = int(st.session_state.get(_TURN, 0))
    # What was edited belongs to the table as it was drawn first; another session may save in between.
    base = st.session_state.setdefault(_BASE, table)
    money = st.text_input(
        "Currency", value=base.currency, max_chars=_CURRENCY_LETTERS, key=f"prices-currency-{turn}", width=120
    )
    rows = st.data_editor(
        _rows(base),
        num_rows="dynamic",
        hide_index=True,
        key=f"prices-{turn}",
        alt="Prices per million tokens",
        placeholder="–",
        column_order=(MODEL, INPUT, CACHED, OUTPUT),
        column_config={
            MODEL: st.column_config.TextColumn(width="medium", max_chars=200),
            **{name: st.column_config.NumberColumn(min_value=0, format="%g") for name in (INPUT, CACHED, OUTPUT)},
        },
    )
    if st.button("Save prices", key="prices-save", icon=":material/save:"):
        _save(folder, base, table_of(rows, money or ""))
        st.session_state.pop(_BASE, None)
        st.session_state[_TURN] = turn + 1
        st.session_state[_SAVED] = True
        st.rerun()
    if st.session_state.pop(_SAVED, False):
        views.note("The prices are saved.")


def currency() -> str:
    """The currency of the price table.

    Raises:
        ConfigError: the table cannot be read.
    """
    return read_prices(Settings.from_environment().store_path.parent).currency


def price_words(table: PriceTable, model: str) -> str:
    """What a model costs, in words; unknown where the table has no price of this very name."""
    price = table.find(model)
    if price is None:
        return "unknown"
    cached = "" if price.cached_input is None else f", {_amount(price.cached_input)} cached input"
    return f"{_amount(price.input)} input{cached}, {_amount(price.output)} output, {table.currency} per million tokens"


def table_of(rows: Iterable[Mapping[str, Json]], currency: str) -> PriceTable:
    """The table that edited rows make. A row without a name and prices, or with a name and no price, says nothing.

    Raises:
        ConfigError: a price without a model, half a price, a model named twice, or no currency.
    """
    if not currency.strip():
        raise ConfigError("Name the currency of the prices, such as USD.")
    models: dict[str, Price] = {}
    for number, row in enumerate(rows, 1):
        name = str(row.get(MODEL) or "").strip()
        fresh, cached, output = row.get(INPUT), row.get(CACHED), row.get(OUTPUT)
        if fresh is None and cached is None and output is None:
            continue
        if not name:
            raise ConfigError(f"Row {number} of the prices has no model: name it, or delete the row.")
        if name in models:
            raise ConfigError(f"The price table names {name} twice: delete one of the rows.")
        if fresh is None or output is None:
            raise ConfigError(
                f"The price of {name} needs both input and output: fill them in, or empty the row where it is unknown."
            )
        models[name] = make_price(name, fresh, output, cached)
    return PriceTable(currency.strip(), models)


def _save(folder: Path, base: PriceTable, table: PriceTable) -> None:
    if read_prices(folder) != base:
        st.session_state.pop(_BASE, None)
        st.session_state[_TURN] = int(st.session_state.get(_TURN, 0)) + 1
        raise ConfigError(
            "The prices were changed elsewhere meanwhile: reload the page, look at them, then edit again."
        )
    write_prices(folder, table)


def _rows(table: PriceTable) -> list[dict[str, Json]]:
    rows: list[dict[str, Json]] = [
        {MODEL: name, INPUT: price.input, CACHED: price.cached_input, OUTPUT: price.output}
        for name, price in sorted(table.models.items())
    ]
    # An empty grid would have no columns.
    return rows or [{MODEL: None, INPUT: None, CACHED: None, OUTPUT: None}]


def _amount(value: float) -> str:
    return f"{value:,.6g}"
