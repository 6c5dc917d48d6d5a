"""The sink of outcomes: the newest verdict on each turn counts for the model that the turn was routed to."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, closing
from itertools import islice
from pathlib import Path

import attrs

from dicast import ConfigError, Event, Query, RunContext, Within

from .store import Observation, Store

NAMED = 5
"""How many turns without a model are named; the others are counted."""

BATCH = 10_000
"""Events that are taken from the ledger in one transaction: other runs need not wait long for theirs."""


@attrs.frozen
class Outcomes:
    """Mean score and count of the turns of each model, in a SQLite file that all runs share.

    A turn's model is the ``chosen_model`` of its last ``route.decided``. The newest verdict on a turn counts and takes the
    place of an earlier one; one that is told again changes nothing. A verdict on a turn that nobody routed is reported, and
    kept nowhere. A run that is taken up brings what the ledger has of it and the file has not. ``dicast evaluate`` over the same ledger feeds
    the file too, so that a re-evaluation takes the place of the verdict before it.

    :param path: the SQLite file; made where there is none, continued where there is one.
    :param min_confidence: a verdict with less confidence, from 0 to 1, is kept with its turn but does not count.
    :param judge: the label of the judge whose verdicts count; all judges of turns by default.
    """

    name = "outcomes"
    wants = ("route.decided", "eval.completed")
    takes_reevaluations = True

    path: Path = attrs.field(converter=Path)
    min_confidence: float = attrs.field(default=0.5, validator=Within(0, 1, "a number from 0 to 1"))
    judge: str | None = None

    @asynccontextmanager
    async def open(self, run: RunContext) -> AsyncIterator[Feed]:
        """Open the file for *run*; its path is relative to the pipeline's folder.

        :raises ConfigError: when it cannot be opened or written, or is no file of outcomes.
        """
        with closing(Store.opened(run.base / self.path)) as store:
            feed = Feed(store, self, run)
            if run.resumed:
                try:
                    feed.catch_up()
                except sqlite3.Error as error:
                    raise ConfigError(f"cannot write {run.base / self.path}: {error}") from error
            try:
                yield feed
            finally:
                feed.close()


class Feed:
    """The open sink: takes what a run tells and puts it into the *store*, a batch at a time."""

    def __init__(self, store: Store, options: Outcomes, run: RunContext) -> None:
        self._store, self._options, self._run = store, options, run
        self._unknown: dict[str, None] = {}
        self._looked_up = False
        self._caught_up = 0

    def catch_up(self) -> None:
        """Take what the ledger has of this run: a process that is killed has told the ledger more than its sinks.

        ``rewrites`` is for outputs that are made anew; this file is not, and what it has already changes nothing.
        """
        entries = self._run.read(Query(run_id=self._run.run_id, types=self._options.wants))
        while batch := [entry.event for entry in islice(entries, BATCH)]:
            self._caught_up += self.write(batch)

    def write(self, events: Sequence[Event]) -> int:
        """Take *events*, all or none of them; return how many verdicts were kept with their turn."""
        kept, unknown = 0, list[str]()
        with self._store.transaction():
            for event in events:
                if event.type == "route.decided":
                    self._note_route(event)
                elif (found := self._observation(event)) is not None:
                    known = self._is_known(found.turn_id)
                    kept += known and self._store.observe(found, self._options.min_confidence)
                    unknown += [] if known else [found.turn_id]
        self._unknown.update(dict.fromkeys(unknown))
        return kept

    def close(self) -> int:
        """Report, once, the turns that no model is known of; return how many verdicts were kept before the first write."""
        if self._unknown:
            named = ", ".join(list(self._unknown)[:NAMED]) + (", …" if len(self._unknown) > NAMED else "")
            logging.getLogger(__name__).warning(
                "patterns/outcomes: %d turns have verdicts and no route.decided, so they count for no model: %s",
                len(self._unknown),
                named,
            )
            self._unknown.clear()
        caught_up, self._caught_up = self._caught_up, 0
        return caught_up

    def _observation(self, event: Event) -> Observation | None:
        """The verdict that *event* tells, if it is one that counts here."""
        judge, said = self._options.judge, event.payload
        if event.subject_kind != "turn" or (judge is not None and said["judge"] != judge):
            return None
        score, confidence = said["score"], said["confidence"]
        if score is None:  # on a scale of its own, which no mean of scores has a place for
            return None
        assert isinstance(score, float | int)  # a verdict's are numbers
        assert isinstance(confidence, float | int)
        return Observation(str(event.subject_id), str(said["eval_id"]), float(score), float(confidence))

    def _is_known(self, turn_id: str) -> bool:
        """Whether a model is known for the turn; what earlier runs told is looked for, once, in the ledger."""
        if self._store.has_route(turn_id):
            return True
        if self._looked_up:
            return False
        self._looked_up = True
        for event in self._earlier():
            self._note_route(event)
        return self._store.has_route(turn_id)

    def _earlier(self) -> Iterator[Event]:
        return (entry.event for entry in self._run.read(Query(types=("route.decided",))))

    def _note_route(self, event: Event) -> None:
        """Note the turn's model; an incomplete event says nothing."""
        model = event.payload.get("chosen_model")
        if event.turn_id is not None and isinstance(model, str) and model:
            self._store.note_route(event.turn_id, event.id, model)
