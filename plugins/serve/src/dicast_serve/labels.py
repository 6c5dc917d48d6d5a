"""A person's verdict on a subject, recorded as a run of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import attrs
import orjson

import dicast
from dicast import (
    ConfigError,
    Judgment,
    Ledger,
    LedgerError,
    Problem,
    Query,
    Rubric,
    RunContext,
    Subject,
    TraceEvent,
    Verdict,
    nearest,
)
from dicast.reading import JudgedOutputs, read_verdicts

from .documents import without_rationale
from .parameters import BadRequest
from .reading import ServedLedger
from .runs import NotFound, full_run_id
from .subjects import TYPES, judged_content, shown_run

MAX_BODY_BYTES = 200_000

NO_NULL = "^[^\\x00]*$"

BODY: Mapping[str, Any] = {
    "type": "object",
    "required": ["subject_id", "score"],
    "additionalProperties": False,
    "properties": {
        "subject_id": {"type": "string", "minLength": 1, "maxLength": 1000, "pattern": NO_NULL},
        "subject_kind": {"type": "string", "minLength": 1, "maxLength": 1000, "pattern": NO_NULL, "default": "turn"},
        "score": {"type": "number", "minimum": 0, "maximum": 1},
        "confidence": {"type": "number", "minimum": 0, "maximum": 1, "default": 1},
        "judge": {"type": "string", "pattern": "^[A-Za-z0-9_.-]{1,100}$", "default": "human"},
        "reason": {"type": "string", "maxLength": 10_000, "pattern": NO_NULL},
        "run_id": {"type": "string", "minLength": 1, "maxLength": 1000, "pattern": NO_NULL},
    },
}


@attrs.frozen
class Label:
    """A person's verdict on a subject."""

    subject_id: str
    score: float
    subject_kind: str = "turn"
    confidence: float = 1.0
    judge: str = "human"
    reason: str | None = None
    run_id: str | None = None
    """The run whose output is labeled; by default the last run that judged the subject and is not a tool's."""
    output_digest: str | None = None
    """The digest of the labeled output; not a member of the request."""


@attrs.frozen
class Person:
    """Judge that returns a person's verdict. It has no options, so that every label of a person has the same judge config."""

    _labels: list[Label] = attrs.field(init=False, factory=list, eq=False, repr=False)

    judge_kind = "human"
    needs_output = False

    @classmethod
    def with_label(cls, label: Label) -> Person:
        """Return the judge whose verdict is *label*."""
        person = cls()
        person._labels.append(label)
        return person

    @asynccontextmanager
    async def open(self, run: RunContext) -> AsyncIterator[LivePerson]:
        """Yield the live judge, which also records the label."""
        yield LivePerson(self._labels[0], run)


@attrs.frozen
class LivePerson:
    """Live object of :class:`Person`: returns its verdict and records the event ``label.given``, which ``dicast labels`` and ``calibrate`` read.

    The labeller is the name under which the person judges. How the subject was drawn is unknown and not recorded.
    """

    label: Label
    run: RunContext

    accepts = ()
    judge_kind = "human"
    needs_output = False

    def judge(self, subject: Subject, children: Sequence[Verdict] = ()) -> Judgment:
        """Record the label and return the verdict."""
        label = self.label
        score = float(label.score)
        payload = {"subject": subject.id, "subject_kind": subject.kind, "score": score, "labeller": label.judge}
        if label.output_digest is not None:
            payload["output_digest"] = label.output_digest
        self.run.record([TraceEvent("label.given", payload, session_id=subject.session_id)])
        signals = {"reason": label.reason} if label.reason else {}
        rubric = Rubric("human", "1")
        return Judgment(score, float(label.confidence), "human", signals=signals, rubric=rubric)


