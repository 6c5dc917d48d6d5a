"""``dicast bisect``: which of several changes moved the score."""

from __future__ import annotations

import json
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dicast
from dicast._kernel.cli import main
from dicast_trust.change.factors import file_changes
from dicast_trust.statistics.shapley import every_cell, shares

PIPELINE = """
name: answers
source: {rows/jsonl: {path: rows.jsonl}}
metrics:
  - check/contains: {as: polite, value: please}
  - check/contains: {as: short, value: ok}
ledger: {ledger/sqlite: {path: ledger.db}}
"""
FACTORS = ("--factor", "word=metrics.polite.value=thanks", "--factor", "brief=metrics.short.value=fine")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("file.yaml").write_text(PIPELINE)
    words = ("please", "thanks", "ok", "fine")
    rows = [
        {"id": str(n), "output": " ".join(word for place, word in enumerate(words, 2) if n % place == 0)}
        for n in range(60)
    ]
    Path("rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    dicast.run("file.yaml")
    return tmp_path


def bisect(capsys, *args):
    capsys.readouterr()
    code = main(["bisect", "file.yaml", *args, "--json"])
    out = capsys.readouterr()
    return code, json.loads(out.out), out.err


def test_each_change_gets_its_share_and_cells_are_bought_once(folder, capsys):
    code, found, err = bisect(capsys, *FACTORS, "--yes")
    assert code == 0
    assert "3 of 4 cells have to be judged, 60 subjects each, at no cost" in err
    assert found["factors"]["word"]["shapley"] == pytest.approx((20 - 30) / 60 / 2)
    assert found["factors"]["brief"]["shapley"] == pytest.approx((12 - 15) / 60 / 2)
    assert found["total"]["difference"] == pytest.approx(sum(one["shapley"] for one in found["factors"].values()))
    assert all(one["exact"] for one in found["factors"].values())
    assert [cell["cached"] for cell in found["cells"]] == [True, False, False, False]
    _, again, err = bisect(capsys, *FACTORS)
    assert "to be judged" not in err
    assert again["factors"] == found["factors"]
    assert main(["bisect", "file.yaml", *FACTORS]) == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 80


def test_without_leave_nothing_is_bought_and_what_was_not_swapped_alone_is_null(folder, capsys):
    dicast.run("file.yaml", overrides=["metrics.polite.value=thanks"])
    code, found, err = bisect(capsys, *FACTORS)
    assert code == 0
    assert "nothing is judged: standard input is not a terminal to ask at" in err
    assert found["factors"]["brief"]["shapley"] is None
    assert "no two cells differ in this factor alone" in found["reasons"]["brief"]
    assert found["factors"]["word"]["shapley"] == pytest.approx((20 - 30) / 60 / 2)
    assert (found["factors"]["word"]["exact"], found["total"]["difference"]) == (False, None)


def test_two_changes_that_were_made_together_are_not_told_apart(folder, capsys):
    both = dicast.run("file.yaml", overrides=["metrics.polite.value=thanks", "metrics.short.value=fine"])
    _, found, _ = bisect(capsys, *FACTORS)
    assert [one["shapley"] for one in found["factors"].values()] == [None, None]
    assert found["total"]["difference"] is not None
    assert found["cells"][-1]["run_id"] == both.run_id


def test_a_run_may_be_named_for_a_cell(folder, capsys):
    first, other = (dicast.run("file.yaml", overrides=[f"name={name}"]).run_id for name in ("a", "b"))
    _, found, _ = bisect(capsys, *FACTORS, "--cell", f"={first}", "--cell", f"word={other}")
    assert found["factors"]["word"]["shapley"] == 0
    assert [cell["run_id"] for cell in found["cells"]] == [first, other]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((), "no change is named"),
        (("--factor", "model"), "'model' is not a factor; write it like"),
        (("--factor", "a=metrics.polite.valeu=x"), "did you mean 'value'"),
        ((*FACTORS, "--cell", "wort=last"), "did you mean 'word'"),
        (tuple(part for n in range(7) for part in ("--factor", f"f{n}=name=x")), "7 factors have 128 cells"),
    ],
)
def test_a_wrong_request_is_refused_before_anything_is_bought(folder, capsys, args, message):
    assert main(["bisect", "file.yaml", *args, "--yes"]) == 2
    assert message in capsys.readouterr().err


def test_nothing_recorded_and_no_leave_says_what_to_do(folder, capsys):
    Path("ledger.db").unlink()
    dicast.run("file.yaml")
    assert main(["bisect", "file.yaml", *FACTORS]) == 2
    assert "1 of 4 cells, too few to compare" in capsys.readouterr().err


