"""Changes of a ledger as arguments of the functions in the schema."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Sequence
from typing import Any

import attrs
import orjson

from dicast import Claim, Event, LedgerError
from dicast.toolkit.ledger_lines import Encoder, Hints, Sheet, leaf_of, parts_of
from dicast.toolkit.ledger_lines.amounts import amount_of, claimed_amount, utc_moment
from dicast.toolkit.ledger_lines.blocks import Columns
from dicast.toolkit.ledger_lines.judged import RECORD
from dicast.toolkit.ledger_lines.lines import Line

_SPENDING = frozenset(("spend.reserved", "spend.settled", "spend.released", "spend.lost"))

BLOCKS = "%s::jsonb, %b::bytea[], %b::text[], %b::text[], %b::text[], %b::bytea[], %b::text[], %s::jsonb"
"""Placeholders of :meth:`Blocks.arguments`."""


LARGE_EVENTS = 300
"""Fewest events of a block with stored columns. Readers compute the columns of a smaller block from its lines."""


@attrs.define
class Blocks:
    """Blocks that are ready to be written, with the rows that belong to them."""

    hints: list[dict[str, Any]] = attrs.field(factory=list)
    leaves: list[bytes] = attrs.field(factory=list)
    bodies: list[str] = attrs.field(factory=list)
    makers: list[tuple[str, str]] = attrs.field(factory=list)
    contents: list[tuple[bytes, str]] = attrs.field(factory=list)
    spending: list[dict[str, Any]] = attrs.field(factory=list)

    @classmethod
    def of(cls, encoder: Encoder, records: Sequence[Any], columns: Columns) -> Blocks:
        """Return the blocks of *records*: events, and judged subjects in place of their events. A large block has *columns*.

        :raises LedgerError: if a payload is not JSON, or an amount is not valid.
        """
        encoded = encoder.encode(records)
        blocks, number, start = cls(), 0, 0
        for run_id, lines in _by_run(encoded.lines):
            for part, events in parts_of([(len(line), count) for line, count, _ in lines]):
                packed = None
                if events >= LARGE_EVENTS:
                    known = map(encoded.values.get, range(start + part.start, start + part.stop))
                    texts = (line for line, _, _ in lines[part])
                    packed = columns(line or orjson.loads(text) for line, text in zip(known, texts, strict=True))
                blocks._add(run_id, lines[part], events, packed)
            start += len(lines)
        for _, count, events_of_line in encoded.lines:
            number += count
            if count == 1 and events_of_line[0].type in _SPENDING:
                blocks.spending.append(spending_of(events_of_line[0], number))
        blocks.makers = [(maker.name, maker.line.decode()) for maker in encoded.makers]
        blocks.contents = [(bytes.fromhex(digest), text.decode()) for digest, text in encoded.contents.items()]
        return blocks

    def arguments(self) -> tuple[Any, ...]:
        """Return the arguments for :data:`BLOCKS`."""
        return (
            *(orjson.dumps(self.hints).decode(), self.leaves, self.bodies),
            *([name for name, _ in self.makers], [line for _, line in self.makers]),
            *([digest for digest, _ in self.contents], [text for _, text in self.contents]),
            orjson.dumps(self.spending).decode(),
        )

    def _add(self, run_id: str, lines: Sequence[Line], events: int, packed: bytes | None) -> None:
        hints = Hints.of([record for _, _, records in lines for record in records])
        sheet = Sheet.of([line for line, _, _ in lines], events, hints, None)
        self.hints.append(
            {
                "run": run_id,
                "events": events,
                "types": sorted(hints.types),
                "low": _hex(hints.low),
                "high": _hex(hints.high),
                "began": hints.began,
                "ended": hints.ended,
                "columns": None if packed is None else b64encode(packed).decode(),
            }
        )
        self.leaves.append(b"".join(sheet.leaves))
        self.bodies.append(sheet.body.decode())


@attrs.define
class Claims:
    """Claims as arguments. *places* has for each claim the places of the caps that were sent, because caps in other units do not count."""

    rows: list[dict[str, Any]] = attrs.field(factory=list)
    leaves: list[bytes] = attrs.field(factory=list)
    lines: list[str] = attrs.field(factory=list)
    places: list[list[int]] = attrs.field(factory=list)

    @classmethod
    def of(cls, encoder: Encoder, claims: Sequence[Claim]) -> Claims:
        """Return the arguments of *claims*.

        :raises LedgerError: if an amount is not valid.
        """
        arguments = cls()
        for claim in claims:
            arguments._add(encoder, claim)
        return arguments

    def _add(self, encoder: Encoder, claim: Claim) -> None:
        event = claim.event
        amount, unit = claimed_amount(event)
        ((line, _, _),) = encoder.encode([event]).lines
        places = [
            place for place, cap in enumerate(claim.caps) if cap.limit.unit == unit and cap.limit.amount is not None
        ]
        self.places.append(places)
        self.leaves.append(leaf_of(line))
        self.lines.append(line.decode())
        caps = [{"scope": claim.caps[place].scope, "limit": f"{claim.caps[place].limit.amount:f}"} for place in places]
        self.rows.append(
            {
                "run": event.run_id,
                "caps": caps,
                "amount": f"{amount:f}",
                "unit": unit,
                "time": event.time,
                "subject": _hex(event.subject_id),
                "spending": spending_of(event, 0),
            }
        )


def spending_of(event: Event, place: int) -> dict[str, Any]:
    """Return an event of amounts as an argument. *place* is its number in the change, from 1.

    :raises LedgerError: if its payload does not have the form of its type.
    """
    payload: Any = event.payload
    row = {"place": place, "run": event.run_id, "type": event.type}
    try:
        row["id"] = payload["reservation_id"]
        if event.type == "spend.reserved":
            lease = payload.get("lease_until")
            row |= {
                "scopes": list(payload["scopes"]),
                "until": None if lease is None else utc_moment(lease),
                "outlives": bool(payload.get("outlives_run")),
            }
        if event.type == "spend.reserved" or payload.get("amount") is not None:
            row |= {"amount": f"{amount_of(payload):f}", "unit": payload["unit"]}
    except (KeyError, TypeError, ValueError, ArithmeticError) as error:
        raise LedgerError(f"cannot account for this {event.type} event, {error!r}: {dict(payload)}") from error
    return row


def _by_run(lines: Sequence[Line]) -> Iterator[tuple[str, Sequence[Line]]]:
    """Yield the lines that follow one another in a run. The line of a maker belongs to the run of the next line."""
    start, current = 0, None
    for place, (_, count, records) in enumerate(lines):
        if not count:
            continue
        first = records[0]
        run_id = first.maker.run_id if first.type == RECORD else first.run_id
        if current not in (None, run_id):
            end = place
            while end > start and not lines[end - 1][1]:
                end -= 1
            yield current, lines[start:end]
            start = end
        current = run_id
    if current is not None:
        yield current, lines[start:]


def _hex(text: str | None) -> str | None:
    return None if text is None else text.encode().hex()