def label_of(body: bytes) -> Label:
    """Return the label in the JSON *body* of a request.

    :raises BadRequest: naming every problem of the body.
    """
    try:
        document = orjson.loads(body)
    except ValueError as error:
        raise BadRequest("the body is not JSON") from error
    if not isinstance(document, dict):
        raise BadRequest("the body is a JSON object")
    properties: Mapping[str, Any] = BODY["properties"]
    problems = [
        Problem(
            f"unknown key {name!r:.100}; there are {', '.join(properties)}",
            path=name[:100],
            hint=nearest(name[:100], properties),
        )
        for name in document
        if name not in properties
    ]
    problems += [Problem(f"{name} is missing", path=name) for name in BODY["required"] if name not in document]
    problems += [
        Problem(f"{name} is {_expectation(properties[name])}", path=name)
        for name, value in document.items()
        if name in properties and not _fits(value, properties[name])
    ]
    if problems:
        raise BadRequest(problems)
    return Label(**document)


def _fits(value: object, schema: Mapping[str, Any]) -> bool:
    if schema["type"] == "number":
        return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1
    import re

    return (
        isinstance(value, str)
        and schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", len(value))
        and re.fullmatch(schema["pattern"].removeprefix("^").removesuffix("$"), value) is not None
    )


def _expectation(schema: Mapping[str, Any]) -> str:
    if schema["type"] == "number":
        return "a number from 0 to 1"
    if schema["pattern"] != NO_NULL:
        return f"text, {schema['pattern']}"
    return f"text of {schema.get('minLength', 0)} to {schema['maxLength']:,} characters, none of them NUL"


def record(ledger: ServedLedger, label: Label) -> dict[str, Any]:
    """Record *label* in *ledger*, and return the verdict with its run.

    :raises NotFound: when no run has read a subject with this id.
    :raises ConfigError: when a judge that is not a person has judged under the label's name.
    """
    subject, digest = ledger.read(lambda live: _subject(live, label))
    pipeline = {
        "name": "labels",
        "judges": [{"person": {"as": label.judge}}],
        "define": {"person": Person.with_label(attrs.evolve(label, output_digest=digest))},
        "ledger": {"ledger/sqlite": {"path": str(Path(ledger.place).absolute())}},
    }
    done = dicast.run(pipeline, subjects=[subject], kind="tool")
    if not done.verdicts:
        raise LedgerError(f"the verdict on {label.subject_id!r:.100} was not recorded: {done.failures}")
    (verdict,) = done.verdicts
    return {"run_id": done.run_id, "verdict": without_rationale(attrs.asdict(verdict, recurse=False))}


def _subject(ledger: Ledger, label: Label) -> tuple[Subject, str | None]:
    """Return the labeled subject with its output, and the digest of the output.

    The digest is None if the ledger stores digests in place of contents.
    """
    if kinds := {origin.judge_kind for origin in read_verdicts(ledger).origins if origin.judge == label.judge} - {
        "human",
        None,
    }:
        message = (
            f"judge {label.judge!r} is not a person, but {' and '.join(sorted(map(str, kinds)))}; use another name"
        )
        raise ConfigError(Problem(message, path="judge", value=label.judge))
    entries = [
        entry
        for entry in ledger.read(Query(types=TYPES, subject_id=label.subject_id))
        if entry.event.subject_kind == label.subject_kind
    ]
    if not entries:
        raise NotFound(f"the ledger has no {label.subject_kind} {label.subject_id!r:.100}")
    run_id = shown_run(ledger, entries, None if label.run_id is None else full_run_id(ledger, label.run_id))
    events = [entry.event for entry in reversed(entries)]
    read = next(
        (event for event in events if event.type == "subject.read" and event.run_id == run_id),
        entries[-1].event,
    )
    outputs = JudgedOutputs(ledger, {label.subject_id})
    content: Any = judged_content(read, outputs, label.subject_kind, label.subject_id)["content"] or {}
    parts = {
        name: content[name] for name in ("input", "output", "reference", "context") if content.get(name) is not None
    }
    subject = Subject(label.subject_kind, label.subject_id, session_id=read.session_id, **parts)
    output = outputs.of(run_id, label.subject_kind, label.subject_id)
    return subject, None if output is None else output.digest
