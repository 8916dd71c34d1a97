"""Experiments over one case or a suite: which arms they send, and the figures made of the trials."""

from lim_core.experiments import arrangements, grid, positions, tokens
from lim_core.experiments.cells import Cell, Facts, Table, cells_of
from lim_core.experiments.options import Levels
from lim_core.experiments.registry import Experiment, experiments
from lim_core.experiments.subjects import LeftOut, Roll, Subject, Subjects, roll, subjects

__all__ = [
    "Cell",
    "Experiment",
    "Facts",
    "LeftOut",
    "Levels",
    "Roll",
    "Subject",
    "Subjects",
    "Table",
    "arrangements",
    "cells_of",
    "experiments",
    "grid",
    "positions",
    "roll",
    "subjects",
    "tokens",
]
