"""One self-contained HTML file from a stored run: opens from disk, asks the network for nothing, runs no text it shows."""

from lim_core.reports.report import MOST_BYTES, html_report

__all__ = ["MOST_BYTES", "html_report"]
