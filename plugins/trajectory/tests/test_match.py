"""Calls against reference calls: the modes, the rules of arguments, and the places of references."""

from __future__ import annotations

from collections import Counter
from itertools import combinations, permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dicast import ConfigError, Failure, Score, Subject, TraceEvent, Trail
from dicast.testing import run_pipeline, sample
from dicast_trajectory import Match, ToolCorrectness
from dicast_trajectory.matching import largest_matching, longest_common

CALLS = st.lists(st.sampled_from("abc"), max_size=5)


def call(name: str, **arguments: object) -> dict[str, object]:
    return {"name": name, "arguments": arguments}


def session(*calls: dict[str, object], kind: str = "session", turns: int = 1, **fields: object) -> Subject:
    events = tuple(
        TraceEvent(
            "tool.called", {"tool_use_id": f"c{n}", "tool_name": c["name"], "input": c["arguments"]}, None, "s", "s/1"
        )
        for n, c in enumerate(calls)
    )
    log = [TraceEvent("turn.completed", {}, None, "s", f"s/{n + 1}") for n in range(turns)]
    id_ = "s" if kind == "session" else "s/1"
    return Subject(kind, id_, events=events, session_id="s", trail=Trail(log, 1), **fields)


def scored(calls: list[object], reference: list[object], **options: object) -> Score:
    result = Match(**options).score(sample(calls, reference=reference))
    assert isinstance(result, Score)
    return result


@pytest.mark.parametrize(
    ("mode", "calls", "reference", "value", "share"),
    [
        ("exact", "ab", "ab", 1, 1),
        ("exact", "ba", "ab", 0, 1 / 2),
        ("exact", "abc", "ab", 0, 2 / 3),
        ("exact", "a", "ab", 0, 1 / 2),
        ("exact", "", "", 1, 1),
        ("exact", "a", "", 0, 0),
        ("in_order", "xaxb", "ab", 1, 1),
        ("in_order", "ba", "ab", 0, 1 / 2),
        ("in_order", "a", "", 1, 1),
        ("any_order", "xba", "ab", 1, 1),
        ("any_order", "a", "aa", 0, 1 / 2),
        ("superset", "ab", "aab", 0, 2 / 3),
        ("superset", "xaab", "aab", 1, 1),
        ("subset", "b", "ab", 1, 1),
        ("subset", "bb", "ab", 0, 1 / 2),
        ("subset", "", "ab", 1, 1),
        ("subset", "bx", "ab", 0, 1 / 2),
    ],
)
def test_each_mode_has_its_score_and_share(mode, calls, reference, value, share):
    assert scored([*calls], [*reference], mode=mode).value == value
    assert scored([*calls], [*reference], mode=mode, partial=True).value == pytest.approx(share)


@given(CALLS, CALLS)
def test_the_longest_common_subsequence_is_that_of_a_brute_force_search(calls, reference):
    common = next(
        size for size in range(len(calls), -1, -1) if {*combinations(calls, size)} & {*combinations(reference, size)}
    )
    pairs = longest_common(len(calls), len(reference), lambda a, b: calls[a] == reference[b]).pairs
    assert len(pairs) == common
    assert all(calls[a] == reference[b] for a, b in pairs)
    assert sorted(b for _, b in pairs) == [b for _, b in pairs]
    exact = scored(calls, reference, partial=True).value
    assert exact == pytest.approx(common / max(len(calls), len(reference)) if calls or reference else 1)
    assert (exact == 1) == (calls == reference)


@given(st.lists(st.lists(st.booleans(), min_size=4, max_size=4), max_size=4))
def test_the_largest_matching_is_that_of_a_brute_force_search(graph):
    best = max(sum(row[column] for row, column in zip(graph, order, strict=False)) for order in permutations(range(4)))
    pairs = largest_matching(len(graph), 4, lambda a, b: graph[a][b]).pairs
    assert len(pairs) == best == len({a for a, _ in pairs}) == len({b for _, b in pairs})
    assert all(graph[a][b] for a, b in pairs)