@settings(max_examples=3 * settings.default.max_examples // 5, deadline=None)
@given(st.lists(st.integers(0, 8).map(lambda n: n / 8), min_size=8, max_size=8))
def test_values_are_the_means_over_all_orders_of_swaps(values):
    factors = ["a", "b", "c"]
    cells = dict(zip(every_cell(factors), ([value] * 3 for value in values), strict=True))
    found = shares(factors, {cell: np.array(column) for cell, column in cells.items()})
    for factor in factors:
        changes = []
        for order in permutations(factors):
            before = frozenset(order[: order.index(factor)])
            changes.append(cells[before | {factor}][0] - cells[before][0])
        assert found[factor].value == pytest.approx(np.mean(changes), abs=1e-12)
        assert found[factor].is_exact
    assert sum(share.value for share in found.values()) == pytest.approx(values[-1] - values[0], abs=1e-12)


@pytest.mark.slow
def test_the_interval_is_that_of_2000_resamples():
    changes = np.random.default_rng(3).normal(0.1, 0.4, 30)
    draws = np.random.default_rng(7).multinomial(30, np.full(30, 1 / 30), 2000)
    low, high = np.quantile(draws @ changes / 30, [0.025, 0.975])
    share = shares(["a"], {frozenset(): np.zeros(30), frozenset("a"): changes}, 7)["a"]
    assert (share.low, share.high) == pytest.approx((low, high), rel=1e-12)


@pytest.mark.slow
def test_the_interval_covers_the_true_share():
    rng, covered = np.random.default_rng(3), 0
    for seed in range(200):
        base = rng.normal(0.5, 0.2, 80)
        cells = {frozenset(): base, frozenset("a"): base + rng.normal(0.05, 0.1, 80)}
        share = shares(["a"], cells, seed)["a"]
        covered += share.low <= 0.05 <= share.high
    assert 180 <= covered <= 198


def other_file(folder, *changes, name="other.yaml"):
    text = PIPELINE
    for before, after in changes:
        assert before in text
        text = text.replace(before, after)
    (folder / name).write_text(text)


def test_many_changes_of_a_section_are_one_factor(folder):
    other_file(folder, ("value: please", "value: thanks"), ("value: ok", "value: fine"))
    factors = file_changes(Path("file.yaml"), Path("other.yaml"), 1)
    assert {name: len(changes) for name, changes in factors.items()} == {"metrics": 2}


def test_the_changes_of_a_definition_are_one_factor_with_its_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    definition = "define: {grader: {openai/chat: {model: m-1, temperature: 0}}, other: {openai/chat: {model: m-1}}}\n"
    Path("file.yaml").write_text(PIPELINE + definition)
    Path("other.yaml").write_text(
        PIPELINE + definition.replace("m-1", "m-2").replace("temperature: 0", "temperature: 1")
    )
    factors = file_changes(Path("file.yaml"), Path("other.yaml"), 2)
    assert {name: len(changes) for name, changes in factors.items()} == {"define.grader": 2, "define.other": 1}


def test_what_differs_between_two_files_are_the_factors(folder, capsys):
    other_file(folder, ("value: please", "value: thanks"), ("value: ok", "value: fine"), ("name: answers", "name: b"))
    both = dicast.run("other.yaml")
    code, found, _ = bisect(capsys, "other.yaml", "--yes")
    assert code == 0
    word, brief = "metrics.polite.value", "metrics.short.value"
    assert found["factors"][word]["shapley"] == pytest.approx((20 - 30) / 60 / 2)
    assert found["factors"][brief]["shapley"] == pytest.approx((12 - 15) / 60 / 2)
    assert found["cells"][-1]["run_id"] == both.run_id  # the other file's own run is the last cell
    _, by_name, _ = bisect(capsys, *FACTORS)
    assert [one["shapley"] for one in by_name["factors"].values()] == [
        one["shapley"] for one in found["factors"].values()
    ]
    assert main(["bisect", "file.yaml", "other.yaml"]) == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 80


def test_a_list_of_another_length_and_a_new_section_are_one_factor_each(folder, capsys):
    other_file(
        folder,
        ("  - check/contains: {as: short, value: ok}\n", ""),
        ("ledger:", "scoring: {aggregation: mean}\nledger:"),
    )
    code, found, _ = bisect(capsys, "other.yaml", "--yes")
    assert code == 0
    assert [*found["factors"]] == ["metrics", "scoring"]
    assert found["total"]["difference"] == pytest.approx(30 / 60 - (30 + 15) / 120)
    assert found["factors"]["scoring"]["shapley"] == 0


@pytest.mark.parametrize(
    ("changes", "args", "message"),
    [
        ([("path: rows.jsonl", "path: other.jsonl")], (), "judge different data (source)"),
        ([("name: answers", "name: b")], (), "do not differ in a section that affects scores"),
        ([("value: ok", "value: fine")], FACTORS, "a second file and factors are both named"),
    ],
)
def test_files_that_cannot_be_compared_are_refused(folder, capsys, changes, args, message):
    other_file(folder, *changes)
    assert main(["bisect", "file.yaml", "other.yaml", *args, "--yes"]) == 2
    assert message in capsys.readouterr().err


def test_a_section_that_is_gone_and_a_file_elsewhere_are_refused(folder, capsys):
    (folder / "file.yaml").write_text(PIPELINE + "scoring: {rollouts: 2}\n")
    other_file(folder)
    assert main(["bisect", "file.yaml", "other.yaml", "--yes"]) == 2
    assert "has no section 'scoring'" in capsys.readouterr().err
    (folder / "file.yaml").write_text(PIPELINE)
    (folder / "sub").mkdir()
    other_file(folder, ("value: ok", "value: fine"), name="sub/other.yaml")
    assert main(["bisect", "file.yaml", "sub/other.yaml", "--yes"]) == 2
    assert "run dicast bisect there" in capsys.readouterr().err
