"""Checks for ledgers."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from typing import Any

import attrs
import orjson
import pytest

from .._kernel.stream.opening_context import opening
from .._kernel.values import Claim, Cost, Entry, Event, Head, Query, Refusal
from .._kernel.values.clock import Clock
from .._kernel.values.errors import LedgerError, LedgerRefused
from .._kernel.values.json_form import unstructure
from .._kernel.values.judged import events_of
from .conformance import context, path_option
from .ledger_columns import ColumnConformance
from .ledger_events import RUN, make_cap, make_closing, make_event, make_lost, make_reservation
from .pipeline import Bench, typical_events, typical_records

START = "0" * 64


class LedgerConformance(ColumnConformance):
    """Checks for a ledger. Name it with ``ledger = "plugin/name"``.

    Two live objects from one component's ``open`` must be the same ledger, as in two processes.
    """

    kind = "ledger"
    ledger: str

    def test_returns_what_was_appended(self, component: Any, bench: Bench) -> None:
        """A ledger returns every field of every event, content included, in order; also after it was closed and opened again."""
        events = list(typical_events())

        async def append(live: Any) -> list[Event]:
            live.append(events[:10])
            live.append(events[10:])
            return [entry.event for entry in live.read(Query())]

        assert _plain(self.opened(component, bench.folder, append)) == _plain(events), (
            "the ledger returns other events than were appended"
        )
        assert _plain(self.opened(component, bench.folder, _events)) == _plain(events), (
            "after it was opened again, the ledger returns other events than were appended"
        )

    def test_returns_the_events_of_judged_subjects(self, component: Any, bench: Bench) -> None:
        """A ledger returns the three events of each judged subject in order with others, from ``append_judged`` if it has that."""
        records = list(typical_records())

        async def append(live: Any) -> list[Event]:
            for part in (records[:3], records[3:]):
                if hasattr(live, "append_judged"):
                    live.append_judged(part)
                else:
                    live.append(events_of(part))
            return [entry.event for entry in live.read(Query())]

        async def numbered(live: Any) -> tuple[object, object]:
            entries = [(entry.seq, entry.event) for entry in live.read(Query())]
            items = live.read_judged(entries[0][1].run_id) if hasattr(live, "read_judged") else entries
            return entries, [(seq + n, event) for seq, item in items for n, event in enumerate(events_of((item,)))]

        expected = _plain(events_of(records))
        assert _plain(self.opened(component, bench.folder, append)) == expected
        assert _plain(self.opened(component, bench.folder, _events)) == expected
        assert len({*map(str, self.opened(component, bench.folder, numbered))}) == 1, "read_judged differs from read"

    def test_stores_content_again_for_another_run(self, component: Any, bench: Bench, clock: Clock) -> None:
        """Content that two runs read is available for both runs, even if the ledger stores it once."""
        content = {"digest": sha256(b"x").hexdigest(), "content": {"output": "Canberra.", "input": None}}
        events = [make_event(clock, "subject.read", content, run_id=f"run-{number}") for number in (1, 2, 2)]

        async def append(live: Any) -> list[Event]:
            live.append(events[:1])
            live.append(events[1:])
            return await _events(live)

        assert [event.payload for event in self.opened(component, bench.folder, append)] == [content] * 3, (
            "content that a later run reads again is missing"
        )

    def test_chains_its_rows(self, component: Any, bench: Bench, clock: Clock) -> None:
        """Each row links to the row before it, the first row to 64 zeros, or only the newest row has a digest; the head is the last row."""

        async def chain(live: Any) -> tuple[object, Sequence[Entry], object, object]:
            assert live.head() is None, "a new ledger has no head"
            last = _appended(live, [make_event(clock, "run.started", {"n": number}) for number in range(4)])
            return last, list(live.read(Query())), live.head(), _appended(live, [])

        last, entries, head, nothing = self.opened(component, bench.folder, chain)
        assert [entry.seq for entry in entries] == [1, 2, 3, 4], "positions count from 1 without a gap"
        assert last == head == nothing, "append and head disagree about the head"
        assert (head.seq, head.digest) == (4, entries[3].digest)  # type: ignore[attr-defined]  # a Head
        digests = [entry.digest for entry in entries]
        if digests[:3] == [""] * 3:  # the chain is not over events
            assert [entry.prev for entry in entries] == [""] * 4, "prev of an entry without a digest is empty"
            return
        assert [entry.prev for entry in entries] == [START, *digests[:3]], (
            "prev of an entry is the digest of the entry before"
        )

    def test_gives_each_row_a_position(self, component: Any, bench: Bench, clock: Clock) -> None:
        """A position is the run, the shard and the number of a row. Numbers are unique in the ledger, and grow within a shard of a run."""
        events = [make_event(clock, "run.started", {"n": n}, run_id=f"run-{n % 2}") for n in range(6)]

        async def positions(live: Any) -> list[Any]:
            for event in events:
                live.append([event])
            return [entry.position for entry in live.read(Query())]

        rows = self.opened(component, bench.folder, positions)
        assert [position.run_id for position in rows] == [event.run_id for event in events]
        assert len({position.seq for position in rows}) == len(events), "two rows have one number"
        shards = {position[:2] for position in rows}
        seqs = [[position.seq for position in rows if position[:2] == shard] for shard in shards]
        assert seqs == [sorted(numbers) for numbers in seqs], "a later row of a shard has a smaller number"

    def test_verifies(self, component: Any, bench: Bench, clock: Clock) -> None:
        """A complete chain is valid; a digest that is not in the chain shows that its end was cut off."""

        async def verify(live: Any) -> tuple[Any, ...]:
            empty = live.verify()
            first = _appended(live, [make_event(clock, "run.started", {})])
            live.append([make_event(clock, "run.completed", {})])
            complete = live.verify()
            in_processes = live.verify_in(2) if hasattr(live, "verify_in") else complete
            return empty, complete, in_processes, live.verify(first.digest), live.verify("f" * 64)

        empty, complete, in_processes, with_head, cut = self.opened(component, bench.folder, verify)
        assert (empty.ok, empty.events) == (True, 0), "an empty ledger holds"
        assert (complete.ok, complete.events, complete.head.seq) == (True, 2, 2), complete
        assert with_head.ok, with_head
        assert in_processes == complete, "verify_in returns another result than verify"
        assert not cut.ok, "a head that is in no row must not verify"
        assert cut.reason, "a ledger that does not hold says why"

    def test_proves_its_verdicts(self, component: Any, bench: Bench, clock: Clock) -> None:
        """A proof, if the ledger has ``prove``, shows a verdict without the ledger, up to the newest row or an older row; no changed byte is accepted."""
        from ..toolkit.ledger_lines.proofs import ProofError, read_proof  # most conformance classes need no proofs

        def make_verdict(number: int) -> list[Event]:
            payload = {"eval_id": f"V{number}", "judge": "a", "score": number / 10, "details": f"reason {number}"}
            types, id_ = ("eval.started", "eval.completed"), str(number)
            return [make_event(clock, type_, payload, subject_kind="row", subject_id=id_) for type_ in types]

        async def proofs(live: Any) -> Any:
            if not hasattr(live, "prove"):
                return None
            heads = [_appended(live, make_verdict(number)) for number in range(6)]
            for eval_id, until in (("V9", None), ("V3", heads[2].seq)):
                with pytest.raises(LedgerError):
                    live.prove(eval_id, until)
            return (
                heads,
                [live.prove("V3"), live.prove("V3", heads[4].seq)],
                [live.digest_of(head.seq) for head in heads],
            )

        result = self.opened(component, bench.folder, proofs)
        if result is None:
            pytest.skip(f"{self.named} has no proofs")
        heads, documents, digests = result
        assert digests == [head.digest for head in heads], "digest_of returns other digests than the appends"
        for head, document in zip((heads[5], heads[4]), documents, strict=True):
            data = orjson.dumps(document)
            verdict = (proven := read_proof(data)).events[-1].payload
            assert (verdict["eval_id"], verdict["score"], verdict["details"]) == ("V3", 0.3, "reason 3")
            assert proven.head == {"seq": head.seq, "digest": head.digest}, "the proof leads to another head"
            for place in range(len(data)):
                changed = data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]
                with pytest.raises(ProofError):
                    read_proof(changed)

    def test_reads_what_is_asked_for(self, component: Any, bench: Bench, clock: Clock) -> None:
        """Every condition of a query selects events; the order is oldest first by default."""
        templates = [
            make_event(clock, "run.started", {}, run_id="run-1"),
            make_event(clock, "eval.completed", {"judge": "a"}, run_id="run-1", subject_kind="row", subject_id="1"),
            make_event(clock, "eval.failed", {"judge": "a"}, run_id="run-2", subject_kind="turn", subject_id="1"),
            make_event(clock, "eval.completed", {"judge": "a"}, run_id="run-2", subject_kind="row", subject_id="2"),
        ]
        events = [attrs.evolve(event, time=f"2026-01-0{day}T00:00:00.000Z") for day, event in enumerate(templates, 1)]
        queries = {
            Query(): [1, 2, 3, 4],
            Query(run_id="run-1"): [1, 2],
            Query(types=("eval.completed", "eval.failed")): [2, 3, 4],
            Query(subject_id="1"): [2, 3],
            Query(subject_id="1", subject_kind="row"): [2],
            Query(until="2026-01-02T00:00:00.000Z"): [1, 2],
            Query(after=2): [3, 4],
            Query(after=1, limit=2): [2, 3],
            Query(newest_first=True, limit=3): [4, 3, 2],
            Query(run_id="run-2", types=("eval.completed",), newest_first=True): [4],
            Query(run_id="no such run"): [],
        }

        async def read(live: Any) -> dict[Query, list[int]]:
            live.append(events)
            return {query: [entry.seq for entry in live.read(query)] for query in queries}

        assert self.opened(component, bench.folder, read) == queries, "a query returns other events"

    def test_appends_all_or_nothing(self, component: Any, bench: Bench, clock: Clock) -> None:
        """A value that is not JSON raises a LedgerError, and no event of the same append is kept."""
        good, bad = make_event(clock, "run.started", {}), make_event(clock, "run.started", {"bad": object()})

        async def refused(live: Any) -> list[Event]:
            with pytest.raises(LedgerError):
                live.append([good, bad])
            return await _events(live)

        assert self.opened(component, bench.folder, refused) == []

    def test_takes_turns_with_another_writer(self, component: Any, bench: Bench, clock: Clock) -> None:
        """Two live objects that append at once make one valid chain, with the events of each in order."""
        batches = {
            name: [[make_event(clock, name, {"n": 3 * step + k}) for k in range(3)] for step in range(20)]
            for name in ("writer.a", "writer.b")
        }

        async def race(live: Any) -> tuple[Any, list[Event]]:
            async with opening(component, context(bench.folder)) as other:
                barrier = threading.Barrier(2)
                with ThreadPoolExecutor(2) as pool:
                    pairs = zip((live, other), batches.values(), strict=True)
                    for done in [pool.submit(_append_all, writer, mine, barrier) for writer, mine in pairs]:
                        done.result()
            return live.verify(), await _events(live)

        verification, events = self.opened(component, bench.folder, race)
        assert (verification.ok, verification.events) == (True, 120), verification
        for name in batches:
            assert [event.payload["n"] for event in events if event.type == name] == list(range(60)), (
                "events of a thread are missing or in another order"
            )

    def test_reserves_up_to_the_cap(self, component: Any, bench: Bench, clock: Clock) -> None:
        """Open reservations count: a claim that does not fit next to them waits, a claim that fits is appended."""
        cap = make_cap("0.03")

        async def reserve(live: Any) -> None:
            first = make_reservation(clock, "0.02")
            assert live.reserve([Claim(first, [cap])], make_lost(clock)) == [None], "a claim below the limit is refused"
            assert [entry.event.id for entry in live.reservations(RUN)] == [first.id], (
                "reservations() lacks the open reservation"
            )
            free = make_reservation(clock, "0")
            last = Claim(make_reservation(clock, "0.01"), [cap])
            assert live.reserve([last], make_lost(clock), [free]) == [None], "exactly the limit fits"
            refusals = live.reserve([Claim(make_reservation(clock, "0.01"), [cap])], make_lost(clock))
            assert refusals == [Refusal(cap, wait=True)], (
                "a claim that does not fit next to open reservations has to wait: they may be released"
            )
            assert len(await _events(live)) == 3, "the events before are appended, a refused reservation is not"

        self.opened(component, bench.folder, reserve)

    def test_decides_claims_in_their_order(self, component: Any, bench: Bench, clock: Clock) -> None:
        """Granted claims count for the claims after them; a refused claim does not block the next claim."""
        cap, other = make_cap("0.03"), make_cap("0.01", scope="session:1")
        events = [make_reservation(clock, amount) for amount in ("0.02", "0.02", "0.01", "0.01")]
        events.append(make_reservation(clock, "0.01", scopes=["session:1"]))

        async def reserve(live: Any) -> None:
            claims = [*(Claim(event, [cap]) for event in events[:4]), Claim(events[4], [other])]
            waits = Refusal(cap, wait=True)
            assert live.reserve(claims, make_lost(clock)) == [None, waits, None, waits, None], (
                "claims are decided in order, each with the claims before it"
            )
            granted = [events[0].id, events[2].id, events[4].id]
            assert [event.id for event in await _events(live)] == granted, "only what was granted is appended"

        self.opened(component, bench.folder, reserve)

    def test_reserves_all_or_nothing(self, component: Any, bench: Bench, clock: Clock) -> None:
        """A claim that cannot be accounted for raises a LedgerError, and neither *before* nor the other claims are kept."""
        first = make_reservation(clock, "0.02")
        twice = attrs.evolve(make_reservation(clock, "0.01"), payload={**first.payload, "amount": "0.01"})

        async def reserve(live: Any) -> None:
            before = [make_event(clock, "run.started", {}), make_reservation(clock, "0.01")]
            with pytest.raises(LedgerError):
                live.reserve([Claim(first, []), Claim(twice, [])], make_lost(clock), before)
            assert await _events(live) == [], "a refused claim left an event"
            assert list(live.reservations(None)) == [], "a refused claim left a reservation"
            assert live.reserve([Claim(first, [make_cap("0.02")])], make_lost(clock)) == [None], "and no room is taken"
            assert live.verify().ok, "the chain does not hold after a refused claim"

        self.opened(component, bench.folder, reserve)

    def test_settled_spend_does_not_come_back(self, component: Any, bench: Bench, clock: Clock) -> None:
        """Settled amounts count permanently, released amounts do not; a claim that can never fit is refused without waiting."""
        cap = make_cap("0.03")

        async def spend(live: Any) -> None:
            settled, released = make_reservation(clock, "0.02"), make_reservation(clock, "0.01")
            for event in (settled, released):
                assert live.reserve([Claim(event, [cap])], make_lost(clock)) == [None], (
                    "a claim below the limit is refused"
                )
            live.append(
                [
                    make_closing(clock, "spend.settled", settled, "0.015"),
                    make_closing(clock, "spend.released", released),
                ]
            )
            assert list(live.reservations(RUN)) == [], "a settled reservation is open"
            refusals = live.reserve([Claim(make_reservation(clock, "0.02"), [cap])], make_lost(clock))
            assert refusals == [Refusal(cap, wait=False)], "0.015 is spent: 0.02 more can never fit into 0.03"
            assert refusals[0].spent in (None, Cost("0.015")), "the refusal states another amount than the spent amount"
            assert live.reserve([Claim(make_reservation(clock, "0.015"), [cap])], make_lost(clock)) == [None], (
                "a claim of the remaining budget is refused"
            )

        self.opened(component, bench.folder, spend)
        assert self.opened(component, bench.folder, _head_seq) == 5, "sums and rows outlive the process"

    def test_a_lease_that_ran_out_is_lost_and_counts(self, component: Any, bench: Bench, clock: Clock) -> None:
        """The next reserve closes the reservation of a dead process, which counts as spent."""
        cap = make_cap("0.03")

        async def lose(live: Any) -> None:
            dead = make_reservation(clock, "0.02", lease_until="2020-01-01T00:00:00.000Z")
            assert live.reserve([Claim(dead, [cap])], make_lost(clock)) == [None], "a claim below the limit is refused"
            lost = make_lost(clock)
            refusals = live.reserve([Claim(make_reservation(clock, "0.02"), [cap])], lost)
            assert refusals == [Refusal(cap, wait=False)], "lost amounts count as spent"
            entries = list(live.read(Query()))
            assert [entry.event for entry in entries] == [dead, lost(entries[0])], "lost makes the event of the loss"
            assert list(live.reservations(RUN)) == [], "a lost reservation is open"

        self.opened(component, bench.folder, lose)

    def test_caps_hold_in_their_scope_and_unit(self, component: Any, bench: Bench, clock: Clock) -> None:
        """Spending in another session or unit does not count; all caps must hold."""
        caps = [make_cap("0.01", scope="session:1"), make_cap("0.03", scope="day:2026-01-31"), make_cap("1", "msat")]

        async def reserve(live: Any) -> None:
            scopes = ["session:1", "day:2026-01-31"]
            claims = [Claim(make_reservation(clock, "0.01", scopes=scopes), caps) for _ in range(2)]
            assert live.reserve(claims, make_lost(clock)) == [None, Refusal(caps[0], wait=True)], (
                "a claim is refused by each cap that it exceeds"
            )
            other = make_reservation(clock, "0.02", scopes=["session:2", "day:2026-01-31"])
            assert live.reserve([Claim(other, caps[1:])], make_lost(clock)) == [None], (
                "a claim that its caps allow is refused"
            )

        self.opened(component, bench.folder, reserve)

    def test_missing_ledger_is_refused_and_not_made(self, component: Any, bench: Bench) -> None:
        """A reader (``create=False``) gets LedgerRefused if there is no ledger, and leaves no file."""
        path = path_option(component)
        if path is None:
            return

        async def read() -> None:
            async with opening(component, None, create=False):
                pass

        with pytest.raises(LedgerRefused):
            asyncio.run(read())
        assert not component.path.exists(), "looking for a ledger made one"


def _appended(live: Any, events: Sequence[Event]) -> Head:
    """Append *events* and return the new head."""
    head = live.append(events)
    assert isinstance(head, Head), f"append returned {head!r:.100}; return the new Head"
    return head


async def _events(live: Any) -> list[Event]:
    return [entry.event for entry in live.read(Query())]


async def _head_seq(live: Any) -> object:
    head = live.head()
    return None if head is None else head.seq


def _append_all(live: Any, batches: Sequence[Sequence[Event]], barrier: threading.Barrier) -> None:
    barrier.wait(10)
    for batch in batches:
        live.append(batch)


def _plain(events: Sequence[Event]) -> list[dict[str, object]]:
    """Return the events as data, with amounts as the text that a ledger writes."""
    loaded: list[dict[str, object]] = orjson.loads(orjson.dumps(unstructure(list(events)), default=unstructure))
    return loaded
