"""The records of a watch, and the repeated decisions of its successor after a kill at any time."""

from __future__ import annotations

import io
import random
import weakref
from collections import Counter
from datetime import UTC, datetime

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dicast import Entry, Event, LedgerError, Lookahead
from dicast_traces.live.intake import Intake
from dicast_traces.live.lines import Line
from dicast_traces.live.listening import Post
from dicast_traces.live.names import Names
from dicast_traces.live.status import Console
from dicast_traces.live.windows import GRACE, LINGER

NOON = 1_700_000_000.0
ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


class Run:
    """A run and its ledger, in memory."""

    run_id = "r"

    def __init__(self, messages=2, hours=24.0):
        self.lookahead = Lookahead(messages, hours)
        self.entries = []
        self.now = NOON
        self.broken = False

    def read(self, query):
        entries_ = [
            entry
            for entry in self.entries
            if (not query.types or entry.event.type in query.types)
            and (query.session_id is None or entry.event.session_id == query.session_id)
            and entry.seq > query.after
        ]
        entries_ = entries_[::-1] if query.newest_first else entries_
        return iter(entries_[: query.limit])

    def record(self, events, position=None):
        if self.broken:
            raise LedgerError("the disk is full")
        for event_ in events:
            payload = {**event_.payload, "extra": event_.extra} if event_.extra else event_.payload
            self.append(event_.type, payload, event_.session_id, event_.turn_id, time=event_.time)
        self.append("source.position", position)

    def append(self, type, payload, session=None, turn=None, kind=None, id=None, *, time=None):
        payload = orjson.loads(orjson.dumps(payload))
        ulid = f"{_base32(int(self.now * 1000))}{len(self.entries):016d}"
        event = Event(ulid, type, time or _iso(self.now), self.run_id, payload, session, turn, kind, id)
        self.entries.append(Entry(len(self.entries) + 1, event, "", ""))

    def begin(self, due):
        """Record the events of the kernel when it starts a subject."""
        subject = due.subject
        about = (subject.session_id, None, subject.kind, subject.id)
        if not self._open(subject):
            self.append("subject.read", {}, *about)
            for judge in ("one", "two"):
                self.append("eval.started", {"judge": judge, "trigger": due.trigger}, *about)

    def finish(self, due):
        """Record the events of the kernel when the subject was judged."""
        subject = due.subject
        for judge in ("one", "two"):
            payload = {"judge": judge, "trigger": due.trigger, "events": len(subject.events)}
            self.append("eval.completed", payload, subject.session_id, None, subject.kind, subject.id)

    def _open(self, subject):
        about = [
            entry_.event.type
            for entry_ in self.entries
            if (entry_.event.subject_kind, entry_.event.subject_id) == (subject.kind, subject.id)
        ]
        return about.count("eval.started") > about.count("eval.completed")

    def verdicts(self):
        """How often each subject was judged by one judge for one trigger."""
        done = (entry_.event for entry_ in self.entries if entry_.event.type == "eval.completed")
        return Counter(
            (entry_.subject_kind, entry_.subject_id, entry_.payload["judge"], entry_.payload["trigger"])
            for entry_ in done
        )


def _base32(number):
    return "".join(ALPHABET[number >> 5 * place & 31] for place in reversed(range(10)))


