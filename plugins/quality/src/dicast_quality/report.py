"""Options and report of ``dicast quality``."""

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
    milliseconds,
    read_activity,
    read_open_judgments,
    read_verdicts,
    weighted_runs,
    weights_note,
)

from .many import verdicts_of
from .options import as_texts, check_labels, written
from .verdicts import NOTHING, Group, Grouping, Key

DAYS = 7
KINDS = ("turn", "tool_cycle", "session", "workload", "row", "candidate")
"""The built-in subject kinds."""


@attrs.frozen
class QualityOptions:
    """Options of the report. The window is from *start*, inclusive, to *end*, exclusive."""

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
    ) -> QualityOptions:
        """Return the options with the defaults of an open window."""
        end = end or datetime.now(UTC)
        return cls(
            group, kind, start or end - timedelta(days=DAYS), end, min_confidence, floor, labels, latest, without_people
        )

    def read(self, ledger: Ledger, run_id: str | None, *, saved: bool = False) -> Report:
        """Compute the figures of *ledger*; with *saved* also the money saved by not escalating every verdict.

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
        seen |= {str(judgment.payload["judge"]) for judgment in open_}
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
        saved_costs = verdicts.saved() if saved else None
        weighted = weighted_runs(ledger, () if run_id is None else (run_id,), since=written(self.start))
        return Report(
            self, groups, self._backlog(open_), elsewhere, rows.pricing_version, saved_costs, of_tools, weighted
        )

    def _backlog(self, events: Iterable[Event]) -> int:
        """Return the number of judgments started in the window, among *events* of judgments without an end."""
        first, last, labels = written(self.start), written(self.end), self.labels
        return len(
            {
                event.payload["eval_id"]
                for event in events
                if first <= event.time < last and (not labels or event.payload["judge"] in labels)
            }
        )

    def _elsewhere(self, ledger: Ledger) -> str:
        """Return a hint for an empty report: the kinds of subjects with verdicts.

        :raises ConfigError: when subjects of this kind are unknown.
        """
        rows = read_verdicts(ledger)
        counts = Counter(code for code, flag in zip(rows.codes, rows.flags, strict=True) if not flag & FAILED)
        kind_counts = Counter[str]()
        for code, count in counts.items():
            kind_counts[rows.origins[code].kind] += count
        kinds = [*KINDS, *(kind for kind in kind_counts if kind and kind not in KINDS)]
        if self.kind not in kinds:
            message = f"no subjects of kind {self.kind!r}; the kinds are {', '.join(kinds)}"
            raise ConfigError(Problem(message, value=self.kind, hint=nearest(self.kind, kinds)))
        has = ", ".join(f"{count:,} of kind {kind}" for kind, count in sorted(kind_counts.items(), key=str))
        return f"no verdict matches; verdicts in the ledger: {has or 'none'} (select with --subject-kind, --from, --judge and --run)"


def _runs_of_tools(ledger: Ledger) -> frozenset[str]:
    """Return the ids of runs that commands such as ``dicast doctor`` and ``dicast label`` started."""
    started = (entry.event for entry in started_runs(ledger.read, tools=True))
    return frozenset(event.run_id for event in started if run_kind(event.payload) == "tool")


@attrs.frozen
class Report:
    """Figures by group, and the number of started judgments without an end.

    *of_tools* counts the verdicts of tools, which are in no figure.
    """

    options: QualityOptions
    figures: Sequence[Group]
    backlog: int
    elsewhere: str | None
    pricing_version: str | None = None
    saved: Mapping[Key, Decimal] | None = None
    of_tools: int = 0
    weighted: Sequence[str] = ()

    @property
    def groups(self) -> list[Group]:
        """The groups, most verdicts first, days in their order. Without grouping, all verdicts are one group, even if there are none."""
        groups = self.figures or ([NOTHING] if self.options.group == "none" else [])
        if self.options.group == "day":
            return sorted(groups, key=lambda group: str(group.key[0]))
        return sorted(groups, key=lambda group: (-group.count, group.key[0] is None, str(group.key)))

    def document(self) -> dict[str, Any]:
        """Return the JSON document. Amounts are decimal strings; an undefined figure is null."""
        options = self.options
        return {
            "window": {"from": written(options.start), "to": written(options.end)},
            "current_pricing_version": self.pricing_version,
            "subject_kind": options.kind,
            "group_by": options.group,
            "min_confidence": options.min_confidence,
            "floor": options.floor,
            "backlog": self.backlog,
            "tool_verdict_count": self.of_tools,
            **({"weighted_runs": self.weighted} if self.weighted else {}),
            "data": [{**self._names(group), **self._figures(group)} for group in self.groups],
        }

    def _names(self, group: Group) -> dict[str, Any]:
        name, version = group.key
        match self.options.group:
            case "model":
                return {"chosen_model": name} | ({} if self.options.kind == "turn" else {"judge_model": name})
            case "rubric_id":
                return {"rubric_id": name, "rubric_version": version}
            case "judge_kind":
                return {"judge_kind": name}
            case "day":
                return {"day": name}
        return {}

    def _figures(self, group: Group) -> dict[str, Any]:
        known_cost = group.cost.decimal
        extra: dict[str, Any] = (
            {"judge_cost_usd_known": known_cost, "unpriced": group.unpriced} if group.unpriced else {}
        )
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
            "judge_cost_usd_total": None if group.unpriced else known_cost,
            **extra,
            "thumbs_down_count": group.thumbs_down,
            "escalated_count": group.escalated,
            "budget_exhausted_count": group.exhausted,
            "below_floor": self._below(group),
        }

    def _below(self, group: Group) -> bool | None:
        return None if group.mean is None else group.mean < self.options.floor - 1e-9

    def lines(self) -> Iterator[str]:
        """Yield the document as text, with advice on groups below the floor."""
        options = self.options
        yield f"verdicts on subjects of kind {options.kind} from {written(options.start)} to {written(options.end)}"
        first = "judge's model" if self._by_judge else options.group if options.group != "none" else ""
        money = ("usd", "msat") if self._msat else ("usd",)
        heads = (first, "verdicts", "mean", "p50", "p10", "confidence", *money, "thumbs down", "escalated", "no budget")
        table = [heads, *(self._cells(group) for group in self.groups)]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        for first, *rest in table:
            cells = [cell.rjust(width) for cell, width in zip(rest, widths[1:], strict=True)]
            yield "  ".join([first.ljust(widths[0]), *cells])
        unsure = sum(group.count - group.scored for group in self.groups)
        if unsure:
            yield f"mean, p50 and p10 are without {unsure:,} verdicts whose confidence is below {options.min_confidence:g}"
        people = sum(group.people for group in self.groups)
        if people:
            yield (
                f"{people:,} verdicts of people are excluded from the figures"
                if options.without_people
                else f"{people:,} of these verdicts are of people (--without-human leaves them out)"
            )
        if self.of_tools:
            yield f"without {self.of_tools:,} verdicts of dicast doctor and other tools (--run ID shows the verdicts of one run)"
        if self.weighted:
            yield weights_note(self.weighted)
        if self.backlog:
            yield f"backlog: {self.backlog:,} judgments were started and have not ended"
        yield from (self._advice(group) for group in self.groups if self._below(group))

    @property
    def _by_judge(self) -> bool:
        """True if groups are by the judge's model: only turns record the model that wrote them."""
        return self.options.group == "model" and self.options.kind != "turn"

    @property
    def _msat(self) -> bool:
        """True if any amount was paid in msat."""
        return any(not group.msat.is_zero for group in self.groups)

    def _cells(self, group: Group) -> tuple[str, ...]:
        figures = as_texts("{:.4f}".format, group.mean, group.median, group.tenth)
        (confidence,) = as_texts("{:.2f}".format, group.confidence)
        money = [
            f"{group.cost.decimal}{'+' if group.unpriced else ''}",
            *([str(group.msat.decimal)] if self._msat else []),
        ]
        counts = (f"{count:,}" for count in (group.thumbs_down, group.escalated, group.exhausted))
        return self._title(group), f"{group.count:,}", *figures, confidence, *money, *counts

    def _title(self, group: Group) -> str:
        name, version = group.key
        if self.options.group == "none":
            return "all"
        return (name or "(none)") + (f" {version}" if version else "")

    def _advice(self, group: Group) -> str:
        title = f"judged by {self._title(group)}" if self._by_judge else self._title(group)
        below = f"{title}: the mean {group.mean:.4f} is below the floor of {self.options.floor:g}"
        if self.options.group == "model" and self.options.kind == "turn" and group.key[0] is not None:
            return f"{below}; this work may need a stronger model than {group.key[0]}"
        return f"{below}; dicast verdicts --kind {self.options.kind} lists the verdicts"
