"""An erasure removes texts from all files; verdicts and the chain stay."""

from __future__ import annotations

import pytest

from dicast import LedgerError, Query
from dicast_segments import log


@pytest.fixture
def erased(make_event):
    """Return a function that makes the event of an erasure."""
    return lambda digests: make_event("content.erased", {"digests": list(digests), "reason": "request"}, run_id="")


def contents(live):
    return {
        entry.event.subject_id: entry.event.payload.get("content")
        for entry in live.read(Query(types=("subject.read",)))
    }


def test_a_subject_is_erased_from_segments_and_commits(ledger, opened, make_subject, erased, monkeypatch):
    monkeypatch.setattr(log, "SEALED_COMMITS", 2)
    with opened(ledger) as live:
        for number in range(5):
            live.append(make_subject(number % 4, "a secret" if number % 4 == 0 else None))
        head = live.head()
        result = live.erase("0", None, erased)
        assert (len(result.digests), result.others) == (1, 0)
        assert contents(live)["0"] is None
        assert contents(live)["1"] == {"output": "text 1"}
        assert len([*live.read(Query(types=("eval.completed",)))]) == 5
        verification = live.verify(head.digest)
        assert (verification.ok, verification.absent, verification.events) == (True, 2, 16)
        store = live._log.store
        files = [store.get(f"{folder}/{name}") for folder in ("log", "segments") for name in store.names(folder)]
        assert len(files) == 3
        assert live.erase("0", None, erased).digests == ()
        live.append(make_subject(0, "a secret"))  # a later run reads it again
        assert contents(live)["0"] == {"output": "a secret"}
    with opened(ledger) as live:
        assert contents(live)["0"] == {"output": "a secret"}
        assert live.verify().absent == 2
        if ledger.path:
            import pyarrow.parquet

            first = min(ledger.path.glob("segments/*"))
            assert "a secret" not in str(pyarrow.parquet.read_table(first).to_pylist())


def test_the_texts_of_a_session_and_a_turn_are_erased(folder, opened, make_event, erased):
    about = {"session_id": "S", "subject_kind": "turn"}
    verdict = {"eval_id": "E", "score": 1.0, "scores": [{"metric": "a", "details": "a secret"}]}
    call = {"tool_name": "find", "input": {"name": "a secret"}}
    with opened(folder) as live:
        live.append(
            [
                make_event("eval.completed", verdict, turn_id="S/1", subject_id="S/1", **about),
                make_event("tool.called", call, turn_id="S/2", session_id="S", sensitivity="user_controlled"),
            ]
        )
        assert [entry.event.payload for entry in live.read(Query())] == [verdict, call]
        assert len(live.erase("S/1", None, erased).digests) == 1
        assert len(live.erase("S", None, erased).digests) == 1
        verdict["scores"][0]["details"], call["input"] = "", {}
        assert [entry.event.payload for entry in live.read(Query(types=("eval.completed", "tool.called")))] == [
            verdict,
            call,
        ]
        assert live.verify().absent == 2


def test_digests_keep_no_text(tmp_path, opened, make_subject):
    from dicast_segments import Ledger

    with opened(Ledger(path=tmp_path / "logs", content="digest")) as live:
        live.append(make_subject(1, "a secret"))
        assert not live.keeps_content
        assert contents(live) == {"1": None}
        assert live.verify().absent == 1


def test_contents_from_before_a_time_are_erased(folder, opened, make_subject, erased):
    with opened(folder) as live:
        live.append(make_subject(1, "old") + make_subject(2, "shared") + make_subject(3, "shared"))
        assert live.erase(None, "2026-01-01", erased).digests == ()
        assert live.erase("2", None, erased).others == 1
        assert len(live.erase(None, "2027-01-01", erased).digests) == 1
        assert set(contents(live).values()) == {None}


def test_a_content_without_a_text_stays(folder, opened, make_event, erased):
    with opened(folder) as live:
        for subject in "12":
            content = {"digest": "0", "content": {"output": None, "context": {}}}
            live.append([make_event("subject.read", content, subject_kind="row", subject_id=subject)])
        assert live.erase("1", None, erased).digests == ()
        assert [*contents(live).values()] == [{"output": None, "context": {}}] * 2


def test_two_erasures_remove_both_texts(folder, opened, make_subject, erased, monkeypatch):
    """The second erasure replaces a segment that it read before the first erasure."""
    with opened(folder) as live, opened(folder) as other:
        live.append(make_subject(1, "first") + make_subject(2, "second"))
        replace, is_done = live._log.store.replace, []

        def slow(name, data):
            if not is_done:
                is_done.append(True)
                other.erase("2", None, erased)
            replace(name, data)

        monkeypatch.setattr(live._log.store, "replace", slow)
        live.erase("1", None, erased)
        assert set(contents(live).values()) == {None}
        assert live.verify().ok


def test_a_failed_erasure_is_repeated(folder, opened, make_subject, erased, monkeypatch):
    with opened(folder) as live:
        live.append(make_subject(1, "first"))

        def fail(name, data):
            raise LedgerError("no space")

        with monkeypatch.context() as patch:
            patch.setattr(live._log.store, "replace", fail)
            with pytest.raises(LedgerError, match="no space"):
                live.erase("1", None, erased)
        assert len(live.erase("1", None, erased).digests) == 1
        assert contents(live) == {"1": None}
