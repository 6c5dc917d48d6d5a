"""Features of a pipeline file, end to end: includes, overrides, variables, definitions, weights, kinds, rollouts."""

from __future__ import annotations

import json

import pytest

import dicast


def mean(done):
    assert done.code == 0, done.json
    return done.json["score"]["mean"]


def test_the_shortest_file_is_a_source_and_a_metric(shop):
    shop.rows("text", "")
    shop.write("p.yaml", "source: {rows/jsonl: {path: data.jsonl}}\nmetrics: [proxy/format]\n")
    done = shop.dicast("run", "p.yaml", "--json")
    assert (done.code, done.json["name"], done.json["score"]["mean"]) == (0, "p", 0.5)


def test_paths_are_relative_to_the_file_they_stand_in(shop, monkeypatch):
    shop.write("deep/down/data.jsonl", [{"output": 1}])
    shop.write("deep/shared/base.yaml", "source: {rows/jsonl: {path: ../down/data.jsonl}}\nmetrics: [fake/act]\n")
    shop.write("deep/p.yaml", "include: shared/base.yaml\nsinks: [csv/rows: {path: out/rows.csv}]\n")
    done = shop.dicast("run", "deep/p.yaml", "--json")
    assert mean(done) == 1
    assert (shop / "deep" / "out" / "rows.csv").exists()
    assert (shop / ".dicast" / "ledger.db").exists()  # without a section, in the current directory


def test_an_include_merges_mappings_replaces_lists_and_the_including_file_wins(shop):
    shop.rows(0.6)
    shop.write(
        "base.yaml", "name: base\nmetrics: [fake/truth]\nscoring: {threshold: 0.7, rollouts: 2}\ngate: {min_score: 1}\n"
    )
    shop.pipeline("include: base.yaml\nmetrics: [fake/act, fake/truth]\nscoring: {threshold: 0.6}\n")
    done = shop.dicast("run", "p.yaml", "--json", "--set", "gate.min_score=0.5")
    assert done.json["name"] == "base"
    assert mean(done) == 0.8
    (verdict,) = shop.dicast("verdicts", "--json").json["verdicts"]
    assert [item["rollout"] for item in verdict["scores"]] == [0, 0, 1, 1]


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("metrics.0.weight=3", (3 * 0.6 + 1) / 4),
        ("metrics[0].weight=3", (3 * 0.6 + 1) / 4),
        ("metrics.gold.weight=3", (0.6 + 3) / 4),
        ("metrics.gold.value=0", 0.3),
        ("metrics.fake/act.weight=0", 1.0),
        ("scoring.threshold=0.61", 0.6),
        ("scoring={threshold: 0.61}", 0.6),
        ("metrics=[fake/act]", 0.6),
    ],
)
def test_set_overrides_by_index_and_by_label(shop, override, expected):
    shop.rows(0.6)
    done = shop.run("metrics: [fake/act, fake/truth: {as: gold}]\n", "--set", override)
    assert mean(done) == pytest.approx(expected)


def test_set_is_repeatable_and_typed(shop):
    shop.rows(0.6)
    text = "metrics: [fake/act, fake/truth: {as: gold}]\n"
    done = shop.run(text, "--set", "name=again", "--set", "metrics.gold.value=0.2", "--set", "gate.min_score=0.3")
    assert (done.code, done.json["name"]) == (0, "again")
    assert mean(done) == pytest.approx(0.4)
    wrong = shop.run(text, "--set", "metrics.gold.value=high")
    assert wrong.code == 2
    assert "high" in wrong.json["error"]["message"]


def test_variables_are_filled_in_from_the_environment(shop, monkeypatch):
    shop.write("there/data.jsonl", [{"output": 1}])
    monkeypatch.setenv("FOLDER", "there")
    shop.pipeline('source: {rows/jsonl: {path: "${FOLDER}/data.jsonl"}}\nname: "in ${FOLDER}"\nmetrics: [fake/act]\n')
    done = shop.dicast("run", "p.yaml", "--json")
    assert (done.code, done.json["name"]) == (0, "in there")


def test_a_definition_is_shared_by_its_bare_name(shop):
    shop.rows(0.5)
    text = "define: {mine: {fake/truth: {value: 0.7}}}\nmetrics: [mine: {weight: 3}, fake/act]\n"
    assert mean(shop.run(text)) == pytest.approx((3 * 0.7 + 0.5) / 4)


