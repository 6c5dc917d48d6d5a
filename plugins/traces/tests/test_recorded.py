"""``traces/recorded`` reads from a ledger the same subjects that were judged."""

from __future__ import annotations

import asyncio
import tempfile
import tracemalloc
from contextlib import asynccontextmanager
from pathlib import Path

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dicast
from dicast import ConfigError, DataError, Due, Failure, RunContext, Subject, TraceEvent
from dicast.commands import run_command
from dicast.testing import MemoryLedger, run_pipeline
from dicast_traces import Events, Messages, Recorded, recorded

KINDS = ("tool_cycle", "turn", "session")
JUDGES = ["heuristic/tool_cycle", "heuristic/turn", "heuristic/session"]
RUN = "01KG0000000000000000000000"


def event(kind, session, turn=None, second=0, /, **payload):
    time = f"2026-01-31T12:{second // 60:02d}:{second % 60:02d}Z"
    return {"type": kind, "session_id": session, "turn_id": turn, "time": time, "payload": payload}


def call(second, session, turn, use):
    return event("tool.called", session, turn, second, tool_use_id=use, tool_name="get", input={"n": second})


def end(second, session, turn, use):
    return event("tool.completed", session, turn, second, tool_use_id=use, tool_name="get", success=True)


def completed(second, session, turn):
    texts = {"user_prompt_text": f"ask {turn}", "final_response_text": f"say {turn}"}
    return event(
        "turn.completed", session, turn, second, stop_reason="end_turn", tool_call_count=2, signals_extra=texts
    )


# Two calls at once, then one after the other; a session in between; feedback on the first turn after the second.
TRACE = [
    event("route.decided", "a", "a1", 1, chosen_model="m"),
    call(2, "a", "a1", "u1"),
    call(3, "a", "a1", "u2"),
    end(4, "a", "a1", "u1"),
    completed(5, "b", "b1"),
    end(6, "a", "a1", "u2"),
    call(7, "a", "a1", "u3"),
    end(8, "a", "a1", "u3"),
    completed(9, "a", "a1"),
    call(10, "a", "a2", "u4"),
    completed(11, "a", "a2"),
    event("feedback.implicit", "a", "a2", 12, type="manual_swap", subject_turn_id="a1"),
    event("route.decided", "a", "a3", 13, chosen_model="n"),
    completed(14, "a", "a3"),
    event("feedback.explicit", "a", None, 15, scope="session", rating="thumbs_up"),
    event("session.ended", "a", None, 16, disposition="completed"),
    event("session.ended", "b", None, 17, disposition="abandoned"),
]


def lines(path, records):
    path.write_bytes(b"".join(orjson.dumps(record) + b"\n" for record in records))
    return path


def run(folder, source, judges=JUDGES, **sections):
    ledger = {"ledger": {"ledger/sqlite": {"path": str(folder / "ledger.db")}}}
    return dicast.run({"source": source, "judges": judges, **ledger, **sections})


def run_trace(folder, records=TRACE, kinds=KINDS, **sections):
    """Run over a trace, and return the subjects of its source."""
    path = lines(folder / "trace.jsonl", records)
    run(folder, {"traces/events": {"path": str(path), "subjects": list(kinds)}}, **sections)
    return list(Events(path, subjects=kinds).subjects())


def opened(folder, kind, options, function):
    """Return the result of *function* on the source, which has the ledger of *folder*."""

    def read(ledger):
        async def work():
            async with Recorded(kind, **options).open(RunContext(RUN, "test", folder, read=ledger.read)) as live:
                return function(live)

        with pytest.raises(StopIteration) as done:
            work().send(None)  # nothing waits
        return done.value.value

    return dicast.read_ledger(folder / "ledger.db", read)


def again(folder, kind="turn", **options):
    """Return the subjects of *kind* in the ledger."""

    def subjects(live):
        subjects_ = list(live.subjects())
        assert (live.total, live.kinds) == (len(subjects_), (kind,))
        assert list(live.subjects()) == subjects_
        return subjects_

    return opened(folder, kind, options, subjects)


def ids(dues):
    return [due.subject.id for due in dues]


def plain(subject):
    """A subject as plain data, with its events in their order."""
    events = [(e.type, e.payload, e.time, e.session_id, e.turn_id, e.extra) for e in subject.events]
    return subject.kind, subject.id, subject.input, subject.output, subject.context, subject.parent_id, events


def are_equal(dues, subjects, kind):
    return [plain(due.subject) for due in dues] == [plain(subject_) for subject_ in subjects if subject_.kind == kind]


