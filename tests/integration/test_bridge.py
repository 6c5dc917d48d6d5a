"""``dicast bridge``: the relation of two scales, by anchors that both judges have judged."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dicast
from dicast._kernel.cli import main
from dicast_trust.change.bridge import paired_difference

PIPELINE = """
name: {name}
source: {{rows/jsonl: {{path: {data}}}}}
metrics: [{{check/icontains: {{as: words, value: {word}}}}}]
ledger: {{ledger/sqlite: {{path: ledger.db}}}}
"""


def run(name, word, data="rows.jsonl"):
    Path(f"{name}.yaml").write_text(PIPELINE.format(name=name, word=word, data=data))
    return dicast.run(f"{name}.yaml").run_id


@pytest.fixture
def anchors(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with Path("rows.jsonl").open("w") as file:
        for n in range(80):
            text = " ".join(word for word, every in (("yes", 2), ("good", 3)) if n % every == 0) or "no"
            file.write(json.dumps({"id": str(n), "output": text, "session_id": f"s{n // 4}"}) + "\n")


def bridge(capsys, *args):
    code = main(["bridge", *args, "--ledger", "ledger.db", "--json"])
    out = capsys.readouterr()
    return code, json.loads(out.out)


def test_the_new_scale_beside_the_old_one(anchors, capsys):
    old, new = run("old", "yes"), run("new", "good")
    capsys.readouterr()
    code, result = bridge(capsys, old, new)
    assert (code, result["n"], result["sessions"]) == (0, 80, 20)
    assert result["difference"] == pytest.approx(27 / 80 - 40 / 80)
    assert result["words"].startswith("the new judge scores -0.1625")
    assert result["shifted"] is None
    _, shifted = bridge(capsys, old, new, "--shift", new)
    assert shifted["shifted"]["shifted_mean"] == pytest.approx(result["old_mean"])
    assert main(["bridge", old, new, "--ledger", "ledger.db"]) == 0
    assert "80 anchors in 20 sessions" in capsys.readouterr().out


def test_other_contents_are_no_anchors(anchors, capsys):
    old = run("old", "yes")
    lines = [json.loads(line) for line in Path("rows.jsonl").read_text().splitlines()]
    with Path("more.jsonl").open("w") as file:
        file.writelines(
            json.dumps(item | ({"output": "changed"} if n < 60 else {})) + "\n" for n, item in enumerate(lines)
        )
    new = run("new", "yes", "more.jsonl")
    capsys.readouterr()
    _, result = bridge(capsys, old, new)
    assert (result["n"], result["different_content"], result["difference"]) == (20, 60, None)
    assert result["reasons"]["difference"] == "20 anchors of the 30 needed"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("last", "last"), "are the same run"),
        (("last", "nowhere"), "has no run"),
        (("last", "old", "--judge", "wrods"), ""),
    ],
)
def test_what_is_no_bridge_is_refused(anchors, capsys, args, message):
    old, _ = run("old", "yes"), run("new", "good")
    args = [old if item == "old" else item for item in args]
    assert main(["bridge", *args, "--ledger", "ledger.db"]) == 2
    err = capsys.readouterr().err
    assert message in err
    assert "wrods" not in args or "did you mean 'words'" in err


@settings(max_examples=3 * settings.default.max_examples // 5, deadline=None)
@given(st.lists(st.tuples(st.integers(-8, 8), st.integers(0, 9)), min_size=30, max_size=60))
def test_intervals_are_those_of_a_clustered_regression(pairs):
    import statsmodels.api as sm
    from scipy import stats

    differences, sessions = [d / 8 for d, _ in pairs], [str(s) for _, s in pairs]
    result = paired_difference(differences, sessions)
    groups = len(set(sessions))
    if groups < 2 or result["t"] is None:
        assert result["difference"] == pytest.approx(np.mean(differences))
        return
    theirs = sm.OLS(differences, np.ones(len(pairs))).fit(
        cov_type="cluster", cov_kwds={"groups": np.unique(sessions, return_inverse=True)[1], "use_correction": False}
    )
    error = float(theirs.bse[0]) * (groups / (groups - 1)) ** 0.5
    reach = stats.t.ppf(0.975, groups - 1) * error
    assert (result["ci_low"], result["ci_high"]) == pytest.approx(
        (result["difference"] - reach, result["difference"] + reach), rel=1e-7, abs=1e-9
    )


@pytest.mark.slow
@pytest.mark.parametrize(("n", "code"), [(4, 3), (5, 0)])
def test_fewer_than_5_anchors_are_undecided(anchors, capsys, n, code):
    lines = Path("rows.jsonl").read_text().splitlines(keepends=True)
    Path("few.jsonl").write_text("".join(lines[:n]))
    old, new = run("old", "yes", "few.jsonl"), run("new", "good", "few.jsonl")
    capsys.readouterr()
    got, result = bridge(capsys, old, new)
    assert (got, result["n"]) == (code, n)
    assert result["words"].startswith(f"no bridge: {n} anchors of the 30 needed")


def test_labels_choose_the_anchors_and_are_compared_with_both_judges(anchors, capsys):
    old, new = run("old", "yes"), run("new", "good")
    gold = [{"subject_id": str(n), "score": float(n % 2 == 0)} for n in range(0, 80, 2)]
    Path("gold.jsonl").write_text("".join(json.dumps(line) + "\n" for line in gold))
    capsys.readouterr()
    code, result = bridge(capsys, old, new, "--gold", "gold.jsonl")
    assert (code, result["n"], result["gold"]["n"]) == (0, 40, 40)
    assert result["gold"]["old"]["mean_difference"] == 0.0
    assert result["gold"]["new"]["mean_difference"] == pytest.approx(14 / 40 - 1)


@pytest.mark.slow
def test_outputs_of_a_task_that_differ_are_no_anchors(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("rows.jsonl").write_text("".join(json.dumps({"id": str(n)}) + "\n" for n in range(10)))
    Path("answer.py").write_text("print(open('word.txt').read())\n")
    runs = []
    for name, word in (("old", "yes"), ("new", "yes"), ("other", "no")):
        Path("word.txt").write_text(word)
        file = PIPELINE.format(name=name, word="yes", data="rows.jsonl")
        task = f"task: {{task/command: {{command: ['{sys.executable}', answer.py]}}}}\n"
        Path(f"{name}.yaml").write_text(file + task)
        runs.append(dicast.run(f"{name}.yaml").run_id)
    capsys.readouterr()
    old, new, other = runs
    assert bridge(capsys, old, new)[1]["n"] == 10
    code, result = bridge(capsys, old, other)
    assert (code, result["n"], result["different_content"]) == (3, 0, 10)
