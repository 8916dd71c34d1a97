"""The frame of a report: one HTML file that carries its own style, its chart library and a policy that lets nothing else in."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path

from lim_core.drawing.figures import THEMED, Palette
from lim_core.drawing.offline import chart_library
from lim_core.reports.markup import Html, data, text

# As in the app's theme, whose figures these are; a test holds the two together.
LIGHT = Palette("#1F5FBF", "#007A5A", "#C14600", "#9A3E78", "#697177", "#C3C8C6", "#1B2024", "#FFFFFF")
DARK = Palette("#6FA4F8", "#3CC79B", "#FF8A4C", "#E29BC8", "#98A2A9", "#454D54", "#E4E8EA", "#0E1113")


@dataclass(frozen=True, slots=True)
class _Script:
    """A script with the hash that the policy lets in."""

    code: str
    source: str


def page(title: str, body: Html) -> bytes:
    """The whole file in UTF-8.

    The policy lets in two scripts by their hash, inline style (Plotly sets it) and images in data URLs; nothing is fetched.
    """
    library, own = _script(chart_library()), _script(_read("report.js"))
    policy = (
        f"default-src 'none'; script-src {library.source} {own.source}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    colours = data({"roles": list(asdict(THEMED).values()), "light": _values(LIGHT), "dark": _values(DARK)})
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n<meta name="color-scheme" content="light dark">\n'
        f"<title>{text(title)}</title>\n<style>{_read('report.css')}</style>\n</head>\n<body>\n<main>{body}</main>\n"
        f'<script type="application/json" id="colours">{colours}</script>\n'
        f"<script>{library.code}</script>\n<script>{own.code}</script>\n</body>\n</html>\n"
    ).encode()


def _values(palette: Palette) -> list[str]:
    return list(asdict(palette).values())


@lru_cache(maxsize=4)
def _script(code: str) -> _Script:
    # A browser reads line ends as \n before it takes the hash.
    code = code.replace("\r\n", "\n").replace("\r", "\n")
    if "</script" in code.lower() or "<!--" in code:
        raise ValueError("A script of the report holds a mark that ends scripts.")
    digest = base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
    return _Script(code, f"'sha256-{digest}'")


@lru_cache(maxsize=4)
def _read(name: str) -> str:
    return Path(__file__).with_name(name).read_text("utf-8")
