"""Scores with evaluators in any language, and serves a pipeline as an evaluator."""

from __future__ import annotations
