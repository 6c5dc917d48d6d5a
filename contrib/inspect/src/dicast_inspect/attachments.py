"""Attachments: long texts that a sample stores once, with references in its messages and events."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_PROTOCOLS = ("attachment://", "tc://")
"""Prefixes of references; the second is in older logs."""


def resolved(sample: Mapping[str, Any]) -> dict[str, Any]:
    """Return *sample* with each reference replaced by its attachment. A reference without an attachment stays."""
    attachments = sample.get("attachments")
    if not isinstance(attachments, dict) or not attachments:
        return dict(sample)
    return {key: _resolved(value, attachments) for key, value in sample.items() if key != "attachments"}


def _resolved(value: Any, attachments: Mapping[str, Any]) -> Any:
    if isinstance(value, str):
        if not value.startswith(_PROTOCOLS):
            return value
        text = attachments.get(value.partition("://")[2])
        return text if isinstance(text, str) else value
    if isinstance(value, dict):
        return {key: _resolved(item, attachments) for key, item in value.items()}
    if isinstance(value, list):
        return [_resolved(item, attachments) for item in value]
    return value
