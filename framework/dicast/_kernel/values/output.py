"""The digest that names a judged output, in labels and gold files."""

from __future__ import annotations

from hashlib import sha256

import orjson


def output_digest(output: object) -> str:
    """Return the SHA-256 of *output* as canonical JSON: sorted keys, no blanks."""
    return sha256(orjson.dumps(output, option=orjson.OPT_SORT_KEYS)).hexdigest()
