"""Records of a run's rows, and the results of a whole run."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, Self

import attrs

from ..classes import frozen
from .passes import PassRule, SubjectPasses
from .subject import Subject

Record = Mapping[str, Any]
"""A row's record as JSON data: ``row``, ``response``, ``responses``, ``metrics``, …. [The record](../how-to/records.md#the-record) explains the keys."""

ONLY = "default"
"""The name of the response of a task that has no criteria."""


@frozen
class Answered(Subject):
    """A subject with the responses of a task.

    *responses* maps each criterion, in the order of the requests, to ``{content, metrics, retry}``: the reply's text, the figures of
    the model, and, after a retry, ``{attempts, max_attempts, history}``. A task without criteria has one
    response, under :data:`ONLY`. *output* is the first response's content.
    """

    responses: Mapping[str, Mapping[str, Any]] = attrs.field(factory=dict)

    @classmethod
    def of(cls, subject: Subject, responses: Mapping[str, Mapping[str, Any]]) -> Self:
        """Return *subject* with the first of *responses* as its output."""
        fields = {field.name: getattr(subject, field.name) for field in attrs.fields(Subject)}
        return cls(**{**fields, "output": next(iter(responses.values()))["content"]}, responses=responses)


@frozen
class ContentDigests:
    """Digests of a subject's content in a run, which show whether two runs judged the same content.

    :param question: of the input and the reference; None if the ledger keeps no content.
    :param output: of the output: the responses of the task, else the output in the data, else all data. None if it is not known.
    :param content: of all data of the subject, as ``subject.read`` has it; None for a subject with trace events.
    :param figures: of the numbers that the task reported with its responses, such as the time; None without a task.
    """

    question: str | None = None
    output: str | None = None
    content: str | None = None
    figures: str | None = None


@frozen
class Results:
    """Records of a run, for a comparison with another run.

    *records()* yields the subject's id with its record, in the order of the run, each time from the beginning; of a subject that was
    judged again the newest record comes last. A record's ``subject_kind`` is the subject's: a turn and a session may have one id. If no
    extractor determines the scores, ``metrics.scores`` has the score of each metric and judge for the subject, by label, unless the task
    reported scores itself. *fingerprints* digest everything that could change a number, by section; a file of records has none. *kept* is a
    cache for values that a comparison computes from the records, so that the next one need not read them again; its keys are up to the
    comparison. *models* are the names of the models that answered, by the label of the calling component; older ledgers have none. *pass_at* is
    the least score with which a subject passes, by label. A record's ``scored_by`` is the label of its ``metrics.score``, if verdicts made it,
    and ``combined`` is the score of all metrics together if there are several. ``held_back`` are the labels of the metrics that did not run because
    of a proxy: their scores are open. *rows()* yields the source rows of the subjects, by kind and id,
    if the records do not have them: for a run of metrics and judges alone, whose ledger stores content. *rule* is the run's rule for passing,
    and *passes()* returns whether each subject passes by a rule, failed judgments included; a file has neither. *started_at* is the row of
    ``run.started`` in the ledger. *raw* are the labels whose values are on a scale of their own. *adapted* are the parameters that endpoints
    refused, by the label of the calling component. *weighted()* returns whether subjects have weights other than 1. *contents()* yields the
    digests of each subject's content, by kind and id; a file of records has none. *gated* are the labels of the gate's clauses, and *stopped* is
    the reason why the run stopped before the end of its source, or None. *options* are the values of the options that can change a score, by
    section and path; runs of older versions have none.

    *failures_command* lists the run's failures, and *retry_command* judges them again; both name the ledger, and are None for a file.

    :param run_id: the id of the run.
    :param name: the name of its pipeline.
    :param records: returns an iterator over the records.
    :param passes: returns whether each subject passes; None for a file.
    """

    run_id: str
    name: str
    records: Callable[[], Iterator[tuple[str, Record]]]
    fingerprints: Mapping[str, str] = attrs.field(factory=dict)
    models: Mapping[str, Iterable[str]] = attrs.field(factory=dict)
    pass_at: Mapping[str, float] = attrs.field(factory=dict)
    rows: Callable[[], Iterator[tuple[tuple[str, str], Mapping[str, Any]]]] = lambda: iter(())
    rule: PassRule | None = None
    passes: Callable[[PassRule | None], SubjectPasses] | None = None
    started_at: int | None = None
    raw: tuple[str, ...] = ()
    adapted: Mapping[str, Iterable[str]] = attrs.field(factory=dict)
    weighted: Callable[[], bool] = lambda: False
    contents: Callable[[], Iterator[tuple[tuple[str, str], ContentDigests]]] = lambda: iter(())
    gated: tuple[str, ...] = ()
    stopped: str | None = None
    options: Mapping[str, Mapping[str, str]] = attrs.field(factory=dict)
    failures_command: str | None = None
    retry_command: str | None = None
    kept: dict[object, Any] = attrs.field(factory=dict, init=False, eq=False, repr=False)

    def differs(self, other: Results, *, without: Collection[str] = ()) -> list[str]:
        """Return the sections and components that differ between the two runs; ``fingerprints`` if they are unknown.

        Each component that another model answered follows, with the models. The sections *without*, and the components inside them, are left out.
        """
        digests, other_digests = self.fingerprints, other.fingerprints
        if not digests or not other_digests:
            return ["fingerprints"]
        keys = {*digests, *other_digests}.difference(without)
        differences = sorted(key for key in keys if digests.get(key) != other_digests.get(key))
        inside = tuple(f"{name}{mark}" for name in without for mark in ".[")
        for label in sorted(self.models.keys() & other.models.keys()):
            if label in without or label.startswith(inside):
                continue
            a, b = (", ".join(sorted(results.models[label])) for results in (self, other))
            differences += [f"the model that answered {label} ({a}, not {b})"] if a != b else []
        return [*differences, *self._adapted_otherwise(other, without, inside)]

    def _adapted_otherwise(self, other: Results, without: Collection[str], inside: tuple[str, ...]) -> list[str]:
        """Return a line for each component whose endpoint refused other parameters than in *other*."""
        lines = []
        for label in sorted(self.adapted.keys() | other.adapted.keys()):
            if label in without or label.startswith(inside):
                continue
            a, b = (", ".join(sorted(run.adapted.get(label, ()))) or "none" for run in (self, other))
            lines += [f"the parameters that the endpoint of {label} refused ({a}, not {b})"] if a != b else []
        return lines
