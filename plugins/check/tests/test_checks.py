from __future__ import annotations

import json
import pickle
import time

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dicast
from dicast import Answered, ConfigError, Failure, Score, Subject, run
from dicast.testing.pipeline import Bench
from dicast_check import (
    Assertions,
    Contains,
    ContainsAll,
    ContainsAny,
    ContainsJson,
    Equals,
    Icontains,
    IsJson,
    MaxCost,
    MaxLatency,
    OneOf,
    Regex,
    StartsWith,
)  # fmt: skip


def row(output, reference=None, **context):
    return Subject("row", "1", "what?", output, reference, context)


def holds(check, output, reference=None, **context):
    score = check.score(row(output, reference, **context))
    assert isinstance(score, Score), score
    return score.value == 1.0


def refused(tmp_path, name, **options):
    with pytest.raises(ConfigError) as caught:
        Bench(tmp_path).build("metric", f"check/{name}", options)
    return str(caught.value)


# text


@pytest.mark.parametrize(
    ("check", "passing", "failing"),
    [
        (Contains("Ankara"), ["It is Ankara.", "Ankara"], ["ankara", "", "Istanbul"]),
        (Contains("Ankara", ignore_case=True), ["ANKARA"], ["Ancara"]),
        (Icontains("STRASSE"), ["Hauptstraße 1", "strasse"], ["str"]),
        (Contains(7), ["7 of 9"], ["seven"]),
        (ContainsAny(["a", "b"]), ["xb", "a"], ["c", ""]),
        (ContainsAll(["a", "b"]), ["b and a"], ["a", "b"]),
        (StartsWith("Dear"), ["Dear Ada"], [" Dear Ada", "dear Ada"]),
        (Regex(r"^\w+$"), ["one"], ["two words", ""]),
        (Regex("ankara", ignore_case=True), ["ANKARA"], ["Istanbul"]),
        (Regex(r"^(?!.*sorry).*$"), ["fine"], ["sorry, no"]),  # RE2 has no lookahead: Python's re reads it
        (Equals("four"), ["four"], ["four ", "Four", "a four"]),
        (Equals("Four", ignore_case=True), ["FOUR"], ["five"]),
        (Equals(4), ["4", "4.0", 4], ["four", "44", "", True]),
        (Equals(True), ["true", True], ["True", 1, "1"]),
        (Equals({"a": [1]}), ['{"a": [1]}', {"a": [1]}], ['{"a": [2]}', "no JSON", {"a": [1], "b": 1}]),
        (Equals({"a": [True]}), ['{"a": [true]}'], ['{"a": [1]}']),
        (Equals("4"), ["4", 4], ["04"]),
        (OneOf(["yes", "no", 7]), ["yes", "7", 7], ["Yes", "maybe", ""]),
    ],
)
def test_a_check_of_text_holds_where_it_should(check, passing, failing):
    assert [output for output in passing if not holds(check, output)] == []
    assert [output for output in failing if holds(check, output)] == []


def test_what_does_not_hold_is_said_in_words():
    assert Contains("Ankara").score(row("Rome")).details == "the output does not contain 'Ankara'"
    assert Contains("Rome", negate=True).score(row("Rome")).details == "the output contains 'Rome'"
    assert ContainsAll(["a", "b", "c"]).score(row("b")).details == "the output does not contain ['a', 'c']"


TEXTS = st.text(max_size=12)
CHECKS = st.one_of(
    st.builds(Contains, TEXTS), st.builds(StartsWith, TEXTS), st.builds(Equals, TEXTS),
    st.builds(OneOf, st.lists(TEXTS, min_size=1)), st.builds(ContainsAny, st.lists(TEXTS, min_size=1)),
    st.just(IsJson()), st.just(ContainsJson()),
)  # fmt: skip


@given(CHECKS, TEXTS)
def test_negate_turns_every_answer_round(check, output):
    import attrs

    assert holds(attrs.evolve(check, negate=True), output) is not holds(check, output)


