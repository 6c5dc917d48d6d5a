"""``evaluator/metric_lines``: the command's case, the scores from its lines, and the checks."""

from __future__ import annotations

import json
import shutil
import subprocess

import pytest

import dicast
from dicast.testing import run_pipeline
from dicast_evaluator import MetricLinesEvaluator

CASES = {
    "bash": (
        '#!/bin/bash\nset -euo pipefail\necho "METRIC words=$(wc -w < "$1")"\necho "METRIC quality=0.75"\n',
        "evaluate.sh",
    ),
    "node": (
        """
const text = require('fs').readFileSync(process.argv[2], 'utf8')
console.log(`METRIC words=${text.split(/\\s+/).length}`)
console.error('METRIC quality=0.75')
""",
        "evaluate.js",
    ),
    "python3": (
        "import sys\nprint(f'METRIC words={len(open(sys.argv[1]).read().split())}', 'METRIC quality=0.75', sep='\\n')\n",
        "evaluate.py",
    ),
}
C = """
#include <stdio.h>
int main(int argc, char **argv) {
    FILE *file = fopen(argv[1], "r");
    char word[100];
    int words = 0;
    while (fscanf(file, "%99s", word) == 1) words++;
    printf("METRIC words=%d\\nMETRIC quality=%.2f\\n", words, 0.75);
}
"""


def lines(command, **options):
    return {"evaluator/metric_lines": {"command": command, **options}}


@pytest.mark.parametrize("language", CASES)
def test_an_evaluator_may_be_written_in_any_language(judged, tmp_path, language):
    if shutil.which(language) is None:
        pytest.skip(f"{language} is not installed")
    code, name = CASES[language]
    (tmp_path / name).write_text(code)
    (score,) = judged(lines([language, str(tmp_path / name)], primary="quality"), {"output": "one two three"}).scores
    assert score["value"] == 0.75
    assert score["signals"] == {"primary_metric": 0.75, "secondary_metrics": {"words": 3}, "asi": {}}


@pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")
def test_an_evaluator_may_be_written_in_c(judged, tmp_path):
    (tmp_path / "evaluate.c").write_text(C)
    subprocess.run(["gcc", "-o", tmp_path / "evaluate", tmp_path / "evaluate.c"], check=True)
    (score,) = judged(lines(str(tmp_path / "evaluate"), primary="quality"), {"output": "one two"}).scores
    assert (score["value"], score["signals"]["secondary_metrics"]) == (0.75, {"words": 2})


def test_the_case_is_the_output_as_a_file_and_the_row_stands_beside_it(judged, program):
    code = """
case, row = sys.argv[-1], json.load(open(os.environ["DICAST_ROW"]))
assert case == os.environ["DICAST_CASE"] and os.path.isabs(case)
print("ASI case=" + json.dumps(open(case, newline="").read()), "ASI row=" + json.dumps(row), "METRIC a=1", sep="\\n")
"""
    row = {"output": "größer\r\n", "input": "q", "reference": "r", "context": {"hard": 1}}
    (score,) = judged(lines(program(code)), row).scores
    expected = {"id": "1", "input": "q", "output": "größer\r\n", "reference": "r", "hard": 1}
    assert score["signals"]["asi"] == {"case": "größer\r\n", "row": expected}


def test_a_row_without_an_output_is_its_input(judged, program):
    (score,) = judged(
        lines(program("print('METRIC a=1\\nASI case=' + open(sys.argv[1]).read())")), {"input": "asked"}
    ).scores
    assert score["signals"]["asi"] == {"case": "asked"}


@pytest.mark.parametrize("column", ["case", "path"])
def test_a_row_may_name_the_cases_file(tmp_path, monkeypatch, program, column):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cases").mkdir()
    (tmp_path / "cases" / "-1.md").write_text("kept")
    rows = [{"id": "1", column: "cases/-1.md"}, {"id": "2", column: "cases/2.md"}, {"id": "3", column: 3}]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    command = program("print('METRIC a=1\\nASI case=' + sys.argv[1] + ' ' + open(sys.argv[1]).read())")
    pipeline = {"source": {"rows/jsonl": {"path": "rows.jsonl"}}, "metrics": [lines(command)]}
    run = dicast.run(pipeline)
    (verdict,) = run.verdicts
    assert verdict.scores[0]["signals"]["asi"]["case"] == f"{tmp_path}/cases/-1.md kept"
    assert run.failures == {"missing_input": 2}


def test_the_last_value_of_stdout_and_stderr_counts(judged, program):
    code = """
for n in range(100):
    print(f"METRIC a=0.{n:02}", file=sys.stderr if n % 2 else sys.stdout, flush=True)
print("METRIC b=1 ms")
"""
    assert judged(lines(program(code)), {"output": ""}).values == [0.99]


def test_strict_lines_are_those_of_the_protocol(judged, program):
    code = "print('METRIC a=0.5\\nMETRIC  a=0.75\\nMETRIC b=1e3')"
    (score,) = judged(lines(program(code), syntax="strict"), {"output": ""}).scores
    assert score["signals"] == {"primary_metric": 0.5, "secondary_metrics": {}, "asi": {}}


