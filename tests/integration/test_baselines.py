"""Baselines: runs under names that stay, and as files that another machine reads and verifies."""

from __future__ import annotations

import json
import shutil
import sys

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dicast
from dicast._kernel.cli import main
from dicast._kernel.records.portable import portable, read_portable
from dicast._kernel.values import Head, Results

PIPELINE = """
name: answers
source: {rows/jsonl: {path: rows.jsonl}}
metrics: [check/contains: {value: Ankara}, proxy/format]
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [{"id": str(number), "output": text} for number, text in enumerate(("Ankara", "Bonn", "in Ankara", ""))]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (tmp_path / "answers.yaml").write_text(PIPELINE)
    return tmp_path


@pytest.fixture
def say(capfd):
    """Run ``dicast …``; return its exit code, its output and its errors; a document with --json."""

    def say(*arguments):
        capfd.readouterr()
        code = main([*map(str, arguments)])
        out, err = capfd.readouterr()
        return code, json.loads(out) if "--json" in arguments else out, err

    return say


def run(folder, **changes):
    return dicast.run(folder / "answers.yaml", overrides=changes)


def compared(message):
    return message["baseline"]["run_id"]


def test_a_saved_name_stands_for_its_run_until_it_moves(folder, say):
    first = run(folder).run_id
    code, saved, _ = say("baseline", "save", "main", "--json")
    assert (code, saved) == (0, {"name": "main", "run_id": first, "pipeline": "answers", "file": None})
    second = run(folder, baseline={"run": "main", "compare": ["stats/paired"]})
    assert second.baseline["run_id"] == first
    assert second.comparison["stats/paired"]["criteria"]["check/contains"]["n_pairs"] == 4  # the empty output, too
    say("baseline", "save", "main", second.run_id[-8:])
    assert run(folder, baseline={"run": "main"}).baseline["run_id"] == second.run_id
    listed = say("baseline", "list", "--json")[1]["baselines"]
    assert [(item["name"], item["run_id"], item["pipeline"]) for item in listed] == [("main", second.run_id, "answers")]


def test_names_are_events_and_removing_one_is_an_event_too(folder, say):
    run(folder)
    say("baseline", "save", "main")
    say("baseline", "save", "release-1.0")
    assert say("baseline", "rm", "main")[0] == 0
    assert [event["name"] for event in say("baseline", "list", "--json")[1]["baselines"]] == ["release-1.0"]
    events = [json.loads(line) for line in say("ledger", "export")[1].splitlines()]
    reports = [(event["type"], event["payload"]["name"]) for event in events if event["type"].startswith("baseline.")]
    assert reports == [("baseline.saved", "main"), ("baseline.saved", "release-1.0"), ("baseline.removed", "main")]
    assert say("ledger", "verify", "--json")[1]["ok"]


def test_a_name_that_is_not_there_is_a_wrong_request_with_the_nearest(folder, say):
    run(folder)
    say("baseline", "save", "main")
    for arguments in (
        ("baseline", "rm", "mian"),
        ("run", "answers.yaml", "--set", "baseline={run: mian}"),
        ("compare", "mian", "last"),
    ):
        code, _, message = say(*arguments)
        assert code == 2
        assert "did you mean 'main'?" in message


@pytest.mark.parametrize("name", ["last", "01M88CYJBC0DCMBCG78TR7DMW0", "", "../x", "a b", "-x", "x" * 65])
def test_a_name_that_would_mean_something_else_is_refused(folder, say, name):
    run(folder)
    code, _, message = say("baseline", "save", "--", name)
    assert code == 2
    assert "is no valid name for a baseline" in message


def test_a_trace_cannot_save_a_baseline(folder, say):
    """An event of that type in a trace is the trace's own."""
    event = {"type": "baseline.saved", "time": "2026-01-01T00:00:00Z", "session_id": "s", "turn_id": "s/1"}
    done = {**event, "type": "turn.completed", "payload": {"stop_reason": "end_turn", "tool_call_count": 0}}
    lines = [{**event, "payload": {"name": "main"}}, done]
    (folder / "trace.jsonl").write_text("\n".join(map(json.dumps, lines)))
    dicast.run({"source": {"traces/events": {"path": "trace.jsonl"}}, "judges": ["heuristic/turn"]})
    assert say("baseline", "list", "--json")[1] == {"baselines": []}


