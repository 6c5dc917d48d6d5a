"""Ctrl-C, SIGTERM and kill -9: verdicts are kept, and paid calls are not paid again."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time

import pytest

from .conftest import finish, settled, wait_for

fcntl, termios = pytest.importorskip("fcntl"), pytest.importorskip("termios")

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")

ROWS = 80
SINKS = "sinks: [csv/rows: {path: out.csv}, jsonl/events: {path: events.jsonl}]\n"
WORK = {
    "sync": "metrics: [fake/spin: {seconds: 0.02, journal: calls}]\n",
    "busy": "metrics: [fake/spin: {seconds: 60, journal: calls}]\n",
    "async": "metrics: [fake/wait: {seconds: 0.1, journal: calls}]\nexecutor: {dicast/async: {concurrency: 4}}\n",
    "both": "metrics: [fake/act, fake/wait: {seconds: 0.05, journal: calls}]\njudges: [fake/opinion]\n"
    "executor: {dicast/async: {concurrency: 2}}\n",
}


def calls(shop, name="calls"):
    return (shop / name).read_text().split() if (shop / name).exists() else []


def csv_rows(shop):
    with open(shop / "out.csv", newline="") as file:
        return list(csv.DictReader(file))


def is_scored(row):
    """Return whether any label of a row in the table has a score."""
    return any(
        value for name, value in row.items() if name == "score" or name.startswith("metric_") or name.endswith("_score")
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("work", "number"), [("sync", signal.SIGINT), ("async", signal.SIGTERM), ("both", signal.SIGINT)]
)
def test_an_interrupted_run_keeps_what_was_judged_and_can_be_taken_up(shop, work, number):
    shop.rows(*[n / ROWS for n in range(ROWS)], sessions=7)
    shop.pipeline(WORK[work] + SINKS + "gate: {min_coverage: 0}\n")
    process = shop.start("run", "p.yaml", "--json")
    wait_for(lambda: len(calls(shop)) >= 12)
    process.send_signal(number)
    done = finish(process)

    assert done.code == 130
    document = done.json
    assert document["stopped"] == {"reason": "interrupted"}
    assert 0 < document["scored"] < ROWS
    judged = [event["subject_id"] for event in shop.events("eval.completed")]
    assert judged.count("r0") == (2 if work == "both" else 1)
    assert document["scored"] == len(set(judged))
    assert [row["subject_id"] for row in csv_rows(shop) if is_scored(row)] == list(dict.fromkeys(judged))
    assert shop.events("run.stopped")[0]["payload"]["reason"] == "interrupted"
    assert document["ledger"]["head"]["seq"] == len(shop.events())
    assert shop.verified()
    assert shop.dicast("show", document["run_id"], "--json").json == document
    listed = shop.dicast("runs", "--json").json["runs"]
    assert [(one["state"], one["gate"], one["scored"]) for one in listed] == [
        ("stopped", "undecided", document["scored"])
    ]

    resumed = shop.dicast("run", "p.yaml", "--resume", "--json")
    assert resumed.code == 0
    assert resumed.json["run_id"] == document["run_id"]
    again = shop.dicast("run", "p.yaml", "--json", "--set", "ledger={ledger/sqlite: {path: other.db}}")
    assert settled(resumed.json) | {"sinks": None} == settled(again.json) | {"sinks": None}
    assert resumed.json["sinks"]["csv/rows"] == again.json["sinks"]["csv/rows"]
    ended = [(event["subject_id"], event["payload"]["judge"]) for event in shop.events("eval.completed")]
    assert len(ended) == len(set(ended)) == ROWS * (2 if work == "both" else 1)


@pytest.mark.slow
def test_the_csv_of_a_resumed_run_is_that_of_an_undisturbed_one(shop):
    shop.rows(*[n / ROWS for n in range(ROWS)], sessions=7)
    shop.pipeline(WORK["sync"] + "sinks: [csv/rows: {path: out.csv}]\n")
    process = shop.start("run", "p.yaml")
    wait_for(lambda: len(calls(shop)) >= 20)
    process.send_signal(signal.SIGINT)
    assert finish(process).code == 130
    assert shop.dicast("run", "p.yaml", "--resume").code == 0
    resumed = (shop / "out.csv").read_bytes()
    assert shop.dicast("run", "p.yaml").code == 0
    assert resumed == (shop / "out.csv").read_bytes()


def test_a_busy_metric_does_not_hold_up_the_end(shop):
    shop.rows(1, 1, 1)
    shop.pipeline(WORK["busy"])
    process = shop.start("run", "p.yaml", "--json")
    wait_for(lambda: calls(shop))
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    done = finish(process)
    assert time.monotonic() - began < 50
    assert done.code == 130
    assert (done.json["scored"], done.json["failed"]) == (0, 0)  # nobody's failure
    assert shop.events("eval.failed") == []


@pytest.mark.slow
def test_a_waiting_metric_does_not_hold_up_the_end(shop):
    shop.rows("hang", "hang")
    shop.pipeline("metrics: [fake/wait: {journal: calls}]\n")
    process = shop.start("run", "p.yaml", "--json")
    wait_for(lambda: len(calls(shop)) == 2)
    began = time.monotonic()
    process.send_signal(signal.SIGTERM)
    done = finish(process)
    assert time.monotonic() - began < 50
    assert done.code == 130
    assert shop.events("eval.failed") == []
    assert len(shop.events("eval.started")) == 2


def test_an_interrupted_retry_leaves_in_the_table_what_it_has_not_reached(shop):
    shop.rows(1, "busy", 1, "busy")
    shop.write("mood", "bad")
    shop.pipeline("metrics: [fake/act: {moody: mood, journal: calls}]\n" + SINKS)
    first = shop.dicast("run", "p.yaml", "--json")
    table = csv_rows(shop)
    assert [row["failure"] for row in table] == ["", "judge_call_failed"] * 2
    (shop / "mood").unlink()
    process = shop.start("run", "p.yaml", "--json", "--resume", "--retry-failed")
    wait_for(lambda: calls(shop).count("r1") == 2)
    process.send_signal(signal.SIGINT)
    done = finish(process)
    assert done.code == 130
    assert csv_rows(shop) == table
    figures = ("subjects", "scored", "failed", "failures", "metrics", "judges")
    assert [done.json[key] for key in figures] == [first.json[key] for key in figures]
    told = [json.loads(line) for line in (shop / "events.jsonl").read_text().splitlines()]
    assert sorted(one["subject_id"] for one in told if one["type"] == "subject.read") == ["r0", "r1", "r2", "r3"]


STUCK = """
import time
import dicast._kernel.stream.sinks as sinks
async def close(self):
    open("closing", "w").close()
    time.sleep(100)
