"""Items of a row's own list: each a check with its weight, or a nested list."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import Any

import attrs

from dicast import Failure, Judge, nearest

from .check import Check, Outcome, is_template
from .code import Code, CodeCheck, Javascript, LiveCode, Python
from .judged import REFERENCE_CHECKS, Judged
from .limits import Limit, MaxCost, MaxLatency
from .measures import IsRefusal, Levenshtein, RougeN, WordCount
from .structure import ContainsJson, IsJson
from .texts import Contains, ContainsAll, ContainsAny, Equals, Icontains, OneOf, Regex, StartsWith, linear

CHECKS: Mapping[str, type[Check]] = {
    kind.name: kind
    for kind in (
        Contains, Icontains, ContainsAny, ContainsAll, StartsWith, Regex, Equals, OneOf, IsJson, ContainsJson, Levenshtein, RougeN,
        WordCount, IsRefusal, MaxLatency, MaxCost,
    )
}  # fmt: skip
CODE: Mapping[str, type[CodeCheck]] = {"python": Python, "javascript": Javascript}
JUDGED = ("llm_rubric", "factuality", "closedqa")
"""Built-in names of items that ask a judge; ``judges`` may add names."""

SET = "assert_set"
DEPTH = 20
"""Greatest depth of nested lists."""

_VALUES = {
    "regex": "pattern", "one_of": "values", "contains_any": "values", "contains_all": "values", "is_json": "schema",
    "contains_json": "schema", "max_latency": "seconds", "max_cost": "usd",
}  # fmt: skip
"""Options for which ``value`` is another name."""

_LISTS = ("contains_any", "contains_all")
"""Checks whose list may be a text with commas, as in other tools."""

_COMMON = ("check", "type", "weight", "negate", "metric")
_FORM = "{check, value, weight, negate}"


class BadList(Exception):
    """An invalid list of a row; the message has the reason."""


@attrs.frozen
class Leaf:
    """One check of the list: its *label* in the row, its *weight*, and the *metric* that it counts for."""

    label: str
    check: Check | LiveCode | Judged
    weight: float
    metric: str | None

    def failure(self, failure: Failure) -> Failure:
        """Return *failure* with the label of the check in its message."""
        return attrs.evolve(failure, message=f"{self.label}: {failure.message}")


@attrs.define
class Result:
    """The sum of a list's items: *mean* of their values and *share* that hold, both by weight, and the messages of the *failed* items."""

    weights: float = 0.0
    values: float = 0.0
    holding: float = 0.0
    checks: int = 0
    failed: list[str] = attrs.field(factory=list)
    metrics: dict[str, tuple[float, float]] = attrs.field(factory=dict)

    def add(self, value: float, weight: float, metric: str | None, *, holds: bool) -> None:
        """Count one item."""
        self.weights += weight
        self.values += value * weight
        self.holding += weight if holds else 0.0
        if metric is not None:
            self._name(metric, value, weight)

    def add_names(self, other: Result, weight: float) -> None:
        """Count the named values of a nested list, by its *weight*."""
        for metric, (values, weights) in other.metrics.items():
            self._name(metric, values / weights, weights * weight)

    def _name(self, metric: str, value: float, weight: float) -> None:
        values, weights = self.metrics.get(metric, (0.0, 0.0))
        self.metrics[metric] = (values + value * weight, weights + weight)

    @property
    def mean(self) -> float:
        """The weighted mean of the items' values."""
        return self.values / self.weights

    @property
    def share(self) -> float:
        """The weighted share of the items that hold."""
        return self.holding / self.weights

    def signals(self) -> dict[str, object]:
        """Return the counts, and the mean of each named metric."""
        named = {name: values / weights for name, (values, weights) in self.metrics.items()}
        return {"failed": len(self.failed), "checks": self.checks, **({"metrics": named} if named else {})}


