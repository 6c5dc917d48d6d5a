"""The sink of outcomes: the newest verdict of each turn counts for the turn's model."""

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
"""Maximum number of ids in the warning about turns without a model."""

BATCH = 10_000
"""Events of the ledger in one transaction. Small transactions keep other runs from waiting long."""


@attrs.frozen
class Outcomes:
    """Mean score and count of the turns of each model, in a SQLite file that all runs share.

    A turn's model is the ``chosen_model`` of its last ``route.decided``. The newest verdict of a turn counts and replaces the
    previous one. A repeated verdict changes nothing. A verdict of a turn without a model is reported in a warning and not
    stored. A resumed run adds the verdicts of its ledger that the file lacks. ``dicast evaluate`` over the same ledger writes to
    the file too, so a re-evaluation replaces the previous verdict.

    :param path: the SQLite file; a missing file is created.
    :param min_confidence: the minimum confidence, from 0 to 1, of a verdict that counts. Other verdicts are stored with their turn.
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
        """Open the file for *run*; a relative path starts at the pipeline's folder.

        :raises ConfigError: if the file cannot be opened or written, or is not a file of outcomes.
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
    """The open sink: writes the events of a run to the *store*, in batches."""

    def __init__(self, store: Store, options: Outcomes, run: RunContext) -> None:
        self._store, self._options, self._run = store, options, run
        self._unknown: dict[str, None] = {}
        self._looked_up = False
        self._caught_up = 0

    def catch_up(self) -> None:
        """Write the events of this run from the ledger: after a kill the ledger has more events than its sinks.

        The member ``rewrites`` would not help: it is for outputs that a run writes anew, and this file has other runs too. An event
        that the file has already changes nothing.
        """
        entries = self._run.read(Query(run_id=self._run.run_id, types=self._options.wants))
        while batch := [entry.event for entry in islice(entries, BATCH)]:
            self._caught_up += self.write(batch)

    def write(self, events: Sequence[Event]) -> int:
        """Write *events* in one transaction; return the number of stored verdicts."""
        count, unknown = 0, list[str]()
        with self._store.transaction():
            for event in events:
                if event.type == "route.decided":
                    self._note_route(event)
                elif (observation := self._observation(event)) is not None:
                    is_known = self._is_known(observation.turn_id)
                    count += is_known and self._store.observe(observation, self._options.min_confidence)
                    unknown += [] if is_known else [observation.turn_id]
        self._unknown.update(dict.fromkeys(unknown))
        return count

    def close(self) -> int:
        """Warn once about turns without a model; return the number of verdicts that :meth:`catch_up` stored."""
        if self._unknown:
            ids = ", ".join(list(self._unknown)[:NAMED]) + (", …" if len(self._unknown) > NAMED else "")
            logging.getLogger(__name__).warning(
                "patterns/outcomes: %d turns have verdicts and no route.decided, so they count for no model: %s",
                len(self._unknown),
                ids,
            )
            self._unknown.clear()
        caught_up, self._caught_up = self._caught_up, 0
        return caught_up

    def _observation(self, event: Event) -> Observation | None:
        """Return the verdict of *event* if it is about a turn, by the chosen judge and with a score, else None."""
        judge, payload = self._options.judge, event.payload
        if event.subject_kind != "turn" or (judge is not None and payload["judge"] != judge):
            return None
        if judge is None and payload.get("judge_kind") == "recorded":  # a score of another tool counts only by its name
            return None
        score, confidence = payload["score"], payload["confidence"]
        if score is None:  # a raw score, which is not on the scale of the mean
            return None
        assert isinstance(score, float | int)  # a verdict's score is a number
        assert isinstance(confidence, float | int)
        return Observation(str(event.subject_id), str(payload["eval_id"]), float(score), float(confidence))

    def _is_known(self, turn_id: str) -> bool:
        """Return whether the turn has a model; the routes of older runs are read from the ledger once."""
        if self._store.has_route(turn_id):
            return True
        if self._looked_up:
            return False
        self._looked_up = True
        for event in self._recorded_routes():
            self._note_route(event)
        return self._store.has_route(turn_id)

    def _recorded_routes(self) -> Iterator[Event]:
        return (entry.event for entry in self._run.read(Query(types=("route.decided",))))

    def _note_route(self, event: Event) -> None:
        """Store the model of the event's turn; an incomplete event is ignored."""
        model = event.payload.get("chosen_model")
        if event.turn_id is not None and isinstance(model, str) and model:
            self._store.note_route(event.turn_id, event.id, model)
