"""A disk that is full at any write leaves a ledger that verifies, whose sums follow from its events, and a run that can be resumed."""

from __future__ import annotations

import json
import os
import subprocess
from decimal import Decimal

import pytest

from dicast import Cost, DicastError, Judgment, Query, RequestError, read_ledger
from dicast.reading import reader
from dicast.testing import FakeJudge, run_pipeline, sample

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="a small file system is mounted, which needs root"),
]
ROWS = 24
STEP = 4
"""kB between two sizes of the file system."""


@pytest.fixture
def disk(tmp_path):
    """Mount a file system in memory; yield its folder and a function that sets its size in kB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", folder], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"no file system can be mounted here: {mounted.stderr.decode()}")

    def resize(kilobytes):
        subprocess.run(["mount", "-o", f"remount,size={kilobytes}k", folder], check=True)

    yield folder, resize
    subprocess.run(["umount", folder], check=True)


def spent(path):
    """Return the money that was spent by the events, and by the command ``cost``."""

    def read(live):
        settled = (Decimal(entry.event.payload["amount"]) for entry in live.read(Query(types=("spend.settled",))))
        return sum(settled, Decimal(0)), Decimal(reader("cost")(live, include_eval=True)["total_usd"])

    return read_ledger(path, read)


def judge(path):
    budget = dict.fromkeys(("run", "day", "session"), "10 usd")
    text = json.dumps({"judges": ["j"], "budget": budget, "ledger": {"ledger/sqlite": {"path": str(path)}}})
    paid = FakeJudge(Judgment(0.5, cost=Cost("0.001")), cost=Cost("0.001"))
    subjects = [sample("x" * 200, id=str(number)) for number in range(ROWS)]
    return run_pipeline(text, subjects=subjects, components={"j": paid})


@pytest.mark.slow
def test_a_ledger_is_whole_after_a_disk_that_was_full_at_any_write(disk):
    folder, resize = disk
    failed = 0
    for kilobytes in range(64, 312, STEP):
        path = folder / "ledger.db"
        for file in folder.iterdir():
            file.unlink()
        resize(kilobytes)
        try:
            done = judge(path)
            failed += done.document["stopped"] is not None
        except (DicastError, OSError):
            failed += 1
        resize(64 * 1024)
        if not path.exists():
            continue
        try:
            assert read_ledger(path, lambda live: live.verify()).ok, kilobytes
        except RequestError:
            continue  # not even the tables are there
        events, sums = spent(path)
        assert events == sums, kilobytes
        done = judge(path)  # after room was made
        assert done.document["stopped"] is None
        assert read_ledger(path, lambda live: live.verify()).ok, kilobytes
        events, sums = spent(path)
        assert events == sums, kilobytes
    assert failed > 50
