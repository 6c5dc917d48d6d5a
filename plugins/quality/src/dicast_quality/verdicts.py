"""Verdicts of a window of time, joined with the model whose work they judge, and their figures by group."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from operator import itemgetter
from typing import Any, Literal, get_args

import attrs

from dicast import Cost, Event, mean
from dicast.reading import (
    DOWN,
    ESCALATED,
    EXHAUSTED,
    FAILED,
    ROUTED,
    USD_UNKNOWN,
    ActivityColumns,
    VerdictColumns,
    VerdictOrigin,
)

from .percentile import percentile

Grouping = Literal["model", "judge_kind", "rubric_id", "day", "none"]
GROUPINGS: tuple[str, ...] = get_args(Grouping)

Key = tuple[str | None, str | None]
"""The name of a group, and for a rubric its version."""


SHARES = 0.5, 0.1
"""Shares of scores below the median and below the 10th percentile."""

DAY = 86_400_000
"""A day in milliseconds."""

ALWAYS = 2**62
"""A time in milliseconds after all events."""


@attrs.frozen
class Group:
    """Figures of some verdicts. Verdicts with enough confidence are *scored* and enter *mean*, *median* and *tenth*, the 10th percentile.

    *cost* and *msat* sum the known amounts; *unpriced* counts the verdicts with an unknown cost. *people* counts the verdicts of people.
    """

    key: Key
    count: int
    scored: int
    mean: float | None
    median: float | None
    tenth: float | None
    confidence: float | None
    cost: Cost
    msat: Cost
    unpriced: int
    thumbs_down: int
    escalated: int
    exhausted: int
    people: int = 0


class Verdicts:
    """Verdicts among *judged* on subjects of one *kind*, by *labels* (all of dicast's own if empty), from *first* to before *last*.

    Times are milliseconds since 1970.
    """

    def __init__(
        self,
        judged: VerdictColumns,
        kind: str,
        by: Grouping,
        labels: Collection[str] = (),
        first: int = 0,
        last: int = ALWAYS,
    ) -> None:
        self._kind, self._by, self._judged = kind, by, judged
        self.joins = by == "model" and kind == "turn"
        self._rows: dict[int, list[int]] = {
            code: []
            for code, origin in enumerate(judged.origins)
            if origin.kind == kind
            and (origin.judge in labels if labels else by == "judge_kind" or not origin.is_recorded)
        }
        self._without_people = False
        self._persons = {code for code in self._rows if judged.origins[code].judge_kind == "human"}
        self._models: Mapping[str, Mapping[str, str | None]] = {}
        self._last_runs: Mapping[str, str] = {}
        self._thumbs: dict[str, tuple[float, bool]] = {}
        put = {code: rows.append for code, rows in self._rows.items()}
        for row, (code, time, flag) in enumerate(zip(judged.codes, judged.times, judged.flags, strict=True)):
            if first <= time < last and not flag & FAILED and code in put:
                put[code](row)

    @property
    def origins(self) -> list[VerdictOrigin]:
        """Origins of all verdicts and failures, at any time."""
        return [self._judged.origins[code] for code in set(self._judged.codes)]

    def leave_tools_out(self, runs: Collection[str]) -> int:
        """Drop the verdicts of tools in *runs*, but not people's verdicts; return the number dropped."""
        dropped = self._codes_of_tools(runs)
        count = sum(len(self._rows[code]) for code in dropped)
        self._rows = {code: rows for code, rows in self._rows.items() if code not in dropped}
        return count

    def _codes_of_tools(self, runs: Collection[str]) -> set[int]:
        """Return the codes of verdicts in *runs* that are not people's."""
        return {code for code in self._rows if self._judged.origins[code].run_id in runs} - self._persons

    def leave_people_out(self) -> None:
        """Exclude people's verdicts from all figures but their count."""
        self._without_people = True

    def keep_latest(self) -> None:
        """Keep only the newest verdict of each judge on each subject."""
        judges = defaultdict[str, list[int]](list)
        for code, rows in self._rows.items():
            judges[self._judged.origins[code].judge] += rows
        newest = set[int]()
        for rows in judges.values():
            rows.sort()
            newest.update(dict(zip(map(self._judged.ids.__getitem__, rows), rows, strict=True)).values())
        self._rows = {code: [row for row in rows if row in newest] for code, rows in self._rows.items()}

    def join(self, read: Callable[[], ActivityColumns]) -> None:
        """Assign each verdict the model of its turn, from its own run, else from the run that recorded the turn last.

        The last of several decisions in a turn counts. Without a decision, it is the model of the turn's calls if they have only one.
        """
        self._models, self._last_runs = models_of(read())

    def thumb(self, events: Iterable[Event]) -> None:
        """Record the last thumb of each subject, by its time, then by its row. A thumb without a scope is on a turn."""
        for event in events:
            payload: Mapping[str, Any] = event.payload
            rating = payload.get("rating")
            if (payload.get("scope") or "turn") != self._kind or rating not in ("thumbs_up", "thumbs_down"):
                continue
            id = event.session_id if self._kind == "session" else payload.get("subject_turn_id") or event.turn_id
            time = _instant(event.time)
            if id is not None and (str(id) not in self._thumbs or time >= self._thumbs[str(id)][0]):
                self._thumbs[str(id)] = time, rating == "thumbs_down"

    def groups(self, min_confidence: float) -> Iterator[Group]:
        """Yield the figures of every group. Scores need a confidence of at least *min_confidence*."""
        for key, rows in self._grouped().items():
            if rows:
                yield self._group(key, rows, min_confidence)

    def saved(self) -> dict[Key, Decimal]:
        """Return by group the extra cost in usd had escalating judges escalated every verdict.

        A judge counts in the runs in which it escalated. Its cost in the group is divided by its escalated verdicts there. A group without escalated
        verdicts is left out.
        """
        codes = {code: self._judged.origins[code] for code in self._escalating()}
        judges = {(origin.run_id, origin.judge) for origin in codes.values()}
        names = {
            code: origin.judge
            for code, origin in enumerate(self._judged.origins)
            if (origin.run_id, origin.judge) in judges
        }
        extra_costs = dict[Key, Decimal]()
        for key, rows in self._grouped().items():
            for cost, count, escalated in self._shares(rows, names):
                if escalated:
                    extra_costs[key] = extra_costs.get(key, Decimal(0)) + cost * count / escalated - cost
        return extra_costs

    def _escalating(self) -> Collection[int]:
        """Return the codes of escalated verdicts."""
        return {code for code, flag in zip(self._judged.codes, self._judged.flags, strict=True) if flag & ESCALATED}

    def _shares(self, rows: Any, names: Mapping[int, str]) -> Iterator[tuple[Decimal, int, int]]:
        """Yield each judge's cost in *rows*, its number of verdicts, and its number of escalated verdicts. *names* are judges by code."""
        judged = self._judged
        by_judge = defaultdict[str, list[int]](list)
        for row in rows:
            if judged.codes[row] in names:
                by_judge[names[judged.codes[row]]].append(row)
        for judge_rows in by_judge.values():
            yield (
                judged.usd_of(judge_rows),
                len(judge_rows),
                sum(judged.flags[row] & ESCALATED != 0 for row in judge_rows),
            )

    def _grouped(self) -> Mapping[Key, Any]:
        groups = defaultdict[Key, list[int]](list)
        for code, rows in self._rows.items():
            if self.joins:
                for name, row in zip(self._names(code, rows), rows, strict=True):
                    groups[name, None].append(row)
            elif self._by == "day":
                for row in rows:
                    groups[day_of(self._judged.times[row] // DAY)].append(row)
            else:
                groups[self._key(self._judged.origins[code])] += rows
        return groups

    def _names(self, code: int, rows: Sequence[int]) -> Iterable[str | None]:
        """Return the model of each of *rows*, which belong to one run."""
        run_models, ids = self._models.get(self._judged.origins[code].run_id, {}), self._judged.ids
        if not run_models and not self._last_runs:
            return [None] * len(rows)
        turns = [ids[row] for row in rows]
        return [run_models[turn] if turn in run_models else self._elsewhere(turn) for turn in turns]

    def _elsewhere(self, turn: str) -> str | None:
        run = self._last_runs.get(turn)
        return None if run is None else self._models[run][turn]

    def _key(self, origin: VerdictOrigin) -> Key:
        if self._by == "rubric_id":
            return origin.rubric_id, origin.rubric_version
        if self._by == "model":
            return origin.judge_model, None
        return (origin.judge_kind, None) if self._by == "judge_kind" else (None, None)

    def _group(self, key: Key, rows: list[int], min_confidence: float) -> Group:
        judged = self._judged
        people = sum(judged.codes[row] in self._persons for row in rows) if self._persons else 0
        if people and self._without_people:
            rows = [row for row in rows if judged.codes[row] not in self._persons]
        if not rows:
            return self._nobody(key, people)
        of_rows = itemgetter(*rows) if len(rows) > 1 else lambda column: (column[rows[0]],)
        scores, confidences = of_rows(judged.scores), of_rows(judged.confidences)
        if min_confidence > 0:
            scores = [score for score, sure in zip(scores, confidences, strict=True) if sure >= min_confidence]
        flags = Counter[int](of_rows(judged.flags))
        sums = Cost(judged.usd_of(rows)), Cost(judged.msat_of(rows), "msat")
        counts = (
            sum(count for flag, count in flags.items() if flag & bit) for bit in (USD_UNKNOWN, ESCALATED, EXHAUSTED)
        )
        unpriced, escalated, exhausted = counts
        down = self._down(rows, any(flag & DOWN for flag in flags))
        usd, msat = (cost if cost.amount else Cost.zero(cost.unit) for cost in sums)
        ascending = sorted(scores)
        median, tenth = (percentile(ascending, share) if ascending else None for share in SHARES)
        figures = mean(ascending) if ascending else None, median, tenth, mean(confidences)
        costs = usd, msat, unpriced
        return Group(key, len(rows), len(ascending), *figures, *costs, down, escalated, exhausted, people)

    def _nobody(self, key: Key, people: int) -> Group:
        """Return the figures of a group that only people judged."""
        return attrs.evolve(NOTHING, key=key, people=people)

    def _down(self, rows: Sequence[int], flagged: bool) -> int:
        """Return the number of subjects in *rows* whose last thumb is down."""
        if not flagged and not self._thumbs:
            return 0
        ids, flags, thumbs = self._judged.ids, self._judged.flags, self._thumbs
        thumbs_down = {id for row in rows if (id := ids[row]) in thumbs and thumbs[id][1]}
        return len(thumbs_down | {id for row in rows if flags[row] & DOWN and (id := ids[row]) not in thumbs})


def day_of(days: int) -> Key:
    """Return the key of the day *days* after 1970-01-01, in UTC."""
    return (date(1970, 1, 1) + timedelta(days)).isoformat(), None


def models_of(activity: ActivityColumns) -> tuple[Mapping[str, Mapping[str, str | None]], Mapping[str, str]]:
    """Return the model of each turn by run, and the last run that recorded each turn. The model is None for several models without a decision."""
    decided, called = defaultdict[str, dict[str, str]](dict), defaultdict[str, dict[str, str | None]](dict)
    last: dict[str, str] = {}
    for code, turn in zip(activity.codes, activity.ids, strict=True):
        run, type, model = activity.origins[code]
        if turn is None:
            continue
        last[turn] = run
        if type == ROUTED:
            decided[run][turn] = model
        elif called[run].setdefault(turn, model) != model:
            called[run][turn] = None
    return {run: {**called.get(run, {}), **decided.get(run, {})} for run in {*called, *decided}}, last


def _instant(time: str) -> float:
    """Return an ISO 8601 time in seconds. A time without an offset is UTC."""
    moment = datetime.fromisoformat(time)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


NOTHING = Group((None, None), 0, 0, None, None, None, None, Cost.zero(), Cost.zero("msat"), 0, 0, 0, 0)
"""Figures of a group without verdicts."""