def test_a_file_is_compared_on_another_machine(folder, say, tmp_path_factory, monkeypatch):
    first = run(folder)
    assert say("baseline", "save", "main", "--file", "out/main.json")[0] == 0
    other = tmp_path_factory.mktemp("other")
    for name in ("rows.jsonl", "answers.yaml", "out/main.json"):
        shutil.copy(folder / name, other)
    monkeypatch.chdir(other)
    second = run(other, baseline={"run": "main.json", "compare": ["stats/paired"]})
    assert (second.baseline["run_id"], second.baseline["differs"]) == (first.run_id, [])
    code, output, _ = say("compare", "main.json", "last", "--json")
    assert (code, output["comparable"], output["a"]["run_id"]) == (0, True, first.run_id)
    assert output["comparisons"]["stats/paired"]["criteria"]["check/contains"]["mean_difference"] == 0.0
    code, _, message = say("compare", "main.json", second.run_id, "--json")
    assert code == 0
    document = json.loads((other / "main.json").read_text())
    assert document["document"]["score"]["mean"] == first.score["mean"]
    assert "Ankara" not in (other / "main.json").read_text()


def test_a_files_head_is_in_the_ledger_that_it_comes_from(folder, say):
    run(folder)
    say("baseline", "save", "main", "--file", "main.json")
    head = json.loads((folder / "main.json").read_text())["ledger"]["head"]
    run(folder)
    assert say("ledger", "verify", "--head", head["digest"], "--json")[1]["ok"]


def test_another_pipeline_is_not_comparable_with_a_file(folder, say):
    run(folder)
    say("baseline", "save", "main", "--file", "main.json")
    run(folder, **{"metrics.check/contains.value": "Bonn"})
    code, _, message = say("compare", "main.json", "last")
    assert code == 2
    assert "metrics[check/contains]" in message


@pytest.mark.parametrize("edit", [("0.5", "0.6"), ('"subject_id":"1"', '"subject_id":"7"'), ("answers", "other")])
def test_a_file_that_was_edited_by_hand_is_refused_by_name(folder, say, edit):
    run(folder)
    say("baseline", "save", "main", "--file", "main.json")
    text = (folder / "main.json").read_text()
    assert edit[0] in text
    (folder / "main.json").write_text(text.replace(*edit, 1))
    for arguments in (
        ("run", "answers.yaml", "--set", "baseline={run: main.json}"),
        ("compare", "main.json", "last"),
    ):
        code, out, message = say(*arguments)
        assert (code, out) == (2, "")
        assert "main.json" in message
        assert "was changed after it was saved" in message


@pytest.mark.parametrize("name", ["answers.yaml", "rows.jsonl", ".dicast/ledger.db"])
def test_a_file_that_is_no_baseline_is_not_replaced(folder, say, name):
    run(folder)
    before = (folder / name).read_bytes()
    code, _, message = say("baseline", "save", "main", "--file", name)
    assert code == 2
    assert f"cannot write {name}: it " in message
    assert (folder / name).read_bytes() == before
    assert say("baseline", "list", "--json")[1] == {"baselines": []}
    for _ in range(2):
        assert say("baseline", "save", "main", "--file", "main.json")[0] == 0


def test_a_file_may_be_laid_out_anew(folder, say):
    """Its digest covers its content, not its bytes."""
    run(folder)
    say("baseline", "save", "main", "--file", "main.json")
    document = json.loads((folder / "main.json").read_text())
    (folder / "main.json").write_text(json.dumps(dict(sorted(document.items())), indent=3))
    assert say("compare", "main.json", "last", "--allow-incomparable")[0] == 2  # it is the same run
    run(folder)
    assert say("compare", "main.json", "last")[0] == 0


def test_a_file_may_begin_with_a_byte_order_mark(folder, say):
    run(folder)
    say("baseline", "save", "main", "--file", "main.json")
    (folder / "main.json").write_bytes(b"\xef\xbb\xbf" + (folder / "main.json").read_bytes())
    run(folder)
    assert say("compare", "main.json", "last")[0] == 0


def test_a_score_that_is_a_text_or_missing_is_one_in_the_file_too(tmp_path):
    scores = ["0.9", " -1e-3 ", None, "n/a", "1_000", True]
    rows = [(str(place), {"scores": {"a": score}, "why": "text"}) for place, score in enumerate(scores)]
    result = Results(
        "RUN", "name", lambda: iter((i, {"subject_kind": "row", "row": {}, "metrics": m}) for i, m in rows)
    )
    (tmp_path / "b.json").write_bytes(portable(result, {}, Head(1, "0" * 64)))
    read = [record["metrics"] for _, record in read_portable(tmp_path / "b.json").records()]
    replies = [0.9, -1e-3, None, ..., ..., True]
    assert read == [{} if score is ... else {"scores": {"a": score}} for score in replies]


