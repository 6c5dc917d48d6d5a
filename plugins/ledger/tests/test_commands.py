"""The commands ``dicast ledger convert``, ``prove`` and ``check-proof``."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

DICAST = [sys.executable, "-m", "dicast"]


def run(*arguments):
    return subprocess.run([*DICAST, *map(str, arguments)], capture_output=True, text=True, check=False)


@pytest.fixture
def converted(old_ledger, tmp_path):
    """Return the path of the converted ledger, and the document of the command."""
    path = tmp_path / "new.db"
    done = run("ledger", "convert", old_ledger.path, path, "--json")
    assert done.returncode == 0, done.stderr
    return path, json.loads(done.stdout)


def test_a_ledger_is_converted_and_a_verdict_of_it_proven(old_ledger, converted, tmp_path):
    path, document = converted
    assert document["events"] == old_ledger.head.seq
    assert document["old_head"] == {"seq": old_ledger.head.seq, "digest": old_ledger.head.digest}
    verified = json.loads(
        run("ledger", "verify", "--ledger", path, "--head", document["head"]["digest"], "--json").stdout
    )
    assert verified["ok"]
    verdict = next(event for event in old_ledger.events if event["type"] == "eval.completed")
    proof = tmp_path / "proof.json"
    done = run("ledger", "prove", verdict["payload"]["eval_id"], "--out", proof, "--ledger", path)
    assert done.returncode == 0, done.stderr
    checked = json.loads(run("ledger", "check-proof", proof, "--json").stdout)
    assert (checked["ok"], checked["head"]) == (True, document["head"])
    assert verdict["payload"] in [event["payload"] for event in checked["events"]]
    again = run("ledger", "prove", verdict["payload"]["eval_id"], "--out", proof, "--ledger", path)
    assert again.returncode == 2
    assert "exists: name a new file" in again.stderr
    proof.write_text(proof.read_text().replace("completed", "COMPLETED"))
    changed = run("ledger", "check-proof", proof)
    assert changed.returncode == 1
    assert "does not hold" in changed.stdout


def test_an_older_ledger_has_no_proofs(old_ledger, tmp_path):
    done = run("ledger", "prove", "V1", "--out", tmp_path / "proof.json", "--ledger", old_ledger.path)
    assert done.returncode == 2
    assert "dicast ledger convert OLD NEW" in done.stderr


def test_the_help_lists_the_commands_of_the_plugin():
    text = run("ledger", "--help").stdout
    assert [name for name in ("check-proof", "convert", "export", "prove", "verify") if f"  {name} " in text] == [
        *("check-proof", "convert", "export", "prove", "verify")
    ]
    assert "ledger.convert" not in run("--help").stdout


def test_the_text_of_a_subject_is_erased(old_ledger, converted):
    path, _ = converted
    reading = next(event for event in old_ledger.events if event["type"] == "subject.read")
    done = run("ledger", "erase", reading["subject_id"], "--reason", "asked", "--ledger", path, "--json")
    assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)["digests"]) >= 1
    events = [json.loads(line) for line in run("ledger", "export", "--ledger", path).stdout.splitlines()]
    assert events[reading["seq"] - 1]["payload"] == {**reading["payload"], "content": None}
    assert (events[-1]["type"], events[-1]["payload"]["reason"], events[-1]["run_id"]) == (
        "content.erased",
        "asked",
        "",
    )
    assert json.loads(run("ledger", "verify", "--ledger", path, "--json").stdout)["ok"]


@pytest.mark.parametrize("arguments", [["--reason", "x"], ["s", "--before", "2026-01-01", "--reason", "x"]])
def test_an_erasure_names_a_subject_or_a_time(converted, arguments):
    done = run("ledger", "erase", *arguments, "--ledger", converted[0])
    assert done.returncode == 2
    assert "name one subject, or give --before TIME" in done.stderr
