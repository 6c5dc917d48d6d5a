"""The comparison of an agent's calls with reference calls."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import attrs

from dicast import ConfigError, Failure, InputPath, Problem, RunContext, Score, Subject, Within

from .arguments import ArgumentRules, Rule, Scope, UnusableReference
from .calls import UNKNOWN, Call, calls_of
from .feedback import Comparison
from .matching import Equal, Matching, largest_matching, longest_common, memoized
from .references import References, check_inline, read_references

Mode = Literal["exact", "in_order", "any_order", "subset", "superset"]
_METRIC = "trajectory/match"
_ORDERED = ("exact", "in_order")


@attrs.frozen
class Match:
    """1 if the agent's tool calls match the reference calls, else 0.

    The calls of a turn or session come from its events. Any other subject has calls if its output is a list of calls or has the key
    ``tool_calls``. A call is the name of a tool, or an object with a name and arguments: ``{name, arguments}``, or as OpenAI,
    Anthropic or Gemini write it. A reference without arguments fits any arguments. No calls match an empty list of references.
    A subject without references is a Failure ``missing_input``.

    :param reference: the reference calls: a list for all subjects, or a file of JSON lines ``{"id": ID, "calls": […]}`` with the id
        of a subject or session. By default, they are in ``reference`` of each row: a list, or an object with a list for each turn's id.
    :param column: the dotted path of a row's reference calls; by default ``reference``.
    :param mode: ``exact``: the same calls in the same order. ``in_order``: all reference calls in their order; other calls between
        them are allowed. ``any_order`` and ``superset``: all reference calls; other calls are allowed. ``subset``: only calls in the
        reference. A call that the reference has twice is needed twice.
    :param arguments: ``exact``: equal JSON values. ``subset``: the call has all arguments of the reference, and may have more, also in
        nested objects. ``ignore``: only names are compared. Or the rule of each named field: ``exact``, ``ignore``, ``numeric``, ``regex``
        (the reference is a regular expression with a match in the argument) or ``similarity``; other fields are compared exactly.
    :param allow_repeats: do not count repeats of a matching call as extra calls under ``exact`` and ``subset``; other modes never do.
    :param partial: score the share of the longest match: of the longer list under ``exact``, of the reference calls under ``in_order``,
        ``any_order`` and ``superset``, of the calls under ``subset``.
    :param rel_tol: the largest difference of two ``numeric`` arguments, as a share of the larger number.
    :param min_similarity: the lowest similarity of two texts that count as equal, from 0 to 1.
    """

    name = "match"
    tier = "truth"

    reference: InputPath | Sequence[Any] | None = None
    column: str | None = None
    mode: Mode = "exact"
    arguments: Scope | Mapping[str, Rule] = "exact"
    allow_repeats: bool = False
    partial: bool = False
    rel_tol: float = attrs.field(default=1e-9, validator=Within(0, 1, "a number from 0 to 1"))
    min_similarity: float = attrs.field(default=0.8, validator=Within(0, 1, "a number from 0 to 1"))

    def __attrs_post_init__(self) -> None:
        if self.reference is not None and self.column is not None:
            raise ConfigError(Problem("reference and column are two places of the same calls; keep one", path="column"))
        if not isinstance(self.reference, Path | None):
            check_inline(self.reference, "reference")

    def reads(self, base: Path) -> Mapping[str, Path]:
        """Return the file of the references; with other references, it is another metric."""
        return {"reference": self.reference} if isinstance(self.reference, Path) else {}

    @asynccontextmanager
    async def open(self, run: RunContext) -> AsyncIterator[LiveMatch]:
        """Read the references, once per run.

        :raises DataError: with every line of the file without calls.
        """
        yield self._live()

    def score(self, subject: Subject) -> Score | Failure:
        """Score *subject* outside a run; the file of references is read again for each call."""
        return self._live().score(subject)

    def _live(self) -> LiveMatch:
        return LiveMatch(self, live_references(_METRIC, self.reference, self.column, "reference"))


def live_references(metric: str, value: Path | Sequence[Any] | None, column: str | None, option: str) -> References:
    """Return the references that *metric* has in *option*: a file, a list of calls, or None for references in *column* of each row.

    :raises DataError: if they cannot be read.
    """
    if isinstance(value, Path):
        return References(metric, by_id=read_references(value))
    for_all = None if value is None else check_inline(value, option)
    return References(metric, for_all, column=column)


@attrs.frozen
class LiveMatch:
    """A metric whose references have been read."""

    options: Match
    references: References

    @property
    def subject_ids(self) -> Collection[str]:
        """The ids in the file of references; the run reports ids without a subject."""
        return self.references.ids

    def score(self, subject: Subject) -> Score | Failure:
        """Compare the calls of one subject with its reference calls."""
        references = self.references.of(subject)
        if isinstance(references, Failure):
            return references
        calls = calls_of(subject, _METRIC)
        if isinstance(calls, Failure):
            return calls
        rules = ArgumentRules(self.options.arguments, self.options.rel_tol, self.options.min_similarity)
        if rules.scope != "ignore" and (lacking := _without_arguments(calls, references)):
            why = f"the call of {lacking!r} has no arguments in the data; arguments: ignore compares names"
            return Failure("missing_input", f"{_METRIC}: {why}")
        equal = memoized(calls, references, rules.equal)
        try:
            return self._compare(calls, references, equal, rules)
        except UnusableReference as error:
            return Failure("missing_input", f"{_METRIC}: the reference of {subject.id!r} cannot be compared: {error}")

    def _compare(self, calls: Sequence[Call], references: Sequence[Call], equal: Equal, rules: ArgumentRules) -> Score:
        mode = self.options.mode
        match_calls = longest_common if mode in _ORDERED else largest_matching
        matching = match_calls(len(calls), len(references), equal)
        repeats = self._repeats(len(calls), matching, equal) if mode in ("exact", "subset") else set[int]()
        comparison = Comparison(calls, references, matching, repeats, rules, equal)
        matched, counted, needed = len(matching.pairs), len(calls) - len(repeats), len(references)
        total = {"exact": max(counted, needed), "subset": counted}.get(mode, needed)
        share = matched / total if total else 1.0
        value = share if self.options.partial else float(matched == total)
        signals = {
            "calls": len(calls),
            "references": needed,
            "matched": matched,
            "share": share,
            **comparison.signals(mode),
        }
        feedback = "" if matched == total else comparison.feedback(mode)
        details = f"{matched} of {total} calls match ({mode})" if total else "no calls, and none was expected"
        details += f": {feedback}".replace(".\n", "; ") if feedback else ""
        return Score(value, details=details, feedback=feedback, signals=signals)

    def _repeats(self, count: int, matching: Matching, equal: Equal) -> set[int]:
        """Return the places of calls without a partner that repeat an earlier call with a partner."""
        if not self.options.allow_repeats:
            return set()
        unmatched = set(range(count)) - matching.calls()
        return {
            place for place in unmatched if any(pair[0] < place and equal(place, pair[1]) for pair in matching.pairs)
        }


def _without_arguments(calls: Sequence[Call], references: Sequence[Call]) -> str | None:
    """Return the tool of the first call whose arguments are unknown but needed for a comparison."""
    compared = {reference.name for reference in references if reference.arguments is not UNKNOWN}
    return next((call.name for call in calls if call.arguments is UNKNOWN and call.name in compared), None)
