"""Differences between the options that two runs recorded."""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import sha256

import orjson

_DIGEST = re.compile(r"sha256 \w{12}(?=\)?$)")

SHOWN = 3
"""The most options of a section that are named."""


def text_digest(text: str) -> str:
    """Return the digest of a text option in place of the text."""
    return f"sha256 {sha256(text.encode()).hexdigest()[:12]}"


def digest_texts(options: Mapping[str, str]) -> dict[str, str]:
    """Return recorded *options* with digests in place of texts, except for addresses."""
    return {
        name: text_digest(orjson.loads(value))
        if value.startswith('"') and not value.startswith(('"http://', '"https://'))
        else value
        for name, value in options.items()
    }


def option_changes(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """Return a line for each option that differs, with its values in *after* and in *before*."""
    names = [name for name in {**before, **after} if _identity(before.get(name)) != _identity(after.get(name))]
    return [f"{name}: {after.get(name, 'none')}, not {before.get(name, 'none')}" for name in names]


def section_changes(section: str, before: Mapping[str, str] | None, after: Mapping[str, str] | None) -> str:
    """Return the *section* with the options that differ, if both runs recorded them."""
    changes = option_changes(before, after) if before and after else []
    rest = [f"and {len(changes) - SHOWN} more"] if len(changes) > SHOWN else []
    return f"{section} ({'; '.join([*changes[:SHOWN], *rest])})" if changes else section


def _identity(value: str | None) -> str | None:
    """Return the common form of two recorded values of an equal option: the digest of a text."""
    if value is None:
        return None
    if value.startswith('"'):
        return text_digest(orjson.loads(value))
    match = _DIGEST.search(value)
    return match[0] if match else value
