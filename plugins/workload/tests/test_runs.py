"""From a line of the file of runs to a subject that is due."""

from __future__ import annotations

import gzip
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dicast import DataError, Due
from dicast.testing import run_pipeline
from dicast_workload import Runs

RUN = {"workload": "mend", "run": "r1"}
GOOD = {
    **RUN,
    "turns": [{"tool_calls": 2, "stop_reason": "end_turn", "output": "I found it."}, {"tool_calls": []}],
    "output": "It is done.",
    "cost_usd": "0.50",
    "llm_calls": 2,
    "hard_failures": 0,
    "delegate_calls": 1,
}


def test_a_run_becomes_a_subject_that_is_due_as_a_benchmark(written, suite):
    fields = {"model": "small", "seed": 7, "per_turn_scores": [0.5, 1.0], "baseline_cost_usd": 1.25, "note": "kept"}
    (due,) = written({**GOOD, **fields}, mend=suite).subjects()
    assert isinstance(due, Due)
    subject = due.subject
    assert (due.trigger, subject.kind, subject.id) == ("benchmark", "workload", "r1")
    assert (subject.input, subject.output) == ("Read it.\n\nMend it.", "It is done.")
    expected = {
        "workload": "mend",
        "model": "small",
        "per_turn_scores": [0.5, 1.0],
        "assertion_failures": [],
        "assertions_checked": 8,
        "evaluate": {"expect_substring_in_final_response": "done"},
        "cost_usd": "0.50",
        "baseline_cost_usd": "1.25",
        "provenance": {"seed": 7, "suite_version": 1},
        "signal_strength": "high",
        "note": "kept",
    }
    assert expected.items() <= subject.context.items()
    assert "assertions_unchecked" not in subject.context
    assert "output" not in subject.context


@pytest.mark.parametrize(
    ("run", "id_"),
    [
        ({"run": "r1", "model": "small"}, "r1"),
        ({"run": 3, "model": "small"}, "mend/small/3"),
        ({"run": 3}, "mend/3"),
    ],
)
def test_a_number_is_a_run_of_one_workload_and_model(read, run, id_):
    (subject,) = read({"workload": "mend", **run})
    assert subject.id == id_


@pytest.mark.parametrize(
    ("texts", "output"),
    [
        ({}, None),
        ({"output": "a", "final_response_text": "b"}, "a"),
        ({"final_response_text": "b"}, "b"),
        ({"assistant_response_text": "c"}, "c"),
        ({"final_response_text": None}, ""),
        ({"final_response_text": "", "assistant_response_text": "c"}, "c"),
        ({"turns": [{"output": "x"}, {"final_response_text": "y"}]}, "y"),
        ({"turns": [{"output": "x"}, {}]}, None),
        ({"output": "", "turns": [{"output": "x"}]}, ""),
        ({"output": {"answer": 1}}, {"answer": 1}),
    ],
)
def test_final_text_has_several_names(read, texts, output):
    (subject,) = read({**RUN, **texts})
    assert subject.output == output


def test_hints_of_the_block_stand_where_a_judge_with_a_model_reads_them(read):
    block = "{grounding_tokens: [a], forbidden_grounding: [b], rubric: hybrid, partial_credit: {enabled: true}}"
    (subject,) = read({**RUN, "input": "Mend!"}, mend=f"name: mend\nevaluate: {block}")
    assert (subject.context["grounding_tokens"], subject.context["forbidden_grounding"]) == (["a"], ["b"])
    assert subject.context["evaluate"]["partial_credit"] == {"enabled": True}
    assert subject.input == "Mend!"


def test_without_a_suite_nothing_is_added(read):
    (subject,) = read({**RUN, "assertion_failures": ["x"], "assertions_checked": 4, "session_id": "s"})
    assert "evaluate" not in subject.context
    assert (subject.context["assertion_failures"], subject.context["assertions_checked"]) == (["x"], 4)
    assert (subject.input, subject.session_id) == (None, "s")


def test_provenance_stands_beside_the_figures_or_by_itself(read):
    top_level = {"commit": "abc", "dirty": True, "temperature": 0, "seed": 1}
    (subject,) = read({**RUN, **top_level, "provenance": {"commit": "abc", "branch": "main", "dirty": None}})
    assert subject.context["provenance"] == {**top_level, "branch": "main"}
    assert not top_level.keys() & subject.context.keys()


def changed(**changes):
    return {key: value for key, value in {**GOOD, **changes}.items() if value is not None}