@given(TEXTS, TEXTS, TEXTS)
def test_contains_is_what_python_says(before, needle, after):
    assert holds(Contains(needle), before + needle + after)
    assert holds(Contains(needle), before) is (needle in before)
    assert holds(StartsWith(needle), before) is before.startswith(needle)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**40), 2**40) | TEXTS,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    )
)
def test_json_equals_itself_written_or_not(value):
    if not isinstance(value, str | None):
        assert holds(Equals(value), json.dumps(value))
        assert holds(Equals(value), value)


# values from the row


def test_a_value_is_a_template_over_the_row():
    assert holds(Contains("{{ expected }}"), "It is Ankara.", expected="Ankara")
    assert holds(Contains("is {{ meta.city }}, {{reference}}"), "It is Ankara, yes", "yes", meta={"city": "Ankara"})
    assert holds(OneOf("{{ choices }}"), "b", choices=["a", "b"])
    assert holds(Equals("{{ total }}"), "7", total=7)
    assert holds(Equals(), "four", "four")
    assert holds(Regex("^{{ start }}"), "abc", start="a.")


def test_a_column_that_the_row_lacks_is_missing_and_named():
    score = Contains("{{ expectd }}").score(row("x", expected="x"))
    assert score == Failure(
        "missing_input",
        "the row has no value for 'expectd'; it has id, input, output, expected, did you mean 'expected'?",
    )
    assert Equals().score(row("x")).kind == "missing_input"
    assert Regex("{{ pattern }}").score(row("x", pattern="(")).kind == "missing_input"
    assert OneOf("{{ choices }}").score(row("x", choices="a, b")).kind == "missing_input"


def test_a_null_column_is_no_suggestion_for_itself():
    score = Equals("{{ temperature }}").score(row("x", temperature=None, city="Bonn"))
    assert score == Failure("missing_input", "the row has no value for 'temperature'; it has id, input, output, city")


def test_a_field_of_the_output_is_checked_and_a_missing_one_fails_either_way():
    assert holds(Equals(7, field="total"), '{"total": 7}')
    assert holds(Contains("a", field="/names/0"), {"names": ["abc"]})
    for negate in (False, True):
        score = Contains("a", field="nmae", negate=negate).score(row('{"name": "a"}'))
        assert (score.value, score.details) == (0.0, "the output has no field 'nmae'")


@pytest.mark.parametrize("negate", [False, True])
@pytest.mark.parametrize("check", [Contains, Equals, IsJson, ContainsJson, Regex])
def test_a_row_without_an_output_is_missing_however_it_is_asked(check, negate):
    options = {} if check in (IsJson, ContainsJson) else {"pattern" if check is Regex else "value": "null"}
    score = check(**options, negate=negate).score(row(None))
    assert score == Failure("missing_input", "row 1 has no output to check; an empty text would count as an output")
    item = {"check": check.name, "negate": negate, **({"value": "null"} if options else {})}
    assert Assertions().score(row(None, **{"assert": [item]})) == score


def test_limits_alone_need_no_output():
    limit = {"check": "max_cost", "value": 1}
    assert Assertions().score(row(None, cost=0.5, **{"assert": [limit]})).value == 1.0
    assert Assertions().score(row(None, cost=0.5, **{"assert": [limit, {"check": "is_json"}]})).kind == "missing_input"


@pytest.mark.parametrize("check", [ContainsAny, ContainsAll, OneOf])
def test_a_list_of_values_comes_from_the_file_or_from_a_column_and_is_no_text(check):
    assert holds(check("{{ choices }}"), "a", choices=["a"])
    assert holds(check("{{ choices }}"), "a", choices="a")
    for choices in ("a,b", '["a"]', "a\nb", {"a": 1}, [None, " "]):
        score = check("{{ choices }}").score(row("a", choices=choices))
        assert score.message.startswith("values is a list of one or more, and '{{ choices }}' is ")
    assert check("{{ choices }}").score(row("a", choices=[])).kind == "missing_input"
    with pytest.raises(ConfigError, match="values is a list"):
        check("a,b")


# JSON


def test_json_is_read_whole_or_found_inside():
    assert [holds(IsJson(), text) for text in ('{"a": 1}', "[]", "3", '"x"', "{a: 1}", "", "Here: {}")] == [
        True, True, True, True, False, False, False,
    ]  # fmt: skip
    assert [holds(ContainsJson(), text) for text in ('Here: {"a": 1}.', "```json\n[1]\n```", "{a} {}", "{", "no", "3")] == [
        True, True, True, False, False, False,
    ]  # fmt: skip


