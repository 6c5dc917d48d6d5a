"""Behaves like a script."""

raise SystemExit("usage: quits FILE")