@given(CALLS, CALLS)
def test_any_order_and_subset_are_intersections_of_multisets(calls, reference):
    common = (Counter(calls) & Counter(reference)).total()
    assert scored(calls, reference, mode="any_order", partial=True).value == (
        common / len(reference) if reference else 1
    )
    assert scored(calls, reference, mode="superset", partial=True).value == (
        common / len(reference) if reference else 1
    )
    assert scored(calls, reference, mode="subset", partial=True).value == (common / len(calls) if calls else 1)
    f1 = ToolCorrectness(reference).score(sample(calls))
    assert f1.value == pytest.approx(2 * common / (len(calls) + len(reference)) if calls or reference else 1)
    assert f1.signals["precision"] <= 1 >= f1.signals["recall"]


@given(st.lists(st.sampled_from("ab"), max_size=5), st.lists(st.sampled_from("ab"), max_size=3))
def test_repeats_are_allowed_where_each_follows_its_first_call(calls, reference):
    def ways(calls: list[str], reference: list[str], seen: frozenset[str]) -> bool:
        if not calls:
            return not reference
        first, rest = calls[0], calls[1:]
        taken = bool(reference) and first == reference[0] and ways(rest, reference[1:], seen | {first})
        return taken or (first in seen and ways(rest, reference, seen))

    assert scored(calls, reference, allow_repeats=True).value == ways(calls, reference, frozenset())


@pytest.mark.parametrize(
    ("rules", "argument", "reference", "is_equal"),
    [
        ("exact", {"n": 1}, {"n": 1.0}, True),
        ("exact", {"n": True}, {"n": 1}, False),
        ("exact", {"n": 1, "m": 2}, {"n": 1}, False),
        ("subset", {"n": {"a": 1, "b": 2}, "m": 2}, {"n": {"a": 1}}, True),
        ("subset", {"n": {"b": 2}}, {"n": {"a": 1}}, False),
        ("subset", {}, {"n": None}, False),
        ("ignore", {"n": 1}, {"n": 2}, True),
        ({"n": "ignore"}, {}, {"n": 2}, True),
        ({"n": "numeric"}, {"n": "3.0"}, {"n": 3}, True),
        ({"n": "numeric"}, {"n": "many"}, {"n": 3}, False),
        ({"n": "numeric"}, {}, {"n": 3}, False),
        ({"n": "regex"}, {"n": "order-17"}, {"n": "^order-[0-9]+$"}, True),
        ({"n": "regex"}, {"n": 17}, {"n": "^x"}, False),
        ({"n": "similarity"}, {"n": "Weather  in rome"}, {"n": "weather in Rome"}, True),
        ({"n": "similarity"}, {"n": "hotels"}, {"n": "weather in Rome"}, False),
        ({"n": "similarity"}, {"n": "a", "m": 1}, {"n": "a", "m": 2}, False),
    ],
)
def test_arguments_are_compared_by_their_rules(rules, argument, reference, is_equal):
    assert scored([call("t", **argument)], [call("t", **reference)], arguments=rules).value == is_equal


@pytest.mark.parametrize(
    ("rule", "reference", "words"),
    [("numeric", "x", "as a number"), ("regex", "(", "no regular expression"), ("similarity", 3, "by similarity")],
)
def test_a_reference_that_its_rule_does_not_fit_is_a_failure(rule, reference, words):
    result = Match(arguments={"n": rule}).score(sample([call("t", n="1")], reference=[call("t", n=reference)]))
    assert isinstance(result, Failure)
    assert (result.kind, words in result.message) == ("missing_input", True)


def test_feedback_names_missing_extra_misplaced_and_differing_calls():
    calls = [call("book", day="Tuesday"), call("search"), call("rm")]
    reference = [call("search"), call("book", day="Monday"), call("pay", sum=3)]
    score = scored(calls, reference)
    assert score.feedback.splitlines() == [
        "Missing: pay(sum=3).",
        "Extra: rm (call 3).",
        "Differing arguments: book (call 1): day 'Tuesday', not 'Monday'.",
    ]
    assert scored(["b", "a"], ["a", "b"]).feedback == "Misplaced: b (call 1, reference 2)."
    assert score.signals["missing"] == ["pay"]


@pytest.mark.parametrize(
    "written",
    [
        '[{"name": "t", "arguments": {"n": 1}}]',
        {"tool_calls": [{"type": "function", "function": {"name": "t", "arguments": '{"n": 1}'}}]},
        [{"type": "tool_use", "name": "t", "input": {"n": 1}}],
        [{"name": "t", "args": {"n": 1}}],
        [{"function": "t", "arguments": '{"n": 1}'}],
        ["t"],
    ],
)
def test_calls_are_read_as_each_tool_writes_them(written):
    assert Match().score(session(call("t", n=1), reference=written)).value == 1


