"""``dicast watch`` as a process: next to a trace that grows, over HTTP, through a pipe, stopped and started again."""

from __future__ import annotations

import http.client
import json
import os
import runpy
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing, contextmanager
from importlib.metadata import entry_points
from pathlib import Path

import pytest

import dicast

connect = entry_points(group="dicast")["ledger"].load().connect  # as a pipeline finds it


ROOT = Path(__file__).resolve().parents[3]
DICAST = Path(sys.executable).with_name("dicast")
PIPELINE = """\
source: {{traces/events: {{path: {path}, subjects: [tool_cycle, turn, session]}}}}
judges: [heuristic/tool_cycle, heuristic/turn, heuristic/session]
ledger: {{ledger/sqlite: {{path: {ledger}}}}}
"""
SECONDS = 200.0
TOKEN = "a token for tests"


def event(type, /, session="s", turn=None, **payload):
    return {"type": type, "session_id": session, "turn_id": turn, "payload": payload}


def turn_of(session, number, **fields):
    id = f"{session}/{number}"
    return [
        event("tool.called", session, id, tool_use_id=f"{id}u", tool_name="f", input_hash="h"),
        event("tool.completed", session, id, tool_use_id=f"{id}u", tool_name="f", success=number % 3 > 0),
        event("turn.completed", session, id, stop_reason="end_turn", tool_call_count=1, **fields),
    ]


def ended(session="s"):
    return event("session.ended", session, disposition="completed")


def thumb(turn, session="s", rating="thumbs_down"):
    return event("feedback.explicit", session, None, scope="turn", subject_turn_id=turn, rating=rating)


def conversation(session="s", turns=8):
    return [*(event_ for number in range(turns) for event_ in turn_of(session, number)), ended(session)]


class Shop:
    """A folder with a pipeline and its trace."""

    def __init__(self, folder):
        self.folder, self.trace, self.ledger = folder, folder / "trace.jsonl", folder / "watched.db"
        self.trace.touch()
        (folder / "watch.yaml").write_text(PIPELINE.format(path="trace.jsonl", ledger="watched.db"))

    def write(self, *events):
        with self.trace.open("a") as file:
            file.write("".join(json.dumps(event_) + "\n" for event_ in events))

    def command(self, *options):
        return [DICAST, "watch", "watch.yaml", *options]

    @contextmanager
    def watching(self, *options, stop=signal.SIGINT, **environment):
        """Run a watch; *self.code* and *self.document* have its result afterwards."""
        settings = {name: text for name, text in os.environ.items() if not name.startswith("DICAST_")} | environment
        with (
            (self.folder / "err").open("w+") as errors,
            subprocess.Popen(
                self.command("--json", *options), cwd=self.folder, env=settings, stdout=subprocess.PIPE, stderr=errors
            ) as process,
        ):
            try:
                yield process
            finally:
                process.send_signal(stop)
                out, _ = process.communicate(timeout=SECONDS)
        self.code, self.document = process.returncode, json.loads(out) if out else None

    @property
    def said(self):
        return (self.folder / "err").read_text()

    def rows(self, types):
        if not self.ledger.exists():
            return []
        marks = ", ".join("?" * len(types))
        with closing(connect(self.ledger)) as database:
            try:
                query = f"SELECT type, payload FROM events WHERE type IN ({marks}) ORDER BY seq"
                return [(type, json.loads(payload)) for type, payload in database.execute(query, types)]
            except sqlite3.OperationalError:
                return []  # it is just being made

    def verdicts(self):
        """Each subject's verdicts, oldest first: the trigger, the score, the confidence and the signals."""
        triggers, verdicts_ = {}, {}
        for type, done in self.rows(("eval.started", "eval.completed")):
            if type == "eval.started":
                triggers[done["eval_id"]] = done["trigger"]
                continue
            verdict = (triggers[done["eval_id"]], done["score"], done["confidence"], _signals(done["signals"]))
            verdicts_.setdefault((done["subject_kind"], done["subject_id"]), []).append(verdict)
        return verdicts_

    def await_(self, condition):
        until = time.monotonic() + SECONDS
        while not condition():
            assert time.monotonic() < until, f"{self.verdicts()}\n{self.said}"
            time.sleep(0.05)

    def judged(self, kind, id, times=1):
        return lambda: len(self.verdicts().get((kind, id), ())) >= times

    def run_over(self, trace):
        """Return the verdicts of ``dicast run`` on the finished *trace*."""
        file = self.folder / "run.yaml"
        file.write_text(PIPELINE.format(path=trace.name, ledger="run.db"))
        done = dicast.run(file)
        assert done.failed == 0
        return {
            (verdict_.subject_kind, verdict_.subject_id): (
                verdict_.score,
                verdict_.confidence,
                _signals(verdict_.signals),
            )
            for verdict_ in done.verdicts
        }


