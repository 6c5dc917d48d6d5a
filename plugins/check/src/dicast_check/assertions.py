"""A row's own list of checks."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import attrs

from dicast import (
    ConfigError,
    Cost,
    Failure,
    Judge,
    RunContext,
    Score,
    Subject,
    Within,
    columns,
    estimate,
    nearest,
    weakest,
)
from dicast.toolkit.json_values import MISSING, lookup, read_json

from .check import Check, Outcome, no_output
from .code import Code, check_trust
from .items import BadList, Group, code_files, read_items
from .judged import Judged
from .limits import Limit

_ROUNDING = 1e-9
"""Rounding error by which a mean may leave [0, 1]."""


@attrs.frozen
class Assertions:
    """Share of a row's own checks that hold, weighted; 1 if all hold.

    The row's column has a list of ``{check, value, weight, negate}``, or its JSON text (in a CSV file). ``check`` is the name
    of a check of this plugin (``contains``, ``equals`` …; hyphens count as underscores, and ``not-contains`` is ``contains`` negated).
    ``value`` is the check's value (a list for ``contains_any`` and ``contains_all``, or a text with commas), and
    ``weight`` is 1 by default. An item may also have the check's other options (``ignore_case``, ``field``), and ``metric``: the mean of the
    items with the same ``metric`` is in ``signals.metrics``. ``{check: assert_set, assert: [items], threshold}`` is a nested
    list: it holds if all its items hold, or with a threshold if the weighted mean of their values reaches it.

    The items ``llm_rubric``, ``factuality`` and ``closedqa`` ask the judge with this name in ``judges``; the basis of the score is then a
    model. The items ``python`` and ``javascript`` (``{check: python, file, function}``) call code, which needs consent like
    ``check/python``.

    A row is ``missing_input`` without the column, with an invalid list (the message names the item), without an
    output unless all its checks are limits, with a pattern that RE2 cannot read, with code that lacks consent, or with the name of a missing
    judge. The failure of one item is the failure of the row: it never counts as passed.

    :param column: the row's column, a dotted path.
    :param threshold: with a threshold in [0, 1], the score is the weighted mean of the items' values (a share of n-grams, a judge's score), and a
        row passes if it reaches the threshold. Without one, the score is the weighted share of items that hold, and a row passes if all hold.
        ``pass_at`` in the same slot takes precedence.
    :param judges: judges by the name of the item: ``llm_rubric``, ``factuality``, ``closedqa``, or another name. The
        item's value is shown as the reference for ``factuality``, else as the context column ``criterion``.
    :param code: files of the rows' items ``python`` and ``javascript``. The run does not start if a file is missing or not
        trusted, and their digests are part of the fingerprint.
    """

    name = "assertions"
    tier = "truth"
    needs_output = False

    column: str = "assert"
    threshold: float | None = attrs.field(default=None, validator=attrs.validators.optional(Within(0, 1, "in [0, 1]")))
    judges: Mapping[str, Judge] = attrs.field(factory=dict)
    code: Sequence[Path] = ()

    @property
    def default_pass_at(self) -> float:
        """The threshold; 1 without one."""
        return 1.0 if self.threshold is None else self.threshold

    def reads(self, base: Path) -> dict[str, Path]:
        """Return the files of code."""
        return {str(file): base / file for file in self.code}

    @asynccontextmanager
    async def open(self, run: RunContext) -> AsyncIterator[Assertions | LiveAssertions | JudgedAssertions]:
        """Yield the live metric.

        :raises ConfigError: if a file of ``code`` is missing or not trusted.
        """
        check_trust({file: _language(file) for file in self.code}, run)
        files = {str(file): Code.of(file, _language(file), run) for file in self.code}
        if self.judges:
            yield JudgedAssertions(self, run, files)
        else:
            yield LiveAssertions(self, run, files) if files or run.trust != () else self

    @property
    def score(self) -> Callable[[Subject], Score | Failure | Awaitable[Score | Failure]]:
        """Return the function that asks each check of the row's list. It is asynchronous only with judges."""
        return self.score_slowly if self.judges else self.score_at_once

    def score_at_once(self, subject: Subject) -> Score | Failure:
        """Ask the checks that need neither a judge nor code."""
        group = self._group(subject, {})
        if isinstance(group, Failure):
            return group
        outcomes = []
        for leaf in group.leaves():
            assert isinstance(leaf.check, Check)  # other checks need judges, or a run
            outcome = leaf.check.outcome(subject)
            if isinstance(outcome, Failure):
                return leaf.failure(outcome)
            outcomes.append(outcome)
        return self._scored(group, outcomes)

    async def score_slowly(self, subject: Subject, files: Mapping[str, Code] | None = None) -> Score | Failure:
        """Ask all checks, with *files* of trusted code."""
        group = self._group(subject, files or {})
        if isinstance(group, Failure):
            return group
        outcomes, costs = list[Outcome](), list[Cost]()
        for number, leaf in enumerate(group.leaves(), 1):
            check = attrs.evolve(leaf.check, number=number) if isinstance(leaf.check, Judged) else leaf.check
            answer = check.outcome(subject)
            outcome = await answer if inspect.isawaitable(answer) else answer
            costs += [outcome.cost] if isinstance(outcome, Failure) else outcome.costs
            if isinstance(outcome, Failure):
                return attrs.evolve(leaf.failure(outcome), cost=_total([cost for cost in costs if not cost.is_zero]))
            outcomes.append(outcome)
        return self._scored(group, outcomes)

    def _group(self, subject: Subject, files: Mapping[str, Code]) -> Group | Failure:
        try:
            group = read_items(self.items(subject), self.judges, files)
        except BadList as error:
            return Failure("missing_input", f"{self.column}: {error}")
        if subject.output is None and not all(isinstance(leaf.check, Limit) for leaf in group.leaves()):
            return no_output(subject)
        return group

    def _scored(self, group: Group, outcomes: Sequence[Outcome]) -> Score | Failure:
        """Return the score of the row with the *outcomes* of its checks, in their order."""
        result = group.result(iter(outcomes))
        value = result.share if self.threshold is None else result.mean
        if not -_ROUNDING <= value <= 1 + _ROUNDING:
            return Failure("invalid_score", f"{self.column}: the mean of the items' values is {value:g}, not in [0, 1]")
        bases = [basis for outcome in outcomes for basis in outcome.bases]
        return Score(
            min(1.0, max(0.0, value)),
            min((outcome.confidence for outcome in outcomes), default=1.0),
            details="; ".join(result.failed),
            feedback="; ".join(result.failed),
            cost=_total([cost for outcome in outcomes for cost in outcome.costs if not cost.is_zero]),
            signals=result.signals(),
            basis=weakest(["truth", *bases]) if bases else None,
        )

    def items(self, subject: Subject) -> list[Any]:
        """Return the items of the row's list.

        :raises BadList: when there is no list.
        """
        row = columns(subject)
        value = lookup(row, self.column)
        if value is MISSING:
            near = nearest(self.column, row)
            raise BadList(
                "the row has no such column" + (f", did you mean {near!r}?" if near else f"; it has {', '.join(row)}")
            )
        if isinstance(value, str) and value:
            try:
                value = read_json(value)
            except ValueError as error:
                raise BadList(f"it is not JSON: {error}") from error
        if value is None or value in ("", []):
            raise BadList("this row has no checks; add one, or leave the row out")
        items = [value] if isinstance(value, Mapping) else value
        if not isinstance(items, list | tuple):
            raise BadList(f"it is a list of {{check, value, weight, negate}}, not {value!r:.80}")
        return list(items)


