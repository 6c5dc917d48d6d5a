"""What ``dicast quality`` was asked, and what it says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import attrs

from dicast import ConfigError, Event, Ledger, Problem, Query, named_run, nearest, run_kind, started_runs
from dicast.reading import (
    CALLED,
    FAILED,
    ROUTED,
    VerdictColumns,
    milliseconds,
    read_activity,
    read_open_judgments,
    read_verdicts,
)

from .many import verdicts_of
from .options import check_labels, shown, written
from .verdicts import NOTHING, Group, Grouping, Key

DAYS = 7
KINDS = ("turn", "tool_cycle", "session", "workload", "row", "candidate")
"""The subject kinds that dicast itself knows."""


@attrs.frozen
class Asked:
    """What the command was told. The window is from *start*, inclusive, to *end*, exclusive."""

    group: Grouping
    kind: str
    start: datetime
    end: datetime
    min_confidence: float
    floor: float
    labels: Sequence[str]
    latest: bool
    without_people: bool

    @classmethod
    def about(
        cls,
        group: Grouping,
        kind: str,
        start: datetime | None,
        end: datetime | None,
        min_confidence: float,
        floor: float,
        labels: Sequence[str],
        *,
        latest: bool,
        without_people: bool,
    ) -> Asked:
        """What is asked for where the window may be left open."""
        end = end or datetime.now(UTC)
        return cls(
            group, kind, start or end - timedelta(days=DAYS), end, min_confidence, floor, labels, latest, without_people
        )

    def read(self, ledger: Ledger, run_id: str | None, *, saved: bool = False) -> Report:
        """Add up what *ledger* has; with *saved* also what not escalating every verdict has saved.

        :raises ConfigError: when the window is empty, or the ledger has no such run, judge or kind.
        """
        if self.start >= self.end:
            raise ConfigError(f"--from {written(self.start)} is not before --to {written(self.end)}")
        run_id = None if run_id is None else named_run(ledger, run_id)
        rows, first, last = (
            read_verdicts(ledger, run_id).unit_scores(),
            milliseconds(self.start),
            milliseconds(self.end),
        )
        verdicts = verdicts_of(rows, self.kind, self.group, self.labels, first, last)
        tools = frozenset[str]() if run_id else _runs_of_tools(ledger)
        started = (entry.event for entry in read_open_judgments(ledger, run_id))
        open_ = [event for event in started if event.subject_kind == self.kind and event.run_id not in tools]
        seen = {origin.judge for origin in verdicts.origins if origin.kind == self.kind}
        seen |= {str(one.payload["judge"]) for one in open_}
        if seen:
            check_labels(self.labels, seen, f" for subjects of kind {self.kind!r}")
        of_tools = verdicts.leave_tools_out(tools)
        if self.without_people:
            verdicts.leave_people_out()
        if self.latest:
            verdicts.keep_latest()
        if verdicts.joins:
            verdicts.join(lambda: read_activity(ledger, types=(ROUTED, CALLED)))
        verdicts.thumb(entry.event for entry in ledger.read(Query(types=("feedback.explicit",))))
        groups = list(verdicts.groups(self.min_confidence))
        elsewhere = None if groups else self._elsewhere(ledger)
        more = verdicts.saved() if saved else None
        return Report(self, groups, self._backlog(open_), elsewhere, _newest_prices(rows), more, of_tools)

    def _backlog(self, events: Iterable[Event]) -> int:
        """How many judgments were begun in the window, of *events* that have not ended."""
        first, last, labels = written(self.start), written(self.end), self.labels
        return len(
            {
                event.payload["eval_id"]
                for event in events
                if first <= event.time < last and (not labels or event.payload["judge"] in labels)
            }
        )

    def _elsewhere(self, ledger: Ledger) -> str:
        """What to look for where nothing was found.

        :raises ConfigError: when subjects of this kind are unknown.
        """
        rows = read_verdicts(ledger)
        counts = Counter(code for code, flag in zip(rows.codes, rows.flags, strict=True) if not flag & FAILED)
        found = Counter[str]()
        for code, count in counts.items():
            found[rows.origins[code].kind] += count
        kinds = [*KINDS, *(kind for kind in found if kind and kind not in KINDS)]
        if self.kind not in kinds:
            message = f"no subjects of kind {self.kind!r}; there are {', '.join(kinds)}"
            raise ConfigError(Problem(message, value=self.kind, hint=nearest(self.kind, kinds)))
        has = ", ".join(f"{count:,} of kind {kind}" for kind, count in sorted(found.items(), key=str))
        return f"nothing was found; verdicts in the ledger: {has or 'none'} (--subject-kind, --from, --judge and --run choose)"


def _runs_of_tools(ledger: Ledger) -> frozenset[str]:
    """Return the ids of the runs that commands such as ``dicast doctor`` and ``dicast label`` have started."""
    started = (entry.event for entry in started_runs(ledger.read, tools=True))
    return frozenset(event.run_id for event in started if run_kind(event.payload) == "tool")


def _newest_prices(rows: VerdictColumns) -> str | None:
    """The price list of the newest verdict that was paid for by one."""
    priced = {code for code, origin in enumerate(rows.origins) if origin.pricing_version is not None}
    return (
        next((rows.origins[code].pricing_version for code in reversed(rows.codes) if code in priced), None)
        if priced
        else None
    )


@attrs.frozen
class Report:
    """What was found: figures by group, and how many judgments were begun and have not ended.

    *of_tools* counts the verdicts that tools asked for, which no figure holds.
    """

    asked: Asked
    found: Sequence[Group]
    backlog: int
    elsewhere: str | None
    pricing_version: str | None = None
    saved: Mapping[Key, Decimal] | None = None
    of_tools: int = 0

    @property
    def groups(self) -> list[Group]:
        """The groups, those with the most verdicts first; without groups all verdicts are one, also when there are none."""
        found = self.found or ([NOTHING] if self.asked.group == "none" else [])
        return sorted(found, key=lambda group: (-group.count, group.key[0] is None, str(group.key)))

    def document(self) -> dict[str, Any]:
        """The JSON document. Amounts are decimal strings; what there is no figure for is null."""
        asked = self.asked
        return {
            "window": {"from": written(asked.start), "to": written(asked.end)},
            "current_pricing_version": self.pricing_version,
            "subject_kind": asked.kind,
            "group_by": asked.group,
            "min_confidence": asked.min_confidence,
            "floor": asked.floor,
            "backlog": self.backlog,
            "tool_verdict_count": self.of_tools,
            "data": [{**self._names(group), **self._figures(group)} for group in self.groups],
        }

    def _names(self, group: Group) -> dict[str, Any]:
        name, version = group.key
        match self.asked.group:
            case "model":
                return {"chosen_model": name} | ({} if self.asked.kind == "turn" else {"judge_model": name})
            case "rubric_id":
                return {"rubric_id": name, "rubric_version": version}
            case "judge_kind":
                return {"judge_kind": name}
        return {}

    def _figures(self, group: Group) -> dict[str, Any]:
        known = group.cost.decimal
        extra: dict[str, Any] = {"judge_cost_usd_known": known, "unpriced": group.unpriced} if group.unpriced else {}
        if not group.msat.is_zero:
            extra["judge_cost_msat_total"] = group.msat.decimal
        if self.saved is not None:
            extra["judge_cost_usd_saved"] = self.saved.get(group.key)
        return {
            "verdict_count": group.count,
            "human_count": group.people,
            "scored_count": group.scored,
            "mean_score": group.mean,
            "p50_score": group.median,
            "p10_score": group.tenth,
            "mean_confidence": group.confidence,
            "judge_cost_usd_total": None if group.unpriced else known,
            **extra,
            "thumbs_down_count": group.thumbs_down,
            "escalated_count": group.escalated,
            "budget_exhausted_count": group.exhausted,
            "below_floor": self._below(group),
        }

    def _below(self, group: Group) -> bool | None:
        return None if group.mean is None else group.mean < self.asked.floor - 1e-9

    def lines(self) -> Iterator[str]:
        """The document as text, with a word on what is below the floor."""
        asked = self.asked
        yield f"verdicts on subjects of kind {asked.kind} from {written(asked.start)} to {written(asked.end)}"
        first = "judge's model" if self._by_judge else asked.group if asked.group != "none" else ""
        money = ("usd", "msat") if self._msat else ("usd",)
        heads = (first, "verdicts", "mean", "p50", "p10", "confidence", *money, "thumbs down", "escalated", "no budget")
        table = [heads, *(self._cells(group) for group in self.groups)]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        for first, *rest in table:
            cells = [cell.rjust(width) for cell, width in zip(rest, widths[1:], strict=True)]
            yield "  ".join([first.ljust(widths[0]), *cells])
        unsure = sum(group.count - group.scored for group in self.groups)
        if unsure:
            yield f"mean, p50 and p10 are without {unsure:,} verdicts whose confidence is below {asked.min_confidence:g}"
        people = sum(group.people for group in self.groups)
        if people:
            yield (
                f"besides {people:,} verdicts of people, which no figure holds"
                if asked.without_people
                else f"{people:,} of these verdicts are of people (--without-human leaves them out)"
            )
        if self.of_tools:
            yield f"without {self.of_tools:,} verdicts that dicast doctor and other tools asked for (--run ID shows those of one run)"
        if self.backlog:
            yield f"backlog: {self.backlog:,} judgments were begun and have not ended"
        yield from (self._advice(group) for group in self.groups if self._below(group))

    @property
    def _by_judge(self) -> bool:
        """Whether groups are by the judge's model: only turns record which model wrote them."""
        return self.asked.group == "model" and self.asked.kind != "turn"

    @property
    def _msat(self) -> bool:
        """Whether anything was paid in msat."""
        return any(not group.msat.is_zero for group in self.groups)

    def _cells(self, group: Group) -> tuple[str, ...]:
        figures = shown("{:.4f}".format, group.mean, group.median, group.tenth)
        (confidence,) = shown("{:.2f}".format, group.confidence)
        money = [
            f"{group.cost.decimal}{'+' if group.unpriced else ''}",
            *([str(group.msat.decimal)] if self._msat else []),
        ]
        counts = (f"{count:,}" for count in (group.thumbs_down, group.escalated, group.exhausted))
        return self._title(group), f"{group.count:,}", *figures, confidence, *money, *counts

    def _title(self, group: Group) -> str:
        name, version = group.key
        if self.asked.group == "none":
            return "all"
        return (name or "(none)") + (f" {version}" if version else "")

    def _advice(self, group: Group) -> str:
        what = f"judged by {self._title(group)}" if self._by_judge else self._title(group)
        below = f"{what}: the mean {group.mean:.4f} is below the floor of {self.asked.floor:g}"
        if self.asked.group == "model" and self.asked.kind == "turn" and group.key[0] is not None:
            return f"{below}; this work may need a stronger model than {group.key[0]}"
        return f"{below}; dicast verdicts --kind {self.asked.kind} lists what was judged"