@pytest.mark.parametrize("reference", [None, 3, [3], {"other": 1}, "text"])
def test_a_subject_without_readable_references_is_a_failure(reference):
    for metric in (Match(), ToolCorrectness()):
        result = metric.score(session(call("t"), reference=reference))
        assert isinstance(result, Failure)
        assert result.kind == "missing_input"


def test_turns_of_one_session_are_never_compared_with_the_list_of_the_session():
    turn = session(call("t"), kind="turn", turns=2, context={"reference": ["t"]})
    result = Match().score(turn)
    assert isinstance(result, Failure)
    assert "on: [session]" in result.message
    by_turn = {"reference": {"s/1": ["t"], "s/2": []}}
    assert Match().score(session(call("t"), kind="turn", turns=2, context=by_turn)).value == 1
    assert Match().score(session(call("t"), kind="turn", context={"reference": ["t"]})).value == 1
    assert Match(column="gold.calls").score(session(call("t"), context={"gold": {"calls": ["t"]}})).value == 1


def test_unknown_arguments_are_a_failure_unless_they_are_ignored():
    event = TraceEvent("tool.called", {"tool_use_id": "c", "tool_name": "t", "input_hash": "0"}, None, "s", "s/1")
    subject = Subject("session", "s", events=(event,), reference=[call("t", n=1)])
    assert isinstance(Match().score(subject), Failure)
    assert Match(arguments="ignore").score(subject).value == 1


def test_a_tool_cycle_is_a_failure():
    assert isinstance(Match(reference=["t"]).score(Subject("tool_cycle", "c")), Failure)


def test_references_of_a_file_are_by_the_id_of_subject_or_session(tmp_path):
    file = tmp_path / "calls.jsonl"
    file.write_text('{"id": "s", "calls": ["t"]}\n{"id": "other", "calls": []}\n')
    assert Match(file).score(session(call("t"))).value == 1
    assert isinstance(Match(file).score(sample([], id="unknown")), Failure)
    file.write_text('{"id": "s", "calls": ["t"]}\n{"calls": []}\n{"id": "x", "calls": [3]}\n')
    with pytest.raises(Exception, match="calls.jsonl:2") as error:
        Match(file).score(session(call("t")))
    assert "calls.jsonl:3" in str(error.value)


def test_two_places_of_references_are_refused():
    with pytest.raises(ConfigError):
        Match(["t"], column="x")