def _iso(seconds):
    moment = datetime.fromtimestamp(int(seconds * 1000) // 1000, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{int(seconds * 1000) % 1000:03d}Z"


class Process:
    """A watch's intake with the kernel's queue."""

    def __init__(self, run, kinds=("tool_cycle", "turn", "session")):
        self.run, self.queue, self.begun, self.finished = run, [], [], []
        self.errors, names = io.StringIO(), Names()
        weakref.finalize(self, names.__exit__)
        self.intake = Intake(run, kinds, Console(self.errors), names, self.queue.append)
        self.positions = self.intake.rebuild()

    def take(self, *lines, posts=(), files=(), after=0.0):
        self.run.now += after
        lines_ = [Line("f.jsonl", number, orjson.dumps(event_)) for number, event_ in enumerate(lines, 1)]
        self.intake.step(lines_, posts, list(files), self.run.now)

    def judge_all(self):
        while self.queue or self.begun:
            self.begin()
            self.finish()
            self.answer()

    def begin(self):
        if self.queue:
            due = self.queue.pop(0)
            self.run.begin(due)
            self.begun.append(due)

    def finish(self):
        if self.begun:
            self.finished.append(self.begun.pop(0))
            self.run.finish(self.finished[-1])

    def answer(self):
        """Report the verdicts that are in the ledger."""
        for due in self.finished:
            due.answered([entry.event for entry in self.run.entries[-2:]])
        self.finished.clear()


def event(type, /, session="s", turn=None, **payload):
    return {"type": type, "session_id": session, "turn_id": turn, "payload": payload}


def completed(turn, session="s"):
    return event("turn.completed", session, turn, stop_reason="end_turn", tool_call_count=1)


def turn_of(session, number):
    id = f"{session}/{number}"
    return [event("tool.called", session, id, tool_use_id=f"{id}u", tool_name="f"), completed(id, session)]


def thumb(turn, session, number=0):
    feedback = event("feedback.explicit", session, None, scope="turn", subject_turn_id=turn, rating="thumbs_down")
    return {**feedback, "time": f"2026-01-01T00:00:{number:02d}Z"}


def test_events_and_what_is_due_are_recorded_before_it_is_handed_on():
    run = Run(messages=0)
    process = Process(run)
    process.take(completed("a"), files=[{"path": "f.jsonl"}])
    position = run.entries[-1].event.payload
    assert [entry_.event.type for entry_ in run.entries] == ["turn.completed", "source.position"]
    assert position == {"files": [{"path": "f.jsonl"}], "due": [["turn", "s", "a", "bus"]], "backfill": False}
    assert [(due.subject.id, due.trigger, due.from_run) for due in process.queue] == [("a", "bus", "r")]


def test_nothing_is_handed_on_that_was_not_recorded():
    run = Run(messages=0)
    process = Process(run)
    run.broken = True
    post = Post([Line("<http>", 1, orjson.dumps(completed("a")))])
    with pytest.raises(LedgerError):
        process.take(posts=[post])
    assert process.queue == []
    assert not post.answer.done()


def test_nothing_is_recorded_where_nothing_came():
    run = Run()
    Process(run).take()
    assert run.entries == []


def test_requests_are_answered_with_what_became_of_each_line():
    process = Process(Run())
    lines = [orjson.dumps(completed("a")), b"", b"{", orjson.dumps(completed("a")), orjson.dumps(event("x", None))]
    post = Post([Line("<http>", number, line) for number, line in enumerate(lines, 1)])
    process.take(posts=[post])
    answer = post.answer.result(0)
    assert (answer["accepted"], answer["duplicates"]) == (1, 1)
    assert [(error_["line"], error_["message"][:20]) for error_ in answer["errors"]] == [
        (3, "the line is not JSON"),
        (5, "session_id must be a"),
    ]
    assert process.errors.getvalue() == ""


def test_the_answer_to_a_flood_of_bad_lines_names_the_first_hundred_and_counts_them():
    process = Process(Run())
    post = Post([Line("<http>", number, b"{}") for number in range(1, 1_001)])
    process.take(posts=[post])
    *errors, last = post.answer.result(0)["errors"]
    assert {error_["line"] for error_ in errors} == set(range(1, 101))
    assert last == {"line": 100, "message": "of 1,000 bad lines the first 100 are named"}
    assert process.intake.snapshot(0, NOON).bad_lines == 1_000


def test_bad_lines_are_named_and_do_not_stop_the_others():
    process = Process(Run(messages=0))
    process.take({"type": "x"}, completed("a"), {**completed("a"), "payload": {"stop_reason": "error"}}, completed("b"))
    assert [due.subject.id for due in process.queue] == ["a", "b"]
    output_ = process.errors.getvalue()
    assert "f.jsonl:1: session_id must be an id" in output_
    assert "f.jsonl:3: turn 'a' was completed before" in output_
    assert process.intake.snapshot(0, NOON).bad_lines == 2


def test_snapshot_counts_what_waits():
    run = Run(messages=1)
    process = Process(run)
    process.take(*turn_of("s", 0), *turn_of("s", 1))
    snapshot = process.intake.snapshot(7, run.now + 3)
    assert (snapshot.open_sessions, snapshot.waiting_turns, snapshot.judged) == (1, 1, 0)
    assert (snapshot.backlog, snapshot.lag_seconds) == (2, 3.0)
    assert (snapshot.unread_bytes, snapshot.accepted) == (7, 4)
    process.judge_all()
    snapshot = process.intake.snapshot(0, run.now + 3)
    assert (snapshot.judged, snapshot.backlog, snapshot.lag_seconds) == (2, 0, 0.0)


def test_subjects_that_nobody_judges_are_not_in_the_backlog_once_they_are_read():
    run = Run(messages=0)
    process = Process(run, ("turn",))
    process.take(completed("a"))
    process.queue.pop().answered([])
    assert len(process.intake.backlog) == 0
    process.take(completed("b"))
    assert len(Process(run, ("turn",)).intake.backlog) == 2
    for id_ in "ab":
        run.append("subject.read", {}, "s", None, "turn", id_)
    assert len(Process(run, ("turn",)).intake.backlog) == 0


def test_successor_knows_where_the_files_were_read_to():
    run = Run()
    Process(run).take(completed("a"), files=[{"path": "f.jsonl", "offset": 10}])
    assert Process(run).positions == [{"path": "f.jsonl", "offset": 10}]


def test_successor_counts_old_hours_as_its_predecessor_did():
    run = Run(messages=5, hours=1)
    process = Process(run)
    process.intake.windows.backfilling = True
    process.take({**completed("old"), "time": _iso(NOON - 7200)})
    process = Process(run)
    process.take()
    assert [due.subject.id for due in process.queue] == ["old"]
    run = Run(messages=5, hours=1)
    Process(run).take({**completed("late"), "time": _iso(NOON - 7200)})
    process = Process(run)
    process.take()
    assert process.queue == []
    process.take(after=3601)
    assert [due.subject.id for due in process.queue] == ["late"]


def test_events_come_back_from_the_ledger_as_they_were():
    run = Run(messages=0)
    process = Process(run)
    odd = {**event("eval.completed", turn="a", x=1), "host": "h", "time": "2026-01-01T00:00:00+02:00"}
    process.take(odd, *turn_of("s", 0), completed("a"))
    process.run.entries[0] = attrs_evolve_type(process.run.entries[0], "trace.eval.completed")
    process.judge_all()
    process.take(event("session.ended", disposition="completed"))
    process.take(after=GRACE)
    process.judge_all()
    process.take(after=LINGER)
    assert process.intake.windows.sessions == 0
    process.take(odd, *turn_of("s", 0), thumb("a", "s"))
    assert process.intake.duplicates == 3
    session = process.queue[-1].subject
    assert session.events[0].type == "eval.completed"
    assert (session.events[0].time, session.events[0].extra) == ("2026-01-01T00:00:00+02:00", {"host": "h"})
    assert session.events[1].time is None


def attrs_evolve_type(entry, type):
    import attrs

    return attrs.evolve(entry, event=attrs.evolve(entry.event, type=type))


@pytest.mark.slow
@settings(max_examples=3 * settings.default.max_examples // 10, deadline=None)
@given(st.integers(0, 10**9))
def test_a_killed_watch_and_its_successors_judge_everything_once_for_each_trigger(seed):
    drawn = random.Random(seed)
    run = Run(messages=2)
    lines = [line for number in range(5) for session in "ab" for line in turn_of(session, number)]
    lines += [event("session.ended", session, disposition="completed") for session in "ab"]
    lines += [thumb("a/4", "a"), thumb("b/0", "b")]
    process, at = Process(run), 0
    again = Counter()
    while at < len(lines) or process.queue or process.begun:
        match drawn.choice(["take", "take", "begin", "finish", "answer", "kill"]):
            case "take":
                count = drawn.randint(1, 6)
                judged = {(kind, id) for entry in run.entries for kind, id in _decided(entry)}
                for line in lines[at : at + count]:
                    again.update(_again(line, judged))
                process.take(*lines[at : at + count], after=drawn.choice([0.0, GRACE, LINGER]))
                at += count
            case "begin":
                process.begin()
            case "finish":
                process.finish()
            case "answer":
                process.answer()
            case "kill":
                process = Process(run)
    process.take(after=2 * GRACE)
    process.judge_all()
    process = Process(run)
    process.take(after=2 * GRACE)
    assert process.queue == []
    verdicts_ = run.verdicts()
    subjects = {("turn", f"{session}/{number}") for number in range(5) for session in "ab"}
    subjects |= {("tool_cycle", f"{id}u") for _, id in subjects} | {("session", "a"), ("session", "b")}
    assert {(kind, id) for kind, id, *_ in verdicts_} == subjects
    assert {verdicts_[kind, id, judge, "bus"] for kind, id in subjects for judge in ("one", "two")} == {1}
    assert {
        (kind, id): n for (kind, id, judge, trigger), n in verdicts_.items() if judge == "one" and trigger != "bus"
    } == again


def _decided(entry):
    for kind, _, id, _ in entry.event.payload["due"] if entry.event.type == "source.position" else ():
        yield kind, id


def _again(line, judged):
    """Yield the subjects that feedback makes due again."""
    if line["type"] == "feedback.explicit":
        yield from {("turn", line["payload"]["subject_turn_id"]), ("session", line["session_id"])} & judged
