"""What is compared: the output, or a place in it, and the reference."""

from __future__ import annotations

import attrs

from dicast import MISSING, Failure, Score, Subject, locate


@attrs.frozen
class Sides:
    """An *output* and its *reference*, neither of which is None; *whose* is what messages call the subject."""

    output: object
    reference: object
    whose: str

    def unusable(self, why: str) -> Failure:
        """The failure of a reference that nothing can be compared with."""
        return Failure("missing_input", f"the reference of {self.whose} {why}")


def sides(subject: Subject, field: str | None, metric: str) -> Sides | Score | Failure:
    """What *metric* compares; without a reference or an output a Failure ``missing_input``; without the output's *field*, 0."""
    if subject.reference is None:
        return Failure("missing_input", f"{metric} compares with a reference, and {subject.id!r} has none")
    if subject.output is None:
        return Failure("missing_input", f"{metric} compares an output, and {subject.id!r} has none")
    output = subject.output if field is None else locate(subject.output, field)
    if output is MISSING:
        return Score(0.0, details=f"the output has no field {field!r}", signals={"found": False})
    if output is None:
        return Score(0.0, details=f"the output's field {field!r} is null", signals={"found": False})
    return Sides(output, subject.reference, repr(subject.id))
