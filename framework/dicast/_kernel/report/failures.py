"""Numbers of failed subjects."""

from __future__ import annotations

from collections import Counter

from ..classes import define, field


@define
class FailureTally:
    """Numbers of failed subjects by kind, and by the origin of failures that no judge caused."""

    kinds: Counter[str] = field(factory=Counter)
    by_origin: dict[str, Counter[str]] = field(factory=dict)

    def add(self, kind: str, origin: str | None) -> None:
        """Count a failed subject."""
        self.kinds[kind] += 1
        if origin is not None:
            self.by_origin.setdefault(origin, Counter())[kind] += 1

    def subtract(self, older: FailureTally) -> None:
        """Subtract the failures that newer verdicts replaced."""
        self.kinds -= older.kinds
        for origin, counts in older.by_origin.items():
            self.by_origin.setdefault(origin, Counter()).subtract(counts)

    def figures(self) -> dict[str, object]:
        """Return the members of the run's document; without failures of tasks and records there is no ``failures_by_origin``."""
        origins = {origin: dict(sorted((+counts).items())) for origin, counts in self.by_origin.items() if +counts}
        return {"failures": dict(sorted(self.kinds.items())), **({"failures_by_origin": origins} if origins else {})}
