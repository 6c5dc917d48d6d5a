"""Arithmetic on columns of scores: rounding, scale, resampling and p-values of several tests."""

from __future__ import annotations