@attrs.frozen
class Group:
    """A list of items. With a *threshold* it holds if the mean of their values reaches it, else if all hold."""

    items: Sequence[Leaf | Group]
    label: str = SET
    threshold: float | None = None
    weight: float = 1.0
    metric: str | None = None
    negate: bool = False

    def leaves(self) -> Iterator[Leaf]:
        """Yield all checks in their order."""
        for item in self.items:
            if isinstance(item, Group):
                yield from item.leaves()
            else:
                yield item

    def result(self, outcomes: Iterator[Outcome]) -> Result:
        """Return the sum of the items with the *outcomes* of the checks, in their order."""
        result = Result()
        for item in self.items:
            if isinstance(item, Group):
                inner = item.result(outcomes)
                result.checks += inner.checks
                result.add_names(inner, item.weight)
                holds = item.holds(inner)
                value = 1 - inner.mean if item.negate else inner.mean
                result.failed += [] if holds else [item.message(inner)]
            else:
                outcome = next(outcomes)
                result.checks += 1
                holds, value = outcome.holds, outcome.value
                result.failed += [] if holds else [f"{item.label}: {outcome.why or 'it holds, and should not'}"]
            result.add(value, item.weight, item.metric, holds=holds)
        return result

    def holds(self, result: Result) -> bool:
        """Return whether the list holds with the sum *result*."""
        holds = not result.failed if self.threshold is None else result.mean >= self.threshold
        return holds is not self.negate

    def message(self, result: Result) -> str:
        """Return why the list with the sum *result* does not hold."""
        limit = "" if self.threshold is None else f" {result.mean:.4g} of {self.threshold:g}"
        return f"{self.label}{limit} ({'; '.join(result.failed) or 'it holds, and should not'})"


def code_files(items: object, depth: int = 0) -> Iterator[str]:
    """Yield the files of code named in *items*; invalid items name none."""
    for item in items if isinstance(items, list | tuple) and depth < DEPTH else ():
        if isinstance(item, Mapping):
            if isinstance(item.get("file"), str):
                yield item["file"]
            yield from code_files(item.get("assert"), depth + 1)


def read_items(items: Sequence[Any], judges: Mapping[str, Judge], files: Mapping[str, Code]) -> Group:
    """Return the list of *items*, with the *judges* and the *files* of code that they may ask.

    :raises BadList: naming the invalid item.
    """
    return _Reader(judges, files).group(items)


@attrs.frozen
class _Reader:
    """Parser of items; *depth* is the number of enclosing lists."""

    judges: Mapping[str, Judge]
    files: Mapping[str, Code]
    depth: int = 0

    def group(self, items: Sequence[Any]) -> Group:
        """Return the list of *items*."""
        if self.depth == DEPTH:
            raise BadList(f"lists are nested more than {DEPTH} deep")
        return Group([self._item(number, item) for number, item in enumerate(items, 1)])

    def _item(self, number: int, value: Any) -> Leaf | Group:
        item = _entry(number, value, self.judges)
        if item.name == SET:
            return self._group(item)
        if item.name in self.judges or item.name in JUDGED:
            return item.leaf(self._judged(item))
        if item.name in CODE:
            return item.leaf(self._code(item))
        if item.name not in CHECKS:
            names = tuple(dict.fromkeys((*CHECKS, *CODE, SET, *JUDGED, *self.judges)))
            near = nearest(item.name, names)
            rest = f", did you mean {near!r}?" if near else f"; the checks are {', '.join(names)}"
            raise BadList(f"item {number}: there is no check {item.label!r}{rest}")
        return item.leaf(_check(item))

    def _group(self, item: _Entry) -> Group:
        item.check_options(("assert", "threshold"))
        items, threshold = item.options.get("assert"), item.options.get("threshold")
        if not isinstance(items, list | tuple) or not items:
            raise BadList(f"{item.position} needs assert, a list of one item or more")
        if threshold is not None and not _in_unit(threshold):
            raise BadList(f"{item.position}: threshold is in [0, 1], not {threshold!r:.80}")
        try:
            group = attrs.evolve(self, depth=self.depth + 1).group(items)
        except BadList as error:
            raise BadList(f"{item.position}: {error}") from error
        return Group(group.items, item.label, threshold, item.weight, item.metric, item.negate)

    def _judged(self, item: _Entry) -> Judged:
        item.check_options(("value", "threshold"))
        threshold, value = item.options.get("threshold", 0.5), item.options.get("value")
        if not _in_unit(threshold):
            raise BadList(f"{item.position}: threshold is in [0, 1], not {threshold!r:.80}")
        if not isinstance(value, str) or not value.strip():
            raise BadList(f"{item.position} needs a value: the text that the judge compares with")
        if item.name not in self.judges:
            form = f"judges: {{{item.name}: {{llm/judge: {{…}}}}}}"
            raise BadList(f"{item.position} asks a judge; give check/assertions one: {form}")
        is_reference = item.name in REFERENCE_CHECKS
        return Judged(item.name, self.judges[item.name], value, threshold, item.negate, is_reference)

    def _code(self, item: _Entry) -> LiveCode:
        kind, file = CODE[item.name], item.options.get("file")
        if not isinstance(file, str) or not file:
            raise BadList(f"{item.position} needs file, the file of code")
        item.check_options([field.name for field in attrs.fields(kind)])
        if item.name == "python" and not isinstance(item.options.get("function"), str):
            raise BadList(f"{item.position} needs function, the name of a function in {file}")
        item.check_numbers("threshold", "above", "timeout")
        if file not in self.files:
            fix = f"Read it, then add trust: [{file}] to the pipeline file, or run with --yes"
            raise BadList(f"{item.position}: {file} is code that is not trusted. {fix}")
        code = self.files[file]
        if code.language != item.name:
            raise BadList(f"{item.position}: {file} is a file of {code.language}")
        try:
            return LiveCode(kind(**{**item.options, "file": Path(file)}, negate=item.negate), code)
        except Exception as error:  # boundary: the row's values are untrusted
            raise BadList(f"{item.position}: {error}") from error


