"""Parts of a page about one run: its document, figures over its subjects, and the shown rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from pathlib import PurePath
from typing import Any

import attrs

from dicast import ALL_METRICS, Event
from dicast.reporting import counted_failures, current_document

from .baseline import Baseline, baseline
from .choice import Choice, Chosen
from .contents import contents
from .human_labels import Reliability, human_labels
from .marking import Marking
from .older_rows import OlderRows
from .row_columns import RowColumns
from .spread import Spreads
from .subjects import Read, read_subjects

ENDS = "run.completed", "run.stopped"


@attrs.frozen
class PageOptions:
    """Options of a page: the most *rows* of each run, and whether rows have judged contents."""

    rows: int = 10_000
    content: bool = True


@attrs.frozen
class Origin:
    """Origin of a run: the ledger's *path* as a reader would type it, and the *digest* of the newest row at the time of writing."""

    path: str | None
    digest: str | None


@attrs.frozen
class RunPage:
    """One run in a page: the script reads *report* at once, and *rows* a moment later."""

    report: Mapping[str, Any]
    rows: Mapping[str, Mapping[str, Any]]


@attrs.frozen
class RunReader:
    """Reader of runs in a ledger for a page."""

    read: Read
    options: PageOptions
    origin: Origin

    def page(
        self, started: Event, end: Event, *, title: str, prefix: str, compared: Mapping[str, Any] | None = None
    ) -> RunPage:
        """Return the run between *started* and *end*. *prefix* precedes the paths of its numbers; *compared* is its document of ``dicast compare``."""
        document = dict(current_document({name: value for name, value in end.payload.items() if name != "reason"}))
        payload: Mapping[str, Any] = started.payload
        marking = Marking.of(payload)
        baseline_run = compared["a"]["run_id"] if compared else (document.get("baseline") or {}).get("run_id")
        findings = _Findings(
            self, marking, baseline(self.read, baseline_run, started.run_id), started.run_id, payload.get("task")
        )
        findings.count()
        chosen = findings.choice.chosen()
        content = contents(
            self.read, started.run_id, (subject.key for subject in chosen.rows) if self.options.content else ()
        )
        has_content = self.options.content and content.has_content
        report = {
            "key": started.run_id,
            "title": title,
            "prefix": prefix,
            "document": document,
            "failures": [*counted_failures(document)],
            "pass_at": {
                label: line
                for label in (*marking.metrics, *marking.judges, ALL_METRICS)
                if (line := marking.line(label)) is not None
            },
            **_times(started, end),
            **findings.json(),
            "rows": {**_counts(chosen), "content": has_content},
            "compared": compared,
            **self._prompts(payload, findings.baseline),
            "provenance": self._provenance(payload),
        }
        writer = RowColumns(marking, findings.baseline, self.options.content, self._older_rows(findings, chosen))
        return RunPage(report, writer.json(chosen.rows, content))

    def _older_rows(self, findings: _Findings, chosen: Chosen) -> OlderRows | None:
        if findings.baseline is None:
            return None
        keys = {subject.key for subject in chosen.rows}
        return OlderRows.of(self.read, findings.baseline.run_id, keys, content=self.options.content)

    def _prompts(self, started: Mapping[str, Any], baseline: Baseline | None) -> dict[str, Any]:
        """Return the prompts of the task of the run, and of the baseline; without content, none."""
        prompts, older = started.get("prompts"), None if baseline is None else baseline.prompts
        return {"prompts": prompts, "baseline_prompts": older} if self.options.content and (prompts or older) else {}

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
    """Figures over all subjects of a run."""

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
        self.choice = Choice(self.reader.options.rows, self.marking)
        self.spreads = Spreads(self.marking)
        self.reliability = Reliability(self.marking, human_labels(self.reader.read, self.run_id), self.run_id)

    def count(self) -> None:
        """Read all subjects once."""
        counted = set(self.marking.counted)
        for subject in read_subjects(self.reader.read, self.run_id):
            self.spreads.add(subject)
            self.spreads.take_back(self.choice.add(subject))
            self.reliability.add(subject)
            if not counted or counted & subject.results.keys():
                self.kinds[subject.kind] += 1

    def json(self) -> dict[str, Any]:
        """Return the figures that are not in a run's document."""
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


def _times(started: Event, end: Event) -> dict[str, Any]:
    start, over = (datetime.fromisoformat(event.time) for event in (started, end))
    return {"started_at": started.time, "ended_at": end.time, "seconds": (over - start).total_seconds()}
