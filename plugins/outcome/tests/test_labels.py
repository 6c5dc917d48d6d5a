from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from dicast import DataError
from dicast.testing import run_pipeline, sample
from dicast_outcome import LabelFile

GOOD = {"step_utility": 0.5, "was_repeated": False, "tests_before": 3, "tests_after": 5, "params_valid": True}
BAD = {"step_utility_norm": 0, "was_repeated": True, "verification_delta": -1, "params_valid": False}
KEYS = ["id", "session_id", "step_utility", "tests_before", "tests_after", "verification_delta", "was_repeated",
        "params_valid", "outcome_score"]  # fmt: skip


def steps() -> list:
    return [
        sample(GOOD, id="good", session_id="s1", input={"tool": "edit"}),
        sample("no step", id="broken", session_id="s1", input="x"),
        sample(json.dumps(BAD), id="bad", input={"tool": "größe"}),
    ]


def write(path: Path, item: object = "outcome/step_score", **options):
    sink = {"outcome/labels": {"path": str(path), **options}}
    return run_pipeline(json.dumps({"name": "steps", "metrics": [item], "sinks": [sink]}), subjects=steps())


def lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def read(path: Path, **options) -> list:
    source = LabelFile(path, **options)
    source.check()
    return list(source.subjects())


def problems(tmp_path: Path, *rows) -> list[str]:
    path = tmp_path / "labels.jsonl"
    path.write_text("".join(f"{row if isinstance(row, str) else json.dumps(row)}\n" for row in rows))
    with pytest.raises(DataError) as refused:
        read(path)
    return [f"{problem.line}: {problem.message}" for problem in refused.value.problems]


# Out


def test_a_line_holds_the_labels_of_a_step_and_its_score(tmp_path):
    finished = write(tmp_path / "out" / "labels.jsonl")
    good, bad = lines(tmp_path / "out" / "labels.jsonl")
    assert list(good) == list(bad) == KEYS
    assert list(good.values()) == ["good", "s1", 0.5, 3, 5, 2, False, True, pytest.approx(0.9)]
    assert list(bad.values()) == ["bad", None, -1, None, None, -1, True, False, 0.0]
    assert finished.document["sinks"] == {"outcome/labels": {"written": 2, "lost": 0}}


def test_the_input_is_written_on_request(tmp_path):
    write(tmp_path / "labels.jsonl", include_input=True)
    assert [line["input"] for line in lines(tmp_path / "labels.jsonl")] == [{"tool": "edit"}, {"tool": "größe"}]


def test_the_metric_may_have_a_label_of_its_own(tmp_path):
    write(tmp_path / "labels.jsonl", {"outcome/step_score": {"as": "step"}}, metric="step")
    assert len(lines(tmp_path / "labels.jsonl")) == 2


@pytest.mark.parametrize("include_input", [True, False])
def test_a_label_that_the_run_does_not_have_is_lost_data_and_leaves_the_older_file(tmp_path, include_input):
    path = tmp_path / "labels.jsonl"
    path.write_text("older")
    finished = write(path, metric="step", include_input=include_input)
    assert finished.exit_code == 4
    sink = finished.document["sinks"]["outcome/labels"]
    assert sink["lost"] > 0
    assert "reads the metric 'step', and the run has outcome/step_score" in sink["error"]
    assert path.read_text() == "older"


def test_a_metric_of_another_kind_has_no_labels(tmp_path):
    finished = write(tmp_path / "labels.jsonl", "proxy/format", metric="proxy/format")
    assert finished.exit_code == 4


def test_inputs_wait_only_for_their_verdict(tmp_path):
    """With two labels, metrics and a judge, a step ends twice; its input waits for the end that has the score."""
    path = tmp_path / "labels.jsonl"
    text = {
        "name": "steps",
        "metrics": ["outcome/step_score"],
        "judges": [{"heuristic/tool_cycle": {"as": "cycle"}}],
        "sinks": [{"outcome/labels": {"path": str(path), "include_input": True}}],
    }
    subjects = [sample(GOOD, id=f"{number}", kind="tool_cycle", input=number) for number in range(50)]
    run_pipeline(json.dumps(text), subjects=subjects)
    assert [(line["id"], line["input"]) for line in lines(path)] == [(f"{number}", number) for number in range(50)]


# In


def test_labels_that_were_written_score_the_same_again(tmp_path):
    path = tmp_path / "labels.jsonl"
    first = write(path, include_input=True)
    text = f"name: again\nsource: {{outcome/labels: {{path: {path}}}}}\nmetrics: [outcome/step_score]\n"
    text += f"sinks: [outcome/labels: {{path: {tmp_path / 'again.jsonl'}, include_input: true}}]\n"
    second = run_pipeline(text)
    scores = [{verdict.subject_id: verdict.score for verdict in run.verdicts} for run in (first, second)]
    assert scores[0] == scores[1] == pytest.approx({"good": 0.9, "bad": 0.0})
    assert (tmp_path / "again.jsonl").read_bytes() == path.read_bytes()


def test_a_line_becomes_a_step_with_its_labels_as_output(tmp_path):
    path = tmp_path / "labels.jsonl.gz"
    row = {**GOOD, "outcome_score": 0.9, "session_id": "s1", "input": "x", "model": "qwen"}
    path.write_bytes(gzip.compress(f"\n{json.dumps(row)}\n".encode()))
    (step,) = read(path)
    assert (step.kind, step.id, step.session_id, step.input) == ("tool_cycle", "2", "s1", "x")
    assert step.output == {**GOOD, "outcome_score": 0.9}
    assert step.context == {"model": "qwen"}
    assert [subject.kind for subject in read(path, kind="step")] == ["step"]


def test_every_bad_line_is_named_before_anything_is_judged(tmp_path):
    faults = problems(
        tmp_path,
        {**GOOD, "id": "a"},
        {**GOOD, "id": "b", "step_utility": 2},
        {**BAD, "id": "a"},
        "",
        "{broken",
        "[1]",
        {**GOOD, "id": "c", "verification_delta": 7},
        {**GOOD, "id": "d", "outcome_score": 1.5},
        {**GOOD, "id": {}},
        {"id": "e"},
    )
    assert faults[0] == "2: step_utility is 2, not a number from -1 to 1"
    assert faults[1] == "3: duplicate id 'a', first on line 1"
    assert faults[2].startswith("5: the line is not JSON")
    assert faults[3].startswith("6: the line is a list")
    assert faults[4] == "7: verification_delta is 7, but 5 tests after 3 make 2"
    assert faults[5] == "8: outcome_score is not a number from 0 to 1"
    assert faults[6].startswith("9: an object cannot be an id")
    assert [problem.partition(" is missing")[0] for problem in faults[7:]] == [
        "10: step_utility", "10: verification_delta", "10: was_repeated", "10: params_valid"
    ]  # fmt: skip


def test_a_file_without_steps_is_refused(tmp_path):
    assert problems(tmp_path, "") == ["None: there are no subjects in this input"]
