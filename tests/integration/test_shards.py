"""Runs that are split into shards and merged again: the merged run equals the whole run."""

from __future__ import annotations

import importlib
import json
import re
import shlex
import shutil
import sqlite3
from collections import Counter
from contextlib import closing, contextmanager

import pytest

from .conftest import settled

GATED = "name: nightly\ngate: {on: metrics, min_score: 0.5, min_coverage: 0.1}\n"
TEXT = GATED + "metrics: [fake/act: {}]\nsinks: [csv/rows: {path: out.csv}]\naggregates: [stats/score_stats]\n"
MIXED = ["0.9", "0.1", "raise", "0.5", "0.5", "fail:judge_call_failed", "1", "0", "0.25", "0.7", "0.4"]


class Shards:
    """Commands that split the run of a pipeline text in parts, and merge the parts."""

    def __init__(self, shop):
        self._shop = shop

    def run(self, text, number, of, *arguments):
        """Run one shard in a ledger of its own."""
        return self._shop.run(text, "--shard", f"{number}/{of}", "--ledger", f"s{number}.db", *arguments)

    def run_all(self, text, of, *arguments):
        """Run each shard in a ledger of its own."""
        return [self.run(text, number, of, *arguments) for number in range(1, of + 1)]

    def merge(self, *numbers, ledger="m.db", arguments=()):
        """Merge the ledgers of these shards."""
        return self._shop.dicast("merge", *(f"s{n}.db" for n in numbers), "--ledger", ledger, "--json", *arguments)

    def messages(self, done):
        """Return the messages of a command that was refused."""
        assert done.code == 2
        return [error["message"] for error in done.json["error"]["errors"]]


@pytest.fixture
def shards(shop):
    return Shards(shop)


def conversations(count, turns=2):
    """Return conversations with *turns* turns each, with a tool call in each turn of every second conversation."""
    rows = []
    for number in range(count):
        messages = []
        for turn in range(turns):
            messages.append({"role": "user", "content": f"question {turn}"})
            if number % 2:
                call = {"id": f"c{turn}", "type": "function", "function": {"name": "find", "arguments": "{}"}}
                messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
                messages.append({"role": "tool", "tool_call_id": f"c{turn}", "content": "" if number % 3 else "found"})
            messages.append({"role": "assistant", "content": f"answer {number * turn}"})
        rows.append({"id": f"c{number}", "messages": messages})
    return rows


TRACES = """source: {traces/messages: {path: data.jsonl, subjects: [tool_cycle, turn, session], id: '{{ id }}'}}
judges: [heuristic/tool_cycle, heuristic/turn, heuristic/session]
gate: {on: heuristic/turn, min_score: 0.1}
"""
SAMPLE = """source: {traces/sample: {size: 4, source: {traces/messages: {path: data.jsonl, id: '{{ id }}'}}}}
judges: [heuristic/turn]
gate: {min_score: 0.1}
"""
LABELS = """metrics: [fake/act: {on_failure: zero}, fake/truth: {}]
judges: [fake/opinion: {}]
scoring: {rollouts: 2, audit: {rate: 0.5, seed: 3}}
gate: [{on: metrics, min_score: 0.5}, {on: fake/opinion, min_score: 0.1}]
"""
TASK = """task: {task/command: {command: [cat]}}
metrics: [proxy/length: {max: 8}]
aggregates: [stats/score_stats]
"""
COLUMNS = """source: {rows/jsonl: {path: data.jsonl, fields: {output: answer, id: name}}}
metrics: [proxy/format: {}]
aggregates: [own/columns]
"""
PASSES = """metrics: [fake/act: {pass_at: 0.6}, proxy/length: {max: 4, pass_at: 1.0}]
scoring: {pass_at: 0.7, rollouts: 2}
gate: [{on: metrics, min_pass_rate: 0.3}, {on: fake/act, min_pass_rate: 0.2, bound: interval}, {min_coverage: 0.5}]
"""
JUDGED = """metrics: [fake/truth: {value: 0.5}]
judges: [fake/paid_judge: {as: dear}, fake/opinion: {as: cheap, rationale: because}, fake/signalling]
budget: {run: 100 usd, day: 1000 usd}
gate: [{on: dear, min_score: 0.4}, {on: cheap, min_pass_rate: 0.2}]
aggregates: [stats/score_stats, stats/pass_rate: {criteria: [cheap]}, stats/distribution: {criteria: [dear]}]
"""
OWN = """
class Names:
    def __init__(self):
        self.names = []
    def add(self, record):
        self.names.append([record["row"]["id"], sorted(record["row"])])
    def finish(self):
        return {"names": self.names}

@attrs.frozen
class Columns:
    name = "columns"
    @contextlib.asynccontextmanager
    async def open(self, run):
        yield Names()

@hookimpl
def dicast_aggregates():
    return [Columns]
"""


