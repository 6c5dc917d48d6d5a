"""The pipeline file: read, checked and built into components."""

from __future__ import annotations

from .build import load_pipeline
from .reader import experiment_names, read_document
from .schema import json_schema, options_schema

__all__ = [
    "experiment_names",
    "json_schema",
    "load_pipeline",
    "options_schema",
    "read_document",
]
