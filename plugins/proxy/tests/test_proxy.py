from __future__ import annotations

import pickle
import re
import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dicast import ConfigError, Score, Subject
from dicast_proxy import Format, Keywords, Length


def judged(metric, output) -> Score:
    return metric.score(Subject("row", "q1", output=output))


def value(metric, output) -> float:
    return judged(metric, output).value


# proxy/format


@pytest.mark.parametrize("output", [None, "", " \n\t", {}, [], {"answer": ""}, {"answer": None, "why": "  "}])
def test_an_output_without_content_scores_0(output):
    assert value(Format(), output) == 0.0


@pytest.mark.parametrize(
    "output", ["text", '{"key":"value"}', "{invalid json}", 0, False, {"n": 0}, {"a": "", "b": []}]
)
def test_any_content_scores_1_without_the_json_check(output):
    assert value(Format(), output) == 1.0


@pytest.mark.parametrize(
    ("output", "expected"),
    [('{"key":"value"}', 1.0), ("{invalid json}", 0.0), ("plain text", 0.0), ("12", 1.0), ("[1, 2", 0.0), ("NaN", 0.0)],
)
def test_the_json_check_wants_the_text_to_parse(output, expected):
    assert value(Format(require_json=True), output) == expected


def test_the_json_check_says_where_the_text_broke():
    assert "line 1 column 2" in judged(Format(require_json=True), "{invalid json}").details


@pytest.mark.parametrize(
    ("output", "expected"),
    [({"a": 1}, 1.0), ({"a": "prose"}, 1.0), ({"a": ' {"b": 1}'}, 1.0), ({"a": "{broken"}, 0.0), ([1], 1.0)],
)
def test_an_object_is_json_unless_a_text_in_it_starts_like_json_and_is_not(output, expected):
    assert value(Format(require_json=True), output) == expected


def test_emptiness_may_be_allowed():
    assert value(Format(require_non_empty=False), "") == 1.0
    assert value(Format(require_non_empty=False, require_json=True), "") == 0.0


@pytest.mark.parametrize("field", ["answer", "/answer"])
def test_a_field_is_checked_alone(field):
    metric = Format(require_json=True, field=field)
    assert value(metric, {"answer": '{"a": 1}', "other": "{broken"}) == 1.0
    assert value(metric, {"answer": "prose"}) == 0.0
    assert value(metric, '{"answer": "[1]"}') == 1.0


@pytest.mark.parametrize("output", [{"other": "x"}, "no JSON", '{"other": 1}', None, 5])
def test_a_missing_field_is_empty_and_the_details_say_so(output):
    score = judged(Format(field="answer"), output)
    assert score.value == 0.0
    assert "'answer'" in score.details


@pytest.mark.parametrize(
    ("field", "output"),
    [
        ("steps.1.code", {"steps": [{}, {"code": "x"}]}),
        ("/steps/1/code", {"steps": [{}, {"code": "x"}]}),
        ("/a.b/c~1d/~0", {"a.b": {"c/d": {"~": "x"}}}),
        ("1", ["", "x"]),
    ],
)
def test_a_field_is_a_dotted_path_or_a_json_pointer(field, output):
    assert value(Format(field=field), output) == 1.0


@pytest.mark.parametrize("metric", [Format, Keywords, Length])
def test_an_empty_field_is_refused(metric):
    with pytest.raises(ConfigError, match="field is empty"):
        metric(field="")


@pytest.mark.parametrize(
    ("options", "output", "signals"),
    [
        ({}, "x", {}),
        ({}, "", {"non_empty": False}),
        ({"require_json": True}, "[1]", {}),
        ({"require_json": True}, "[1", {"non_empty": True, "json": False}),
        ({"require_json": True, "require_non_empty": False}, None, {"json": False}),
        ({"require_json": True, "field": "a"}, "{}", {"non_empty": False, "json": False}),
        ({"require_non_empty": False}, "", {}),
    ],
)
def test_the_checks_of_format_are_named_in_the_signals_where_one_fails(options, output, signals):
    assert judged(Format(**options), output).signals == signals


