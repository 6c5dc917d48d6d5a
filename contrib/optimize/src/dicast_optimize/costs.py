"""Cost of an optimization, from its ledger, including interrupted runs."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

from dicast import Ledger, Query, read_ledger

SETTLED, LOST = "spend.settled", "spend.lost"
UNITS = ("usd", "msat")


def spent(path: Path, type_: str = SETTLED) -> dict[str, str | None]:
    """Return the sum of the settled or lost amounts in the ledger at *path*, by unit; None if an amount is unknown."""
    if not path.exists():
        return dict.fromkeys(UNITS, "0")

    def read(ledger: Ledger) -> dict[str, str | None]:
        sums: dict[str, Decimal | None] = dict.fromkeys(UNITS, Decimal(0))
        for entry in ledger.read(Query(types=(type_,))):
            unit, amount = str(entry.event.payload["unit"]), entry.event.payload["amount"]
            before = sums[unit]
            sums[unit] = None if before is None or amount is None else before + Decimal(str(amount))
        return {unit: None if amount is None else str(amount) for unit, amount in sums.items()}

    return read_ledger(path, read)
