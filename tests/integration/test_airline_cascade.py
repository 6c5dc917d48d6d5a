"""The cascade over 100 recorded conversations: the turn heuristic, then a model, as every reader of the run tells it."""

from __future__ import annotations

import csv
import gzip
import json
import os
import re
import threading
from collections import Counter, defaultdict
from contextlib import closing
from decimal import Decimal
from hashlib import sha256
from itertools import islice
from pathlib import Path

import pytest

from dicast_ledger import connect

from .conftest import finish

ROOT = Path(__file__).parents[2]
CONVERSATIONS, TURNS, UNSURE = 45, 345, 44
UNSURE_FOR_THE_REAL_MODEL = 2
pytestmark = pytest.mark.outside_data

FILE = """\
define:
  grader: {{openai/chat: {{base_url: "${{JUDGE_URL}}", model: {model}, price: {{input_per_mtok: 1, output_per_mtok: 2}}, {chat}}}}}
source: {{traces/messages: {{path: {path}, id: "{{{{ task_id }}}}-{{{{ trial }}}}", tool_error: "^Error"}}}}
judges:
  - hybrid/cascade:
      as: turn
      stages: [heuristic/turn, {{llm/judge: {{model: grader, {judge}}}}}]
      escalation_threshold: {threshold}
sinks: [csv/rows: {{path: rows.csv}}]
budget: {{session: 10 usd, day: 10 usd, run: {cap} usd}}
executor: {{dicast/async: {{concurrency: {concurrency}}}}}
"""
FENCED = re.compile(r"^<<<data ([0-9a-f]{16})\n(.*?)\ndata \1>>>", re.MULTILINE | re.DOTALL)
CALL = Decimal("0.00014")  # 100 tokens in, 20 out


@pytest.fixture
def airline(tmp_path):
    """Return a file with the first conversations."""
    path = Path(os.environ.get("DICAST_OUTSIDE_DATA", ROOT.parent / "shared" / "data"), "tau_bench_airline.jsonl.gz")
    if not path.exists():
        pytest.skip(f"{path.name} is not in {path.parent}; DICAST_OUTSIDE_DATA names the folder that has it")
    first = tmp_path / path.name
    with gzip.open(path) as file, gzip.open(first, "wb") as copy:
        copy.writelines(islice(file, CONVERSATIONS))
    return first


@pytest.fixture
def run(shop, airline, monkeypatch):
    """``run(url, …)``: judge the conversations with the model at *url*, in a process of its own."""

    def judge(url, *arguments, **options):
        monkeypatch.setenv("JUDGE_URL", url)
        given = {"model": "m-1", "chat": "", "judge": "", "threshold": 0.7, "cap": 10, "concurrency": 32} | options
        started = shop.start("run", shop.pipeline(FILE.format(path=airline, **given)).name, "--json", *arguments)
        return finish(started)

    return judge


class Mixed:
    """A server whose answers depend on the subject: verdicts, useless replies at first or always, faults. It counts them."""

    def __init__(self, server):
        self._server, self._lock = server, threading.Lock()
        self._asked, self.given = Counter(), Counter()

    def __call__(self, asked):
        about = sha256("\0".join(text for _, text in FENCED.findall(asked.prompt)).encode()).hexdigest()
        with self._lock:
            self._asked[about] += 1
            kind = self.kind(int(about, 16) % 20, self._asked[about])
            self.given[kind] += 1
        if kind == "fault":
            return self._server.error(500, "out of memory")
        if kind == "verdict":
            return self._server.sealed(score=int(about, 16) % 11 / 10, confidence=0.8)
        return {"late": "Let me think about it.", "never": '{"score": 0.9, "confidence": 1}'}[kind]

    @staticmethod
    def kind(bucket, times):
        """Return the kind of answer to the *times*-th call in this *bucket*: 2 of 20 fail, 2 give no verdict, 3 give it late."""
        if bucket < 4:
            return "fault" if bucket < 2 else "never"
        return "late" if bucket < 7 and times == 1 else "verdict"


