"""Records of a run's rows, and the results of a whole run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Self

import attrs

from ..classes import frozen
from .passes import PassRule, SubjectPasses
from .subject import Subject

Record = Mapping[str, Any]
"""A row's record as JSON data: ``row``, ``response``, ``responses``, ``metrics``, …."""

ONLY = "default"
"""The name of the response of a task that has no criteria."""


@frozen
class Answered(Subject):
    """A subject with what a task got for it.

    *responses* maps each criterion, in the order in which they were asked, to ``{content, metrics, retry}``: the reply's text, what
    the model reports, and, where it was asked again, ``{attempts, max_attempts, history}``. A task without criteria has one
    response, under :data:`ONLY`. *output* is the first response's content.
    """

    responses: Mapping[str, Mapping[str, Any]] = attrs.field(factory=dict)

    @classmethod
    def of(cls, subject: Subject, responses: Mapping[str, Mapping[str, Any]]) -> Self:
        """*subject* with the first of *responses* as its output."""
        same = {field.name: getattr(subject, field.name) for field in attrs.fields(Subject)}
        return cls(**{**same, "output": next(iter(responses.values()))["content"]}, responses=responses)


@frozen
class Results:
    """One run's records, for comparing it with another's.

    *records()* yields the subject's id with its record, in the order of the run, each time from the beginning; of a subject that was
    judged again the newest comes last. A record's ``subject_kind`` is the subject's: a turn and a session may have one id. Where no extractor says what the scores are, ``metrics.scores`` holds what each metric and
    judge said of the subject, by label, unless the task reported scores itself. *fingerprints* are what could change a number, by
    section; a file of records has none. *kept* is for what a comparison has made of the records, so that the next one need not
    read them all again: by whatever key it finds it by. *models* are the names of the models that answered, by the label of what
    asked them; a ledger of before says none. *pass_at* is the least score with which a subject passes, by label; a record's ``scored_by`` is the label that its ``metrics.score`` is of,
    where verdicts made it, and ``combined`` is the score of all metrics together where there are several. *rows()* yields the rows that subjects were read from, by kind and id, where the records do not have them: those of a run of
    metrics and judges alone, whose ledger stores content. *rule* is what the run says of passing, and *passes()* returns whether each subject passes by a
    rule, failed judgments included; a file has neither. *started_at* is the row of ``run.started`` in the ledger. *raw* are the labels whose values are on a scale of
    their own. *adapted* are the parameters that endpoints refused, by the label of the component that asked.
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
    kept: dict[object, Any] = attrs.field(factory=dict, init=False, eq=False, repr=False)

    def differs(self, other: Results) -> list[str]:
        """The sections and components that made the two runs and are not the same; ``fingerprints`` where that is not known.

        Then, where another model answered the same component, which one.
        """
        ours, theirs = self.fingerprints, other.fingerprints
        if not ours or not theirs:
            return ["fingerprints"]
        named = sorted(key for key in {*ours, *theirs} if ours.get(key) != theirs.get(key))
        for label in sorted(self.models.keys() & other.models.keys()):
            a, b = (", ".join(sorted(one.models[label])) for one in (self, other))
            named += [f"the model that answered {label} ({a}, not {b})"] if a != b else []
        return [*named, *self._adapted_otherwise(other)]

    def _adapted_otherwise(self, other: Results) -> list[str]:
        """Return a line for each component whose endpoint refused other parameters than in *other*."""
        lines = []
        for label in sorted(self.adapted.keys() | other.adapted.keys()):
            a, b = (", ".join(sorted(run.adapted.get(label, ()))) or "none" for run in (self, other))
            lines += [f"the parameters that the endpoint of {label} refused ({a}, not {b})"] if a != b else []
        return lines
