"""Options and text layout that the commands share."""

from __future__ import annotations
