"""``trust/anytime``: stop the run once its mean is decided to be above or below a line."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, closing
from typing import Any, Literal

import attrs

from dicast import ALL_METRICS, ConfigError, Problem, Record, Results, RunContext, Sizes, Within

from ..statistics.betting import METHOD, BettingTest

_TARGETS = ("population", "file")


@attrs.frozen
class Anytime:
    """Stop the run once its mean score is decided to be above or below a line; repeated looks do not raise the error rate.

    A test by betting: a decision ``above`` is wrong in at most *alpha* of runs, and so is a decision ``below``. It holds for subjects in random
    order, so the source needs ``shuffle: SEED``. If subjects share a session, a whole session is one observation. A subject without a
    score counts as 0 for ``above`` and as 1 for ``below``. The reason is ``{on, at, target, decision, n, of, low, high, alpha}``: the
    decision after *n* of *of* observations, and an interval for the mean that holds at any time as well.

    :param at: the line, between 0 and 1, exclusive; by default the line of the gate for this label (``min_score``, else ``max_score``). If *paired*, the least
        difference, between -1 and 1, by default 0.
    :param on: the label of a metric, a judge or a criterion, ``metrics`` for all metrics together; by default the label of the run's score.
    :param alpha: how often a decision ``above`` may be wrong if the mean is below, and the other way around; between 0 and 1.
    :param target: ``file`` tests the mean of the subjects in the source, and the whole file always decides; ``population`` tests the mean of the
        population that the subjects come from. By default ``file``.
    :param paired: the scores are differences from the scores of the same subjects in the run of the section ``baseline``.
    """

    name = "anytime"
    needs_shuffle = True

    at: float | None = None
    on: str | None = None
    alpha: float = attrs.field(default=0.05, validator=Within(0, 1, "a number between 0 and 1", open=True))
    target: Literal["file", "population"] | None = None
    paired: bool = False

    def __attrs_post_init__(self) -> None:
        least, bounds = (-1, "between -1 and 1") if self.paired else (0, "between 0 and 1")
        if self.at is not None and not least < self.at < 1:
            raise ConfigError(Problem(f"invalid value for at, expected a number {bounds}", path="at", value=self.at))

    @property
    def label_options(self) -> Mapping[str, Sequence[str]]:
        """Return the option that names the watched label, if it is set."""
        return {} if self.on is None else {"on": (self.on,)}

    @property
    def needs_score(self) -> bool:
        """Return whether the stop watches the run's score."""
        return self.on is None

    @property
    def needs_line(self) -> bool:
        """Return whether the gate has to provide the line."""
        return self.at is None and not self.paired

    def test(self, sizes: Sizes | None = None) -> BettingTest:
        """Return a new test with these options, for the scores of a program: see :mod:`dicast_trust.statistics.betting`.

        :param sizes: the number of observations; without it the mean is the population's, and observations are single subjects.
        :raises ConfigError: if the line is missing.
        """
        if self.needs_line:
            raise ConfigError(Problem("at is missing: the line to compare the mean with, such as at: 0.9", path="at"))
        by_session = sizes is not None and sizes.longest > 1
        total = None
        if sizes is not None and self.target != "population":
            total = sizes.sessions if by_session else sizes.subjects
        longest = sizes.longest if sizes is not None and by_session else 1
        return BettingTest(self.at or 0.0, alpha=self.alpha, total=total, longest=longest, paired=self.paired)

    @asynccontextmanager
    async def open(self, run: RunContext) -> AsyncIterator[Watch]:
        """Yield the observer of the run's records.

        :raises ConfigError: if the subjects are not in random order, or a paired stop has no baseline.
        """
        on = self.on or ALL_METRICS  # the kernel has set it if the file has labels
        sizes = run.sizes(on)
        if run.shuffle is None or sizes is None:
            raise ConfigError(
                Problem(
                    "trust/anytime needs rows in random order: add shuffle: SEED to the source's options",
                    path="source",
                )
            )
        if self.paired and run.baseline is None:
            raise ConfigError(Problem("paired needs a run to compare with: add baseline: {run: last}", path="baseline"))
        with closing(Earlier(on, run.baseline if self.paired else None)) as earlier:
            watch = Watch(attrs.evolve(self._with_line(run, on), on=on), sizes, earlier)
            yield watch
        if not watch.scored:
            logging.getLogger(__name__).warning("trust/anytime could not stop the run: no record has a score of %s", on)

    def _with_line(self, run: RunContext, on: str) -> Anytime:
        """Return these options with the gate's line, unless they have a line.

        :raises ConfigError: if the gate's line is not between 0 and 1.
        """
        line = run.gate_at(on) if self.needs_line else None
        return self if line is None else attrs.evolve(self, at=line)


