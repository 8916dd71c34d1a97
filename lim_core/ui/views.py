"""The only place that shows text from documents, models and providers: always as plain text.

Headings, alerts and labels of Streamlit read Markdown, so what must go into one goes through `escape` first.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Literal

import streamlit as st

from lim_core.drawing.figures import Chart
from lim_core.drawing.words import SIGNS, Sign
from lim_core.types import Json, Status

_PUNCTUATION = re.compile(r"([!-/:-@\[-`{-~])")
# Bare addresses, mail addresses and :shortcodes: are found in the text after the escapes are gone; an empty directive
# between the characters parts the text there, and leaves it as it reads.
_SEAMS = re.compile(r"(\\[:@.]|[wW](?=[wW]))")

Row = Mapping[str, Json]
# Tables up to this many rows are shown whole, longer ones scroll.
_ALL_ROWS = 20


def escape(text: str) -> str:
    """Untrusted text for a place that reads Markdown: shown exactly, on one line, without effect."""
    return _SEAMS.sub(r"\1:small[]", _PUNCTUATION.sub(r"\\\1", " ".join(text.split())))


def line(text: str) -> None:
    """Untrusted text in the body's type."""
    st.text(text, width="stretch")


def block(text: str, *, height: int | None = None) -> None:
    """Untrusted text in fixed type, wrapped, with a copy button; `height` in pixels scrolls."""
    st.code(text, language=None, wrap_lines=True, height=height or "content")


def problem(sentence: str) -> None:
    """An error in one sentence that says what to do."""
    st.error(escape(sentence), icon=":material/error:")


def caution(sentence: str) -> None:
    """A warning in one sentence."""
    st.warning(escape(sentence), icon=":material/warning:")


def note(text: str) -> None:
    """A small grey line."""
    st.caption(escape(text))


def sign(look: Sign, text: str) -> str:
    """Markdown for a shape and a word in a status colour, for labels of our own making."""
    return f":{look.colour}[{look.icon}] {text}"


def status_badge(status: Status) -> None:
    """A status as a small badge with its shape."""
    look = SIGNS[status]
    # The badge's palette has no name for every role; these four are set in the theme.
    st.markdown(f":{look.colour}-badge[{look.icon} {look.word}]")


def table(rows: Sequence[Row], *, alt: str, key: str | None = None, units: Mapping[str, str] | None = None) -> None:
    """Rows as a grid; cells are never read as Markdown. `units` gives a column's number format (printf)."""
    formats = {name: st.column_config.NumberColumn(format=form) for name, form in (units or {}).items()}
    height: Literal["content"] | int = "content" if len(rows) <= _ALL_ROWS else 420
    st.dataframe(list(rows), height=height, hide_index=True, alt=alt, key=key, column_config=formats, placeholder="–")


def chart(drawn: Chart, rows: Sequence[Row], *, key: str) -> None:
    """A chart with its alternative text, and the same figures as a table one click away."""
    picture, figures = st.tabs(["Chart", "Table"], key=f"{key}-tabs")
    with picture:
        st.plotly_chart(drawn.figure, alt=drawn.alt, key=key, config={"displayModeBar": False})
    with figures:
        table(rows, alt=drawn.alt)
