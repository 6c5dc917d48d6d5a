"""Tests, bounds, regressions and coefficients, without any knowledge of ledgers or judges."""

from __future__ import annotations
