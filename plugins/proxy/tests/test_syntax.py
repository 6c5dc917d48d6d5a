from __future__ import annotations

import gzip
import json
import os
import pickle
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dicast import ConfigError, Failure, Subject
from dicast_proxy import Syntax


def judged(output, **options):
    return Syntax(**options).score(Subject("row", "q1", output=output))


def value(output, **options) -> float:
    return judged(output, **options).value


# Without a language


@pytest.mark.parametrize(
    "text",
    [
        "it's fine",
        "The committee's report wasn't (yet) published, y'all.",
        "C'est l'été (d'accord)",
        "the dogs' tails (all of them), students' and teachers'",
        "'Tis the season (it's the dogs' time) of the '90s, rock 'n' roll, 'cause I say so",
        "('90s music)",
        "'Well,' he said, 'I can't (really).'",
        "**Bob**'s and `foo`'s (x)",
        'a 27" screen, 5\'10" tall (6" more)',
        '"He came in.\n\n"He went (out."',
        '"one line\nand the next"',
        "1) first\n2) second\n  a) and so on",
        "Either a) this or b) that",
        "good :) or bad :( or :-)",
        "“typographic ‘quotes’ and an apostrophe’s (own)",
        "``quotes of TeX'' and `those of old terminals'",
        "f'(g'(x)) = y'",
    ],
)
def test_prose_passes(text):
    score = judged(text)
    assert (score.value, score.details) == (1.0, "")
    assert score.signals == {"balanced_brackets": True, "balanced_quotes": True}


@pytest.mark.parametrize(
    "text",
    [
        r'x = "a\\"',
        r"x = 'a\\' + ')'",
        "print('(')",
        "f('o| (') == ['a (b']",
        "LIKE 'd%' or 'o|' or 'C-' or 'is('",
        "{'a':'b','c':['(']}",
        "print(f'{x} ') or rb'(' or b'('",
        "x = '' + \"\" + ''",
        '"""doc ( " string"""',
        "'''a'b('''",
        "fn f<'a>(x: &'a str) -> &'static str {}",
        "`foo(` bar",
        "a `` ` ( `` b",
        r"a path `C:\` (mine)",
        "text\n```python\nx = (it's)'\n```\nmore",
        r"\(x\) and \[y\]",
        '{"a": [1, {"b": "}"}]}',
    ],
)
def test_code_and_markdown_that_are_balanced_pass(text):
    assert judged(text).details == ""


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        ("f(", 1, 2, "( is never closed"),
        ("((a)", 1, 1, "( is never closed"),
        ("f(]", 1, 3, "] closes ( of line 1, column 2"),
        ("{\n  [1}\n", 2, 5, "} closes [ of line 2, column 3"),
        ("f(x))", 1, 5, ") closes nothing"),
        ("x = 1)", 1, 6, ") closes nothing"),
        ("one\r\ntwo)", 2, 4, ") closes nothing"),
        ("é😀)", 1, 3, ") closes nothing"),
        ('say "hi', 1, 5, '" is never closed'),
        ('"a\\"', 1, 1, '" is never closed'),
        ("\nprint('hello)", 2, 7, "' is never closed"),
        ("it's 'quoted", 1, 6, "' is never closed"),
        ('x = """doc"', 1, 5, '""" is never closed'),
        ("x = '''doc'", 1, 5, "''' is never closed"),
        ("some `code", 1, 6, "` is never closed"),
        ("```py\nx", 1, 1, "``` is never closed"),
    ],
)
def test_the_first_fault_is_told_with_its_line_and_column(text, line, column, message):
    score = judged(text)
    assert (score.value, score.details) == (0.0, f"line {line}, column {column}: {message}")
    assert (score.signals["line"], score.signals["column"]) == (line, column)
    check = "balanced_brackets" if message[0] in "()[]{}" else "balanced_quotes"
    assert score.signals[check] is False


