"""Texts as judges and searches read them: folded, cut into tokens, sentences and values."""
