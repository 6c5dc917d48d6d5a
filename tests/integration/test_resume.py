"""Resuming a run: allowed and refused changes, subjects judged again, and the resulting figures."""

from __future__ import annotations

import csv
import json
import shlex
from collections import Counter

import pytest

from .conftest import finish, settled, wait_for

TEXT = "name: nightly\nmetrics: [fake/act: {journal: calls}]\n"


@pytest.fixture
def unfinished(shop, monkeypatch):
    """Leave a run of *text* unfinished after some subjects, by a defect; return its id."""
    from dicast._kernel.run.direct import DirectWindow

    take = DirectWindow._take

    def make(text=TEXT, after=4, arguments=()):
        if not (shop / "data.jsonl").exists():
            shop.rows(*[n / 10 for n in range(10)])
        count = 0

        async def break_off(self, subject):
            nonlocal count
            count += 1
            if count > after:
                raise RuntimeError("the lights went out")
            await take(self, subject)

        with monkeypatch.context() as patch:
            patch.setattr(DirectWindow, "_take", break_off)
            assert shop.run(text, *arguments).code == 70
        return shop.events("run.started")[-1]["run_id"]

    return make


def calls(shop):
    return (shop / "calls").read_text().split()


def scores(shop, *arguments):
    verdicts = shop.dicast("verdicts", *arguments, "--json").json["verdicts"]
    return {(verdict["subject_id"], verdict["judge"]): verdict["score"] for verdict in verdicts}


def test_nothing_to_resume_is_2(shop):
    shop.rows(1)
    done = shop.run(TEXT, "--resume")
    assert done.code == 2
    assert "to resume; remove --resume" in done.json["error"]["message"]
    run_id = shop.run(TEXT).json["run_id"]
    for which in ([], [run_id]):
        done = shop.run(TEXT, "--resume", *which)
        assert done.code == 2
        assert f"run {run_id} has ended" in done.json["error"]["message"]
        assert "--retry-failed" in done.json["error"]["message"]
    assert len(calls(shop)) == 1


def test_last_is_the_newest_unfinished_run_of_the_file(shop, unfinished):
    run_id = unfinished()
    assert shop.run(TEXT, "--set", "name=other").json["run_id"] != run_id
    done = shop.run(TEXT, "--resume", "last")
    assert (done.code, done.json["run_id"]) == (0, run_id)


def test_a_resumed_run_comes_to_what_an_undisturbed_one_comes_to(shop, unfinished):
    run_id = unfinished()
    done = shop.run(TEXT, "--resume")
    assert (done.code, done.json["run_id"]) == (0, run_id)
    assert done.json["subjects"] == done.json["scored"] == 10
    assert settled(done.json) == settled(shop.run(TEXT).json)
    assert shop.verified()
    assert len(shop.events("run.started")) == 2


@pytest.mark.parametrize("order", [["--resume", "p.yaml"], ["p.yaml", "--resume"], ["--json", "--resume", "p.yaml"]])
def test_resume_may_stand_before_the_file(shop, unfinished, order):
    run_id = unfinished()
    assert shop.dicast("run", *order).code == 0
    assert shop.events("run.completed")[0]["run_id"] == run_id


def test_a_resumed_run_was_spared_what_an_undisturbed_one_was(shop, unfinished):
    text = "metrics: [fake/act, fake/paid]\nbudget: {session: 1 usd}\n"
    unfinished(text)
    done = shop.run(text, "--resume").json
    assert (done["metrics"]["fake/paid"]["spared"], done["metrics"]["fake/paid"]["saved"]["usd"]) == (5, "0.05")
    assert settled(done) == settled(shop.run(text).json)


@pytest.mark.parametrize("ledger", [".dicast/ledger.db", "other.db"])
@pytest.mark.parametrize("command", [("report",), ("compare", "nightly")])
def test_commands_about_an_open_run_print_the_command_that_resumes_it(shop, unfinished, command, ledger):
    shop.rows(*[n / 10 for n in range(10)])
    shop.run(TEXT)
    shop.run(TEXT, "--ledger", ledger)
    unfinished(arguments=("--set", "budget.run=5 usd", "--only", "fake/act", "--ledger", ledger))
    run_id = shop.dicast("runs", "--ledger", ledger, "--json").json["runs"][0]["run_id"]
    done = shop.dicast(*command, run_id, "--ledger", ledger)
    option = "" if ledger.startswith(".") else f" --ledger {ledger}"
    assert done.code == 2
    resumed = f"dicast run p.yaml --set 'budget.run=5 usd' --only fake/act --resume {run_id}{option}"
    assert resumed in " ".join(done.err.split())
    assert shop.dicast(*shlex.split(resumed)[1:], "--json").json["run_id"] == run_id


def test_a_finished_run_is_not_resumed_twice(shop, unfinished):
    unfinished()
    assert shop.run(TEXT, "--resume").code == 0
    assert shop.run(TEXT, "--resume").code == 2


