"""Common parts of all checks: a yes or no, ``negate``, and values that are templates over the row."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, Literal

import attrs
import orjson

from dicast import Basis, Cost, Failure, Score, Subject, columns, nearest
from dicast.toolkit.json_values import MISSING, check_field, locate, lookup
from dicast.toolkit.outputs import unread_object
from dicast.toolkit.references import ReferenceList, is_missing

_TEMPLATE = re.compile(r"\{\{\s*([^{}]*?)\s*\}\}")
_FILLED = ("value", "values", "pattern")
"""Options whose texts are templates over the row."""
_PASSED = Score(1.0)
_QUOTED_CHARS = 80


class MissingColumn(Exception):
    """A template names a column that the row does not have."""


@attrs.frozen
class Answer:
    """Answer of a check: whether it *holds*, and *why*, in words for either answer: ``contains 'a'``, ``does not contain 'a'``.

    *value* is the check's degree, for checks that have one; a list of assertions with a threshold takes the mean of degrees. *reference*
    names the decisive reference of several. With a *share* the score is this number: the mean over all references.
    """

    holds: bool
    why: str
    value: float | None = None
    reference: str = ""
    share: float | None = None


@attrs.frozen
class Outcome:
    """Result of a check after ``negate``: whether it holds, its *value* for a mean, and *why* it does not hold.

    *costs* are the amounts spent on it, *bases* the bases of its model judgments. *details* are for readers, whether it holds or not; with
    a *share* that is the score.
    """

    holds: bool
    value: float
    why: str = ""
    confidence: float = 1.0
    costs: tuple[Cost, ...] = ()
    bases: tuple[Basis, ...] = ()
    signals: Mapping[str, object] = attrs.field(factory=dict)
    details: str = ""
    share: float | None = None


@attrs.frozen(kw_only=True)
class Check:
    """A check that holds (1) or does not (0).

    :param negate: reverse the answer: 1 if the check does not hold. An output without the ``field`` fails in both cases.
    :param field: check only this place in the output, a dotted path (``steps.0.code``) or a JSON pointer (``/steps/0/code``); text is
        parsed as JSON for it.
    """

    tier = "truth"
    needs_output: ClassVar[bool | Literal["always"]] = "always"
    reads_text: ClassVar[bool] = False
    """True if the check reads the output as text; then an output that is an object needs a ``field``."""
    name: ClassVar[str]

    negate: bool = False
    field: str | None = attrs.field(default=None, validator=check_field)

    def needed_columns(self) -> Mapping[str, str]:
        """Return the columns that the templates of its options name, each with the option; no paths into a column."""
        options = {name: getattr(self, name, None) for name in _FILLED}
        return {column: name for name, value in options.items() for column in _columns_in(value)}

    def score(self, subject: Subject) -> Score | Failure:
        """Return 1 if the check holds for *subject*, else 0."""
        outcome = self.outcome(subject)
        if isinstance(outcome, Failure):
            return outcome
        if outcome.share is not None:
            return Score(outcome.share, details=outcome.details)
        if not outcome.holds:
            return Score(0.0, details=outcome.why)
        return Score(1.0, details=outcome.details) if outcome.details else _PASSED

    def outcome(self, subject: Subject) -> Outcome | Failure:
        """Return whether the check holds for *subject*, or why that cannot be decided."""
        if subject.output is None:
            return no_output(subject)
        output = subject.output if self.field is None else locate(subject.output, self.field)
        if output is MISSING:
            return Outcome(False, 0.0, f"the output has no field {self.field!r}")
        if self.reads_text and (unread := unread_object(subject, output, self.field, f"check/{self.name}")) is not None:
            return unread
        try:
            answer = self.answer(output, subject)
        except MissingColumn as error:
            return Failure("missing_input", str(error))
        return answer if isinstance(answer, Failure) else self.turned(answer)

    def turned(self, answer: Answer) -> Outcome:
        """Return *answer* as an outcome, reversed under ``negate``."""
        holds = answer.holds is not self.negate
        value = float(holds) if answer.value is None else answer.value
        reason = f"the output {answer.why}{answer.reference and f' ({answer.reference})'}"
        if answer.share is not None:
            value = 1 - answer.share if self.negate else answer.share
            return Outcome(value == 1, value, reason, details=reason, share=value)
        return Outcome(holds, value, "" if holds else reason, details=reason if answer.reference else "")

    def answer(self, output: Any, subject: Subject) -> Answer | Failure:
        """Return whether *output*, of *subject* or of its field, meets the check."""
        raise NotImplementedError


def no_output(subject: Subject) -> Failure:
    """Return the failure of a check because *subject* has no output."""
    return Failure(
        "missing_input", f"{subject.kind} {subject.id} has no output to check; an empty text would count as an output"
    )


def filled(value: Any, subject: Subject) -> Any:
    """Return *value* with each ``{{ path }}`` in its texts replaced by the row's value. A text that is only a template becomes that value.

    :raises MissingColumn: when the row has no such column, or null in it, or when a part of a text is the row's blank reference.
    """
    if isinstance(value, list | tuple):
        return [filled(item, subject) for item in value]
    if not isinstance(value, str) or "{{" not in value:
        return value
    template = _TEMPLATE.fullmatch(value.strip())
    if template:
        return _column(subject, template[1])
    return _TEMPLATE.sub(lambda match: _part(subject, match[1], value), value)


def _part(subject: Subject, path: str, template: str) -> str:
    value = _column(subject, path)
    if is_missing(value) and _is_reference(subject, path, value):
        raise MissingColumn(_blank(f"the reference {path!r} in {template!r}", value))
    return text_of(value)


def _is_reference(subject: Subject, path: str, blank: object) -> bool:
    """Return whether *path*, which has the value *blank*, is within the reference of *subject*, by the part's name or by the column's in the data.

    A reference read from JSON is None for a blank column; then each blank mapped column counts as blank reference, except the input and the output.
    """
    name = path if path in subject.columns else path.partition(".")[0]
    if name not in subject.columns:
        return name == "reference"
    if subject.reference is None:
        return blank not in (subject.input, subject.output)
    return subject.reference in (blank, subject.columns[name])


def _blank(name: str, value: object) -> str:
    return f"{name} is {'an empty list' if isinstance(value, list | tuple) else 'blank'} in this row"


def _columns_in(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield from (path for path in _TEMPLATE.findall(value) if "." not in path)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _columns_in(item)


def filled_reference(value: Any, subject: Subject) -> Any:
    """Return :func:`filled` of *value*, which the output is compared with.

    :raises MissingColumn: also when the whole value becomes blank text or an empty list.
    """
    reference = filled(value, subject)
    if is_template(value) and is_missing(reference):
        raise MissingColumn(_blank(repr(value), reference))
    return reference


def best_answer(reference: Any, output: Any, compare: Callable[[Any], Answer]) -> Answer:
    """Return the best answer of *compare* over a list of references, or its answer about a single *reference*.

    :raises MissingColumn: when all of them are blank.
    """
    references = ReferenceList.of(reference, output, "any")
    if references is None:
        return compare(reference)
    if not references.values:
        raise MissingColumn(f"all of {quoted(reference)} are null or blank")
    answers = [compare(value) for value in references.values]
    best = max(range(len(answers)), key=lambda number: (answers[number].holds, answers[number].value or 0.0))
    return attrs.evolve(answers[best], reference=f"reference {references.places[best] or 'list'} of {references.count}")


def is_template(value: object) -> bool:
    """Return whether *value* contains a template over the row."""
    return isinstance(value, str) and _TEMPLATE.search(value) is not None


def text_of(value: object) -> str:
    """Return *value* as text: JSON for other types."""
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def quoted(value: object) -> str:
    """Return *value* for a message, cut if it is long."""
    text = repr(value)
    return text if len(text) <= _QUOTED_CHARS else f"{text[:_QUOTED_CHARS]}…"


def _column(subject: Subject, path: str) -> Any:
    row: Mapping[str, Any] = columns(subject)
    value = lookup(row, path)
    if value is MISSING or value is None:
        present = [name for name, cell in row.items() if cell is not None]
        hint = f", did you mean {near!r}?" if (near := nearest(path, present)) else ""
        raise MissingColumn(f"the row has no value for {path!r}; it has {', '.join(present)}{hint}")
    return value
