"""The tools that an agent called, against the expected tools."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import attrs

from dicast import ConfigError, Failure, InputPath, Problem, RunContext, Score, Subject

from .calls import calls_of
from .match import live_references
from .references import References, check_inline

_METRIC = "trajectory/tool_correctness"


@attrs.frozen
class ToolCorrectness:
    """F1 of the called tools against the expected tools. It compares names and how often each occurs, but not order and arguments.

    With c calls, e expected calls and m calls in both, precision is m/c, recall is m/e, and the score is 2m/(c+e). It is 1 if no tool
    was expected and none was called. A subject without expected tools is a Failure ``missing_input``.

    :param expected: the names of the expected tools: a list for all subjects, or a file of JSON lines ``{"id": ID, "calls": […]}`` with
        the id of a subject or session. By default, they are in ``reference`` of each row. Calls with arguments count by their names.
    :param column: the dotted path of a row's expected tools; by default ``reference``.
    """

    name = "tool_correctness"
    tier = "truth"

    expected: InputPath | Sequence[Any] | None = None
    column: str | None = None

    def __attrs_post_init__(self) -> None:
        if self.expected is not None and self.column is not None:
            raise ConfigError(Problem("expected and column are two places of the same names; keep one", path="column"))
        if not isinstance(self.expected, Path | None):
            check_inline(self.expected, "expected")

    def reads(self, base: Path) -> Mapping[str, Path]:
        """Return the file of the expected tools; with other expected tools, it is another metric."""
        return {"expected": self.expected} if isinstance(self.expected, Path) else {}

    @asynccontextmanager
    async def open(self, run: RunContext) -> AsyncIterator[LiveToolCorrectness]:
        """Read the expected tools, once per run.

        :raises DataError: with every line of the file without names.
        """
        yield self._live()

    def score(self, subject: Subject) -> Score | Failure:
        """Score *subject* outside a run; the file of expected tools is read again for each call."""
        return self._live().score(subject)

    def _live(self) -> LiveToolCorrectness:
        return LiveToolCorrectness(live_references(_METRIC, self.expected, self.column, "expected"))


@attrs.frozen
class LiveToolCorrectness:
    """A metric whose expected tools have been read."""

    references: References

    @property
    def subject_ids(self) -> Collection[str]:
        """The ids in the file of references; the run reports ids without a subject."""
        return self.references.ids

    def score(self, subject: Subject) -> Score | Failure:
        """Compare the tools of one subject."""
        references = self.references.of(subject)
        if isinstance(references, Failure):
            return references
        calls = calls_of(subject, _METRIC)
        if isinstance(calls, Failure):
            return calls
        return compare_names(Counter(call.name for call in calls), Counter(call.name for call in references))


def compare_names(called: Counter[str], expected: Counter[str]) -> Score:
    """Return the F1 of two multisets of names."""
    matched = (called & expected).total()
    total = called.total() + expected.total()
    if not total:
        return Score(
            1.0, details="no calls, and none was expected", signals={"precision": 1.0, "recall": 1.0, "matched": 0}
        )
    precision = matched / called.total() if called else 0.0
    recall = matched / expected.total() if expected else 0.0
    missing, extra = sorted((expected - called).elements()), sorted((called - expected).elements())
    lines = [f"{kind}: {', '.join(names)}." for kind, names in (("Missing", missing), ("Extra", extra)) if names]
    signals = {"precision": precision, "recall": recall, "matched": matched, "missing": missing, "extra": extra}
    details = f"precision {precision:.4g}, recall {recall:.4g}"
    return Score(2 * matched / total, details=details, feedback="\n".join(lines), signals=signals)