@attrs.frozen
class _Entry:
    """An item of the row: its check's *name* with underscores, the *label* as in the row, and the check's *options*."""

    position: str
    label: str
    name: str
    negate: bool
    weight: float
    metric: str | None
    options: dict[str, Any]

    def leaf(self, check: Check | LiveCode | Judged) -> Leaf:
        """Return the item with its *check*."""
        return Leaf(self.label, check, self.weight, self.metric)

    def check_options(self, names: Sequence[str]) -> None:
        """Check that every option is among *names*.

        :raises BadList: for the first other option.
        """
        for key in self.options:
            if key not in names:
                raise BadList(f"{self.position} has no {key!r}; it has {', '.join(names)}")

    def check_numbers(self, *keys: str) -> None:
        """Check that each option among *keys* is a number, if it is set.

        :raises BadList: for the first other value.
        """
        for key in keys:
            value = self.options.get(key)
            if value is not None and (
                isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value)
            ):
                raise BadList(f"{self.position}: {key} is a number, not {value!r:.80}")


def _entry(number: int, value: Any, judges: Mapping[str, Judge]) -> _Entry:
    if not isinstance(value, Mapping) or not isinstance(label := value.get("check", value.get("type")), str):
        raise BadList(f"item {number} is not {_FORM}: {value!r:.80}")
    name = label if label in judges else label.replace("-", "_")
    negate = name.startswith("not_") and name not in judges
    weight = value.get("weight", 1)
    if isinstance(weight, bool) or not isinstance(weight, int | float) or not isfinite(weight) or weight <= 0:
        raise BadList(f"item {number}: weight is a number above 0, not {weight!r}")
    for key in ("field", "metric"):
        if not isinstance(value.get(key, ""), str):
            raise BadList(f"item {number}: {key} is a text, not {value[key]!r:.80}")
    for key in ("negate", "ignore_case", "complete"):
        if not isinstance(value.get(key, False), bool):
            raise BadList(f"item {number}: {key} is true or false, not {value[key]!r:.80}")
    return _Entry(
        f"item {number}: {label}",
        label,
        name.removeprefix("not_") if negate else name,
        value.get("negate", False) is not negate,
        float(weight),
        value.get("metric"),
        {key: entry for key, entry in value.items() if key not in _COMMON and (key != "value" or entry is not None)},
    )


def _in_unit(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


def _check(item: _Entry) -> Check:
    kind, options = CHECKS[item.name], dict(item.options)
    if "value" in options:
        options[_VALUES.get(item.name, "value")] = options.pop("value")
    _fit(item, kind, options)
    try:
        if item.name in _LISTS and isinstance(text := options.get("values"), str) and not is_template(text):
            options["values"] = [
                entry for entry in next(csv.reader([text], skipinitialspace=True), ()) if entry.strip()
            ]
        check = kind(**options, negate=item.negate)
        if isinstance(check, Regex) and not is_template(check.pattern):
            linear(
                check.pattern, check.ignore_case
            )  # Python's re may hang, so only patterns of the pipeline file use it
    except Exception as error:  # boundary: the row's values are untrusted
        raise BadList(f"{item.position}: {error}") from error
    return check


def _fit(item: _Entry, kind: type[Check], options: Mapping[str, Any]) -> None:
    """Check that the check *kind* takes these *options*, and lacks none.

    :raises BadList: with the problem.
    """
    fields = {field.name: field for field in attrs.fields(kind) if field.init}
    attrs.evolve(item, options=dict(options)).check_options([*fields])
    key = _VALUES.get(item.name, "value")
    if key in fields and fields[key].default is attrs.NOTHING and key not in options:
        raise BadList(f"{item.position} needs a value")
    if issubclass(kind, Limit) and (isinstance(options[key], bool) or not isinstance(options[key], int | float)):
        raise BadList(f"{item.position}: {key} is a number, not {options[key]!r:.80}")
    if item.name == "regex" and not isinstance(options[key], str):
        raise BadList(f"{item.position}: {key} is a text, not {options[key]!r:.80}")
    item.check_numbers("threshold", "n", "min", "max")