@pytest.mark.parametrize(
    ("run", "failures"),
    [
        (GOOD, []),
        (changed(cost_usd=0.51), ["max_total_cost_usd 0.5, got 0.51"]),
        (changed(llm_calls=1), ["min_llm_calls 2, got 1"]),
        (changed(hard_failures=1), ["max_hard_failures 0, got 1"]),
        (changed(delegate_calls=0), ["min_delegate_calls 1, got 0"]),
        (
            changed(turns=[{"tool_calls": 0, "stop_reason": "max_tokens", "output": "Nothing."}]),
            [
                "turn 1: min_tool_calls 1, got 0",
                "turn 1: contains_substring 'Found', not found",
                "turn 1: stop_reason 'end_turn', got 'max_tokens'",
            ],
        ),
        (
            changed(turns=[{"tool_call_count": 4, "stop_reason": "end_turn", "output": "FOUND"}]),
            ["turn 1: max_tool_calls 3, got 4"],
        ),
        (changed(turns=[]), ["turn 1: expected, and the run has 0 turns"]),
    ],
)
def test_assertions_that_do_not_hold_are_named(read, suite, run, failures):
    (subject,) = read(run, mend=suite)
    assert subject.context["assertion_failures"] == failures


def test_assertions_without_a_figure_are_not_checked(read, suite):
    (subject,) = read(RUN, mend=suite)
    assert subject.context["assertion_failures"] == []
    assert subject.context["assertions_checked"] == 0
    assert subject.context["assertions_unchecked"] == [
        "turn 1: min_tool_calls 1",
        "turn 1: max_tool_calls 3",
        "turn 1: contains_substring 'Found'",
        "turn 1: stop_reason 'end_turn'",
        "max_total_cost_usd 0.5",
        "min_llm_calls 2",
        "max_hard_failures 0",
        "min_delegate_calls 1",
    ]


def test_what_the_harness_has_asserted_stays(read, suite):
    two = changed(llm_calls=1, assertion_failures=["too slow"], assertions_checked=["slow", "wide"])
    (listed,) = read(two, mend=suite)
    assert listed.context["assertion_failures"] == ["too slow", "min_llm_calls 2, got 1"]
    assert listed.context["assertions_checked"] == 10
    (counted,) = read({**GOOD, "assertion_failures": 2, "assertions_checked": 5}, mend=suite)
    assert counted.context["assertion_failures"] == ["2 reported by the run"]
    assert counted.context["assertions_checked"] == 13


def test_what_the_whole_run_expects_of_turns_holds_for_each_and_its_text_for_the_last(read):
    suite = "name: mend\nexpect: {max_tool_calls: 1, stop_reason: end_turn, contains_substring: DONE}"
    turns = [{"tool_calls": 1, "stop_reason": "end_turn", "output": "-"}, {"tool_calls": 2, "stop_reason": "x"}]
    (subject,) = read({**RUN, "turns": turns, "output": "all done"}, mend=suite)
    assert subject.context["assertion_failures"] == [
        "turn 2: max_tool_calls 1, got 2",
        "turn 2: stop_reason 'end_turn', got 'x'",
    ]
    (untold,) = read({**RUN, "output": "no"}, mend=suite)
    assert untold.context["assertion_failures"] == ["contains_substring 'DONE', not found"]
    assert untold.context["assertions_unchecked"] == [
        "every turn: max_tool_calls 1",
        "every turn: stop_reason 'end_turn'",
    ]


