"""A disk that is full at any write of an output file: the older good file stays, the message names the file, and the next try is whole."""

from __future__ import annotations

import json
import os
import re
import subprocess

import pytest

from dicast._kernel.cli import main

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="a small file system is mounted, which needs root")
STEP = int(os.environ.get("DICAST_DISK_STEP", "16"))
"""kB between two rooms that are left on the file system."""

ROOM = 4 * 1024
ROWS = "".join(
    json.dumps({"id": str(n), "input": os.urandom(1500).hex(), "output": "ab"[n % 2], "reference": "a"}) + "\n"
    for n in range(40)
)
PIPELINE = "source: {{rows/jsonl: {{path: rows.jsonl}}}}\nmetrics: [diff/match]\nledger: {{ledger/sqlite: {{path: ledger.db}}}}\n{more}"
SINKS = {
    "csv": "csv/rows: {path: disk/out, overwrite: true}",
    "parquet": "parquet/rows: {path: disk/out, overwrite: true}",
    "events": "jsonl/events: {path: disk/out}",
    "junit": "junit/xml: {path: disk/out}",
    "markdown": "report/markdown: {path: disk/out}",
    "page": "report/html: {path: disk/out}",
}
COMMANDS = {
    "report": ["report", "--out", "disk/out"],
    "baseline": ["baseline", "save", "b", "--file", "disk/out"],
    "labels": ["labels", "export", "--out", "disk/out"],
    "init": ["init", "rows.jsonl", "--out", "disk/new.yaml"],
}


@pytest.fixture
def disk(tmp_path, monkeypatch):
    """Mount a file system in memory at ``disk``; yield a function that leaves so much room in kB."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "disk").mkdir()
    words = ["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", "disk"]
    if subprocess.run(words, cwd=tmp_path, capture_output=True, check=False).returncode:
        pytest.skip("no file system can be mounted here")

    (tmp_path / "disk/.filler").write_bytes(bytes(8192))  # a size of 0 would be no limit

    def leave(room):
        used = os.statvfs(tmp_path / "disk")
        kilobytes = (used.f_blocks - used.f_bfree) * used.f_frsize // 1024 + room
        subprocess.run(["mount", "-o", f"remount,size={kilobytes}k", "disk"], cwd=tmp_path, check=True)

    yield leave
    subprocess.run(["umount", tmp_path / "disk"], check=True)


def outcome(capfd, words):
    """Return the exit code and all that is printed."""
    capfd.readouterr()
    code = main(words)
    return code, "".join(capfd.readouterr())


def write_until_there_is_room(disk, capfd, tmp_path, words, codes):
    """Run *words* with more room each time until it succeeds; return how often it failed before."""
    place = tmp_path / words[-1] if words[0] != "run" else tmp_path / "disk/out"
    is_new = place.name == "new.yaml"
    if not is_new:
        code, said = outcome(capfd, words)
        assert code == 0, said
        old = place.read_bytes()
    for failed in range(ROOM // STEP):
        if not is_new:
            place.write_bytes(old)
        disk(failed * STEP)
        code, said = outcome(capfd, words)
        disk(ROOM)
        if code == 0:
            assert place.stat().st_size > 100
            break
        assert code in codes, said
        assert re.search(r"\bdisk\b", re.sub(r"\n\s+", "", said)), (
            said
        )  # the file, or the folder of a file without a name
        assert "No space left on device" in said, said
        assert not place.exists() if is_new else place.read_bytes() == old, (code, said)
        left = [path.name for path in place.parent.iterdir() if path != place and not path.name.startswith(".")]
        assert left == [], said
    assert code == 0
    return failed


@pytest.mark.slow
@pytest.mark.parametrize("name", SINKS)
def test_a_sink_on_a_full_disk_leaves_the_older_file(disk, capfd, tmp_path, name):
    (tmp_path / "rows.jsonl").write_text(ROWS)
    (tmp_path / "p.yaml").write_text(PIPELINE.format(more=f"sinks: [{SINKS[name]}]\n"))
    assert write_until_there_is_room(disk, capfd, tmp_path, ["run", "p.yaml"], {4}) > 0
    assert outcome(capfd, ["ledger", "verify", "--ledger", "ledger.db"])[0] == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_on_a_full_disk_leaves_the_older_file(disk, capfd, tmp_path, monkeypatch, name):
    (tmp_path / "rows.jsonl").write_text(ROWS)
    (tmp_path / "p.yaml").write_text(PIPELINE.format(more=""))
    assert outcome(capfd, ["run", "p.yaml"])[0] == 0
    (tmp_path / ".dicast").mkdir(exist_ok=True)
    (tmp_path / "ledger.db").rename(tmp_path / ".dicast/ledger.db")
    lines = [
        json.dumps({"subject_kind": "row", "subject_id": str(n), "label": 1.0, "labeller": "u"}) for n in range(40)
    ]
    (tmp_path / "labels.jsonl").write_text("\n".join(lines))
    assert outcome(capfd, ["labels", "import", "labels.jsonl"])[0] == 0
    assert write_until_there_is_room(disk, capfd, tmp_path, COMMANDS[name], {2, 4}) > 0
