"""``dicast run --metric-lines``: what a run came to as METRIC lines, for loops that read these."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from ..classes import frozen
from ..pipeline.sections import Pipeline
from ..values.errors import ConfigError, Problem
from ..values.names import nearest

_NO_NAME = re.compile(r"[^A-Za-z0-9_.]")
SCORE = "score"


@frozen
class RunLines:
    """The METRIC lines of a run; ``score`` is the mean of the label *primary*, by default the run's own."""

    primary: str | None = None

    def check(self, pipeline: Pipeline) -> None:
        """Refuse a *primary* that no metric or judge of *pipeline* has as its label.

        :raises ConfigError: naming the nearest.
        """
        labels = [slot.label for slot in (*pipeline.metrics, *pipeline.judges)]
        if self.primary is not None and self.primary not in labels:
            message = f"--primary: no metric or judge has the label {self.primary!r}; there are {', '.join(labels)}"
            raise ConfigError(Problem(message, value=self.primary, hint=nearest(self.primary, labels)))

    def text(self, document: Mapping[str, Any]) -> str:
        """The lines of the run's *document*, each with its newline; what has no mean has no line."""
        found, taken = list[str](), set[str]()
        for label, mean in self._means(document):
            name = _unique(_NO_NAME.sub("_", label), taken)
            taken.add(name)
            if mean is not None:
                found.append(
                    f"METRIC {name}={Decimal(repr(mean)):f}\n"
                )  # without an exponent, which strict readers do not take
        return "".join(found)

    def _means(self, document: Mapping[str, Any]) -> Iterator[tuple[str, float | None]]:
        labels = {**(document.get("metrics") or {}), **(document.get("judges") or {})}
        own = document.get("score") if self.primary is None else labels.get(self.primary)
        yield SCORE, (own or {}).get("mean")
        for label, figures in labels.items():
            yield label, figures["mean"]


def _unique(name: str, taken: set[str]) -> str:
    """*name*, or with a number behind it where that is another label's."""
    number, free = 1, name
    while free in taken:
        number += 1
        free = f"{name}_{number}"
    return free
