"""``dicast verdicts`` with its filters, ``ledger verify`` and ``ledger export``."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import time
import zlib
from contextlib import closing

import pytest

TEXT = "metrics: [fake/act]\njudges: [fake/opinion: {as: second}]\n"


@pytest.fixture
def twice(shop):
    """Two runs over the same subjects with other outputs, some time apart; their ids, and a time between them."""
    shop.rows(0.1, 0.2, "raise")
    first = shop.run(TEXT).json["run_id"]
    time.sleep(0.01)
    between = shop.dicast("ledger", "export").out.splitlines()[-1]
    time.sleep(0.01)
    shop.rows(0.3, 0.4, 0.5)
    second = shop.run(TEXT).json["run_id"]
    return first, second, json.loads(between)["time"]


def listed(shop, *arguments):
    done = shop.dicast("verdicts", "--json", *arguments)
    assert done.code == 0
    return [(verdict["subject_id"], verdict["judge"], verdict["score"]) for verdict in done.json["verdicts"]]


def test_without_filters_all_runs_are_listed_oldest_first(shop, twice):
    assert [score for _, judge, score in listed(shop) if judge == "second"] == [0.1, 0.2, 0.3, 0.4, 0.5]
    assert len(listed(shop)) == 10


def test_what_finds_nothing_says_so_beside_standard_output(shop):
    shop.rows(1)
    shop.run(TEXT)
    none = shop.dicast("verdicts", "--subject", "nobody")
    assert (none.code, none.out) == (0, "")
    assert none.err == "no verdicts found; failed subjects have none (see --failed)\n"
    failures = shop.dicast("verdicts", "--failed")
    assert (failures.code, failures.out, failures.err) == (0, "", "no failures found\n")
    assert shop.dicast("verdicts").err == ""
    document = shop.dicast("verdicts", "--subject", "nobody", "--json")
    assert (document.code, document.json, document.err) == (0, {"verdicts": []}, "")


def test_each_filter_keeps_what_it_says(shop, twice):
    first, second, between = twice
    assert {score for *_, score in listed(shop, "--run", first)} == {0.1, 0.2}
    assert {score for *_, score in listed(shop, "--run", "last")} == {0.3, 0.4, 0.5}
    assert listed(shop, "--run", second) == listed(shop, "--run", "last")
    assert shop.dicast("verdicts", "--run", "01NONE").code == 2
    assert {id for id, *_ in listed(shop, "--subject", "r1")} == {"r1"}
    assert {judge for _, judge, _ in listed(shop, "--judge", "second")} == {"second"}
    assert len(listed(shop, "--kind", "row")) == 10
    assert listed(shop, "--kind", "turn") == []
    assert listed(shop, "--limit", "3") == listed(shop)[:3]
    assert listed(shop, "--limit", "0") == []
    assert listed(shop, "--as-of", between) == listed(shop, "--run", first)
    assert listed(shop, "--as-of", "2001-01-01") == []
    assert len(listed(shop, "--as-of", "2999-12-31T23:59:59+02:00")) == 10


@pytest.mark.parametrize("failed", [[], ["--failed"]])
@pytest.mark.parametrize(
    ("option", "name", "near"),
    [("--judge", "metric", "metrics"), ("--judge", "secnd", "second"), ("--kind", "rows", "row")],
)
def test_a_name_that_nothing_in_the_ledger_has_is_refused_and_the_nearest_named(
    shop, twice, option, name, near, failed
):
    done = shop.dicast("verdicts", option, name, *failed, "--json")
    (error,) = done.json["error"]["errors"]
    assert (done.code, error["value"], error["hint"]) == (2, name, near)
    assert f"did you mean {near!r}?" in shop.dicast("verdicts", option, name, *failed).err


def test_filters_that_keep_nothing_of_what_there_is_find_nothing(shop, twice):
    assert listed(shop, "--judge", "second", "--kind", "turn") == []
    assert listed(shop, "--judge", "second", "--as-of", "2001-01-01") == []
    assert listed(shop, "--judge", "second", "--subject", "nobody") == []
    assert listed(shop, "--judge", "second", "--limit", "0") == []
    assert shop.dicast("verdicts", "--failed", "--judge", "record", "--json").json == {"failures": []}


def test_latest_keeps_the_newest_of_each_subject_and_judge(shop, twice):
    _, _, between = twice
    assert sorted(listed(shop, "--latest")) == sorted(listed(shop, "--run", "last"))
    assert sorted(listed(shop, "--latest", "--as-of", between)) == sorted(listed(shop, "--as-of", between))
    assert listed(shop, "--latest", "--subject", "r0", "--judge", "second") == [("r0", "second", 0.3)]


def test_filters_hold_for_failures_too(shop, twice):
    first, _, _ = twice
    failures = shop.dicast("verdicts", "--failed", "--run", first, "--judge", "metrics", "--json").json["failures"]
    assert [(failure["subject_id"], failure["failure_mode"]) for failure in failures] == [("r2", "crashed")]
    assert shop.dicast("verdicts", "--failed", "--run", "last", "--json").json == {"failures": []}


def test_verdicts_for_readers_begin_a_line_each_and_fit_80_columns(shop, twice):
    text = shop.dicast("verdicts").out.splitlines()
    assert max(map(len, text)) <= 80
    lines = [line for line in text if not line.startswith(" ")]
    assert len(lines) == 10
    assert "r0" in lines[0]
    assert "0.1000" in lines[0]
    failed = [line for line in shop.dicast("verdicts", "--failed").out.splitlines() if not line.startswith(" ")]
    assert len(failed) == 2
    assert "crashed" in failed[0]


def test_the_ledger_option_and_the_variable_name_the_file(shop, monkeypatch):
    shop.rows(1)
    monkeypatch.setenv("DICAST_LEDGER", str(shop / "by" / "variable.db"))
    assert shop.run(TEXT).json["ledger"]["path"] == str(shop / "by" / "variable.db")
    assert not (shop / ".dicast").exists()
    assert len(listed(shop)) == 2
    monkeypatch.delenv("DICAST_LEDGER")
    assert len(listed(shop, "--ledger", "by/variable.db")) == 2
    assert shop.dicast("verdicts", "--json").code == 2
    assert not (shop / ".dicast").exists()


# The chain


def test_verify_says_how_far_the_ledger_goes(shop, twice):
    done = shop.dicast("ledger", "verify", "--json")
    events = shop.events()
    head = {"seq": events[-1]["seq"], "digest": events[-1]["digest"]}
    assert done.json == {
        "ok": True,
        "events": len(events),
        "head": head,
        "absent_contents": 0,
        "roots": [],
        "first_bad": None,
    }
    text = shop.dicast("ledger", "verify")
    assert text.code == 0
    assert head["digest"] in text.out


def test_verify_agrees_with_a_chain_computed_here(shop, twice):
    """The digest as docs/concepts/ledger-format.md gives it, recomputed from the SQLite file by code that shares nothing."""
    digest = bytes(32)
    with closing(sqlite3.connect(shop / ".dicast" / "ledger.db")) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (5,)
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        blocks = connection.execute("SELECT prev, digest, size, body FROM blocks ORDER BY first").fetchall()
    for prev, newest, size, body in blocks:
        assert prev == digest
        raw = zlib.decompress(body) if size != len(body) else body
        for line in raw[2:-2].split(b",\n"):
            digest = hashlib.sha256(digest + hashlib.sha256(line).digest()).digest()
        assert newest == digest
    assert shop.dicast("ledger", "verify", "--json").json["head"]["digest"] == digest.hex()


def blocks_of(shop, statement, *values):
    """Return the rows of *statement*, or change the ledger by it."""
    with closing(sqlite3.connect(shop / ".dicast" / "ledger.db")) as connection:
        rows = connection.execute(statement, values).fetchall()
        connection.commit()
    return rows


@pytest.mark.parametrize(
    "change",
    [
        lambda lines: [line.replace(b'"r', b'"R', 1) for line in lines],
        lambda lines: lines[1:],
        lambda lines: lines[::-1],
        lambda lines: [*lines, lines[-1]],
    ],
    ids=["changed", "removed", "moved", "repeated"],
)
def test_verify_of_a_broken_chain_is_1_and_names_the_row(shop, twice, change):
    query = "SELECT first, size, body FROM blocks WHERE instr(types, 'eval.completed') ORDER BY lines DESC LIMIT 1"
    ((first, size, body),) = blocks_of(shop, query)
    raw = zlib.decompress(body) if size != len(body) else body
    changed = b"[\n" + b",\n".join(change(raw[2:-2].split(b",\n"))) + b"\n]"
    blocks_of(shop, "UPDATE blocks SET size = ?, body = ? WHERE first = ?", len(changed), changed, first)
    done = shop.dicast("ledger", "verify", "--json")
    assert (done.code, done.json["ok"]) == (1, False)
    assert done.json["first_bad"]["seq"] >= first
    assert f"block from event {first}" in done.json["first_bad"]["reason"]
    text = shop.dicast("ledger", "verify")
    assert text.code == 1
    assert str(done.json["first_bad"]["seq"]) in text.out + text.err


def test_a_cut_tail_is_found_by_its_head_alone(shop, twice):
    head = shop.dicast("ledger", "verify", "--json").json["head"]["digest"]
    blocks_of(shop, "DELETE FROM blocks WHERE first = (SELECT max(first) FROM blocks)")
    careless = shop.dicast("ledger", "verify", "--json")
    assert careless.code == 1  # the table runs has the older end
    assert "the table runs has" in careless.json["first_bad"]["reason"]
    blocks_of(shop, "UPDATE runs SET last_seq = min(last_seq, (SELECT max(last) FROM blocks))")
    careless = shop.dicast("ledger", "verify", "--json")
    assert "where no block ends" in careless.json["first_bad"]["reason"]  # so has the table counted
    blocks_of(shop, "UPDATE counted SET seq = (SELECT max(last) FROM blocks)")
    assert shop.dicast("ledger", "verify", "--json").code == 0
    done = shop.dicast("ledger", "verify", "--head", head, "--json")
    assert done.code == 1
    assert head in done.json["first_bad"]["reason"]


def test_an_older_head_is_still_in_the_chain(shop):
    shop.rows(0.1)
    older = shop.run(TEXT).json["ledger"]["head"]["digest"]
    shop.run(TEXT)
    assert shop.dicast("ledger", "verify", "--head", older).code == 0
    assert shop.dicast("ledger", "verify", "--head", older.upper()).code == 0


@pytest.mark.parametrize("head", ["abc", "", "0" * 63, "0" * 65, "g" * 64])
def test_a_head_that_is_no_digest_is_refused(shop, twice, head):
    done = shop.dicast("ledger", "verify", "--head", head, "--json")
    assert done.code == 2
    assert (
        f"--head must be a digest of 64 hexadecimal digits, as in ledger.head of each run, not {head!r}"
        in done.json["error"]["message"]
    )


@pytest.mark.parametrize("value", ["x'ff00'", "CAST(x'ff' AS TEXT)", "NULL"])
def test_a_digest_that_is_no_digest_is_a_finding(shop, twice, value):
    ((first,),) = blocks_of(shop, "SELECT max(first) FROM blocks")
    blocks_of(shop, f"UPDATE blocks SET digest = {value} WHERE first = {first}")
    done = shop.dicast("ledger", "verify", "--json")
    assert (done.code, done.json["first_bad"]["seq"]) == (1, first)
    assert shop.dicast("ledger", "verify").code == 1


def test_verify_misses_nothing_that_verdicts_are_found_by(shop, twice):
    blocks_of(shop, "DELETE FROM runs")
    done = shop.dicast("ledger", "verify", "--json")
    assert (done.code, done.json["first_bad"]["seq"]) == (1, 1)
    assert "the table runs has" in done.json["first_bad"]["reason"]


def test_export_gives_every_row_with_its_place_in_the_chain(shop, twice):
    first, _, _ = twice
    rows = shop.events()
    assert [row["seq"] for row in rows] == list(range(1, len(rows) + 1))
    assert [row["digest"] for row in rows[:-1]] == [None] * (len(rows) - 1)
    assert rows[-1]["digest"] == shop.dicast("ledger", "verify", "--json").json["head"]["digest"]
    assert {
        row["run_id"] for row in map(json.loads, shop.dicast("ledger", "export", "--run", first).out.splitlines())
    } == {first}
    assert shop.dicast("ledger", "export", "--json").json == {"events": rows}


def test_what_was_judged_is_stored_once_however_often_it_is_read(shop):
    shop.rows(*["a long text that is told once" for _ in range(5)])
    for _ in range(2):
        shop.run("metrics: [proxy/format]\n")
    texts = b"".join(body for (body,) in blocks_of(shop, "SELECT body FROM texts"))
    lines = b"".join(body for (body,) in blocks_of(shop, "SELECT body FROM blocks"))
    assert (texts.count(b"a long text"), lines.count(b"a long text")) == (1, 0)
    assert len({event["payload"]["digest"] for event in shop.events("subject.read")}) == 1
    assert all(
        event["payload"]["content"]["output"] == "a long text that is told once"
        for event in shop.events("subject.read")
    )


def test_a_ledger_of_digests_holds_no_text(shop):
    shop.rows("the secret text")
    shop.run("metrics: [proxy/format]\nledger: {ledger/sqlite: {path: l.db, content: digest}}\n")
    assert b"the secret text" not in (shop / "l.db").read_bytes()
    output = shop.dicast("show", "r0", "--ledger", "l.db", "--json")
    assert output.code == 0
    assert len(output.json["verdicts"]) == 1


def test_a_ledger_of_digests_holds_no_text_that_a_verdict_or_a_failure_quotes(shop):
    shop.write("data.jsonl", [{"id": "a", "output": "the secret text", "reference": "another"}])
    text = "metrics: [diff/match]\njudges: [fake/opinion]\nledger: {ledger/sqlite: {path: l.db, content: CONTENT}}\n"
    shop.run(text.replace("CONTENT", "store"))
    assert (shop / "l.db").read_bytes().count(b"secret") > 2
    (shop / "l.db").unlink()
    done = shop.run(text.replace("CONTENT", "digest"))
    assert "the secret text" in done.json["failed_subjects"][0]["error_message"]
    assert b"secret" not in b"".join(path.read_bytes() for path in shop.folder.glob("l.db*"))
    verdicts = shop.dicast("verdicts", "--ledger", "l.db", "--json").json["verdicts"]
    assert [verdict["score"] for verdict in verdicts] == [0.0]
    failed = shop.dicast("verdicts", "--failed", "--ledger", "l.db", "--json").json["failures"]
    assert [failure["failure_mode"] for failure in failed] == ["crashed"]
    assert shop.dicast("show", "last", "--ledger", "l.db").code == 0


def test_the_ledger_is_its_owners_alone(shop):
    shop.rows(1)
    shop.run(TEXT)
    assert (shop / ".dicast" / "ledger.db").stat().st_mode & 0o077 == 0
