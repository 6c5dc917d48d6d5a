"""A process that reserves and settles money in a loop: ``python spender.py URL SCHEMA RUN LIMIT AMOUNT SEED SETTLES``.

It prints a JSON line after each answer, and ends when the budget has no place for another reservation.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
from decimal import Decimal

from dicast import Cap, Claim, Cost, Event, Lost, Secret
from dicast.toolkit.ids import stamp
from dicast_postgres import Ledger

SCOPE = "day:2026-11-27"


def event(run, type_, payload):
    id_, time = stamp()
    return Event(id_, type_, time, run, payload)


async def spend(url, schema, run, limit, amount, seed, settles):
    rng = random.Random(int(seed))
    cap = Cap(SCOPE, "day_cap", Cost(Decimal(limit), "usd"))
    async with Ledger(Secret(url), schema=schema).open() as live:
        await live.take_lease(run, f"spender {seed}", 15, lambda lease: False)
        while True:
            part = Decimal(amount) * rng.choice((1, 1, 1, 2))
            payload = {
                "reservation_id": stamp()[0],
                "scopes": [SCOPE, f"run:{run}"],
                "amount": str(part),
                "unit": "usd",
                "lease_until": None,
            }
            (refusal,) = await live.reserve([Claim(event(run, "spend.reserved", payload), [cap])], Lost(*stamp()))
            if refusal is not None:
                if part == Decimal(amount) and (settles != "settle" or not refusal.wait):
                    break  # nothing comes back
                continue
            print(json.dumps({"reserved": payload["reservation_id"], "amount": str(part)}), flush=True)
            if settles == "settle":
                closing = {"reservation_id": payload["reservation_id"], "amount": str(part), "unit": "usd"}
                type_ = rng.choice(("spend.settled", "spend.settled", "spend.settled", "spend.released"))
                if type_ == "spend.released":
                    closing = {"reservation_id": payload["reservation_id"]}
                await live.append([event(run, type_, closing)])
                print(json.dumps({type_: payload["reservation_id"]}), flush=True)
        await live.release_lease()


if __name__ == "__main__":
    asyncio.run(spend(*sys.argv[1:]))
