"""Tasks that put rows to commands and to HTTP services."""

from __future__ import annotations
