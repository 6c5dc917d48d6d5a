"""Parsers of the reports of test runners, on their real output."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dicast import Execution
from dicast_sandbox.suites.reports import Counts, detect_runner, first_passed_count, parse_junit, read_report

READ = {
    "unittest, all well": ("unittest", "...\nRan 3 tests in 0.001s\n\nOK\n", Counts(3, 0, 0)),
    "unittest, not": ("unittest", "Ran 6 tests in 0.1s\n\nFAILED (failures=1, errors=2, skipped=1)\n", Counts(2, 3, 1)),
    "unittest, unexpected": ("unittest", "Ran 2 tests in 0.1s\n\nFAILED (unexpected successes=1)\n", Counts(1, 1, 0)),
    "unittest, cut": ("unittest", "Ran 3 tests in 0.1s\n", None),
    "unittest, then Django": (
        "unittest",
        "Ran 1 test in 0.1s\n\nOK\nDestroying test database for alias 'default'...\n",
        Counts(1, 0, 0),
    ),
    "unittest, not the last words": (
        "unittest",
        "Ran 3 tests in 0.1s\n\nOK\nTraceback (most recent call last):\n",
        None,
    ),
    "unittest, twice": (
        "unittest",
        "Ran 9 tests in 0.1s\n\nOK\n" * 2 + "Ran 2 tests in 0.1s\n\nFAILED (errors=2)\n",
        Counts(0, 2, 0),
    ),
    "tap": ("tap", "1..4\nok 1 - a\nnot ok 2 - b\nok 3 # SKIP no\nnot ok 4 # TODO later\n", Counts(1, 1, 2)),
    "tap, cut short": ("tap", "1..3\nok 1\n", Counts(1, 2, 0)),
    "tap, without a plan": ("tap", "ok 1\n", None),
    "cargo": (
        "cargo",
        "test result: ok. 24 passed; 0 failed; 1 ignored; 0 measured\n\ntest result: FAILED. 1 passed; 2 failed; 0 ignored;",
        Counts(25, 2, 1),
    ),
    "cargo, not built": ("cargo", "error: could not compile", None),
    "go": (
        "go",
        "=== RUN   TestA\n--- PASS: TestA (0.00s)\n    --- FAIL: TestA/b (0.00s)\n--- SKIP: TestC (0.00s)",
        Counts(1, 1, 1),
    ),
    "go, JSON": (
        "go",
        (
            '{"Action":"output","Test":"A","Output":"=== RUN   A\\n"}\n{"Action":"output","Test":"A","Output":"--- PASS: A (0.00s)\\n"}\n'
            '{"Action":"run","Test":"B"}\n{"Action":"output","Test":"B","Output":"=== RUN   B\\n"}\n'
            '{"Action":"output","Test":"B","Output":"ok  \\tx\\t0.004s\\n"}\n{"Action":"pass","Test":"B"}\n{oops\n'
        ),
        Counts(1, 1, 0),
    ),
    "go, after a print": ("go", "=== RUN   TestA\nhello--- PASS: TestA (0.00s)\n", Counts(1, 0, 0)),
    "go, not built": ("go", "FAIL\tx [build failed]\n--- PASS: TestB (0.00s)\nok  \tx/sub\t0.003s\n", Counts(1, 1, 0)),
    "jest": (
        "jest",
        "Test Suites: 1 failed, 1 total\nTests:       1 failed, 1 skipped, 3 passed, 5 total\n",
        Counts(3, 1, 1),
    ),
    "vitest": ("vitest", "\x1b[2m      Tests \x1b[22m 2 passed (2)\n", Counts(2, 0, 0)),
    "unittest, in colors": ("unittest", "Ran 1 test in 0.1s\n\n\x1b[1;32mOK\x1b[0m\n", Counts(1, 0, 0)),
    "cargo, ended early": (
        "cargo",
        "running 4 tests\n\nrunning 1 test\ntest result: ok. 1 passed; 0 failed; 0 ignored; 0 measured;",
        Counts(1, 4, 0),
    ),
    "jest, one file not run": (
        "jest",
        "Test Suites: 1 failed, 1 passed, 2 total\nTests:       1 passed, 1 total\n",
        Counts(1, 1, 0),
    ),
    "vitest, expected": ("vitest", "      Tests  4 passed | 1 expected fail (5)\n", Counts(5, 0, 0)),
    "node, a file without tests": (
        "node",
        "ok 1 - a.test.js\n  ---\n  duration_ms: 1\n  type: 'test'\n  ...\n# pass 1\n# fail 0\n",
        Counts(0, 0, 0),
    ),
    "node, a suite named like a file": (
        "node",
        "ok 1 - a.js\n  ---\n  duration_ms: 1\n  type: 'suite'\n  ...\n# pass 1\n# fail 0\n",
        Counts(1, 0, 0),
    ),
    "node, a file without tests in colors": (
        "node",
        "\x1b[32m\u2714 a.test.js \x1b[90m(45.8ms)\x1b[39m\x1b[39m\n\x1b[34m\u2139 pass 1\x1b[39m\n",
        Counts(0, 0, 0),
    ),
    "node, TAP": ("node", "# tests 3\n# pass 1\n# fail 1\n# cancelled 1\n# skipped 0\n# todo 0\n", Counts(1, 2, 0)),
    "node, spec": ("node", "ℹ tests 2\nℹ pass 2\nℹ fail 0\n", Counts(2, 0, 0)),
}


@pytest.mark.parametrize(("report", "output", "counts"), READ.values(), ids=READ)
def test_reports_are_read(report, output, counts):
    assert read_report(report, Execution(0 if counts and not counts.failed else 1, output, 0.1)) == counts


def test_unittest_that_is_well_ends_with_0():
    assert read_report("unittest", Execution(1, "Ran 3 tests in 0.1s\n\nOK\n", 0.1)) is None


XML = b"""<?xml version="1.0" encoding="utf-8"?><testsuites><testsuite name="pytest" tests="4">
<testcase name="a"/><testcase name="b"><failure message="no">x</failure></testcase>
<testcase name="c"><skipped/></testcase><testcase name="d"><error/></testcase></testsuite></testsuites>"""


def test_junit_counts_the_cases():
    assert parse_junit(XML) == Counts(1, 2, 1)


@pytest.mark.parametrize(
    "document", [b"", b"<a", b"<testsuite/>", b'<!DOCTYPE x [<!ENTITY a "b">]><testcase>&a;</testcase>']
)
def test_junit_that_is_none_or_too_clever_is_not_read(document):
    assert parse_junit(document) is None


@given(st.binary())
def test_junit_reads_anything_or_nothing(document):
    assert parse_junit(document) is None or isinstance(parse_junit(document), Counts)


@given(st.text(), st.sampled_from(["unittest", "tap", "cargo", "go", "jest", "node"]))
def test_readers_read_anything_or_nothing(output, report):
    counts = read_report(report, Execution(0, output, 0.1))
    assert counts is None or min(counts.passed, counts.failed, counts.skipped) >= 0


@pytest.mark.parametrize(
    ("command", "report"),
    [
        ("python3 -m pytest -q tests", "pytest"),
        (("/usr/bin/pytest", "x"), "pytest"),
        ("cd a && python3 -m unittest", "unittest"),
        ("cargo test --quiet", "cargo"),
        ("cargo run", "none"),
        ("go test ./...", "go"),
        ("npx jest", "jest"),
        ("npx vitest run", "vitest"),
        ("node --test", "node"),
        ("node a.js", "none"),
        ("python3 check.py", "none"),
        ("echo 'unclosed; pytest", "pytest"),
    ],
)
def test_the_command_says_what_it_reports(command, report):
    assert detect_runner(command) == report


def test_the_first_number_of_passed_tests_counts():
    assert first_passed_count("24 passed; 0 failed, 3 passed") == 24
    assert first_passed_count("none") is None
