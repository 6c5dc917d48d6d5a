"""Rows of a page by column: numbers as written in the ledger's JSON, results as JSON text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

import attrs
import orjson

from dicast import ALL_METRICS, normalize_stop_reason
from dicast.reporting import facts, failure_text, output_ending

from .baseline import Baseline
from .contents import Contents, texts
from .conversation import Turn
from .marking import Marking
from .media import Pictures
from .older_rows import OlderRows
from .subjects import RECORD, SubjectResults

_ORDER = {False: 0, None: 1, True: 2}
"""Order in which labels give a reason: failing labels first."""
_REASON = 240
_REDUNDANT = frozenset({"subject_kind", "subject_id", "judge"})
_TEXTS = frozenset({"details", "feedback", "signals", "error_message"})
_NO_CONTENT = Contents()


@attrs.frozen
class RowColumns:
    """Writer of the rows of one run. Without *content* it writes nothing that reveals judged content."""

    marking: Marking
    baseline: Baseline | None
    content: bool
    older: OlderRows | None = None

    def json(self, rows: Sequence[SubjectResults], contents: Contents) -> dict[str, dict[str, Any]]:
        """Return the columns of *rows* with their contents, in blocks that the page reads one after the other."""
        return {"table": self._table(rows), "texts": self._texts(rows, contents), "said": self._results(rows)}

    def _texts(self, rows: Sequence[SubjectResults], contents: Contents) -> dict[str, Any]:
        """Return the judged contents: texts for search and for an opened row."""
        mine = contents if self.content else _NO_CONTENT
        row_texts = [texts(mine.of(subject.key), subject.record if self.content else None) for subject in rows]
        names = ("inputs", "outputs", "references", "contexts")
        columns = zip(*(row_column for row_column, _ in row_texts), strict=True) if row_texts else ((), (), (), ())
        pictures = Pictures()
        media = [pictures.keep(items) or None for _, items in row_texts]
        turns = {
            session: [_with_keys(turn, pictures) for turn in session_turns]
            for session, session_turns in mine.turns.items()
        }
        picture_fields = {"media": media, "pictures": pictures.sources} if any(media) or pictures.sources else {}
        further_fields = {**picture_fields, **({"parents": mine.parents} if mine.parents else {})}
        if self.older is not None and self.content:
            further_fields["old"] = [self.older.output(subject.key) for subject in rows]
        places = [mine.read.get(subject.key, {}).get("place") for subject in rows]
        if any(places):
            further_fields["places"] = places
        return {**dict(zip(names, columns, strict=True)), "conversations": turns, **further_fields}

    def _results(self, rows: Sequence[SubjectResults]) -> dict[str, Any]:
        """Return the results of each row as JSON texts, whose numbers are written as in the ledger."""
        return {
            "ended": [_text(self._result_fields(subject)) for subject in rows],
            "records": [
                _text(_record(subject.record)) if self.content and subject.record else None for subject in rows
            ],
        }

    def _table(self, rows: Sequence[SubjectResults]) -> dict[str, Any]:
        """Return the columns that the table shows, sorts and filters by."""
        return {
            "ids": [subject.id for subject in rows],
            "kinds": [subject.kind for subject in rows],
            "sessions": [subject.session_id for subject in rows],
            "outcomes": [self.marking.outcome(subject) for subject in rows],
            "bases": [self.marking.basis(subject) for subject in rows],
            "scores": _tokens(self.marking.score(subject) for subject in rows),
            "odds": [self.marking.is_at_odds(subject) for subject in rows],
            "columns": self._columns(rows),
            "reasons": [self.reason(subject) for subject in rows],
            **self._changes(rows),
        }

    def _columns(self, rows: Sequence[SubjectResults]) -> list[dict[str, str]]:
        values = [self.marking.all_values(subject) for subject in rows]
        labels = dict.fromkeys(label for row in values for label in row)
        pipeline = (ALL_METRICS, *self.marking.metrics, *self.marking.judges)
        order = [label for label in pipeline if label in labels]
        return [
            {"label": label, "values": _tokens(row.get(label) for row in values)}
            for label in dict.fromkeys([*order, *labels])
        ]

    def _changes(self, rows: Sequence[SubjectResults]) -> dict[str, Any]:
        """Return the baseline's values of *rows* and the flips, both by label; the label of the scores is empty."""
        if self.baseline is None or self.older is None:
            return {"was": None, "flips": None}
        baseline = self.baseline
        values = [self.older.values(subject.key) for subject in rows]
        was = {label: _tokens(row.get(label) for row in values) for label in dict.fromkeys(chain(*values))}
        flips = {label: [baseline.flip(subject.key, label) for subject in rows] for label in baseline.pairs.labels}
        return {"was": {"": _tokens(baseline.score(subject) for subject in rows), **was}, "flips": flips}

    def reason(self, subject: SubjectResults, label: str | None = None) -> str:
        """Return the reason for the outcome of *subject* on one line, cut to 240 characters; without content, the kind of a failure.

        With a *label*, return the reason of its result.
        """
        if not self.content:
            return next((kind for _, kind in subject.failures()), "")
        ending = output_ending(subject.record or {})
        is_bad = normalize_stop_reason(ending) in ("max_tokens", "refusal")
        why = self._why(subject) if label is None else self._why_of(subject, label)
        text = f"[output ended: {ending}] {why}" if is_bad else why
        return " ".join(text.split())[:_REASON]

    def reasons(self, subject: SubjectResults) -> list[str]:
        """Return the whole reasons of all results of *subject*: failures, rationales, and details of metrics."""
        if not self.content:
            return []
        metrics = [name for name in self.marking.metrics if ALL_METRICS in subject.results]
        return list(filter(None, (self._why_of(subject, label) for label in (*subject.results, *metrics))))

    def _why_of(self, subject: SubjectResults, label: str) -> str:
        """Return the reason of the result of *label*, or of the failure that left *subject* without a result."""
        is_metric = label in self.marking.metrics
        result = subject.results.get(ALL_METRICS if is_metric else label) or subject.results.get(RECORD)
        if result is None:
            return ""
        if "failure_mode" in result:
            return f"{failure_text(result)}: {result.get('error_message') or ''}"
        if not is_metric:
            return self._of_verdict(label, result)
        scores = (score for score in result.get("scores", ()) if score["metric"] == label)
        return next((f"{label}: {score['details']}" for score in scores if score.get("details")), "")

    def _why(self, subject: SubjectResults) -> str:
        """Return the reason for a missing or low score: the first reason of a label, failing labels first.

        If all labels that decide pass, low scores of other tools are named first.
        """
        recorded = ", ".join(f"{label} is {score:g}" for label, score in self.marking.low_recorded(subject).items())
        if recorded and self.marking.outcome(subject) == "pass":
            return recorded
        for label in sorted(
            self.marking.deciding_labels(subject), key=lambda label: _ORDER[self.marking.passes(subject, label)]
        ):
            result = subject.results[label]
            if "failure_mode" in result:
                return f"{failure_text(result)}: {result.get('error_message') or ''}"
            if result["score"] != 1 and (why := self._of_verdict(label, result)):
                return why
        return recorded

    def _of_verdict(self, label: str, result: Mapping[str, Any]) -> str:
        if label == ALL_METRICS:
            scores = sorted(result.get("scores", ()), key=lambda score: (score["value"] is None, score["value"] or 0.0))
            details = (
                f"{score['metric']}: {score['details']}"
                for score in scores
                if score.get("details") and score["value"] != 1
            )
            return next(details, "")
        signals = result.get("signals") or {}
        rationale = signals.get("rationale_redacted")
        return (
            str(rationale) if rationale else ", ".join(map(str, signals.get("flags_negative") or ())) or facts(signals)
        )

    def _result_fields(self, subject: SubjectResults) -> dict[str, Any]:
        return {label: self._shown_fields(payload) for label, payload in subject.results.items()}

    def _shown_fields(self, payload: Mapping[str, Any]) -> dict[str, Any]:
        dropped = _REDUNDANT if self.content else _REDUNDANT | _TEXTS
        fields = {name: value for name, value in payload.items() if name not in dropped}
        if not self.content and "scores" in fields:
            fields["scores"] = [
                {n: value for n, value in score.items() if n not in _TEXTS} for score in fields["scores"]
            ]
        return fields


def _with_keys(turn: Turn, pictures: Pictures) -> Turn:
    """Return *turn* with keys in place of the contents of its pictures."""
    if not any("media" in message for message in turn["messages"]):
        return turn
    messages = [
        {**message, "media": pictures.keep(message["media"])} if "media" in message else message
        for message in turn["messages"]
    ]
    return {**turn, "messages": messages}


def _record(record: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in record.items() if name != "row"}


def _text(value: object) -> str:
    return orjson.dumps(value).decode()


def _tokens(values: Iterable[float | None]) -> str:
    """Return numbers as the document's tokens, separated by commas; None is empty."""
    return ",".join("" if value is None else orjson.dumps(value).decode() for value in values)
