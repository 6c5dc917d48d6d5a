"""What is compared: the output, or a place in it, and the reference."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import attrs

from dicast import Failure, Score, Subject
from dicast.toolkit.json_values import MISSING, locate, read_json
from dicast.toolkit.outputs import unread_object
from dicast.toolkit.references import ReferenceList, References, compare_references, missing_reference


@attrs.frozen
class Sides:
    """An *output* and its *reference*, neither of which is None; *whose* is what messages call the subject, and *place* what they call the output."""

    output: object
    reference: object
    whose: str
    place: str = "the output"

    @property
    def emptiness(self) -> str | None:
        """The words for an output without any text; None for another output."""
        if not isinstance(self.output, str) or self.output.strip():
            return None
        return f"{self.place} is {'blank' if self.output else 'empty'}"

    def unusable(self, why: str) -> Failure:
        """The failure of a reference that nothing can be compared with."""
        return Failure("missing_input", f"the reference of {self.whose} {why}")


def compare_sides(found: Sides, references: References, compare: Callable[[Sides], Score | Failure]) -> Score | Failure:
    """Return the answer of *compare* about the output and its reference, or about each reference of a list."""
    return compare_references(
        found.reference, found.output, references, lambda one: compare(attrs.evolve(found, reference=one))
    )


def sides(subject: Subject, field: str | None, metric: str) -> Sides | Score | Failure:
    """What *metric* compares; without a reference or an output a Failure ``missing_input``; without the output's *field*, 0."""
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
    return Sides(output, subject.reference, repr(subject.id), place)


def text_sides(subject: Subject, field: str | None, metric: str, references: References) -> Sides | Score | Failure:
    """The same for a *metric* that compares texts: an output that is an object and a reference that is none need a *field*."""
    found = sides(subject, field, metric)
    if not isinstance(found, Sides):
        return found
    many = ReferenceList.of(found.reference, found.output, references)
    if any(map(_is_plain, (found.reference,) if many is None else many.values)):
        return unread_object(subject, found.output, field, metric) or found
    return found


def _is_plain(reference: object) -> bool:
    """Return whether *reference* is a text that is not the JSON of an object or a list."""
    if not isinstance(reference, str):
        return not isinstance(reference, Mapping | list | tuple)
    try:
        return not isinstance(read_json(reference), dict | list)
    except ValueError:
        return True
