"""Cases of a run in full, on a terminal or in the browser: ``dicast show --browse`` and ``dicast view``."""
