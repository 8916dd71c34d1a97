"""The registry: names are unique, looked up with a suggestion, listed in order."""

import pytest

from lim_core.errors import UnknownName
from lim_core.registry import Registry


def filled() -> Registry[int]:
    table: Registry[int] = Registry("thing")
    table.register("beta", title="B", order=1)(2)
    table.register("alpha", title="A", order=1)(1)
    table.register("zero", title="Z", order=0)(0)
    return table


def test_lists_by_order_then_name():
    assert [entry.name for entry in filled()] == ["zero", "alpha", "beta"]


def test_a_taken_name_is_refused():
    with pytest.raises(ValueError, match="registered twice"):
        filled().register("alpha", title="again")(3)


def test_an_unknown_name_says_what_exists():
    with pytest.raises(UnknownName, match=r"Did you mean alpha\? Known: zero, alpha, beta"):
        filled()["alpa"]


def test_help_is_the_docstring():
    table: Registry[object] = Registry("thing")

    @table.register("documented", title="D")
    def part() -> None:
        """What it does."""

    assert table["documented"].help == "What it does."
    assert "documented" in table
    assert len(table) == 1
