"""The verdicts that a ledger has of a session are gone through once, however many of its subjects are judged again."""

from __future__ import annotations

import sys
from collections.abc import Callable

import attrs

from dicast import Entry, Event, Subject
from dicast._kernel.run import children as families
from dicast._kernel.run.children import RecordedChildren


@attrs.frozen
class Rows:
    """A ledger that has these rows of one session."""

    entries: list[Entry]

    def read(self, query):
        return iter([entry for entry in self.entries if entry.seq > query.after])


def steps(module, work: Callable[[], object]) -> int:
    """How many lines of *module* run in *work*, each pass of a loop anew."""
    count, before = 0, sys.gettrace()

    def trace(frame, kind, _):
        nonlocal count
        if frame.f_code.co_filename != module.__file__:
            return None
        count += kind in ("line", "call")
        return trace

    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


def completed(seq, kind, id, parent, turn=None, judge="j"):
    payload = {
        "eval_id": f"E{seq:05d}",
        "subject_kind": kind,
        "subject_id": id,
        "score": 1.0,
        "confidence": 1.0,
        "judge": judge,
        "judge_kind": "heuristic",
        "judge_model": None,
        "judge_cost_usd": "0",
        "judge_pricing_version": None,
        "judge_latency_ms": 0,
        "rubric_id": "r",
        "rubric_version": "1",
        "signals": {},
        "parent_eval_id": parent,
        "fingerprint": "f",
    }
    event = Event(str(seq), "eval.completed", "", "R1", payload, "s", turn, kind, id)
    return Entry(seq, event, "", "")


def session(turns):
    """A session whose every turn has one tool cycle."""
    rows = []
    for n in range(turns):
        rows.append(completed(2 * n + 1, "tool_cycle", f"u{n}", f"E{2 * n + 2:05d}", f"t{n}"))
        rows.append(completed(2 * n + 2, "turn", f"t{n}", "E99999", f"t{n}"))
    return Rows(rows)


def judged_again(turns):
    recorded = RecordedChildren(session(turns), None)
    for n in range(turns):
        turn = Subject("turn", f"t{n}", session_id="s", parent_id="s")
        cycle = Subject("tool_cycle", f"u{n}", session_id="s", parent_id=f"t{n}")
        assert [child.subject_id for child in recorded.children(turn)] == [f"u{n}"]
        assert recorded.parent(turn) is None
        assert recorded.named(turn) == "E99999"
        assert recorded.parent(cycle) == f"E{2 * n + 2:05d}"
        assert recorded.named(cycle) is None  # borne by now
    parent = Subject("session", "s", session_id="s")
    assert [child.subject_id for child in recorded.children(parent)] == [f"t{n}" for n in range(turns)]


def test_work_grows_with_the_verdicts_of_a_session_and_not_with_their_square():
    few, large = (steps(families, lambda turns=turns: judged_again(turns)) for turns in (50, 400))
    assert large < 10 * few


def test_the_newest_verdict_of_each_judge_counts_in_the_order_of_the_first_ones():
    rows = [
        completed(1, "turn", "t1", None, "t1"),
        completed(2, "turn", "t2", None, "t2"),
        completed(3, "turn", "t1", None, "t1", "k"),
        completed(4, "turn", "t1", None, "t1"),
    ]
    recorded = RecordedChildren(Rows(rows), None)
    children = recorded.children(Subject("session", "s", session_id="s"))
    assert [(child.subject_id, child.judge, child.eval_id) for child in children] == [
        ("t1", "j", "E00004"),
        ("t2", "j", "E00002"),
        ("t1", "k", "E00003"),
    ]


def test_emitted_verdicts_count_before_the_ledger_has_them_and_after_their_session_left_memory(monkeypatch):
    monkeypatch.setattr(families, "MOST", 2)
    ledger, emitted, commits = Rows([]), [], []

    def commit():
        ledger.entries.extend(emitted)
        commits.append(len(emitted))
        emitted.clear()

    recorded = RecordedChildren(ledger, "R1", commit, is_new=True)
    session = Subject("session", "s", session_id="s")
    assert recorded.children(session) == []
    for number in (1, 2):
        entry = completed(number, "turn", f"t{number}", "E99999", f"t{number}")
        emitted.append(entry)
        recorded.note([entry.event])
    assert [child.subject_id for child in recorded.children(session)] == ["t1", "t2"]
    assert (recorded.named(Subject("turn", "t3", session_id="s", parent_id="s")), commits) == ("E99999", [])
    for other in "abc":
        recorded.children(Subject("session", other, session_id=other))
        recorded.note([attrs.evolve(completed(9, "turn", "x", None).event, session_id=other)])
    assert [child.subject_id for child in recorded.children(session)] == ["t1", "t2"]
    assert commits == [2]
