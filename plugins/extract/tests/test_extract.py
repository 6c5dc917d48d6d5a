from __future__ import annotations

import math

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dicast
from dicast import ConfigError
from dicast.testing.pipeline import Bench
from dicast_extract import JsonPath, Label, Regex

EXTRACTORS = (JsonPath(path="$..score"), Regex(pattern="([0-9.]+)|x"), Label(labels={"yes": 1, "no": 0}))


def record(**contents):
    replies = {name: {"content": content, "metrics": {}} for name, content in contents.items()}
    return {"row": {"id": "1"}, "response": next(iter(replies.values())), "responses": replies, "metrics": {}}


def read(extractor, content):
    """Return the value that *extractor* reads in the reply of a task without criteria."""
    metrics = extractor.extract({"row": {}, "response": {"content": content, "metrics": {}}, "metrics": {}})
    return metrics["scores"]["default"]


def refused(tmp_path, name, **options):
    with pytest.raises(ConfigError) as caught:
        Bench(tmp_path).build("extractor", f"extract/{name}", options)
    return str(caught.value)


# where it goes


@pytest.mark.parametrize("extractor", EXTRACTORS, ids=lambda extractor: type(extractor).__name__)
def test_all_criteria_are_read_by_default(extractor):
    kind = type(extractor)
    options = {"path": extractor.path} if kind is JsonPath else {}
    options |= {"pattern": extractor.pattern} if kind is Regex else {}
    options |= {"labels": extractor.labels} if kind is Label else {}
    both = record(a='{"score": 1} yes' if kind is not JsonPath else '{"score": 1}', b="?")
    assert kind(**options).extract(both) == {"scores": {"a": 1, "b": None}}
    assert kind(**options, into="told.by_reply").extract(both) == {"told": {"by_reply": {"a": 1, "b": None}}}
    assert kind(**options, into="scores.a", criterion="a").extract(both) == {"scores": {"a": 1}}
    assert kind(**options, into="rating", criterion="no such").extract(both) == {"rating": None}
    assert kind(**options, into="told.by_reply").writes == ("told.by_reply",)
    assert kind(**options, criterion="a").extract(both) == {"scores": {"a": 1}}
    assert kind(**options, criterion="a").writes == ("scores.a",)


def test_extractors_of_one_criterion_each_go_together_and_statistics_read_them(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    answer = {"responses": {"clear": {"content": "clear: 2"}, "kind": {"content": "kind: 4"}}}
    (tmp_path / "rows.jsonl").write_text('{"id": "1"}\n{"id": "2"}\n')
    (tmp_path / "answer.json").write_text(orjson.dumps(answer).decode())
    first = [{"extract/regex": {"pattern": "([0-9])", "criterion": name, "as": name}} for name in ("clear", "kind")]
    done = dicast.run(
        {
            "source": {"rows/jsonl": {"path": "rows.jsonl"}},
            "task": {"task/command": {"command": ["cat", "answer.json"]}},
            "extractors": first,
            "aggregates": ["stats/score_stats"],
        }
    )
    criteria = done.aggregates["stats/score_stats"]["criteria"]
    assert {name: (figures["count"], figures["mean"]) for name, figures in criteria.items()} == {
        "clear": (2, 2),
        "kind": (2, 4),
    }


@pytest.mark.parametrize("into", ["", "scores.", "Scores", "a b", "a..b", "scores.Tone"])
def test_a_place_is_a_dotted_path_in_snake_case(tmp_path, into):
    assert "into is a dotted path of names in snake case" in refused(tmp_path, "regex", pattern="x", into=into)


def test_a_criterions_own_name_may_be_in_its_place():
    assert Regex(pattern="x", criterion="Tone", into="scores.Tone").writes == ("scores.Tone",)


# extract/json_path


@pytest.mark.parametrize(
    ("path", "content", "expected"),
    [
        ("$.score", '{"score": 4}', 4),
        ("$.score", {"score": 4}, 4),
        ("$.score", ' ```json\n{"score": 4}\n``` ', 4),
        ("$.score", '{"score": "85%"}', "85%"),
        ("$.score", '{"score": null}', None),
        ("$.score", '{"score": [1, 2]}', [1, 2]),
        ("$.score", '{"rating": 4}', None),
        ("$.score", "4", None),
        ("$.score", "The score is 4.", None),
        ("$.score", None, None),
        ("$.steps[*].n", '{"steps": [{"n": 1}, {"n": 2}, {}]}', [1, 2]),
        ("$.steps[?@.ok == true].n", '{"steps": [{"n": 1}, {"n": 2, "ok": true}]}', 2),
        ("$[0]", "[7]", 7),
        ("$.said", '{"said": {"Total Score": 4}}', '{"Total Score":4}'),
    ],
)
def test_a_json_path_gives_the_value_that_it_leads_to(path, content, expected):
    assert read(JsonPath(path=path), content) == expected


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("$.a[", "at character 5"),
        ("$[?foo(@)]", "at character 4"),
        ("$.a b", "at character"),
        ("$..", "at character 4"),
    ],
)
def test_a_wrong_json_path_is_refused_with_its_place(tmp_path, path, place):
    assert f"is no JSONPath (RFC 9535) {place}" in refused(tmp_path, "json_path", path=path)