def test_the_newest_unfinished_run_of_this_file_is_taken_up(shop, unfinished):
    first = unfinished()
    second = unfinished()
    shop.pipeline(TEXT, "other.yaml")
    assert shop.dicast("run", "other.yaml", "--json", "--resume").code == 2
    assert shop.run(TEXT, "--resume").json["run_id"] == second
    assert shop.run(TEXT, "--resume").json["run_id"] == first


def test_the_newest_unfinished_run_of_this_name_is_taken_up(shop, unfinished):
    one, other = ("--set", "name=one"), ("--set", "name=the other")
    first, second = unfinished(arguments=one), unfinished(arguments=other)
    done = shop.run(TEXT, *one, "--resume")
    assert (done.code, done.json["run_id"], done.json["name"]) == (0, first, "one")
    done = shop.run(TEXT, *other, "--resume")
    assert (done.code, done.json["run_id"], done.json["name"]) == (0, second, "the other")


@pytest.mark.parametrize("flags", [[], ["--retry-failed"], ["--cancel-batches"]])
def test_open_runs_under_other_names_are_2_and_named(shop, unfinished, flags):
    first, second = unfinished(), unfinished(arguments=("--set", "name=the other"))
    done = shop.run(TEXT, "--set", "name=third", "--set", "budget.run=5 usd", "--resume", *flags)
    assert done.code == 2
    said = done.json["error"]["message"]
    kept = "".join(f" {flag}" for flag in flags)
    for shown, run_id in (("name=nightly", first), ("'name=the other'", second)):
        assert f"dicast run p.yaml --set 'budget.run=5 usd' --set {shown} --resume {run_id}{kept}" in said
    assert "run named 'third'" in said
    assert len(shop.events("run.completed")) == 0
    named = shop.run(TEXT, "--set", "name=third", "--resume", first)
    assert (named.code, named.json["run_id"]) == (0, first)


SUITE = "name: trial\nmetrics: [fake/act: {journal: calls}]\nexperiments: {a: {}, b: {set: {gate.min_coverage: 0}}}\n"


def test_a_suite_is_taken_up_under_its_name_or_by_the_id_of_a_run(shop, unfinished):
    one, other = ("--set", "name=one"), ("--set", "name=other")
    first, second = unfinished(SUITE, arguments=one), unfinished(SUITE, arguments=other)
    refused = shop.run(SUITE, "--resume")
    assert refused.code == 2
    said = refused.json["error"]["message"]
    assert "p.yaml has no open suite named 'trial'" in said
    for name, run_id in (("one", first), ("other", second)):
        assert f"'{name}', with run {run_id}: dicast run p.yaml --set name={name} --resume" in said
    done = shop.run(SUITE, *one, "--resume").json["experiments"]
    assert (done["a"]["run_id"], done["a"]["name"], done["b"]["name"]) == (first, "one/a", "one/b")
    done = shop.run(SUITE, "--resume", second[-6:]).json["experiments"]
    assert (done["a"]["run_id"], done["a"]["scored"], done["b"]["scored"]) == (second, 10, 10)
    assert shop.run(SUITE, *other, "--resume").code == 2


def test_a_suite_is_not_resumed_by_the_id_of_another_run(shop, unfinished):
    run_id = unfinished()
    refused = shop.run(SUITE, "--resume", run_id)
    assert refused.code == 2
    assert f"run {run_id} belongs to no suite of this file; name a run of a, b" in refused.json["error"]["message"]


def test_a_run_is_resumed_by_its_id(shop, unfinished):
    first = unfinished()
    unfinished()
    done = shop.run(TEXT, "--resume", first)
    assert (done.code, done.json["run_id"]) == (0, first)
    assert shop.run(TEXT, "--resume", "01NOSUCHRUN").code == 2
    done = shop.run(TEXT, "--resume", first)
    assert done.code == 2
    assert first in done.json["error"]["message"]


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ("metrics: [fake/act: {journal: other}]\n", "metrics[fake/act]"),
        ("metrics: [fake/act: {journal: calls, weight: 2}]\n", "metrics[fake/act]"),
        ("metrics: [fake/act: {journal: calls}, fake/truth]\n", "metrics[fake/truth]"),
        ("metrics: [fake/act: {journal: calls, as: renamed}]\n", "metrics[renamed]"),
        ("metrics: [fake/act: {journal: calls}]\njudges: [fake/opinion]\n", "judges[fake/opinion]"),
        ("metrics: [fake/act: {journal: calls}]\nscoring: {threshold: 0.6}\n", "scoring"),
        ("metrics: [fake/act: {journal: calls}]\nscoring: {rollouts: 2}\n", "scoring"),
        (
            "source: {rows/jsonl: {path: data.jsonl, fields: {input: output}}}\nmetrics: [fake/act: {journal: calls}]\n",
            "source",
        ),
    ],
)
def test_a_changed_pipeline_is_2_and_says_what_changed(shop, unfinished, change, named):
    unfinished()
    done = shop.run("name: nightly\n" + change, "--resume")
    assert done.code == 2
    assert named in [problem["path"] for problem in done.json["error"]["errors"]]
    assert named in done.json["error"]["message"]
    assert not (shop / "other").exists()
    assert len(shop.events("eval.started")) <= 10
    assert shop.run(TEXT, "--resume").code == 0