CASES = [
    pytest.param(TEXT, MIXED, None, id="failures"),
    pytest.param(TEXT, MIXED, 3, id="sessions"),
    pytest.param(LABELS, ["0.9", "0.1", "0.6", "0.3", "1"], None, id="labels"),
    pytest.param("source: {rows/jsonl: {path: data.jsonl, shuffle: 3}}\n" + TEXT, MIXED, 3, id="shuffled"),
    pytest.param(TASK, ["a", "b", "c"], None, id="task"),
    pytest.param(TRACES, conversations(7), None, id="traces"),
    pytest.param(SAMPLE, conversations(9), None, id="weights"),
    pytest.param(PASSES, [*MIXED, "none", "wordy", "text", "odd"], 4, id="passes"),
    pytest.param(JUDGED, ["0.9", "0.1", "0.6", "0.3", "1", "0.2"], 2, id="judges"),
]
"""Texts of pipelines, their data, and the number of sessions. Every executor and ledger gives the same run."""


@pytest.mark.parametrize(("text", "data", "sessions"), CASES)
def test_the_merged_run_equals_the_whole_run(shop, shards, text, data, sessions):
    if isinstance(data[0], str):
        shop.rows(*data, sessions=sessions)
    else:
        shop.write("data.jsonl", data)
    parts = shards.run_all(text, 3)
    assert [part.json["gate"] for part in parts] == [None] * 3
    merged = shards.merge(1, 2, 3)
    table = (shop / "out.csv").read_bytes() if "csv" in text else b""
    if table:
        (shop / "out.csv").unlink()
    whole = shop.run(text, "--ledger", "w.db")
    assert (settled(merged.json), merged.code) == (settled(whole.json), whole.code)
    assert table == ((shop / "out.csv").read_bytes() if table else b"")
    assert sum(part.json["subjects"] for part in parts) == whole.json["subjects"]
    assert shop.dicast("ledger", "verify", "--ledger", "m.db", "--json").json["ok"]


@pytest.fixture
def break_merge(monkeypatch):
    """Let the next merge commit each subject alone, and break off before the commit with this number, or before its end."""
    from dicast._kernel.run.merge import MergeSteps

    def before(place):
        count = 0

        async def record(self, stream, *arguments):
            nonlocal count
            count += 1
            if count == place:
                raise RuntimeError("the lights went out")
            await record_subject(self, stream, *arguments)
            await stream.flush()

        async def end(self, *arguments):
            raise RuntimeError("the lights went out")

        record_subject = MergeSteps._record_subject
        with monkeypatch.context() as patch:
            patch.setattr(MergeSteps, "_record_subject", record)
            if place == "end":
                patch.setattr(MergeSteps, "_end", end)
            yield

    return contextmanager(before)


def count_events(shop, ledger):
    """Return the numbers of the events of each type about each subject."""
    rows = map(json.loads, shop.dicast("ledger", "export", "--ledger", ledger).out.splitlines())
    return Counter((row["type"], row["subject_kind"], row["subject_id"]) for row in rows)


