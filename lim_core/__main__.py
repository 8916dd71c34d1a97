"""`python -m lim_core`: the command line."""

from lim_core.cli import main

raise SystemExit(main())
