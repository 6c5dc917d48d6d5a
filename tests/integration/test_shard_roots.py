"""The root of a run in shards, and proofs of its verdicts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dicast.toolkit.shard_tree import shards_root

from .test_shards import MIXED

FLEET = Path(__file__).with_name("fleet.py")
TEXT = "metrics: [fake/act: {}]\n"


@pytest.fixture(autouse=True)
def fleet(install):
    install("dicast-fleet", "1.0", {"dicast": {"fleet": "dicast_fleet"}}, dicast_fleet=FLEET.read_text())


def proven(shop, eval_id, ledger):
    """Return the text of ``ledger prove``, and the document of ``ledger check-proof``."""
    (shop / "proof.json").unlink(missing_ok=True)
    made = shop.dicast("ledger", "prove", eval_id, "--out", "proof.json", "--ledger", ledger)
    assert made.code == 0, made.err
    return made.out, shop.dicast("ledger", "check-proof", "proof.json", "--json").json


def roots(shop, ledger):
    """Return the payloads of ``shard.rooted``."""
    lines = shop.dicast("ledger", "export", "--ledger", ledger).out.splitlines()
    return [event["payload"] for event in map(json.loads, lines) if event["type"] == "shard.rooted"]


def verdicts(shop, ledger):
    return shop.dicast("verdicts", "--ledger", ledger, "--json").json["verdicts"]


@pytest.mark.slow
def test_a_merged_run_has_the_root_of_its_shards_and_proofs_through_them(shop):
    shop.rows(*MIXED)
    for number in (1, 2, 3):
        shop.run(TEXT, "--shard", f"{number}/3", "--ledger", f"s{number}.db")
    done = shop.dicast("merge", "s1.db", "s2.db", "s3.db", "--ledger", "m.db", "--json").json
    (rooted,) = roots(shop, "m.db")
    root = rooted["root"]
    assert root == shards_root(rooted["shards"]) == done["ledger"]["root"]
    assert [shard["number"] for shard in rooted["shards"]] == [1, 2, 3]
    assert sum(shard["count"] for shard in rooted["shards"]) == done["subjects"]
    for shard in rooted["shards"]:
        checked = shop.dicast(
            "ledger", "verify", "--ledger", shard["place"], "--head", shard["head"]["digest"], "--json"
        )
        assert checked.json["head"] == shard["head"]
    assert shop.dicast("show", done["run_id"], "--ledger", "m.db", "--json").json["ledger"]["root"] == root
    assert f"shards: root {root}" in shop.dicast("show", done["run_id"], "--ledger", "m.db", "--full").out
    checked = shop.dicast("ledger", "verify", "--ledger", "m.db", "--head", root, "--json").json
    assert checked["roots"] == [{"run_id": done["run_id"], "root": root, "shards": 3}]
    assert f"3 shards, root {root}" in shop.dicast("ledger", "verify", "--ledger", "m.db").out
    assert shop.dicast("ledger", "verify", "--ledger", "m.db", "--head", "0" * 64).code == 1

    numbers = set()
    for verdict in verdicts(shop, "m.db"):
        text, checked = proven(shop, verdict["eval_id"], "m.db")
        assert (checked["ok"], checked["shard"]["root"]) == (True, root)
        assert text.rstrip().endswith(f"the root {root}")
        assert checked["events"][-1]["payload"]["eval_id"] == verdict["eval_id"]
        numbers.add(checked["shard"]["number"])
    assert numbers == {1, 2, 3}

    checked = shop.dicast("ledger", "verify", "--shards", "--jobs", "2", "--ledger", "m.db")
    assert (checked.code, checked.out.count(": ok\n")) == (0, 3), checked.err
    (shop / "s2.db").unlink()
    checked = shop.dicast("ledger", "verify", "--shards", "--ledger", "m.db", "--json")
    assert [finding["number"] for finding in checked.json["shards"] if finding["reason"]] == [2]
    assert (checked.code, "no ledger" in checked.json["shards"][1]["reason"]) == (1, True)
    notes = [proven(shop, verdict["eval_id"], "m.db") for verdict in verdicts(shop, "m.db")]
    assert all(checked["ok"] for _, checked in notes)
    left = [text for text, checked in notes if checked["shard"] is None]
    assert left
    assert all("shard 2 is not at the recorded place" in text for text in left)


@pytest.mark.slow
def test_a_changed_shard_proves_nothing(shop):
    shop.rows(*MIXED)
    for number in (1, 2):
        shop.run(TEXT, "--shard", f"{number}/2", "--ledger", f"s{number}.db")
    shop.dicast("merge", "s1.db", "s2.db", "--ledger", "m.db")
    (eval_id, *_) = (verdict["eval_id"] for verdict in verdicts(shop, "s1.db"))
    (shop / "s1.db").unlink()
    shop.run(TEXT, "--shard", "1/2", "--ledger", "s1.db")
    text, checked = proven(shop, eval_id, "m.db")
    assert (checked["ok"], checked["shard"]) == (True, None)
    assert "no shard has the verdict" in text


@pytest.mark.slow
@pytest.mark.parametrize("place", ["parts", "shared"])
def test_a_split_run_has_the_root_of_its_segments(shop, place):
    """Segments in one ledger share its chain: the proof ends at the last event of the shard."""
    shop.rows(*MIXED)
    shared = json.dumps({"segments/ledger": {"path": str(shop / "parts")}})
    segments = "parts" if place == "parts" else json.dumps(shared)
    text = TEXT + f"executor: {{fleet/shards: {{shard: 4, segments: {segments}}}}}\n"
    done = shop.run(text, "--ledger", "m.db").json
    root = done["ledger"]["root"]
    (rooted,) = roots(shop, "m.db")
    assert root == rooted["root"] == shards_root(rooted["shards"])
    assert len(rooted["shards"]) > 1
    for verdict in verdicts(shop, "m.db")[:3]:
        _, checked = proven(shop, verdict["eval_id"], "m.db")
        assert (checked["ok"], checked["shard"]["root"]) == (True, root)


@pytest.mark.slow
def test_a_run_without_its_segments_is_proven_by_its_own_chain(shop):
    """The default folder of segments is removed when the run has ended."""
    shop.rows(*MIXED)
    done = shop.run(TEXT + "executor: {fleet/shards: {shard: 6}}\n", "--ledger", "m.db").json
    text, checked = proven(shop, verdicts(shop, "m.db")[0]["eval_id"], "m.db")
    assert (checked["ok"], checked["shard"], checked["head"]) == (True, None, done["ledger"]["head"])
    assert "2 shards are not at the recorded place" in text
