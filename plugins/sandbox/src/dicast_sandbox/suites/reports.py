"""Reports of test runners: the numbers of tests that passed, failed and were skipped."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from typing import Literal
from xml.etree import ElementTree as ET

import attrs

from dicast import Execution, Program

from ..commands.words import command_words

Report = Literal["pytest", "unittest", "junit", "tap", "cargo", "go", "jest", "vitest", "node", "none"]

FILE = ".dicast-report.xml"
"""Report file in the workspace."""

# The command may change folder; pytest itself expands the variable.
_PYTEST = f"--junitxml=$DICAST_WORKSPACE/{FILE} -p no:cacheprovider"
_IN_WORKSPACE = 'export DICAST_WORKSPACE="$PWD"; exec "$@"'
_JUNIT = re.compile(r"--junit-?xml(?:=(.+))?")
_RUNNERS = ("pytest", "unittest", "cargo", "go", "jest", "vitest", "node")
_COLORS = re.compile(r"\x1b(?:\[[\d;]*[A-Za-z]|\([A-Z0-9])")


@attrs.frozen
class Counts:
    """Numbers of tests that passed, that failed or could not run, and that were skipped."""

    passed: int
    failed: int
    skipped: int = 0


def detect_runner(command: str | tuple[str, ...]) -> Report:
    """Return the kind of report of *command*, by the name of the runner in it; ``none`` for an unknown runner."""
    words = command_words(command)
    names = [word.rpartition("/")[2] for word in words]
    for name in _RUNNERS:
        if name in names and (name != "node" or "--test" in words) and (name not in {"cargo", "go"} or "test" in words):
            return name  # type: ignore[return-value]  # each runner's name is a report
    return "none"


def with_report(report: Report, program: Program, command: str | tuple[str, ...], file: str | None) -> Program:
    """Return *program*, which runs *command*, changed so that it writes its report; *file* is the path of JUnit XML."""
    if report == "pytest":
        words = ("/bin/sh", "-c", _IN_WORKSPACE, "sh", *program.command)
        collect = _report_file(command) or FILE
        return attrs.evolve(program, command=words, environment={"PYTEST_ADDOPTS": _PYTEST}, collect=collect)
    # Without this variable Python writes the output of tests at its end, after the report.
    environment = {"go": {"GOFLAGS": "-v"}, "unittest": {"PYTHONUNBUFFERED": "1"}}.get(report, {})
    return attrs.evolve(program, environment=environment, collect=file if report == "junit" else None)


def _report_file(command: str | tuple[str, ...]) -> str | None:
    """Return the report file in pytest's options in *command*, relative to the workspace; the command may change folder first."""
    folder = ""
    for word, following in pairwise([*command_words(command), ""]):
        if word == "cd":
            folder = posixpath.join(folder, following.rstrip(";"))
        if match := _JUNIT.fullmatch(word):
            return posixpath.normpath(posixpath.join(folder, (match[1] or following).rstrip(";")))
    return None


def read_report(report: Report, execution: Execution) -> Counts | None:
    """Return the counts of a report; None if there is no readable report."""
    if report in ("pytest", "junit"):
        return None if execution.collected is None else parse_junit(execution.collected)
    if report not in READERS:
        return None
    counts = READERS[report](_COLORS.sub("", execution.output))
    if report == "unittest" and counts is not None and not counts.failed and execution.exit != 0:
        return None  # a run without failures ends with 0
    return counts


def parse_junit(document: bytes) -> Counts | None:
    """Parse JUnit XML: each ``testcase`` counts."""
    if b"<!" in document.replace(b"<![CDATA[", b"").replace(b"<!--", b""):
        return None  # a document type: no runner writes one, and entities can grow without end
    try:
        root = ET.fromstring(document)  # noqa: S314  # without entities
    except ET.ParseError:
        return None
    outcomes = [_outcome({child.tag for child in case}) for case in root.iter("testcase")]
    return _count_outcomes(outcomes) if outcomes else None


def _outcome(tags: set[str]) -> str:
    if tags & {"failure", "error"}:
        return "failed"
    return "skipped" if "skipped" in tags else "passed"


def _count_outcomes(outcomes: Iterable[str]) -> Counts:
    listed = list(outcomes)
    return Counts(*(listed.count(name) for name in ("passed", "failed", "skipped")))


_RAN = re.compile(
    r"^Ran (\d+) tests? in \S+\n\n(?:OK|FAILED|NO TESTS RAN)(?: \(([^\n]*)\))?(?:\n\w+ing test database[^\n]*)*\s*\Z",
    re.MULTILINE,
)  # Django's last lines are on its databases


def parse_unittest(output: str) -> Counts | None:
    """Parse the two last lines: ``Ran N tests`` and ``OK`` or ``FAILED``, with the numbers of other outcomes in brackets.

    They have to be the end of the output: otherwise the runner has not finished.
    """
    match = _RAN.search(output)
    if match is None:
        return None
    total, other_counts = match[1], match[2] or ""
    other = {name: int(number) for name, number in re.findall(r"([\w ]+)=(\d+)", other_counts)}
    other = {name.strip(): number for name, number in other.items()}
    failed = sum(other.get(name, 0) for name in ("failures", "errors", "unexpected successes"))
    skipped = other.get("skipped", 0)
    return Counts(max(0, int(total) - failed - skipped), failed, skipped)


_TAP = re.compile(r"^(not )?ok\b[^#\n]*(#\s*(skip|todo)\b)?", re.MULTILINE | re.IGNORECASE)
_PLAN = re.compile(r"^1\.\.(\d+)\s*(?:#.*)?$", re.MULTILINE)