@pytest.mark.parametrize("place", [1, 3, "end"])
@pytest.mark.parametrize(("text", "data", "sessions"), CASES)
def test_a_merge_that_broke_off_is_continued(shop, shards, break_merge, text, data, sessions, place):
    if isinstance(data[0], str):
        shop.rows(*data, sessions=sessions)
    else:
        shop.write("data.jsonl", data)
    shards.run_all(text, 3)
    whole = shards.merge(1, 2, 3, ledger="w.db")
    table = (shop / "out.csv").read_bytes() if "csv" in text else b""
    for number in (place, 2, place):
        with break_merge(number):
            assert shards.merge(1, 2, 3).code == 70
    merged = shards.merge(1, 2, 3)
    assert (settled(merged.json), merged.code) == (settled(whole.json), whole.code)
    assert table == ((shop / "out.csv").read_bytes() if table else b"")
    assert count_events(shop, "m.db") == count_events(shop, "w.db")
    assert shop.dicast("ledger", "verify", "--ledger", "m.db", "--json").json["ok"]
    assert "is a merge of these shards" in shards.messages(shards.merge(1, 2, 3))[0]


def test_a_ledger_that_is_named_twice_has_a_warning_and_counts_once(shop, shards):
    shop.rows("1", "0.5", "0.2")
    shards.run_all(GATED + "metrics: [fake/paid: {}]\n", 2)
    merged = shop.dicast("merge", "s1.db", "./s1.db", "s2.db", "--ledger", "m.db", "--json")
    assert (merged.code, merged.json["scored"]) == (0, 3), merged.err
    assert "warning: 1 of 3 LEDGER arguments name a ledger again, which is read once" in merged.err


def test_a_merge_that_broke_off_is_not_judged_again(shop, shards, break_merge):
    shop.rows("1", "0.5", "0.2")
    text = GATED + "metrics: [fake/paid: {}]\n"
    shards.run_all(text, 2)
    with break_merge(2):
        assert shards.merge(1, 2).code == 70
    (message,) = shards.messages(shop.run(text, "--ledger", "m.db", "--resume"))
    assert message.endswith("did not end; continue it: dicast merge s1.db s2.db --ledger m.db")
    report = shop.dicast("report", "--ledger", "m.db")
    assert report.err.rstrip().endswith("resume it: dicast merge s1.db s2.db --ledger m.db")
    merged = shop.dicast(*shlex.split(message)[-5:], "--json")
    assert (merged.code, merged.json["scored"]) == (0, 3)
    assert shop.dicast("merge", "s1.db", "s2.db", "--ledger", "n.db", "--json").json["cost"] == merged.json["cost"]


def test_a_merge_that_broke_off_is_refused_if_a_shard_has_gone_on(shop, shards, break_off, break_merge):
    shop.rows(*[f"0.{number}" for number in range(1, 10)])
    text = GATED + "metrics: [fake/act: {}]\n"
    shards.run(text, 1, 2)
    restore = break_off(1)
    assert shards.run(text, 2, 2).code == 70
    restore()
    with break_merge(6):
        assert shards.merge(1, 2).code == 70
    assert shards.run(text, 2, 2, "--resume").code == 0
    (message,) = shards.messages(shards.merge(1, 2))
    assert "is a merge that did not end, and the shards have changed since; name another ledger" in message
    assert shards.merge(1, 2, ledger="n.db").code == 0


def test_aggregates_get_the_columns_of_the_data_in_the_order_of_the_source(shop, shards, plugin):
    plugin("own", "import contextlib\n" + OWN)
    rows = [{"name": f"n{n}", "answer": "a", "team": n, "session_id": f"s{n % 2}"} for n in range(5)]
    shop.write("data.jsonl", rows)
    shards.run_all(COLUMNS, 2)
    merged = shards.merge(1, 2).json["aggregates"]["own/columns"]
    assert merged == shop.run(COLUMNS, "--ledger", "w.db").json["aggregates"]["own/columns"]
    assert [name for name, _ in merged["names"]] == [row["name"] for row in rows]


def test_a_merged_run_decides_a_regression_gate_against_the_runs_of_its_ledger(shop, shards):
    gated = "name: nightly\nmetrics: [fake/act: {}]\nbaseline: {run: last, compare: [stats/paired]}\n"
    gated += "gate: {on: metrics, baseline: last, max_drop: 0.05, bound: point}\n"
    shop.rows(*["0.9"] * 6)
    assert shop.run(gated, "--ledger", "m.db").code == 0  # no older run
    shutil.copy(shop / "m.db", shop / "w.db")
    shop.rows(*["0.9"] * 3, *["0.2"] * 3)
    assert [part.code for part in shards.run_all(gated, 2)] == [0, 0]
    merged, whole = shards.merge(1, 2), shop.run(gated, "--ledger", "w.db")
    assert (merged.code, whole.code) == (1, 1)
    assert settled(merged.json) == settled(whole.json)