@pytest.mark.parametrize("path", ["", "score", ".score"])
def test_a_json_path_without_its_beginning_is_told_how_it_begins(tmp_path, path):
    assert "it begins with $, as in $.score" in refused(tmp_path, "json_path", path=path)


# extract/regex


@pytest.mark.parametrize(
    ("pattern", "content", "expected"),
    [
        ("Score: ([0-9.]+)", "Score: 4.5. Score: 9", "4.5."),
        (r"Score: ([0-9]+(?:\.[0-9]+)?)", "Score: 4.5. Score: 9", 4.5),
        ("[0-9]+", "about 12 of 20", 12),
        ("(?i)verdict: (\\w+)", "VERDICT: good", "good"),
        ("a(b)?c", "ac", None),
        ("x", "no", None),
        (r"(\pL+)", "größer 1", "größer"),
        ("[0-9]+", {"n": 3}, 3),
        ("1e[0-9]+", "1e999", "1e999"),
        ("n.n", "nan", "nan"),
        ("x", None, None),
        ("(.)$", "half \ud800", "?"),
    ],
)
def test_a_regular_expression_gives_its_first_group_as_a_number_where_it_is_one(pattern, content, expected):
    value = read(Regex(pattern=pattern), content)
    assert value == expected
    assert type(value) is type(expected)


@pytest.mark.parametrize("pattern", ["(", "(?=x)", "", "a**", "\ud800"])
def test_a_wrong_regular_expression_is_refused(tmp_path, pattern):
    message = refused(tmp_path, "regex", pattern=pattern)
    assert "is no regular expression" in message or "an empty pattern" in message


def test_a_regular_expression_takes_linear_time():
    assert read(Regex(pattern="(a*)*b"), "a" * 100_000) is None


# extract/label

GRADES = Label(labels={"good": 1, "not good": 0, "so so": 0.5})


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("Good.", 1),
        ("It is not good!", 0),
        ("so\n  so", 0.5),
        ("good, yes, GOOD", 1),
        ("good and not good", None),
        ("goods", None),
        ("", None),
        (None, None),
        ({"verdict": "good"}, 1),
    ],
)
def test_the_one_label_of_a_reply_gives_its_number(content, expected):
    assert read(GRADES, content) == expected


def test_letter_case_counts_when_told_so():
    strict = Label(labels={"Yes": 1, "yes": 0.5}, case_sensitive=True)
    assert [read(strict, text) for text in ("Yes", "yes", "YES")] == [1, 0.5, None]


def test_labels_are_texts_of_any_script_and_any_signs():
    assert read(Label(labels={"C++": 1, "C": 0}), "I take C++.") == 1
    assert read(Label(labels={"größer": 1}), "gro\u0308\u00dfer") == 1
    assert read(Label(labels={"STRASSE": 1}), "straße") == 1


@pytest.mark.parametrize("labels", [{}, {" ": 1}, {"Yes": 1, "yes": 0}])
def test_labels_that_cannot_be_told_apart_are_refused(tmp_path, labels):
    assert "label" in refused(tmp_path, "label", labels=labels)


# all of them

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["score", "a"]), inner, max_size=2),
    max_leaves=6,
)


@pytest.mark.parametrize("extractor", EXTRACTORS, ids=lambda extractor: type(extractor).__name__)
@given(content=json_values)
def test_whatever_a_model_says_what_is_read_is_json(extractor, content):
    metrics = extractor.extract(record(a=content))
    assert metrics.keys() == {"scores"}
    assert metrics["scores"].keys() == {"a"}
    assert orjson.loads(orjson.dumps(metrics)) == metrics


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_number_in_a_text_is_read_as_it_is(value):
    number = read(Regex(pattern=r"is (\S+)"), f"The score is {value!r} points")
    assert number == value
    assert math.copysign(1, number) == math.copysign(1, value)


@given(st.dictionaries(st.text("abc", min_size=1, max_size=4), st.integers(0, 9), min_size=1, max_size=4), st.data())
def test_each_label_alone_gives_its_own_number(labels, data):
    label = data.draw(st.sampled_from(sorted(labels)))
    assert read(Label(labels=labels), f"- {label.upper()}!") == labels[label]
