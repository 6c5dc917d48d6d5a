"""The suite that a run belongs to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from typing import Any

import attrs

from dicast import Entry, Event, Query


@attrs.frozen
class Suite:
    """The suite of the run named *run*, with its *definition* in ``run.started``."""

    definition: Mapping[str, Any]
    run: str

    @property
    def begins(self) -> bool:
        """True if the run is of the suite's first experiment."""
        return bool(self.definition["experiments"][0] == _experiment(self.run))

    @property
    def described(self) -> dict[str, object]:
        """Experiments of the suite."""
        return {"experiments": self.definition["experiments"], "experiment_count": len(self.definition["experiments"])}

    def summary(self, end: Event, read: Callable[[Query], Iterator[Entry]]) -> dict[str, object] | None:
        """Return the results of the suite, or None while its last experiment is not complete.

        *read* reads the results of other runs from the ledger. *end* is the end of this run, which the ledger does not have yet. The total
        cost is None if one of the costs is unknown.
        """
        names: list[str] = self.definition["experiments"]
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
        """Return the newest result of each completed experiment."""
        results: dict[str, Mapping[str, Any]] = {}
        for start in read(Query(types=("run.started",))):
            if start.event.payload.get("suite") == self.definition:
                query = Query(run_id=start.event.run_id, types=("run.completed",), newest_first=True, limit=1)
                for entry in read(query):
                    results[_experiment(str(start.event.payload["name"]))] = entry.event.payload
        return results


def _experiment(run: str) -> str:
    """Return the experiment in a run's name ``NAME/EXPERIMENT``."""
    return run.rpartition("/")[2]


def _sum(amounts: list[Any]) -> Decimal | None:
    return None if None in amounts else sum((Decimal(str(amount)) for amount in amounts), Decimal(0))
