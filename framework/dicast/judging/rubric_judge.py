"""Judges defined by a rubric: they ask a model like ``llm/judge``, if the subject has the data that the rubric needs."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from math import inf
from typing import Any, Protocol

import attrs

from .._kernel.api.runs import rubric as installed
from .._kernel.contract.protocols import ChatModel, Judge
from .._kernel.contract.registry import Registry
from .._kernel.values import Cost, Failure, Judgment, Rubric, Subject, Verdict
from .._kernel.values.bounds import Within
from .rationale import Capture

_BY_MODEL = "llm/judge"
_OPTIONS = """\
:param model: the chat model that is asked.
:param rubric: the rubric, by id or as a file.
:param criteria: further criteria, each in a sentence.
:param context: columns of the row's context to show, by name or dotted path. Of a list, each item is shown as a message of its own.
:param max_output_tokens: how long the reply may be.
:param retries: how often the model is asked again after a reply without a verdict, 0 to 10.
:param seal: false for a model too small to copy the seal, as with ``llm/judge``.
:param capture_rationale: whether the model's reasons are recorded, as ``signals.rationale_redacted``, and the reply of a failed judgment, as ``reply`` of ``eval.failed``. Both may quote judged
    text. ``auto`` records them in a ledger that keeps content, and sends them to sinks that ask for content; ``true`` sends them to all sinks; ``false`` records neither.
:param max_evidence_chars: how many characters are shown; the model and ``signals.evidence`` report omitted text.
:param fallback: the judge that is asked instead if a cap leaves too little budget for this judge."""


class RubricOptions(Protocol):
    """Options of a judge made by :func:`rubric_judge` that affect which data a subject must have."""

    @property
    def context(self) -> Sequence[str]:
        """The columns that are shown to the model."""
        ...

    @property
    def criteria(self) -> Sequence[str]:
        """Criteria in addition to the rubric."""
        ...


Lacks = Callable[[Subject, RubricOptions], str | None]
"""Function that returns the name of the missing data, such as ``"reference"``, or None if the subject can be judged."""


def rubric_judge(
    rubric: str, *, accepts: Sequence[str] = (), context: Sequence[str] = ()
) -> Callable[[Lacks], type[Any]]:
    """Make a judge from a function ``(subject, options) -> name of the missing data, or None``.

    The judge sends the question of ``llm/judge`` with *rubric*. A subject with missing data is ``missing_input``, and no model is asked. The
    function's name becomes the judge's name, and its docstring the judge's description. All such judges have the same options.

    :param rubric: the id of the rubric that is the default of the option ``rubric``.
    :param accepts: the subject kinds that it judges; any by default.
    :param context: the default of the option ``context``.
    """

    def decorate(lacks: Lacks) -> type[Any]:
        body = {
            "__doc__": f"{inspect.cleandoc(lacks.__doc__ or '')}\n\n{_OPTIONS}",
            "__module__": lacks.__module__,
            "__qualname__": lacks.__qualname__,
            "__attrs_post_init__": _make_asked,
            "name": lacks.__name__,
            "accepts": tuple(accepts),
            "judge_kind": "llm",
            "lacks": lacks,
            "judge": _judge,
            "estimate": _estimate,
        }
        fields = _fields(rubric, tuple(context))
        judge_class = attrs.make_class(lacks.__name__, fields, class_body=body, frozen=True, slots=True, kw_only=True)
        judge_class.__module__, judge_class.__qualname__ = lacks.__module__, lacks.__qualname__
        return judge_class

    return decorate


def _fields(rubric: str, context: tuple[str, ...]) -> dict[str, Any]:
    """Return the options, and in ``_asked`` the judge that sends the question."""
    return {
        "model": attrs.field(type=ChatModel),
        "rubric": attrs.field(type=Rubric, default=rubric, converter=_as_rubric),
        "criteria": attrs.field(type=Sequence[str], default=()),
        "context": attrs.field(type=Sequence[str], default=context),
        "max_output_tokens": attrs.field(type=int, default=256, validator=Within(1, inf, "1 or more")),
        "retries": attrs.field(type=int, default=1, validator=Within(0, 10, "a number from 0 to 10")),
        "seal": attrs.field(type=bool, default=True),
        "capture_rationale": attrs.field(type=Capture, default="auto", metadata={"counts": False}),  # type: ignore[call-overload]  # a union; attrs' stubs want a class
        "max_evidence_chars": attrs.field(type=int, default=60_000, validator=Within(1, inf, "1 or more")),
        "fallback": attrs.field(type=Judge | None, default=None),  # type: ignore[arg-type]  # a union; attrs' stubs want a class
        "_asked": attrs.field(type=Judge, init=False, eq=False, repr=False),
    }


def _as_rubric(rubric: Rubric | str) -> Rubric:
    return rubric if isinstance(rubric, Rubric) else installed(rubric)


def _make_asked(judge: Any) -> None:
    """Set the judge that sends the question. It is found by name, so that the plugin imports no other plugin."""
    # The kernel asks the fallback.
    names = [field.name for field in attrs.fields(type(judge)) if field.init and field.name != "fallback"]
    options = {name: getattr(judge, name) for name in names}
    object.__setattr__(judge, "_asked", Registry().find(_BY_MODEL, ("judge",)).cls(**options))


async def _judge(judge: Any, subject: Subject, children: Sequence[Verdict] = ()) -> Judgment | Failure:
    """Ask the model, or return ``missing_input`` if the subject lacks data that the rubric needs."""
    lacks = type(judge).lacks(subject, judge)
    if lacks is not None:
        return Failure("missing_input", f"{subject.kind} {subject.id} has no {lacks}")
    answer: Judgment | Failure = await judge._asked.judge(subject, children)  # noqa: SLF001  # set by _make_asked
    return answer


def _estimate(judge: Any, subject: Subject) -> Cost:
    """Return the highest cost of the judgment: all calls that *retries* allows, or nothing if no model is asked."""
    if type(judge).lacks(subject, judge) is not None:
        return Cost.zero()
    cost: Cost = judge._asked.estimate(subject)  # noqa: SLF001  # set by _make_asked
    return cost