def told(shop):
    """The verdicts of the last run, by turn, as ``verdicts --json`` lists them."""
    listed = shop.dicast("verdicts", "--run", "last", "--json").json["verdicts"]
    by_turn = {verdict["subject_id"]: verdict for verdict in listed}
    assert len(by_turn) == len(listed)
    return by_turn


def assert_all_readers_agree(shop, done):
    """The document, ``verdicts``, the CSV, ``cost`` and the ledger's own rows tell the same of every turn."""
    document, verdicts = done.json, told(shop)
    with closing(connect(shop / ".dicast" / "ledger.db")) as ledger:
        rows = ledger.execute("SELECT type, subject_id, payload FROM events").fetchall()
    stored = defaultdict(list)
    for type_, subject, payload in rows:
        stored[type_].append((subject, json.loads(payload)))
    completed = dict(stored["eval.completed"])
    assert completed.keys() == verdicts.keys()
    with open(shop / "rows.csv", newline="") as file:
        lines = {row["subject_id"]: row for row in csv.DictReader(file)}
    assert lines.keys() == verdicts.keys()

    for turn, verdict in verdicts.items():
        payload, line = completed[turn], lines[turn]
        for field in ("eval_id", "score", "confidence", "judge_kind", "judge_model", "judge_cost_usd", "signals"):
            assert verdict[field] == payload[field], (turn, field)
        assert float(line["score"]) == float(line["judge_turn_score"]) == verdict["score"]
        assert float(line["judge_turn_confidence"]) == verdict["confidence"]
        assert line["judge_turn_kind"] == verdict["judge_kind"]
        assert Decimal(line["cost_usd"]) == Decimal(verdict["judge_cost_usd"])

    escalated = [verdict for verdict in verdicts.values() if verdict["signals"].get("escalated")]
    assert {verdict["judge_kind"] for verdict in escalated} <= {"hybrid"}
    judge = document["judges"]["turn"]
    assert (judge["scored"], judge["total"], judge["escalated"]) == (len(verdicts), len(verdicts), len(escalated))
    scores = [verdict["score"] for verdict in verdicts.values()]
    assert judge["mean"] == document["score"]["mean"] == pytest.approx(sum(scores) / len(scores))

    spent = sum(Decimal(verdict["judge_cost_usd"]) for verdict in verdicts.values())
    settled = [payload for _, payload in stored["spend.settled"]]
    assert sum(Decimal(payload["amount"]) for payload in settled) == spent == Decimal(document["cost"]["usd"])
    by = {
        group: shop.dicast("cost", "--include-eval", "--group-by", group, "--json").json for group in ("judge", "model")
    }
    assert Decimal(by["judge"]["total_usd"]) == Decimal(by["model"]["total_usd"]) == spent
    assert [(row["judge"], Decimal(row["usd"])) for row in by["judge"]["data"]] == [("turn", spent)]
    calls = Counter()
    for payload in settled:
        calls[payload["model"]] += payload["calls"]
    assert {row["model"]: row["calls"] for row in by["model"]["data"]} == calls
    opened = [payload["reservation_id"] for _, payload in stored["spend.reserved"]]
    closed = [
        payload["reservation_id"] for type_ in ("spend.settled", "spend.released") for _, payload in stored[type_]
    ]
    assert sorted(opened) == sorted(closed)
    assert document["overruns"] == 0
    assert shop.verified()
    return verdicts


def skipped(verdicts):
    """How many turns were left to the heuristic after all, by why."""
    return Counter(verdict["signals"].get("escalation_skipped") for verdict in verdicts.values())


@pytest.mark.slow
def test_every_turn_is_escalated_to_a_model_of_mixed_moods(run, shop, chat_server):
    moods = chat_server.answer = Mixed(chat_server)
    done = run(chat_server.url, threshold=1, chat="retries: 0")
    assert (done.code, done.json["scored"], done.json["failed"]) == (0, TURNS, 0)
    verdicts = assert_all_readers_agree(shop, done)
    given = moods.given
    assert chat_server.count == given.total()
    assert min(given[kind] for kind in ("verdict", "late", "never", "fault")) > 20
    assert given["never"] % 2 == 0  # each is asked twice
    assert skipped(verdicts) == {
        None: given["verdict"],
        "judge_output_invalid": given["never"] // 2,
        "judge_call_failed": given["fault"],
    }
    assert done.json["judges"]["turn"]["escalated"] == given["verdict"]
    assert Counter(verdict["signals"].get("attempts") for verdict in verdicts.values())[2] == given["late"]
    assert Decimal(done.json["cost"]["usd"]) == (given.total() - given["fault"]) * CALL


