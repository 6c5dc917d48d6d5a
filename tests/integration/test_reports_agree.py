"""The outputs of a run agree: Markdown, JUnit, badge, CSV and Parquet of a suite equal ``run --json`` to the last digit."""

from __future__ import annotations

import json
import sys
import xml.etree.ElementTree as ET
from fractions import Fraction

import pytest

from dicast._kernel.cli import main
from dicast._kernel.cli.summary import run_parts
from dicast.toolkit.terminal import plain_lines

ANSWER = """
import json, sys
row, style = json.load(sys.stdin), sys.argv[1]
if row["id"] == "7":
    sys.exit("it would not answer")
words = row["input"].split()
print(" ".join(words[: {"brief": 3, "long": 7}[style]]))
"""
SUITE = """
name: prompts
source: {rows/jsonl: {path: rows.jsonl}}
task: {task/command: {command: [PYTHON, answer.py, "${style}"]}}
metrics:
  - proxy/length: {as: short, max: 17}
  - diff/similarity: {as: near, weight: 3}
gate: {min_score: 0.5, min_coverage: 0.8}
sinks:
  - csv/rows: {path: "out/${experiment}.csv"}
  - parquet/rows: {path: "out/${experiment}.parquet"}
  - junit/xml: {path: "out/${experiment}.xml"}
  - report/markdown: {path: "out/${experiment}.md"}
  - report/badge: {path: "out/${experiment}.svg", on: score}
  - report/badge: {as: near-badge, path: "out/${experiment}-near.svg", on: near}
experiments:
  brief: {variables: {style: brief}}
  long: {variables: {style: long}}
"""
LABELS = {"short": "metric_short", "near": "metric_near", "metrics": "score"}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The folder with the written files, and the document of each experiment."""
    folder = tmp_path_factory.mktemp("suite")
    words = ["the", "quick", "brown", "fox", "jumps", "over", "the", "lazy", "dog", "and", "runs", "on"]
    rows = [
        {"id": str(n), "input": " ".join(words[n % 3 : n % 3 + 4 + n % 5]), "reference": " ".join(words[: 3 + n % 7])}
        for n in range(1, 24)
    ]
    (folder / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (folder / "answer.py").write_text(ANSWER)
    (folder / "suite.yaml").write_text(SUITE.replace("PYTHON", sys.executable))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.delenv("DICAST_LEDGER", raising=False)
        patch.setattr(sys, "stdout", (folder / "document.json").open("w"))
        assert main(["run", "suite.yaml", "--json"]) in (0, 1)
        sys.stdout.close()
    return folder / "out", json.loads((folder / "document.json").read_text())["experiments"]


@pytest.fixture(params=["brief", "long"])
def experiment(made, request):
    folder, documents = made
    return folder / request.param, documents[request.param]


def suites(path):
    return {suite.get("name"): suite for suite in ET.parse(path.with_suffix(".xml")).getroot()}


def properties(element):
    return {one.get("name"): one.get("value") for one in element.findall("properties/property")}


def scores(frame, column):
    import pandas as pd

    return {str(id_): value for id_, value in zip(frame["subject_id"], frame[column], strict=True) if pd.notna(value)}


def test_the_experiments_differ_and_one_row_has_no_answer(made):
    _, documents = made
    assert documents["brief"]["score"]["mean"] != documents["long"]["score"]["mean"]
    assert [(one["scored"], one["failed"]) for one in documents.values()] == [(22, 1), (22, 1)]


@pytest.mark.parametrize("label", LABELS)
def test_each_subjects_score_is_the_same_in_csv_parquet_and_junit(experiment, label):
    import pandas as pd

    path, _ = experiment
    csv = scores(pd.read_csv(path.with_suffix(".csv")), LABELS[label])
    parquet = scores(pd.read_parquet(path.with_suffix(".parquet")), LABELS[label])
    cases = {case.get("name"): properties(case).get("score") for case in suites(path)[label].findall("testcase")}
    junit = {name: float(value) for name, value in cases.items() if value is not None}
    assert csv == parquet == junit
    assert len(csv) > 5


@pytest.mark.parametrize("label", LABELS)
def test_the_means_of_the_rows_are_the_documents(experiment, label):
    import pandas as pd

    path, document = experiment
    told = document["score"] if label == "metrics" else document["metrics"][label]
    csv = scores(pd.read_csv(path.with_suffix(".csv")), LABELS[label])
    assert (
        float(sum(map(Fraction, csv.values())) / len(csv)) == told["mean"]
    )  # the sum is exact, the division rounds once
    suite = properties(suites(path)[label])
    assert (float(suite["mean"]), float(suite["pass_rate"])) == (told["mean"], told["pass_rate"])
    passed = told["passes"]["passed"]
    if label != "metrics":  # all metrics together pass where each metric does
        assert passed == sum(value >= 0.5 for value in csv.values())
    failing = suites(path)[label].findall("testcase/*[@type='score']")  # skipped if the gate passed
    assert len(csv) - len(failing) == passed


def test_counts_run_gate_and_cost_are_the_documents(experiment):
    import pandas as pd

    path, document = experiment
    whole = suites(path)["metrics"]
    told = properties(whole)
    assert (told["run_id"], float(told["coverage"])) == (document["run_id"], document["coverage"])
    assert told["gate"] == {True: "passed", False: "failed"}[document["gate"]["passed"]]
    assert {unit: told[f"run_cost_{unit}"] for unit in document["cost"]} == document["cost"]
    assert (float(told["ci_low"]), float(told["ci_high"])) == (
        document["score"]["ci_low"],
        document["score"]["ci_high"],
    )
    not_judged = [skip for skip in whole.iter("skipped") if skip.get("message").startswith("not judged: ")]
    assert (int(whole.get("tests")), int(whole.get("errors")) + len(not_judged)) == (
        document["subjects"],
        document["failed"],
    )
    frame = pd.read_csv(path.with_suffix(".csv"))
    assert (frame["score"].count(), frame["failure"].count()) == (document["scored"], document["failed"])


def test_markdown_and_badges_have_the_terminals_digits_of_the_same_numbers(experiment):
    path, document = experiment
    text = path.with_suffix(".md").read_text()
    score = document["score"]
    for number in (score["mean"], score["ci_low"], score["ci_high"], score["pass_rate"]):
        assert f"{number:.4f}" in text
    terminal = " ".join(plain_lines(run_parts(document)).split())
    for number in (score["mean"], score["ci_low"], score["ci_high"]):
        assert f"{number:.4f}" in terminal
    counts = f"(coverage {document['coverage']:.1%})"
    assert (counts in text, counts in terminal) == (True, True)
    assert all(reason in text and reason in terminal for reason in document["gate"]["reasons"])
    for label, told in document["metrics"].items():
        scored = f"{told['scored']:,} of {told['total']:,}"
        rate = f"{told['pass_rate']:.4f} ({told['passes']['ci_low']:.4f} to {told['passes']['ci_high']:.4f})"
        assert f"| `{label}` | {told['mean']:.4f} | {rate} | {scored}" in text
    for label, told in document["labels"].items():
        interval = f"{told['ci_low']:.4f} to {told['ci_high']:.4f}"
        assert f"| `{label}` | {told['mean']:.4f} ({interval}) | {told['pass_rate']:.4f} (" in text
    assert document["run_id"] in text
    badge = path.with_suffix(".svg").read_text()
    assert f"<title>{document['name']}: {score['mean']:.4f}</title>" in badge
    near = path.with_name(f"{path.name}-near.svg").read_text()
    assert f"<title>{document['name']}: {document['metrics']['near']['mean']:.4f}</title>" in near
