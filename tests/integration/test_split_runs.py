"""Runs whose executor has their shards judged in other processes: the result is that of a run in one process."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path

import attrs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dicast
from dicast import Shards
from dicast._kernel.pipeline.build import load_pipeline
from dicast._kernel.run.host import ShardHost

from .conftest import finish, settled, wait_for
from .test_shards import CASES, GATED, MIXED, TASK, TEXT

FLEET = Path(__file__).with_name("fleet.py")
SPLIT = "executor: {fleet/shards: {shard: 3}}\n"


@pytest.fixture(autouse=True)
def fleet(install):
    install("dicast-fleet", "1.0", {"dicast": {"fleet": "dicast_fleet"}}, dicast_fleet=FLEET.read_text())


def test_a_small_run_is_split(shop):
    shop.rows("a", "b", "c", "d")
    split = shop.run(TASK + SPLIT, "--ledger", "m.db")
    assert (split.code, split.json["subjects"], split.json["scored"]) == (0, 4, 4)
    assert not (shop / "m.db.shards").exists()


@pytest.mark.slow
@pytest.mark.parametrize(("text", "data", "sessions"), CASES)
def test_a_split_run_equals_a_run_in_one_process(shop, text, data, sessions):
    if isinstance(data[0], str):
        shop.rows(*data, sessions=sessions)
    else:
        shop.write("data.jsonl", data)
    split = shop.run(text + SPLIT, "--ledger", "m.db")
    table = (shop / "out.csv").read_bytes() if "csv" in text else b""
    if table:
        (shop / "out.csv").unlink()
    whole = shop.run(text, "--ledger", "w.db")
    assert (settled(split.json), split.code) == (settled(whole.json), whole.code)
    assert table == ((shop / "out.csv").read_bytes() if table else b"")
    assert shop.dicast("ledger", "verify", "--ledger", "m.db", "--json").json["ok"]
    assert not (shop / "m.db.shards").exists()


ACTS = st.sampled_from(["0.9", "0.1", "0.5", "1", "0", "raise", "none", "wordy", "fail:judge_call_failed"])


@pytest.mark.slow
@settings(
    max_examples=max(3, settings.default.max_examples // 6),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.lists(ACTS, min_size=1, max_size=14), st.integers(1, 9), st.sampled_from([None, None, 2, 3]))
def test_every_split_gives_the_document_and_the_events_of_the_whole_run(shop, outputs, size, sessions):
    for path in shop.folder.iterdir():
        path.unlink()
    shop.rows(*outputs, sessions=sessions)
    text = GATED + "metrics: [fake/act: {}, proxy/length: {max: 4}]\nsinks: [csv/rows: {path: out.csv}]\n"
    split = shop.run(text + f"executor: {{fleet/shards: {{shard: {size}, workers: 0}}}}\n", "--ledger", "m.db")
    table = (shop / "out.csv").read_bytes()
    (shop / "out.csv").unlink()
    whole = shop.run(text, "--ledger", "w.db")
    assert (settled(split.json), split.code) == (settled(whole.json), whole.code)
    assert table == (shop / "out.csv").read_bytes()
    assert exported(shop, "m.db") == exported(shop, "w.db")


def exported(shop, ledger):
    """Return the events of the subjects of a ledger in their order, without ids, times and durations."""
    done = shop.dicast("ledger", "export", "--ledger", ledger)
    events = [json.loads(line) for line in done.out.splitlines()]
    return [
        [event["type"], event["subject_id"], event["session_id"], event["sensitivity"], kept(event["payload"])]
        for event in events
        if event["subject_id"] is not None
    ]


def kept(value):
    """Return *value* without ids and durations, at any depth."""
    if isinstance(value, dict):
        return {key: kept(part) for key, part in value.items() if not key.endswith(("eval_id", "_ms"))}
    return [kept(part) for part in value] if isinstance(value, list) else value


def test_rate_limits_are_divided_by_the_workers_while_they_judge(shop, monkeypatch):
    from dicast._kernel.api import build
    from dicast.toolkit.rate_limit import WORKERS

    shares, judged = [], build._judged

    async def noting(*arguments):
        shares.append(WORKERS.get())
        await judged(*arguments)

    monkeypatch.setattr(build, "_judged", noting)
    shop.rows(*["0.5"] * 4)
    done = shop.run("metrics: [fake/act: {}]\nexecutor: {fleet/shards: {shard: 2, workers: 0, share: 3}}\n")
    assert (done.code, shares, WORKERS.get()) == (0, [3, 3], 1)


def test_a_plan_names_the_rate_limits_that_workers_share(shop):
    shop.rows("a", "b")
    chat = "openai/chat: {base_url: 'http://127.0.0.1:9/v1', model: m, price: free, requests_per_minute: 60}"
    text = f"judges: [llm/judge: {{model: {{{chat}}}, as: quality}}]\n"
    words = "quality: requests_per_minute is 60 for all workers of fleet/shards together; each has an equal share"
    for executor, count in ((SPLIT, 1), ("", 0)):
        done = shop.dicast("plan", shop.pipeline(text + executor).name, "--json")
        assert done.json["words"].count(words) == count, done


def test_judged_rows_of_a_split_run_are_transferred_without_their_events(shop, monkeypatch):
    from dicast._kernel.stream.stream import Stream

    rows, emitted = [], Stream.emit_judged
    monkeypatch.setattr(Stream, "emit_judged", lambda self, row: (rows.append(row), emitted(self, row)))
    shop.rows(*["0.5"] * 4, "raise", *["0.5"] * 5)
    text = GATED + "metrics: [fake/act: {}]\n"
    split = shop.run(text + "executor: {fleet/shards: {shard: 3, workers: 0}}\n", "--ledger", "m.db")
    judged = Counter(row.maker.run_id for row in rows)
    assert judged[split.json["run_id"]] == 9 == sum(judged.values()) - 9
    made = [row for row in rows if row._events and row.maker.run_id == split.json["run_id"]]
    assert len(made) == 1  # the form of the lines is new to the ledger


def test_the_process_of_the_run_checks_no_file_that_a_worker_has_checked(shop, monkeypatch):
    from dicast._kernel.run import segments

    checked, refuse = [], segments.refuse_damaged
    monkeypatch.setattr(segments, "refuse_damaged", lambda *arguments: (checked.append(arguments), refuse(*arguments)))
    shop.rows(*["0.5"] * 5)
    text = "metrics: [fake/act: {}]\nexecutor: {fleet/shards: {shard: 3, segments: SEGMENTS}}\n"
    assert shop.run(text.replace("SEGMENTS", "parts")).code == 0
    assert not checked
    place = json.dumps({"segments/ledger": {"path": str(shop / "shared")}})
    assert shop.run(text.replace("SEGMENTS", json.dumps(place))).code == 0
    assert [place for place, _ in checked] == [place]


def test_a_worker_refuses_a_damaged_file(shop, monkeypatch):
    from dicast_ledger.format4.live import BlockLedger

    verify = BlockLedger.verify
    damaged = {"bad_seq": 2, "reason": "line 1 was changed"}
    monkeypatch.setattr(BlockLedger, "verify", lambda self: attrs.evolve(verify(self), **damaged))
    shop.rows("0.5")
    done = shop.run("metrics: [fake/act: {}]\nexecutor: {fleet/shards: {workers: 0}}\n")
    assert done.code == 2
    assert "the segment is damaged at row 2: line 1 was changed" in done.out


PAID = GATED.replace("0.5", "0.1") + "metrics: [fake/paid: {seconds: 0.1, journal: asked, after: answered}]\n"
SLOW = PAID + "executor: {fleet/shards: {shard: 8, concurrency: 1, tries: 3, pids: pids}}\n"


def lines(path):
    return path.read_text().splitlines() if path.exists() else []


def wait_for_workers(shop):
    """Wait until no worker of the fleet is alive."""

    def are_gone():
        return not any(Path(f"/proc/{pid}").exists() for pid in lines(shop / "pids"))

    wait_for(are_gone, 30)


def without_costs_of_processes(document):
    """Return the document without figures that differ if a paid call is interrupted."""
    left_out = ("cost", "spend_lost", "plan", "warnings")
    figures = {key: value for key, value in settled(document).items() if key not in left_out}
    # an interrupted run has its subjects in two passes, which decide between equal scores
    return {**figures, "worst": [item["score"] for item in figures["worst"]]}


def assert_bought_once(shop, count):
    """Check that every answered call is in the ledger once."""
    settled_ = shop.events("spend.settled")
    assert len({event["subject_id"] for event in settled_}) == len(settled_) == count
    asked, answered = lines(shop / "asked"), lines(shop / "answered")
    assert len(asked) - len(answered) <= 3  # calls of ended processes
    assert len(answered) - len({*answered}) <= 3  # answers that a killed process had not recorded


@pytest.mark.slow
def test_a_killed_worker_is_replaced_and_buys_no_recorded_answer_again(shop):
    shop.rows(*[f"0.{n % 10}" for n in range(16)])
    process = shop.start("run", shop.pipeline(SLOW).name, "--json")
    wait_for(lambda: len(lines(shop / "answered")) >= 6)
    os.kill(int(lines(shop / "pids")[0]), signal.SIGKILL)
    out, err = process.communicate(timeout=200)
    assert process.returncode == 0, err
    whole = shop.run(PAID, "--ledger", "w.db")
    assert without_costs_of_processes(json.loads(out)) == without_costs_of_processes(whole.json)
    assert len(lines(shop / "pids")) == 3
    for name in ("asked", "answered"):
        (shop / name).write_text("\n".join(lines(shop / name)[:-16]) + "\n")
    assert_bought_once(shop, 16)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
@pytest.mark.parametrize("executor", ["fleet/shards", "dicast/async"])
def test_an_interrupted_run_is_resumed_by_any_executor(shop, number, executor):
    shop.rows(*[f"0.{n % 10}" for n in range(16)])
    name = shop.pipeline(SLOW).name
    process = shop.start("run", name, "--json")
    wait_for(lambda: len(lines(shop / "answered")) >= 6)
    process.send_signal(number)
    out, err = process.communicate(timeout=200)
    if number == signal.SIGINT:
        document = json.loads(out)
        assert document["stopped"]["reason"] == "interrupted", err
        assert 4 <= document["scored"] < 16
    else:
        for pid in lines(shop / "pids"):
            os.kill(int(pid), signal.SIGKILL)
    wait_for_workers(shop)
    if executor == "dicast/async":
        shop.pipeline(PAID)
    resumed = shop.dicast("run", name, "--resume", "--json")
    assert resumed.code == 0, resumed
    assert_bought_once(shop, 16)
    whole = shop.run(PAID, "--ledger", "w.db")
    assert without_costs_of_processes(resumed.json) == without_costs_of_processes(whole.json)
    assert shop.verified()


@pytest.mark.slow
@pytest.mark.parametrize("count", [0, 1, 7, 10])
@pytest.mark.parametrize("executor", ["fleet/shards", "dicast/async"])
def test_a_merge_that_was_ended_is_continued_at_its_next_event(shop, monkeypatch, count, executor):
    from dicast._kernel.run.split_run import SplitSteps

    shop.rows(*MIXED)
    text, record, merged = TEXT.replace("sinks", "# sinks"), SplitSteps._record_subject, []

    async def failing(self, stream, subject):
        if len(merged) == count:
            raise RuntimeError("the lights went out")
        merged.append(subject)
        await record(self, stream, subject)

    monkeypatch.setattr(SplitSteps, "_record_subject", failing)
    assert shop.run(text + SPLIT, "--ledger", "m.db").code == 70
    monkeypatch.setattr(SplitSteps, "_record_subject", record)
    split = shop.run(text + (SPLIT if executor == "fleet/shards" else ""), "--ledger", "m.db", "--resume")
    whole = shop.run(text, "--ledger", "w.db")
    assert (settled(split.json), split.code) == (settled(whole.json), whole.code)


@pytest.mark.slow
def test_the_failures_of_a_split_run_are_retried_in_this_process(shop):
    shop.rows("busy", "1", "0.5", "0.5")
    (shop / "moody").touch()
    text = "metrics: [fake/act: {moody: moody}]\n" + SPLIT
    assert shop.run(text).json["failed"] == 1
    (shop / "moody").unlink()
    shop.rows("busy", "1", "0.5", "0.5")
    done = shop.dicast("run", "p.yaml", "--resume", "--retry-failed", "--json")
    assert done.json["subjects"] == 4


@pytest.mark.slow
def test_shards_share_the_caps_of_the_run(shop):
    shop.rows(*["1"] * 6)
    text = "metrics: [fake/paid: {}]\nbudget: {run: 0.04 usd}\nexecutor: {fleet/shards: {shard: 3}}\n"
    done = shop.run(text).json
    assert (done["cost"]["usd"], done["scored"], done["subjects"]) == ("0.04", 4, 6)


DAILY = "metrics: [fake/paid: {}]\nbudget: {day: 0.05 usd}\ngate: {min_coverage: 0}\n"


@pytest.mark.slow
@pytest.mark.parametrize("ledger", ["m.db", json.dumps({"segments/ledger": {"path": "logs"}})])
def test_a_day_cap_holds_over_split_runs_and_other_runs_of_a_ledger(shop, ledger):
    shop.rows(*["1"] * 6)
    split = DAILY + "executor: {fleet/shards: {shard: 3}}\n"
    costs = [shop.run(text, "--ledger", ledger).json for text in (DAILY.replace("0.05", "0.02"), split, DAILY)]
    assert [done["cost"]["usd"] for done in costs] == ["0.02", "0.02", "0.01"]
    assert [done["scored"] for done in costs] == [2, 2, 1]
    assert costs[1]["throttled"].keys() == {"daily_cap"}
    assert shop.run(split, "--ledger", ledger).json["cost"]["usd"] == "0"
    assert shop.dicast("ledger", "verify", "--ledger", ledger, "--json").json["ok"]
    events = [json.loads(line) for line in shop.dicast("ledger", "export", "--ledger", ledger).out.splitlines()]
    held = [event["payload"]["reservation_id"] for event in events if event["type"] == "spend.reserved"]
    closed = {
        event["payload"]["reservation_id"] for event in events if event["type"] in ("spend.settled", "spend.released")
    }
    assert set(held) <= closed


@pytest.mark.slow
def test_segments_in_a_named_folder_stay_and_can_be_merged(shop):
    shop.rows(*MIXED)
    text = GATED + "metrics: [fake/act: {}]\nexecutor: {fleet/shards: {shard: 6, segments: parts}}\n"
    run_id = shop.run(text).json["run_id"]
    files = sorted((shop / "parts" / run_id).glob("*.db"))
    assert [file.name for file in files] == ["00001.db", "00002.db"]
    commits = [event["payload"] for event in shop.events("shard.committed")]
    assert sorted(commit["number"] for commit in commits) == [1, 2]
    members = {"number", "of", "place", "run_id", "subjects", "is_complete", "reason", "head"}
    assert all(commit.keys() == members for commit in commits)
    assert [event["payload"] for event in shop.events("shard.merged")] == [{"is_complete": True}]
    merged = shop.dicast("merge", *files, "--ledger", "m.db", "--json")
    assert merged.json["subjects"] == len(MIXED)


@pytest.mark.slow
def test_segments_may_be_runs_in_a_ledger_that_workers_share(shop):
    shop.rows(*MIXED)
    text = GATED + "metrics: [fake/act: {}]\n"
    place = json.dumps({"segments/ledger": {"path": str(shop / "parts")}})
    whole = shop.run(text, "--ledger", "w.db")
    split = shop.run(
        text + f"executor: {{fleet/shards: {{shard: 4, segments: {json.dumps(place)}}}}}\n", "--ledger", "m.db"
    )
    assert (settled(split.json), split.code) == (settled(whole.json), whole.code)
    runs = shop.dicast("runs", "--ledger", place, "--json").json["runs"]
    assert sum(run["subjects"] for run in runs) == len(MIXED)
    done = shop.dicast("run", "p.yaml", "--ledger", place, "--json")
    assert done.code == 2
    assert "segments is the ledger of the run" in done.out


@pytest.mark.slow
def test_a_changed_segment_is_named_when_the_run_is_resumed(shop, monkeypatch):
    from dicast._kernel.run.split_run import SplitSteps

    shop.rows(*MIXED)

    async def failing(self, stream, subject):
        raise RuntimeError("the lights went out")

    with monkeypatch.context() as patch:
        patch.setattr(SplitSteps, "_record_subject", failing)
        shop.run("metrics: [fake/act: {}]\n" + SPLIT, "--ledger", "m.db")
    segment = next((shop / "m.db.shards").glob("*/00002.db"))
    with closing(sqlite3.connect(segment)) as database, database:
        database.execute("UPDATE blocks SET body = zeroblob(10) WHERE first = (SELECT max(first) FROM blocks)")
    done = shop.dicast("run", "p.yaml", "--ledger", "m.db", "--resume", "--json")
    assert done.code == 2
    (error,) = done.json["error"]["errors"]
    assert "the segment is damaged at row" in error["message"]
    assert error["file"] == str(segment)


@pytest.mark.slow
def test_a_worker_reads_the_secrets_of_its_machine(shop, monkeypatch):
    shop.rows("1", "0")
    monkeypatch.setenv("JOURNAL", "here")
    text = "metrics: [fake/act: {journal: '${JOURNAL}'}]\n" + SPLIT
    assert shop.run(text).code == 0
    spec = load_pipeline(shop.pipeline(text)).spec
    assert "${JOURNAL}" in json.dumps(spec)
    assert "here" not in json.dumps(spec)
    monkeypatch.delenv("JOURNAL")
    with pytest.raises(dicast.ConfigError, match="JOURNAL is not set"):
        dicast.build(json.loads(json.dumps(spec))).judge(
            {"place": "x.db", "is_file": True, "concurrency": 1, "size": None}
        )


@pytest.mark.slow
def test_a_worker_refuses_other_data_and_other_files(shop, tmp_path):
    shop.rows("1", "0")
    text = "metrics: [fake/act: {}]\n" + SPLIT
    pipeline = load_pipeline(shop.pipeline(text))
    reference = {
        "number": 1,
        "of": 1,
        "run_id": "r",
        "place": str(tmp_path / "s.db"),
        "is_file": True,
        "digest": "0" * 64,
        "setup": dict(pipeline.setup),
        "allotment": None,
        "limit": None,
        "filters": [],
        "trusts_all": False,
        "concurrency": 1,
        "size": None,
    }
    with pytest.raises(dicast.DataError, match="reads other data than the run of the shard"):
        dicast.build(pipeline.spec).judge(reference)
    with pytest.raises(dicast.ConfigError, match="metrics differ on this machine"):
        dicast.build(pipeline.spec).judge({**reference, "setup": {**pipeline.setup, "metrics": "0"}})
    with pytest.raises(dicast.ConfigError, match="format 1, not 2"):
        dicast.build({**pipeline.spec, "format": 2})


def test_a_host_takes_each_segment_once():
    segment = dict.fromkeys(("number", "of", "place", "run_id", "is_complete", "reason", "head"))
    segment |= {"number": 1, "of": 2, "place": "a.db", "subjects": 3}
    recorded, shown = [], []
    shards = Shards(2, "0", {1: {"number": 1, "of": 2, "place": "a.db"}})
    host = ShardHost({}, asyncio.Event(), shards, recorded.append, shown.append)
    with pytest.raises(dicast.PluginError, match="shard 2, which is no open shard"):
        host.commit(2, segment)
    with pytest.raises(dicast.PluginError, match="commit the answer of judge"):
        host.commit(1, {**segment, "place": "b.db"})
    host.progress(1, 2)
    host.commit(1, segment)
    with pytest.raises(dicast.PluginError, match="was committed before"):
        host.commit(1, segment)
    assert (recorded, shown) == ([segment], [2, 3])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("early_stop: [stats/budget_stop: {}]\n", "early_stop"),
        ("", "--shard judges one shard"),
    ],
)
def test_a_run_that_cannot_be_split_is_refused_by_its_reason(shop, text, message):
    shop.rows("1", "0")
    arguments = () if text else ("--shard", "1/2")
    done = shop.run("metrics: [fake/act: {}]\n" + text + SPLIT, *arguments)
    assert done.code == 2
    assert message in done.out


def test_objects_and_subjects_of_a_program_are_refused(shop):
    shop.rows("1", "0")
    pipeline = {"source": {"rows/jsonl": {"path": "data.jsonl"}}, "executor": {"fleet/shards": {}}}

    @dicast.metric(tier="proxy")
    def even(subject):
        return dicast.Score(1.0)

    with pytest.raises(dicast.ConfigError, match="objects of the program"):
        dicast.run({**pipeline, "metrics": [even]})
    with pytest.raises(dicast.ConfigError, match="the program gives the subjects|computes no digest"):
        dicast.run({**pipeline, "metrics": ["fake/act"]}, subjects=[dicast.Subject("output", "1", output="1")])


@pytest.mark.slow
def test_conformance_of_an_executor_with_shards(shop):
    shop.write(
        "test_fleet.py",
        "from dicast.testing import ShardsConformance\n\n\nclass TestFleet(ShardsConformance):\n    executor = 'fleet/shards'\n",
    )
    done = finish(shop.python("-m", "pytest", "-q", "-p", "no:cacheprovider", "test_fleet.py"), 120)
    assert done.code == 0, done.out