@pytest.mark.parametrize("kinds", [KINDS, ("turn",), ("tool_cycle",), ("session",), ("turn", "session")])
def test_subjects_of_a_trace_are_what_was_judged(tmp_path, kinds):
    subjects = run_trace(tmp_path, kinds=kinds)
    for kind in kinds:
        dues_ = again(tmp_path, kind)
        assert are_equal(dues_, subjects, kind)
        assert {due.trigger for due in dues_} == {"batch"}


@pytest.mark.parametrize("read", [("turn",), ("session",), ("tool_cycle", "turn")])
def test_what_no_run_has_read_is_put_together_from_the_trace(tmp_path, read):
    """After a run over turns alone the ledger has no event outside of turns, such as the end of the session."""
    run_trace(tmp_path, kinds=read)
    all_subjects = list(Events(tmp_path / "trace.jsonl", subjects=KINDS).subjects())
    for kind in KINDS:
        dues_ = sorted(again(tmp_path, kind), key=lambda due: due.subject.id)
        expected = sorted(
            (subject_ for subject_ in all_subjects if subject_.kind == kind), key=lambda subject_: subject_.id
        )
        assert ids(dues_) == [subject_.id for subject_ in expected]
        if kind == "session" and "session" not in read:
            for due, subject_ in zip(dues_, expected, strict=True):
                lost = [event for event in subject_.events if event not in due.subject.events]
                assert {event.type for event in lost} <= {"session.ended", "feedback.explicit"}
                assert due.subject.context == subject_.context
        else:
            assert [plain(due.subject) for due in dues_] == [plain(subject_) for subject_ in expected]


def test_a_session_is_put_together_from_the_newest_run_that_has_its_trace_and_in_the_window(tmp_path):
    run_trace(tmp_path, [completed(1, "a", "a1"), completed(2, "b", "b1")], ["turn"])
    run_trace(tmp_path, [completed(1, "a", "a1"), completed(9, "a", "a2")], ["turn"])
    dues_ = again(tmp_path, "session")
    assert {due.subject.id: [event.turn_id for event in due.subject.events] for due in dues_} == {
        "b": ["b1"],
        "a": ["a1", "a2"],
    }
    assert ids(again(tmp_path, "session", since="2026-01-31T12:00:09Z")) == ["a"]
    assert ids(again(tmp_path, "session", session="b")) == ["b"]
    with pytest.raises(
        DataError, match="no session from 2026-02-01 to the end: the 2 in the ledger are from 2026-01-31"
    ):
        again(tmp_path, "session", since="2026-02-01")


@pytest.mark.parametrize("tool_error", [None, "^Error"])
def test_subjects_of_a_transcript_are_what_was_judged(tmp_path, tool_error):
    def question_of(id):
        return {"role": "assistant", "tool_calls": [{"id": id, "function": {"name": "get", "arguments": "{}"}}]}

    def answer_of(id, text):
        return {"role": "tool", "tool_call_id": id, "content": text}

    messages_ = [{"role": "assistant", "content": "Done."}]
    work = [question_of("c1"), answer_of("c1", "Error: gone"), question_of("c2"), answer_of("c2", "two")]
    chat = [{"role": "user", "content": "Go."}, *work, *messages_, {"role": "user", "content": "Thanks."}, *messages_]
    path = lines(tmp_path / "chats.jsonl", [{"messages": chat, "grade": 1}, {"messages": chat, "grade": 2}])
    options = {"subjects": KINDS, "tool_error": tool_error}
    run(tmp_path, {"traces/messages": {"path": str(path), **options, "subjects": list(KINDS)}})
    subjects = list(Messages(path, **options).subjects())
    for kind in KINDS:
        assert are_equal(again(tmp_path, kind), subjects, kind)


TYPES = st.sampled_from(
    ["call", "end", "completed", "retry", "thumb", "thumb for all", "llm.call_failed", "trace.odd", "eval.odd"]
)
STEPS = st.lists(st.tuples(TYPES, st.sampled_from("ab"), st.integers(1, 3)), min_size=1, max_size=30)


def make(steps):
    """A trace of *steps*; of a turn that ends twice the first end counts."""
    seen = set()
    for second, (what, session, number) in enumerate(steps):
        turn = f"{session}{number}"
        match what:
            case "call":
                yield call(second, session, turn, f"u{second}")
            case "end":
                yield end(second, session, turn, f"u{second - 1}")
            case "completed" if turn not in seen:
                seen.add(turn)
                yield completed(second, session, turn)
            case "retry":
                yield event("feedback.implicit", session, turn, second, type="retry", subject_turn_id=f"{session}1")
            case "thumb" | "thumb for all":
                scope = {"scope": "turn" if what == "thumb" else "session"}
                yield event("feedback.explicit", session, turn, second, rating="thumbs_up", **scope)
            case "llm.call_failed" | "trace.odd" | "eval.odd":
                yield event(what, session, turn if second % 2 else None, second, n=second)


