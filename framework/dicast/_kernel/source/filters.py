"""Filters of subjects: the option ``--filter`` of ``dicast run``."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from hashlib import sha256
from typing import Any, Protocol

import orjson

from ...toolkit.json_values import MISSING
from ..classes import field, frozen
from ..contract.protocols import Source
from ..values import Due, Subject
from ..values.errors import ConfigError, DataError, Problem
from ..values.names import nearest
from ..values.passes import SubjectKey
from .source import iterate

FAILING = "failing"
"""The filter of subjects that did not pass in an earlier run."""

FILTERED = "filtered"
"""Kind of the warning that a run judges a part of the subjects."""

_PARTS = ("id", "kind", "session_id", "input", "output", "reference")
"""Keys of the parts of a subject. A column of the same name is reached as ``column.NAME``."""

_COLUMN = "column."
_CONDITION = re.compile(r"(?P<key>[^=~!]+)(?P<sign>!?[=~])(?P<value>.*)", re.DOTALL)
_FORMS = "write KEY=TEXT, KEY!=TEXT, KEY~PATTERN, KEY!~PATTERN, failing or failing=RUN"


_UNWRITABLE = re.compile(r"[=~!]|^\s|\s$")
"""A part of a column's name that no rule can have."""


def column_key(subject: Subject, column: str, value: object) -> str | None:
    """Return the key of *column*, which has *value* in *subject*: its name, or ``column.NAME`` if the name means something else in a rule.

    None if no rule can name the column: its name has a sign of a rule, or starts or ends with a blank.
    """
    if _UNWRITABLE.search(column):
        return None
    is_part = column == FAILING or value_at(subject, column) != value
    return f"{_COLUMN}{column}" if is_part else column


class Filter(Protocol):
    """A rule that selects subjects; *text* is the rule as the user wrote it."""

    @property
    def text(self) -> str: ...

    def accepts(self, subject: Subject) -> bool:
        """Return whether the run judges *subject*."""
        ...


@frozen
class Condition:
    """A rule about the value of *key*: a part of the subject, a column ``column.NAME``, or a dotted path in its context or its columns."""

    text: str
    key: str
    value: str
    is_negative: bool
    _expression: re.Pattern[str] | None = field(default=None, eq=False)

    def accepts(self, subject: Subject) -> bool:
        """Return whether the rule holds for *subject*. A subject without the value fits only a negative rule."""
        value = value_at(subject, self.key)
        if value is MISSING or value is None:
            return self.is_negative
        text = _text(value)
        matches = text == self.value if self._expression is None else self._expression.search(text) is not None
        return matches is not self.is_negative


@frozen
class Failing:
    """The rule that a subject did not pass, or has no verdict, in the run *run*, by default the newest run of the pipeline."""

    text: str
    run: str | None


@frozen
class Selected:
    """The rule that a subject is one of *keys*."""

    text: str
    keys: Collection[SubjectKey] = field(repr=False)

    def accepts(self, subject: Subject) -> bool:
        """Return whether *subject* is selected."""
        return (subject.kind, subject.id) in self.keys


def read_filters(texts: Sequence[str]) -> tuple[Condition | Failing, ...]:
    """Return the rules that *texts* state.

    :raises ConfigError: with every text that states no rule.
    """
    rules: list[Condition | Failing] = []
    problems: list[Problem] = []
    for text in texts:
        name, equals, run = text.partition("=")
        if name == FAILING and (run or not equals):
            rules.append(Failing(text, run or None))
            continue
        match = _CONDITION.fullmatch(text)
        if match is None:
            problems.append(Problem(f"--filter: {text!r:.100} is no rule; {_FORMS}", value=text))
            continue
        is_pattern, value = match["sign"].endswith("~"), match["value"]
        try:
            expression = re.compile(value) if is_pattern else None
        except re.error as error:
            message = (
                f"--filter: {value!r:.100} is not a regular expression: {error}; escape its special characters with \\"
            )
            problems.append(Problem(message, value=text))
            continue
        rules.append(Condition(text, match["key"].strip(), value, match["sign"].startswith("!"), expression))
    if problems:
        raise ConfigError(problems)
    return tuple(rules)


def value_at(subject: Subject, key: str) -> object:
    """Return the value of *key* in *subject*, or MISSING.

    A part of the subject comes before a column of the same name; ``column.NAME`` is the column.
    """
    if key in _PARTS:
        return getattr(subject, key)
    if (value := _column_at(subject, key)) is not MISSING or not key.startswith(_COLUMN):
        return value
    name = key.removeprefix(_COLUMN)
    column = _column_at(subject, name)
    is_mapped = (
        column is MISSING and name in _PARTS and name != "kind"
    )  # a column with its part's name is the part alone
    return getattr(subject, name) if is_mapped else column


def _text(value: object) -> str:
    """Return *value* as a rule compares it: a text unchanged, other values as JSON."""
    return value if isinstance(value, str) else orjson.dumps(value, default=str).decode()


