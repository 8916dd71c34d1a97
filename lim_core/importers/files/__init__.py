"""Reads a file or a paste: unpacking, encodings, JSON, printed Python, YAML, tables."""