def parse_tap(output: str) -> Counts | None:
    """Parse TAP: the lines ``ok`` and ``not ok`` at the margin; planned tests without a line have failed."""
    lines = _TAP.findall(output)
    plan = _PLAN.findall(output)
    if not plan:
        return None
    skipped = sum(bool(directive) for _, _, directive in lines)
    failed = sum(bool(no) and not directive for no, _, directive in lines)
    missing = max(0, int(plan[-1]) - len(lines))
    return Counts(len(lines) - failed - skipped, failed + missing, skipped)


def parse_cargo(output: str) -> Counts | None:
    """Parse every ``test result:`` line, one for each of the crate's programs; tests without a result have failed."""
    numbers = r"^test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored(?:; (\d+) measured)?"
    results = re.findall(numbers, output, re.MULTILINE)
    if not results:
        return None
    passed, failed, ignored, measured = (
        sum(int(number or 0) for number in column) for column in zip(*results, strict=True)
    )
    running = sum(map(int, re.findall(r"^running (\d+) tests?$", output, re.MULTILINE)))
    return Counts(passed, failed + max(0, running - passed - failed - ignored - measured), ignored)


_GO_OUTCOMES = {"PASS": "passed", "FAIL": "failed", "SKIP": "skipped"}
_GO_TEST = re.compile(
    r"=== (RUN) +\S+$|--- (PASS|FAIL|SKIP): \S+ \([\d.]+s\)$", re.MULTILINE
)  # after a print it is not at the margin
_GO_UNBUILT = re.compile(r"^FAIL\t\S+ \[(?:build|setup) failed\]$", re.MULTILINE)


def parse_go(output: str) -> Counts | None:
    """Parse ``go test -v`` or ``-json``: the lines of tests, and the lines of packages that were not built.

    Tests that started and did not end have failed. The JSON events report such tests as passed if the package's program ended with 0,
    so only the text in the events is read.
    """
    text = "".join(map(_output_text, output.splitlines(keepends=True)))
    events = [run or outcome for run, outcome in _GO_TEST.findall(text)]
    outcomes = [_GO_OUTCOMES[word] for word in events if word != "RUN"]
    lost = max(0, events.count("RUN") - len(outcomes)) + len(_GO_UNBUILT.findall(text))
    return _count_outcomes([*outcomes, *["failed"] * lost]) if outcomes or lost else None


def _output_text(line: str) -> str:
    """Return the quoted output in a line of ``go test -json``; any other line as it is."""
    if not line.startswith("{"):
        return line
    try:
        event: Mapping[str, object] = json.loads(line)  # an object, by its first character
    except json.JSONDecodeError:
        return line
    return str(event.get("Output", ""))


def parse_jest(output: str) -> Counts | None:
    """Parse the line ``Tests:`` of jest, or ``Tests`` of vitest; if no test failed, failed files count as failed tests."""
    tests, files = _summary_numbers(r"Tests:?", output), _summary_numbers(r"(?:Test Suites:|Test Files)", output)
    if not tests:
        return None
    passed = tests.get("passed", 0) + tests.get("expected fail", 0)
    left_out = sum(tests.get(name, 0) for name in ("skipped", "todo", "pending"))
    return Counts(passed, tests.get("failed", 0) or files.get("failed", 0), left_out)


def _summary_numbers(label: str, output: str) -> dict[str, int]:
    """Return the numbers in the last line that begins with *label*, by the words after them."""
    lines = re.findall(rf"^\s*{label}\s+(.*\d.*)$", output, re.MULTILINE)
    named = re.findall(r"(\d+) (passed|failed|expected fail|skipped|todo|pending|total)", lines[-1]) if lines else ()
    return {name: int(count) for count, name in named}


_FILE_PASSED = re.compile(
    r"^(?:ok \d+ - |\u2714 )(\S+\.[cm]?[jt]sx?)(?: \([\d.]+ms\))?$(?!\n  ---\n.*\n  type: 'suite')", re.MULTILINE
)
_SUITE = re.compile(r"^\u25b6 (.*?)(?: \([\d.]+ms\))?$", re.MULTILINE)


def parse_node(output: str) -> Counts | None:
    """Parse the last lines of ``node --test``: ``# pass 3``, or the same after another sign.

    The runner counts a file without tests as a passed test. Such files are subtracted: a file may have ended before its tests.
    """
    number = dict(re.findall(r"^[#\u2139] (pass|fail|cancelled|skipped|todo) (\d+)$", output, re.MULTILINE))
    if "pass" not in number:
        return None
    counts = {name: int(count) for name, count in number.items()}
    suites = set(_SUITE.findall(output))
    files = sum(name not in suites for name in _FILE_PASSED.findall(output))
    failed = counts.get("fail", 0) + counts.get("cancelled", 0)
    return Counts(max(0, counts["pass"] - files), failed, counts.get("skipped", 0) + counts.get("todo", 0))


READERS: Mapping[str, Callable[[str], Counts | None]] = {
    "unittest": parse_unittest,
    "tap": parse_tap,
    "cargo": parse_cargo,
    "go": parse_go,
    "jest": parse_jest,
    "vitest": parse_jest,
    "node": parse_node,
}


def first_passed_count(output: str) -> int | None:
    """Return the number in the first ``N passed`` of *output*; None if there is none."""
    match = re.search(r"(\d+) passed", output)
    return None if match is None else int(match[1])
