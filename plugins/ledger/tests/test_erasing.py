"""Erasure of contents."""

from __future__ import annotations

import pytest

from dicast import Event, Query


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.db"


def erased(digests):
    return Event("E", "content.erased", "2026-03-03T00:00:00.000Z", "E", {"digests": [*digests], "reason": "asked"})


def outputs(ledger):
    entries = ledger.read(Query(types=("subject.read",)))
    return [(entry.event.payload["content"] or {}).get("output") for entry in entries]


@pytest.mark.parametrize("together", [True, False])
def test_the_text_of_a_subject_goes_and_everything_else_stays(path, opened, make_subject, together):
    appends = [[event for number in range(120) for event in make_subject(number)], make_subject(7, run_id="R2")]
    with opened(path) as ledger:
        for append in appends:
            for part in [append] if together else [[event] for event in append]:
                ledger.append(part)
        head = ledger.head()
        result = ledger.erase("row-0007", None, erased)
        assert (len(result.digests), result.others) == (1, 0)
        assert outputs(ledger) == [
            *(None if number == 7 else f"Answer {number}" for number in range(120)),
            None,
        ]
        checked = ledger.verify(head.digest)
        assert (checked.ok, checked.absent) == (True, 2)
        (event,) = [entry.event for entry in ledger.read(Query(types=("content.erased",)))]
        assert event.payload == {"digests": list(result.digests), "reason": "asked"}
        assert len(ledger.verdict_columns().codes) == 121
        assert ledger.erase("row-0007", None, erased).digests == ()
    assert not [file for file in path.parent.iterdir() if b"Answer 7" in file.read_bytes()]


def test_a_text_that_another_subject_shares_goes_too_and_is_counted(path, opened, make_event):
    content = {"digest": "0", "content": {"output": "shared"}}
    with opened(path) as ledger:
        ledger.append([make_event("subject.read", content, subject_id=name) for name in ("a", "b", "c")])
        assert ledger.erase("a", None, erased).others == 2
        assert outputs(ledger) == [None] * 3
        assert ledger.verify().absent == 3


def test_a_text_from_before_a_time_stays_if_it_was_read_later(path, opened, make_event):
    def read(text, day):
        content = {"digest": "0", "content": {"output": text}}
        return make_event("subject.read", content, time=f"2026-03-0{day}T12:00:00.000Z")

    with opened(path) as ledger:
        ledger.append([read("old", 1), read("both", 1), read("both", 3), read("new", 3)])
        assert len(ledger.erase(None, "2026-03-02T00:00:00.000Z", erased).digests) == 1
        assert outputs(ledger) == [None, "both", "both", "new"]
        assert ledger.verify().ok


def test_an_erased_text_is_stored_again_when_it_is_read_again(path, opened, make_subject):
    with opened(path) as ledger, opened(path) as other:
        other.append(make_subject(1))
        ledger.erase("row-0001", None, erased)
        other.append(make_subject(1, run_id="R2"))
        assert outputs(ledger) == ["Answer 1", "Answer 1"]
        assert ledger.verify().ok


def test_without_texts_a_later_ledger_stores_the_text_for_both(path, opened, make_subject):
    with opened(path, content="digest") as ledger:
        ledger.append(make_subject(1))
        assert outputs(ledger) == [None]
        assert ledger.verify().ok
    with opened(path) as ledger:
        ledger.append(make_subject(1))
        assert outputs(ledger) == ["Answer 1", "Answer 1"]
        assert ledger.verify().ok
