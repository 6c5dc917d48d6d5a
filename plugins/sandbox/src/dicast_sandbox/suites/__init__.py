"""Reports and test lists of test runners."""

from __future__ import annotations
