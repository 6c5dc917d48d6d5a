"""Results of a run in GitHub Actions: the job summary and annotations; dicast ci for other systems."""

from __future__ import annotations
