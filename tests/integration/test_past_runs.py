"""``dicast runs``, ids of runs by their ends, and subjects that several runs have judged."""

from __future__ import annotations

import asyncio
import time

import attrs
import pytest

from dicast import Event
from dicast._kernel.cli.past_runs import past_runs, runs_table
from dicast._kernel.run.direct import DirectWindow
from dicast._kernel.values.clock import Clock
from dicast_ledger import Sqlite

NIGHTLY = "name: nightly\nmetrics: [proxy/format]\n"
EVENT = [field.name for field in attrs.fields(Event)]
FIELDS = ["run_id", "name", "kind", "started_at", "ended_at", "state"]
FIELDS += ["subjects", "scored", "score", "score_label", "only_metric", "basis", "labels", "gate", "cost", "unsettled"]


def run(shop, text, *outputs, code=0):
    shop.rows(*outputs)
    done = shop.run(text)
    assert done.code == code, done.err
    return done.json["run_id"]


@pytest.fixture
def two(shop):
    """Two pipelines over different files whose rows have the same ids: the ids of their runs."""
    failing = "name: weekly\nmetrics: [proxy/format]\ngate: {min_score: 0.9}\n"
    return run(shop, NIGHTLY, "old", "words"), run(shop, failing, "new", "", code=1)


def listed(shop, *arguments):
    done = shop.dicast("runs", "--json", *arguments)
    assert done.code == 0, done.err
    return done.json["runs"]


def break_off(shop, monkeypatch, text):
    async def broken(self, subject):
        raise RuntimeError("the lights went out")

    with monkeypatch.context() as patch:
        patch.setattr(DirectWindow, "_take", broken)
        assert shop.run(text).code == 70


def test_runs_are_listed_newest_first_with_what_they_came_to(shop, two):
    weekly, nightly = listed(shop)
    assert list(weekly) == FIELDS
    assert [nightly["run_id"], weekly["run_id"]] == list(two)
    assert {key: weekly[key] for key in FIELDS[5:]} == {
        "state": "completed",
        "subjects": 2,
        "scored": 2,
        "score": 0.5,
        "score_label": "metrics",
        "only_metric": "proxy/format",
        "labels": {"metrics": {"mean": 0.5, "pass_rate": 0.5, "scored": 2, "failed": 0, "total": 2}},
        "basis": "proxy",
        "gate": "failed",
        "cost": {"usd": "0", "msat": "0"},
        "unsettled": {"usd": "0", "msat": "0"},
    }
    assert nightly["gate"] is None, "it has no gate"
    assert nightly["started_at"] <= nightly["ended_at"] <= weekly["started_at"]


def test_filters_keep_runs_of_a_name_from_a_time_on_and_so_many(shop, two):
    assert [item["name"] for item in listed(shop, "--name", "nightly")] == ["nightly"]
    assert [item["name"] for item in listed(shop, "--limit", "1")] == ["weekly"]
    assert len(listed(shop, "--since", "2020-01-01")) == 2
    assert listed(shop, "--since", "2999-01-01T00:00:00Z") == []
    none = shop.dicast("runs", "--name", "monthly")
    assert (none.code, none.out, none.err) == (0, "", "no runs found; dicast run FILE starts one\n")
    wrong = shop.dicast("runs", "--since", "yesterday")
    assert (wrong.code, "--since must be an ISO 8601 time, not 'yesterday'" in wrong.err) == (2, True)