sinks.SinkFeed.close = close
from dicast._kernel.cli import main
raise SystemExit(main(["run", "p.yaml", "--json"]))
"""


@pytest.mark.parametrize("second", [signal.SIGINT, signal.SIGTERM])
def test_a_second_signal_ends_the_process_at_once(shop, second):
    """The first asks for an end in order; here that end hangs, and the second one breaks it off."""
    shop.rows("hang")
    shop.pipeline("metrics: [fake/wait: {journal: calls}]\n" + SINKS)
    process = shop.python("-c", STUCK)
    wait_for(lambda: calls(shop))
    process.send_signal(signal.SIGINT)
    wait_for((shop / "closing").exists)
    began = time.monotonic()
    process.send_signal(second)
    done = finish(process)
    assert time.monotonic() - began < 50
    assert done.code in (130, -signal.SIGTERM)
    assert shop.verified()


STUCK_TELLING = """
import sys, time
from dicast._kernel.cli import main
from dicast._kernel.run.window import Window
async def tell(self, spool):
    open("telling", "w").close()
    time.sleep(100)
assert Window._emit_unreached
Window._emit_unreached = tell
sys.argv = ["dicast", "run", "p.yaml", "--json", "--resume", "--retry-failed"]
raise SystemExit(main())
"""


def test_a_second_signal_replaces_no_whole_file_by_a_part_of_it(shop):
    shop.rows(1, "busy", 1, "busy")
    shop.write("mood", "bad")
    tables = {"out.csv", "out.parquet", "events.jsonl"}
    text = "metrics: [fake/act: {moody: mood, journal: calls}]\n" + SINKS.replace(
        "]", ", parquet/rows: {path: out.parquet}]"
    )
    shop.pipeline(text)
    assert shop.dicast("run", "p.yaml", "--json").json["failed"] == 2
    whole = {name: (shop / name).read_bytes() for name in tables}
    (shop / "mood").unlink()
    process = shop.python("-c", STUCK_TELLING)
    wait_for(lambda: calls(shop).count("r1") == 2)
    process.send_signal(signal.SIGINT)
    wait_for((shop / "telling").exists)
    process.send_signal(signal.SIGINT)
    assert finish(process).code in (130, -signal.SIGINT)
    assert {name: (shop / name).read_bytes() for name in tables} == whole
    assert [path.name for path in shop.folder.glob(".*.tmp")] == []


LATE = """
import os, signal, sys
from dicast._kernel.cli import main
class Late:
    def __del__(self, kill=os.kill, process=os.getpid(), number=signal.SIGINT):
        kill(process, number)
