"""lim: finds the first stage that lost the answer of a retrieval-augmented question."""