def _signals(signals):
    return {name: value for name, value in signals.items() if name != "child_eval_ids"}


@pytest.fixture
def shop(tmp_path):
    return Shop(tmp_path)


def test_verdicts_come_while_the_trace_is_written_those_on_tool_cycles_as_soon_as_these_end(shop):
    with shop.watching():
        shop.write(*[event_ for number in range(5) for event_ in turn_of("s", number)])
        shop.write(*turn_of("s", 5)[:2])  # the sixth turn has started: five turns follow the first
        shop.await_(shop.judged("turn", "s/0"))
        shop.await_(shop.judged("tool_cycle", "s/5u"))
        assert shop.verdicts().keys() == {("turn", "s/0"), *(("tool_cycle", f"s/{n}u") for n in range(6))}
        shop.write(turn_of("s", 5)[2], ended())
        shop.await_(shop.judged("session", "s"))
    assert shop.code == 130
    assert shop.document["stopped"]["reason"] == "interrupted"
    assert shop.document["judges"]["heuristic/turn"]["scored"] == 6
    verdicts_ = shop.verdicts()
    assert {key: value[-1][1:] for key, value in verdicts_.items()} == shop.run_over(shop.trace)
    assert {verdict[0] for verdicts in verdicts_.values() for verdict in verdicts} == {"bus"}


@pytest.mark.slow
def test_a_stopped_watch_is_taken_up_and_feedback_judges_again(shop):
    shop.write(*conversation())
    with shop.watching(stop=signal.SIGTERM):
        shop.await_(shop.judged("session", "s"))
    assert shop.code == 130
    shop.write(thumb("s/7"))
    with shop.watching():
        shop.await_(shop.judged("session", "s", 2))
    verdicts_ = shop.verdicts()
    assert [verdict[0] for verdict in verdicts_["turn", "s/7"]] == ["bus", "feedback_arrived"]
    assert [verdict[0] for verdict in verdicts_["session", "s"]] == ["bus", "feedback_arrived"]
    assert {len(verdicts) for key, verdicts in verdicts_.items() if key[1] not in ("s", "s/7")} == {1}
    assert {key: value[-1][1:] for key, value in verdicts_.items()} == shop.run_over(shop.trace)
    assert shop.document["subjects"] == 17
    assert len(shop.rows(("run.started",))) == 1


