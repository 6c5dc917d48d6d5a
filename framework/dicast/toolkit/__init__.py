"""Building blocks for plugins, one public module each.

The page `docs/reference/toolkit.md` lists every module with its classes and functions.
"""

from __future__ import annotations
