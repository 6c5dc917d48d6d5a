from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dicast_diff.grammar
from dicast import ConfigError, Failure, Subject
from dicast_diff import Match


def judged(output, reference, language="python"):
    match = Match(strictness="ast_equivalent", language=language)
    return match.score(Subject("row", "q1", output=output, reference=reference))


def value(output, reference, language="python") -> float:
    return judged(output, reference, language).value


FUNCTION = '''def f(a, b):
    """Say something.

        Indented.
    """
    return (a + b) * "it's"[0x10]
'''

EQUAL_CODE = [
    "def f(a,b):\n  '''Say something.   \n\n      Indented.'''\n  return ((a + b) * 'it\\'s'[16])  # so\n",
    FUNCTION.replace("\n", "\r\n"),
    "# a comment\n\n\n" + FUNCTION.replace("(a, b)", "(\n    a,\n    b,\n)"),
    FUNCTION.replace("return", "return \\\n"),
    FUNCTION.replace('"it\'s"', 'u"it" "\'s"'),
]
OTHER = [
    FUNCTION.replace("+", "-"),
    FUNCTION.replace("(a + b) *", "a + b *"),
    FUNCTION.replace("Say", "Tell"),
    FUNCTION.replace('"it\'s"', 'b"its"'),
    FUNCTION.replace("0x10", "16.0"),
    FUNCTION.replace("0x10", "True"),
    FUNCTION.replace("f(a", "g(a"),
    FUNCTION + "f(1, 2)\n",
    "# nothing",
]


@pytest.mark.parametrize("code", EQUAL_CODE)
def test_layout_comments_quotes_and_redundant_parentheses_do_not_matter(code):
    assert ast.parse(code)
    assert value(code, FUNCTION) == value(FUNCTION, code) == 1.0


@pytest.mark.parametrize("code", OTHER)
def test_everything_else_does(code):
    assert value(code, FUNCTION) == value(FUNCTION, code) == 0.0


def test_the_details_say_where_the_code_differs():
    score = judged("é = 1\nx = f(é + 2)\n", "é = 1\n\nx = f(é - 2)\n")
    assert score.details == "differs at 2:7 'é + 2)' from the reference at 3:7 'é - 2)'"
    assert score.signals == {"parsed": True}


@pytest.mark.parametrize(
    ("code", "place"),
    [("x = ", "1:5"), ("é = =", "1:5"), ("x\n\0", "2:1"), ("x = '\ud800'", "1:6"), ("if x:\npass", "2:1")],
)
def test_code_that_does_not_parse_scores_0_with_its_place(code, place):
    score = judged(code, "x")
    assert score.value == 0.0
    assert score.details.startswith("not python: ")
    assert score.details.endswith(f" at {place}")
    line, column = map(int, place.split(":"))
    assert score.signals == {"parsed": False, "line": line, "column": column}


def test_a_reference_that_does_not_parse_is_a_failure():
    failure = judged("x", "x = = 1")
    assert isinstance(failure, Failure)
    assert failure.kind == "missing_input"
    assert failure.message == "the reference of 'q1' is not python: invalid syntax at 1:5"


@pytest.mark.parametrize("output", [{"code": "x"}, 5, [["x"]], True])
def test_what_is_no_text_is_no_code(output):
    assert judged(output, "x").value == 0.0
    assert judged("x", output).kind == "missing_input"


@pytest.mark.slow
@pytest.mark.parametrize(
    "nested", ["(" * 100_000 + ")" * 100_000, "-" * 100_000 + "1", "x" + ".x" * 100_000, "[" * 90 + "]" * 90]
)
@pytest.mark.parametrize("language", ["python", "javascript"])
def test_deep_code_ends_in_a_score(nested, language):
    assert judged(nested, "x", language).value == 0.0


def test_code_that_would_take_too_long_is_a_failure_at_once():
    failure = judged("x " * 50_000_000, "x")
    assert isinstance(failure, Failure)
    assert failure.kind == "timeout"
    assert "100,000,000 and 1 characters" in failure.message


def test_warnings_about_the_code_are_nobodys_business():
    assert value("x = '\\d'\nassert (x, 1)\n", "x='\\d'; assert(x,1)") == 1.0


