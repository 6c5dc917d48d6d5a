"""What a judge is told: the fixed part of its prompt, and the shape of the verdict it wants."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from dicast import Rubric

from .fence import RULES

CONSTRAINTS = "hard_constraints_satisfied"
RESERVED = ("seal", "rationale", "score", "confidence", CONSTRAINTS)

_FRONT = "---"
_UNIT = {"type": "number", "minimum": 0, "maximum": 1}


@attrs.frozen
class Form:
    """The verdict's shape: one key for each of *dimensions*, one more when *constrained*, a seal when *sealed*."""

    dimensions: tuple[str, ...] = ()
    constrained: bool = False
    sealed: bool = True

    @property
    def keys(self) -> tuple[str, ...]:
        """Every key that the verdict must have, in the order in which it is to be written: the reasons before the score."""
        seal = ("seal",) if self.sealed else ()
        constraints = (CONSTRAINTS,) if self.constrained else ()
        return (*seal, "rationale", *self.dimensions, *constraints, "score", "confidence")

    @property
    def schema(self) -> Mapping[str, Any]:
        """The JSON Schema of the verdict."""
        types = {"seal": {"type": "string"}, "rationale": {"type": "string"}, CONSTRAINTS: {"type": "boolean"}}
        properties = {key: types.get(key, _UNIT) for key in self.keys}
        return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}

    @property
    def text(self) -> str:
        """What the model is told about its reply. It shows no verdict that could be taken for one when it is repeated."""
        meanings = {
            "seal": 'the word in the line "seal: WORD" that stands in the message outside of all fences',
            "rationale": "your reasons in one sentence",
            CONSTRAINTS: "true or false",
            "score": "a number from 0 to 1, with one decimal",
            "confidence": "how sure you are of the score, a number from 0 to 1, with one decimal",
        }
        lines = [f'- "{key}": {meanings.get(key, "a number from 0 to 1")}' for key in self.keys]
        return "\n".join(("Reply with one JSON object and nothing else. Its keys, in this order:", *lines))


def system_message(rubric: Rubric, criteria: Sequence[str], dimensions: Sequence[str], constraints: Sequence[str],
                   form: Form) -> str:  # fmt: skip
    """The same text for every subject that *rubric* is for: rubric, what the user added, fences, and the reply."""
    parts = [
        body(rubric.text),
        _listed("Judge by these criteria:", criteria),
        _listed("Score each of these dimensions from 0 (worst) to 1 (best):", dimensions),
        _listed(f'Every one of these constraints must hold; "{CONSTRAINTS}" says whether all of them do:', constraints),
        RULES,
        form.text,
    ]
    return "\n\n".join(part for part in parts if part)


def closing(form: Form) -> str:
    """The last line of the message."""
    return "Reply with the JSON object only" + (", the seal of this message in it." if form.sealed else ".")


def body(text: str) -> str:
    """A rubric's *text* without the YAML between the two ``---`` that it may begin with."""
    if not text.startswith(_FRONT):
        return text.strip()
    _, _, rest = text.removeprefix(_FRONT).partition(f"\n{_FRONT}")
    return rest.strip()


def weighted(weights: Mapping[str, float], values: Mapping[str, float]) -> float:
    """The mean of *values* by *weights*, in [0, 1] as they are: the sums are exactly rounded."""
    return math.fsum(weights[name] * value for name, value in values.items()) / math.fsum(weights.values())


def _listed(title: str, items: Sequence[str]) -> str:
    return "\n".join((title, *(f"- {item}" for item in items))) if items else ""