def test_a_shard_has_every_nth_session_and_reports_all_subjects(shop, shards):
    shop.rows(*["1"] * 7, sessions=3)  # s0 s1 s2 s0 s1 s2 s0
    parts = [part.json for part in shards.run_all("metrics: [fake/act: {}]\n", 2)]
    assert [part["subjects"] for part in parts] == [5, 2]
    adds = "dicast merge adds the gate, aggregates, comparisons and sinks"
    assert [part["shard"] for part in parts] == [
        {"number": 1, "of": 2, "read": 7, "warnings": [], "notice": f"shard 1/2: 5 of 7 subjects; {adds}"},
        {"number": 2, "of": 2, "read": 7, "warnings": [], "notice": f"shard 2/2: 2 of 7 subjects; {adds}"},
    ]
    verdicts = shop.dicast("verdicts", "--ledger", "s2.db", "--json").json["verdicts"]
    assert [verdict["subject_id"] for verdict in verdicts] == ["r1", "r4"]


def test_a_shard_without_subjects_is_complete(shop, shards):
    shop.rows("1", "0.5")
    parts = shards.run_all(GATED + "metrics: [fake/act: {}]\n", 3)
    assert [part.code for part in parts] == [0, 0, 0]
    assert parts[2].json["subjects"] == 0
    merged = shards.merge(1, 2, 3)
    assert (merged.code, merged.json["subjects"], merged.json["gate"]["passed"]) == (0, 2, True)


def test_a_shard_with_failures_ends_with_3_and_is_merged(shop, shards):
    shop.rows("1", "raise", "1", "raise")
    text = "metrics: [fake/act: {}]\ngate: {min_coverage: 0.5, min_score: 0.5}\n"
    assert [part.code for part in shards.run_all(text, 2)] == [0, 3]
    assert shards.merge(1, 2).code == 0


@pytest.mark.parametrize("option", [["--limit", "5"], ["--filter", "id~[0-4]"], ["--only", "fake/act"]])
def test_options_that_select_apply_to_the_whole_run(shop, shards, option):
    shop.rows(*[f"0.{n}" for n in range(9)], sessions=4)
    text = "metrics: [fake/act: {}, fake/truth: {}]\n"
    shards.run_all(text, 2, *option)
    merged, whole = shards.merge(1, 2), shop.run(text, "--ledger", "w.db", *option)
    assert settled(merged.json) == settled(whole.json)


def test_each_shard_may_spend_its_share_of_the_caps_even_in_one_ledger(shop):
    shop.rows(*["1"] * 8)
    text = "metrics: [fake/paid: {}]\nbudget: {run: 0.04 usd, day: 0.05 usd}\n"
    parts = [shop.run(text, "--shard", f"{n}/2", "--ledger", "all.db").json for n in (1, 2)]
    assert [part["cost"]["usd"] for part in parts] == ["0.02", "0.02"]
    notice = parts[0]["shard"]["notice"]
    assert "its caps are 1/2 of the file's: run 0.02 usd, day 0.025 usd" in notice
    assert [warning for part in parts for warning in part["warnings"]] == []
    merged = shop.dicast("merge", "all.db", "--ledger", "m.db", "--json").json
    assert (merged["cost"]["usd"], merged["scored"], merged["subjects"]) == ("0.04", 4, 8)
    (cap,) = merged["caps"].values()
    assert (cap["limit"], cap["share"]) == ("0.05", "0.025")


def test_the_line_of_a_shard_is_no_warning_and_has_rounded_amounts(shop):
    shop.rows(*["1"] * 6)
    text = "metrics: [fake/paid: {}]\nbudget: {run: 0.1 usd}\n"
    shop.pipeline(text)
    words = " ".join(shop.dicast("run", "p.yaml", "--shard", "1/3", "--ledger", "s.db").out.split())
    line = "shard 1/3: 2 of 6 subjects; dicast merge adds the gate, aggregates, comparisons and sinks; its caps are 1/3 of the file's: run 0.0333 usd"
    assert line in words
    assert "warning" not in words


