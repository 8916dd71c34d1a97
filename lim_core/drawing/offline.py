"""Figures outside the app: as plain JSON, and the script that draws them without a network."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from lim_core.drawing.figures import Chart


def drawing_json(chart: Chart) -> dict[str, Any]:
    """The figure as plain JSON, `data` and `layout`, without Plotly's own template."""
    drawing: dict[str, Any] = json.loads(chart.figure.to_json())
    drawing["layout"].pop("template", None)
    return drawing


@lru_cache(maxsize=1)
def chart_library() -> str:
    """The whole of plotly.js, as it comes with Plotly for Python."""
    from plotly.offline import get_plotlyjs

    return str(get_plotlyjs())