def test_each_check_may_be_switched_off():
    assert value("(", check_balanced_brackets=False) == 1.0
    assert value('"', check_balanced_brackets=False) == 0.0
    assert value('"', check_balanced_quotes=False) == 1.0
    assert value('"("', check_balanced_quotes=False) == 0.0
    assert judged("x", check_balanced_quotes=False).signals == {"balanced_brackets": True}
    with pytest.raises(ConfigError, match="nothing is checked"):
        Syntax(check_balanced_brackets=False, check_balanced_quotes=False)


@pytest.mark.parametrize("output", [None, "", " \n", {}, [], 5, True, {"code": " "}, {"n": 1}, [1, None]])
def test_no_code_scores_0(output):
    for options in ({}, {"language": "python"}):
        score = judged(output, **options)
        assert (score.value, score.details, score.signals) == (0.0, "No code found", {"code_found": False})


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ({"why": "(", "code": "()", "output": "("}, 1.0),
        ({"code": "", "output": "(", "result": "()"}, 0.0),
        ({"code": 5, "content": "()"}, 1.0),
        ({"n": 1, "why": "(", "else": "()"}, 0.0),
        (["()", "("], 1.0),
    ],
)
def test_in_an_object_the_code_is_looked_for_in_the_usual_places(output, expected):
    assert value(output) == expected


@pytest.mark.parametrize("field", ["steps.0.code", "/steps/0/code"])
def test_a_field_is_looked_at_alone(field):
    assert value({"steps": [{"code": "()"}], "code": "("}, field=field) == 1.0
    score = judged({"code": "()"}, field=field)
    assert score.value == 0.0
    assert score.details == f"No code found: the output has no field {field!r}"


PAIRS = {"(": ")", "[": "]", "{": "}"}
nested = st.recursive(
    st.text("ab \n", max_size=5),
    lambda inner: st.lists(st.tuples(st.sampled_from(list(PAIRS)), inner).map(lambda p: p[0] + p[1] + PAIRS[p[0]])).map(
        " ".join
    ),
)


@given(nested, st.randoms())
def test_what_is_nested_passes_until_a_bracket_is_lost(text, draw):
    if text.strip():
        assert value(text) == 1.0
    brackets = [at for at, letter in enumerate(text) if letter in "()[]{}"]
    if brackets:
        lost = draw.choice(brackets)
        # "a) b" would be an item of a list
        assert value(text[:lost] + text[lost + 1 :], check_balanced_quotes=False) == 0.0 or " " in text


@given(st.text("()[]{}ax"))
def test_brackets_alone_agree_with_a_stack(text):
    stack = []
    balanced = True
    for letter in text:
        if letter in PAIRS:
            stack.append(PAIRS[letter])
        elif letter in PAIRS.values():
            balanced = balanced and bool(stack) and stack.pop() == letter
    if text:
        assert value(text) == float(balanced and not stack)


@given(
    st.lists(
        st.sampled_from(["it's", "dogs'", "don't", "l'été", "(see it)", "'tis", "[1]", '"so (he" said', '6"', "`x(`"]),
        min_size=1,
    )
)
def test_any_prose_of_whole_pieces_passes(pieces):
    assert judged(" ".join(pieces)).details == ""


@given(st.text("()[]{}\"'`\\ \nab1.", max_size=60) | st.text(max_size=200))
def test_any_text_gets_the_same_score_of_0_or_1_again(text):
    score = judged(text)
    assert score.value in (0.0, 1.0)
    assert score == judged(text)
    if score.value == 0.0 and text.strip():
        lines = text.split("\n")
        assert 1 <= score.signals["column"] <= len(lines[score.signals["line"] - 1])


@pytest.mark.parametrize(
    "text",
    [
        "(" * 300_000,
        "(" * 300_000 + ")" * 300_000,
        "'x " * 100_000,
        ("b'x " + "a'b" * 300) * 300,
        '"' + "\\a" * 300_000,
        '"\n\n"a' * 100_000,
        " ".join("`" * n for n in range(1, 1000)),
        "'''" + "''a" * 100_000,
        " :(" * 50_000,
        bytes(range(256)).decode("latin-1") * 3_000,
        "\ud800('x" * 100_000,
    ],
    ids=range(11),
)
def test_nothing_takes_more_than_time_in_proportion(text):
    started = time.process_time()
    assert value(text) in (0.0, 1.0)
    assert time.process_time() - started < 2  # far more than needed; what is quadratic would take minutes