def test_the_cap_of_a_merged_run_is_the_files_with_the_share_of_a_shard(shop):
    shop.rows(*["1"] * 8)
    text = "metrics: [fake/paid: {}]\nbudget: {run: 0.04 usd}\n"
    parts = [shop.run(text, "--shard", f"{n}/2", "--ledger", "all.db").json for n in (1, 2)]
    merged = shop.dicast("merge", "all.db", "--ledger", "m.db", "--json").json
    for document in (merged, parts[0]):
        cap = document["caps"]["run_cap"]
        assert (cap["limit"], cap["share"], cap["scope"]) == ("0.04", "0.02", f"run:{document['run_id']}")
    shown = " ".join(shop.dicast("show", "last", "--ledger", "m.db").out.split())
    assert "budget.run is 0.04 usd, of which each part of the run has 0.02 usd, this run spent 0.04 usd" in shown
    assert "raise the cap: budget.run is 0.04 usd" in shown


def test_spending_of_a_merged_run_counts_once_in_its_ledger(shop, shards):
    shop.rows(*["1"] * 4)
    text = "metrics: [fake/paid: {}]\nbudget: {day: 0.08 usd}\n"
    shards.run_all(text, 2)
    shards.merge(1, 2)
    assert shop.run(text, "--ledger", "m.db").json["cost"]["usd"] == "0.04"
    assert shop.run(text, "--ledger", "m.db").json["scored"] == 0


@pytest.fixture
def break_off(monkeypatch):
    """Let the next runs end by a defect after some subjects."""
    from dicast._kernel.run.direct import DirectWindow

    take = DirectWindow._take

    def after(count):
        taken = []

        async def failing(self, due):
            taken.append(due)
            if len(taken) > count:
                raise RuntimeError("the lights went out")
            await take(self, due)

        monkeypatch.setattr(DirectWindow, "_take", failing)
        return lambda: monkeypatch.setattr(DirectWindow, "_take", take)

    return after


def test_an_interrupted_shard_leaves_the_run_undecided_and_resumable(shop, shards, break_off):
    shop.rows(*[f"0.{n}" for n in range(1, 10)], sessions=4)
    text = GATED + "metrics: [fake/act: {journal: calls}]\n"
    shards.run(text, 1, 2)
    restore = break_off(2)
    assert shards.run(text, 2, 2).code == 70
    restore()
    merged = shards.merge(1, 2)
    assert merged.code == 3
    reason = merged.json["gate"]["reasons"][0]
    assert reason.startswith("the run was not completed: shard 2/2 (run ")
    assert "in s2.db): its process ended early" in reason
    calls = len((shop / "calls").read_text().split())
    resumed = shop.run(text, "--ledger", "m.db", "--resume")
    assert resumed.json["run_id"] == merged.json["run_id"]
    assert len((shop / "calls").read_text().split()) - calls == 9 - merged.json["scored"]
    whole = shop.run(text, "--ledger", "w.db")
    assert settled(resumed.json) == settled(whole.json)


def test_an_interrupted_shard_is_resumed_as_the_same_shard_only(shop, shards, break_off):
    shop.rows(*[f"0.{n}" for n in range(1, 10)])
    text = GATED + "metrics: [fake/act: {}]\n"
    restore = break_off(2)
    run = shards.run(text, 1, 2)
    assert run.code == 70
    restore()
    run_id = shop.dicast("runs", "--ledger", "s1.db", "--json").json["runs"][0]["run_id"]
    assert "to resume" in shards.messages(shop.run(text, "--ledger", "s1.db", "--resume"))[0]
    (message,) = shards.messages(shop.run(text, "--ledger", "s1.db", "--resume", run_id))
    assert "shard was removed since" in message
    resumed = shards.run(text, 1, 2, "--resume")
    assert (resumed.code, resumed.json["run_id"], resumed.json["subjects"]) == (0, run_id, 5)
    shards.run(text, 2, 2)
    merged, whole = shards.merge(1, 2), shop.run(text, "--ledger", "w.db")
    assert settled(merged.json) == settled(whole.json)