def _column_at(subject: Subject, key: str) -> object:
    """Return the value of the column *key*, or at the dotted path *key* in the context, or MISSING."""
    for columns in (subject.columns, subject.context):
        if key in columns:
            return columns[key]
    value: object = subject.context
    for name in key.split("."):
        if not isinstance(value, Mapping) or name not in value:
            return MISSING
        value = value[name]
    return value


class FilteredSource:
    """The subjects of *source* that every one of *rules* accepts. Attributes that this class lacks are read from *source*."""

    total = None
    """The number of its subjects is known only after the last subject."""

    def __init__(self, source: Source, rules: Sequence[Filter]) -> None:
        self._source, self._rules = source, rules
        self._read, self._accepted, self._is_complete = 0, 0, False
        self._unknown = {rule.key for rule in rules if isinstance(rule, Condition) and rule.key not in _PARTS}
        self._keys: dict[str, None] = {}
        self._parts = {rule.key for rule in rules if isinstance(rule, Condition) and rule.key in _PARTS}
        self._hidden_columns = set[str]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)

    async def subjects(self) -> AsyncIterator[Subject | Due]:
        """Yield the accepted subjects in the order of the source.

        :raises DataError: if no subject is accepted.
        """
        self._read = self._accepted = 0
        async for item in iterate(self._source):
            subject = item.subject if isinstance(item, Due) else item
            self._read += 1
            if isinstance(subject, Subject):
                self._note(subject)
                if not all(rule.accepts(subject) for rule in self._rules):
                    continue
            self._accepted += 1
            yield item
        self._is_complete = True
        if self._read and not self._accepted:
            raise DataError(f"{self._named} accepts none of the {self._read:,} subjects{self._hint()}")

    def _note(self, subject: Subject) -> None:
        if self._unknown:
            self._unknown = {key for key in self._unknown if value_at(subject, key) is MISSING}
            self._keys |= dict.fromkeys([*subject.context, *subject.columns])
        for key in self._parts - self._hidden_columns:
            column = _column_at(subject, key)
            if column is not MISSING and _text(column) != _text(getattr(subject, key)):
                self._hidden_columns.add(key)

    @property
    def _named(self) -> str:
        return " ".join(f"--filter {rule.text!r:.100}" for rule in self._rules)

    def _hint(self) -> str:
        """Return the keys that no subject has, with the most similar names, and the keys with a column of the same name; empty if there are none."""
        hints = []
        for key in sorted(self._unknown):
            near = nearest(key, [*_PARTS, *self._keys])
            advice = f", did you mean {near!r}?" if near else f"; keys are {', '.join([*_PARTS, *self._keys][:20])}"
            hints.append(f"no subject has {key!r}{advice}")
        hints += [
            f"{key!r} is the subject's {key}; for the column of that name write {_COLUMN}{key}"
            for key in sorted(self._hidden_columns)
        ]
        return "".join(f": {hint}" for hint in hints)

    def warnings(self) -> list[dict[str, Any]]:
        """Return the warning that the run judges a part of the subjects, with the hints about its keys."""
        of = f"of {self._read:,}" if self._is_complete else f"of the first {self._read:,}"
        hint = self._hint() if self._is_complete or not self._unknown else ""
        message = f"{self._named}: {self._accepted:,} {of} subjects are accepted; the others are not judged{hint}"
        accepts_all = self._is_complete and self._accepted == self._read
        if accepts_all:
            message = f"{self._named} leaves out none of the {self._read:,} subjects{hint}"
        return [{"kind": FILTERED, "message": message, "accepts_all": accepts_all}]


def filter_digest(rules: Sequence[Filter]) -> str:
    """Return the digest of *rules*, by which a resumed run is compared."""
    stated = [[rule.text, sorted(map(list, rule.keys)) if isinstance(rule, Selected) else None] for rule in rules]
    return sha256(orjson.dumps(stated)).hexdigest()


def resolved(
    rules: Sequence[Condition | Failing],
    failing: Callable[[str | None], Collection[SubjectKey]],
    recorded: Mapping[str, Mapping[str, Sequence[str]]],
) -> tuple[Filter, ...]:
    """Return *rules* with the subjects of each :class:`Failing`: *recorded* by a resumed run, else returned by *failing* for the name of a run."""

    def keys(rule: Failing) -> Collection[SubjectKey]:
        kinds = recorded.get(rule.text)
        if kinds is None:
            return failing(rule.run)
        return frozenset((kind, id_) for kind, ids in kinds.items() for id_ in ids)

    return tuple(Selected(rule.text, keys(rule)) if isinstance(rule, Failing) else rule for rule in rules)


def selected_ids(rules: Sequence[Filter]) -> dict[str, dict[str, list[str]]]:
    """Return the ids of the subjects that each :class:`Selected` of *rules* selects, by its text and the kind, for ``run.started``."""
    selections: dict[str, dict[str, list[str]]] = {}
    for rule in rules:
        if isinstance(rule, Selected):
            kinds = selections.setdefault(rule.text, {})
            for kind, id_ in sorted(rule.keys):
                kinds.setdefault(kind, []).append(id_)
    return selections