@pytest.mark.parametrize(
    "text", ["[" * 100_000, "[" * 100_000 + "]" * 100_000, '{"a":' * 100_000, "\ud800", "[\x00]"], ids=range(5)
)
def test_json_too_deep_or_of_no_characters_cannot_be_read(text):
    assert "cannot be read as JSON" in judged(Format(require_json=True), text).details
    assert value(Format(field="a"), text) == 0.0


@given(
    st.recursive(st.none() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x), max_leaves=12),
    st.booleans(),
)
def test_format_scores_0_or_1_and_the_same_again(output, require_json):
    score = judged(Format(require_json=require_json), output)
    assert score.value in (0.0, 1.0)
    assert score == judged(Format(require_json=require_json), output)
    assert bool(score.details) == (score.value == 0.0)


# proxy/keywords


def test_one_of_two_required_keywords_scores_half_and_names_the_other():
    score = judged(Keywords(required=["function", "return"]), "a function")
    assert score.value == 0.5
    assert "'return'" in score.details


def test_a_forbidden_keyword_scores_0_whatever_is_required():
    score = judged(Keywords(required=["function"], forbidden=["TODO"]), "function # todo")
    assert score.value == 0.0
    assert "'TODO'" in score.details


def test_nothing_required_scores_1():
    assert value(Keywords(), "anything") == value(Keywords(forbidden=["x"]), "") == 1.0


def test_case_matters_only_on_request():
    assert value(Keywords(required=["Return"]), "RETURN") == 1.0
    assert value(Keywords(required=["STRASSE"]), "straße") == 1.0
    assert value(Keywords(required=["Return"], case_sensitive=True), "RETURN") == 0.0


@pytest.mark.parametrize(("text", "expected"), [("a party", 0.0), ("Art!", 1.0), ("art_1", 0.0), ("modern art", 1.0)])
def test_whole_words_are_not_found_inside_others(text, expected):
    assert value(Keywords(required=["art"], whole_words=True), text) == expected


def test_a_whole_word_may_end_in_a_symbol():
    assert value(Keywords(required=["C++"], whole_words=True), "in C++, of course") == 1.0


def test_keywords_may_be_regular_expressions():
    metric = Keywords(required=[r"\d{3}", "a|b"], regex=True)
    assert value(metric, "B 123") == 1.0
    assert value(metric, "12") == 0.0
    assert value(Keywords(required=["a|b"], regex=True, whole_words=True), "ab") == 0.0
    assert value(Keywords(required=["a.c"]), "abc") == 0.0


@pytest.mark.parametrize("whole_words", [False, True])
@pytest.mark.parametrize(
    ("broken", "at", "message"),
    [
        ("ok(unclosed", 3, "missing )"),
        ("a)(b", 2, "unexpected )"),
        ("é[z-a]", 3, "invalid character class range"),
        (r"a(?=b)", 2, "invalid perl operator"),
        (r"(a)\1", 4, "invalid escape sequence"),
        ("a{2,1}", 2, "invalid repetition size"),
        ("a++", 2, "bad repetition operator"),
    ],
)
def test_a_broken_pattern_is_refused_at_construction_with_its_place(broken, at, message, whole_words):
    with pytest.raises(ConfigError, match="lookaround") as refused:
        Keywords(required=["fine"], forbidden=["fine", broken], regex=True, whole_words=whole_words)
    assert f"forbidden[1]: {broken!r} is wrong at character {at}: {message}" in str(refused.value)


def test_all_broken_patterns_are_named_at_once():
    with pytest.raises(ConfigError) as refused:
        Keywords(required=["(", "fine", "[", "\ud800"], regex=True)
    assert all(f"required[{index}]" in str(refused.value) for index in (0, 2, 3))


@pytest.mark.parametrize("pattern", [r"(a+)+$", r"(a|a)*b$", r"(.*)*x\z", r"([a-z]+)*[^a-z]$"])
def test_no_pattern_takes_more_than_time_in_proportion(pattern):
    started = time.process_time()
    value(Keywords(forbidden=[pattern], regex=True), "a" * 1_000_000 + "!")
    assert time.process_time() - started < 2


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("a|ab", "ab", 1.0),
        ("été", "l'été!", 1.0),
        ("été", "étés", 0.0),
        ("^a", "a b", 1.0),
        ("b$", "a b", 1.0),
        (r"\QC++", "C++, of course", 1.0),
        (r"\QC++", "C++11", 0.0),
        ("नम", "नमः", 0.0),
        (r"\pL+-\pN+", "(été-42)", 1.0),
    ],
)
def test_a_regular_expression_may_match_whole_words_of_any_script(pattern, text, expected):
    assert value(Keywords(required=[pattern], regex=True, whole_words=True), text) == expected


