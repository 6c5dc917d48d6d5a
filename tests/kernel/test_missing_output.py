"""A missing output is not an empty one: nobody is asked about it, and it has no score."""

from __future__ import annotations

from pathlib import Path

import pytest

import dicast
from dicast import DataError, Judgment, Problem, Score, Subject, TraceEvent, judge, metric
from dicast.testing import run_pipeline

NOTHING = Subject("row", "nothing", "asked")
EMPTY = Subject("row", "empty", "asked", "")


@metric(tier="proxy")
def long_enough(subject: Subject) -> Score:
    """Would score a missing output like an empty one."""
    return Score(float(len(subject.text) >= 0))


@metric(tier="proxy", needs_output=False)
def polite_question(subject: Subject) -> Score:
    """About the input alone."""
    return Score(float(subject.input == "asked"))


@judge()
def by_output(subject: Subject) -> Judgment:
    """About the output."""
    return Judgment(1.0, 1.0, "heuristic")


@metric(tier="truth", cost="0.02 usd")
def costly(subject: Subject) -> Score:
    """Costs money."""
    return Score(1.0)


@judge(needs_output=False)
def by_input(subject: Subject) -> Judgment:
    """About the input alone."""
    return Judgment(1.0, 1.0, "heuristic")


def failures(pipeline: str, subjects: list[Subject], **components: object) -> dict[str, str]:
    done = run_pipeline(pipeline, subjects=subjects, components=components)
    ends = [event.payload for event in done.events if event.type == "eval.failed"]
    return {f"{failure['judge']} {failure['subject_id']}": str(failure["failure_mode"]) for failure in ends}


def test_a_missing_output_is_no_empty_text_to_a_metric_that_reads_text():
    components = {"text": long_enough(), "inner": by_output()}
    assert failures("metrics: [text]", [NOTHING, EMPTY], **components) == {"metrics nothing": "missing_input"}
    assert failures("judges: [inner]", [NOTHING, EMPTY], **components) == {"inner nothing": "missing_input"}
    nested = "judges: [{llm/jury: {judges: [inner, inner]}}, {hybrid/cascade: {stages: [inner, inner]}}]"
    assert failures(nested, [NOTHING, EMPTY], **components) == {
        "llm/jury nothing": "missing_input",
        "hybrid/cascade nothing": "missing_input",
    }


def test_nothing_is_reserved_for_a_missing_output():
    text = "metrics: [costly]\nbudget: {run: 0.01 usd}"
    done = run_pipeline(text, subjects=[NOTHING], components={"costly": costly()})
    assert done.document["failures"] == {"missing_input": 1}
    assert [event.type for event in done.events if event.type.startswith(("spend", "budget"))] == []


def test_what_judges_something_else_is_asked_about_a_subject_without_an_output():
    components = {"question": polite_question(), "quiet": by_input(), "text": long_enough()}
    assert failures("metrics: [question]\njudges: [quiet]", [NOTHING], **components) == {}
    either = "judges: [{hybrid/cascade: {stages: [quiet, quiet]}}, {llm/jury: {judges: [quiet, quiet]}}]"
    assert failures(either, [NOTHING], **components) == {}


def test_trace_events_are_judged_without_an_output():
    session = Subject("session", "s", events=(TraceEvent("session.ended", {"disposition": "completed"}),))
    assert failures("metrics: [text]", [session], text=long_enough()) == {}


CALLED = TraceEvent("tool.called", {"tool_use_id": "u", "tool_name": "book", "input": {"seats": 1}})
CYCLE = Subject("tool_cycle", "u", {"tool_name": "book", "input": {"seats": 1}}, reference="x", events=(CALLED,))
OF_OUTPUTS = [
    "proxy/format",
    "proxy/keywords: {required: [a]}",
    "proxy/length: {min: 1}",
    "proxy/syntax",
    "feedback/string_similarity",
    "feedback/retrieval",
    "feedback/classification",
    "feedback/code_pipeline",
    "feedback/multi_objective: {objectives: {a: proxy/format}}",
    "agent_steps/subtask_planning",
    "agent_steps/subtask_execution",
    "agent_steps/tool_step_utility",
    "agent_steps/synthesis",
    "agent_steps/combined",
]


@pytest.mark.parametrize("written", OF_OUTPUTS, ids=lambda written: written.partition(":")[0])
def test_what_reads_outputs_alone_has_none_in_a_tool_cycle_with_events(written):
    assert failures(f"metrics:\n- {written}\n", [CYCLE]) == {"metrics u": "missing_input"}


def test_what_reads_the_events_of_a_tool_cycle_needs_no_output():
    text = "metrics: [proxy/tool_params_schema: {tools: {book: {type: object}}}]\njudges: [heuristic/tool_cycle]"
    done = run_pipeline(text, subjects=[CYCLE])
    assert [event.payload["judge"] for event in done.of("eval.completed")] == ["metrics", "heuristic/tool_cycle"]


def test_a_metric_and_a_judge_may_need_an_output_beside_trace_events_too():
    @metric(tier="proxy", needs_output="always")
    def words(subject: Subject) -> Score:
        return Score(float(len(subject.text.split()) > 0))

    @judge(needs_output="always")
    def reader(subject: Subject) -> Judgment:
        return Judgment(1.0, 1.0, "heuristic")

    failed_events = failures("metrics: [words]\njudges: [reader]", [CYCLE, EMPTY], words=words(), reader=reader())
    assert failed_events == {"metrics u": "missing_input", "reader u": "missing_input"}


def test_a_metric_that_cannot_judge_is_left_out_where_the_file_says_so():
    text = "metrics: [question, {text: {on_failure: exclude}}]"
    assert failures(text, [NOTHING], text=long_enough(), question=polite_question()) == {}


def test_no_record_is_made_of_a_missing_output():
    done = run_pipeline("extractors: [extract/json_path: {path: $.x, into: x}]", subjects=[NOTHING, EMPTY])
    assert done.document["failures"] == {"missing_input": 1}
    assert [event.subject_id for event in done.events if event.type == "record.completed"] == ["empty"]


class Lacking:
    """A source that finds no output in its first pass."""

    kinds = ("row",)
    no_output = Problem("no row has an output")

    def check(self) -> str:
        return "digest"

    def subjects(self):
        yield NOTHING


@pytest.mark.parametrize(
    "text", ["metrics: [text]", "judges: [inner]", "extractors: [extract/json_path: {path: $, into: x}]"]
)
def test_a_source_without_any_output_is_refused_where_outputs_are_judged(text):
    components = {"text": long_enough(), "inner": by_output()}
    with pytest.raises(DataError, match="no row has an output"):
        run_pipeline(text, source=Lacking(), components=components)


def test_a_source_without_any_output_is_read_where_it_is_made_or_not_judged(tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert (
        run_pipeline("metrics: [question]", source=Lacking(), components={"question": polite_question()}).exit_code == 0
    )
    result = "task: {task/command: {command: [echo, made]}}\nmetrics: [text]"
    assert run_pipeline(result, source=Lacking(), components={"text": long_enough()}).exit_code == 0


def test_subjects_from_a_program_without_an_output_are_unscored(tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = dicast.run("metrics: [proxy/length: {min: 0}]\n", subjects=[NOTHING, EMPTY])
    assert (run.scored, run.failures, run.exit_code) == (1, {"missing_input": 1}, 3)
