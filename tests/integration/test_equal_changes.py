"""The change of a label is one set of numbers: in compare, the gate, the comment, the report and the dashboard, equal to scipy's."""

from __future__ import annotations

import json
import re
from math import sqrt

import pytest
from starlette.testclient import TestClient

import dicast
from dicast._kernel.cli import main
from dicast_serve.application import application
from dicast_serve.guard import Tokens

ROWS, PER_SESSION = 48, 3
LABELS = ("good", "long", "near")
FIGURES = ("mean_difference", "ci_low", "ci_high", "p_value", "n")
PIPELINE = """
name: new
source: {rows/jsonl: {path: new.jsonl}}
metrics:
  - check/contains: {as: good, value: "yes"}
  - check/contains: {as: long, value: word word}
  - diff/similarity: {as: near}
gate: {on: good, baseline: old, max_drop: 0.02}
baseline: {run: old, compare: [stats/paired]}
ledger: {ledger/sqlite: {path: ledger.db}}
"""


def rows(side):
    for number in range(ROWS):
        good = (number * 7 + number // 11) % 10 < 8 - 4 * side
        text = f"{'yes' if good else 'no'} {'word ' * ((number * 5 + side * (number % 3)) % 4)}"
        row = {"id": str(number), "session_id": str(number // PER_SESSION), "input": f"q{number}"}
        yield row | {"output": text, "reference": "yes word word"}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The folder with two runs, the comment and the report."""
    folder = tmp_path_factory.mktemp("changes")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for name in ("GITHUB_ACTIONS", "GITLAB_CI", "DICAST_LEDGER"):
            patch.delenv(name, raising=False)
        for side, name in enumerate(("old", "new")):
            (folder / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows(side))))
        old = re.sub("gate:.*|baseline:.*", "", PIPELINE).replace("new", "old")
        (folder / "old.yaml").write_text(old + "gate: {on: good, min_score: 0.1}\n")
        (folder / "new.yaml").write_text(PIPELINE)
        assert main(["run", "old.yaml"]) == 0
        assert main(["ci", "new.yaml", "--comment", "comment.md"]) == 1
        assert main(["report", "new", "--baseline", "old", "--ledger", "ledger.db", "--out", "report.html"]) == 0
    return folder


def read(folder, function):
    return dicast.read_ledger(folder / "ledger.db", function)


def compared(folder, capfd):
    capfd.readouterr()
    assert main(["compare", "old", "new", "--ledger", str(folder / "ledger.db"), "--json"]) == 0
    return json.loads(capfd.readouterr().out)


def independent(folder, label):
    """Return the figures of the paired differences with clusters, from the verdicts alone, by scipy's distribution."""
    from scipy import stats

    scores = {}
    for name in ("old", "new"):
        records = read(folder, lambda live, name=name: [*dicast.results(live, name).records()])
        scores[name] = {id_: record["metrics"]["scores"][label] for id_, record in records}
    change = [scores["new"][str(number)] - scores["old"][str(number)] for number in range(ROWS)]
    mean, groups = sum(change) / ROWS, ROWS // PER_SESSION
    sums = [sum(change[start : start + PER_SESSION]) - PER_SESSION * mean for start in range(0, ROWS, PER_SESSION)]
    error = sqrt(groups / (groups - 1) * sum(value**2 for value in sums)) / ROWS
    low, high = stats.t.interval(0.95, groups - 1, mean, error)
    return mean, low, high, 2 * stats.t.sf(abs(mean / error), groups - 1), ROWS


def test_compare_is_equal_to_an_independent_calculation(made, capfd):
    answers = compared(made, capfd)["answers"]
    assert {"good", "long", "near"} <= {*answers}
    expected = {label: independent(made, label) for label in LABELS}
    for label in LABELS:
        assert [answers[label][name] for name in FIGURES] == pytest.approx(expected[label], rel=1e-9), label
    assert answers["good"]["adjusted_p_value"] == answers["good"]["p_value"]


def test_labels_other_than_the_gates_have_holms_p_values(made, capfd):
    from statsmodels.stats.multitest import multipletests

    answers = compared(made, capfd)["answers"]
    others = [answer for label, answer in answers.items() if label != "good"]
    expected = multipletests([answer["p_value"] for answer in others], method="holm")[1]
    assert [answer["adjusted_p_value"] for answer in others] == pytest.approx([*expected])


def test_the_gate_and_the_document_of_the_run_have_the_numbers_of_compare(made, capfd):
    answers = compared(made, capfd)["answers"]
    run_id = read(made, lambda live: dicast.results(live, "new").run_id)
    assert main(["show", run_id, "--ledger", str(made / "ledger.db"), "--json"]) == 0
    document = json.loads(capfd.readouterr().out)
    clause = next(clause for clause in document["gate"]["clauses"] if clause["rule"] == "max_drop")
    good = answers["good"]
    assert [clause[name] for name in ("value", "low", "high")] == [good[name] for name in FIGURES[:3]]
    assert document["comparison"]["stats/paired"]["answers"] == answers


def test_the_report_and_the_dashboard_have_the_numbers_of_compare(made, capfd):
    document = compared(made, capfd)
    page = re.search(r'id="dicast-report"[^>]*>(.*?)</script>', (made / "report.html").read_text("utf-8"), re.DOTALL)
    assert json.loads(page[1])["runs"][0]["compared"]["answers"] == document["answers"]
    app = application([made / "ledger.db"], Tokens("r" * 20, "l" * 20), ["testserver"], "cookie")
    with TestClient(app, headers={"authorization": f"Bearer {'r' * 20}"}) as client:
        response = client.get("/compare", params={side: document[side]["run_id"] for side in "ab"})
    assert response.json()["answers"] == {
        label: {name: round(value, 6) if isinstance(value, float) else value for name, value in answer.items()}
        for label, answer in document["answers"].items()
    }  # the API has six decimals
    assert response.json()["sentences"] == document["sentences"]


def test_the_comment_has_the_numbers_of_compare(made, capfd):
    answers = compared(made, capfd)["answers"]
    text = (made / "comment.md").read_text("utf-8")
    assert answers["good"]["answer"] == "worse"
    for label, answer in answers.items():
        (line,) = [line for line in text.splitlines() if line.startswith(f"| `{label}` |")]
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        low, high = answer["ci_low"], answer["ci_high"]
        assert cells[1].startswith(f"**{answer['answer']}**")
        assert cells[2:5] == [f"{answer['mean_difference']:+.4f}", f"{low:+.4f} to {high:+.4f}", str(answer["n"])]


def test_a_baseline_file_has_the_labels_and_the_scores_of_its_run(made, monkeypatch, capfd):
    monkeypatch.chdir(made)
    assert main(["baseline", "save", "kept", "old", "--file", "kept.json", "--ledger", "ledger.db"]) == 0
    for on in ("metrics", *LABELS):
        for baseline in ("old", "kept.json"):
            file = PIPELINE.replace("baseline: old, max", f"baseline: {baseline}, max").replace("on: good", f"on: {on}")
            (made / f"{on}.yaml").write_text(re.sub("\nbaseline:.*|name: new", "", file))
            capfd.readouterr()
            code = main(["run", f"{on}.yaml", "--json"])
            clauses = json.loads(capfd.readouterr().out)["gate"]["clauses"]
            clause = next(clause for clause in clauses if clause["rule"] == "max_drop")
            figures = [code, *(clause[name] for name in ("value", "low", "high", "passed"))]
            if baseline == "old":
                expected = figures
        assert figures == expected
        assert figures[1] is not None
