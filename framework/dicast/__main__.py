"""Run the command line: ``python -m dicast``."""

from __future__ import annotations

import sys

from ._kernel.cli import main

if __name__ == "__main__":
    sys.exit(main())
