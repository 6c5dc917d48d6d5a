"""``evaluator/worker``: a line for a line, and recovery from an ended or silent worker."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest

ANSWER = "def answer(id, **more): print(json.dumps({'id': id, **more}), flush=True)\n"
LINES = ANSWER + "for line in sys.stdin:\n    sent = json.loads(line)\n"
SCORED = LINES + "    answer(sent['id'], score=len(sent['candidate']) / 100, pid=os.getpid(), sent=sent)\n"


def metric(command, **options):
    return {"evaluator/worker": {"command": command, "preflight": False, **options}}


ROWS = [{"output": "x" * number} for number in range(30)]


def test_one_process_answers_all_rows_with_the_payload_of_the_protocol(judged, program):
    result = judged(metric(program(SCORED), task_model="m"), *ROWS)
    assert result.values == [number / 100 for number in range(30)]
    assert len({score["signals"]["pid"] for score in result.scores}) == 1
    sent = result.scores[3]["signals"]["sent"]
    assert {**sent, "id": 0} == {"id": 0, "_protocol_version": 2, "candidate": "xxx", "task_model": "m"}


def test_several_workers_share_the_rows(judged, program):
    result = judged(metric(program(SCORED), workers=3), *ROWS)
    assert len({score["signals"]["pid"] for score in result.scores}) == 3


def test_results_may_come_in_any_order_and_between_other_lines(judged, program):
    code = ANSWER + (
        "import threading\n"
        "def later(sent):\n"
        "    time.sleep(.02 if len(sent['candidate']) % 2 else 0)\n"
        "    lines = ['noise', '{\"id\": 999999, \"score\": 0}', '[1]', json.dumps({'id': sent['id'], 'score': len(sent['candidate']) / 100})]\n"
        "    os.write(1, ''.join(f'{line}\\n' for line in lines).encode())\n"
        "for line in sys.stdin: threading.Thread(target=later, args=[json.loads(line)]).start()\n"
    )
    assert judged(metric(program(code)), *ROWS).values == [number / 100 for number in range(30)]


def test_a_worker_that_ends_is_started_again_and_no_row_is_lost(judged, program):
    code = SCORED + "    if len(sent['candidate']) % 5 == 0: sys.exit(7)\n"
    result = judged(metric(program(code)), *ROWS)
    assert result.values == [number / 100 for number in range(30)]
    assert len({score["signals"]["pid"] for score in result.scores}) > 3


def test_a_row_that_ends_every_worker_fails_alone(judged, program):
    code = (
        LINES + "    if len(sent['candidate']) == 7: sys.exit('seven is too much')\n    answer(sent['id'], score=.5)\n"
    )
    result = judged(metric(program(code)), *ROWS)
    assert result.values == [0.5] * 29
    assert result.failures == [("crashed", "Command exited with code 1 before it answered: seven is too much")]


@pytest.mark.slow
def test_a_row_that_takes_too_long_fails_alone(judged, program):
    code = LINES + "    if len(sent['candidate']) == 7: time.sleep(600)\n    answer(sent['id'], score=.5)\n"
    result = judged(metric(program(code), timeout=5), *ROWS)
    assert result.values == [0.5] * 29
    assert result.failures == [("timeout", "Command timed out after 5s")]


def test_a_worker_that_never_starts_fails_every_row_with_its_words(judged, program):
    result = judged(metric(program("sys.exit('no model')")), *ROWS[:5])
    assert result.failures == [("crashed", "Command exited with code 1 before it answered: no model")] * 5
    result = judged(metric(["no-such-worker"]), *ROWS[:2])
    assert result.failures == [("crashed", "Command executable not found: no-such-worker")] * 2


def test_a_line_that_is_too_long_fails_its_row(judged, program):
    code = LINES + "    answer(sent['id'], score=.5, more='x' * (100000 if len(sent['candidate']) == 7 else 1))\n"
    result = judged(metric(program(code), max_line_bytes=10_000), *ROWS)
    assert result.values == [0.5] * 29
    assert result.failures == [
        ("judge_output_invalid", "Command output is too long: a line has more than 10,000 bytes (max_line_bytes)")
    ]


@pytest.mark.parametrize(("result", "kind"), [("score=2", "invalid_score"), ("value=1", "judge_output_invalid")])
def test_a_result_is_held_to_the_rule_of_all_evaluators(judged, program, result, kind):
    ((failure_kind, _),) = judged(
        metric(program(LINES + f"    answer(sent['id'], {result})\n")), {"output": "a"}
    ).failures
    assert failure_kind == kind


def test_a_worker_that_stays_after_the_end_is_ended(judged, program, tmp_path):
    code = f"open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid()))\n" + SCORED + "time.sleep(600)\n"
    assert judged(metric(program(code)), {"output": "a"}).values == [0.01]
    pid = (tmp_path / "pid").read_text()
    process = subprocess.run(["ps", "-o", "stat=", "-p", pid], capture_output=True, text=True, check=False)
    assert process.stdout.strip()[:1] in {"", "Z"}


def is_running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="what has left its session is found by /proc")
@pytest.mark.parametrize("why", ["it says nothing", "it ends", "the run ends"])
def test_what_a_worker_has_started_ends_with_it_in_any_session(judged, program, tmp_path, why):
    note = tmp_path / "pids"
    code = (
        "import subprocess\n"
        "started = subprocess.Popen(['sleep', '600'], start_new_session=True)\n"
        f"open({str(note)!r}, 'a').write(f'{{started.pid}}\\n')\n" + LINES + "    answer(sent['id'], score=.5)\n"
    )
    ends = {"it says nothing": "    time.sleep(600)\n", "it ends": "    sys.exit(1)\n", "the run ends": ""}
    code = code.replace("    answer", ends[why] + "    answer")
    judged(metric(program(code), timeout=5 if why == "it says nothing" else 30), {"output": "a"})
    pids, end = note.read_text().split(), time.monotonic() + 100
    while any(map(is_running, pids)) and time.monotonic() < end:
        time.sleep(0.01)
    assert pids
    assert not any(map(is_running, pids))


def test_an_id_of_another_type_is_not_taken_for_a_row(judged, program):
    code = (
        LINES + "    answer(True, score=.9)\n    answer(str(sent['id']), score=.9)\n    answer(sent['id'], score=.5)\n"
    )
    assert judged(metric(program(code)), {"output": "a"}).values == [0.5]