def test_a_file_compares_as_its_run_does_where_scores_are_texts(folder, say):
    reply = (
        "import json, sys; said = json.dumps({'score': json.load(sys.stdin)['score']}); "
        "print(json.dumps({'responses': {'a': {'content': said}}}))"
    )
    for name, scores in (("one", ("0.9", "0.8", 0.5)), ("other", ("0.4", "0.6", 0.5))):
        rows = [{"id": str(place), "score": score} for place, score in enumerate(scores)]
        (folder / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)))
        result = {
            "name": name,
            "source": {"rows/jsonl": {"path": str(folder / f"{name}.jsonl")}},
            "task": {"task/command": {"command": [sys.executable, "-c", reply]}},
            "extractors": [{"extract/json_path": {"path": "$.score", "into": "scores.a", "criterion": "a"}}],
        }
        dicast.run(result)
    say("baseline", "save", "kept", "one", "--file", "kept.json")
    output = [say("compare", item, "other", "--allow-incomparable", "--json")[1] for item in ("one", "kept.json")]
    assert output[0]["comparisons"]["stats/paired"]["criteria"]["a"]["n_pairs"] == 3
    assert output[0]["comparisons"] == output[1]["comparisons"]


def test_a_file_of_another_version_says_so(folder, say):
    run(folder)
    (folder / "new.json").write_text('{"format": "dicast.baseline/2", "rows": []}')
    code, _, message = say("compare", "new.json", "last")
    assert code == 2
    assert "'dicast.baseline/2'" in message


def test_a_run_that_has_not_ended_cannot_be_saved(folder, say):
    code, _, message = say("baseline", "save", "main")
    assert code == 2
    run(folder)
    code, _, message = say("baseline", "save", "main", "rows.jsonl")
    assert code == 2


numbers = st.one_of(st.booleans(), st.integers(-(2**53), 2**53), st.floats(allow_nan=False, allow_infinity=False))
nested = st.recursive(
    numbers, lambda one: st.dictionaries(st.text(max_size=5), one, min_size=1, max_size=3), max_leaves=5
)
metrics = st.dictionaries(st.text(max_size=5), st.none() | nested, max_size=4)


@given(rows=st.lists(st.tuples(st.text(min_size=1, max_size=5), metrics), max_size=5))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_is_written_is_read_back(tmp_path, rows):
    result = Results("RUN", "name", lambda: iter([(i, {"subject_kind": "row", "row": {"id": i}, "metrics": m}) for i, m in rows]), {"a": "b"})  # fmt: skip
    path = tmp_path / "b.json"
    path.write_bytes(portable(result, {}, Head(1, "0" * 64)))
    read = read_portable(path)
    assert [(id_, record["metrics"]) for id_, record in read.records()] == rows
    assert (read.run_id, read.name, read.differs(result)) == ("RUN", "name", [])


def test_a_file_has_no_message_of_a_failure_which_may_quote_a_row(folder, say):
    failing = {"metrics": ["proxy/format", "diff/match"], "gate.min_coverage": 0}
    (folder / "rows.jsonl").write_text(
        '{"id": "1", "output": "Ankara", "reference": "Ankara"}\n{"id": "2", "output": "Bonn"}'
    )
    done = run(folder, **failing)
    assert "reference" in done.failed_subjects[0]["error_message"]
    assert say("baseline", "save", "main", "--file", "main.json")[0] == 0
    text = (folder / "main.json").read_text()
    assert json.loads(text)["document"]["failed_subjects"] == [
        {"subject_kind": "row", "subject_id": "2", "judge": "metrics", "failure_mode": "missing_input"}
    ]
    assert "error_message" not in text
    assert run(folder, **failing, baseline={"run": "main.json", "compare": ["stats/paired"]}).comparison is not None


