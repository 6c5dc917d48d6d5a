"""Checks of text: is it there, is it equal, does it match?"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, ClassVar, Protocol

import attrs

from dicast import ConfigError, Failure, Subject
from dicast.toolkit.json_values import read_json
from dicast.toolkit.references import ReferenceList, References, is_missing

from .check import Answer, Check, MissingColumn, filled_reference, is_template, shown, text_of

_LISTED = re.compile(r"[,;|\n]|^\s*[\[{]")
"""What a text has that may be a list."""

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
    """The *values* filled from the row of *subject*. A number, or a text that can be no list, is a list of one.

    :raises MissingColumn: when a column has no value, blank text, or a text that may be a list.
    """
    if not isinstance(values, str):
        return [filled_reference(value, subject) for value in values]
    found = filled_reference(values, subject)
    if isinstance(found, int | float) or (isinstance(found, str) and not _LISTED.search(found)):
        found = [found]
    if not isinstance(found, list | tuple) or all(map(is_missing, found)):
        advice = "; to read JSON in a column, say fields: {reference: {column: NAME, json: true}}"
        more = advice if isinstance(found, str) else ""
        raise MissingColumn(f"values is a list of one or more, and {values!r} is {shown(found)} in this row{more}")
    return [value for value in found if not is_missing(value)]


def _folded(text: str, ignore_case: bool) -> str:
    return text.casefold() if ignore_case else text


@attrs.frozen(kw_only=True)
class TextCheck(Check):
    """A check of text.

    :param ignore_case: tell no difference between upper and lower case.
    """

    reads_text = True

    ignore_case: bool = False


@attrs.frozen(kw_only=True)
class ReferenceCheck(TextCheck):
    """A check against a value that may come from the row, and be a list there.

    :param references: how the output is compared where *value* is a column with a list: ``any``, the check holds for one of them or more;
        ``all``, the score is the share of them for which it holds; ``whole``, the list is one value. Next to an output that is a list,
        the list is one value. Blank references in a list are left out.
    """

    words: ClassVar[tuple[str, str, str]]

    references: References = attrs.field(default="any", metadata={"later": True})

    def answer(self, output: Any, subject: Subject) -> Answer | Failure:
        """Compare *output* with the value, or with each of several."""
        given: object = self.value  # type: ignore[attr-defined]  # an option of each such check, which comes first
        value = filled_reference(given, subject)
        many = ReferenceList.of(value, output, self.references) if is_template(given) else None
        if many is None:
            holds = self.holds(output, value)
            return Answer(holds, f"{self.words[0 if holds else 1]} {shown(value)}")
        if not many.values:
            raise MissingColumn(f"all references in {given!r} are null or blank in this row")
        return self._several(output, many)

    def holds(self, output: Any, value: Any) -> bool:
        """Whether the check holds for *output* and one *value*."""
        raise NotImplementedError

    def _several(self, output: Any, many: ReferenceList) -> Answer:
        found = [self.holds(output, value) for value in many.values]
        if self.references == "all":
            share = sum(found) / len(found)
            why = f"{self.words[0]} {sum(found)} of {len(found)} references"
            lacks = next((value for value, holds in zip(many.values, found, strict=True) if not holds), None)
            return Answer(all(found), why if all(found) else f"{why}, not {shown(lacks)}", share=share)
        if not any(found):
            return Answer(False, f"{self.words[2]} {shown([*many.values])}")
        number = found.index(True)
        place = many.places[number]
        where = "the whole list" if place is None else f"reference {place} of {many.count}"
        return Answer(True, f"{self.words[0]} {shown(many.values[number])}", reference=where)


@attrs.frozen
class Contains(ReferenceCheck):
    """1 when the output contains *value*, else 0.

    :param value: a text, or a template over the row (``"{{ expected }}"``); what is no text is taken as JSON.
    """

    name = "contains"
    words = ("contains", "does not contain", "contains none of")

    value: object

    def holds(self, output: Any, value: Any) -> bool:
        """Look for *value* in *output*."""
        return _folded(text_of(value), self.ignore_case) in _folded(text_of(output), self.ignore_case)


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
class StartsWith(ReferenceCheck):
    """1 when the output begins with *value*, else 0.

    :param value: a text, or a template over the row.
    """

    name = "starts_with"
    words = ("begins with", "does not begin with", "begins with none of")

    value: object

    def holds(self, output: Any, value: Any) -> bool:
        """Look at the beginning of *output*."""
        return _folded(text_of(output), self.ignore_case).startswith(_folded(text_of(value), self.ignore_case))


@attrs.frozen
class Equals(ReferenceCheck):
    """1 when the output equals *value*, else 0.

    A text is equal to the same text, blanks included (``diff/match`` is more lenient). A number, truth value, list or mapping is equal to
    the output that is it, or whose text is JSON for it.

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
        pattern = text_of(filled_reference(self.pattern, subject))
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
