"""Checks of text: is it there, is it equal, does it match?"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Protocol

import attrs

from dicast import ConfigError, Failure, Subject, read_json

from .check import Answer, Check, MissingColumn, filled, is_template, shown, text_of

_KEPT = 256
"""Compiled patterns that are kept for rows that bring their own."""


def _check_values(_instance: object, attribute: attrs.Attribute[Any], values: Sequence[object] | str) -> None:
    if isinstance(values, str) and not is_template(values):
        raise ConfigError(
            f"{attribute.name} is a list, as [{values!r}], or a template over the row; not the text {values!r}"
        )
    if not values:
        raise ConfigError(f"{attribute.name} is an empty list; write at least one")


def _values_of(values: Sequence[object] | str, subject: Subject) -> Sequence[Any]:
    """The *values* filled from the row of *subject*.

    :raises MissingColumn: when a column that stands for the list has none.
    """
    found = filled(values, subject)
    if not isinstance(found, list) or not found:
        raise MissingColumn(f"values is a list of one or more, and {values!r} is {shown(found)} in this row")
    return found


def _folded(text: str, ignore_case: bool) -> str:
    return text.casefold() if ignore_case else text


@attrs.frozen(kw_only=True)
class TextCheck(Check):
    """A check of text.

    :param ignore_case: tell no difference between upper and lower case.
    """

    reads_text = True

    ignore_case: bool = False


@attrs.frozen
class Contains(TextCheck):
    """1 when the output contains *value*, else 0.

    :param value: a text, or a template over the row (``"{{ expected }}"``); what is no text is taken as JSON.
    """

    name = "contains"

    value: object

    def answer(self, output: Any, subject: Subject) -> Answer:
        """Look for the value in *output*."""
        value = text_of(filled(self.value, subject))
        found = _folded(value, self.ignore_case) in _folded(text_of(output), self.ignore_case)
        return Answer(found, f"{'contains' if found else 'does not contain'} {shown(value)}")


@attrs.frozen
class Icontains(Contains):
    """1 when the output contains *value* in whatever case, else 0.

    :param value: a text, or a template over the row.
    """

    name = "icontains"

    ignore_case: bool = attrs.field(default=True, kw_only=True)


@attrs.frozen
class _Several(TextCheck):
    values: Sequence[object] | str = attrs.field(validator=_check_values)

    def _occurring(self, output: Any, subject: Subject) -> tuple[list[str], list[str]]:
        """The values that *output* contains, and those that it does not."""
        text = _folded(text_of(output), self.ignore_case)
        there, absent = list[str](), list[str]()
        for value in map(text_of, _values_of(self.values, subject)):
            (there if _folded(value, self.ignore_case) in text else absent).append(value)
        return there, absent


@attrs.frozen
class ContainsAny(_Several):
    """1 when the output contains one of *values* or more, else 0.

    :param values: texts, or templates over the row.
    """

    name = "contains_any"

    def answer(self, output: Any, subject: Subject) -> Answer:
        """Look for each value in *output*."""
        there, absent = self._occurring(output, subject)
        return Answer(bool(there), f"contains {shown(there[0])}" if there else f"contains none of {shown(absent)}")


@attrs.frozen
class ContainsAll(_Several):
    """1 when the output contains each of *values*, else 0.

    :param values: texts, or templates over the row.
    """

    name = "contains_all"

    def answer(self, output: Any, subject: Subject) -> Answer:
        """Look for each value in *output*."""
        there, absent = self._occurring(output, subject)
        return Answer(not absent, f"does not contain {shown(absent)}" if absent else f"contains {shown(there)}")


@attrs.frozen
class StartsWith(TextCheck):
    """1 when the output begins with *value*, else 0.

    :param value: a text, or a template over the row.
    """

    name = "starts_with"

    value: object

    def answer(self, output: Any, subject: Subject) -> Answer:
        """Look at the beginning of *output*."""
        value = text_of(filled(self.value, subject))
        found = _folded(text_of(output), self.ignore_case).startswith(_folded(value, self.ignore_case))
        return Answer(found, f"{'begins' if found else 'does not begin'} with {shown(value)}")


@attrs.frozen
class Equals(TextCheck):
    """1 when the output equals *value*, else 0.

    A text is equal to the same text, blanks included (``diff/match`` is more lenient). A number, truth value, list or mapping is equal to
    the output that is it, or whose text is JSON for it.

    :param value: a text or another JSON value, or a template over the row; the reference by default.
    """

    name = "equals"
    reads_text = False

    value: object = "{{ reference }}"

    def answer(self, output: Any, subject: Subject) -> Answer:
        """Compare *output* with the value."""
        value = filled(self.value, subject)
        found = _equal(output, value, self.ignore_case)
        return Answer(found, f"{'is' if found else 'is not'} {shown(value)}")


@attrs.frozen
class OneOf(TextCheck):
    """1 when the output equals one of *values*, else 0.

    :param values: texts or other JSON values, or templates over the row; a list in a column is taken as its items.
    """

    name = "one_of"
    reads_text = False

    values: Sequence[object] | str = attrs.field(validator=_check_values)

    def answer(self, output: Any, subject: Subject) -> Answer:
        """Compare *output* with each value."""
        values = _values_of(self.values, subject)
        found = any(_equal(output, value, self.ignore_case) for value in values)
        return Answer(found, f"{'is' if found else 'is not'} one of {shown(values)}")


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
    return _same(output, value)


def _same(first: object, second: object) -> bool:
    """Return whether two JSON values are equal; true is not 1, at any depth."""
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        return first.keys() == second.keys() and all(_same(first[key], second[key]) for key in first)
    if isinstance(first, list | tuple) and isinstance(second, list | tuple):
        return len(first) == len(second) and all(map(_same, first, second))
    return first == second and isinstance(first, bool) is isinstance(second, bool)


def _check_pattern(check: Regex, _attribute: attrs.Attribute[str], pattern: str) -> None:
    if not is_template(pattern):
        _compiled(pattern, check.ignore_case)


@attrs.frozen
class Regex(TextCheck):
    r"""1 when *pattern* matches somewhere in the output, else 0.

    The pattern is read by RE2, which takes time in proportion to the text whatever is asked: ``\w \d \s \b`` know ASCII alone, ``$`` is the
    very end unless ``(?m)``. One with lookaround or backreferences, which RE2 does not have, is read by Python's ``re`` (with
    ASCII classes), which may take any time: it ends at the metric's ``timeout``. So such a pattern has to stand in the pipeline
    file; one from a row is ``missing_input``.

    :param pattern: a regular expression, or a template over the row.
    """

    name = "regex"

    pattern: str = attrs.field(validator=_check_pattern)

    def answer(self, output: Any, subject: Subject) -> Answer | Failure:
        """Look for the pattern in *output*."""
        pattern = text_of(filled(self.pattern, subject))
        try:
            compiled = (linear if is_template(self.pattern) else _compiled)(pattern, self.ignore_case)
        except ConfigError as error:
            return Failure("missing_input", f"the row's {error}")
        found = compiled.search(text_of(output)) is not None
        return Answer(found, f"{'matches' if found else 'does not match'} {shown(pattern)}")


class Pattern(Protocol):
    """A compiled regular expression, of RE2 or of Python."""

    def search(self, text: str) -> object:
        """The first match in *text*, or None."""
        ...


@lru_cache(_KEPT)
def linear(pattern: str, ignore_case: bool) -> Pattern:
    """*pattern* for RE2, which takes time in proportion to the text.

    :raises ConfigError: when RE2 cannot read it.
    """
    import re2  # type: ignore[import-untyped]  # 3 ms to import, and only patterns need it

    options = re2.Options()
    options.case_sensitive, options.log_errors = not ignore_case, False
    try:
        found: Pattern = re2.compile(pattern, options)
    except re2.error as error:
        said = error.args[0] if error.args else error
        said = said.decode(errors="replace") if isinstance(said, bytes) else said
        raise ConfigError(
            f"pattern {shown(pattern)} cannot be read by RE2, which has neither lookaround nor backreferences: {said}"
        ) from error
    return found


@lru_cache(_KEPT)
def _compiled(pattern: str, ignore_case: bool) -> Pattern:
    """*pattern* for RE2, or for Python where RE2 lacks what it needs.

    :raises ConfigError: when it is wrong for both.
    """
    try:
        return linear(pattern, ignore_case)
    except ConfigError:
        try:
            return re.compile(pattern, re.ASCII | (re.IGNORECASE if ignore_case else 0))
        except (re.error, OverflowError, RecursionError) as error:
            raise ConfigError(f"pattern {pattern!r} is no regular expression: {error}") from error
