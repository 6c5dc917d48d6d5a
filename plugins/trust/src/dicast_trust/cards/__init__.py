"""``dicast doctor``: the judge card, and the evidence whether a judge may decide a gate."""

from __future__ import annotations
