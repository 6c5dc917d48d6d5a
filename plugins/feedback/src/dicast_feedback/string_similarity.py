"""The metric of the common words of a text and its reference."""

from __future__ import annotations

import attrs

from dicast import Failure, Score, Subject
from dicast.toolkit.json_values import check_field
from dicast.toolkit.outputs import has_objects, unread_object
from dicast.toolkit.references import References, compare_references

from .inputs import judged, listed, parsed, reference, shorten, text

IGNORING_CASE = 0.95
"""Score of a text that differs from the reference only in upper and lower case."""


@attrs.frozen
class StringSimilarity:
    """1 for the reference's text, 0.95 for the same text in another case, else the F1 of the common words.

    White space at the ends does not count. F1 is 2·c/(n + m) of n different words in the output, m in the reference and c in
    both, in lower case, in any order (S. Dice, Ecology 26(3), 1945); so the same words in another order score 1. A value that is
    no text is compared as JSON with sorted keys. ``signals`` has ``equal``, ``equal_ignoring_case``, ``f1``, ``precision``,
    ``recall``, and the counts ``missing_words`` and ``extra_words``.

    :param field: compare only this place in the output, a dotted path (``steps.0.code``) or a JSON pointer
        (``/steps/0/code``), with the whole reference; text is read as JSON to get there. A missing field scores 0.
    :param references: the comparison with a list of references: ``any``, the best score counts; ``all``, the mean of their
        scores; ``whole``, the list is one value. Next to an output that is a list, the list is one value. Blank references in a list are
        left out.
    """

    name = "string_similarity"
    tier = "proxy"
    needs_output = "always"

    field: str | None = attrs.field(default=None, validator=check_field)
    references: References = attrs.field(default="any", metadata={"later": True})

    def score(self, subject: Subject) -> Score | Failure:
        """Compare the output of *subject* with its reference; without one the answer is a Failure ``missing_input``."""
        expected = reference(subject, "feedback/string_similarity")
        if isinstance(expected, Failure):
            return expected
        output = judged(subject, self.field)
        if isinstance(output, Score | Failure):
            return output
        if not has_objects(parsed(expected)) and (
            unread := unread_object(subject, output, self.field, "feedback/string_similarity")
        ):
            return unread
        judged_text = text(output).strip()
        return compare_references(
            expected, output, self.references, lambda reference_: _compare(judged_text, text(reference_).strip())
        )


def _compare(output: str, expected: str) -> Score:
    if output == expected:
        return Score(1.0, details="equal", feedback="Exact match.", signals={"equal": True})
    left, right = output.casefold(), expected.casefold()
    signals: dict[str, object] = {"equal": False, "equal_ignoring_case": left == right}
    if left == right:
        says = f"Mind upper and lower case: expected {shorten(expected)}."
        return Score(IGNORING_CASE, details="equal but for case", feedback=says, signals=signals)
    return _compare_words(left, right, f"Expected {shorten(expected)}, got {shorten(output)}.", signals)


def _compare_words(output: str, expected: str, says: str, signals: dict[str, object]) -> Score:
    left, right = dict.fromkeys(output.split()), dict.fromkeys(expected.split())
    missing, extra = [word for word in right if word not in left], [word for word in left if word not in right]
    common = len(right) - len(missing)
    f1 = 2 * common / (len(left) + len(right))  # of unequal texts one has a word
    signals |= {
        "f1": f1,
        "precision": common / len(left) if left else 0.0,
        "recall": common / len(right) if right else 1.0,
        "missing_words": len(missing),
        "extra_words": len(extra),
    }
    if missing:
        says += f" Missing words: {listed(missing)}."
    if extra:
        says += f" Extra words: {listed(extra)}."
    details = f"{common:,} words in common, {len(missing):,} missing, {len(extra):,} extra"
    return Score(f1, details=details, feedback=says, signals=signals)