def test_metrics_by_tier_overrule_the_class(shop):
    shop.rows(0.2)
    done = shop.run("metrics: {proxy: [fake/truth: {value: 0.4}], truth: [fake/act]}\n")
    assert done.json["score"]["by_tier"] == {"truth": 0, "proxy": 1}
    assert mean(done) == 0.4
    done = shop.run("metrics: {proxy: [fake/truth: {value: 0.5}], truth: [fake/act]}\n")
    assert mean(done) == pytest.approx(0.35)


def test_a_judge_stands_where_a_metric_does(shop):
    shop.rows(0.6)
    done = shop.run("metrics: [fake/act, fake/opinion: {as: opinion, weight: 3}]\n")
    assert done.json["score"]["by_tier"] == {"truth": 1, "proxy": 0}
    (verdict,) = shop.dicast("verdicts", "--json").json["verdicts"]
    assert [(item["metric"], item["tier"]) for item in verdict["scores"]] == [
        ("fake/act", "proxy"),
        ("opinion", "truth"),
    ]
    assert verdict["confidence"] == pytest.approx((1 + 3 * 0.9) / 4)


def test_a_closed_gate_keeps_truth_unasked(shop):
    shop.rows(0.4, 0.5)
    done = shop.run("metrics: [fake/act, fake/truth: {journal: asked}]\n")
    assert (shop / "asked").read_text().split() == ["r1"]
    assert done.json["score"]["by_tier"] == {"truth": 1, "proxy": 1}
    assert mean(done) == pytest.approx((0.4 + 0.75) / 2)


def test_an_audit_looks_and_does_not_touch_the_score(shop):
    shop.rows(*[0.1] * 200)
    text = "metrics: [fake/act, fake/truth: {journal: asked}]\nscoring: {audit: {rate: 0.25, seed: 7}}\n"
    done = shop.run(text)
    assert mean(done) == pytest.approx(0.1)
    assert done.json["score"]["by_tier"] == {"truth": 0, "proxy": 200}
    calls = (shop / "asked").read_text().split()
    assert 25 < len(calls) < 80
    audited = [v for v in shop.dicast("verdicts", "--json").json["verdicts"] if v["truth_reason"] == "audit"]
    assert [verdict["subject_id"] for verdict in audited] == calls
    assert {verdict["propensity"] for verdict in audited} == {0.25}
    shop.run(text, "--set", "executor={dicast/async: {concurrency: 1}}")
    assert (shop / "asked").read_text().split() == calls * 2


@pytest.mark.parametrize(("on_failure", "mean_", "code"), [("fail", None, 3), ("exclude", 1.0, 0), ("zero", 0.5, 0)])
def test_on_failure_decides_what_a_failed_metric_means(shop, on_failure, mean_, code):
    shop.rows("raise")
    text = f"metrics: {{proxy: [fake/truth: {{as: a}}, fake/act: {{on_failure: {on_failure}}}]}}\n"
    done = shop.run(text)
    assert (done.code, done.json["score"]["mean"]) == (code, mean_)
    if on_failure == "exclude":
        (verdict,) = shop.dicast("verdicts", "--json").json["verdicts"]
        assert verdict["skipped"] == [{"metric": "fake/act", "reason": "crashed"}]
        assert done.json["metrics"]["fake/act"]["skipped"] == 1


@pytest.mark.slow
def test_retries_ask_again_after_what_may_pass(shop):
    shop.rows("hang")
    done = shop.run("metrics: [fake/wait: {timeout: 0.05, retries: 2, journal: asked}]\n")
    assert done.json["failures"] == {"timeout": 1}
    assert len((shop / "asked").read_text().split()) == 3


def test_a_range_makes_scores_of_bare_numbers(shop):
    shop.rows("bare")
    assert mean(shop.run("metrics: [fake/act: {range: [0, 2]}]\n")) == 0.25
    done = shop.run("metrics: [fake/act: {range: [1, 2]}]\n")
    assert done.json["failures"] == {"invalid_score": 1}


