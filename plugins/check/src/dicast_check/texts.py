"""Checks of text: containment, equality and patterns."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, ClassVar, Protocol

import attrs

from dicast import ConfigError, Failure, Subject
from dicast.toolkit.json_values import read_json
from dicast.toolkit.references import ReferenceList, References, is_missing

from .check import Answer, Check, MissingColumn, filled_reference, is_template, quoted, text_of

_LISTED = re.compile(r"[,;|\n]|^\s*[\[{]")
"""Characters of a text that may be a list."""

_CACHE_SIZE = 256
"""Size of the cache of compiled patterns, for rows with their own patterns."""


def _check_values(_instance: object, attribute: attrs.Attribute[Any], values: Sequence[object] | str) -> None:
    if isinstance(values, str) and not is_template(values):
        raise ConfigError(
            f"{attribute.name} is a list, as [{values!r}], or a template over the row; not the text {values!r}"
        )
    if not values:
        raise ConfigError(f"{attribute.name} is an empty list; write at least one")


def _values_of(values: Sequence[object] | str, subject: Subject) -> Sequence[Any]:
    """Return *values* filled from the row of *subject*. A number, or a text that cannot be a list, becomes a list of one item.

    :raises MissingColumn: when a column has no value, blank text, or a text that may be a list.
    """
    if not isinstance(values, str):
        return [filled_reference(value, subject) for value in values]
    result = filled_reference(values, subject)
    if isinstance(result, int | float) or (isinstance(result, str) and not _LISTED.search(result)):
        result = [result]
    if not isinstance(result, list | tuple) or all(map(is_missing, result)):
        advice = "; to read JSON in a column, write fields: {reference: {column: NAME, json: true}}"
        advice_shown = advice if isinstance(result, str) else ""
        raise MissingColumn(
            f"values is a list of one or more, and {values!r} is {quoted(result)} in this row{advice_shown}"
        )
    return [value for value in result if not is_missing(value)]


def _folded(text: str, ignore_case: bool) -> str:
    return text.casefold() if ignore_case else text


@attrs.frozen(kw_only=True)
class TextCheck(Check):
    """A check of text.

    :param ignore_case: ignore the difference between upper and lower case.
    """

    reads_text = True

    ignore_case: bool = False


@attrs.frozen(kw_only=True)
class ReferenceCheck(TextCheck):
    """A check against a value that may come from the row, and may be a list there.

    :param references: how to compare if *value* is a column with a list: ``any``, the check holds for at least one item;
        ``all``, the score is the share of items for which it holds; ``whole``, the list is one value. For an output that is a list,
        the list is one value. Blank references in a list are left out.
    """

    words: ClassVar[tuple[str, str, str]]

    references: References = attrs.field(default="any", metadata={"later": True})

    def answer(self, output: Any, subject: Subject) -> Answer | Failure:
        """Compare *output* with the value, or with each of several."""
        template: object = self.value  # type: ignore[attr-defined]  # an option of each such check, which comes first
        value = filled_reference(template, subject)
        references = ReferenceList.of(value, output, self.references) if is_template(template) else None
        if references is None:
            holds = self.holds(output, value)
            return Answer(holds, f"{self.words[0 if holds else 1]} {quoted(value)}")
        if not references.values:
            raise MissingColumn(f"all references in {template!r} are null or blank in this row")
        return self._several(output, references)

    def holds(self, output: Any, value: Any) -> bool:
        """Return whether the check holds for *output* and one *value*."""
        raise NotImplementedError

    def _several(self, output: Any, references: ReferenceList) -> Answer:
        answers = [self.holds(output, value) for value in references.values]
        if self.references == "all":
            share = sum(answers) / len(answers)
            why = f"{self.words[0]} {sum(answers)} of {len(answers)} references"
            lacks = next((value for value, holds in zip(references.values, answers, strict=True) if not holds), None)
            return Answer(all(answers), why if all(answers) else f"{why}, not {quoted(lacks)}", share=share)
        if not any(answers):
            return Answer(False, f"{self.words[2]} {quoted([*references.values])}")
        number = answers.index(True)
        place = references.places[number]
        where = "the whole list" if place is None else f"reference {place} of {references.count}"
        return Answer(True, f"{self.words[0]} {quoted(references.values[number])}", reference=where)


@attrs.frozen
class Contains(ReferenceCheck):
    """1 if the output contains *value*, else 0.

    :param value: a text, or a template over the row (``"{{ expected }}"``); a value other than text is taken as JSON.
    """

    name = "contains"
    words = ("contains", "does not contain", "contains none of")

    value: object

    def holds(self, output: Any, value: Any) -> bool:
        """Look for *value* in *output*."""
        return _folded(text_of(value), self.ignore_case) in _folded(text_of(output), self.ignore_case)


@attrs.frozen
class Icontains(Contains):
    """1 if the output contains *value* in any case, else 0.

    :param value: a text, or a template over the row.
    """

    name = "icontains"

    ignore_case: bool = attrs.field(default=True, kw_only=True)


@attrs.frozen
class _Several(TextCheck):
    values: Sequence[object] | str = attrs.field(validator=_check_values)

    def _occurring(self, output: Any, subject: Subject) -> tuple[list[str], list[str]]:
        """Return the values in *output*, and the absent values."""
        text = _folded(text_of(output), self.ignore_case)
        present, absent = list[str](), list[str]()
        for value in map(text_of, _values_of(self.values, subject)):
            (present if _folded(value, self.ignore_case) in text else absent).append(value)
        return present, absent


@attrs.frozen
class ContainsAny(_Several):
    """1 if the output contains at least one of *values*, else 0.

    :param values: texts, or templates over the row.
    """

    name = "contains_any"

    def answer(self, output: Any, subject: Subject) -> Answer:
        """Look for each value in *output*."""
        present, absent = self._occurring(output, subject)
        return Answer(
            bool(present), f"contains {quoted(present[0])}" if present else f"contains none of {quoted(absent)}"
        )


@attrs.frozen
class ContainsAll(_Several):
    """1 if the output contains each of *values*, else 0.

    :param values: texts, or templates over the row.
    """

    name = "contains_all"

    def answer(self, output: Any, subject: Subject) -> Answer:
        """Look for each value in *output*."""
        present, absent = self._occurring(output, subject)
        return Answer(not absent, f"does not contain {quoted(absent)}" if absent else f"contains {quoted(present)}")


@attrs.frozen
class StartsWith(ReferenceCheck):
    """1 if the output starts with *value*, else 0.

    :param value: a text, or a template over the row.
    """

    name = "starts_with"
    words = ("starts with", "does not start with", "starts with none of")

    value: object

    def holds(self, output: Any, value: Any) -> bool:
        """Compare the start of *output*."""
        return _folded(text_of(output), self.ignore_case).startswith(_folded(text_of(value), self.ignore_case))


@attrs.frozen
class Equals(ReferenceCheck):
    """1 if the output equals *value*, else 0.

    A text equals the same text, blanks included (``diff/match`` is more lenient). A number, truth value, list or mapping equals
    the same output, or a text that is JSON for it.

    :param value: a text or another JSON value, or a template over the row; the reference by default.
    """

    name = "equals"
    reads_text = False
    words = ("is", "is not", "is none of")

    value: object = "{{ reference }}"

    def holds(self, output: Any, value: Any) -> bool:
        """Compare *output* with *value*."""
        return _equal(output, value, self.ignore_case)


@attrs.frozen
class OneOf(TextCheck):
    """1 if the output equals one of *values*, else 0.

    :param values: texts or other JSON values, or templates over the row; a list in a column is taken as its items.
    """

    name = "one_of"
    reads_text = False

    values: Sequence[object] | str = attrs.field(validator=_check_values)

    def answer(self, output: Any, subject: Subject) -> Answer:
        """Compare *output* with each value."""
        values = _values_of(self.values, subject)
        is_equal = any(_equal(output, value, self.ignore_case) for value in values)
        return Answer(is_equal, f"{'is' if is_equal else 'is not'} one of {quoted(values)}")


def _equal(output: object, value: object, ignore_case: bool) -> bool:
    if isinstance(value, str):
        return isinstance(output, str | int | float) and _folded(text_of(output), ignore_case) == _folded(
            value, ignore_case
        )
    if isinstance(output, str):
        try:
            output = read_json(output)
        except ValueError:
            return False
    return _is_equal_json(output, value)


def _is_equal_json(first: object, second: object) -> bool:
    """Return whether two JSON values are equal; true is not 1, at any depth."""
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        return first.keys() == second.keys() and all(_is_equal_json(first[key], second[key]) for key in first)
    if isinstance(first, list | tuple) and isinstance(second, list | tuple):
        return len(first) == len(second) and all(map(_is_equal_json, first, second))
    return first == second and isinstance(first, bool) is isinstance(second, bool)


def _check_pattern(check: Regex, _attribute: attrs.Attribute[str], pattern: str) -> None:
    if not is_template(pattern):
        _compiled(pattern, check.ignore_case)


@attrs.frozen
class Regex(TextCheck):
    r"""1 if *pattern* matches somewhere in the output, else 0.

    RE2 reads the pattern and takes time in proportion to the text: ``\w \d \s \b`` are ASCII only, ``$`` is the
    very end unless ``(?m)``. Python's ``re`` (with ASCII classes) reads a pattern with lookaround or backreferences, which RE2 does not have. It
    may take any time and ends at the metric's ``timeout``, so such a pattern must be in the pipeline
    file; in a row it is ``missing_input``.

    :param pattern: a regular expression, or a template over the row.
    """

    name = "regex"

    pattern: str = attrs.field(validator=_check_pattern)

    def answer(self, output: Any, subject: Subject) -> Answer | Failure:
        """Look for the pattern in *output*."""
        pattern = text_of(filled_reference(self.pattern, subject))
        try:
            compiled = (linear if is_template(self.pattern) else _compiled)(pattern, self.ignore_case)
        except ConfigError as error:
            return Failure("missing_input", f"the row's {error}")
        is_match = compiled.search(text_of(output)) is not None
        return Answer(is_match, f"{'matches' if is_match else 'does not match'} {quoted(pattern)}")


class Pattern(Protocol):
    """A compiled regular expression, of RE2 or of Python."""

    def search(self, text: str) -> object:
        """Return the first match in *text*, or None."""
        ...


@lru_cache(_CACHE_SIZE)
def linear(pattern: str, ignore_case: bool) -> Pattern:
    """Compile *pattern* with RE2, which takes time in proportion to the text.

    :raises ConfigError: when RE2 cannot read it.
    """
    import re2  # type: ignore[import-untyped]  # 3 ms to import, and only patterns need it

    options = re2.Options()
    options.case_sensitive, options.log_errors = not ignore_case, False
    try:
        compiled: Pattern = re2.compile(pattern, options)
    except re2.error as error:
        message = error.args[0] if error.args else error
        message = message.decode(errors="replace") if isinstance(message, bytes) else message
        raise ConfigError(
            f"pattern {quoted(pattern)} cannot be read by RE2, which has neither lookaround nor backreferences: {message}"
        ) from error
    return compiled


@lru_cache(_CACHE_SIZE)
def _compiled(pattern: str, ignore_case: bool) -> Pattern:
    """Compile *pattern* with RE2, or with Python if RE2 lacks a feature.

    :raises ConfigError: when it is wrong for both.
    """
    try:
        return linear(pattern, ignore_case)
    except ConfigError:
        try:
            return re.compile(pattern, re.ASCII | (re.IGNORECASE if ignore_case else 0))
        except (re.error, OverflowError, RecursionError) as error:
            raise ConfigError(f"pattern {pattern!r} is not a regular expression: {error}") from error