sys.late = Late()  # which the interpreter lets go of at its very end
sys.argv = ["dicast", "run", "p.yaml", "--json"]
raise SystemExit(main())
"""


def test_an_interrupt_that_comes_when_all_is_done_changes_nothing(shop):
    """Like the second of two quick interrupts: an orderly end takes no time."""
    shop.rows(1)
    shop.pipeline("metrics: [fake/act]\n")
    done = finish(shop.python("-c", LATE))
    assert (done.code, done.json["scored"], done.err) == (0, 1, "")


def unread(pipe):
    """How many bytes nobody has taken out of *pipe* yet."""
    return int.from_bytes(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)), sys.byteorder)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_end_before_the_first_subject_is_130_too(shop, number):
    """While the input is still being read and checked."""
    shop.pipeline("source: {traces/events: {path: '-'}}\nmetrics: [fake/act]\n")
    process = shop.start("run", "p.yaml", "--json", stdin=subprocess.PIPE)
    process.stdin.write("{}\n")
    process.stdin.flush()
    wait_for(lambda: not unread(process.stdin))
    process.send_signal(number)
    try:
        process.wait(200)
    finally:
        process.stdin.close()
        process.stdin = None
    done = finish(process)
    assert done.code == 130
    assert (done.json["stopped"], done.json["run_id"], done.json["subjects"]) == ({"reason": "interrupted"}, None, 0)
    assert shop.events() == []


def paid(extra=""):
    return (
        "metrics: [fake/act, fake/paid: {seconds: 0.1, journal: calls, after: answered}]\n"
        "executor: {dicast/async: {concurrency: 4}}\nbudget: {run: 10 usd, day: 10 usd, session: 10 usd}\n" + extra
    )


@pytest.mark.slow
def test_a_paid_reply_that_reached_the_ledger_is_not_bought_again_after_a_kill(shop):
    rows = 30
    shop.rows(*[1] * rows)
    shop.pipeline(paid())
    process = shop.start("run", "p.yaml", "--json")
    wait_for(lambda: len(calls(shop, "answered")) >= 9)
    process.kill()
    finish(process)
    bought = {event["subject_id"] for event in shop.events("spend.settled")}
    assert bought
    before = calls(shop)

    done = shop.dicast("run", "p.yaml", "--resume", "--json")
    assert (done.code, done.json["scored"]) == (0, rows)
    after = calls(shop)[len(before) :]
    assert not bought & set(after)
    repeated = len(calls(shop)) - rows
    assert 0 <= repeated <= 4
    assert done.json["cost"]["usd"] == f"{rows * 0.01:.2f}"
    lost = shop.events("spend.lost")
    assert done.json["spend_lost"]["usd"] == (f"{len(lost) * 0.01:.2f}" if lost else "0")
    assert repeated <= len(lost) <= 4
    assert shop.verified()
    undisturbed = shop.dicast("run", "p.yaml", "--json", "--set", "ledger={ledger/sqlite: {path: o.db}}")
    same = ("subjects", "scored", "failed", "score", "metrics", "judges", "cost", "gate")
    assert [done.json[key] for key in same] == [undisturbed.json[key] for key in same]


def test_calls_in_flight_at_an_interruption_count_as_lost_at_once(shop):
    shop.rows(*[1] * 20)
    shop.pipeline(paid())
    process = shop.start("run", "p.yaml", "--json")
    wait_for(lambda: len(calls(shop)) >= 6)
    process.send_signal(signal.SIGINT)
    done = finish(process)
    assert done.code == 130
    settled_, lost = len(shop.events("spend.settled")), len(shop.events("spend.lost"))
    assert settled_ + lost == len(shop.events("spend.reserved")) == len(calls(shop))
    assert 0 < lost <= 4
    assert done.json["spend_lost"]["usd"] == f"{lost * 0.01:.2f}"
    resumed = shop.dicast("run", "p.yaml", "--resume", "--json")
    assert (resumed.code, resumed.json["scored"]) == (0, 20)
    assert len(calls(shop)) - 20 <= lost
    assert resumed.json["spend_lost"]["usd"] == f"{lost * 0.01:.2f}"
    assert resumed.json["cost"]["usd"] == "0.20"


@pytest.mark.slow
def test_a_run_killed_twice_is_still_taken_up_as_one(shop):
    shop.rows(*[1] * 40)
    shop.pipeline("metrics: [fake/wait: {seconds: 0.1, journal: calls}]\nexecutor: {dicast/async: {concurrency: 4}}\n")
    for resume in ([], ["--resume"]):
        before = len(calls(shop))
        process = shop.start("run", "p.yaml", *resume)
        wait_for(lambda before=before: len(calls(shop)) >= before + 12)
        process.kill()
        finish(process)
    done = shop.dicast("run", "p.yaml", "--resume", "--json")
    assert (done.code, done.json["scored"], done.json["subjects"]) == (0, 40, 40)
    started = [event["payload"]["eval_id"] for event in shop.events("eval.started")]
    ended = [event["payload"]["eval_id"] for event in shop.events("eval.completed")]
    assert sorted(started) == sorted(ended)
    assert len(set(ended)) == 40
    assert len(shop.events("subject.read")) == 40