def test_a_run_is_running_while_a_process_holds_it_and_dead_when_that_is_gone_without_a_word(shop, monkeypatch):
    shop.rows("a", "b")
    break_off(shop, monkeypatch, NIGHTLY)
    (dead,) = listed(shop)
    assert (dead["state"], dead["ended_at"], dead["score"], dead["gate"]) == ("dead", None, None, None)
    seen = []

    original = DirectWindow.run

    async def watched(self, *arguments):
        seen.extend(past_runs(self._ledger))
        return await original(self, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(DirectWindow, "run", watched)
        assert shop.run(NIGHTLY).code == 0
    assert [item["state"] for item in seen] == ["running", "dead"]
    assert [item["state"] for item in listed(shop)] == ["completed", "dead"]


def test_the_table_of_runs_fits_80_columns_however_long_the_names_are():
    item = {
        "run_id": "01M81VZGDZAQ1FREZCFDXZ0PXQ",
        "name": "a-pipeline-with-a-name-that-says-everything-there-is-to-say",
        "kind": "pipeline",
        "labels": {},
        "started_at": "2026-11-24T10:11:12.000Z",
        "ended_at": None,
        "state": "completed",
        "subjects": 1_000_000,
        "scored": 999_999,
        "score": 0.123456,
        "basis": "heuristic",
        "gate": "undecided",
        "cost": {"usd": "12.345678", "msat": "0"},
    }
    old = {
        **item,
        "started_at": "2025-01-02T03:04:05.000Z",
        "state": "dead",
        "subjects": None,
        "score": None,
        "cost": None,
    }
    lines = list(runs_table([item, old]).lines())
    assert len(lines) == 3
    assert max(map(len, lines)) <= 80
    assert lines[1].split() == [
        "11-24",
        "10:11",
        "XZ0PXQ",
        "a-pipe…o-say",
        "undecided",
        "999k/1.0M",
        "0.123",
        "heuristic",
        "12.35",
    ]
    assert lines[2].split() == ["2025-01-02", "XZ0PXQ", "a-pipe…o-say", "dead", "-", "-", "heuristic", "-"]


def test_a_run_is_meant_by_the_last_or_first_characters_of_its_id(shop, two):
    nightly, weekly = two
    assert shop.dicast("show", nightly[-6:], "--json").json["run_id"] == nightly
    assert shop.dicast("verdicts", "--run", weekly[-6:].lower(), "--json").json["verdicts"][0]["run_id"] == weekly
    compared = shop.dicast("compare", nightly[-6:], weekly[-6:], "--allow-incomparable", "--json").json
    assert (compared["a"]["run_id"], compared["b"]["run_id"]) == two
    both = shop.dicast("verdicts", "--run", nightly[:4])
    assert both.code == 2
    assert f"'{nightly[:4]}' may be any of 2 runs: {nightly}, {weekly}; give more characters" in both.err
    assert shop.dicast("verdicts", "--run", nightly[-3:]).code == 2  # too short to mean anything
    assert nightly[-6:] in shop.dicast("runs").out


@pytest.mark.parametrize(
    ("command", "place"),
    [
        (["verdicts", "--run"], lambda found: found["verdicts"][0]["run_id"]),
        (["show", "r0", "--run"], lambda found: found["verdicts"][0]["run_id"]),
        (["ledger", "export", "--run"], lambda found: found["events"][0]["run_id"]),
        (["show"], lambda found: found["run_id"]),
        (["report", "--out", "made.html"], lambda found: found["runs"][0]["run_id"]),
        (["baseline", "save", "best"], lambda found: found["run_id"]),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_a_run_is_meant_by_its_id_the_end_of_it_and_its_name(shop, two, command, place):
    nightly, _ = two
    for name in (nightly, nightly[-6:], "nightly"):
        done = shop.dicast(*command, name, "--json")
        assert (done.code, place(done.json)) == (0, nightly)


@pytest.mark.parametrize("command", [["cost"], ["quality", "--subject-kind", "row", "--to", "2100-01-01"]])
def test_figures_of_a_run_are_chosen_by_its_name(shop, two, command):
    nightly, _ = two
    of_id, of_name = (shop.dicast(*command, "--run", name, "--json") for name in (nightly, "nightly"))
    assert (of_id.code, of_id.out) == (0, of_name.out)


@pytest.mark.parametrize("command", ["agreement", "calibrate", "label", "workloads"])
def test_an_unknown_name_of_a_run_names_the_nearest(shop, two, command):
    shop.write("gold.jsonl", [{"subject_id": f"r{number}", "score": number % 2} for number in range(60)])
    shop.pipeline("judges: [fake/opinion]\n", "judged.yaml")
    arguments = {
        "agreement": ["--run", "nightlx", "--run", "weekly"],
        "calibrate": ["judged.yaml", "--gold", "gold.jsonl", "--run", "nightlx"],
        "label": ["nightlx", "--labeller", "ada"],
        "workloads": ["--run", "nightlx"],
    }[command]
    refused = shop.dicast(command, *arguments)
    assert refused.code == 2
    assert "nightly" in refused.err
    assert "nightlx" in refused.err


def test_a_run_is_taken_up_by_the_end_of_its_id(shop, monkeypatch):
    shop.rows("a", "b")
    break_off(shop, monkeypatch, NIGHTLY)
    (dead,) = listed(shop)
    assert shop.dicast("run", "p.yaml", "--json", "--resume", dead["run_id"][-6:]).json["run_id"] == dead["run_id"]


def test_a_subject_named_like_the_end_of_a_runs_id_is_the_subject(shop, two):
    nightly, _ = two
    shop.write("data.jsonl", [{"id": nightly[-6:], "output": "named so"}])
    shop.run(NIGHTLY)
    assert shop.dicast("show", nightly[-6:], "--json").json["subject"]["output"] == "named so"
    assert shop.dicast("show", nightly, "--json").json["run_id"] == nightly


# Subjects of several runs


def test_show_takes_the_name_of_a_pipeline_for_its_newest_run(shop, two):
    newest = run(shop, NIGHTLY, "again")
    assert shop.dicast("show", "nightly", "--json").json["run_id"] == newest
    assert shop.dicast("show", "weekly", "--json").json["run_id"] == two[1]
    refused = shop.dicast("show", "monthly")
    assert refused.code == 2
    assert "neither a run nor a subject 'monthly'" in refused.err
    for wrong in ("nihgtly", "nightlly"):
        assert f"neither a run nor a subject {wrong!r}, did you mean 'nightly'?" in shop.dicast("show", wrong).err


def test_a_subject_is_shown_by_the_first_characters_of_its_id(shop):
    shop.write("data.jsonl", [{"id": id_, "output": id_} for id_ in ("6f1d-a", "6f1d-b", "77aa-c")])
    shop.run(NIGHTLY)
    assert shop.dicast("show", "77aa", "--json").json["subject"]["id"] == "77aa-c"
    refused = shop.dicast("show", "6f1d")
    assert (refused.code, "2 subjects begin with '6f1d': 6f1d-b, 6f1d-a; name more of the id" in refused.err) == (
        2,
        True,
    )
    assert shop.dicast("show", "77a").code == 2


def test_a_subject_is_shown_in_the_newest_run_that_judged_it_with_that_runs_output(shop, two):
    nightly, weekly = two
    output = shop.dicast("show", "r0", "--json").json
    assert list(output) == ["subject", "verdicts", "failures"]
    assert output["subject"]["output"] == "new"
    assert [verdict["run_id"] for verdict in output["verdicts"]] == [weekly]
    text = shop.dicast("show", "r0").out
    assert text.startswith(f"row r0  in run {weekly} (weekly)\n  from data.jsonl:1\n\noutput:\n  new\n")
    assert text.endswith("also judged in 1 other run; --all shows them\n")
    assert "old" not in text


def test_an_output_of_the_data_that_a_task_took_the_place_of_is_not_shown_as_what_was_judged(shop):
    run(shop, "name: asked\nmetrics: [proxy/format]\ntask: {task/command: {command: [echo, made]}}\n", "given")
    output = shop.dicast("show", "r0").out
    assert "\noutput of the data, not judged:\n  given\n\noutput:\n  made\n" in output


def test_a_subject_is_shown_as_the_run_that_is_asked_for_judged_it(shop, two):
    nightly, weekly = two
    output = shop.dicast("show", "r0", "--run", nightly, "--json").json
    assert (output["subject"]["output"], [verdict["run_id"] for verdict in output["verdicts"]]) == ("old", [nightly])
    assert shop.dicast("show", "r0", "--run", "last", "--json").json["subject"]["output"] == "new"
    shop.rows("else", name="other.jsonl")
    other = run(shop, "name: other\nsource: {rows/jsonl: {path: other.jsonl}}\nmetrics: [proxy/format]\n")
    refused = shop.dicast("show", "r1", "--run", "last")
    assert refused.code == 2
    assert f"run {other} has not judged 'r1'; these runs have: {weekly}, {nightly}" in refused.err
    assert shop.dicast("show", "r1", "--run", "last", "--all").code == 2


def test_all_shows_a_subject_in_each_run_newest_first(shop, two):
    nightly, weekly = two
    output = shop.dicast("show", "r0", "--all", "--json").json
    assert [(verdict["run_id"], verdict["subject"]["output"]) for verdict in output["runs"]] == [
        (weekly, "new"),
        (nightly, "old"),
    ]
    assert [verdict["run_id"] for verdict in output["verdicts"]] == [nightly, weekly]
    text = shop.dicast("show", "r0", "--all").out
    assert text.index("  new\n") < text.index("  old\n")
    assert "also judged" not in text


def test_the_run_that_only_read_a_subject_is_not_the_one_that_judged_it(shop, two, monkeypatch):
    break_off(shop, monkeypatch, NIGHTLY)
    assert shop.dicast("show", "r0", "--json").json["verdicts"][0]["run_id"] == two[1]


def test_failures_of_a_subject_say_their_run(shop):
    failed = run(shop, "metrics: [fake/act]\n", "raise", code=3)
    output = shop.dicast("show", "r0", "--json").json
    assert [(failure["run_id"], failure["failure_mode"]) for failure in output["failures"]] == [(failed, "crashed")]


def test_verdicts_and_failures_have_a_column_with_their_run(shop, two):
    nightly, weekly = two
    lines = shop.dicast("verdicts").out.splitlines()
    runs = [line.split()[0] for line in lines if not line.startswith(" ")]
    assert runs == [nightly[-6:]] * 2 + [weekly[-6:]] * 2
    failed = run(shop, "metrics: [fake/act]\n", "raise", code=3)
    assert shop.dicast("verdicts", "--failed").out.startswith(f"{failed[-6:]}  row r0  ")


@pytest.mark.slow
def test_a_ledger_of_300_runs_and_100_000_events_answers_at_once(shop):
    run(shop, NIGHTLY, *"ab" * 5)
    events = [Event(**{key: event[key] for key in EVENT}) for event in shop.events()]
    clock = Clock()

    async def multiply():
        async with Sqlite(shop / ".dicast/ledger.db").open() as live:
            for _ in range(300):
                run_id, rest = clock.id(), 100_000 // 300 // len(events)
                extra = [events[:1], *[events[1:-1]] * rest, events[-1:]]
                live.append([attrs.evolve(item, id=clock.id(), run_id=run_id) for some in extra for item in some])

    asyncio.run(multiply())
    seconds = []
    for _ in range(3):
        began = time.process_time()
        assert len(listed(shop, "--limit", "300")) == 300
        seconds.append(time.process_time() - began)
    assert min(seconds) < 1.0  # .33 on an idle machine
