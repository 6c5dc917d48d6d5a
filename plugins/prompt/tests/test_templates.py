"""Limits of templates, and messages about wrong ones."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dicast import ConfigError, Failure, Subject
from dicast.testing import FakeChatModel
from dicast.testing.pipeline import Bench
from dicast_prompt import Chat
from dicast_prompt.template import needed_names

ROW = Subject(
    "row",
    "q1",
    input={"question": "2 + 2?", "items": [1, 2]},
    context={"category": "math", "hint": None, "strict": True, "meta": {"level": None}},
)


def rendered(template, subject=ROW):
    """Return the message that *template* renders, or the Failure."""
    model = FakeChatModel("yes")
    answer = Chat(model, user=template).produce(subject)
    if isinstance(answer, Failure):
        return answer
    with pytest.raises(StopIteration):  # nothing in it waits
        answer.send(None)
    return model.asked[0].messages[-1].content


def refused(tmp_path, **options):
    with pytest.raises(ConfigError) as caught:
        Bench(tmp_path, {"fake": FakeChatModel("yes")}).build("task", "prompt/chat", {"model": "fake", **options})
    return str(caught.value)


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("{{ id }} {{ category }}", "q1 math"),
        ("{{ input.question }} {{ input['question'] }}", "2 + 2? 2 + 2?"),
        ("{{ input.items }}", "[1,2]"),
        ("{{ input }} {{ strict }}", '{"question":"2 + 2?","items":[1,2]} true'),
        ("{% for n in input.items %}{{ loop.index }}/{{ loop.length }}:{{ n }} {% endfor %}", "1/2:1 2/2:2 "),
        ("{{ context.category | upper }}", "MATH"),
        ("{{ hint | default('none') }}{{ meta.level or '?' }}", "none?"),
        ("{% if reference is defined %}x{% endif %}-", "-"),
        ("<{{ '<b>&' }}> {{ {'a': '<'} | tojson }}\n", '<<b>&> {"a":"<"}\n'),
        ("{{ '%05d|%.1f|%s' | format(123456, 1, id) }} {{ '%s%%' % 50 }}", "123456|1.0|q1 50%"),
        ("{{ '{}:{x:>4}'.format(id, x=123456) }} {{ ', '.join(input['items'] | map('string')) }}", "q1:123456 1, 2"),
        ("{{ id.replace('q', 'Q') }}{{ id | replace('1', 'x') | indent(2, true) }}", "Q1  qx"),
        (
            "{{ input['items'] | sum }} {{ input['items'] | join('+') }} {{ [id] | join(', ') | truncate(99999) }}",
            "3 1+2 q1",
        ),
        ("{{ [{'a': 1}] | map(attribute='a') | join }}{{ [{'a': 2}] | sum(attribute='a') }}{{ id[:1] ~ 3 }}", "12q3"),
        (
            "{{ ['b', 'a'] | sort | first }}{{ [3, 4] | batch(1) | list }}{{ id.strip('q').split('x') }}",
            'a[[3],[4]]["1"]',
        ),
        ("{% filter upper %}{{ id }} {% endfilter %}{% set a, b = 1, [2] %}{{ a }}{{ b }}", "Q1 1[2]"),
        ("{% macro twice(t) %}{{ t }}{{ t }}{% endmacro %}{{ twice('a') * 2 }}", "aaaa"),
    ],
)
def test_a_template_knows_the_rows_columns_and_writes_json(template, expected):
    assert rendered(template) == expected


def test_the_subjects_own_values_come_before_columns_of_their_names():
    row = Subject("row", "q1", input="mine", context={"input": "column", "context": "column", "reference": "column"})
    assert rendered("{{ input }} {{ context }} {{ reference }}", row) == "mine column column"


@pytest.mark.parametrize("template", ["{{ inptu }}", "{% if inptu %}{% endif %}", "{{ [inptu, 1] | join }}"])
def test_a_name_that_the_row_does_not_have_fails_it_with_the_nearest(template):
    failure = rendered(template)
    assert failure.kind == "missing_input"
    assert failure.message == (
        "template user: the row has no 'inptu', did you mean 'input'? it has category, context, id, input, meta, strict"
    )


@pytest.mark.parametrize(
    "template", ["{{ reference }}", "{{ hint }}", "{{ session_id }}", "{{ output }}", "{{ input.x }}"]
)
def test_what_is_null_or_absent_is_missing_input(template):
    assert rendered(template).kind == "missing_input"


def test_a_null_inside_a_value_is_not_printed_as_a_word():
    failure = rendered("{{ meta.level }}")
    assert failure.kind == "missing_input"
    assert "null" in failure.message


@pytest.mark.parametrize(
    "template",
    [
        "{{ id['__class__'] }}",
        "{{ '{0.__class__.__mro__}'.format(id) }}",
        "{{ '{x.__class__}'.format_map({'x': id}) }}",
        "{{ [id] | map(attribute='__class__') | list }}",
        "{{ id.format.__self__ }}"[:0] + "{{ cycler['__init__'] }}",
        "{{ input.items.append(3) }}",
        "{{ context.update({'a': 1}) }}",
        "{{ id.upper }}",
        "{{ 1 / 0 }}",
    ],
)
def test_tricks_fail_the_row_and_reach_nothing(template):
    failure = rendered(template)
    assert failure.kind in ("crashed", "missing_input")
    assert failure.message.startswith("template user: ")


@pytest.mark.parametrize(
    "template",
    [
        "{% for i in range(10**9) %}x{% endfor %}",
        "{% for i in range(1000000000) %}x{% endfor %}",
        "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
        "{% for i in range(99999) %}{% for j in range(99999) %}xxxxxxxxxxxx{% endfor %}{% endfor %}",
        "{% macro f(n) %}{{ f(n) }}{{ f(n) }}{% endmacro %}{{ f(1) }}",
        "{% for i in [1] recursive %}{{ loop([1]) }}{% endfor %}",
        "{{ 'a' * 10000000000 }}",
        "{{ [0] * 10000000000 }}",
        "{{ ('a' * 1000000) * 1000000 }}",
        "{{ 9 ** 9 ** 9 ** 9 }}",
        "{{ id | center(10000000000) }}",
        "{{ id | slice(10000000000) | list }}",
        "{{ [id] | map('center', 10000000000) | list }}",
        "{{ '%999999999d' % 1 }}",
        "{{ '%.999999999f' % 1 }}",
        "{{ '%*d' % (999999999, 1) }}",
        "{{ '%*d' | format(999999999, 1) }}",
        "{{ '%(a)999999999s' | format(a=1) }}",
        "{{ ('%s' * 100000) | format(*(['x' * 100000] * 100000)) }}",
        "{{ '{:>999999999}'.format('a') }}",
        "{{ '{:{}}'.format('a', 999999999) }}",
        "{{ ('{0}' * 100000).format('x' * 100000) }}",
        "{{ '\t'.expandtabs(1000000000) }}",
        "{{ id.ljust(1000000000) }}",
        "{{ id['zfill'](1000000000) }}",
        "{{ (1).to_bytes(1000000000, 'big') | length }}",
        "{{ id.join(['a' * 9000000] * 100) | length }}",
        "{{ (['a' * 9000000] * 100) | join | length }}",
        pytest.param("{{ ([1] * 3000000) | join('a' * 9000000) | length }}", marks=pytest.mark.slow),
        "{{ ('a' * 1000000) | replace('a', 'a' * 1000000) | length }}",
        "{{ ('a' * 1000000).replace('a', 'a' * 1000000) | length }}",
        "{{ ('\n' * 1000000) | indent(10000) | length }}",
        "{{ ('a ' * 1000000) | wordwrap(1, wrapstring='b' * 100000) | length }}",
        "{{ (['a'] * 1000000) | map('center', 10000) | list | length }}",
        "{{ (['a' * 200000] * 100) | map('truncate', 100000, true, 'b' * 100000, 0) | list | length }}",
        "{{ ([[1]] * 100000) | sum(start=[]) | length }}",
        "{{ ('a' * 9000000).strip('b' * 9000000 ~ 'a') | length }}",
        "{% set ns = namespace(a='ab') %}{% for i in range(60) %}{% set ns.a = ns.a ~ ns.a %}{% endfor %}",
        "{% set ns = namespace(a='ab') %}{% for i in range(60) %}{% set ns.a = ns.a + ns.a %}{% endfor %}",
        pytest.param(
            "{% set ns = namespace(a=[1]) %}{% for i in range(60) %}{% set ns.a = ns.a + ns.a %}{% endfor %}",
            marks=pytest.mark.slow,
        ),
        "{% set ns = namespace(a=7) %}{% for i in range(60) %}{% set ns.a = ns.a * ns.a %}{% endfor %}{{ 1 }}",
        pytest.param(
            "{% set ns = namespace(a=[1]) %}{% for i in range(60) %}{% set ns.a = [ns.a, ns.a] %}{% endfor %}{{ ns.a }}",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "{% set ns = namespace(a={}) %}{% for i in range(60) %}{% set ns.a = dict(a=ns.a, b=ns.a) %}{% endfor %}",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "{% set ns = namespace(a=[1]) %}{% for i in range(60) %}{% set ns.a = (ns.a * 2) | batch(9) | list %}{% endfor %}",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "{% macro f(n) %}{% if n %}{{ f(n - 1, varargs, varargs) }}{% else %}{{ varargs }}{% endif %}{% endmacro %}{{ f(60) }}",
            marks=pytest.mark.slow,
        ),
        "{% set ns = namespace(a='ab') %}{% for i in range(60) %}{% set b %}{{ ns.a }}{{ ns.a }}{% endset %}{% set ns.a = b %}{% endfor %}",
        "{% set ns = namespace(a=[]) %}{% set b = 'a' * 9000000 %}{% for i in range(99999) %}{% set ns.a = ns.a + [b[1:]] %}{% endfor %}",
        "{% set b %}{% for i in range(99999) %}" + "x" * 10000 + "{% endfor %}{% endset %}",
    ],
)
def test_no_template_takes_for_ever(template):
    began = time.process_time()
    assert rendered(template).kind == "crashed"
    assert time.process_time() - began < 5


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("a\n{% if %}", "the template user, line 2: Expected an expression"),
        ("{{ input", "the template user, line 1: unexpected end of template"),
        ("{{ input.__class__ }}", "the attribute '__class__' is not accessible"),
        ("\n\n{{ input | attr('__class__') }}", "the template user, line 3: No filter named 'attr'"),
        ("{{ input | nosuch }}", "No filter named 'nosuch'"),
        ("{% include 'secrets' %}", "a template cannot include, import or extend another template"),
        ("{% from 'x' import y %}", "a template cannot include, import or extend another template"),
        ("{% extends 'x' %}", "a template cannot include, import or extend another template"),
        (" \n", "the template user is blank"),
    ],
)
def test_what_is_wrong_with_a_template_is_said_when_the_pipeline_is_built(tmp_path, template, message):
    assert message in refused(tmp_path, user=template)


def test_a_template_file_is_named_in_what_is_wrong_with_it(tmp_path):
    (tmp_path / "ask.j2").write_text("fine\n{{ }}\n")
    assert "ask.j2, line 2: " in refused(tmp_path, user={"file": "ask.j2"})
    (tmp_path / "bytes.j2").write_bytes(b"\xff")
    assert "bytes.j2 is not UTF-8" in refused(tmp_path, user={"file": "bytes.j2"})
    assert "did you mean 'ask.j2'" in refused(tmp_path, user={"file": "aks.j2"})


def test_every_faulty_criterion_is_told_at_its_place(tmp_path):
    message = refused(tmp_path, user="x", criteria={"a": {"user": "{{"}, "b": {"system": "{%"}, "c": {"usr": "x"}})
    for place in ("criteria.a.user", "criteria.b.system", "did you mean 'user'?"):
        assert place in message


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "needs the option 'user'"),
        ({"criteria": {"a": {"user": "x"}, "b": {}}}, "no template 'user' for b"),
        ({"user": "x", "criteria": {"a.b": {}}}, "has no dots"),
        ({"user": "x", "criteria": {" ": {}}}, "not blank"),
        ({"user": "x", "retries": 11}, "invalid value for retries, expected a number from 0 to 10, got 11"),
        ({"user": "x", "max_output_tokens": 0}, "invalid value for max_output_tokens, expected 1 or more, got 0"),
        ({"user": "x", "temperature": -1}, "invalid value for temperature, expected 0 or more, got -1.0"),
        ({"user": 3}, "expected str or mapping {file}"),
    ],
)
def test_wrong_options_are_refused_when_the_pipeline_is_built(tmp_path, options, message):
    assert message in refused(tmp_path, **options)


@given(st.text().filter(str.strip))
def test_a_text_of_the_row_is_never_taken_for_a_template(text):
    row = Subject("row", "q1", input=text)
    assert rendered("{{ input }}", row) == text


@given(st.recursive(st.text(max_size=3) | st.sampled_from(["{{ input }}", "{% for x in input %}", "{% endfor %}", "{{ x.__class__ }}", "{% set a = input %}", "{{ a }}", "|list", "{#", "#}", "{% if a %}", "{% endif %}"]), lambda parts: st.lists(parts, max_size=6).map("".join)))  # fmt: skip
def test_any_text_as_a_template_is_refused_fails_or_asks(template):
    row = Subject("row", "q1", input=[1, {"a": "b"}])
    try:
        answer = rendered(template, row)
    except ConfigError:
        return
    assert isinstance(answer, str | Failure)


@pytest.mark.parametrize(
    ("template", "needed"),
    [
        ("{{ a }} {{ b.c }} {{ d['e'] | upper }} {{ f.strip() }} {{ [1] | join(g) }}", ["a", "b", "d", "f", "g"]),
        ("{% if a %}{{ b }}{% else %}{{ c }}{% endif %}{% for x in d %}{{ x }}{{ e }}{% endfor %}", ["a", "d"]),
        ("{{ a or b }} {{ c and d }} {{ e if f else g }} {{ 'x' ~ h }}", ["a", "c", "f", "h"]),
        ("{{ a | default(b) }} {{ c is defined }} {{ c }} {{ d is none }}", []),
        ("{% set a = b %}{{ a }}{% macro m(c) %}{{ c }}{{ d }}{% endmacro %}{{ m(e) }}{{ context.f }}", []),
    ],
)
def test_a_needed_name_fails_a_row_without_it(template, needed):
    assert needed_names(template) == needed
    every: dict[str, object] = dict.fromkeys("abcdefgh", "text") | {name: {"c": "x", "e": "y"} for name in "bd"}
    for name in needed:
        row = Subject("row", "1", context={key: value for key, value in every.items() if key != name})
        failure = rendered(template, row)
        assert isinstance(failure, Failure)
        assert repr(name) in failure.message
