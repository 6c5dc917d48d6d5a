"""Change of each label between two runs: better, worse, no difference found, or not known yet."""

from __future__ import annotations