def test_a_metric_that_was_added_or_removed_is_not_called_changed(shop, unfinished):
    run_id = unfinished()
    text = "name: nightly\nmetrics: [fake/act: {journal: calls, as: renamed}]\nscoring: {threshold: 0.6}\n"
    done = shop.run(text, "--resume")
    said = {problem["path"]: problem["message"] for problem in done.json["error"]["errors"]}
    begun = f"run {run_id} cannot be resumed: "
    assert said == {
        "metrics[fake/act]": begun + "metrics[fake/act] was removed since; start a new run",
        "metrics[renamed]": begun + "metrics[renamed] was added since; start a new run",
        "scoring": begun + "scoring has changed since; start a new run",
    }


def test_a_changed_option_is_named_with_both_values(shop, unfinished):
    unfinished()
    text = TEXT.replace("{journal: calls", "{journal: other")
    done = shop.run(text, "--resume")
    (problem,) = done.json["error"]["errors"]
    assert 'metrics[fake/act] has changed (journal: "other", not "calls") since; start a new run' in problem["message"]


def test_changed_data_is_2_and_says_so(shop, unfinished):
    unfinished()
    shop.rows(*[n / 10 for n in range(11)])
    done = shop.run(TEXT, "--resume")
    assert done.code == 2
    assert [problem["path"] for problem in done.json["error"]["errors"]] == ["data"]


@pytest.mark.parametrize(
    "change",
    [
        "executor: {dicast/async: {concurrency: 1}}\n",
        "sinks: [csv/rows: {path: new.csv}]\n",
        "gate: {min_score: 0.1, min_coverage: 0}\n",
        "budget: {run: 5 usd}\n",
        "name: renamed\n",
    ],
)
def test_what_changes_no_number_may_change(shop, unfinished, change):
    run_id = unfinished()
    text = TEXT.replace("name: nightly\n", "") if "name" in change else TEXT
    done = shop.run(text + change, "--resume", run_id)
    assert (done.code, done.json["run_id"], done.json["scored"]) == (0, run_id, 10)
    if "csv" in change:
        assert len((shop / "new.csv").read_text().splitlines()) == 11
        assert done.json["sinks"]["csv/rows"]["written"] == 10
    if "renamed" in change:
        assert done.json["name"] == "renamed"


AGAIN = ("--resume", "--retry-failed")


def kept(kind, path, label=None):
    """A sink of rows that replaces no file, but the run's own."""
    return f"{kind}/rows: {{as: {label or path}, path: {path}, overwrite: false}}"


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_file_that_the_run_did_not_write_is_not_replaced_by_its_rest(shop, kind):
    shop.rows(*[n / 10 for n in range(10)])
    one, other = kept(kind, "one"), kept(kind, "other")
    assert shop.run(TEXT + f"sinks: [{one}]\n").code == 0
    written = (shop / "one").read_bytes()
    shop.write("other", "precious")
    for sinks in (f"[{one}, {other}]", f"[{kept(kind, 'other', 'one')}]"):
        refused = shop.run(TEXT + f"sinks: {sinks}\n", *AGAIN)
        assert refused.code == 2
        assert "other: it exists, and overwrite is false" in refused.json["error"]["message"]
        assert ((shop / "other").read_text(), (shop / "one").read_bytes()) == ("precious", written)
    (shop / "other").unlink()
    for _ in range(2):  # from the first time on it is the run's own
        done = shop.run(TEXT + f"sinks: [{one}, {other}]\n", *AGAIN)
        assert (done.code, done.json["sinks"]["other"]["written"]) == (0, 10)
    assert (shop / "one").read_bytes() == (shop / "other").read_bytes() == written
    (started,), (added,) = shop.events("run.started"), shop.events("sinks.added")
    assert (started["payload"]["outputs"], added["payload"]["outputs"]) == (["one"], ["other"])


@pytest.mark.parametrize("ledger", ["", "ledger: {ledger/sqlite: {path: .dicast/ledger.db, content: digest}}\n"])
def test_a_file_is_the_runs_own_whatever_the_label_of_its_sink(shop, ledger):
    shop.rows(1, 0)
    assert shop.run(TEXT + ledger + f"sinks: [{kept('csv', 'out/one', 'a')}, {kept('csv', 'two', 'b')}]\n").code == 0
    swapped = f"sinks: [{kept('csv', './two', 'a')}, {kept('parquet', 'out/../out/one', 'c')}]\n"
    done = shop.run(TEXT + ledger + swapped, *AGAIN)
    assert (done.code, {label: sink["written"] for label, sink in done.json["sinks"].items()}) == (0, {"a": 2, "c": 2})
    assert (shop / "out" / "one").read_bytes()[:4] == b"PAR1"
    assert shop.events("sinks.added") == []


