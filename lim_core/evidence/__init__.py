"""The evidence of a case: its gold chunks, conflicts between sources, suggestions to confirm."""

from lim_core.evidence.gold import Gold, copies, gold_of, holders, holds_answer

__all__ = ["Gold", "copies", "gold_of", "holders", "holds_answer"]