SCHEMA = {"type": "object", "required": ["a"], "properties": {"a": {"type": "integer"}}}


def test_a_schema_has_to_fit():
    pytest.importorskip("jsonschema_rs")
    assert holds(IsJson(SCHEMA), '{"a": 1}')
    score = IsJson(SCHEMA).score(row('{"a": "x"}'))
    assert score.details.startswith("the output breaks the schema at /a: ")
    assert holds(ContainsJson(SCHEMA), 'first {"b": 1}, then {"a": 1}')
    assert not holds(ContainsJson(SCHEMA), "first {}, then [1]")


def test_what_json_does_not_have_is_no_json_in_a_text():
    assert not holds(ContainsJson(), 'x {"a": NaN}')
    assert not holds(ContainsJson(), "x [-Infinity]")


def test_brackets_that_are_never_closed_do_not_hold_a_run(monkeypatch):
    monkeypatch.setattr("dicast_check.structure._READ", 100_000)
    text = "[" * 900 + "1," * 50_000
    read = []
    monkeypatch.setattr(
        "dicast_check.structure.json.JSONDecoder.raw_decode",
        lambda decoder, text, start, plain=json.JSONDecoder.raw_decode: (
            read.append(start) or plain(decoder, text, start)
        ),
    )
    assert not holds(ContainsJson(), text)
    assert len(read) == 1
    assert holds(pickle.loads(pickle.dumps(IsJson(SCHEMA))), '{"a": 1}')