@attrs.frozen
class LiveAssertions:
    """A row's own checks in a run, with the *files* of code that the run trusts."""

    metric: Assertions
    run: RunContext
    files: dict[str, Code] = attrs.field(factory=dict)

    @property
    def default_timeout(self) -> float:
        """Ten minutes: judges and functions are waited for one after the other."""
        return 600.0

    async def score(self, subject: Subject) -> Score | Failure:
        """Ask each check of the row's list."""
        try:
            self._open_code(subject)
        except BadList:
            pass  # score_slowly reads the list again and returns the failure
        except ConfigError as error:
            return Failure("missing_input", f"{self.metric.column}: {error}")
        return await self.metric.score_slowly(subject, self.files)

    def _open_code(self, subject: Subject) -> None:
        """Open the trusted files of code that the row names.

        :raises BadList: where the row's list cannot be read.
        :raises ConfigError: where a file cannot be read.
        """
        for name in code_files(self.metric.items(subject)):
            if name not in self.files and _is_path(name) and self.run.trusts(self.run.base / name):
                self.files[name] = Code.of(Path(name), _language(Path(name)), self.run)


@attrs.frozen
class JudgedAssertions(LiveAssertions):
    """A row's own checks in a run, with judges for some."""

    estimates_judges = True

    def estimate(self, subject: Subject) -> Cost:
        """Return the highest cost of all judges that the row asks; zero for a list that cannot be read."""
        try:
            leaves = [*read_items(self.metric.items(subject), self.metric.judges, self.files).leaves()]
        except BadList:
            return Cost.zero()
        costs = [estimate(leaf.check.judge, subject) for leaf in leaves if isinstance(leaf.check, Judged)]
        return _total([cost for cost in costs if not cost.is_zero])


def _is_path(name: str) -> bool:
    """Return whether the text *name* of a row can be a path at all."""
    return "\0" not in name and name.isprintable() and len(name) <= _LONGEST_PATH


_LONGEST_PATH = 4096


def _language(file: Path) -> str:
    return "python" if file.suffix == ".py" else "javascript"


def _total(costs: Sequence[Cost]) -> Cost:
    """Return the sum of *costs* in the unit of the first: two units are never added."""
    unit = costs[0].unit if costs else "usd"
    return sum((cost for cost in costs if cost.unit == unit), Cost.zero(unit))