def test_a_gate_compares_with_a_file_that_has_digests_and_no_texts(folder, say):
    (folder / "rows.jsonl").write_text(
        "\n".join(json.dumps({"id": str(n), "input": f"asks {n}", "output": "in Ankara"}) for n in range(30))
    )
    run(folder)
    assert say("baseline", "save", "main", "--file", "main.json")[0] == 0
    text = (folder / "main.json").read_text()
    assert "asks" not in text
    assert "in Ankara" not in text
    (folder / "answers.yaml").write_text(
        PIPELINE + "gate: {on: check/contains, baseline: main.json, max_drop: 0.02, bound: interval}\n"
    )
    (folder / "other.db").unlink(missing_ok=True)
    same = run(folder, ledger={"ledger/sqlite": {"path": "other.db"}})
    assert (same.gate["passed"], same.gate["clauses"][-1]["value"]) == (True, 0)
    rows = [json.dumps({"id": str(n), "input": f"asks {n}", "output": "in Bonn"}) for n in range(30)]
    (folder / "rows.jsonl").write_text("\n".join(rows))
    worse = run(folder, ledger={"ledger/sqlite": {"path": "other.db"}})
    assert (worse.gate["passed"], worse.gate["clauses"][-1]["value"]) == (False, -1)
    (folder / "rows.jsonl").write_text("\n".join(rows).replace("asks 7", "begs 7").replace("asks 8", "begs 8"))
    other = run(folder, ledger={"ledger/sqlite": {"path": "other.db"}})
    assert other.exit_code == 3
    assert "the input or the reference of 2 subjects, such as '7'" in other.gate["reasons"][0]


def test_a_run_that_was_stopped_early_is_saved_with_a_warning(folder, say):
    stop = (
        "early_stop: [stats/threshold: {metric: scores.check/contains, threshold: 0.5, comparison: lt, min_rows: 1}]\n"
    )
    (folder / "answers.yaml").write_text(PIPELINE + stop)
    stopped = run(folder)
    for name in ((), ("last",), ("answers",), (stopped.run_id,)):
        code, _, errors = say("baseline", "save", "main", *name)
        assert code == 0
        warning = f"warning: run {stopped.run_id} was stopped before its end (early_stop), so no gate compares with it"
        assert " ".join(errors.split()).startswith(warning)
    assert "early_stop" in say("baseline", "save", "main", stopped.run_id[-8:], "--json")[1]["warning"]


def test_an_interrupted_run_is_named_if_an_older_run_is_saved(folder, say, monkeypatch):
    old = run(folder)

    def interrupt(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("dicast_check.check.Check.score", interrupt)
        with pytest.raises((KeyboardInterrupt, dicast.DicastError)):
            run(folder, name="live")
    (newest,) = [entry["run_id"] for entry in say("runs", "--name", "live", "--json")[1]["runs"]]
    code, entry, errors = say("baseline", "save", "main", "--json")
    assert (code, entry["run_id"]) == (0, old.run_id)
    assert entry["warning"].startswith(f"the newest run, {newest} (live), was not completed")
    code, _, errors = say("baseline", "save", "main")
    assert " ".join(errors.split()).startswith(f"warning: {entry['warning']}")
    assert "warning" not in say("baseline", "save", "main", old.run_id, "--json")[1]


def test_the_last_run_of_several_pipelines_is_saved_with_a_warning_and_a_named_pipeline_without(folder, say):
    (folder / "nightly.yaml").write_text(PIPELINE.replace("name: answers", "name: nightly"))
    for file in ("answers.yaml", "nightly.yaml"):
        say("run", file)
    _, entry, _ = say("baseline", "save", "main", "--json")
    assert (entry["pipeline"], "name the pipeline, as in dicast baseline save main nightly" in entry["warning"]) == (
        "nightly",
        True,
    )
    _, entry, _ = say("baseline", "save", "answers-main", "answers", "--json")
    assert (entry["pipeline"], "warning" in entry) == ("answers", False)


def test_a_name_that_moves_to_another_pipeline_is_named_with_both(folder, say):
    (folder / "nightly.yaml").write_text(PIPELINE.replace("name: answers", "name: nightly"))
    for file in ("answers.yaml", "nightly.yaml"):
        say("run", file)
    assert "warning" not in say("baseline", "save", "main", "answers", "--json")[1]
    assert "warning" not in say("baseline", "save", "main", "answers", "--json")[1]
    warning = say("baseline", "save", "main", "nightly", "--json")[1]["warning"]
    assert warning.startswith("main was a run of answers, and is a run of nightly from now on")
    assert warning.endswith("as in dicast baseline save answers-main answers")


def test_an_interrupted_run_of_a_named_pipeline_is_named(folder, say, monkeypatch):
    old = run(folder)
    run(folder, name="other")

    def interrupt(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("dicast_check.check.Check.score", interrupt)
        with pytest.raises((KeyboardInterrupt, dicast.DicastError)):
            run(folder)
    _, entry, _ = say("baseline", "save", "main", old.name, "--json")
    assert entry["run_id"] == old.run_id
    assert "was not completed, so the run before it was saved" in entry["warning"]
    assert "warning" not in say("baseline", "save", "of-other", "other", "--json")[1]
