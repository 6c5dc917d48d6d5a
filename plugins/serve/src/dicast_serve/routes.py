"""The table of routes: what each takes and what answers it. The OpenAPI document is made of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs

from dicast import Ledger

from . import figures, runs, subjects
from .parameters import MOST, Parameter, choice, flag, in_path, moment, number, text, whole

Answer = Callable[[Ledger, Mapping[str, Any]], Mapping[str, Any]]
"""Makes the document of a ledger and the values of the parameters."""


@attrs.frozen
class Route:
    """A path that is read, with its *parameters*, and the *members* that its document has at the least."""

    path: str
    summary: str
    answer: Answer
    parameters: tuple[Parameter, ...]
    members: tuple[str, ...]
    light: bool = False
    """Whether the answer takes little time and memory, however many verdicts there are."""
    by_clock: bool = False
    """Whether the answer may change while the ledger stands still: it tells runs that go on from those that are dead."""


KIND = text("subject_kind", "Only about subjects of this kind.")
RUN = text("run", "Only this run's: an id, its first or last characters, or last.")
WINDOW = (
    moment("from", "From this time on; 7 days before to by default."),
    moment("to", "Before this time; now by default."),
)
FLOOR = number("floor", "The least that a mean should be.", 0.6)
SURE = number("min_confidence", "What a verdict needs to enter mean, p50 and p10.", 0.0)

ROUTES = (
    Route(
        "/analytics/quality",
        "How good the judged work was.",
        figures.quality,
        (
            *WINDOW,
            text("subject_kind", "What was judged.", default="turn"),
            choice("group_by", "What the figures are of.", ("model", "judge_kind", "rubric_id", "none"), "model"),
            SURE,
            FLOOR,
            text("judge", "Only this judge's; may be repeated.", many=True),
            RUN,
            flag("without_human", "Leave verdicts of people out of the figures."),
            flag("latest", "Only the newest verdict of each judge on each subject."),
        ),
        ("window", "current_pricing_version", "data"),
    ),
    Route(
        "/analytics/cost",
        "What was spent.",
        figures.cost,
        (
            moment("from", "From this time on; 7 days before to by default, and the whole run with run."),
            moment("to", "Before this time; now by default."),
            choice("group_by", "What the sums are of.", ("model", "judge", "rubric", "session", "day"), "model"),
            flag("include_eval", "Add what judging has cost to the agent's own calls."),
            RUN,
        ),
        ("window", "current_pricing_version", "data", "total_usd"),
    ),
    Route(
        "/analytics/savings",
        "What judging has cost beside what escalating every verdict would have cost, with the quality of the work.",
        figures.savings,
        (*WINDOW, SURE, FLOOR, RUN),
        ("window", "current_pricing_version", "data"),
    ),
    Route(
        "/analytics/turns/{id}",
        "A subject with every verdict on it, whole. The one place that has rationales, where they were captured.",
        subjects.subject,
        (
            in_path("id", "The subject's id."),
            text("subject_kind", "What kind of subject it is.", default="turn"),
            text(
                "run",
                "The run whose output is shown; by default the last one that judged the subject and is no tool's.",
            ),
        ),
        ("data",),
        light=True,
    ),
    Route(
        "/analytics/agreement",
        "How far judges, runs or versions of a rubric agree.",
        figures.agreement,
        (
            text("judge", "Of this judge; give it for each of them.", many=True),
            text("run", "Only verdicts of this run; may be repeated.", many=True),
            choice("between", "What is compared.", ("judges", "runs", "rubrics")),
            KIND,
            number("window", "How far apart scores may be and agree.", 0.15),
            whole("worst", "How many of the worst disagreements to list.", 10, 0, 1000),
        ),
        ("n", "within", "kappa", "alpha", "alpha_ci", "base_rate", "failures", "worst"),
    ),
    Route(
        "/analytics/agreement/days",
        "How many subjects judges, runs or versions of a rubric agree on, by the day of the newest verdict on each.",
        figures.agreement_days,
        (
            text("judge", "Of this judge; give it for each of them.", many=True),
            text("run", "Only verdicts of this run; may be repeated.", many=True),
            choice("between", "What is compared.", ("judges", "runs", "rubrics")),
            KIND,
            number("window", "How far apart scores may be and agree.", 0.15),
        ),
        ("window", "raters", "n", "within", "data"),
    ),
    Route(
        "/analytics/backlog",
        "What was begun and has not ended.",
        figures.backlog,
        (KIND, RUN),
        ("open", "waiting", "data"),
        light=True,
    ),
    Route("/judges", "Who has judged what, the one with most verdicts first.", figures.judges, (), ("data",)),
    Route(
        "/runs",
        "The runs, the one that began last first.",
        runs.runs,
        (
            text("name", "Only runs of the pipeline with this name."),
            text("without", "No runs of the pipeline with this name, such as labels."),
            text("without_kind", "No runs of this kind, such as tool."),
            whole("limit", "At most so many.", 20, 1, 1000),
            text("cursor", "What next_cursor said: the runs after it."),
        ),
        ("data", "next_cursor"),
        light=True,
        by_clock=True,
    ),
    Route(
        "/runs/{run_id}",
        "A run, and the document of its end.",
        runs.run,
        (in_path("run_id", "An id, its first or last characters, a run's name (its newest run), or last."),),
        ("run", "document"),
        light=True,
        by_clock=True,
    ),
    Route(
        "/runs/{run_id}/rows",
        "The verdicts and failures of a run.",
        runs.rows,
        (
            in_path("run_id", "An id, its first or last characters, a run's name (its newest run), or last."),
            text("judge", "Only this judge's."),
            KIND,
            text("subject", "Only about the subject with this id."),
            whole("seq", "Only what stands in this row of the ledger.", None, 1, MOST),
            number("min_score", "Only scores from here on."),
            number("max_score", "Only scores up to here."),
            attrs.evolve(
                flag("failed", "true: failures alone; false: verdicts alone."), default=None, schema={"type": "boolean"}
            ),
            choice("order", "seq: as in the ledger; score: failures first, then the lowest.", ("seq", "score"), "seq"),
            whole("limit", "At most so many.", 100, 1, 1000),
            whole("cursor", "What next_cursor said: the rows after it.", None, 0, MOST),
        ),
        ("run_id", "total", "data", "next_cursor"),
    ),
    Route(
        "/compare",
        "What run b has over run a.",
        figures.compare,
        (
            text("a", "The baseline: an id of a run, its first or last characters, or last.", required=True),
            text("b", "The variant, likewise.", required=True),
            text("compare", "Only this comparison; may be repeated.", many=True),
            number("difference", "The least difference of scores that matters; as dicast compare has it without."),
            flag("allow_incomparable", "Compare runs that differ in more than their task, too."),
        ),
        ("comparable", "differs", "comparisons", "flips"),
    ),
)

AFTER = whole("after", "Begin behind this row of the ledger; Last-Event-ID counts before it.", None, 0, MOST)
BRIEF = flag(
    "brief",
    "Of the verdicts that come within half a second only the newest 30, and the figures in rounds; all without it.",
)
LEDGER = text("ledger", "Which ledger, by its name; the first without it. /ledgers lists them.")