def test_a_shard_that_is_still_running_is_refused(shop, shards, break_off, monkeypatch):
    shop.rows("1", "0.5")
    shards.run("metrics: [fake/act: {}]\n", 1, 2)
    break_off(0)
    assert shards.run("metrics: [fake/act: {}]\n", 2, 2).code == 70
    monkeypatch.setattr("dicast._kernel.run.shard_set.live_run_check", lambda ledger: bool)
    (message,) = shards.messages(shards.merge(1, 2))
    assert "shard 2/2 (run " in message
    assert "is still running; wait for its end" in message


def test_only_the_newest_verdict_of_a_retried_subject_counts(shop, shards):
    shop.rows("0.9", "0.1", "0.2", "0.8")
    text = "judges: [fake/opinion: {moody: mood}]\nsinks: [csv/rows: {path: out.csv}]\n"
    shop.write("mood", "bad")
    shards.run_all(text, 2)
    (shop / "mood").unlink()
    for number in (1, 2):
        shards.run(text, number, 2, "--resume", "--retry-failed")
    merged, whole = shards.merge(1, 2), shop.run(text, "--ledger", "w.db", "--set", "sinks[0].csv/rows.path=w.csv")
    assert merged.json["failed"] == 0
    for key in ("subjects", "scored", "judges", "labels", "score", "coverage", "worst"):
        assert merged.json[key] == whole.json[key]
    assert (shop / "out.csv").read_text() == (shop / "w.csv").read_text()


def test_every_shard_that_does_not_fit_is_named_at_once(shop, shards):
    shop.rows("1", "0.5", "0")
    text = "metrics: [fake/act: {}]\n"
    shards.run_all(text, 4)
    shop.run(text, "--shard", "2/4", "--ledger", "again.db")
    shop.run(text, "--shard", "1/5", "--ledger", "five.db")
    shop.rows("1", "0.5", "1")
    shop.run(text, "--shard", "3/4", "--ledger", "data.db")
    shop.run(text, "--ledger", "whole.db")
    names = ("s1.db", "s2.db", "again.db", "five.db", "data.db", "whole.db")
    messages = shards.messages(shop.dicast("merge", *names, "--ledger", "m.db", "--json"))
    found = "\n".join(messages)
    assert "shard 2/4 is there 2 times: run " in found
    assert re.search(r"shard 1/5 \(run \w+\) is no part of the run of shard \d/4 \(run \w+ in \w+\.db\): ", found)
    assert "the number of shards differs" in found
    assert re.search(r"shard 3/4 \(run \w+\) is no part .*: data differs; merge", found)
    assert re.search(r"five\.db: shard 1/5 \(run \w+\) is", shop.dicast("merge", *names, "--ledger", "m.db").err)
    assert "the ledger has no run of a shard" in found
    assert (
        "shards 3/4, 4/4 are missing: no ledger has a run that fits; judge them, and merge the ledgers, too: " in found
    )
    command = "dicast run p.yaml --shard {0}/4 --ledger shard-{0}.db"
    assert f"{command.format(3)}; {command.format(4)}" in found
    assert not (shop / "m.db").exists()


def test_a_merge_needs_the_file_and_a_ledger_of_its_own(shop, shards):
    shop.rows("1", "0.5")
    text = GATED + "metrics: [fake/act: {}]\n"
    shards.run_all(text, 2)
    (message,) = shards.messages(shards.merge(1, 2, ledger="s1.db"))
    assert "would count its spending twice; name another ledger" in message
    assert shards.merge(1, 2).code == 0
    assert "is a merge of these shards" in shards.messages(shards.merge(1, 2))[0]
    shop.pipeline(text.replace("fake/act: {}", "fake/act: {journal: calls}"))
    assert "metrics[fake/act] has changed since the shards ran" in shards.messages(shards.merge(1, 2, ledger="n.db"))[0]
    (shop / "p.yaml").unlink()
    assert "p.yaml, is not in this folder" in shards.messages(shards.merge(1, 2, ledger="n.db"))[0]


