"""Means corrected by audits: ``score.corrected``, audit rates, and the aggregate ``trust/prevalence``."""

from __future__ import annotations