def test_names_that_collide_in_columns_stay_apart(shop):
    shop.rows(0.5)
    done = shop.run(
        "metrics: [fake/act: {as: a-b}, fake/truth: {as: a_b, value: 1}]\nsinks: [csv/rows: {path: out.csv}]\n"
    )
    assert done.code == 0
    header, row = (shop / "out.csv").read_text().splitlines()
    columns = [name for name in header.split(",") if name.startswith("metric_")]
    assert len(set(columns)) == 2
    assert columns[0] == "metric_a_b"


def test_hostile_text_is_data_everywhere(shop):
    rows = [
        {"id": "=2+2", "output": "@SUM(A1)", "session_id": "+s"},
        {"id": 'a\nb,"c"', "output": "x"},
        {"id": "😀\u2028", "output": "y"},
    ]
    shop.write("data.jsonl", rows)
    done = shop.run("metrics: [proxy/format]\nsinks: [csv/rows: {path: out.csv}, jsonl/events: {path: out.jsonl}]\n")
    assert (done.code, done.json["scored"]) == (0, 3)
    assert "'=2+2" in (shop / "out.csv").read_text()
    ids = [
        json.loads(line)["subject_id"]
        for line in (shop / "out.jsonl").read_text().split("\n")
        if "eval.completed" in line
    ]
    assert ids == [row["id"] for row in rows]
    assert [verdict["subject_id"] for verdict in shop.dicast("verdicts", "--json").json["verdicts"]] == ids
    assert shop.dicast("show", rows[1]["id"], "--json").json["subject"]["output"] == "x"
    assert shop.dicast("verdicts").code == 0
    assert shop.verified()


def test_standard_input_is_a_source(shop):
    shop.pipeline("source: {rows/jsonl: {path: '-'}}\nmetrics: [fake/act]\n")
    (shop / "in").write_text('{"output": 1}\n{"output": 0.5}\n')
    with (shop / "in").open() as given:
        done = shop.process("run", "p.yaml", "--json", stdin=given)
    assert done.json["score"]["mean"] == 0.75


def test_subjects_may_come_from_python(shop):
    subjects = [dicast.Subject("row", "a", output="1"), dicast.Subject("turn", "b", output="0.5", session_id="s")]
    run = dicast.run(
        {"metrics": ["fake/act"], "judges": ["fake/turns_only"], "gate": {"on": "metrics"}}, subjects=subjects
    )
    assert (run.scored, run.score["mean"], run.judges["fake/turns_only"]["scored"]) == (2, 0.75, 1)
    assert [(verdict.subject_kind, verdict.judge) for verdict in run.verdicts] == [
        ("row", "metrics"), ("turn", "metrics"), ("turn", "fake/turns_only")
    ]  # fmt: skip


def test_python_raises_what_the_command_line_prints(shop):
    shop.rows(1)
    with pytest.raises(dicast.PluginError, match="did you mean 'fake/act'"):
        dicast.run("source: {rows/jsonl: {path: data.jsonl}}\nmetrics: [fake/atc]\n")
    with pytest.raises(dicast.ConfigError, match="did you mean 'metrics'"):
        dicast.run("source: {rows/jsonl: {path: data.jsonl}}\nmetrcs: [fake/act]\n")
    with pytest.raises(dicast.RequestError, match="no subjects"):
        dicast.run({"metrics": ["fake/act"]}, subjects=[])


async def _nested(pipeline):
    return await dicast.arun(pipeline), dicast.run(pipeline)


def test_python_runs_within_a_running_loop(shop):
    import asyncio

    shop.rows(1)
    awaited, blocking = asyncio.run(_nested(shop.pipeline("metrics: [fake/wait]\n")))
    assert awaited.score == blocking.score


@pytest.mark.parametrize(("weights", "code"), [((0,), 2), ((0, 0), 2), ((0, 1), 0)])
def test_metrics_that_all_have_weight_0_are_an_error_of_the_file(shop, weights, code):
    shop.rows(1)
    items = ", ".join(f"fake/act: {{as: m{place}, weight: {weight}}}" for place, weight in enumerate(weights))
    done = shop.dicast("check", shop.pipeline(f"metrics: [{items}]\n").name, "--json")
    assert (done.code, done.json["ok"]) == (code, not code)
    assert all("every metric has weight 0 (m0" in entry["message"] for entry in done.json["errors"])