class Watch:
    """Observer of records in the order of the source; its first reason to stop is final."""

    observes_failures = True

    def __init__(self, options: Anytime, sizes: Sizes, earlier: Earlier) -> None:
        self._options, self._sizes, self._earlier = options, sizes, earlier
        self._test = options.test(sizes)
        self._session: str | None = None
        self._waiting: list[float | None] = []
        self._seen = self.scored = 0
        self._reason: Mapping[str, object] | None = None

    def observe(self, record: Record) -> Mapping[str, object] | None:
        """Take a record; return why the run has to stop, or None."""
        if self._reason is not None or (self._sizes.kinds and record["subject_kind"] not in self._sizes.kinds):
            return self._reason
        self._seen += 1
        value = score(record, self._options.on or ALL_METRICS)
        if value is not None and self._options.paired:
            baseline_score = self._earlier.score(record["subject_kind"], record["subject_id"])
            value = None if baseline_score is None else value - baseline_score
        self.scored += value is not None
        if self._sizes.longest == 1:
            self._test.observe(value)
        else:
            self._add(record["session_id"], value)
        if self._test.decision is not None:
            self._reason = self._document()
        return self._reason

    def _add(self, session: str | None, value: float | None) -> None:
        """Take a score of a session, whose subjects come together; the session is observed after its last subject."""
        if self._waiting and (session is None or session != self._session):
            self._observe_waiting()
        self._session = session
        self._waiting.append(value)
        if session is None or self._seen == self._sizes.subjects:
            self._observe_waiting()

    def _observe_waiting(self) -> None:
        self._test.observe_session(self._waiting)
        self._waiting = []

    def _document(self) -> dict[str, object]:
        options = self._options
        target = _TARGETS[self._test.total is not None]
        return {"on": options.on, "at": options.at or 0.0, "target": target, **self._test.document()}

    def interval(self) -> Mapping[str, object] | None:
        """Return the interval of the mean so far, or None if the stop watches a difference."""
        return None if self._options.paired else {**self._document(), "method": METHOD}


def score(record: Record, label: str) -> float | None:
    """Return the score of *label* in *record*, or None without a score.

    :raises TypeError: if the score is not a number.
    """
    metrics = record.get("metrics") or {}
    is_whole = label == record.get("scored_by", ALL_METRICS)
    value = metrics.get("score") if is_whole else (metrics.get("scores") or {}).get(label)
    if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
        raise TypeError(f"the score of {label} is {value!r:.100}, not a number")
    return value


class Earlier:
    """Scores of *label* in an earlier run, by subject, in a temporary file."""

    def __init__(self, label: str, results: Results | None) -> None:
        self._database = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self._database.execute("CREATE TABLE scores(kind, id, score, PRIMARY KEY (kind, id)) WITHOUT ROWID")
        if results is not None:
            rows = ((record.get("subject_kind"), id_, score(record, label)) for id_, record in results.records())
            self._database.execute("BEGIN")
            self._database.executemany("INSERT OR REPLACE INTO scores VALUES (coalesce(?, ''), ?, ?)", rows)
            self._database.execute("COMMIT")

    def score(self, kind: str, subject_id: str) -> float | None:
        """Return the earlier score of a subject, or None without a score. A file of records does not name the kind of its subjects."""
        query = "SELECT score FROM scores WHERE id = ? AND kind IN (?, '') AND score IS NOT NULL"
        row: Any = self._database.execute(query, (subject_id, kind)).fetchone()
        return None if row is None else float(row[0])

    def close(self) -> None:
        """Delete the temporary file."""
        self._database.close()
