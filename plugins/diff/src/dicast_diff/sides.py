"""The two sides of a comparison: the output, or a place in it, and the reference."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import attrs

from dicast import Failure, Score, Subject
from dicast.toolkit.json_values import MISSING, locate, read_json
from dicast.toolkit.outputs import unread_object
from dicast.toolkit.references import ReferenceList, References, compare_references, missing_reference


@attrs.define(eq=False)  # not frozen: one is made for every row
class Sides:
    """An *output* and its *reference*; neither is None. Messages name the *subject*, and the output *place*."""

    output: object
    reference: object
    subject: Subject
    place: str = "the output"

    @property
    def whose(self) -> str:
        """The id of the subject, for messages."""
        return repr(self.subject.id)

    @property
    def emptiness(self) -> str | None:
        """The words for an output without any text; None for another output."""
        if not isinstance(self.output, str) or self.output.strip():
            return None
        return f"{self.place} is {'blank' if self.output else 'empty'}"

    def unusable(self, why: str) -> Failure:
        """Return the failure of a reference that cannot be compared."""
        return Failure("missing_input", f"the reference of {self.whose} {why}")


def compare_sides(
    sides_: Sides, references: References, compare: Callable[[Sides], Score | Failure]
) -> Score | Failure:
    """Return the answer of *compare* about the output and its reference, or about each reference of a list."""
    if not isinstance(sides_.reference, list | tuple):
        return compare(sides_)

    def compare_one(reference: object) -> Score | Failure:
        return compare(sides_ if reference is sides_.reference else attrs.evolve(sides_, reference=reference))

    return compare_references(sides_.reference, sides_.output, references, compare_one)


def sides(subject: Subject, field: str | None, metric: str) -> Sides | Score | Failure:
    """Return the two sides that *metric* compares; without a reference or an output a Failure ``missing_input``; without the output's *field*, 0."""
    if (missing := missing_reference(subject, metric)) is not None:
        return missing
    if subject.output is None:
        return Failure("missing_input", f"{metric} compares an output, and {subject.id!r} has none")
    output = subject.output if field is None else locate(subject.output, field)
    if output is MISSING:
        return Score(0.0, details=f"the output has no field {field!r}", signals={"found": False})
    if output is None:
        return Score(0.0, details=f"the output's field {field!r} is null", signals={"found": False})
    place = "the output" if field is None else f"the output's field {field!r}"
    return Sides(output, subject.reference, subject, place)


def text_sides(subject: Subject, field: str | None, metric: str, references: References) -> Sides | Score | Failure:
    """Return the sides for a *metric* that compares texts. An output that is an object needs a *field* if the reference is no object."""
    sides_ = sides(subject, field, metric)
    if not isinstance(sides_, Sides):
        return sides_
    references_ = ReferenceList.of(sides_.reference, sides_.output, references)
    if any(map(_is_plain, (sides_.reference,) if references_ is None else references_.values)):
        return unread_object(subject, sides_.output, field, metric) or sides_
    return sides_


def _is_plain(reference: object) -> bool:
    """Return whether *reference* is a text that is not the JSON of an object or a list."""
    if not isinstance(reference, str):
        return not isinstance(reference, Mapping | list | tuple)
    try:
        return not isinstance(read_json(reference), dict | list)
    except ValueError:
        return True