def test_the_newest_shards_of_a_ledger_count(shop):
    text = "metrics: [fake/act: {}]\n"
    for outputs in (("1", "0.5"), ("0.2", "0.4")):
        shop.rows(*outputs)
        for number in (1, 2):
            shop.run(text, "--shard", f"{number}/2", "--ledger", "all.db")
    merged = shop.dicast("merge", "all.db", "--ledger", "m.db", "--json").json
    assert merged["score"]["mean"] == pytest.approx(0.3)
    older = [warning["message"] for warning in merged["warnings"] if warning["kind"] == "older_shards"]
    assert len(older) == 2
    assert all("is left out: the ledger has newer shards" in message for message in older)


def test_a_damaged_ledger_is_refused(shop, shards):
    shop.rows("1", "0.5")
    shards.run_all("metrics: [fake/act: {}]\n", 2)
    with closing(sqlite3.connect(shop / "s2.db")) as connection, connection:
        connection.execute("UPDATE blocks SET body = substr(body, 2)")
    assert "damaged" in shards.messages(shards.merge(1, 2))[0]


@pytest.mark.parametrize("shard", ["0/2", "3/2", "2", "a/b", "1/0", "-1/2", "1/10001"])
def test_a_shard_that_does_not_exist_is_refused(shop, shard):
    shop.rows("1")
    done = shop.run("metrics: [fake/act: {}]\n", "--shard", shard)
    assert done.code == 2
    assert "such as 3/8" in json.dumps(done.json)


@pytest.mark.parametrize(
    ("text", "arguments", "message"),
    [
        ("metrics: [fake/act: {}]\nearly_stop: [stats/threshold: {on: metrics, threshold: 0.5}]\n", [], "early_stop"),
        ("metrics: [fake/act: {}]\nexperiments: {a: {}, b: {}}\n", [], "several experiments"),
        ("metrics: [fake/act: {}]\n", ["--head", "1"], "a part of the subjects; remove --head (dicast"),
    ],
)
def test_runs_without_shards_are_refused(shop, text, arguments, message):
    shop.rows("1", "0")
    done = shop.run(text, "--shard", "1/2", *arguments)
    assert done.code == 2
    assert message in json.dumps(done.json)


def test_a_ledger_of_digests_cannot_fill_sinks_and_aggregates(shop):
    shop.rows("1", "0.5")
    text = "metrics: [fake/act: {}]\naggregates: [stats/score_stats]\nledger: {ledger/sqlite: {path: d.db, content: digest}}\n"
    for number in (1, 2):
        assert shop.run(text, "--shard", f"{number}/2").code == 0
    done = shop.dicast("merge", "d.db", "--ledger", "m.db", "--json")
    assert done.code == 2
    assert "content: digest" in json.dumps(done.json)


def test_a_secret_in_set_is_refused_before_anything_is_judged(shop):
    shop.rows("1")
    text = "judges: [llm/judge: {model: {openai/chat: {base_url: 'http://127.0.0.1:1/v1', model: m, price: free}}, criteria: [good]}]\n"
    done = shop.run(text, "--shard", "1/2", "--set", "judges[0].llm/judge.model.openai/chat.api_key=hidden-key")
    assert done.code == 2
    assert "is a secret" in json.dumps(done.json)
    assert "hidden-key" not in done.out + done.err


def test_a_shard_is_no_baseline_and_has_a_kind(shop, shards):
    shop.rows("1", "0.5")
    shards.run("name: p\nmetrics: [fake/act: {}]\n", 1, 2)
    (run,) = shop.dicast("runs", "--ledger", "s1.db", "--json").json["runs"]
    assert run["kind"] == "shard"
    done = shop.run("name: p\nmetrics: [fake/act: {}]\nbaseline: {run: last, compare: []}\n", "--ledger", "s1.db")
    assert done.json["baseline"]["run_id"] is None


def test_ids_that_no_subject_of_any_shard_has_are_reported(shop, shards):
    shop.rows('["t"]', '["t"]', '["t"]')
    shop.write("calls.jsonl", [{"id": id_, "calls": ["t"]} for id_ in ("r0", "r1", "r2", "absent")])
    text = "metrics: [trajectory/match: {reference: calls.jsonl}]\n"
    shards.run_all(text, 2)
    merged, whole = shards.merge(1, 2), shop.run(text, "--ledger", "w.db")
    assert [warning["kind"] for warning in merged.json["warnings"]] == ["unused_references"]
    assert settled(merged.json) == settled(whole.json)


