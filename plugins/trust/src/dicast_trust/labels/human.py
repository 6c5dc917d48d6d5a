"""A person's labels as verdicts of a run: each label is an event ``label.given`` and a verdict of the kind ``human``."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager

import attrs

from dicast import Due, Failure, Judgment, Run, RunContext, Subject, TraceEvent, Verdict, run
from dicast.toolkit.gold import GoldLabel

from .gold import ADJUDICATED, DRAWN, LABEL_GIVEN, decides

NAME = "label"
"""Name of runs that record labels."""

Key = tuple[str, str]
"""A subject's kind and id."""

Record = Callable[[Sequence[TraceEvent]], None]


@attrs.frozen
class Human:
    """Judge that repeats the labels of the person *labeller*. A label has to be in ``labels`` before its subject is judged.

    :param labeller: the person's name.
    :param drawn: how the subjects were drawn, unless a label records it: ``random``, ``stratified``, ``disagreements``, ``audits`` or ``imported``.
    """

    name = "human"
    judge_kind = "human"
    needs_output = False

    labeller: str
    drawn: str = "random"
    labels: dict[Key, GoldLabel] = attrs.field(init=False, factory=dict, eq=False, repr=False)

    @asynccontextmanager
    async def open(self, run: RunContext) -> AsyncIterator[Recorder]:
        """Yield the live judge, which records the labels."""
        yield Recorder(self, run.record)


class Recorder:
    """Live object of :class:`Human`."""

    judge_kind = "human"
    needs_output = False
    accepts = ()

    def __init__(self, human: Human, record: Record) -> None:
        self._human, self._record = human, record

    def judge(self, subject: Subject, children: Sequence[Verdict] = ()) -> Judgment | Failure:
        """Record the label of *subject* and return it as a verdict."""
        human = self._human
        label = human.labels[subject.kind, subject.id]
        labeller, drawn = label.labeller or human.labeller, str(label.others.get(DRAWN) or human.drawn)
        payload: dict[str, object] = {
            "subject": subject.id,
            "subject_kind": subject.kind,
            "score": label.score,
            "labeller": labeller,
            DRAWN: drawn,
        }
        if label.output_digest is not None:
            payload["output_digest"] = label.output_digest
        if decides(label):
            payload[ADJUDICATED] = True
        self._record([TraceEvent(LABEL_GIVEN, payload, session_id=subject.session_id)])
        return Judgment(label.score, 1.0, "human", signals={"labeller": labeller, DRAWN: drawn})


def record(ledger: object, human: Human, labeled: Iterable[tuple[Subject, GoldLabel]]) -> Run | None:
    """Record each item of *labeled* as soon as it is yielded, in a new run; return None if there are no items.

    :param ledger: the ledger's component, as in a pipeline.
    :raises RequestError: if the ledger cannot be used.
    """
    labels = iter(labeled)
    first = next(labels, None)
    if first is None:
        return None

    def subjects() -> Iterator[Due]:
        for subject, label in _chain(first, labels):
            human.labels[subject.kind, subject.id] = label
            yield Due(subject)

    pipeline: Mapping[str, object] = {
        "name": NAME,
        "judges": [human],
        "ledger": ledger,
        "executor": {"dicast/async": {"concurrency": 1}},
    }
    return run(pipeline, subjects=subjects(), kind="tool")


def _chain(
    first: tuple[Subject, GoldLabel], rest: Iterator[tuple[Subject, GoldLabel]]
) -> Iterator[tuple[Subject, GoldLabel]]:
    yield first
    yield from rest
