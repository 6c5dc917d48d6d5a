"""The backend ``sandbox/docker``."""

from __future__ import annotations
