"""Is it the right class?"""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from dicast import ConfigError, Failure, Problem, Score, Subject, nearest
from dicast.toolkit.json_values import MISSING, check_field, locate
from dicast.toolkit.outputs import has_objects, unread_object
from dicast.toolkit.references import ReferenceList, References

from .inputs import judged, listed, parsed, reference, shorten, text


def _labels(texts: Iterable[object]) -> tuple[str, ...]:
    if isinstance(texts, str):
        raise ConfigError(f"labels are a list: write [{texts}]")
    labels = tuple(text(label).strip() for label in texts)
    if len(set(labels)) < len(labels) or "" in labels:
        raise ConfigError(f"labels are different texts, got {listed(labels)}")
    return labels


@attrs.frozen
class Classification:
    """1 for the reference's class, else 0.

    Classes are compared as text, without white space at their ends, and case matters: 7 and "7" are one class, "Spam" and
    "spam" two. ``signals`` has ``correct``, and the additions of the options.

    :param labels: the existing classes; none by default, then any text is a class. With labels ``signals`` has ``predicted``, ``expected``
        and ``known``, which is true if the output is one of them; else the feedback lists them. A reference that is
        no label is a Failure.
    :param confidence_field: the place of the confidence in the output, a number from 0 to 1, which ``signals.confidence`` and
        the feedback repeat; it does not change the score.
    :param field: the place of the class in the output, a dotted path (``result.label``) or a JSON pointer
        (``/result/label``); text is read as JSON to get there. A missing field scores 0.
    :param references: the comparison with a list of references: ``any``, the best score counts; ``all``, the mean of their
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
        references = ReferenceList.of(right, None if isinstance(output, Score | Failure) else output, self.references)
        for reference_ in (right,) if references is None else references.values:
            if (wrong := self._unknown(reference_, subject)) is not None:
                return wrong
        if isinstance(output, Score | Failure):
            return output
        if not has_objects(parsed(right)) and (
            unread := unread_object(subject, output, self.field, "feedback/classification")
        ):
            return unread
        predicted, confidence = text(output).strip(), self._confidence(subject)

        def compare(reference_: object) -> Score:
            return self._compare(predicted, text(reference_).strip(), confidence)

        return compare(right) if references is None else references.compare(compare)

    def _unknown(self, reference: object, subject: Subject) -> Failure | None:
        """Return the failure of a *reference* that is none of the labels, or None."""
        expected = text(reference).strip()
        if not self.labels or expected in self.labels:
            return None
        message = f"the reference of {subject.id!r} is {shorten(expected)}, none of {listed(self.labels)}"
        return Failure("missing_input", str(Problem(message, hint=nearest(expected, self.labels))))

    def _compare(self, predicted: str, expected: str, confidence: float | None) -> Score:
        correct = predicted == expected
        signals: dict[str, object] = {"correct": correct}
        says = (
            f"Correct: {shorten(expected)}." if correct else f"Expected {shorten(expected)}, got {shorten(predicted)}."
        )
        if self.labels:
            # Only these: signals hold no text of a user's.
            is_known = predicted in self.labels
            signals |= {"known": is_known, "expected": expected, "predicted": predicted if is_known else None}
            if not is_known:
                says += f" Answer with one of {listed(self.labels)}."
        if confidence is not None:
            signals["confidence"] = confidence
            says += f" Its confidence was {confidence:.3g}."
        details = "" if correct else f"{shorten(predicted)}, not {shorten(expected)}"
        return Score(float(correct), details=details, feedback=says, signals=signals)

    def _confidence(self, subject: Subject) -> float | None:
        """Return the confidence that the output states, or None."""
        confidence = MISSING if self.confidence_field is None else locate(subject.output, self.confidence_field)
        return float(confidence) if type(confidence) in (int, float) and 0 <= confidence <= 1 else None
