"""JSON with lone surrogates, for readers of formats: such a record failed, and the rest of the file can be read."""

from __future__ import annotations

from .._toolkit.lone_surrogates import Escaped, escaped, with_lone_surrogates

__all__ = ["Escaped", "escaped", "with_lone_surrogates"]
