"""``dicast optimize SPEC``: gepa's loop over evaluators, pipelines and a model on loopback."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from decimal import Decimal

import pytest
from click.testing import CliRunner

from dicast import ConfigError, Query, read_ledger
from dicast_optimize.cli import optimize

WORDS = ("alpha", "beta", "gamma", "alpha")

SPLITS = {"dataset": WORDS, "valset": WORDS, "test": ("gamma", "beta", "delta")}


def splits(service):
    return [payload["example"]["split"] for payload in service.requests if "example" in payload]


@pytest.mark.slow
def test_the_winner_is_chosen_on_the_valset_and_its_gain_reported_on_the_test_split(folder, evaluator, model):
    folder.data(**SPLITS)
    code, report = folder.dicast(folder.spec(), "--output", "best.txt")
    assert code == 0
    assert report["best"] == {"candidate": "alpha beta gamma", "score": 1.0, "on": "valset"}
    assert (folder.path / "best.txt").read_text() == "alpha beta gamma"
    assert report["score_summary"]["initial"] == 0.2
    assert report["score_summary"]["delta_best_vs_initial"] == 0.8
    test = report["test"]
    assert test["score"] == pytest.approx(2.2 / 3)
    assert test["ci_low"] < test["score"] < test["ci_high"] == 1.0
    assert test["seed"]["score"] == pytest.approx(0.2)
    assert test["gain"]["value"] == pytest.approx(1.6 / 3)
    assert test["gain"]["ci_low"] < test["gain"]["value"] < test["gain"]["ci_high"] <= 1.0
    assert report["stopped"]["reason"] == "perfect"
    assert report["calls"] == len(evaluator.requests) - report["test_calls"] - 1  # one is the preflight
    requests = splits(evaluator)
    assert requests.count("test") == report["test_calls"] == 6
    assert "test" not in requests[: -report["test_calls"]]
    assert len(model.prompts) == report["reflections"] == 3
    assert "it lacks" in model.prompts[0]
    assert "delta" not in "".join(model.prompts)


@pytest.mark.slow
def test_money_is_what_the_ledger_settled(folder, model):
    folder.data(dataset=WORDS)
    _, report = folder.dicast(folder.spec())
    with_id = read_ledger(
        folder.path / report["ledger"]["path"],
        lambda ledger: [event.event.payload for event in ledger.read(Query(types=("spend.settled",)))],
    )
    spent = sum(Decimal(event["amount"]) for event in with_id)
    assert Decimal(report["cost"]["usd"]) == spent == Decimal("0.11") * len(model.prompts)


@pytest.mark.slow
def test_the_budget_in_money_holds_over_reflections_and_resumed_runs(folder, model):
    folder.data(dataset=WORDS)
    spec = folder.spec(optimization={"money": "1.00 usd", "run_dir": "run", "early_stop": False, "budget": 500})
    model.replies = ["nothing at all"]
    code, report = folder.dicast(spec)
    assert (code, report["stopped"]["reason"]) == (3, "money"), report
    assert Decimal(report["cost"]["usd"]) <= 1
    bought = len(model.prompts)
    assert bought > 0
    code, again = folder.dicast(spec, "--resume")
    assert (code, again["stopped"]["reason"], again["cost"]) == (3, "money", report["cost"])
    assert len(model.prompts) == bought
    folder.spec(optimization={"money": "9.00 usd", "run_dir": "run", "early_stop": False, "budget": 30})
    code, second = folder.dicast(spec, "--resume")
    assert (code, second["resumed"]) == (0, True)


@pytest.mark.parametrize("budget", [4, 11, 23])
def test_no_more_calls_are_made_than_the_budget_has(folder, evaluator, model, budget):
    folder.data(dataset=WORDS)
    model.replies = ["no better"]
    code, report = folder.dicast(folder.spec(optimization={"early_stop": False}), "--budget", str(budget))
    assert (code, report["stopped"]["reason"]) == (0, "budget")
    assert report["calls"] == len(evaluator.requests) - 1 <= budget
    assert report["best"]["candidate"] == "nothing"


def test_a_plateau_ends_the_search(folder, model):
    folder.data(dataset=WORDS)
    model.replies = ["no better"]
    code, report = folder.dicast(folder.spec(optimization={"budget": 500, "early_stop_window": 3}))
    assert (code, report["stopped"]["reason"], report["early_stopped"]) == (0, "plateau", True)
    assert report["reflections"] == 3


def test_a_resumed_optimization_buys_nothing_again_and_goes_on(folder, evaluator, model):
    folder.data(**SPLITS)
    spec = folder.spec(optimization={"run_dir": "run", "budget": 12})
    _, first = folder.dicast(spec)
    assert first["stopped"]["reason"] == "budget"
    evaluator.requests.clear()
    with (folder.path / "run" / "journal.jsonl").open("ab") as file:
        file.write(b'{"what": "evalua')  # as a kill leaves it
    folder.spec(optimization={"run_dir": "run", "budget": 60})
    code, report = folder.dicast(spec, "--resume")
    assert (code, report["resumed"], report["best"]["score"]) == (0, True, 1.0)
    assert len(model.prompts) == report["reflections"] == 3
    assert len(evaluator.requests) - 1 == report["calls"] + report["test_calls"] - first["calls"] - first["test_calls"]
    evaluator.requests.clear()
    assert folder.dicast(spec, "--resume")[1]["best"] == report["best"]
    assert len(evaluator.requests) == 1  # the preflight


def test_a_run_folder_is_not_mixed_up_with_another_optimization(folder):
    folder.data(dataset=WORDS)
    spec = folder.spec(optimization={"run_dir": "run", "budget": 12})
    with pytest.raises(ConfigError, match="there is no optimization"):
        folder.dicast(spec, "--resume")
    folder.dicast(spec)
    with pytest.raises(ConfigError, match="continue it with --resume"):
        folder.dicast(spec)
    folder.data(dataset=WORDS[:2])
    folder.spec(optimization={"run_dir": "run", "budget": 12, "seed": "other"})
    with pytest.raises(ConfigError, match="started with another seed, another dataset"):
        folder.dicast(spec, "--resume")


def test_without_a_run_dir_each_optimization_has_a_folder_of_its_own(folder):
    folder.data(dataset=WORDS)
    spec = folder.spec(optimization={"budget": 4})
    first, second = folder.dicast(spec)[1]["run_dir"], folder.dicast(spec)[1]["run_dir"]
    assert first != second
    assert folder.dicast(spec, "--resume")[1]["run_dir"] == second


def test_a_cache_answers_what_was_asked_before_also_for_another_optimization(folder, evaluator):
    folder.data(dataset=WORDS)
    cached = {"cache": True, "run_dir": "one"}
    _, report = folder.dicast(folder.spec(optimization=cached))
    pairs = [(payload["candidate"], payload["example"]["word"]) for payload in evaluator.requests[1:]]
    assert len(pairs) == report["calls"]
    assert all(pairs.count(pair) <= WORDS.count(pair[1]) for pair in pairs)
    evaluator.requests.clear()
    _, second = folder.dicast(folder.spec(optimization={**cached, "run_dir": "two", "cache_from": "one"}))
    assert (second["calls"], second["best"]) == (0, report["best"])
    assert len(evaluator.requests) == 1  # the preflight
    with pytest.raises(ConfigError, match="by another evaluator"):
        folder.dicast(
            folder.spec(
                optimization={**cached, "run_dir": "three", "cache_from": "one"},
                evaluator={"timeout": 7, "range": [0, 1]},
            )
        )


def test_a_candidate_with_a_failure_has_no_score_and_never_wins(folder, evaluator, model):
    folder.data(dataset=WORDS)
    good = evaluator.answer
    evaluator.answer = lambda request: (500, {}) if "gamma" in request["candidate"] else good(request)
    model.replies = ["alpha", "alpha beta gamma"]
    _, report = folder.dicast(folder.spec(optimization={"budget": 40}))
    assert report["best"]["candidate"] == "alpha"
    assert "HTTP 500" in model.prompts[-1] or report["unscored_candidates"] == 1


def test_a_seed_that_cannot_be_evaluated_ends_it(folder, evaluator):
    folder.data(dataset=WORDS)
    good = evaluator.answer
    evaluator.answer = lambda request: good(request) if request["candidate"].startswith("__") else {"score": "high"}
    code, report = folder.dicast(folder.spec())
    assert (code, report["best"], report["stopped"]["reason"]) == (3, None, "seed_failed")
    assert "must be numeric" in report["stopped"]["message"]


def test_without_data_a_candidate_is_evaluated_alone(folder, evaluator):
    code, report = folder.dicast(folder.spec(optimization={"task_model": "small"}))
    assert (code, report["best"]["on"], report["test"]) == (0, "candidate", None)
    assert evaluator.requests[1] == {"_protocol_version": 2, "candidate": "nothing", "task_model": "small"}


def test_a_range_makes_scores_of_numbers_on_any_scale(folder, evaluator):
    folder.data(dataset=WORDS)
    evaluator.answer = lambda request: {
        "score": 50.0 if request.get("example", WORDS[:1])["word"] in request["candidate"] else -50
    }
    evaluator.answer = lambda request: {"score": 50 if "beta" in request["candidate"] else -25}
    _, report = folder.dicast(folder.spec(evaluator={"score_range": "any", "range": [-50, 50]}))
    assert (report["score_summary"]["initial"], report["best"]["score"]) == (0.25, 1.0)


def test_a_command_in_bash_is_an_evaluator_and_paths_are_relative_to_the_spec(folder, monkeypatch):
    folder.data(dataset=("gamma",), test=("gamma",))
    (folder.path / "eval").mkdir()
    (folder.path / "eval" / "judge.sh").write_text(
        'read -r line; case "$line" in *\'"candidate":"\'*gamma*\'"\'*) echo \'{"score": 1}\';; *) echo \'{"score": 0}\';; esac\n'
    )
    (folder.path / "seed.txt").write_text("none")
    del folder.sections["optimization"]["seed"], folder.sections["evaluator"]["url"]
    spec = folder.spec(
        optimization={"seed_file": "seed.txt", "run_dir": "here"},
        evaluator={"command": ["bash", "judge.sh"], "cwd": "eval"},
    )
    monkeypatch.chdir("/")
    code, report = folder.dicast(str(folder.path / spec))
    assert (code, report["run_dir"]) == (0, str(folder.path / "here"))


def test_a_prompt_is_optimized_through_a_pipeline_whose_task_uses_it(folder, model):
    folder.data(dataset=("alpha", "beta"))
    task = {"prompt/chat": {"model": model.component, "user": "{{ candidate }} / {{ word }}"}}
    pipeline = {"task": task, "metrics": [{"proxy/keywords": {"required": ["gamma"]}}], "scoring": {"threshold": 0}}
    (folder.path / "p.yaml").write_text(json.dumps(pipeline))
    del folder.sections["evaluator"]["url"]
    model.replies = ["it says: gamma"]
    code, report = folder.dicast(folder.spec(evaluator={"pipeline": "p.yaml"}))
    assert (code, report["best"]["score"], report["stopped"]["reason"]) == (0, 1.0, "perfect")
    assert sorted(model.prompts) == ["nothing / alpha", "nothing / beta"]
    assert Decimal(report["cost"]["usd"]) == Decimal("0.22")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_search_reports_and_is_taken_up(folder, evaluator, number):
    folder.data(dataset=WORDS)
    spec = folder.spec(optimization={"run_dir": "run"})
    good, come, go = evaluator.answer, threading.Event(), threading.Event()

    def wait(request):
        if "alpha" in request["candidate"]:
            come.set()
            go.wait(300)
        return good(request)

    evaluator.answer = wait
    command = [sys.executable, "-m", "dicast", "optimize", spec, "--json"]
    # as a script's background job has it
    command = ["sh", "-c", "trap '' INT; exec \"$@\"", "sh", *command]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert come.wait(200)
        process.send_signal(number)
        report = json.loads(process.communicate(timeout=200)[0])
    go.set()
    assert (process.returncode, report["stopped"]["reason"], report["best"]["score"]) == (130, "interrupted", 0.2)
    assert report["cost"]["usd"] == "0.11"
    evaluator.answer = good
    code, report = folder.dicast(spec, "--resume")
    assert (code, report["best"]["score"], report["cost"]["usd"]) == (0, 1.0, "0.33")


def test_a_spec_in_toml_and_options_that_win_over_it(folder, evaluator, model, monkeypatch):
    folder.data(dataset=WORDS)
    (folder.path / "other.txt").write_text("another text")
    options = model.component["openai/chat"]
    lines = [
        f'[optimization]\nseed = "x"\nbudget = 500\n[evaluator]\nurl = "{evaluator.url}"',
        f'[model.reflection."openai/chat"]\nbase_url = "{options["base_url"]}"\nmodel = "m"\nprice = "free"',
    ]
    (folder.path / "below").mkdir()
    (folder.path / "below" / "spec.toml").write_text("\n".join(lines))
    words = ("--dataset", "dataset.jsonl", "--seed-file", "other.txt", "--budget", "4", "--no-early-stop")
    code, report = folder.dicast("below/spec.toml", *words)
    assert (code, report["calls"], report["best"]["candidate"]) == (0, 4, "another text")
    with pytest.raises(ConfigError, match="valset requires dataset"):
        folder.dicast("below/spec.toml", "--valset", "dataset.jsonl")


def test_nothing_is_asked_where_judging_is_switched_off(folder, evaluator, model, monkeypatch):
    monkeypatch.setenv("DICAST_DISABLED", "1")
    code, report = folder.dicast(folder.spec())
    assert (code, report["best"], report["stopped"]["reason"]) == (0, None, "disabled")
    assert not evaluator.requests + model.prompts


def test_the_label_that_counts_is_one_that_there_is(folder):
    folder.data(dataset=WORDS)
    del folder.sections["evaluator"]["url"]
    metrics = [{"proxy/keywords": {"as": "words", "required": ["nothing"]}}]
    judged = {"metrics": metrics, "on": "metrics"}
    assert folder.dicast(folder.spec(evaluator=judged))[1]["best"]["score"] == 1.0
    with pytest.raises(ConfigError, match=r"spec\.yaml:\d+:3: .* evaluator.on: metrics, did you mean 'metrics'"):
        folder.dicast(folder.spec(evaluator={**judged, "on": "metric"}))


def test_a_model_that_cannot_be_reached_stops_the_search_and_leaves_the_test_split(folder, evaluator):
    folder.data(**SPLITS)
    dead = {"openai/chat": {"base_url": "http://127.0.0.1:9/v1", "model": "m", "price": "free", "retries": 0}}
    code, report = folder.dicast(folder.spec(model={"reflection": dead}))
    assert (code, report["stopped"]["reason"], report["test"]) == (3, "reflection_failed", None)
    assert "Connection refused" in report["stopped"]["message"]
    assert report["best"]["candidate"] == "nothing"
    assert "test" not in splits(evaluator)


def test_what_cannot_be_opened_is_said_at_once_at_its_place_and_nothing_is_kept(folder):
    del folder.sections["evaluator"]["url"]
    spec = folder.spec(
        optimization={"money": "5 eur", "run_dir": "run"},
        evaluator={"command": ["no-such-program"]},
        model={"reflection": {"openai/chat": {"base_ul": "x"}}},
    )
    with pytest.raises(ConfigError) as caught:
        folder.dicast(spec)
    messages = [(problem.file, problem.path, problem.message) for problem in caught.value.problems]
    assert messages.count((spec, "optimization.money", "unknown unit 'eur': a cost is in usd or msat")) == 1
    assert any(path == "model" and "unknown option 'base_ul'" in message for _, path, message in messages)
    assert not (folder.path / "run").exists()
    with pytest.raises(ConfigError, match=r"spec\.yaml:\d+:1: evaluator preflight failed .*no-such-program.*evaluator"):
        folder.dicast(folder.spec(optimization={"money": "5 usd"}, evaluator={"command": ["no-such-program"]}))


def test_a_text_of_people_is_printed_without_json(folder):
    folder.data(**SPLITS)
    done = subprocess.run(
        [sys.executable, "-m", "dicast", "optimize", folder.spec()], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("spec: ")
    assert "gain over the seed: 0.5333 [" in done.stdout
    assert done.stdout.endswith("\nalpha beta gamma\n")
    assert "candidate 1: 0.2000 on valset" in done.stderr


@pytest.mark.slow
def test_failed_evaluations_are_counted_and_shown(folder, evaluator, model):
    folder.data(dataset=WORDS)
    evaluator.answer = lambda request: {"score": 7 if "alpha" in request["candidate"] else 0.5}
    code, report = folder.dicast(folder.spec(optimization={"budget": 30}))
    failures = report["failed_evaluations"]
    assert failures["failed"] > 0
    assert failures["kinds"] == {"invalid_score": failures["failed"]}
    assert failures["of"] == report["calls"]
    assert "between 0.0 and 1.0, got 7" in failures["messages"][0]
    assert report["evaluator_failure_signal"] == {"kind": "failed_evaluations", **failures}
    assert report["unscored_candidates"] == 3  # each proposal was tried, and none has a score
    assert (code, report["best"]["candidate"]) == (3, "nothing")
    done = CliRunner().invoke(optimize, ["run", "spec.yaml"], standalone_mode=False)
    assert f"(invalid_score {failures['failed']})" in done.stdout


def test_raw_scores_drive_the_search_without_a_range(folder, evaluator, model):
    folder.data(**SPLITS)
    evaluator.answer = lambda request: {"score": -100.0 + 10 * len(request["candidate"].split())}
    code, report = folder.dicast(folder.spec(evaluator={"score_range": "any"}, optimization={"budget": 40}))
    assert (code, report["scale"]) == (0, "raw")
    assert report["best"] == {"candidate": "alpha beta gamma", "score": -70.0, "on": "valset"}
    assert report["score_summary"]["delta_best_vs_initial"] == 20.0
    assert (report["test"]["scale"], report["test"]["score"], report["test"]["gain"]["value"]) == ("raw", -70.0, 20.0)
    assert report["plateau_detected"] is None
    assert report["stopped"]["reason"] == "budget"


@pytest.mark.parametrize("target", ["spec.yaml", "dataset.jsonl", "link.jsonl", "hard.jsonl"])
def test_an_output_that_is_an_input_is_refused(folder, target):
    folder.data(dataset=WORDS)
    (folder.path / "link.jsonl").symlink_to("dataset.jsonl")
    (folder.path / "hard.jsonl").hardlink_to(folder.path / "dataset.jsonl")
    spec = folder.spec()
    before = (folder.path / target).read_bytes()
    with pytest.raises(ConfigError, match="the command reads this file as .*Name another file to write"):
        folder.dicast(spec, "--output", target)
    assert (folder.path / target).read_bytes() == before


def test_an_early_stop_on_raw_scores_names_its_threshold(folder):
    spec = folder.spec(evaluator={"score_range": "any"}, optimization={"early_stop": True})
    with pytest.raises(ConfigError, match="no default threshold for raw scores"):
        folder.dicast(spec)
