"""Messages about a run: the document, and its text for chat tools."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, Self

import attrs
import orjson

from dicast import Event, run_kind
from dicast.reporting import failures_text, figure, money, named_labels, share, shown_label
from dicast.toolkit.printable import one_line

from .decline import Decline
from .earlier import Standing

Form = Literal["json", "text"]

VERSION = 1
"""The version of the document; it rises when a member changes its meaning."""

LONGEST = 2_000
"""Most characters of a text. Discord's endpoint for Slack's format takes no more."""

LABELS = 6
"""Most labels in a text; the document has all."""

_LABEL_FIGURES = ("mean", "pass_rate", "ci_low", "ci_high", "basis", "scored", "failed", "total", "scale")
_RUN_FIGURES = ("subjects", "scored", "failed", "skipped", "coverage", "failures", "cost", "spend_lost", "stopped")
_HEADS = {"worse": "got worse", "failed": "failed its gate", "undecided": "is undecided"}
_MEAN = re.compile(r"the mean of (.+) is [-.\d]+, (.+)")
"""A reason of the gate about a mean: its label, and the words after the mean, which the line of the label states."""
_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "@": "@\N{ZERO WIDTH SPACE}"})
"""Characters with a meaning in chat tools: Slack's three escapes, and a sign that keeps a name from being a mention."""


@attrs.frozen
class Message:
    """A message: the *document*, which has an ``id`` and a ``text``."""

    document: Mapping[str, Any]

    @property
    def id(self) -> str:
        """The id, equal for each try to send the message."""
        return str(self.document["id"])

    def body(self, form: Form) -> bytes:
        """Return the JSON text to send: the document, or its text alone with escapes for chat tools."""
        if form == "json":
            return orjson.dumps(self.document)
        return orjson.dumps({"text": _cut(self.document["text"].translate(_ESCAPES))})

    @classmethod
    def of_end(cls, event: Event, standing: Standing, trigger: str, option: str = "") -> Self:
        """Return the message about the end of a run, sent because of *trigger*; *option* names the ledger in commands."""
        done, previous = standing.document, standing.previous
        gate = done["gate"]
        reasons = done["undecided"] if gate is None else gate["reasons"]
        return cls({
            "version": VERSION,
            "id": event.id,
            "time": event.time,
            "trigger": trigger,
            "text": _cut("\n".join(map(one_line, _end_lines(standing, trigger, reasons, option)))),
            "name": done["name"],
            "run_id": event.run_id,
            "kind": standing.kind,
            "answer": standing.answer,
            "worse": list(standing.worse),
            "reasons": list(reasons),
            "gate": gate,
            **{name: done[name] for name in _RUN_FIGURES},
            "labels": _labels(done),
            "previous": previous and {
                "run_id": previous.run_id, "answer": previous.answer, "labels": _labels(previous.document),
                "not_compared": standing.not_compared,
            },
        })  # fmt: skip

    @classmethod
    def of_decline(cls, event: Event, started: Event | None, name: str, decline: Decline, option: str = "") -> Self:
        """Return the message about a decline during a watch, found with the verdict *event*; *option* names the ledger in commands."""
        title = f"{name} got worse" if started is None else f"{started.payload['name']} got worse"
        lines = [title, decline.words, _next(event.run_id, option)]
        return cls({
            "version": VERSION,
            "id": event.id,
            "time": event.time,
            "trigger": "worse",
            "text": _cut("\n".join(map(one_line, lines))),
            "name": name,
            "run_id": event.run_id,
            "kind": "watch" if started is None else run_kind(started.payload),
            "answer": None,
            "worse": [decline.words],
            "decline": attrs.asdict(decline),
        })  # fmt: skip


def _labels(done: Mapping[str, Any]) -> dict[str, Any]:
    return {
        label: {name: figures[name] for name in _LABEL_FIGURES if name in figures}
        for label, figures in done["labels"].items()
    }


def _end_lines(standing: Standing, trigger: str, reasons: Iterable[str], option: str) -> Iterator[str]:
    done = standing.document
    yield f"{done['name']} {_HEADS.get(trigger) or f'ended: {standing.answer}'}"
    before = {} if standing.previous is None else standing.previous.document
    earlier = {**before.get("metrics", {}), **before.get("labels", {})}
    labels, rules = [], {}
    for reason in reasons:
        match = _MEAN.fullmatch(reason)
        rules[reason] = ("", "") if match is None else (match[1], match[2])
    for label, figures in _failed_first(done):
        rule = "".join(f", {words}" for name, words in rules.values() if name == label)
        is_compared = any(sentence.startswith(f"{label}: worse than ") for sentence in standing.worse)
        labels.append(_label_line(label, figures, earlier.get(label), rule, has_difference=not is_compared))
    shown = [label for label, _ in _failed_first(done)][:LABELS]
    yield from labels[:1]
    yield from _new_findings(standing, [*rules])
    yield from (reason for reason, (label, _) in rules.items() if label not in shown)
    if standing.not_compared is not None:
        yield standing.not_compared
    yield from labels[1:LABELS]
    if len(labels) > LABELS:
        yield f"+ {len(labels) - LABELS} more labels"
    failures = failures_text(done)
    yield f"coverage {share(done['coverage'])}" + (f", failed: {failures}" if failures else "")
    yield f"spent {money(done['cost'])}"
    yield _next(done["run_id"], option)


def _new_findings(standing: Standing, reasons: Sequence[str]) -> Iterator[str]:
    """Yield the findings that no reason of the gate states: the difference from a baseline, which may be the run before."""
    baselines = ((standing.document["gate"] or {}).get("baselines") or {}).values()
    labels = {reason.partition(" against ")[0] for reason in reasons if " against " in reason}
    places = ["the difference from the baseline is ", *(f"worse than in run {run_id}: " for run_id in baselines)]
    stated = tuple(f"{label}: {place}" for label in labels for place in places)
    yield from (finding for finding in standing.worse if not finding.startswith(stated))


def _failed_first(done: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """Return the labels with their figures: first the labels of clauses that failed, then of clauses without an answer."""
    order: Sequence[bool | None] = (False, None, True)
    places: dict[str, int] = {}
    for clause in (done["gate"] or {}).get("clauses", ()):
        label, place = shown_label(done, str(clause["on"])), order.index(clause["passed"])
        places[label] = min(place, places.get(label, place))
    return sorted(named_labels(done).items(), key=lambda item: places.get(item[0], len(order)))


def _label_line(
    label: str, figures: Mapping[str, Any], before: Mapping[str, Any] | None, rule: str, *, has_difference: bool
) -> str:
    """Return the mean of a label, with its interval, the *rule* of the gate, its coverage, and the mean *before*, with the difference if *has_difference*."""
    mean, previous = figures["mean"], None if before is None else before["mean"]
    low, high = figures.get("ci_low"), figures.get("ci_high")
    interval = "" if low is None or high is None else f" (95 % interval {figure(low)} to {figure(high)})"
    difference = "" if mean is None or previous is None or not has_difference else f" ({mean - previous:+.4f})"
    compared = "" if previous is None else f"; before {figure(previous)}{difference}"
    return (
        f"{label}: mean {figure(mean)}{interval}{rule}, {figures['scored']:,} of {figures['total']:,} scored{compared}"
    )


def _next(run_id: str, option: str) -> str:
    return f"next: dicast show {run_id}{option}"


def _cut(text: str) -> str:
    """Return *text*, cut to :data:`LONGEST` characters with the number of omitted characters."""
    if len(text) <= LONGEST:
        return text
    room = LONGEST - 40
    return f"{text[:room]}… ({len(text) - room:,} more characters)"