# With a language


@pytest.mark.parametrize(
    ("language", "code"),
    [
        ("python", "def f(x: int) -> str:\n    return f'{x!r}'\n"),
        ("javascript", "const f = (x) => `${x}'s`;"),
        ("typescript", "let x: Array<string> = [];"),
        ("rust", "fn f<'a>(x: &'a str) -> char { '(' }"),
        ("cpp", "int main() { return 0; }"),
        ("csharp", "class A { int x; }"),
        ("json", '{"a": [1, 2]}'),
        ("yaml", "a: [1, 2]\n"),
        ("bash", "case $x in a) ls;; esac"),
        ("sql", "SELECT a FROM b WHERE c = 'd';"),
    ],
)
def test_a_grammar_reads_its_language(language, code):
    score = judged(code, language=language)
    assert (score.value, score.details, score.signals) == (1.0, "", {language: True, "fenced": False})


@pytest.mark.parametrize(
    ("language", "code", "message"),
    [
        ("python", "x = 1\ny = (1 2)\n", "line 2, column 8: cannot read '2'"),
        ("python", "é = 'é' 2\n", "line 1, column 5: cannot read \"'é'\""),
        ("rust", "fn main() { let x = 1 }", "line 1, column 22: ; is missing"),
        ("json", '{"a": [1, 2}', "line 1, column 12: ] is missing"),
        ("javascript", "let x = {a: 1", "line 1, column 1: cannot read 'let x = {a: 1'"),
    ],
)
def test_what_it_cannot_read_is_told_with_line_and_column(language, code, message):
    score = judged(code, language=language)
    assert (score.value, score.details) == (0.0, message)
    assert score.signals[language] is False
    assert score.signals["errors_total"] == 1
    (error,) = score.signals["errors"]
    assert f"line {error['line']}, column {error['column']}: {error['message']}" == message


def test_many_errors_are_counted_and_some_told():
    score = judged("x = 1\ny = )\n" * 40, language="python")
    assert score.signals["errors_total"] > 10
    assert len(score.signals["errors"]) == 10
    assert score.details.endswith(f"; and {score.signals['errors_total'] - 10} more")


ANSWER = "Here it is:\n\n```sh\nls (\n```\n\n```py\nx = 1\n```\n"


def test_fenced_code_is_judged_where_the_text_as_a_whole_is_no_code():
    score = judged(ANSWER, language="python")
    assert (score.value, score.signals) == (1.0, {"python": True, "fenced": True})
    score = judged(ANSWER.replace("x = 1", "x = ]"), language="python")
    assert score.details.startswith("line 8, column ")
    assert value("```\nx = (1)\n", language="python") == 1.0  # cut off, or unlabelled
    assert value("Not even code.", language="python") == 0.0


def test_an_unknown_language_is_refused_with_the_nearest():
    with pytest.raises(ConfigError, match="did you mean 'python'"):
        Syntax(language="pyton")
    with pytest.raises(ConfigError, match="did you mean 'javascript'"):
        Syntax(language="JS")


def test_grammars_are_imported_for_a_language_alone():
    code = "import sys, dicast_proxy; dicast_proxy.Syntax(); print([m for m in sys.modules if 'tree_sitter' in m or m == 're2'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize(
    ("language", "code"), [("dockerfile", "FROM a"), ("c", "#include <a.h>"), ("fortran", "#define X 1")]
)
def test_a_last_line_needs_no_end(language, code):
    assert value(code, language=language) == value(f"{code}\n", language=language) == 1.0


