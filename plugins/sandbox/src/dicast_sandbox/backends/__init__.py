"""Backends of sandboxes, and the parts that they share."""

from __future__ import annotations