PAIRS = [
    ("javascript", "f(a,  // why\n  b + (c * d),\n)", "f(a, b + c*d);"),
    ("javascript", "x = 'it\\'s \"so\"'", 'x = "it\'s \\"so\\""'),
    ("javascript", "for (;;) { go() }", "for(;;){go();}"),
    ("typescript", "const x: string = 'a'", 'const x:string="a";'),
    ("go", "package m\nfunc f() { a := 1; b := 2 }", "package m\n\nfunc f() {\n\ta := 1 // one\n\tb := 2\n}"),
    ("rust", "fn f() -> i32 { /* so */ (1 + 2) }", "fn f()->i32{\n    1+2\n}"),
    ("java", "class A { int f() { return (a) ; } }", "class A{int f(){return a;}}"),
    ("c", "int x = 1 + 2; // three", "int x=1\n+2;"),
    ("lua", "x = 'a'; y = \"b\" -- so", "x = \"a\"\ny = 'b'"),
    ("ruby", "x = 'a b'", 'x  =  "a b"'),
    ("bash", "foo \\\n  bar; baz 'q'", 'foo bar\nbaz "q"'),
    ("json", '{"a": [1, 2]}', '{\n"a":[1,2]}'),
    ("html", "<a href='x'>b</a>", '<a  href="x">b</a>'),
]
DIFFERENT = [
    ("javascript", "x = (a + b) * c", "x = a + b * c"),
    ("javascript", "(a?.b).c", "a?.b.c"),
    ("javascript", "[1,,]", "[1,]"),
    ("javascript", "`a  b`", "`a b`"),
    ("javascript", "x = '\\n'", "x = 'n'"),
    ("javascript", "for (x;;) {}", "for (;x;) {}"),
    ("rust", "fn f() -> i32 { 1 }", "fn f() -> i32 { 1; }"),
    ("rust", "fn f() { (x.f)() }", "fn f() { x.f() }"),
    ("rust", "fn f() { let x = (1,); }", "fn f() { let x = (1); }"),
    ("c", "int x = 'a';", 'int x = "a";'),
    ("bash", "echo '$a'", 'echo "$a"'),
    ("ruby", "x = '#{a}'", 'x = "#{a}"'),
    ("json", '{"a": "x  y"}', '{"a": "x y"}'),
    ("json", '{"a": 1, "b": 2}', '{"a": 1, "b": 3}'),
    ("lua", "return (f())", "return f()"),
]


@pytest.mark.parametrize(("language", "first", "other"), PAIRS)
def test_other_languages_are_compared_by_their_grammar(language, first, other):
    assert value(first, other, language) == value(other, first, language) == 1.0


@pytest.mark.parametrize(("language", "first", "other"), DIFFERENT)
def test_what_means_another_thing_is_another_tree(language, first, other):
    assert value(first, first, language) == value(other, other, language) == 1.0
    assert value(first, other, language) == value(other, first, language) == 0.0


def test_code_of_other_languages_that_does_not_parse_scores_0_with_its_place():
    score = judged("let é = 1;\nlet é = (2;\n", "let x", "javascript")
    assert score.details == "not javascript: ')' is missing at 2:11"
    assert (score.signals["line"], score.signals["column"]) == (2, 11)
    assert judged("x", "let = (", "javascript").kind == "missing_input"


def test_an_unknown_language_names_the_nearest():
    with pytest.raises(ConfigError, match="unknown language 'javscript', did you mean 'javascript'"):
        Match(strictness="ast_equivalent", language="javscript")
    with pytest.raises(ConfigError, match="did you mean 'python'"):
        Match(strictness="ast_equivalent", language="pyton")


def test_without_the_grammars_the_extra_is_named(monkeypatch):
    monkeypatch.setattr(dicast_diff.grammar, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"dicast\[grammars\]"):
        Match(strictness="ast_equivalent", language="rust")
    assert Match(strictness="ast_equivalent").language == "python"


def test_a_language_belongs_to_code():
    with pytest.raises(ConfigError, match="language: rust belongs to strictness: ast_equivalent"):
        Match(language="rust")


names = st.sampled_from(["a", "b", "é"])
expressions = st.recursive(
    names | st.sampled_from(["1", "1.0", "True", "'s'", 'b"t"']),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", "**", "<", " and "]), inner).map(
            lambda parts: f"({''.join(parts)})"
        ),
        inner.map(lambda one: f"[{one}]"),
        inner.map(lambda one: f"f({one})"),
        inner.map(lambda one: f"(lambda: {one})"),
    ),
    max_leaves=8,
)
modules = st.lists(expressions.map("x = {}\n".format), min_size=1, max_size=4).map("".join)


@given(modules)
def test_code_written_anew_from_its_tree_is_equivalent(code):
    assert value(ast.unparse(ast.parse(code)), code) == 1.0


@given(modules, modules)
def test_equivalence_is_symmetric_and_that_of_the_dumped_trees(first, other):
    assert value(first, other) == value(other, first) == float(ast.dump(ast.parse(first)) == ast.dump(ast.parse(other)))
    assert judged(first, other) == judged(first, other)


@given(st.text())
def test_any_text_ends_in_a_score(text):
    for language in ("python", "javascript"):
        score = judged(text, "x", language)
        assert score.value in (0.0, 1.0)
        score.details.encode()