@pytest.mark.parametrize("code", ["(" * 100_000, "(" * 100_000 + ")" * 100_000, "[" * 100_000, '{"a":' * 20_000])
@pytest.mark.parametrize("language", ["python", "json", "c"])
def test_deep_nesting_gets_a_score(code, language):
    assert value(code, language=language) in (0.0, 1.0)


@pytest.mark.parametrize("code", [bytes(range(256)).decode("latin-1") * 20, "x = '\ud800'", "\ud800 (", "\x00"])
def test_what_is_no_text_gets_a_score(code):
    assert value(code, language="python") in (0.0, 1.0)


def test_more_code_than_is_read_is_a_failure_that_names_the_place():
    failure = judged({"code": "x = 1\n" * 1_500_000}, language="python", field="code")
    assert isinstance(failure, Failure)
    assert failure.kind == "missing_input"
    assert "9,000,000 characters of code at code" in failure.message


def test_a_timer_ends_a_parse_that_takes_too_long():
    class Over(BaseException):
        pass

    def end(number, frame):
        raise Over

    prose = "The quick brown fox, it's fine (really) and so on.\n" * 100_000
    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    started = time.process_time()
    try:
        with pytest.raises(Over):
            judged(prose, language="python")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert time.process_time() - started < 3


@given(st.text("def f(x):\n '\"#=1[]{}", max_size=80))
def test_any_text_gets_the_same_score_of_a_grammar_again(text):
    score = judged(text, language="python")
    assert score.value in (0.0, 1.0)
    assert score == judged(text, language="python")


@pytest.mark.parametrize("metric", [Syntax(), Syntax(language="rust", field="code")])
def test_it_is_frozen_comparable_and_picklable(metric):
    again = pickle.loads(pickle.dumps(metric))
    assert again == metric
    assert hash(again) == hash(metric)
    assert again.score(Subject("row", "q", output={"code": "fn f() {}"})).value == 1.0


def test_code_of_the_standard_library_is_read():
    for module in (random, subprocess, pickle):
        with open(module.__file__, encoding="utf-8") as file:
            assert value(file.read(), language="python") == 1.0


# What people and models have written


def texts(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from texts(item)


def outside(name):
    """The records of a file of the outside data."""
    folder = os.environ.get("DICAST_OUTSIDE_DATA") or Path(__file__).parents[4] / "shared" / "data"
    path = Path(folder) / name
    if not path.exists():
        pytest.skip(f"{name} is not in {path.parent}; DICAST_OUTSIDE_DATA names the folder that has it")
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


@pytest.mark.outside_data
def test_recorded_conversations_have_no_fault():
    faults = {text: judged(text).details for text in texts(outside("tau_bench_airline.jsonl.gz")) if text.strip()}
    assert len(faults) > 1_000
    assert {text: fault_text for text, fault_text in faults.items() if fault_text} == {}


@pytest.mark.outside_data
def test_texts_of_models_have_no_fault_but_those_that_are_cut_off():
    faults = {text: judged(text).details for text in texts(outside("llmbar_natural.jsonl.gz")) if text.strip()}
    assert len(faults) > 2_000
    wrong = [text for text, fault_text in faults.items() if fault_text]
    # All but one end in the middle of a sentence, and that one has "charitable" in Output (b".
    assert [text for text in wrong if text.endswith(".")] == [text for text in wrong if '(b".' in text]
    assert len(wrong) <= 10


@pytest.mark.outside_data
def test_correct_programs_have_no_fault():
    records = outside("human_eval.jsonl.gz")
    programs = [record["prompt"] + record["canonical_solution"] for record in records]
    assert len(programs) == 164
    for program in programs + [record["test"] for record in records]:
        assert judged(program).details == judged(program, language="python").details == ""


@pytest.mark.outside_data
def test_a_lost_bracket_is_a_fault_of_every_program():
    for record in outside("human_eval.jsonl.gz"):
        program = record["prompt"] + record["canonical_solution"]
        at = program.index(")", program.index(f"def {record['entry_point']}("))
        broken = program[:at] + program[at + 1 :]
        assert value(broken, language="python") == 0.0
