"""Ledgers of formats 2 and 3 stay readable and verifiable."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys

import pytest

from dicast import LedgerRefused, Query
from dicast.reading import read_verdicts

FIELDS = [
    "id",
    "type",
    "time",
    "run_id",
    "payload",
    "session_id",
    "turn_id",
    "subject_kind",
    "subject_id",
    "sensitivity",
]


def document(entry):
    values = {name: getattr(entry.event, name) for name in FIELDS}
    return {"seq": entry.seq, **values, "prev": entry.prev, "digest": entry.digest}


def test_its_events_are_the_exported_events(opened, old_ledger):
    with opened(old_ledger.path, create=False) as ledger:
        entries = [document(entry) for entry in ledger.read(Query())]
    assert entries == [{**dict.fromkeys(FIELDS), **event} for event in old_ledger.events]


def test_it_verifies_with_its_known_head(opened, old_ledger):
    with opened(old_ledger.path, create=False) as ledger:
        result = ledger.verify(old_ledger.head.digest)
    assert (result.ok, result.head) == (True, old_ledger.head), result.reason


def test_its_verdicts_are_read_as_columns(opened, old_ledger):
    scores = [event["payload"]["score"] for event in old_ledger.events if event["type"] == "eval.completed"]
    with opened(old_ledger.path, create=False) as ledger:
        assert [*read_verdicts(ledger).scores] == scores


def test_it_is_not_written_on(opened, old_ledger, make_event):
    before = old_ledger.path.read_bytes()
    new = old_ledger.path.with_stem(f"{old_ledger.path.stem}-4")
    command = shlex.join(["dicast", "ledger", "convert", str(old_ledger.path), str(new)])
    match = f"format {old_ledger.number}, .* {re.escape(command)}, "
    with pytest.raises(LedgerRefused, match=match), opened(old_ledger.path):
        pass
    with opened(old_ledger.path, create=False) as ledger:
        with pytest.raises(LedgerRefused, match=match):
            ledger.append([make_event()])
        assert ledger.head() == old_ledger.head
    assert old_ledger.path.read_bytes() == before


@pytest.mark.parametrize("resume", [[], ["--resume"]])
def test_a_run_on_it_names_the_command_of_its_conversion(old_ledger, tmp_path, resume):
    before = old_ledger.path.read_bytes()
    (tmp_path / "rows.jsonl").write_text('{"id": "1", "output": "a"}\n')
    pipeline = {
        "source": {"rows/jsonl": {"path": "rows.jsonl"}},
        "metrics": ["proxy/format"],
        "ledger": {"ledger/sqlite": {"path": old_ledger.path.name}},
    }
    (tmp_path / "p.yaml").write_text(json.dumps(pipeline))
    command = [sys.executable, "-m", "dicast", "run", "p.yaml", *resume]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert shlex.join(["dicast", "ledger", "convert", str(old_ledger.path)]) in done.stderr
    assert old_ledger.path.read_bytes() == before
