"""Needs a module that nobody has."""

import nope_missing  # noqa: F401