def test_without_the_library_a_schema_says_what_to_install(monkeypatch):
    monkeypatch.setattr("dicast_check.structure.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"dicast\[schemas\]"):
        IsJson(SCHEMA)
    assert IsJson().schema is None


@pytest.mark.slow
@pytest.mark.parametrize(
    "text", ["[" * 100_000, "{" * 100_000, '{"a":' * 50_000, '["' + "x" * 200_000, "[1," * 100_000]
)
def test_a_text_of_brackets_takes_no_time(text):
    began = time.process_time()
    holds(ContainsJson(), text)
    assert time.process_time() - began < 5


def test_a_pattern_that_backtracks_takes_no_time_where_re2_reads_it():
    assert not holds(Regex("^(a+)+$"), "a" * 5000 + "!")


# what it took


def with_metrics(**metrics):
    return Answered.of(row("x"), {"default": {"content": "x", "metrics": metrics}})


def test_limits_compare_what_the_task_recorded_or_the_row_has():
    assert MaxLatency(2).score(with_metrics(latency_seconds=1.5)).value == 1.0
    assert MaxLatency(1).score(with_metrics(latency_seconds=1.5)).value == 0.0
    assert MaxLatency(1, negate=True).score(with_metrics(latency_seconds=1.5)).value == 1.0
    assert MaxCost(0.3).score(with_metrics(cost=0.3)).value == 1.0
    both = {name: {"content": "x", "metrics": {"cost": 0.1, "latency_seconds": 2.0}} for name in "ab"}
    assert MaxCost(0.15).score(Answered.of(row("x"), both)).details == "the output cost 0.2 usd; the limit is 0.15 usd"
    assert MaxLatency(2).score(Answered.of(row("x"), both)).value == 1.0
    assert MaxLatency(1).score(row("x", latency_seconds=0.5)).value == 1.0


def test_what_nobody_recorded_is_missing():
    assert MaxLatency(1).score(row("x")).kind == "missing_input"
    assert MaxCost(1).score(with_metrics(latency_seconds=1.0)).kind == "missing_input"


# a row's own list


def asserted(*items, output="It is Ankara.", column="assert", **options):
    return Assertions(**options).score(row(output, **{column: list(items)}))


def test_the_score_is_the_share_by_weight_and_the_feedback_names_what_failed():
    score = asserted({"check": "contains", "value": "Ankara", "weight": 3}, {"check": "equals", "value": "Ankara"})
    assert (score.value, score.feedback) == (0.75, "equals: the output is not 'Ankara'")
    assert score.signals == {"failed": 1, "checks": 2}
    assert asserted({"type": "icontains", "value": "ANKARA"}).value == 1.0


@pytest.mark.parametrize(
    ("item", "value"),
    [
        ({"check": "not-contains", "value": "Rome"}, 1.0),
        ({"check": "contains", "value": "Rome", "negate": True}, 1.0),
        ({"check": "not_contains", "value": "Rome", "negate": True}, 0.0),
        ({"check": "starts-with", "value": "It"}, 1.0),
        ({"check": "regex", "value": "ank", "ignore_case": True}, 1.0),
        ({"check": "contains-any", "value": ["Rome", "Ankara"]}, 1.0),
        ({"check": "contains-any", "value": "Rome, Ankara"}, 1.0),
        ({"check": "contains-any", "value": "xyz,apple"}, 0.0),
        ({"check": "contains-all", "value": 'is,"It is A",'}, 1.0),
        ({"check": "contains-all", "value": "is,Rome"}, 0.0),
        ({"check": "one_of", "value": ["Rome"]}, 0.0),
        ({"check": "is-json"}, 0.0),
        ({"check": "contains", "value": "{{ city }}"}, 1.0),
    ],
)
def test_an_item_is_a_check_by_name_with_its_value_and_options(item, value):
    assert Assertions().score(row("It is Ankara.", city="Ankara", **{"assert": [item]})).value == value


@pytest.mark.parametrize(
    ("assertions", "message"),
    [
        (
            [{"check": "contians", "value": "a"}],
            "assert: item 1: there is no check 'contians', did you mean 'contains'?",
        ),
        ([{"check": "contains"}], "assert: item 1: contains needs a value"),
        ([{"check": "regex", "value": ["a"]}], "assert: item 1: regex: pattern is a text, not ['a']"),
        ([{"check": "max_cost", "value": "NaN"}], "assert: item 1: max_cost: usd is a number, not 'NaN'"),
        ([{"check": "max_latency", "value": True}], "assert: item 1: max_latency: seconds is a number, not True"),
        ([{"check": "contains", "value": "a", "field": 5}], "assert: item 1: field is a text, not 5"),
        ([{"check": "contains", "value": "a", "fold": 5}], "assert: item 1: contains has no 'fold'; it has negate"),
        (
            [{"check": "contains", "value": "a"}, {"check": "contains", "valeu": "a"}],
            "assert: item 2: contains has no 'valeu'; it has negate, field",
        ),
        ([{"check": "contains", "value": "a", "weight": -1}], "assert: item 1: weight is a number above 0, not -1"),
        ([{"check": "regex", "value": "("}], "assert: item 1: regex: pattern '(' "),
        (
            [{"check": "contains", "value": "a", "negate": "false"}],
            "assert: item 1: negate is true or false, not 'false'",
        ),
        (
            [{"check": "contains", "value": "a", "ignore_case": 1}],
            "assert: item 1: ignore_case is true or false, not 1",
        ),
        (
            [{"check": "regex", "value": "^(a+)+(?=$)$"}],
            "assert: item 1: regex: pattern '^(a+)+(?=$)$' cannot be read by RE2",
        ),
        ([{"check": "regex", "value": "{{ output }}(?=b)"}], "regex: the row's pattern 'a(?=b)' cannot be read by RE2"),
        ([{"check": "one_of", "value": "a,b"}], "assert: item 1: one_of: values is a list, as ['a,b']"),
        ([{"check": "contains_any", "value": " , "}], "assert: item 1: contains_any: values is an empty list"),
        ([{"check": "contains_any", "value": "a\nb,c"}], "assert: item 1: contains_any: "),
        ([{"value": "a"}], "assert: item 1 is not {check, value, weight, negate}"),
        ([], "assert: this row has no checks"),
        ("[]", "assert: this row has no checks"),
        ("", "assert: this row has no checks"),
        ("3", "assert: it is a list of"),
        ("{no", "assert: it is not JSON"),
        (None, "assert: the row has no such column; it has id, input, output"),
    ],
)
def test_a_list_that_cannot_be_read_is_missing_and_says_where(assertions, message):
    score = Assertions().score(row("a", **({} if assertions is None else {"assert": assertions})))
    assert score.kind == "missing_input"
    assert score.message.startswith(message)


def test_a_misspelt_column_names_the_nearest():
    score = Assertions("asserts").score(row("a", **{"assert": []}))
    assert score.message == "asserts: the row has no such column, did you mean 'assert'?"


def test_a_csv_cell_holds_the_list_as_json():
    assert Assertions().score(row("a", **{"assert": '[{"check": "equals", "value": "a"}]'})).value == 1.0
    assert Assertions().score(row("a", **{"assert": '{"check": "equals", "value": "a"}'})).value == 1.0


@given(st.lists(st.tuples(st.booleans(), st.floats(0.01, 100)), min_size=1, max_size=8))
def test_the_score_is_the_weighted_share(items):
    checks = [{"check": "contains", "value": "Ankara" if good else "Rome", "weight": weight} for good, weight in items]
    share = sum(weight for good, weight in items if good) / sum(weight for _, weight in items)
    assert asserted(*checks).value == pytest.approx(share)


# in a pipeline


@pytest.mark.parametrize(("threshold", "slot", "rate"), [(1.0, {}, 0.0), (0.5, {}, 1.0), (1.0, {"pass_at": 0.5}, 1.0)])
def test_a_row_passes_at_the_threshold_unless_the_pipeline_says_otherwise(tmp_path, monkeypatch, threshold, slot, rate):
    monkeypatch.chdir(tmp_path)
    checks = [{"check": "contains", "value": "a"}, {"check": "contains", "value": "b"}]
    run = dicast.evaluate([{"output": "a", "assert": checks}], [{"check/assertions": {"threshold": threshold, **slot}}])
    assert run.metrics["check/assertions"]["pass_rate"] == rate


def test_a_wrong_option_is_refused_with_its_place(tmp_path):
    assert "pattern '(' is not a regular expression" in refused(tmp_path, "regex", pattern="(")
    assert "values is an empty list" in refused(tmp_path, "one_of", values=[])
    assert "seconds" in refused(tmp_path, "max_latency", seconds=-1)
    assert "did you mean 'ignore_case'" in refused(tmp_path, "contains", value="a", ignorecase=True)


ANSWERED = {"choices": [{"message": {"role": "assistant", "content": "lima"}, "stop_reason": "stop"}]}


@pytest.mark.parametrize(
    "metric",
    [
        {"check/icontains": {"value": "stop"}},
        {"check/contains": {"value": "stop", "negate": True}},
        {"check/contains_any": {"values": ["stop"]}},
        {"check/contains_all": {"values": ["stop"]}},
        {"check/starts_with": {"value": "{"}},
        {"check/regex": {"pattern": "stop"}},
        {"check/word_count": {"max": 3}},
        "check/is_refusal",
    ],
)
def test_an_output_that_is_an_object_is_not_read_as_its_json_text(tmp_path, metric):
    for output in (ANSWERED, [ANSWERED]):
        (tmp_path / "rows.jsonl").write_bytes(orjson.dumps({"output": output}))
        pipeline = {"source": {"rows/jsonl": {"path": str(tmp_path / "rows.jsonl")}}, "metrics": [metric]}
        done = run({**pipeline, "ledger": {"ledger/sqlite": {"path": str(tmp_path / "l.db")}}})
        assert done.failures == {"missing_input": 1}
        assert done.score is None or done.score["mean"] is None


def test_with_a_field_the_place_in_an_object_is_read():
    subject = Subject("row", "1", output=ANSWERED)
    failure = Icontains("stop").score(subject)
    assert failure.kind == "missing_input"
    assert "object with choices" in failure.message
    assert "field: choices.0.message.content" in failure.message
    assert Icontains("stop", field="choices.0.message.content").score(subject).value == 0.0
    assert Icontains("lima", field="choices.0.message.content").score(subject).value == 1.0
    assert Icontains("a", field="choices").score(subject).value == 1.0  # the user asked for all of it
    assert Icontains("a").score(Subject("row", "1", output=["a", "b"])).value == 1.0