def test_a_file_that_a_killed_process_wrote_is_the_runs_own_too(shop, unfinished, monkeypatch):
    """Of a sink that came when the run was resumed: the file was there, and nothing said yet of the end."""
    from dicast._kernel.stream.stream import Stream

    close = Stream.close_sinks

    async def die(self, which=None):
        await close(self, which)
        if which is None:
            raise RuntimeError("the lights went out")

    run_id = unfinished()
    added = TEXT + f"sinks: [{kept('csv', 'one')}]\n"
    with monkeypatch.context() as patch:
        patch.setattr(Stream, "close_sinks", die)
        assert shop.run(added, "--resume").code == 70
    assert len((shop / "one").read_text().splitlines()) == 11
    done = shop.run(added, "--resume")
    assert (done.code, done.json["run_id"], done.json["sinks"]["one"]["written"]) == (0, run_id, 10)


@pytest.mark.parametrize(("options", "continued"), [("{as: other, url: here}", "True"), ("{url: there}", "False")])
def test_a_sink_without_a_path_is_the_runs_own_with_the_options_it_had(shop, install, options, continued):
    install("dicast-telling", "1.0", {"dicast": {"telling": "dicast_telling"}}, dicast_telling=TELLING)
    shop.rows(1)
    assert shop.run(TEXT + "sinks: [telling/sink: {url: here}]\n").code == 0
    assert (shop / "continued").read_text() == "False"
    assert shop.run(TEXT + f"sinks: [telling/sink: {options}]\n", *AGAIN).code == 0
    assert (shop / "continued").read_text() == continued


TELLING = """
from contextlib import asynccontextmanager
import attrs, dicast

@attrs.frozen
class Sink:
    name = "sink"
    wants = ()

    url: str

    @asynccontextmanager
    async def open(self, run):
        (run.base / "continued").write_text(str(run.continued))
        yield self

    def write(self, events):
        return len(events)

    def close(self):
        return 0

@dicast.hookimpl
def dicast_sinks():
    return [Sink]
"""


def test_the_label_that_counts_may_change(shop, unfinished):
    judges = "judges: [fake/opinion: {as: a}, fake/turns_only: {as: b}]\n"
    unfinished(judges + "gate: {on: b}\n")
    done = shop.run(judges + "gate: {on: a, min_score: 0.4}\nsinks: [csv/rows: {path: out.csv}]\n", "--resume")
    assert (done.code, done.json["scored"], done.json["score"]["mean"]) == (0, 10, pytest.approx(0.45))
    with open(shop / "out.csv", newline="") as file:
        assert [float(row["score"]) for row in csv.DictReader(file)] == [n / 10 for n in range(10)]


FIGURES = ("subjects", "scored", "failed", "skipped", "coverage", "score", "metrics", "judges", "gate", "worst")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("{on: b}", "{on: metrics, min_score: 0.4}"),
        ("{on: metrics}", "[{on: truly, min_score: 0.2}, {on: a, min_pass_rate: 0.9}]"),
        ("{on: truly, min_score: 1}", "{on: b, min_coverage: 0.5}"),
        ("{on: a}", "{on: metrics, min_pass_rate: 0.5, bound: interval}\nscoring: {pass_at: 0.2}"),
    ],
)
def test_another_gate_holds_as_if_from_the_start(shop, unfinished, before, after):
    text = "metrics: [fake/act, fake/truth: {as: truly}]\n"
    text += "judges: [fake/opinion: {as: a, moody: moody}, fake/opinion: {as: b}]\n"
    (shop / "moody").touch()
    shop.rows(*[n / 10 for n in range(10)], sessions=3)
    unfinished(f"{text}gate: {before}\n")
    resumed = shop.run(f"{text}gate: {after}\n", "--resume")
    fresh = shop.run(f"{text}gate: {after}\n")
    assert resumed.code == fresh.code
    assert {key: resumed.json[key] for key in FIGURES} == {key: fresh.json[key] for key in FIGURES}
    shown = shop.dicast("show", resumed.json["run_id"], "--json").json
    assert (shown["gate"], shown["score"]) == (resumed.json["gate"], resumed.json["score"])


def test_the_ledger_may_be_moved(shop, unfinished):
    run_id = unfinished()
    (shop / ".dicast").rename(shop / "moved")
    done = shop.run(TEXT + "ledger: {ledger/sqlite: {path: moved/ledger.db}}\n", "--resume")
    assert (done.code, done.json["run_id"]) == (0, run_id)