@pytest.mark.parametrize(
    ("printed", "options", "kind", "message"),
    [
        (
            "METRIC b=1\\nMETRIC aa=2",
            {"primary": "a"},
            "judge_output_invalid",
            "no METRIC line of 'a'; there were: b, aa",
        ),
        ("metric a=1", {"primary": "a"}, "judge_output_invalid", "no METRIC line of 'a'; there were none at all"),
        ("", {}, "judge_output_invalid", "no METRIC line; the evaluator prints METRIC name=number"),
        (
            "METRIC a=1\\nMETRIC b=1",
            {},
            "judge_output_invalid",
            "several metrics, a, b; choose one with primary",
        ),
        (
            "METRIC a=8.5",
            {},
            "invalid_score",
            "8.5 lies outside [0, 1]; declare its scale with range: [low, high]",
        ),
    ],
)
def test_what_makes_no_score_is_a_failure_that_says_so(judged, program, printed, options, kind, message):
    assert judged(lines(program(f"print('{printed}')"), **options), {"output": ""}).failures == [(kind, message)]


def test_a_range_makes_a_score_of_any_metric_and_lower_may_be_better(judged, program):
    command = program("print('METRIC latency_ms=250')")
    assert judged(lines(command, range=[0, 1000]), {"output": ""}).values == [0.25]
    for direction in ("lower", "lower_is_better"):
        result = judged(lines(command, range=[0, 1000], direction=direction), {"output": ""})
        assert result.values == [0.75]
        assert result.scores[0]["signals"]["primary_metric"] == 250
    with pytest.raises(
        dicast.RequestError, match="evaluator/metric_lines has a raw scale; set its bounds, as in range"
    ):
        judged(lines(command, direction="lower"), {"output": ""})


def test_a_command_that_fails_is_a_crash_whatever_it_printed(judged, program):
    command = program("print('METRIC a=1'); sys.exit('it broke')")
    (failure,) = judged(lines(command), {"output": ""}).failures
    assert failure[0] == "crashed"
    assert failure[1].startswith("Command exited with code 1")
    assert failure[1].endswith("it broke")


def test_checks_run_before_the_measurement_and_their_failure_is_of_its_own_kind(judged, program, tmp_path):
    checks = program(
        "print(open(os.environ['DICAST_CASE']).read()); assert len(sys.argv) == 1; sys.exit('two lines too long')"
    )
    command = program(f"open({str(tmp_path / 'measured')!r}, 'w'); print('METRIC a=1')")
    ((kind, message),) = judged(lines(command, checks=checks), {"output": "the case"}).failures
    assert kind == "checks_failed"
    assert message.startswith("Checks exited with code 1: the case")
    assert message.endswith("two lines too long")
    assert not (tmp_path / "measured").exists()


def test_checks_may_run_after_the_measurement_and_only_where_that_succeeded(judged, program, tmp_path):
    checks = program(f"open({str(tmp_path / 'checked')!r}, 'w'); sys.exit(3)")
    good = program("print('METRIC a=1')")
    ((kind, _),) = judged(lines(good, checks=checks, when="after"), {"output": ""}).failures
    assert kind == "checks_failed"
    (tmp_path / "checked").unlink()
    broken = program("sys.exit(1)")
    ((kind, _),) = judged(lines(broken, checks=checks, when="after"), {"output": ""}).failures
    assert (kind, (tmp_path / "checked").exists()) == ("crashed", False)


def test_checks_that_pass_change_nothing(judged, program):
    checks = program("print('METRIC a=0.1')")
    assert judged(lines(program("print('METRIC a=0.5')"), checks=checks), {"output": ""}).values == [0.5]


@pytest.mark.parametrize("option", ["command", "checks"])
def test_a_missing_command_is_found_before_anything_is_judged(judged, program, option):
    options = {"command": program("print('METRIC a=1')"), option: ["no-such-program"]}
    with pytest.raises(
        dicast.RequestError, match=r"preflight failed for command 'no-such-program'.*executable not found"
    ):
        judged({"evaluator/metric_lines": options}, {"output": ""})


def test_what_takes_too_long_is_ended_with_all_that_it_started(judged, program, tmp_path):
    code = f"""
import subprocess
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], start_new_session=True)
open({str(tmp_path / "running")!r}, "w").write("yes")
time.sleep(60)
"""
    ((kind, message),) = judged(lines(program(code), timeout=0.5), {"output": ""}).failures
    assert (kind, message) == ("timeout", "no answer within 0.5 s")


def test_noise_of_any_length_is_read_to_its_end(judged, program):
    code = """
print("METRIC a=0.1")
sys.stdout.buffer.write(b"\\xff" * 3_000_000 + b"\\n" + b"noise\\n" * 500_000)
print("METRIC a=0.5")
"""
    assert judged(lines(program(code)), {"output": ""}).values == [0.5]


def test_lines_that_could_not_be_kept_are_no_score(judged, program):
    code = "print('METRIC a=0.5'); print('METRIC a=' + '1' * 2_000_000)"
    ((kind, message),) = judged(lines(program(code)), {"output": ""}).failures
    assert (kind, message) == ("judge_output_invalid", "1 METRIC or ASI lines are too long, or too many, to be read")


def test_what_an_evaluator_says_is_recorded_as_what_a_user_wrote(program):
    metric = lines(program("print('METRIC a=1\\nASI learned=it was Ann')"))
    done = run_pipeline(json.dumps({"metrics": [metric]}), subjects=[dicast.Subject("row", "1", output="")])
    assert done.of("eval.completed")[0].sensitivity == "user_controlled"


def test_the_scripts_of_both_commands_are_part_of_the_metric(tmp_path):
    for name in ("evaluate.sh", "checks.sh"):
        (tmp_path / name).write_text("true")
    scripts = MetricLinesEvaluator("bash evaluate.sh", checks=("bash", "checks.sh")).reads(tmp_path)
    assert set(scripts.values()) == {tmp_path / "evaluate.sh", tmp_path / "checks.sh"}
