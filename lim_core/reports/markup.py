"""Text into HTML: the only way a report's text becomes markup, so that no document and no model can break out of the page."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from html import escape
from typing import NewType

from lim_core.drawing.figures import Chart
from lim_core.drawing.offline import drawing_json
from lim_core.drawing.rows import Row
from lim_core.types import Json

Html = NewType("Html", str)

NOTHING = Html("")
# Tables above this many rows scroll in their own frame.
_ALL_ROWS = 20
# A cell above this many characters holds a sentence, which wants room for a few words a line.
_WORDS = 20
# Control characters, halves of characters, and marks that override the direction of what follows.
_STRAY = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_IN_SCRIPT = {ord(char): f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"}


def text(value: str) -> Html:
    """Any text as it reads, without effect; what has no place in a text, or turns its reading round, becomes a mark."""
    return Html(escape(_STRAY.sub("\ufffd", value)))


def join(parts: Iterable[Html]) -> Html:
    """Pieces one after the other."""
    return Html("".join(parts))


def element(tag: str, *content: Html, **attributes: str) -> Html:
    """One element; attributes are escaped, `klass` is written `class`, an underscore becomes a dash."""
    written = "".join(
        f' {"class" if name == "klass" else name.replace("_", "-")}="{text(value)}"'
        for name, value in attributes.items()
    )
    return Html(f"<{tag}{written}>{join(content)}</{tag}>")


def line(value: str, klass: str = "") -> Html:
    """A paragraph; none where there is nothing to say."""
    if not value:
        return NOTHING
    return element("p", text(value), klass=klass) if klass else element("p", text(value))


def note(value: str) -> Html:
    """A small grey line."""
    return line(value, "note")


def section(title: str, *content: Html) -> Html:
    """A part of the report with its heading; none where it is empty."""
    body = join(content)
    return element("section", element("h2", text(title)), body) if body else NOTHING


def details(title: str, *content: Html) -> Html:
    """A part that opens with a click or the return key."""
    return element("details", element("summary", text(title)), *content)


def table(rows: Sequence[Row], caption: str) -> Html:
    """Rows under their names; a column of figures is set to the right. None where there are no rows."""
    if not rows:
        return NOTHING
    names = list(dict.fromkeys(name for row in rows for name in row))
    figures = {name for name in names if all(_is_figure(row.get(name)) for row in rows)}
    words = {name for name in names if any(len(str(row.get(name, ""))) > _WORDS for row in rows)}
    looks = {name: "figure" if name in figures else "words" if name in words else "" for name in names}
    head = join(_cell("th", name, looks[name]) for name in names)
    body = join(element("tr", *(_cell("td", row.get(name), looks[name]) for name in names)) for row in rows)
    inner = element(
        "table", element("caption", text(caption)), element("thead", element("tr", head)), element("tbody", body)
    )
    frame = "wide tall" if len(rows) > _ALL_ROWS else "wide"
    return element("div", inner, klass=frame, tabindex="0", role="region", aria_label=caption)


def figure(chart: Chart, rows: Sequence[Row], title: str, said: str = "") -> Html:
    """A chart with the words that stand for it where it cannot be seen, what it says, and the same figures as a table."""
    drawing = drawing_json(chart)
    height = drawing["layout"].get("height") or 330
    plot = Html(
        f'<div class="plot" role="img" aria-label="{text(chart.alt)}" style="min-height:{int(height)}px">'
        f'<script type="application/json">{data(drawing)}</script></div>'
    )
    caption = element("figcaption", text(said)) if said else NOTHING
    return join((element("figure", plot, caption), table(rows, title)))


def data(value: object) -> Html:
    """JSON for a script element, with every character escaped that could end it."""
    return Html(json.dumps(value, allow_nan=False).translate(_IN_SCRIPT))


def size(value: str) -> int:
    """Bytes in the file."""
    return len(value.encode())


def _cell(tag: str, value: Json, look: str) -> Html:
    scope = ' scope="col"' if tag == "th" else ""
    klass = f' class="{look}"' if look else ""
    return Html(f"<{tag}{scope}{klass}>{text(_said(value))}</{tag}>")


def _said(value: Json) -> str:
    if value is None:
        return "–"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.0f}" if value.is_integer() or abs(value) >= 1000 else f"{value:.3g}"
    return str(value)


def _is_figure(value: Json) -> bool:
    return (
        value is None
        or isinstance(value, int | float)
        or (isinstance(value, str) and value[-1:] in "%–" and bool(value))
    )