@given(st.text("ab_ é.\u0301", max_size=12), st.sampled_from(["a", "ab", "a b", "é", "b.", "_a"]), st.booleans())
def test_whole_words_agree_with_regular_expressions(text, word, case_sensitive):
    text = unicodedata.normalize("NFC", text)
    options = {"whole_words": True, "case_sensitive": case_sensitive}
    literal = Keywords(required=[word], **options)
    assert value(literal, text) == value(Keywords(required=[re.escape(word)], regex=True, **options), text)


@pytest.mark.parametrize(
    ("word", "text", "expected"),
    [
        ("straße", "Die STRASSE.", 1.0),
        ("été", "L'E\u0301TE\u0301!", 1.0),
        ("ete", "e\u0301te\u0301", 0.0),
        ("नम", "नमस्ते", 0.0),
        ("नमस्ते", "नमस्ते!", 1.0),
        ("мир", "Мир, мировой", 1.0),
        ("мир", "мировой", 0.0),
        ("art", "art\u0308", 0.0),
    ],
)
def test_whole_words_and_case_are_those_of_any_script(word, text, expected):
    assert value(Keywords(required=[word], whole_words=True), text) == expected


def test_every_keyword_is_named_in_the_signals_where_one_is_amiss():
    metric = Keywords(required=["a", "b"], forbidden=["c"])
    assert judged(metric, "a b").signals == {}
    assert judged(metric, "a").signals == {"forbidden": {"c": False}, "required": {"a": True, "b": False}}
    assert judged(metric, "a c").signals == {"forbidden": {"c": True}}


def test_many_missing_keywords_are_counted_and_some_told():
    score = judged(Keywords(required=[f"w{n}" for n in range(30)]), "")
    assert score.details.startswith("lacks 30 of 30: 'w0', 'w1'")
    assert score.details.endswith("and 20 more")


short = st.lists(st.text(min_size=1, max_size=3), max_size=4)


@given(short, short, st.text())
def test_keyword_scores_are_shares_and_the_same_again(required, forbidden, text):
    metric = Keywords(required=required, forbidden=forbidden)
    score = judged(metric, text)
    assert score == judged(metric, text)
    assert 0.0 <= score.value <= 1.0
    assert bool(score.details) == (score.value < 1.0)
    assert value(Keywords(required=required), "\n".join(required)) == 1.0


@pytest.mark.parametrize("options", [{}, {"regex": True}, {"whole_words": True}, {"regex": True, "whole_words": True}])
@pytest.mark.parametrize("text", ["\ud800 fox", "\x00\xff fox", "🦊 fox"])
def test_text_that_is_no_text_is_searched_all_the_same(text, options):
    assert value(Keywords(required=["fox"], forbidden=["dog"], **options), text) == 1.0


def test_an_empty_keyword_and_a_bare_string_are_refused():
    with pytest.raises(ConfigError, match="empty keyword"):
        Keywords(required=[""])
    with pytest.raises(ConfigError, match=r"write \[TODO\]"):
        Keywords(forbidden="TODO")


def test_all_strings_of_an_object_are_searched_but_not_its_keys():
    output = {"todo": 1, "steps": [{"text": "find it"}, "end"]}
    assert value(Keywords(required=["find it", "end"], forbidden=["todo"]), output) == 1.0


def test_a_missing_field_has_no_keywords():
    score = judged(Keywords(required=["x"], field="answer"), {"other": "x"})
    assert score.value == 0.0
    assert "'answer'" in score.details


@pytest.mark.parametrize(
    "metric",
    [Keywords(required=["a"], regex=True), Keywords(forbidden=["b"]), Format(field="x"), Length(min=1, unit="words")],
)
def test_metrics_are_frozen_comparable_and_picklable(metric):
    again = pickle.loads(pickle.dumps(metric))
    assert again == metric
    assert hash(again) == hash(metric)
    assert value(again, "a b") == value(metric, "a b")
    with pytest.raises(AttributeError):
        metric.field = "y"


