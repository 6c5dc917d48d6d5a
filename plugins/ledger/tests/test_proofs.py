"""Proofs of single verdicts, checked without the ledger."""

from __future__ import annotations

import orjson
import pytest

from dicast import LedgerError
from dicast.toolkit.ledger_lines.proofs import ProofError, check_proof, proof_in_shard
from dicast.toolkit.shard_tree import shards_root


@pytest.fixture
def proof(tmp_path, opened, make_subject, make_event):
    """Return the proof of the verdict of subject 130, and the head of the ledger."""
    with opened(tmp_path / "ledger.db") as ledger:
        ledger.append([event for number in range(200) for event in make_subject(number)])
        head = ledger.append([make_event("run.completed", {})])
        return orjson.loads(orjson.dumps(ledger.prove("V130"))), head


def test_a_proof_has_the_verdict_and_the_head(proof):
    document, head = proof
    proven = check_proof(document)
    assert [event.type for event in proven.events] == ["subject.read", "eval.started", "eval.completed"]
    assert proven.events[0].payload["content"]["output"] == "Answer 130"
    assert proven.events[2].payload["score"] == 0.013
    assert proven.head == {"seq": head.seq, "digest": head.digest}


def test_a_failure_is_proven_from_its_event(tmp_path, opened, make_event):
    with opened(tmp_path / "ledger.db") as ledger:
        ledger.append([make_event("eval.failed", {"eval_id": "V1", "failure_mode": "timeout"})])
        document = ledger.prove("V1")
    assert document["leaves"] == []
    assert check_proof(document).events[0].payload["failure_mode"] == "timeout"


@pytest.mark.parametrize(
    ("key", "change"),
    [
        ("line", lambda text: text.replace("0.013", "0.99")),
        ("maker", lambda text: text.replace("metrics", "metricz")),
        ("maker", lambda text: None),
        ("content", lambda text: text.replace("130", "131")),
        ("prev", lambda text: "0" * 64),
        ("leaves", lambda leaves: leaves[1:]),
        ("head", lambda head: {**head, "digest": "0" * 64}),
        ("line", lambda text: 7),
        ("leaves", lambda leaves: ["x"]),
    ],
)
def test_a_changed_proof_does_not_hold(proof, key, change):
    """Also without the checksum, which proofs of older versions lack."""
    document, _ = proof
    changed = {**document, key: change(document[key])}
    with pytest.raises(ProofError, match="checksum"):
        check_proof(changed)
    del changed["checksum"]
    with pytest.raises(ProofError):
        check_proof(changed)


def test_a_proof_of_an_older_version_holds(proof):
    document, head = proof
    del document["checksum"]
    assert check_proof(document).head == {"seq": head.seq, "digest": head.digest}


def test_a_proof_of_a_shard_leads_to_the_root(proof):
    document, head = proof
    shards = [
        {"number": number, "run_id": run_id, "count": 200, "head": document["head"]}
        for number, run_id in enumerate(("other", check_proof(document).events[0].run_id, "third"), 1)
    ]
    in_shard = proof_in_shard(document, shards, 1)
    proven = check_proof(in_shard)
    assert (proven.shard["root"], proven.head["seq"]) == (shards_root(shards), head.seq)
    changed = {**in_shard, "shard": {**in_shard["shard"], "count": 199}}
    with pytest.raises(ProofError, match="checksum"):
        check_proof(changed)
    forged = proof_in_shard({**document, "head": {**document["head"], "seq": 1}}, shards, 1)
    with pytest.raises(ProofError, match="have the root"):
        check_proof(forged)
    with pytest.raises(ProofError, match="is not of run other"):
        check_proof(proof_in_shard(document, shards, 0))


@pytest.mark.parametrize("document", [None, [], {}, {"line": ""}, "text"])
def test_another_document_is_no_proof(document):
    with pytest.raises(ProofError, match="dicast ledger prove"):
        check_proof(document)


def test_an_unknown_verdict_has_no_proof(tmp_path, opened, make_subject):
    with opened(tmp_path / "ledger.db") as ledger:
        ledger.append(make_subject(1))
        with pytest.raises(LedgerError, match="no verdict has the id 'V2'"):
            ledger.prove("V2")


def test_a_proof_has_the_texts_of_the_verdict_and_of_its_trace(tmp_path, opened, make_subject, make_event):
    read, started, completed = make_subject(1, scores=[{"details": "because"}])
    called = make_event("tool.called", {"input": {"a": "text"}}, sensitivity="user_controlled")
    with opened(tmp_path / "ledger.db") as ledger:
        ledger.append([read, called, started, completed])
        ledger.append([completed])
        document = ledger.prove("V1")
    assert [event.payload for event in check_proof(document).events] == [completed.payload]
    changed = {**document, "texts": [document["texts"][0].replace("because", "why")]}
    del changed["checksum"]
    with pytest.raises(ProofError, match="does not have the digest"):
        check_proof(changed)
