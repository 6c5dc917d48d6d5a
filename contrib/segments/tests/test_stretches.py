"""Checks in several processes and in one process find the same faults."""

from __future__ import annotations

import subprocess

import pytest

from dicast_segments import log, stretches
from dicast_segments.stores import FolderStore
from dicast_segments.verification import verify

from .test_faults import change_value


@pytest.fixture
def written(folder, opened, make_event, make_subject, monkeypatch):
    """Return the folder of a ledger with nine segments and a commit, and amounts."""
    monkeypatch.setattr(log, "SEALED_COMMITS", 3)
    with opened(folder) as live:
        for number in range(27):
            live.append(make_subject(number))
            amount = {"reservation_id": f"R{number}", "scopes": ["run:a"], "amount": "1", "unit": "usd"}
            live.append([make_event("spend.reserved", amount)])
        live._log._has_written = False  # as after a kill
    assert len([*folder.path.glob("segments/*")]) > 9
    return folder


def segments(ledger):
    return sorted(ledger.path.glob("segments/*"))


def remove(ledger):
    segments(ledger)[4].unlink()


def cut(ledger):
    path = segments(ledger)[7]
    path.write_bytes(path.read_bytes()[:-9])


def swap(ledger):
    third, fourth = segments(ledger)[2:4]
    third.write_bytes(fourth.read_bytes())


def change(ledger):
    change_value(segments(ledger)[5], "payload", 2, '{"score":1}')


def change_two(ledger):
    change_value(segments(ledger)[8], "content", 0, '{"output":"other"}')
    change_value(segments(ledger)[6], "subject_id", 1, "other")


@pytest.mark.slow
@pytest.mark.parametrize("damage", [lambda _: None, remove, cut, swap, change, change_two])
def test_processes_find_the_first_fault(written, damage):
    damage(written)
    store = FolderStore(written.path)
    for head in (None, "f" * 64):
        assert verify(store, head, 3) == verify(store, head)


@pytest.mark.slow
def test_a_head_within_a_stretch_is_found(written, opened):
    with opened(written, create=False) as live:
        for seq in (1, 50, 100):
            assert live.verify_in(2, live.digest_of(seq)).ok


@pytest.mark.slow
def test_no_process_is_left_and_a_dead_process_changes_nothing(written, monkeypatch):
    started = []

    def start(place, expected):
        started.append(subprocess.Popen(["true"], stdin=subprocess.PIPE, stdout=subprocess.PIPE))
        return started[-1]

    monkeypatch.setattr(stretches, "_started", start)
    store = FolderStore(written.path)
    assert verify(store, None, 2) == verify(store, None)
    assert [worker.poll() for worker in started] == [0, 0]


@pytest.mark.slow
def test_a_worker_ends_with_its_input(written):
    worker = stretches._started(str(written.path), None)
    assert worker.stdin is not None
    worker.stdin.close()
    assert worker.wait(60) == 0
    worker.stdout.close()
