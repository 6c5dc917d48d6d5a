"""Uses of a component that several checks read, since a component may be slow to answer all subjects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import orjson
from attrs.exceptions import FrozenInstanceError

from .._kernel.contract.plugin_errors import author_place, in_brackets
from .._kernel.values import Cost, Subject
from .._kernel.values.read_only import REFUSED
from .pipeline import Bench
from .watching import Watch


@attrs.frozen
class FirstUse:
    """The first use of a component, in an empty current directory, and the *names* of the files that it left there."""

    component: Any
    watch: Watch
    answers: Any
    names: Sequence[str]


@attrs.frozen
class SecondUse:
    """The second use of the component: its answers, and the subjects that it changed, or tried to change."""

    answers: dict[str, object] = attrs.field(factory=dict)
    changed: list[str] = attrs.field(factory=list)

    def add(self, subject: Subject, before: bytes, answer: object) -> None:
        """Add the *answer* about *subject*, which had the content *before*."""
        self.answers[subject.id] = answer
        if isinstance(answer, FrozenInstanceError) or (isinstance(answer, TypeError) and REFUSED in str(answer)):
            self.changed.append(f"{subject.id}{in_brackets(author_place(answer))}")
        elif content(subject) != before:
            self.changed.append(subject.id)


def content(subject: Subject) -> bytes:
    """Return the content of *subject* as JSON."""
    events = [dict(event.payload) for event in subject.events]
    return orjson.dumps([subject.input, subject.output, subject.reference, dict(subject.context), events])


@attrs.frozen
class PricedAnswer:
    """The answer to a subject, and the estimates *before* and *after* it."""

    id: str
    before: Cost
    answer: Any
    after: Cost


@attrs.define
class Uses:
    """Uses of a component in the folder of a *bench*.

    :param attributes: the attributes of the class of checks from which the component and its subjects are made.
    """

    attributes: tuple[object, ...]
    bench: Bench
    first: FirstUse | None = None
    second: SecondUse | None = None
    priced: list[PricedAnswer] | None = None
