"""What the pages are made of. Nothing below this package imports it."""