@pytest.mark.slow
@settings(max_examples=settings.default.max_examples // 2, deadline=None)
@given(STEPS, st.sampled_from(["as they happened", "otherwise", "unknown", "some unknown"]))
def test_subjects_of_any_trace_are_what_was_judged_whatever_its_times(steps, times):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        records = [*make(steps), completed(len(steps), "c", "c1")]
        for number, record in enumerate(records):
            if times == "otherwise":
                record["time"] = f"2026-01-31T12:00:{number * 7 % 60:02d}Z"
            elif times == "unknown" or (times == "some unknown" and number % 3):
                record["time"] = None
        subjects = run_trace(folder, records)
        for kind in {subject.kind for subject in subjects}:
            subjects_ = {due.subject.id: plain(due.subject) for due in again(folder, kind)}
            assert subjects_ == {subject_.id: plain(subject_) for subject_ in subjects if subject_.kind == kind}


def test_rows_and_other_kinds_are_what_was_judged(tmp_path):
    rows = [{"id": f"r{n}", "question": "?", "answer": str(n), "gold": n, "note": [n]} for n in range(5)]
    path = lines(tmp_path / "rows.jsonl", rows)
    fields = {"id": "id", "input": "question", "output": "answer", "reference": "gold"}
    for kind in ("row", "workload"):
        source = {"rows/jsonl": {"path": str(path), "fields": fields, "kind": kind}}
        run(tmp_path, source, [], metrics=["proxy/format"])
    for kind in ("row", "workload"):
        subjects = [due.subject for due in again(tmp_path, kind)]
        assert subjects == [Subject(kind, f"r{n}", "?", str(n), n, {"note": [n]}) for n in range(5)]


def test_subjects_of_a_program_keep_the_events_that_name_nothing(tmp_path):
    def turn(id):
        events = (TraceEvent("tool.called", {"tool_use_id": "u"}), TraceEvent("turn.completed", {"n": id}))
        return Subject("turn", id, "?", "!", events=events, session_id="s")

    ledger = {"ledger/sqlite": {"path": str(tmp_path / "ledger.db")}}
    subjects = [turn("t-1"), turn("t-2")]
    dicast.run({"judges": ["heuristic/turn"], "ledger": ledger}, subjects=subjects)
    subjects_ = [due.subject for due in again(tmp_path)]
    assert [[e.payload for e in subject_.events] for subject_ in subjects_] == [
        [e.payload for e in subject_.events] for subject_ in subjects
    ]


def test_subjects_of_a_program_that_share_events_and_mix_sessions_are_what_was_judged(tmp_path):
    """Events are shared within a session, one is there twice, and a session comes again after another."""
    events = {id: [TraceEvent("note", {"n": n}, session_id=id) for n in range(4)] for id in "ab"}

    def odd(id, session, *numbers):
        return Subject("odd", id, events=tuple(events[session][n] for n in numbers), session_id=session)

    first = [odd("1", "a", 2, 0), odd("2", "a", 1, 0, 2, 1), odd("3", "b", 3), Subject("odd", "4", session_id="a")]
    subjects = [*first, odd("5", "b", 0, 3, 1, 0), odd("6", "a", 2), odd("7", "a", 0, 2, 3, 1), odd("8", "a", 1)]
    ledger = {"ledger/sqlite": {"path": str(tmp_path / "ledger.db")}}
    dicast.run({"metrics": ["proxy/format"], "ledger": ledger}, subjects=subjects)
    assert are_equal(again(tmp_path, "odd"), subjects, "odd")


def test_pages_change_nothing(tmp_path, monkeypatch):
    subjects = run_trace(tmp_path)
    monkeypatch.setattr(recorded, "_PAGE", 3)
    for kind in KINDS:
        assert are_equal(again(tmp_path, kind), subjects, kind)


def test_the_newest_reading_counts_and_a_second_judgment_is_no_reading(tmp_path):
    run_trace(tmp_path, [completed(1, "a", "a1"), completed(2, "a", "a2")], ["turn"])
    changed = completed(1, "a", "a1")
    changed["payload"]["signals_extra"]["final_response_text"] = "changed"
    run_trace(tmp_path, [changed], ["turn"])
    run(tmp_path, {"traces/recorded": {"subject": "turn"}}, ["heuristic/turn"])
    first, second = again(tmp_path)
    assert [(due.subject.id, due.subject.output) for due in (first, second)] == [("a2", "say a2"), ("a1", "changed")]
    assert first.from_run < second.from_run < dicast.read_ledger(tmp_path / "ledger.db", _newest_run)


def _newest_run(ledger):
    return next(ledger.read(dicast.Query(types=("run.started",), newest_first=True))).event.run_id


WINDOWS = [
    ({}, ["t1", "t2", "t3"]),
    ({"since": "2026-01-31T12:00:20Z"}, ["t2", "t3"]),
    ({"since": "2026-01-31T12:00:20.001Z"}, ["t3"]),
    ({"until": "2026-01-31T12:00:20Z"}, ["t1", "t2"]),
    ({"until": "2026-01-31T12:00:19.999Z"}, ["t1"]),
    ({"since": "2026-01-31T14:00:20+02:00", "until": "2026-01-31T12:00:20"}, ["t2"]),
    ({"since": "2026-01-31", "until": "2026-01-31"}, ["t1", "t2"]),
    ({"since": "2026-02-01"}, ["t3"]),
]


@pytest.mark.parametrize(("window", "expected"), WINDOWS)
def test_both_bounds_of_the_window_are_included(tmp_path, window, expected):
    late = completed(0, "a", "t3") | {"time": "2026-02-01T01:00:00+01:00"}
    run_trace(tmp_path, [completed(10, "a", "t1"), completed(20, "a", "t2"), late], ["turn"])
    assert ids(again(tmp_path, **window)) == expected


@pytest.mark.parametrize(("kind", "since", "expected"), [("tool_cycle", 4, ["u1"]), ("session", 16, ["a"])])
def test_a_subject_happened_when_it_ended(tmp_path, kind, since, expected):
    run_trace(tmp_path)
    since = f"2026-01-31T12:00:{since:02d}Z"
    assert ids(again(tmp_path, kind, since=since, until=since)) == expected


def test_calls_of_several_sessions_under_one_id_are_refused_and_none_is_lost(tmp_path):
    calls = [
        (call(n, session, turn, "u"), completed(n + 1, session, turn)) for n, (session, turn) in enumerate(("ax", "by"))
    ]
    run_trace(tmp_path, [event_ for pair in calls for event_ in pair], ("turn",), judges=["heuristic/turn"])
    with pytest.raises(DataError, match=r"'u' in the sessions 'a' and 'b'.*judge one session at a time"):
        again(tmp_path, "tool_cycle")
    for session, turn in ("ax", "by"):
        (due,) = again(tmp_path, "tool_cycle", session=session)
        assert (due.subject.id, due.subject.parent_id) == ("u", turn)


def test_what_has_no_time_happened_when_it_was_read(tmp_path):
    records = [{**completed(1, "a", "a1"), "time": None}]
    run_trace(tmp_path, records, ["turn"])
    run(
        tmp_path,
        {"rows/jsonl": {"path": str(lines(tmp_path / "r.jsonl", [{"id": 1, "output": "0"}]))}},
        ["heuristic/turn"],
    )
    for kind in ("turn", "row"):
        assert len(again(tmp_path, kind, since="2026-02-02")) == 1
        with pytest.raises(DataError, match=f"no {kind} from the beginning to 2026-02-02: the 1 in the ledger"):
            again(tmp_path, kind, until="2026-02-02")


def test_only_the_session_that_is_asked_for(tmp_path):
    run_trace(tmp_path)
    assert ids(again(tmp_path, session="b")) == ["b1"]
    assert ids(again(tmp_path, "session", session="a")) == ["a"]
    with pytest.raises(DataError, match="session 'c' of the ledger has no subject of kind 'turn'; it has none at all"):
        again(tmp_path, session="c")


def test_a_kind_that_is_not_there_names_those_that_are(tmp_path):
    run_trace(tmp_path)
    with pytest.raises(DataError, match="no subject of kind 'row'; it has subjects of kind session, tool_cycle, turn"):
        again(tmp_path, "row")


@pytest.mark.parametrize("first", ["store", "digest"])
def test_a_ledger_of_digests_is_refused(tmp_path, first):
    for content in (first, "digest"):
        path = {"path": str(tmp_path / "ledger.db"), "content": content}
        run_trace(tmp_path, ledger={"ledger/sqlite": path})
    for kind in KINDS:
        with pytest.raises(DataError, match="keeps digests in place of the subjects of run .*"):
            again(tmp_path, kind)


@pytest.mark.parametrize("bound", ["since", "until"])
@pytest.mark.parametrize("text", ["yesterday", "2026-13-01", "12:00", ""])
def test_what_is_no_time_is_refused(bound, text):
    if text:
        with pytest.raises(
            ConfigError, match=f"{bound} is not an ISO 8601 date or time: '{text}'; write it like 2026-01-31"
        ):
            Recorded("turn", **{bound: text})


def test_a_window_that_ends_before_it_begins_is_refused():
    with pytest.raises(ConfigError, match=r"since \(2026-02-01\) is after until \(2026-01-31\)"):
        Recorded("turn", "2026-02-01", "2026-01-31")
    assert Recorded("turn", "2026-01-31", "2026-01-31")


class Follower:
    """A live source that records *records* one by one and yields the subjects that are due, some of them twice."""

    live = True
    kinds = KINDS

    def __init__(self, folder, records, due):
        self._folder, self._records, self._due = folder, records, due

    @asynccontextmanager
    async def open(self, run):
        self._run = run
        yield self

    async def subjects(self):
        for number, record in enumerate(self._records):
            self._run.record([TraceEvent(**record)], {"at": number})
            await asyncio.sleep(0)
            lines_ = lines(self._folder / "so-far.jsonl", self._records[: number + 1])
            for subject in Events(lines_, subjects=KINDS).subjects():
                if (subject.kind, subject.id) in self._due.get(number, ()):
                    yield Due(subject, "bus", self._run.run_id)


def test_subjects_of_a_live_run_are_what_was_judged_last(tmp_path, capsys):
    cycles = [("tool_cycle", use) for use in ("u1", "u2", "u3", "u4")]
    last = {16: [("session", "b")], 15: [*cycles, ("turn", "a2"), ("turn", "a3"), ("session", "a")]}
    due = {4: [("turn", "b1")], 8: [("turn", "a1")], 11: [("turn", "a1")], **last}
    pipeline = {"judges": JUDGES, "ledger": {"ledger/sqlite": {"path": str(tmp_path / "ledger.db")}}}
    assert run_command(pipeline, lambda _: Follower(tmp_path, TRACE, due), live=True) == 0, capsys.readouterr()
    subjects = list(Events(lines(tmp_path / "trace.jsonl", TRACE), subjects=KINDS).subjects())
    for kind in KINDS:
        subjects_ = {due.subject.id: plain(due.subject) for due in again(tmp_path, kind)}
        assert subjects_ == {subject_.id: plain(subject_) for subject_ in subjects if subject_.kind == kind}
    assert ids(again(tmp_path)) == ["b1", "a1", "a2", "a3"]


@pytest.mark.slow
def test_memory_is_that_of_one_session(tmp_path):
    """Sessions are let go one after the other; a tenfold ledger is read in the memory of one."""

    def peak(sessions):
        folder = tmp_path / str(sessions)
        folder.mkdir()
        turns = [(call(1, f"s{n}", f"t{n}", f"u{n}"), completed(2, f"s{n}", f"t{n}")) for n in range(sessions)]
        run_trace(folder, [event_ for turn in turns for event_ in turn], ["turn"])
        tracemalloc.start()
        assert opened(folder, "turn", {}, lambda live: sum(1 for _ in live.subjects())) == sessions
        highest = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return highest

    assert peak(1600) < 1.5 * peak(400)


@given(st.lists(st.sampled_from(["good", "failed", "without output"]), min_size=1, max_size=12))
@settings(max_examples=25)
def test_the_counts_of_what_is_judged_again_are_those_of_the_ledger(records):
    dues = [
        Due(Subject("row", str(number), output="text" if record == "good" else None),
            failure=Failure("source_error", "broken") if record == "failed" else None)
        for number, record in enumerate(records)
    ]  # fmt: skip
    components = {"kept": MemoryLedger()}
    text = "metrics: [proxy/format]\nledger: kept\n"
    first = run_pipeline(text, subjects=dues, components=components).document
    again = run_pipeline(f"source: {{traces/recorded: {{subject: row}}}}\n{text}", components=components).document
    read = again["read"]
    assert (read["records"], read["failed"]) == (len(records), records.count("failed"))
    assert read["records"] == sum(read["subjects"].values()) + sum(read["dropped"].values()) + read["failed"]
    assert (again["scored"], again["failures"]) == (first["scored"], first["failures"])
