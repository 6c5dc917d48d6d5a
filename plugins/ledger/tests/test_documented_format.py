"""The page about format 4: its example, and its script."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import orjson
import pytest

from dicast.toolkit.ledger_lines.chain import START, chained, leaf_of
from dicast.toolkit.ledger_lines.lines import Encoder, events_of
from dicast.toolkit.ledger_lines.makers import Maker
from dicast.toolkit.shard_tree import shard_entries, shards_root

PAGE = Path(__file__).parents[3] / "docs" / "concepts" / "ledger-format.md"


def block(title):
    """Return the text of the block with this title."""
    return re.search(rf'```\w+ title="{re.escape(title)}"\n(.*?)```', PAGE.read_text(), re.DOTALL)[1]


@pytest.fixture
def lines():
    return block("lines.jsonl").encode().splitlines()


def test_the_example_has_the_printed_digests(lines):
    digest, digests = START, []
    for line in lines:
        digest, _ = chained(digest, [leaf_of(line)])
        digests.append(digest.hex())
    assert digests == block("digests.txt").split()


def test_the_example_is_what_the_ledger_writes(lines):
    makers = {(maker := Maker.of(lines[1])).name: maker}
    content = re.search(r"The content of the row is `(.*)`\.", PAGE.read_text())[1].encode()
    events = [event for line in lines for _, event in events_of(orjson.loads(line), makers, lambda _: content)]
    assert [event.type for event in events] == ["run.started", "subject.read", "eval.started", "eval.completed"]
    assert [line for line, *_ in Encoder(store_content=True).encode(events).lines] == lines


def test_the_page_has_the_root_of_its_shards():
    shards = [
        {"number": number, "run_id": run_id, "count": count, "head": {"seq": seq, "digest": digest}}
        for number, run_id, count, seq, digest in map(orjson.loads, block("entries.jsonl").splitlines())
    ]
    assert shard_entries(shards) == block("entries.jsonl").encode().splitlines()
    first, second, third = (sha256(b"\0" + entry).digest() for entry in shard_entries(shards))
    left = sha256(b"\1" + first + second).digest()
    assert shards_root(shards) == sha256(b"\1" + left + third).hexdigest() == block("root.txt").strip()


@pytest.fixture(scope="module")
def recorded(tmp_path_factory, opened, make_subject, make_event):
    """Return the path of a ledger, and its head."""
    path = tmp_path_factory.mktemp("recorded") / "ledger.db"
    with opened(path) as ledger:
        ledger.append(
            [make_event("run.started", {}), *(event for number in range(150) for event in make_subject(number))]
        )
        ledger.append(make_subject(151)[:1])
        head = ledger.append([make_event("run.completed", {})])
    return path, head.digest


@pytest.fixture
def verify(tmp_path):
    """Run the script of the page."""
    script = block("verify.py")
    assert len(script.splitlines()) < 60
    (tmp_path / "verify.py").write_text(script)

    def run(*arguments):
        command = [sys.executable, tmp_path / "verify.py", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    return run


def test_the_script_accepts_a_ledger(recorded, verify):
    path, head = recorded
    done = verify(path, head)
    assert (done.returncode, done.stdout) == (0, f"453 events, 0 contents absent, head {head}\n"), done.stderr


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("UPDATE blocks SET prev = zeroblob(32) WHERE first > 1", "does not follow event"),
        ("DELETE FROM blocks WHERE first = 1", "does not follow event 0"),
        ("UPDATE blocks SET body = CAST(replace(body, 'run.', 'ran.') AS BLOB) WHERE first > 452", "was changed"),
        (
            "UPDATE texts SET body = CAST(replace(body, 'Answer', 'answer') AS BLOB) WHERE id > 1",
            "contents were changed",
        ),
        ("DELETE FROM blocks WHERE first > 452", "no line has the digest"),
    ],
)
def test_the_script_finds_a_change(recorded, verify, tmp_path, statement, message):
    path, head = recorded
    shutil.copy(path, tmp_path / "copy.db")
    subprocess.run([sys.executable, "-c", CHANGE, tmp_path / "copy.db", statement], check=True)
    done = verify(tmp_path / "copy.db", head)
    assert done.returncode == 1
    assert message in done.stderr


CHANGE = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1])
assert connection.execute(sys.argv[2]).rowcount
connection.commit()
"""
