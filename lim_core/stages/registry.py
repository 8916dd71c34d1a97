"""The table of stages. It stands apart from the package so that a stage module can import it while the package loads."""

from __future__ import annotations

from lim_core.registry import Registry
from lim_core.types import Stage

stages: Registry[Stage] = Registry("stage")
