"""From drafts to checked cases and the import report."""