def test_the_limit_of_the_first_process_is_kept(shop, unfinished):
    unfinished(arguments=["--limit", "7"])
    done = shop.run(TEXT, "--resume")
    assert (done.json["subjects"], done.json["scored"], done.json["skipped"]) == (7, 7, 0)


def test_failed_subjects_stay_failed_on_resume(shop, unfinished):
    shop.rows(1, "raise", 1, 1, "raise", 1)
    unfinished(after=3)
    done = shop.run(TEXT, "--resume")
    assert done.code == 3
    assert (done.json["scored"], done.json["failed"], done.json["failures"]) == (4, 2, {"crashed": 2})
    assert calls(shop).count("r1") == 1


def rounded(document):
    """*document* with floats to 12 digits: sums in another order differ in the last."""
    return json.loads(json.dumps(document), parse_float=lambda text: round(float(text), 12))


MOODY = "judges: [fake/opinion: {moody: mood, journal: calls}]\n"
BOTH = "metrics: [fake/act]\n" + MOODY
SINKS = "sinks: [csv/rows: {path: out.csv}]\n"


@pytest.mark.parametrize(
    "text", [MOODY, BOTH, "judges: [fake/opinion: {moody: mood, journal: calls}, fake/opinion: {as: b}]\n"]
)
def test_retry_failed_judges_the_failed_again_and_nothing_else(shop, text):
    shop.rows(0.1, 0.9, 0.2, 0.8, 0.3)
    shop.write("mood", "bad")
    first = shop.run(text + SINKS)
    run_id = first.json["run_id"]
    stood = scores(shop)
    assert first.json["judges"]["fake/opinion"] == {
        "mean": pytest.approx(0.85),
        "mean_confidence": pytest.approx(0.9),
        "scored": 2,
        "total": 5,
        "escalated": 0,
        "fallbacks": {},
    }
    (shop / "mood").unlink()
    done = shop.run(text + SINKS, "--resume", run_id, "--retry-failed")

    assert (done.code, done.json["run_id"], done.json["scored"], done.json["failed"]) == (0, run_id, 5, 0)
    assert done.json["failures"] == {}
    assert done.json["failed_subjects"] == []
    assert calls(shop) == ["r0", "r1", "r2", "r3", "r4", "r0", "r2", "r4"]
    assert stood.items() <= scores(shop).items()
    ended = [(event["subject_id"], event["payload"]["judge"]) for event in shop.events("eval.completed")]
    assert len(ended) == len(set(ended))
    with open(shop / "out.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    rows.sort(key=lambda row: row["subject_id"])  # those that stood are told first
    assert [row["subject_id"] for row in rows] == ["r0", "r1", "r2", "r3", "r4"]
    assert [float(row["judge_fake_opinion_score"]) for row in rows] == [0.1, 0.9, 0.2, 0.8, 0.3]
    assert all(row["failure"] == "" and row["judge_fake_opinion_failure"] == "" for row in rows)
    if "metrics" in text:
        assert [float(row["metric_fake_act"]) for row in rows] == [0.1, 0.9, 0.2, 0.8, 0.3]
    undisturbed = shop.run(text + SINKS, "--set", "ledger={ledger/sqlite: {path: o.db}}")
    assert rounded(settled(done.json)) == rounded(settled(undisturbed.json))
    assert shop.verified()


def test_retry_failed_takes_the_newest_run_though_it_is_finished(shop):
    shop.rows(0.1, 0.9)
    shop.write("mood", "bad")
    run_id = shop.run(MOODY).json["run_id"]
    (shop / "mood").unlink()
    done = shop.run(MOODY, "--resume", "--retry-failed")
    assert (done.code, done.json["run_id"], done.json["scored"]) == (0, run_id, 2)


def test_retry_failed_prefers_the_newest_whole_run_with_failures(shop):
    shop.rows(0.1, 0.9, 0.2)
    shop.write("mood", "bad")
    run_id = shop.run(MOODY).json["run_id"]
    limited = shop.run(MOODY, "--limit", "1").json
    assert limited["failures"] == {"judge_call_failed": 1}
    (shop / "mood").unlink()
    assert shop.run(MOODY, "--limit", "2").json["failures"] == {}
    done = shop.run(MOODY, "--resume", "--retry-failed")
    assert (done.code, done.json["run_id"], done.json["scored"]) == (0, run_id, 3)
    done = shop.run(MOODY, "--resume", "--retry-failed")  # no whole run has failures now
    assert (done.code, done.json["run_id"], done.json["failures"]) == (0, limited["run_id"], {})


def test_the_summary_names_the_command_that_judges_failures_again(shop):
    shop.rows(0.1, 0.9)
    shop.write("mood", "bad")
    shop.pipeline(MOODY)
    (command,) = again_commands(shop.dicast("run", "p.yaml").out)
    assert again_commands(shop.dicast("show", "last").out) == [command]
    assert again_commands(shop.dicast("run", "p.yaml", "--head", "1").out) == []  # no command resumes a run with --head
    (shop / "mood").unlink()
    done = shop.dicast(*shlex.split(command)[1:])
    assert (done.code, again_commands(done.out)) == (0, [])
    assert "2 scored of 2" in done.out


def again_commands(text):
    lines = [line.removeprefix("next: ") for line in text.splitlines() if line.startswith("next: dicast run ")]
    return [line for line in lines if line.endswith(" --retry-failed")]


def test_retry_failed_may_fail_again(shop):
    shop.rows(0.1, 0.9)
    shop.write("mood", "bad")
    first = shop.run(MOODY + SINKS)
    done = shop.run(MOODY + SINKS, "--resume", "--retry-failed")
    assert done.code == first.code == 3
    assert settled(done.json) == settled(first.json)
    assert calls(shop) == ["r0", "r1", "r0"]
    assert len((shop / "out.csv").read_text().splitlines()) == 3
    (shop / "mood").unlink()
    done = shop.run(MOODY + SINKS, "--resume", "--retry-failed")
    assert (done.code, done.json["scored"], done.json["failed"]) == (0, 2, 0)


def test_retry_failed_needs_resume(shop):
    shop.rows(1)
    done = shop.run(TEXT, "--retry-failed")
    assert done.code == 2
    assert "--resume" in done.json["error"]["message"]


def test_a_resumed_run_can_be_shown(shop, unfinished):
    run_id = unfinished()
    done = shop.dicast("show", run_id, "--json")
    assert done.code == 2
    assert "--resume" in done.json["error"]["message"]
    resumed = shop.run(TEXT, "--resume")
    assert shop.dicast("show", run_id, "--json").json == resumed.json


# What an earlier process has bought, told, or holds still


HOLDING = '''
import asyncio
from pathlib import Path


def log(path, text):
    with Path(path).open("a") as file:
        file.write(f"{text}\\n")


@metric(tier="proxy")
def unannounced(subject: Subject) -> Score:
    """Cost money without an estimate, in a unit without a cap."""
    log("bought", subject.id)
    return Score(0.75, cost=Cost(10, "msat"), signals={"why": "bought"})


@metric(tier="proxy")
async def holds(subject: Subject) -> Score:
    """Wait while the file *hold* is there."""
    log("holding", subject.id)
    while Path("hold").exists():
        await asyncio.sleep(0.01)
    return Score(1.0)


@metric(tier="truth", cost="0.001 usd")
async def moody(subject: Subject):
    """Fail while the file *mood* is there, and cost money."""
    log("asked", subject.id)
    if Path("mood").exists() and subject.output < 0.9:
        return Failure("judge_call_failed", "in a mood", cost=Cost("0.001"))
    return Score(1.0, cost=Cost("0.001"))


@attrs.frozen
class Notes:
    """A sink that appends the events' types and ids to a file.

    :param path: the file.
    :param anew: whether it is told everything again by a resumed run.
    """

    path: str
    anew: bool = False

    @property
    def rewrites(self):
        """As told."""
        return self.anew

    def write(self, events):
        """Append."""
        for event in events:
            log(self.path, f"{event.type} {event.id}")

    def close(self):
        """Nothing is open."""


@hookimpl
def dicast_metrics():
    return [unannounced, holds, moody]


@hookimpl
def dicast_sinks():
    return [Notes]
'''
RICH = "budget: {run: 10 usd, day: 10 usd, session: 10 usd}\n"


@pytest.fixture
def holding(shop, plugin):
    """The shop, with the plugin ``holding`` and a file *hold* that keeps a run waiting."""
    plugin("holding", HOLDING)
    (shop / "hold").touch()
    return shop


def words(shop, name):
    return (shop / name).read_text().split() if (shop / name).exists() else []


@pytest.mark.slow
def test_an_answer_whose_cost_nobody_announced_is_not_bought_again_after_a_kill(holding):
    holding.rows(1, 1, 1)
    holding.pipeline("metrics: [holding/unannounced, holding/holds]\nsinks: [csv/rows: {path: out.csv}]\n" + RICH)
    process = holding.start("run", "p.yaml")
    wait_for(lambda: len(words(holding, "holding")) == 3)
    wait_for(lambda: len(holding.events("spend.settled")) == 3)
    process.kill()
    finish(process)
    assert holding.events("eval.completed") == []

    (holding / "hold").unlink()
    done = holding.dicast("run", "p.yaml", "--resume", "--json")
    assert (done.code, done.json["scored"], done.json["score"]["mean"]) == (0, 3, 0.875)
    assert words(holding, "bought") == ["r0", "r1", "r2"]
    assert (done.json["cost"]["msat"], done.json["spend_lost"]["msat"]) == ("30", "0")
    verdicts = holding.dicast("verdicts", "--json").json["verdicts"]
    assert [verdict["judge_cost_msat"] for verdict in verdicts] == ["10"] * 3
    assert [verdict["scores"][0]["signals"] for verdict in verdicts] == [{"why": "bought"}] * 3


def test_retry_failed_does_not_buy_the_good_answers_beside_the_failed_one_again(holding):
    holding.rows(0.8, 0.95)
    (holding / "mood").touch()
    text = (
        "metrics: [fake/act, fake/paid: {journal: calls}, holding/unannounced: {as: u}, holding/moody]\n"
        "sinks: [csv/rows: {path: out.csv}]\n" + RICH
    )
    first = holding.run(text)
    assert (first.json["scored"], first.json["failures"]) == (1, {"judge_call_failed": 1})
    assert first.json["cost"] == {"usd": "0.022", "msat": "20"}
    (holding / "mood").unlink()
    done = holding.run(text, "--resume", "--retry-failed")
    assert (done.code, done.json["scored"], done.json["failures"]) == (0, 2, {})
    assert calls(holding) == words(holding, "bought") == ["r0", "r1"]
    assert words(holding, "asked") == ["r0", "r1", "r0"]
    assert done.json["cost"] == {"usd": "0.023", "msat": "20"}  # what the failure did cost stays spent
    assert len(holding.events("spend.settled")) == 7
    assert scores(holding) == {("r0", "metrics"): pytest.approx(0.8375), ("r1", "metrics"): pytest.approx(0.9125)}


@pytest.mark.slow
def test_a_run_that_another_process_is_carrying_out_is_not_resumed(holding):
    holding.rows(1, 1)
    holding.pipeline("metrics: [holding/holds]\n")
    process = holding.start("run", "p.yaml", "--json")
    wait_for(lambda: len(words(holding, "holding")) == 2)
    (started,) = holding.events("run.started")
    wait_for(lambda: len(holding.events("eval.started")) == 2)
    before = holding.events()
    for which in ([], [started["run_id"]]):
        done = holding.dicast("run", "p.yaml", "--json", "--resume", *which)
        assert done.code == 2
        assert f"run {started['run_id']} is still running on host" in done.json["error"]["message"]
    assert holding.events() == before
    assert len(words(holding, "holding")) == 2

    (holding / "hold").unlink()
    assert finish(process).json["scored"] == 2
    done = holding.dicast("run", "p.yaml", "--json", "--resume")
    assert done.code == 2
    assert f"run {started['run_id']} has ended" in done.json["error"]["message"]


@pytest.mark.slow
def test_a_run_whose_process_was_killed_is_nobody_s(holding):
    holding.rows(1, 1)
    holding.pipeline("metrics: [holding/holds]\n")
    process = holding.start("run", "p.yaml")
    wait_for(lambda: len(words(holding, "holding")) == 2)
    process.kill()
    finish(process)
    (holding / "hold").unlink()
    done = holding.dicast("run", "p.yaml", "--json", "--resume")
    assert (done.code, done.json["scored"]) == (0, 2)


def test_a_new_run_of_the_same_file_may_begin_while_another_is_under_way(holding):
    holding.rows(1)
    holding.pipeline("metrics: [holding/holds]\n")
    process = holding.start("run", "p.yaml", "--json")
    wait_for(lambda: words(holding, "holding"))
    (holding / "hold").unlink()
    assert holding.dicast("run", "p.yaml", "--json").code == 0
    assert finish(process).code == 0


TRACES = (
    "source: {traces/messages: {path: chats.jsonl, id: '{{ id }}', subjects: [tool_cycle, turn, session]}}\n"
    "metrics: [fake/truth: {as: all, on: [tool_cycle, turn, session]}]\n"
)


def conversation(name, turns):
    """Turns of a question, two tool calls with their results, and an answer."""
    messages = []
    for number in range(turns):
        names = [f"{name}-{number}-{call}" for call in "ab"]
        tools = [{"id": call, "type": "function", "function": {"name": "look", "arguments": "{}"}} for call in names]
        messages += [
            {"role": "user", "content": "where?"},
            {"role": "assistant", "content": None, "tool_calls": tools},
            *({"role": "tool", "tool_call_id": call, "content": "there"} for call in names),
            {"role": "assistant", "content": "there"},
        ]
    return {"id": name, "messages": messages}


@pytest.mark.slow
@pytest.mark.parametrize("after", [1, 2, 3, 5, 7, 8, 13])
def test_trace_events_are_told_once_however_often_a_run_is_taken_up(shop, unfinished, after):
    shop.write("chats.jsonl", [conversation("one", 2), conversation("two", 2)])
    shop.write("data.jsonl", "")
    sinks = "sinks: [jsonl/events: {path: out.jsonl}]\n"
    other = ["--set", "ledger={ledger/sqlite: {path: o.db}}"]
    undisturbed = shop.run(TRACES + sinks, *other)
    assert (undisturbed.code, undisturbed.json["scored"]) == (0, 14)
    expected = told(shop.dicast("ledger", "export", "--ledger", "o.db").out)
    assert expected["tool.called"] == expected["tool.completed"] == 8

    unfinished(TRACES + sinks, after=after)
    done = shop.run(TRACES + sinks, "--resume")
    assert settled(done.json) == settled(undisturbed.json)
    assert told(shop.dicast("ledger", "export").out) == expected
    assert told((shop / "out.jsonl").read_text()) == expected


def told(text):
    """How many events of each type are in JSON lines."""
    return Counter(json.loads(line)["type"] for line in text.splitlines())


@pytest.mark.parametrize("text", [MOODY, BOTH])
def test_after_retry_failed_a_sink_holds_the_same_verdicts_and_failures_as_the_ledger(shop, text):
    text += "sinks: [csv/rows: {path: out.csv}, jsonl/events: {path: out.jsonl}]\n"
    shop.rows(0.1, 0.9, 0.2, 0.8)
    shop.write("mood", "bad")
    shop.run(text)
    for ends in (False, True):
        if ends:
            (shop / "mood").unlink()
        done = shop.run(text, "--resume", "--retry-failed")
        assert done.json["judges"]["fake/opinion"]["scored"] == (4 if ends else 2)
        sunk = [json.loads(line) for line in (shop / "out.jsonl").read_text().splitlines()]
        evals = sorted((event["type"], event["id"]) for event in sunk if event["type"].startswith("eval."))
        assert evals == sorted(
            (event["type"], event["id"]) for event in shop.events() if event["type"].startswith("eval.")
        )
        with open(shop / "out.csv", newline="") as file:
            table = {row["subject_id"]: row["failure"] for row in csv.DictReader(file)}
        assert len((shop / "out.csv").read_text().splitlines()) == 5
        failed = "" if ends else "judge_call_failed"
        assert table == {"r0": failed, "r1": "", "r2": failed, "r3": ""}


@pytest.mark.parametrize("retry", [False, True])
def test_only_a_sink_that_rewrites_is_told_again_what_an_earlier_process_told_it(holding, unfinished, retry):
    text = MOODY if retry else TEXT
    text += "sinks: [holding/notes: {path: once}, holding/notes: {as: anew, path: anew, anew: true}]\n"
    if retry:
        holding.rows(0.1, 0.9, 0.2)
        holding.write("mood", "bad")
        holding.run(text)
        (holding / "mood").unlink()
    else:
        unfinished(text)
    first = Counter((holding / "anew").read_text().splitlines())
    assert Counter((holding / "once").read_text().splitlines()) == first
    (holding / "anew").unlink()
    assert holding.run(text, "--resume", *["--retry-failed"] * retry).code == 0

    ledger = {f"{event['type']} {event['id']}" for event in holding.events() if event["type"].startswith("eval.")}
    once, anew = ((holding / name).read_text().splitlines() for name in ("once", "anew"))
    assert max(Counter(once).values()) == 1
    assert ledger == {line for line in anew if line.startswith("eval.")}
    assert max(Counter(anew).values()) == 1
    if retry:
        assert ledger == {line for line in once if line.startswith("eval.")}


def test_after_retry_failed_a_raised_cap_is_no_cause_of_the_run(shop):
    """A call that the old cap forbade belongs to a failure that a newer verdict replaced."""
    shop.rows(0.1, 0.9, 0.2, 0.8)
    text = "judges: [fake/paid_judge]\nexecutor: {dicast/async: {concurrency: 1}}\nbudget: {run: CAP usd}\n"
    first = shop.run(text.replace("CAP", "0.02"))
    run_id, (count,) = first.json["run_id"], first.json["throttled"].values()
    assert 0 < count == first.json["failures"]["throttled_no_heuristic"]
    second = shop.run(text.replace("CAP", "0.03"), "--resume", run_id, "--retry-failed")
    assert second.json["throttled"] == {"run_cap": second.json["failures"]["throttled_no_heuristic"]}
    assert second.json["caps"]["run_cap"]["limit"] == "0.03"
    done = shop.run(text.replace("CAP", "9"), "--resume", run_id, "--retry-failed")
    assert (done.json["scored"], done.json["failures"]) == (4, {})
    assert (done.json["throttled"], "caps" in done.json) == ({}, False)


def test_a_retried_row_is_among_equal_lowest_scores_at_its_place(shop):
    shop.rows("later", 0.9, *[0.25] * 6)
    shop.write("mood", "bad")
    text = "metrics: [fake/act: {moody: mood}]\n"
    assert shop.run(text).json["failed"] == 1
    (shop / "mood").unlink()
    retried = shop.run(text, "--resume", "--retry-failed").json
    assert retried["worst"][0] == {"subject_kind": "row", "subject_id": "r0", "score": 0.25}
    assert retried["worst"] == shop.run(text).json["worst"]
