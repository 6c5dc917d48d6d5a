"""A row's own list of checks."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from math import isfinite
from typing import Any

import attrs

from dicast import MISSING, Failure, Score, Subject, Within, columns, lookup, nearest, read_json

from .check import Check, is_template, no_output
from .limits import Limit, MaxCost, MaxLatency
from .structure import ContainsJson, IsJson
from .texts import Contains, ContainsAll, ContainsAny, Equals, Icontains, OneOf, Regex, StartsWith, linear

_CHECKS: Mapping[str, type[Check]] = {
    kind.name: kind
    for kind in (
        Contains, Icontains, ContainsAny, ContainsAll, StartsWith, Regex, Equals, OneOf, IsJson, ContainsJson, MaxLatency, MaxCost,
    )
}  # fmt: skip
_VALUES = {
    "regex": "pattern", "one_of": "values", "contains_any": "values", "contains_all": "values", "is_json": "schema",
    "contains_json": "schema", "max_latency": "seconds", "max_cost": "usd",
}  # fmt: skip
"""The option that ``value`` stands for, where it is not ``value`` itself."""

_LISTS = ("contains_any", "contains_all")
"""The checks whose list may be a text in commas, as it is in other tools."""

_OWN = ("check", "type", "value", "weight", "negate")


class _BadList(Exception):
    """The row's list is of no use; the message says why."""


@attrs.frozen
class Assertions:
    """The share of a row's own checks that hold, each counted by its weight; 1 when all do.

    The row's column holds a list of ``{check, value, weight, negate}``, as a list or as its JSON text (a CSV file's): ``check`` is the name
    of a check of this plugin (``contains``, ``equals`` …; hyphens do for underscores, and ``not-contains`` is ``contains`` negated),
    ``value`` what that check compares with (a list for ``contains_any`` and ``contains_all``, or a text that is one in commas),
    ``weight`` 1 by default. The check's other options may stand there too (``ignore_case``, ``field``). A row without the column is
    ``missing_input``, and so is one whose list cannot be read (the message says which item), one that has no output, unless all its
    checks are limits, and one whose pattern RE2 cannot read.

    :param column: the row's column, a dotted path.
    :param threshold: the score with which a row passes, in [0, 1]; ``pass_at`` beside the component wins.
    """

    name = "assertions"
    tier = "truth"
    needs_output = False

    column: str = "assert"
    threshold: float = attrs.field(default=1.0, validator=Within(0, 1, "in [0, 1]"))

    @property
    def default_pass_at(self) -> float:
        """The threshold."""
        return self.threshold

    def score(self, subject: Subject) -> Score | Failure:
        """Ask each check of the row's list."""
        try:
            items = self._items(subject)
            made = [_made(number, item) for number, item in enumerate(items, 1)]
        except _BadList as error:
            return Failure("missing_input", f"{self.column}: {error}")
        if subject.output is None and not all(isinstance(check, Limit) for _, check, _ in made):
            return no_output(subject)
        passed, failed = 0.0, list[str]()
        for name, check, weight in made:
            found = check.score(subject)
            if isinstance(found, Failure):
                return attrs.evolve(found, message=f"{name}: {found.message}")
            assert found.value is not None  # checks have no scale of their own
            passed += weight * found.value
            if found.value < 1:
                failed.append(f"{name}: {found.details or 'it holds, and should not'}")
        value = min(1.0, passed / sum(weight for _, _, weight in made))
        return Score(
            value,
            details="; ".join(failed),
            feedback="; ".join(failed),
            signals={"failed": len(failed), "checks": len(made)},
        )

    def _items(self, subject: Subject) -> list[Any]:
        """The row's list.

        :raises _BadList: when there is none.
        """
        row = columns(subject)
        found = lookup(row, self.column)
        if found is MISSING:
            near = nearest(self.column, row)
            raise _BadList(
                "the row has no such column" + (f", did you mean {near!r}?" if near else f"; it has {', '.join(row)}")
            )
        if isinstance(found, str) and found:
            try:
                found = read_json(found)
            except ValueError as error:
                raise _BadList(f"it is not JSON: {error}") from error
        if found is None or found in ("", []):
            raise _BadList("this row has no checks there; give it one, or leave the row out")
        items = [found] if isinstance(found, Mapping) else found
        if not isinstance(items, list | tuple):
            raise _BadList(f"it is a list of {{check, value, weight, negate}}, not {found!r:.80}")
        return list(items)


def _made(number: int, item: Any) -> tuple[str, Check, float]:
    """The check that *item* asks for, with its name and weight.

    :raises _BadList: saying what is wrong with it.
    """
    if not isinstance(item, Mapping) or not isinstance(said := item.get("check", item.get("type")), str):
        raise _BadList(f"item {number} is no {{check, value, weight, negate}}: {item!r:.80}")
    name = said.replace("-", "_")
    negated = name.startswith("not_")
    name = name.removeprefix("not_")
    kind = _CHECKS.get(name)
    if kind is None:
        near = nearest(name, _CHECKS)
        raise _BadList(
            f"item {number}: there is no check {said!r}"
            + (f", did you mean {near!r}?" if near else f"; there are {', '.join(_CHECKS)}")
        )
    weight = item.get("weight", 1)
    if isinstance(weight, bool) or not isinstance(weight, int | float) or not isfinite(weight) or weight <= 0:
        raise _BadList(f"item {number}: weight is a number above 0, not {weight!r}")
    options = {key: value for key, value in item.items() if key not in _OWN}
    if item.get("value") is not None:
        options[_VALUES.get(name, "value")] = item["value"]
    if not isinstance(item.get("field", ""), str):
        raise _BadList(f"item {number}: field is a text, not {item['field']!r:.80}")
    for key in ("negate", "ignore_case"):
        if not isinstance(item.get(key, False), bool):
            raise _BadList(f"item {number}: {key} is true or false, not {item[key]!r:.80}")
    _fit(f"item {number}: {said}", kind, name, options)
    try:
        if name in _LISTS and isinstance(text := options.get("values"), str) and not is_template(text):
            options["values"] = [one for one in next(csv.reader([text], skipinitialspace=True), ()) if one.strip()]
        made = kind(**options, negate=item.get("negate", False) is not negated)
        if isinstance(made, Regex) and not is_template(made.pattern):
            linear(made.pattern, made.ignore_case)  # Python's re, which may hang, is for patterns of the pipeline file
    except Exception as error:  # the border: the row's values are anybody's
        raise _BadList(f"item {number}: {said}: {error}") from error
    return said, made, float(weight)


def _fit(what: str, kind: type[Check], name: str, options: Mapping[str, Any]) -> None:
    """Check that the check *kind*, called *name*, takes these *options*, and lacks none.

    :raises _BadList: saying of *what* something is wrong.
    """
    fields = {field.name: field for field in attrs.fields(kind) if field.init}
    for key in options:
        if key not in fields:
            raise _BadList(f"{what} has no {key!r}; it has {', '.join(fields)}")
    own = _VALUES.get(name, "value")
    if own in fields and fields[own].default is attrs.NOTHING and own not in options:
        raise _BadList(f"{what} needs a value")
    if issubclass(kind, Limit) and (isinstance(options[own], bool) or not isinstance(options[own], int | float)):
        raise _BadList(f"{what}: {own} is a number, not {options[own]!r:.80}")
    if name == "regex" and not isinstance(options[own], str):
        raise _BadList(f"{what}: {own} is a text, not {options[own]!r:.80}")
