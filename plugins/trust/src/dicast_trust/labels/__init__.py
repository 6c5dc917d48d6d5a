"""Labels by people: reading, choosing subjects, recording, importing, agreement between labelers."""

from __future__ import annotations
