"""What a page has of one run: its document, what its subjects come to, and the rows that are shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from pathlib import PurePath
from typing import Any

import attrs

from dicast import Event, Query
from dicast.reporting import current_document

from .baseline import Baseline, baseline
from .choice import Choice, Chosen
from .contents import contents
from .human_labels import Reliability, human_labels
from .marking import Marking
from .row_columns import RowColumns
from .spread import Spreads
from .told import Read, told_subjects

STARTED, ENDS = "run.started", ("run.completed", "run.stopped")


@attrs.frozen
class Wanted:
    """What is asked of a page: at most so many *rows* of each run, and whether they have what was judged."""

    rows: int = 10_000
    content: bool = True


@attrs.frozen
class Origin:
    """Where a run stands: the ledger's *path* as a reader would type it, and the *digest* of the newest row when the page was made."""

    path: str | None
    digest: str | None


@attrs.frozen
class RunPage:
    """One run in a page: *report* is read at once, *rows* a moment later."""

    report: Mapping[str, Any]
    rows: Mapping[str, Mapping[str, Any]]


@attrs.frozen
class RunReader:
    """Reads runs out of a ledger for a page."""

    read: Read
    wanted: Wanted
    origin: Origin

    def page(
        self, started: Event, ended: Event, *, title: str, prefix: str, compared: Mapping[str, Any] | None = None
    ) -> RunPage:
        """The run that *started* began and *ended* ends. *prefix* stands before the paths of its numbers; *compared* is what ``dicast compare`` says of it."""
        document = dict(current_document({name: value for name, value in ended.payload.items() if name != "reason"}))
        payload: Mapping[str, Any] = started.payload
        marking = Marking.of(payload)
        wanted = compared["a"]["run_id"] if compared else (document.get("baseline") or {}).get("run_id")
        found = _Findings(
            self, marking, baseline(self.read, wanted, started.run_id), started.run_id, payload.get("task")
        )
        found.count()
        chosen = found.choice.chosen()
        content = contents(self.read, started.run_id, (told.key for told in chosen.rows) if self.wanted.content else ())
        has_content = self.wanted.content and content.there
        report = {
            "key": started.run_id,
            "title": title,
            "prefix": prefix,
            "document": document,
            "pass_at": {
                label: line
                for label in (*marking.metrics, *marking.judges, "metrics")
                if (line := marking.line(label)) is not None
            },
            **_times(started, ended),
            **found.json(),
            "rows": {**_counts(chosen), "content": has_content},
            "compared": compared,
            "provenance": self._provenance(payload),
        }
        rows = RowColumns(marking, found.baseline, self.wanted.content).json(chosen.rows, content)
        return RunPage(report, rows)

    def _provenance(self, started: Mapping[str, Any]) -> dict[str, Any]:
        file = started.get("file")
        return {
            "pipeline": PurePath(file).name if isinstance(file, str) else None,
            "fingerprints": started.get("fingerprints") or {},
            "rubrics": {
                name: value for name, value in (started.get("rubrics") or {}).items() if isinstance(value, str)
            },
            "ledger": attrs.asdict(self.origin),
        }


@attrs.define
class _Findings:
    """What all subjects of a run come to."""

    reader: RunReader
    marking: Marking
    baseline: Baseline | None
    run_id: str
    task: str | None
    choice: Choice = attrs.field(init=False)
    spreads: Spreads = attrs.field(init=False)
    reliability: Reliability = attrs.field(init=False)
    kinds: Counter[str] = attrs.field(factory=Counter)

    def __attrs_post_init__(self) -> None:
        self.choice = Choice(self.reader.wanted.rows, self.marking)
        self.spreads = Spreads(self.marking)
        self.reliability = Reliability(self.marking, human_labels(self.reader.read, self.run_id), self.run_id)

    def count(self) -> None:
        """Read all subjects once."""
        counted = set(self.marking.counted)
        for told in told_subjects(self.reader.read, self.run_id):
            self.spreads.add(told)
            self.spreads.take_back(self.choice.add(told))
            self.reliability.add(told)
            if not counted or counted & told.ended.keys():
                self.kinds[told.kind] += 1

    def json(self) -> dict[str, Any]:
        """The figures that a run's document does not have."""
        return {
            "labels": self.spreads.json(),
            "task": {"label": self.task, "replies": self.spreads.task_json()},
            "reliability": self.reliability.json(),
            "flips": None if self.baseline is None else self.baseline.json(),
            "main_kind": next((kind for kind, _ in self.kinds.most_common(1)), None),
            "main_label": self.marking.label,
        }


def _counts(chosen: Chosen) -> dict[str, int]:
    names = ("total", "unscored", "worst", "drawn")
    return {"shown": len(chosen.rows), **{name: getattr(chosen, name) for name in names}}


def _times(started: Event, ended: Event) -> dict[str, Any]:
    begun, over = (datetime.fromisoformat(event.time) for event in (started, ended))
    return {"started_at": started.time, "ended_at": ended.time, "seconds": (over - begun).total_seconds()}


def event_of(read: Read, run_id: str, *types: str) -> Event | None:
    """The newest event of *types* in the run."""
    return next((entry.event for entry in read(Query(run_id, types, newest_first=True, limit=1))), None)
