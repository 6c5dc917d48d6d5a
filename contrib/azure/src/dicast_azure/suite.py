"""The suite that a run belongs to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from typing import Any

import attrs

from dicast import Entry, Event, Query


@attrs.frozen
class Suite:
    """The suite that a run of the name *run* belongs to, as its ``run.started`` *told* it."""

    told: Mapping[str, Any]
    run: str

    @property
    def begins(self) -> bool:
        """Whether the run is of the suite's first experiment."""
        return bool(self.told["experiments"][0] == _experiment(self.run))

    @property
    def described(self) -> dict[str, object]:
        """What the suite consists of."""
        return {"experiments": self.told["experiments"], "experiment_count": len(self.told["experiments"])}

    def summary(self, end: Event, read: Callable[[Query], Iterator[Entry]]) -> dict[str, object] | None:
        """What the suite has come to with the *end* of the run; None while its last experiment has not completed.

        What other runs have come to is *read* from the ledger, where *end* itself is not yet. A sum of costs of which one is not
        known is None.
        """
        names: list[str] = self.told["experiments"]
        ends = {**self._completed(read), _experiment(self.run): end.payload}
        missing = [name for name in names if name not in ends]
        if names[-1] in missing:
            return None
        costs: list[Mapping[str, Any]] = [done.get("cost") or {} for done in ends.values()]
        units = dict.fromkeys(unit for cost in costs for unit in cost if unit in ("usd", "msat"))
        return {
            **self.described,
            "completed": len(names) - len(missing),
            "missing": missing or None,
            "rows": sum(done["subjects"] for done in ends.values()),
            "failures": sum(done["failed"] for done in ends.values()),
            **{f"cost_{unit}": _sum([cost.get(unit) for cost in costs]) for unit in units},
        }

    def _completed(self, read: Callable[[Query], Iterator[Entry]]) -> dict[str, Mapping[str, Any]]:
        """What the suite's runs came to, each in its newest end, by their experiments."""
        found: dict[str, Mapping[str, Any]] = {}
        for begun in read(Query(types=("run.started",))):
            if begun.event.payload.get("suite") == self.told:
                ended = Query(run_id=begun.event.run_id, types=("run.completed",), newest_first=True, limit=1)
                for entry in read(ended):
                    found[_experiment(str(begun.event.payload["name"]))] = entry.event.payload
        return found


def _experiment(run: str) -> str:
    """The experiment of a run whose name is ``NAME/EXPERIMENT``."""
    return run.rpartition("/")[2]


def _sum(amounts: list[Any]) -> Decimal | None:
    return None if None in amounts else sum((Decimal(str(amount)) for amount in amounts), Decimal(0))
