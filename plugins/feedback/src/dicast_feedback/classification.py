"""Is it the right class?"""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from dicast import ConfigError, Failure, Problem, Score, Subject, nearest
from dicast.toolkit.json_values import MISSING, check_field, locate
from dicast.toolkit.outputs import has_objects, unread_object
from dicast.toolkit.references import ReferenceList, References

from .inputs import judged, listed, parsed, reference, shown, text


def _labels(given: Iterable[object]) -> tuple[str, ...]:
    if isinstance(given, str):
        raise ConfigError(f"labels are a list: write [{given}]")
    labels = tuple(text(label).strip() for label in given)
    if len(set(labels)) < len(labels) or "" in labels:
        raise ConfigError(f"labels are different texts, got {listed(labels)}")
    return labels


@attrs.frozen
class Classification:
    """1 for the reference's class, else 0.

    Classes are compared as text, without white space at their ends, and case matters: 7 and "7" are one class, "Spam" and
    "spam" two. ``signals`` has ``correct``, and what the options add.

    :param labels: the classes there are; none by default, then any text is one. ``signals`` has ``predicted`` and ``expected``
        then, and ``known``, whether the output is one of them; the feedback lists them where it is not. A reference that is
        none of them is a Failure.
    :param confidence_field: where in the output its confidence stands, a number from 0 to 1, which ``signals.confidence`` and
        the feedback repeat; it does not change the score.
    :param field: where in the output the class stands, a dotted path (``result.label``) or a JSON pointer
        (``/result/label``); text is read as JSON to get there. A missing field scores 0.
    :param references: how the output is compared with a list of references: ``any``, the best score counts; ``all``, the mean of their
        scores; ``whole``, the list is one value. Next to an output that is a list, the list is one value. Blank references in a list are
        left out.
    """

    name = "classification"
    tier = "proxy"
    needs_output = "always"

    labels: tuple[str, ...] = attrs.field(default=(), converter=_labels)
    confidence_field: str | None = attrs.field(default=None, validator=check_field)
    field: str | None = attrs.field(default=None, validator=check_field)
    references: References = attrs.field(default="any", metadata={"later": True})

    def score(self, subject: Subject) -> Score | Failure:
        """Compare the output of *subject* with its reference; without one the answer is a Failure ``missing_input``."""
        right = reference(subject, "feedback/classification")
        if isinstance(right, Failure):
            return right
        output = judged(subject, self.field)
        many = ReferenceList.of(right, None if isinstance(output, Score | Failure) else output, self.references)
        for one in (right,) if many is None else many.values:
            if (wrong := self._unknown(one, subject)) is not None:
                return wrong
        if isinstance(output, Score | Failure):
            return output
        if not has_objects(parsed(right)) and (
            unread := unread_object(subject, output, self.field, "feedback/classification")
        ):
            return unread
        predicted, confidence = text(output).strip(), self._confidence(subject)

        def compare(one: object) -> Score:
            return self._compare(predicted, text(one).strip(), confidence)

        return compare(right) if many is None else many.compare(compare)

    def _unknown(self, reference: object, subject: Subject) -> Failure | None:
        """The failure of a *reference* that is none of the labels."""
        expected = text(reference).strip()
        if not self.labels or expected in self.labels:
            return None
        message = f"the reference of {subject.id!r} is {shown(expected)}, none of {listed(self.labels)}"
        return Failure("missing_input", str(Problem(message, hint=nearest(expected, self.labels))))

    def _compare(self, predicted: str, expected: str, confidence: float | None) -> Score:
        correct = predicted == expected
        signals: dict[str, object] = {"correct": correct}
        says = f"Correct: {shown(expected)}." if correct else f"Expected {shown(expected)}, got {shown(predicted)}."
        if self.labels:
            # Only these: signals hold no text of a user's.
            known = predicted in self.labels
            signals |= {"known": known, "expected": expected, "predicted": predicted if known else None}
            if not known:
                says += f" Answer with one of {listed(self.labels)}."
        if confidence is not None:
            signals["confidence"] = confidence
            says += f" Its confidence was {confidence:.3g}."
        details = "" if correct else f"{shown(predicted)}, not {shown(expected)}"
        return Score(float(correct), details=details, feedback=says, signals=signals)

    def _confidence(self, subject: Subject) -> float | None:
        """The confidence that the output states, if it is one."""
        found = MISSING if self.confidence_field is None else locate(subject.output, self.confidence_field)
        return float(found) if type(found) in (int, float) and 0 <= found <= 1 else None
