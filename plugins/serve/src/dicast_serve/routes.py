"""Table of routes: the parameters and the answer of each. The OpenAPI document is generated from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs

from dicast import Ledger

from . import figures, progress, runs, subjects, table_answers
from .parameters import MOST, Parameter, choice, flag, in_path, integer, moment, number, text

Answer = Callable[[Ledger, Mapping[str, Any]], Mapping[str, Any]]
"""Computes the document from a ledger and the values of the parameters."""


@attrs.frozen
class Route:
    """A readable path with its *parameters*, and the *members* that its document has at least."""

    path: str
    summary: str
    answer: Answer
    parameters: tuple[Parameter, ...]
    members: tuple[str, ...]
    light: bool = False
    """Whether the answer takes little time and memory for any number of verdicts."""
    by_clock: bool = False
    """Whether the answer may change while the ledger does not: it separates live runs from dead ones by time."""

    @property
    def is_of_all(self) -> bool:
        """Whether the answer is computed from all verdicts of the ledger, and not from a run."""
        return not self.light and not self.path.startswith("/runs/")


KIND = text("subject_kind", "Only about subjects of this kind.")
RUN = text("run", "Only this run: an id, its first or last characters, or last.")
WINDOW = (
    moment("from", "From this time on; 7 days before to by default."),
    moment("to", "Before this time; now by default."),
)
FLOOR = number("floor", "The lowest acceptable mean.", 0.6)
SURE = number("min_confidence", "The least confidence of a verdict in mean, p50 and p10.", 0.0)

NUMBER = {"low": -1e300, "high": 1e300}
OUTCOMES = ("pass", "fail", "none", "open")
LIST = (
    in_path("run_id", "An id, its first or last characters, a run's name (its newest run), or last."),
    text("baseline", "The run to compare with, likewise; its values and outputs are next to the run's."),
    text(
        "label",
        "The metric, judge or criterion of outcomes, scores, reasons, changes and values; by default changes are of the gate's, outcomes of all that decide.",
    ),
    text("q", "Only subjects whose texts or reasons have all these words; with regex, that match this expression."),
    flag("regex", "q is a regular expression (RE2). Case does not matter."),
    choice("outcome", "pass, fail, none (without a score), or open (no verdict of a label that counts).", OUTCOMES),
    choice(
        "change", "Only subjects that pass and did not in the baseline, or the reverse.", ("fixed", "regressed", "any")
    ),
    flag("odds", "Only subjects that one label passes and another does not."),
    KIND,
    text("basis", "Only scores on this basis, such as human or model; with label, scores of the label."),
    number("min_value", "Only subjects with at least this value of the label.", **NUMBER),
    number("max_value", "Only subjects with at most this value of the label.", **NUMBER),
    choice(
        "sort",
        "worst: failures first, then the lowest; seq: as in the ledger; value: by the label in by; change: the change of the label.",
        ("worst", "seq", "subject", "outcome", "score", "value", "change"),
        "worst",
    ),
    text("by", "The label that value sorts by; by default label."),
    flag("down", "Reverse the order."),
)
"""Parameters that select and sort the subjects of a run."""

ROUTES = (
    Route(
        "/analytics/quality",
        "Quality of the judged work.",
        figures.quality,
        (
            *WINDOW,
            text("subject_kind", "The kind of the judged subjects.", default="turn"),
            choice(
                "group_by", "The groups of the figures.", ("model", "judge_kind", "rubric_id", "day", "none"), "model"
            ),
            SURE,
            FLOOR,
            text("judge", "Only this judge; may be repeated.", is_repeatable=True),
            RUN,
            flag("without_human", "Exclude people's verdicts from the figures."),
            flag("latest", "Only the newest verdict of each judge on each subject."),
        ),
        ("window", "current_pricing_version", "data"),
    ),
    Route(
        "/analytics/cost",
        "Money and tokens spent.",
        figures.cost,
        (
            moment("from", "From this time on; 7 days before to by default, and the whole run with run."),
            moment("to", "Before this time; now by default."),
            choice("group_by", "The groups of the sums.", ("model", "judge", "rubric", "session", "day"), "model"),
            flag("include_eval", "Add the cost of judging to the agent's own calls."),
            RUN,
        ),
        ("window", "current_pricing_version", "data", "total_usd"),
    ),
    Route(
        "/analytics/savings",
        "Cost of judging, its cost had every verdict been escalated, and the quality of the work.",
        figures.savings,
        (*WINDOW, SURE, FLOOR, RUN),
        ("window", "current_pricing_version", "data"),
    ),
    Route(
        "/analytics/turns/{id}",
        "A subject with every complete verdict on it. Only this answer has rationales, if they were captured.",
        subjects.subject,
        (
            in_path("id", "The subject's id."),
            text("subject_kind", "The kind of the subject.", default="turn"),
            text(
                "run",
                "The run whose output is shown; by default the last run that judged the subject and is not a tool's.",
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
            text("judge", "A judge; repeat it for each judge.", is_repeatable=True),
            text("run", "Only verdicts of this run; may be repeated.", is_repeatable=True),
            choice("between", "The raters to compare.", ("judges", "runs", "rubrics")),
            KIND,
            number("window", "The largest difference of agreeing scores.", 0.15),
            integer("worst", "How many of the worst disagreements to list.", 10, 0, 1000),
            choice(
                "gold", "people: also compare with the labels of all people together, as --gold people.", ("people",)
            ),
        ),
        ("n", "within", "kappa", "alpha", "alpha_ci", "base_rate", "failures", "worst"),
    ),
    Route(
        "/analytics/agreement/days",
        "How many subjects judges, runs or versions of a rubric agree on, by the day of the newest verdict on each.",
        figures.agreement_days,
        (
            text("judge", "A judge; repeat it for each judge.", is_repeatable=True),
            text("run", "Only verdicts of this run; may be repeated.", is_repeatable=True),
            choice("between", "The raters to compare.", ("judges", "runs", "rubrics")),
            KIND,
            number("window", "The largest difference of agreeing scores.", 0.15),
        ),
        ("window", "raters", "n", "within", "data"),
    ),
    Route(
        "/analytics/trend",
        "A label in the last runs of a pipeline: means and pass rates with their 95 % intervals.",
        runs.trend,
        (
            text("name", "The name of the pipeline.", required=True),
            text("label", "A metric, judge or criterion; by default the gate's in the newest run."),
            integer("limit", "The largest number of runs, the newest.", 30, 1, 1000),
        ),
        ("name", "label", "labels", "gate_lines", "data"),
        light=True,
    ),
    Route(
        "/analytics/backlog",
        "Started evaluations without an end: open ones of running runs, and interrupted ones.",
        figures.backlog,
        (KIND, RUN),
        ("open", "interrupted", "waiting", "data"),
        light=True,
    ),
    Route("/judges", "Verdicts by judge and kind of subject, the most first.", figures.judges, (), ("data",)),
    Route(
        "/runs",
        "The runs, newest start first.",
        runs.runs,
        (
            text("name", "Only runs of the pipeline with this name."),
            text("without", "No runs of the pipeline with this name, such as labels."),
            text("without_kind", "No runs of this kind, such as tool."),
            flag("failing", "Only the failed run of each pipeline that has no newer run with a passed or failed gate."),
            integer("limit", "The largest number of items.", 20, 1, 1000),
            text("cursor", "The next_cursor of the previous page: the runs after it."),
        ),
        ("data", "next_cursor"),
        light=True,
        by_clock=True,
    ),
    Route(
        "/runs/{run_id}",
        "A run, the document of its end, and the prompts of its task.",
        runs.run,
        (in_path("run_id", "An id, its first or last characters, a run's name (its newest run), or last."),),
        ("run", "document", "prompts"),
        light=True,
        by_clock=True,
    ),
    Route(
        "/runs/{run_id}/progress",
        "The judged subjects of a run, the mean of each label and the cost so far, and the time left while it runs.",
        progress.progress,
        (in_path("run_id", "An id, its first or last characters, a run's name (its newest run), or last."),),
        ("run_id", "state", "judged", "expected", "outcomes", "labels", "cost", "per_second", "seconds_left"),
        by_clock=True,
    ),
    Route(
        "/runs/{run_id}/rows",
        "The verdicts and failures of a run.",
        runs.rows,
        (
            in_path("run_id", "An id, its first or last characters, a run's name (its newest run), or last."),
            text("judge", "Only this judge."),
            KIND,
            text("subject", "Only about the subject with this id."),
            integer("seq", "Only this row of the ledger.", None, 1, MOST),
            number("min_score", "Only scores of at least this."),
            number("max_score", "Only scores of at most this."),
            attrs.evolve(
                flag("failed", "true: failures alone; false: verdicts alone."), default=None, schema={"type": "boolean"}
            ),
            choice("order", "seq: as in the ledger; score: failures first, then the lowest.", ("seq", "score"), "seq"),
            integer("limit", "The largest number of items.", 100, 1, 1000),
            integer("cursor", "The next_cursor of the previous page: the rows after it.", None, 0, MOST),
        ),
        ("run_id", "total", "data", "next_cursor"),
    ),
    Route(
        "/runs/{run_id}/subjects",
        "The subjects of a run, one row each, with their texts, reasons and values. Reasons have rationales, if they were captured.",
        table_answers.subjects,
        (
            *LIST,
            choice(
                "texts",
                "start: the first characters of each text; whole: the whole texts.",
                ("start", "whole"),
                "start",
            ),
            integer("limit", "The largest number of items.", 100, 1, 1000),
            integer("cursor", "The next_cursor of the previous page: the number of rows before it.", 0, 0, MOST),
        ),
        ("run_id", "baseline", "label", "labels", "total", "counts", "matched", "data", "next_cursor"),
    ),
    Route(
        "/runs/{run_id}/neighbors",
        "The place of a subject among the subjects of a run, the subjects before and after it, and its outcome under each label.",
        table_answers.neighbors,
        (
            *LIST,
            text("kind", "The kind of the subject.", required=True),
            text("subject", "The id of the subject.", required=True),
        ),
        ("run_id", "matched", "place", "previous", "next", "outcome", "labels"),
    ),
    Route(
        "/compare",
        "Comparison of run b with run a.",
        figures.compare,
        (
            text("a", "The baseline: an id of a run, its first or last characters, or last.", required=True),
            text("b", "The variant, likewise.", required=True),
            text("compare", "Only this comparison; may be repeated.", is_repeatable=True),
            number(
                "difference", "The largest difference of scores that does not matter; by default as in dicast compare."
            ),
            flag("allow_incomparable", "Also compare runs with other judges, or over other inputs."),
        ),
        ("comparable", "differs", "comparisons", "flips"),
    ),
)

AFTER = integer("after", "Start after this row of the ledger; Last-Event-ID takes precedence.", None, 0, MOST)
BRIEF = flag(
    "brief",
    "Send only the newest 30 verdicts of each half second, and the names of rounds; by default every verdict.",
)
LEDGER = text("ledger", "The name of a ledger; by default the first. /ledgers lists them.")