# proxy/length


@pytest.mark.parametrize(
    ("length", "expected"), [(0, 0.0), (5, 0.5), (10, 1.0), (20, 1.0), (25, 0.75), (40, 0.0), (400, 0.0)]
)
def test_length_credit_falls_off_outside_the_bounds(length, expected):
    assert value(Length(min=10, max=20), "x" * length) == expected


def test_no_bounds_and_a_bound_of_0():
    assert value(Length(), "anything") == 1.0
    assert value(Length(min=0), "") == value(Length(max=0), "") == 1.0
    assert value(Length(max=0), "x") == 0.0


@pytest.mark.parametrize(("unit", "length"), [("chars", 6), ("bytes", 8), ("words", 2)])
def test_the_unit_is_chars_bytes_or_words(unit, length):
    assert value(Length(min=length, max=length, unit=unit), "né è d") == (1.0 if unit != "words" else 0.5)
    assert value(Length(min=length, max=length, unit=unit), "né  èd") == 1.0


def test_bytes_of_a_lone_surrogate_are_counted():
    assert value(Length(min=3, max=3, unit="bytes"), "\ud800") == 1.0


def test_an_object_is_as_long_as_its_strings_together():
    output = {"a": "12345", "b": ["678", {"c": "90"}], "n": 12345}
    assert value(Length(min=10, max=10), output) == 1.0
    assert value(Length(min=5, max=5, field="n"), output) == 1.0


def test_a_missing_field_has_length_0():
    score = judged(Length(min=10, field="summary"), {"answer": "long enough"})
    assert score.value == 0.0
    assert "'summary'" in score.details


@pytest.mark.parametrize(
    ("options", "message"),
    [({"min": 3, "max": 2}, "min 3 is more than max 2"), ({"min": -1}, "never negative"), ({"unit": "lines"}, "chars")],
)
def test_impossible_lengths_are_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        Length(**options)


def test_the_length_and_the_bound_that_it_is_beyond_are_named_in_the_signals():
    assert judged(Length(min=2, max=3, unit="words"), "a").signals == {"words": 1, "min": False}
    assert judged(Length(max=3), "abcd").signals == {"chars": 4, "max": False}
    assert judged(Length(max=3), "abc").signals == {}


@pytest.mark.parametrize("piece", ["word ", "aé", " \n\t", "a  b\u2003"])
def test_words_of_a_long_text_are_counted_as_those_of_a_short_one(piece):
    text = piece * (3 * 2**20 // len(piece))
    words = len(text.split())
    assert judged(Length(unit="words", min=words + 1), text).signals == {"words": words, "min": False}


def test_an_integer_of_any_size_has_a_length():
    assert judged(Length(field="n", max=0), {"n": 2**70}).signals == {"chars": 22, "max": False}


bounds = st.tuples(st.integers(0, 50), st.integers(0, 50)).map(sorted)


@given(bounds, st.text(max_size=200), st.sampled_from(["chars", "bytes", "words"]))
def test_length_credit_is_1_exactly_inside_the_bounds(bounds, text, unit):
    low, high = bounds
    count = {"chars": len(text), "bytes": len(text.encode()), "words": len(text.split())}[unit]
    credit = value(Length(min=low, max=high, unit=unit), text)
    assert 0.0 <= credit <= 1.0
    assert (credit == 1.0) == (low <= count <= high)


@given(st.integers(1, 100), st.integers(0, 300))
def test_length_credit_grows_towards_the_bounds(bound, length):
    metric = Length(min=bound, max=bound)
    nearer = length + 1 if length < bound else length - 1
    if length != bound:
        assert value(metric, "x" * nearer) >= value(metric, "x" * length)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.text(),
        lambda x: st.lists(x) | st.dictionaries(st.text(), x),
        max_leaves=12,
    )
)
def test_any_json_output_gets_a_score(output):
    for metric in (Format(require_json=True), Keywords(required=["a"]), Length(min=3), Length(min=3, field="a")):
        assert 0.0 <= value(metric, output) <= 1.0