def test_a_pipeline_scores_conversations_and_counts_the_missing_reference(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tool = '{"role": "assistant", "tool_calls": [{"id": "c", "type": "function", "function": {"name": "t", "arguments": "{}"}}]}'
    messages = f'"messages": [{{"role": "user", "content": "q"}}, {tool}, {{"role": "tool", "tool_call_id": "c", "content": "r"}}]'
    (tmp_path / "chats.jsonl").write_text(
        f'{{"id": "a", {messages}, "reference": ["t"]}}\n{{"id": "b", {messages}, "reference": []}}\n{{"id": "c", {messages}}}\n'
    )
    run = run_pipeline(
        'name: x\nsource: {traces/messages: {path: chats.jsonl, id: "{{ id }}", subjects: [session]}}\nmetrics: [trajectory/match]\n'
    )
    assert {verdict.subject_id: verdict.score for verdict in run.verdicts} == {"a": 1.0, "b": 0.0}
    assert run.document["failures"] == {"missing_input": 1}


def with_references(tmp_path, lines: list[str], metrics: str = "trajectory/match: {reference: calls.jsonl}") -> Any:
    """Run a pipeline over the sessions a and b, each with a call of the tool t; return the run."""
    tool = '{"role": "assistant", "tool_calls": [{"id": "c", "type": "function", "function": {"name": "t", "arguments": "{}"}}]}'
    messages = f'"messages": [{{"role": "user", "content": "q"}}, {tool}, {{"role": "tool", "tool_call_id": "c", "content": "r"}}, {{"role": "assistant", "content": "r"}}]'
    (tmp_path / "chats.jsonl").write_text(f'{{"id": "a", {messages}}}\n{{"id": "b", {messages}}}\n')
    (tmp_path / "calls.jsonl").write_text("".join(f'{{"id": "{id_}", "calls": ["t"]}}\n' for id_ in lines))
    source = 'source: {traces/messages: {path: chats.jsonl, id: "{{ id }}", subjects: [session, turn]}}'
    return run_pipeline(f"name: x\n{source}\nmetrics:\n  - {metrics}\n")


def unused(run: Any) -> list[Any]:
    warnings = (warning for warning in run.document["warnings"] if warning["kind"] == "unused_references")
    return [(warning["label"], warning["count"], warning["ids"]) for warning in warnings]


@pytest.mark.parametrize("metric", ["match: {reference", "tool_correctness: {expected"])
def test_lines_of_references_that_fit_no_subject_are_a_warning_with_their_number_and_first_ids(
    tmp_path, monkeypatch, metric
):
    monkeypatch.chdir(tmp_path)
    wrong = [f"x{number}" for number in range(7)]
    run = with_references(tmp_path, ["a", "b/1", *wrong], f"trajectory/{metric}: calls.jsonl}}")
    assert unused(run) == [(f"trajectory/{metric.partition(':')[0]}", 7, wrong[:5])]
    (message,) = (item["message"] for item in run.document["warnings"] if item["kind"] == "unused_references")
    assert "7 lines of references fit no subject that it judges: 'x0', 'x1', 'x2', 'x3', 'x4', …" in message


def test_references_that_all_fit_are_no_warning(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert unused(with_references(tmp_path, ["a", "b", "b/1"])) == []


@pytest.mark.parametrize(("on", "ids"), [("turn", ["a"]), ("session", [])])
def test_a_reference_of_a_session_with_several_turns_is_unused_by_a_metric_of_turns(tmp_path, monkeypatch, on, ids):
    monkeypatch.chdir(tmp_path)
    turn = '{"role": "user", "content": "q"}, {"role": "assistant", "content": "r"}'
    (tmp_path / "chats.jsonl").write_text(
        f'{{"id": "a", "messages": [{turn}, {turn}]}}\n{{"id": "b", "messages": [{turn}]}}\n'
    )
    (tmp_path / "calls.jsonl").write_text('{"id": "a", "calls": ["t"]}\n{"id": "b", "calls": []}\n')
    source = 'source: {traces/messages: {path: chats.jsonl, id: "{{ id }}", subjects: [session, turn]}}'
    options = f"reference: calls.jsonl, on: [{on}], on_failure: exclude"
    run = run_pipeline(f"name: x\n{source}\nmetrics:\n  - trajectory/match: {{{options}}}\n")
    assert [found for *_, found in unused(run)] == ([ids] if ids else [])


def test_a_reference_of_a_turn_is_unused_by_a_metric_of_sessions(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = with_references(tmp_path, ["a", "b", "b/1"], "trajectory/match: {reference: calls.jsonl, on: [session]}")
    assert unused(run) == [("trajectory/match", 1, ["b/1"])]


def test_a_subject_without_references_is_left_to_the_other_metrics_with_on_failure_exclude(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    metrics = "trajectory/match: {reference: calls.jsonl, on_failure: exclude}\n  - trajectory/limits: {max_calls: 3}"
    run = with_references(tmp_path, ["a", "a/1"], metrics)
    assert (run.document["scored"], run.document["failed"]) == (2, 0)
    assert {label: tally["scored"] for label, tally in run.document["metrics"].items()} == {
        "trajectory/match": 1,
        "trajectory/limits": 2,
    }


@pytest.mark.parametrize(("most", "passed"), [(0, False), (1, True)])
def test_a_clause_of_its_own_gates_the_limits_where_another_metric_is_excluded(tmp_path, monkeypatch, most, passed):
    monkeypatch.chdir(tmp_path)
    clauses = "[{on: trajectory/limits, min_pass_rate: 1}, {on: trajectory/match, min_score: 0.9, min_coverage: 0}]"
    metrics = f"trajectory/match: {{reference: calls.jsonl, on_failure: exclude}}\n  - trajectory/limits: {{max_calls: {most}}}"
    run = with_references(tmp_path, ["a"], f"{metrics}\ngate: {clauses}")
    assert run.document["gate"]["passed"] is passed