@pytest.mark.slow
def test_sure_turns_are_not_shown_to_the_model(run, shop, chat_server):
    chat_server.answer = chat_server.sealed(score=0.2, confidence=0.9)
    done = run(chat_server.url)
    assert (done.code, chat_server.count) == (0, UNSURE)
    verdicts = assert_all_readers_agree(shop, done)
    assert done.json["judges"]["turn"]["escalated"] == UNSURE
    assert Decimal(done.json["cost"]["usd"]) == UNSURE * CALL
    for verdict in verdicts.values():
        sure = verdict["judge_kind"] == "heuristic"
        assert verdict["signals"].get("heuristic_confidence", 1) < 0.7 if not sure else verdict["confidence"] >= 0.7


@pytest.mark.slow
@pytest.mark.parametrize("concurrency", [1, 32])
def test_cap_that_is_reached_leaves_the_rest_to_the_heuristic(run, shop, chat_server, concurrency):
    cap = Decimal("0.01")
    done = run(chat_server.url, cap=cap, concurrency=concurrency)
    assert (done.code, done.json["scored"], done.json["failed"]) == (0, TURNS, 0)
    verdicts = assert_all_readers_agree(shop, done)
    asked = chat_server.count
    assert 0 < asked < UNSURE
    assert done.json["judges"]["turn"]["escalated"] == asked
    assert done.json["throttled"] == {"run_cap": UNSURE - asked}
    assert skipped(verdicts) == {None: TURNS - UNSURE + asked, "budget_exhausted": UNSURE - asked}
    assert {verdict["signals"].get("throttled_reason") for verdict in verdicts.values()} == {None, "run_cap"}
    assert_never_above(cap, shop.events("spend.reserved", "spend.settled", "spend.released"))


def assert_never_above(cap, events):
    """Settled and reserved amounts together stay within *cap* all the time."""
    held, settled = {}, Decimal(0)
    for event in events:
        payload = event["payload"]
        if event["type"] == "spend.reserved":
            held[payload["reservation_id"]] = Decimal(payload["amount"])
        else:
            del held[payload["reservation_id"]]
            settled += Decimal(payload.get("amount", 0))
        assert settled + sum(held.values()) <= cap
    assert not held


@pytest.mark.slow
def test_real_model_judges_the_unsure_turns(run, shop, model_server):
    """A model of 270M parameters: two turns, as a call takes seconds; without a seal, which it is too small to copy."""
    options = "seal: false, retries: 0, max_chars: 200, max_evidence_chars: 1500, max_output_tokens: 80, system_prompt: Judge how well the answer serves."
    done = run(
        model_server.base_url,
        "--limit",
        "23",
        model=model_server.model,
        chat="timeout: 60, retries: 0",
        judge=options,
        concurrency=1,
    )
    assert (done.code, done.json["scored"]) == (0, 23)
    verdicts = assert_all_readers_agree(shop, done)
    unsure = [verdict for verdict in verdicts.values() if "heuristic_score" in verdict["signals"]]
    assert len(unsure) == UNSURE_FOR_THE_REAL_MODEL
    assert set(skipped(verdicts)) <= {None, "judge_output_invalid"}
    for verdict in unsure:
        escalated = verdict["signals"].get("escalated", False)
        assert verdict["judge_model"] == (model_server.model if escalated else None)
        assert Decimal(verdict["judge_cost_usd"]) > 0
    (row,) = shop.dicast("cost", "--include-eval", "--json").json["data"]
    assert (row["model"], row["calls"]) == (model_server.model, UNSURE_FOR_THE_REAL_MODEL)
    assert row["tokens"] > 100 * UNSURE_FOR_THE_REAL_MODEL