@pytest.mark.slow
def test_what_is_learned_of_a_tool_cycle_later_is_a_new_verdict_that_its_turn_is_judged_by(shop):
    def once(*events):
        shop.write(*events)
        done = subprocess.run(shop.command("--once"), cwd=shop.folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr

    call, returned, completed = turn_of("s", 1)
    once(call, returned)
    assert [verdict[1] for verdict in shop.verdicts()["tool_cycle", "s/1u"]] == [1.0]
    again = [{**event_, "payload": {**event_["payload"], "tool_use_id": "s/1v"}} for event_ in (call, returned)]
    once(*again, completed, ended())
    verdicts_ = shop.verdicts()
    assert [verdict[1] for verdict in verdicts_["tool_cycle", "s/1u"]] == [1.0, 0.6]
    assert verdicts_["tool_cycle", "s/1u"][1][3]["flags_negative"] == [
        "immediate_re_call_same_input",
        "thrash_in_window",
    ]
    assert {key: value[-1][1:] for key, value in verdicts_.items()} == shop.run_over(shop.trace)
    verdicts = [done for type, done in shop.rows(("eval.completed",)) if done["subject_kind"] != "session"]
    (turn,) = [done["eval_id"] for done in verdicts if done["subject_kind"] == "turn"]
    assert [done["parent_eval_id"] for done in verdicts if done["subject_kind"] == "tool_cycle"] == [turn] * 3


def test_a_call_that_ended_is_judged_also_in_a_turn_that_never_does(shop):
    shop.write(*turn_of("s", 1)[:2], event("tool.called", "s", "s/1", tool_use_id="w", tool_name="g"), ended())
    output_ = subprocess.run(shop.command("--once"), cwd=shop.folder, capture_output=True, text=True, check=False)
    assert output_.returncode == 0, output_.stderr
    judged = {key: value[-1][1:] for key, value in shop.verdicts().items()}
    assert judged.keys() == {("tool_cycle", "s/1u"), ("session", "s")}
    assert judged == shop.run_over(shop.trace)


@pytest.mark.slow
def test_new_begins_anew(shop):
    shop.write(*conversation(turns=1))
    for _ in range(2):
        with shop.watching("--new"):
            count_before = len(shop.verdicts().get(("session", "s"), ()))
            shop.await_(shop.judged("session", "s", count_before + 1))
    assert len(shop.rows(("run.started",))) == 2


def test_a_watch_is_not_taken_up_under_another_name(shop):
    def once(*options):
        command = shop.command("--once", *options)
        return subprocess.run(command, cwd=shop.folder, capture_output=True, text=True, check=False)

    shop.write(*turn_of("s", 1))
    assert once().returncode == 0
    (read,) = [payload for _, payload in shop.rows(("subject.read",)) if payload["content"]["input"] is not None]
    assert read["place"] == "trace.jsonl"
    refused = once("--set", "name=other")
    assert refused.returncode == 2
    assert "no open run named 'other'" in refused.stderr
    assert "--new" in refused.stderr
    assert once("--set", "name=other", "--new").returncode == 0
    assert once("--set", "name=other").returncode == 0
    assert len(shop.rows(("run.started",))) == 2


def test_once_judges_what_is_due_and_ends(shop):
    old = [{**event_, "time": "2020-01-01T00:00:00Z"} for event_ in turn_of("old", 0)]
    shop.write(*conversation("over"), *turn_of("open", 0), *old)
    done = subprocess.run(
        shop.command("--once", "--json"), cwd=shop.folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["stopped"] == {"reason": "paused", "live": True}
    assert {id for kind, id in shop.verdicts() if kind == "turn"} == {*(f"over/{n}" for n in range(8)), "old/0"}


@pytest.mark.slow
def test_the_next_watch_goes_on_where_one_that_was_asked_to_end_did(shop):
    def once():
        done = subprocess.run(shop.command("--once"), cwd=shop.folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return {key: len(verdicts) for key, verdicts in shop.verdicts().items()}

    shop.write(*conversation("first"))
    first = once()
    assert ("session", "first") in first
    assert once() == first
    shop.write(*conversation("second"))
    both = once()
    assert {key: count for key, count in both.items() if "first" in key[1]} == first
    assert ("session", "second") in both
    assert set(both.values()) == {1}
    assert len(shop.rows(("run.started",))) == 1


def test_bad_lines_are_named_and_make_the_exit_code_3(shop):
    shop.write(*conversation())
    with shop.trace.open("a") as file:
        file.write('{"type": \n')
        file.write(json.dumps(event("turn.completed", "s", "s/0", stop_reason="error")))  # without a line end
    done = subprocess.run(
        shop.command("--once", "--json"), cwd=shop.folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 3
    assert "trace.jsonl:26" in done.stderr
    assert "turn 's/0' was completed before" in done.stderr
    assert ("session", "s") in shop.verdicts()


def test_pipe_is_judged_to_its_end_as_run_does_it(shop):
    open_session = [event_ for number in range(3) for event_ in turn_of("open", number)]
    text = "".join(
        json.dumps(event_) + "\n" for event_ in [*conversation(), *open_session, thumb("s/2"), *conversation()]
    )
    command = shop.command("--json", "--set", 'source.traces/events.path="-"')
    done = subprocess.run(
        command, cwd=shop.folder, input=text.rstrip("\n"), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["stopped"] is None
    shop.write(*conversation(), *open_session, thumb("s/2"))
    assert {key: value[-1][1:] for key, value in shop.verdicts().items()} == shop.run_over(shop.trace)


@pytest.mark.slow
def test_events_over_http_are_judged_with_those_of_the_file(shop):
    with shop.watching("--listen", "0", DICAST_WATCH_TOKEN=TOKEN):
        shop.await_(lambda: "listening on" in shop.said)
        port = int(shop.said.split("127.0.0.1:")[1].split("/")[0])

        def ask(method, path, body=None):
            with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS)) as connection:
                connection.request(method, path, body, {"Authorization": f"Bearer {TOKEN}"})
                response = connection.getresponse()
                return response.status, json.loads(response.read())

        lines = "\n".join(json.dumps(error_) for error_ in turn_of("s", 0))
        assert ask("POST", "/events", lines) == (200, {"accepted": 3, "duplicates": 0, "errors": []})
        assert len(shop.rows(("turn.completed", "tool.called", "tool.completed"))) == 3  # before the answer
        code, answer_ = ask("POST", "/events", lines + "\nno json")
        assert (code, answer_["accepted"], answer_["duplicates"]) == (200, 0, 3)
        assert [error_["line"] for error_ in answer_["errors"]] == [4]
        shop.write(*turn_of("s", 1))
        assert ask("POST", "/events", json.dumps([thumb("s/0"), ended()]))[1]["accepted"] == 2
        shop.await_(shop.judged("session", "s"))
        code, status = ask("GET", "/status")
        assert (code, status["open_sessions"], status["accepted"], status["duplicates"]) == (200, 0, 8, 3)
        assert ask("POST", "/events", "no json")[0] == 400
    assert TOKEN not in shop.said
    assert shop.verdicts()["turn", "s/0"][-1][1] < 0.5


def test_token_is_made_where_none_is_given_and_shown_once(shop):
    with shop.watching("--listen", "0"):
        shop.await_(lambda: "listening on" in shop.said)
    assert shop.said.count("requests must bear the token") == 1


@pytest.mark.parametrize(
    ("options", "message_"),
    [
        (["--listen", "0.0.0.0:80"], "can be reached from other machines"),
        (["--listen", "0", "--token-env", "NO_SUCH_NAME"], "NO_SUCH_NAME is not set"),
        (["--set", "source={rows/jsonl: {path: trace.jsonl}}"], "has to be traces/events or traces/messages"),
        (["--set", "source={traces/events: {path: other.jsonl}}"], "other.jsonl"),
    ],
)
def test_wrong_requests_are_exit_code_2_and_judge_nothing(shop, options, message_):
    done = subprocess.run(shop.command(*options), cwd=shop.folder, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert message_ in done.stderr
    assert shop.rows(("run.started",)) == []


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes are POSIX")
def test_named_pipe_is_refused_and_says_how_to_follow_one(shop):
    shop.trace.unlink()
    os.mkfifo(shop.trace)
    done = subprocess.run(shop.command(), cwd=shop.folder, capture_output=True, text=True, check=False, timeout=SECONDS)
    assert done.returncode == 2
    assert "a named pipe cannot be followed; let path be '-' and give it as input" in done.stderr


@pytest.mark.slow
def test_directory_is_watched_through_rotation(shop):
    shop.trace.unlink()
    logs = shop.folder / "logs"
    logs.mkdir()
    lines = [json.dumps(event_) + "\n" for event_ in conversation()]
    with shop.watching("--set", "source.traces/events.path=logs"):
        (logs / "a.jsonl").write_text("".join(lines[:9]))
        shop.await_(lambda: len(shop.rows(("turn.completed",))) == 3)
        (logs / "a.jsonl").rename(logs / "a.jsonl.1")
        (logs / "a.jsonl").write_text("".join(lines[9:12]))
        (logs / "b.jsonl").write_text("".join(lines[12:]))
        shop.await_(shop.judged("session", "s"))
    shop.trace.write_text("".join(lines))
    assert {key: value[-1][1:] for key, value in shop.verdicts().items()} == shop.run_over(shop.trace)


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="kill -9 is POSIX")
def test_a_killed_watch_judges_everything_once():
    command = [sys.executable, ROOT / "benchmarks" / "run.py", "watch-kill", "--kills", "4", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    document_ = json.loads(done.stdout)
    values = {figure["name"]: figure["value"] for figure in document_["figures"]}
    assert document_["wrong"] == []
    assert values["watch.kills"] == 4
    assert values["watch.kills.subjects"] > 100


@pytest.mark.slow
@pytest.mark.outside_data
def test_replayed_airline_conversations_are_judged_as_run_judges_the_finished_file(shop):
    data = Path(os.environ.get("DICAST_OUTSIDE_DATA", ROOT.parent / "shared" / "data"), "tau_bench_airline.jsonl.gz")
    if not data.exists():
        pytest.skip(f"{data.name} is not in {data.parent}; DICAST_OUTSIDE_DATA names the folder that has it")
    events = runpy.run_path(str(ROOT / "benchmarks" / "replay.py"))["events"](data)
    assert sum(event_["type"].startswith("feedback.") for event_ in events) > 150
    with shop.watching():
        shop.await_(lambda: shop.rows(("run.started",)))
        for start in range(0, len(events), 200):
            shop.write(*events[start : start + 200])
            time.sleep(0.2)  # so that some of it is judged before its feedback comes
        shop.await_(lambda: len(shop.rows(("turn.completed", "session.ended"))) == 781)
        expected = shop.run_over(shop.trace)
        shop.await_(lambda: shop.verdicts().keys() == expected.keys())
        time.sleep(1.0)  # for what is due again by feedback
    verdicts_ = shop.verdicts()
    assert {key: value[-1][1:] for key, value in verdicts_.items()} == expected
    assert max(len(verdicts) for (kind, _), verdicts in verdicts_.items() if kind == "tool_cycle") <= 2
    assert any(verdict[0] == "feedback_arrived" for verdicts in verdicts_.values() for verdict in verdicts)
