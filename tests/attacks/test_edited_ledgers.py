"""A ledger that somebody has edited by hand: found by ``ledger verify``, and never a defect of dicast to who reads it."""

from __future__ import annotations

import shutil

import pytest

from dicast import run

from . import edits

VERDICTS = "WHERE type = 'eval.completed'"
READS = (
    ("verdicts", "--run", "last"),
    ("verdicts", "--run", "last", "--json"),
    ("show", "last"),
    ("show", "row-1"),
    ("ledger", "export"),
    ("cost",),
)
EDITS = {
    "no JSON": f"UPDATE events SET payload = '{{' {VERDICTS}",
    "a list": f"UPDATE events SET payload = '[1]' {VERDICTS}",
    "a text": f"UPDATE events SET payload = '\"x\"' {VERDICTS}",
    "nothing": f"UPDATE events SET payload = NULL {VERDICTS}",
    "bytes": f"UPDATE events SET payload = x'ff00' {VERDICTS}",
    "an empty verdict": f"UPDATE events SET payload = '{{}}' {VERDICTS}",
    "a score of text": f"UPDATE events SET payload = json_set(payload, '$.score', 'high') {VERDICTS}",
    "a score beyond all bounds": f"UPDATE events SET payload = json_set(payload, '$.score', 1e308) {VERDICTS}",
    "an end without a word": "UPDATE events SET payload = '{}' WHERE type = 'run.completed'",
    "an end of other words": "UPDATE events SET payload = json_set(payload, '$.score', 'x') WHERE type = 'run.completed'",
    "a start without a word": "UPDATE events SET payload = '{}' WHERE type = 'run.started'",
    "deep JSON": f"UPDATE events SET payload = replace(hex(zeroblob(3000)), '00', '[') {VERDICTS}",
    "a digest of bytes": "UPDATE blocks SET digest = x'ff'",
    "a time of bytes": "UPDATE events SET time = x'00ff'",
    "a time in words": "UPDATE events SET time = 'yesterday'",
    "a row less": "DELETE FROM events WHERE seq = 2",
    "a row moved": "UPDATE events SET seq = 9223372036854775807 WHERE seq = 2",
    "an id that is no text": f"UPDATE events SET subject_id = CAST(x'ff' AS TEXT) {VERDICTS}",
    "no table": "DROP TABLE blocks",
    "another format": "PRAGMA user_version = 99",
}


@pytest.fixture(scope="module")
def ledger(tmp_path_factory):
    """A ledger of three verdicts."""
    folder = tmp_path_factory.mktemp("ledger")
    rows = "".join(f'{{"id": "row-{number}", "output": "a"}}\n' for number in range(3))
    (folder / "rows.jsonl").write_text(rows)
    path = folder / "ledger.db"
    run(
        {
            "source": {"rows/jsonl": {"path": str(folder / "rows.jsonl")}},
            "metrics": ["proxy/format"],
            "ledger": {"ledger/sqlite": {"path": str(path)}},
        }
    )
    return path


@pytest.mark.parametrize("edit", EDITS)
def test_an_edited_ledger_is_found_and_breaks_nobody_who_reads_it(attack, ledger, edit):
    shutil.copy(ledger, attack.folder / "ledger.db")
    edits.edit(attack.folder / "ledger.db", EDITS[edit])
    found = attack.dicast("ledger", "verify", "--ledger", "ledger.db")
    assert found.code in (1, 2), found
    for command in READS:
        ended = attack.dicast(*command, "--ledger", "ledger.db")
        assert ended.code in (0, 2, 4), (command, ended)
        assert "defect" not in ended.errors


def test_an_untouched_copy_holds(attack, ledger):
    """So that the others are refused for their edits."""
    shutil.copy(ledger, attack.folder / "ledger.db")
    assert attack.dicast("ledger", "verify", "--ledger", "ledger.db").code == 0
    for command in READS:
        assert attack.dicast(*command, "--ledger", "ledger.db").code == 0


@pytest.mark.parametrize("edit", ["an end without a word", "an end of other words", "a start without a word"])
def test_a_run_whose_start_or_end_was_edited_is_no_baseline(attack, ledger, edit):
    shutil.copy(ledger, attack.folder / "ledger.db")
    edits.edit(attack.folder / "ledger.db", EDITS[edit])
    attack.write("rows.jsonl", '{"id": "row-1", "output": "a"}\n')
    ended = attack.dicast("run", attack.rows(more="baseline: {run: last, compare: [stats/paired]}\n"))
    assert ended.code in (2, 4)
    assert "was changed: run dicast ledger verify" in ended.errors


@pytest.mark.parametrize("edit", ["an end without a word", "no JSON", "a score of text", "a digest of bytes"])
def test_who_reads_an_edited_row_is_sent_to_verify(attack, ledger, edit):
    shutil.copy(ledger, attack.folder / "ledger.db")
    edits.edit(attack.folder / "ledger.db", EDITS[edit])
    said = "".join(attack.dicast(*command, "--ledger", "ledger.db").errors for command in READS)
    assert "run dicast ledger verify" in said