def test_files_of_out_have_the_subjects_of_the_shard_and_of_the_merged_run(shop, shards):
    shop.rows("1", "0.5", "0.2")
    text = TEXT.replace("min_score: 0.5", "min_score: 0.1")
    parts = [shards.run(text, number, 2, "--out", f"part{number}.csv") for number in (1, 2)]
    assert [part.code for part in parts] == [0, 0]
    assert not (shop / "out.csv").exists()  # the file's own sinks are the merge's
    shop.write("mine.md", "a text of the user")
    assert "mine.md" in shards.messages(shards.merge(1, 2, arguments=["--out", "mine.md"]))[0]
    assert shards.merge(1, 2, arguments=["--out", "all.csv"]).code == 0
    ids = {
        name: [line.split(",")[1] for line in (shop / name).read_text().splitlines()[1:]]
        for name in ("part1.csv", "part2.csv", "out.csv", "all.csv")
    }
    assert ids == {
        "part1.csv": ["r0", "r2"],
        "part2.csv": ["r1"],
        "out.csv": ["r0", "r1", "r2"],
        "all.csv": ["r0", "r1", "r2"],
    }


FEED = """
@attrs.frozen(slots=False)
class Feed:
    name = "feed"
    digest: str | None = "d1"

    def subjects(self):
        items = [
            Due(Subject("row", "a", output="0.5"), recorded=(RecordedScore("old", 0.25),), finish_reason="length"),
            Due(Subject("row", "b"), failure=Failure("source_error", "the endpoint answered 500")),
            Subject("row", "c", output="1", weight=2.5, session_id="s"),
            Subject("row", "d", output="0.25"),
            Subject("row", "e", output="0.75", session_id="s"),
        ]
        return iter(items)

    def __attrs_post_init__(self):
        if self.digest is not None:
            object.__setattr__(self, "check", lambda: self.digest)

@hookimpl
def dicast_sources():
    return [Feed]
"""
FED = "source: {own/feed: {}}\nmetrics: [fake/act: {}]\ngate: {min_score: 0.1, min_coverage: 0.5}\n"


@pytest.fixture
def feed(plugin):
    plugin("own", FEED)


@pytest.mark.usefixtures("feed")
def test_recorded_scores_failed_records_and_weights_are_merged(shop, shards):
    shards.run_all(FED, 2)
    merged, whole = shards.merge(1, 2), shop.run(FED, "--ledger", "w.db")
    assert settled(merged.json) == settled(whole.json)
    assert merged.json["failures"] == {"source_error": 1}
    assert merged.json["recorded"]


@pytest.mark.usefixtures("feed")
def test_shards_of_a_source_without_a_digest_are_refused(shop):
    done = shop.run(FED.replace("{own/feed: {}}", "{own/feed: {digest: null}}"), "--shard", "1/2")
    assert done.code == 2
    assert "computes no digest of its data" in json.dumps(done.json)


@pytest.mark.usefixtures("feed")
def test_a_source_that_changes_its_order_is_refused(shop, shards, monkeypatch):
    shards.run(FED, 1, 2)
    feed = importlib.import_module("dicast_own").Feed
    subjects = feed.subjects
    monkeypatch.setattr(feed, "subjects", lambda self: iter([*subjects(self)][::-1]))
    shards.run(FED, 2, 2)
    messages = shards.messages(shards.merge(1, 2))
    assert "the order of the source changed between the shards" in messages[0]


def test_a_shard_with_another_option_is_refused_with_the_options_name_and_both_values(shop, shards):
    shop.rows("1", "0.5")
    text = GATED + "metrics: [fake/act: {timeout: 5}]\n"
    shop.run(text, "--shard", "1/2", "--ledger", "s1.db", "--set", "gate.min_score=0.2")
    other = text.replace("{timeout: 5}", "{journal: calls}")
    shop.run(other, "--shard", "2/2", "--ledger", "s2.db", "--set", "gate.min_score=0.2")
    found = "\n".join(shards.messages(shop.dicast("merge", "s1.db", "s2.db", "--ledger", "m.db", "--json")))
    assert "metrics[fake/act] (journal: " in found
    assert "--ledger shard-1.db --set gate.min_score=0.2" in found
