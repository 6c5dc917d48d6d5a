"""Uses of a component that several checks read, since a component may be slow to answer all subjects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from .._kernel.values import Cost
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