@pytest.mark.parametrize(
    ("run", "message"),
    [
        ({"run": 1}, "the run needs 'workload'"),
        ({"workload": "mend"}, "null cannot be an id"),
        ({"workload": "mend", "run": ""}, "an empty string cannot be an id"),
        ({"workload": "mend", "run": True}, "null cannot be an id"),
        ({"workload": "mnd", "run": 1}, "unknown workload 'mnd' (the suite has mend), did you mean 'mend'?"),
        ({**RUN, "modle": "x"}, "unknown key 'modle', did you mean 'model'?"),
        ({**RUN, "model": 3}, "model is a text, not 3"),
        ({**RUN, "cost_usd": "much"}, "cost_usd is an amount in usd, 0 or more, not 'much'"),
        ({**RUN, "baseline_cost_usd": -1}, "baseline_cost_usd is an amount in usd, 0 or more, not -1"),
        ({**RUN, "cost_usd": True}, "cost_usd is an amount in usd, 0 or more, not True"),
        ({**RUN, "per_turn_scores": [1.5]}, "per_turn_scores is a list of numbers from 0 to 1"),
        ({**RUN, "per_turn_scores": 1}, "per_turn_scores is a list of numbers from 0 to 1"),
        ({**RUN, "assertion_failures": "x"}, "assertion_failures is a whole number, 0 or more, not 'x'"),
        ({**RUN, "llm_calls": 1.5}, "llm_calls is a whole number, 0 or more, not 1.5"),
        (
            {**RUN, "turns": [{"tool_calls": -1}]},
            "tool_calls is a whole number, 0 or more, not -1 (turns[0].tool_calls)",
        ),
        ({**RUN, "turns": [4]}, "turns[0] is a mapping, not 4"),
        ({**RUN, "turns": {}}, "turns is a list, not {}"),
        ({**RUN, "provenance": "main"}, "provenance is a mapping, not 'main'"),
        (
            {**RUN, "commit": "abc", "provenance": {"commit": "def"}},
            "commit is 'def' here and 'abc' beside the other keys; keep one (provenance.commit)",
        ),
        ({**RUN, "dirty": True, "provenance": {"dirty": 1}}, "dirty is 1 here and True beside the other keys"),
        ({**RUN, "start": 1767222000}, "start is an ISO 8601 time, not 1767222000 (start)"),
        ({**RUN, "provenance": {"end": "noon"}}, "end is an ISO 8601 time, not 'noon' (provenance.end)"),
    ],
)
def test_a_wrong_run_is_refused_with_its_line(written, suite, run, message):
    source = written(GOOD, run, mend=suite)
    with pytest.raises(DataError) as caught:
        source.check()
    assert message in str(caught.value)
    assert {(problem.file, problem.line) for problem in caught.value.problems} == {(str(source.path), 2)}
    with pytest.raises(DataError, match=":2: "):
        list(source.subjects())


def test_all_wrong_runs_are_named_at_once(written, suite):
    with pytest.raises(DataError) as caught:
        written({"run": 1}, {**RUN, "model": 1, "cost_usd": "x"}, RUN, RUN, mend=suite).check()
    lines = [problem.line for problem in caught.value.problems]
    assert lines == [1, 2, 2, 4]
    assert "duplicate run 'r1', first on line 3" in str(caught.value)


def test_a_file_without_runs_is_refused(written, suite):
    with pytest.raises(DataError, match="no subjects"):
        written(mend=suite).check()


def test_gzip_is_read_and_the_digest_is_of_runs_and_suite(tmp_path, written, suite):
    plain = written(GOOD, mend=suite)
    digest = plain.check()
    packed = tmp_path / "packed.jsonl.gz"
    packed.write_bytes(gzip.compress(json.dumps(GOOD).encode() + b"\n"))
    assert Runs(packed, plain.workloads).check() == digest
    assert Runs(plain.path).check() != digest
    assert written(GOOD, mend=suite + "# changed\n").check() != digest
    assert written({**GOOD, "llm_calls": 3}, mend=suite).check() != digest


def test_verdicts_are_of_the_trigger_benchmark_and_of_each_workloads_own_block(tmp_path, written, suite):
    written(
        {**GOOD, "per_turn_scores": [0.5]},
        {"workload": "explain", "run": 1, "output": "as I see it", "per_turn_scores": [1.0]},
        mend=suite,
        explain="name: explain\nevaluate: {grounding_tokens: [cache], forbidden_grounding: [see]}",
    )
    text = f"source: {{workload/runs: {{path: {tmp_path}/runs.jsonl, workloads: {tmp_path}/suite}}}}\njudges: [heuristic/workload]"
    done = run_pipeline(text)
    assert [(verdict.score, verdict.confidence) for verdict in done.verdicts] == [(0.75, 0.8), (0.5, 0.8)]
    assert {event.payload["trigger"] for event in done.of("eval.started")} == {"benchmark"}


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
)
KEYS = ["workload", "run", "model", "turns", "cost_usd", "llm_calls", "output", "provenance", "per_turn_scores", "x"]


@settings(deadline=None)  # files are written
@given(st.dictionaries(st.sampled_from(KEYS), json_values), st.booleans())
def test_any_record_is_a_subject_or_refused_in_words(tmp_path_factory, record, with_suite):
    folder = tmp_path_factory.mktemp("runs")
    (folder / "runs.jsonl").write_text(json.dumps({"workload": "mend", "run": 1, **record}))
    (folder / "mend.yaml").write_text("name: mend\nturns: [{expect: {max_tool_calls: 1}}]")
    source = Runs(folder / "runs.jsonl", folder / "mend.yaml" if with_suite else ())
    refused = []
    try:
        source.check()
    except DataError as error:
        refused = error.problems
    assert all(problem.line == 1 and problem.message for problem in refused)
    for due in () if refused else source.subjects():
        json.dumps(due.subject.context, allow_nan=False)
