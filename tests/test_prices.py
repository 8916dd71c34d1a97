"""The price table: what is kept, what is refused, and that unknown stays unknown."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from lim_core.errors import ConfigError
from lim_core.prices import FILE_NAME, Price, PriceTable, make_price, read_prices, write_prices
from lim_core.types import Usage


def test_a_table_comes_back_as_it_was_written(tmp_path: Path) -> None:
    folder = tmp_path / "not" / "there yet"
    table = PriceTable("EUR", {"grün-4o": Price(2.5, 10.0, 1.25), "free": Price(0.0, 0.0), "tiny": Price(1e-7, 0.15)})
    write_prices(folder, table)
    assert read_prices(folder) == table
    write_prices(folder, PriceTable())
    assert read_prices(folder) == PriceTable()


def test_no_file_is_an_empty_table(tmp_path: Path) -> None:
    assert read_prices(tmp_path / "nowhere") == PriceTable("USD", {})


@pytest.mark.parametrize(
    ("body", "word"),
    [
        (b"", "cannot be read"),
        (b"{", "cannot be read"),
        (b"\xff\xfe{}", "cannot be read"),
        (b"[" * 100_000, "cannot be read"),
        (b"[]", '"models"'),
        (b"{}", '"models"'),
        (b'{"models": []}', '"models"'),
        (b'{"models": {"m": 3}}', "must be an object"),
        (b'{"models": {"m": {}}}', "input price of m"),
        (b'{"models": {"m": {"input": 1}}}', "output price of m"),
        (b'{"models": {"m": {"input": "1", "output": 1}}}', "input price of m"),
        (b'{"models": {"m": {"input": true, "output": 1}}}', "input price of m"),
        (b'{"models": {"m": {"input": -1, "output": 1}}}', "input price of m"),
        (b'{"models": {"m": {"input": NaN, "output": 1}}}', "input price of m"),
        (b'{"models": {"m": {"input": 1, "output": Infinity}}}', "output price of m"),
        (b'{"models": {"m": {"input": 1, "output": 1, "cached_input": -0.1}}}', "cached_input price of m"),
    ],
)
def test_a_bad_file_is_refused_in_one_sentence(tmp_path: Path, body: bytes, word: str) -> None:
    (tmp_path / FILE_NAME).write_bytes(body)
    with pytest.raises(ConfigError) as caught:
        read_prices(tmp_path)
    assert word in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_write_that_fails_leaves_the_table_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = PriceTable("USD", {"m": Price(1.0, 2.0)})
    write_prices(tmp_path, before)

    def full(self: Path, text: str, encoding: str) -> int:
        self.write_bytes(text.encode(encoding)[: len(text) // 2])
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_text", full)
        with pytest.raises(ConfigError, match="No space left on device"):
            write_prices(tmp_path, PriceTable("USD", {"m": Price(9.0, 9.0)}))
    assert read_prices(tmp_path) == before
    # What the broken attempt left does not stand in the way of the next.
    write_prices(tmp_path, PriceTable("USD", {"m": Price(3.0, 4.0)}))
    assert read_prices(tmp_path).find("m") == Price(3.0, 4.0)
    assert os.listdir(tmp_path) == [FILE_NAME]


def test_no_reader_sees_half_a_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the moment of the exchange the file under the table's name is whole, the old one, and the new one is whole too."""
    write_prices(tmp_path, PriceTable("USD", {"m": Price(1.0, 2.0)}))
    seen: list[object] = []
    exchange = os.replace

    def looks(source: Path, target: Path) -> None:
        seen.extend([json.loads(Path(target).read_text("utf-8")), json.loads(Path(source).read_text("utf-8"))])
        exchange(source, target)

    monkeypatch.setattr(os, "replace", looks)
    write_prices(tmp_path, PriceTable("USD", {"m": Price(5.0, 6.0)}))
    old, new = seen
    assert isinstance(old, dict)
    assert isinstance(new, dict)
    assert (old["models"]["m"]["input"], new["models"]["m"]["input"]) == (1.0, 5.0)


def test_a_model_is_found_by_its_exact_name_only() -> None:
    table = PriceTable("USD", {"gpt-x": Price(1.0, 2.0)})
    assert table.find("gpt-x") == Price(1.0, 2.0)
    for relative in ("gpt-x-mini", "GPT-X", "gpt-x ", "gpt", "openai/gpt-x", ""):
        assert table.find(relative) is None


def test_what_is_unknown_stays_unknown() -> None:
    price = make_price("m", 2, 8)
    # 1,000 prompt tokens of which 400 were cached, 100 answer tokens: cached ones are charged as input.
    assert price.cost(Usage(1_000, 100, 400)) == pytest.approx((1_000 * 2 + 100 * 8) / 1e6)
    assert make_price("m", 2, 8, 0.5).cost(Usage(1_000, 100, 400)) == pytest.approx(
        (600 * 2 + 400 * 0.5 + 100 * 8) / 1e6
    )
    assert make_price("m", 2, 8, 0).cost(Usage(1_000, 0, 1_000)) == 0
    # A server that reports no usage makes no cost of 0.
    assert price.cost(Usage(None, 100)) is None
    assert price.cost(Usage(1_000, None)) is None
    # More cached than sent is a server's slip: never less than nothing.
    assert make_price("m", 2, 8, 0.5).cost(Usage(100, 0, 900)) == pytest.approx(100 * 0.5 / 1e6)


@pytest.mark.parametrize("value", [None, "", "1", True, -0.01, float("nan"), float("inf")])
def test_a_price_that_is_none_is_refused(value: object) -> None:
    with pytest.raises(ConfigError, match="input price of m must be a number of 0 or more"):
        make_price("m", value, 1)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="output price of m"):
        make_price("m", 1, value)  # type: ignore[arg-type]
