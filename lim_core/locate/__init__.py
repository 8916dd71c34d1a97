"""Finds chunks in a prompt as it was sent."""

from lim_core.locate.search import locate

__all__ = ["locate"]
