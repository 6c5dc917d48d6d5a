"""Code that is a part of a file: a body without its head, a last line without an end."""

from __future__ import annotations

import random
import signal
import time

import pytest

from dicast import ConfigError, Failure, Subject
from dicast_diff import Match

BODY = "    # add\n    for x in xs:\n        n = n + x\n    return '''a\nb''', n\n"


def judged(output, reference, language="python"):
    match = Match(strictness="ast_equivalent", language=language)
    return match.score(Subject("row", "q1", output=output, reference=reference))


def test_the_body_of_a_function_is_code():
    assert judged(BODY, BODY).value == 1.0
    dedented = "for x in xs:\n  n = n + x\nreturn ('''a\nb''', n)"
    assert judged(dedented, BODY).value == judged(BODY, dedented).value == 1.0
    assert judged(BODY.replace("+", "-"), BODY).value == 0.0


def test_lines_are_counted_in_the_body_itself():
    score = judged(BODY.replace("n + x", "n - x"), BODY)
    assert score.details == "differs at 3:13 'n - x' from the reference at 3:13 'n + x'"
    assert judged("    x = = 1", BODY).details == "not python: invalid syntax at 1:9"


@pytest.mark.parametrize(
    "code", ["    x = 1\ny = 2", "    x = 1\nelse:\n    y = 2", "    x = 1\n  y = 2", "x = 1\n  y = 2"]
)
def test_what_is_indented_at_odds_is_no_body(code):
    assert isinstance(judged("x = 1", code), Failure)
    assert judged(code, "x = 1").value == 0.0


def test_parentheses_around_what_is_deleted_do_not_matter():
    assert judged("del (a, b), c", "del a, b, c").value == 1.0
    assert judged("del (a, b)", "del a, c").value == 0.0


@pytest.mark.parametrize(
    ("language", "code"), [("c", "#include <a.h>"), ("c", "#define A 1"), ("dockerfile", "FROM a")]
)
def test_a_last_line_needs_no_end(language, code):
    assert judged(code, f"{code}\n", language).value == judged(f"{code}\n", code, language).value == 1.0


def test_an_error_without_a_node_of_its_own_is_a_score():
    assert judged("#include <a.h> x = (", "#include <a.h>\n", "c").value == 0.0


def test_a_byte_order_mark_is_no_code():
    assert judged("\ufeffx = 1", "x = 1").value == judged("x=1", "\ufeffx=1", "javascript").value == 1.0


@pytest.mark.parametrize(
    ("language", "code", "other"),
    [
        ("javascript", "xs.map(x => x + 1)", "xs.map((x) => x + 1);"),
        ("typescript", "const f = async x => x", "const f = async (x) => x;"),
        ("typescript", "interface A {a: string, b: number}", "interface A {\n  a: string;\n  b: number;\n}"),
        ("sql", "select a from b where c is null", "SELECT a\nFROM b\nWHERE c IS NULL"),
        ("css", "a{b:c;d:e}", "a {\n  b: c;\n  d: e;\n}"),
    ],
)
def test_what_formatters_of_a_language_write_is_the_same_code(language, code, other):
    assert judged(code, other, language).value == judged(other, code, language).value == 1.0


@pytest.mark.parametrize(
    ("language", "code", "other"),
    [
        ("javascript", "(x, y) => x", "x => x"),
        ("javascript", "(x) => x", "y => y"),
        ("javascript", "({x}) => x", "(x) => x"),
        ("javascript", "(...x) => x", "x => x"),
        ("typescript", "(x?) => x", "x => x"),
        ("typescript", "(x: number) => x", "x => x"),
        ("sql", "select a from b order by c asc", "SELECT a FROM b ORDER BY c DESC"),
        ("css", "a{b:c;d:e}", "a{b:c}d{e:f}"),
    ],
)
def test_what_says_another_thing_is_other_code(language, code, other):
    assert judged(code, other, language).value == judged(other, code, language).value == 0.0


@pytest.mark.parametrize(("called", "name"), [("js", "javascript"), ("Python", "python"), ("c++", "cpp")])
def test_a_language_by_another_name_is_told_its_own(called, name):
    with pytest.raises(ConfigError) as caught:
        Match(strictness="ast_equivalent", language=called)
    assert caught.value.problems[0].hint == name


def test_a_timer_ends_a_parse_that_takes_too_long():
    class Over(BaseException):
        pass

    def end(number, frame):
        raise Over

    noise = "".join(random.Random(1).choices("(){}[]<>;:,.+-*/=!&|^%~?\"'`\\ \nabc123", k=900_000))
    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    started = time.process_time()
    try:
        with pytest.raises(Over):
            judged(noise, noise, language="javascript")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert time.process_time() - started < 3
