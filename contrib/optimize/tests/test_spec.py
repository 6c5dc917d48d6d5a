"""Valid specs, and messages about invalid ones."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dicast import ConfigError, DataError
from dicast_optimize.document import read_document
from dicast_optimize.intake import Intake, read_intake, shares
from dicast_optimize.spec import read_spec


def problems(path, text, **options):
    path.write_text(text)
    with pytest.raises((ConfigError, DataError)) as caught:
        read_spec(path, needs_model=True, **options)
    return [f"{problem.line}:{problem.column} {problem}" for problem in caught.value.problems]


def test_everything_that_is_wrong_is_said_at_once_with_its_place(tmp_path):
    (tmp_path / "val.jsonl").write_text('{"ok": 1}\n[1]\n')
    text = """\
optimization:
  seed: x
  sede: x
  budget: true
  early_stop: no
  valset: val.jsonl
evaluator:
  command: [python3, evaluate.py]
  url: http://127.0.0.1/
modl: {}
intake: {execution_mode: http, quality_dimensions: [{name: a, weight: .inf}, {name: b, weight: 1}]}
"""
    problems_found = problems(tmp_path / "s.yaml", text)
    expected = (
        "3:3 {}:3:3: unknown key 'sede' in optimization, did you mean 'seed'?",
        "4:3 {}:4:3: optimization.budget must be a positive integer, or auto",
        "5:3 {}:5:3: optimization.early_stop must be true or false",
        "6:3 {}:6:3: optimization.valset requires dataset",
        "7:1 {}:7:1: provide only one of evaluator.command, evaluator.url",
        "10:1 {}:10:1: unknown section 'modl'",
        "11:71 {}:11:71: .inf is not a finite number",
        "model.reflection names the chat model",
        "at line 2: expected JSON object, got a list",
    )
    for part in expected:
        assert sum(part.format(tmp_path / "s.yaml") in line for line in problems_found) == 1, (part, problems_found)
    assert len(problems_found) == len(expected)


def test_toml_says_the_same_as_yaml_with_the_lines_of_its_keys(tmp_path):
    text = '[optimization]\nseed = "x"\nbudget = 0\n\n[evaluator]\nurl = "http://127.0.0.1/"\ncwd = "."\n'
    problems_found = problems(tmp_path / "s.toml", text)
    assert [line[:3] for line in problems_found] == ["3:1", "7:1", "1:1"]
    good = text.replace("budget = 0", "budget = 7").replace('cwd = "."', "") + '[model]\nreflection = "a/b"\n'
    (tmp_path / "s.toml").write_text(good)
    spec = read_spec(tmp_path / "s.toml", needs_model=True)
    assert (spec.budget, spec.early_stop, spec.validated_on, spec.name) == (7, False, "candidate", "s")
    assert problems(tmp_path / "t.toml", "a = \n")[0].startswith("1:5 ")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ("optimization: {seed: x, seed_file: y}", "seed or seed_file, and both are given"),
        ("optimization: {}", "seed or seed_file, and neither is given"),
        ("optimization: {seed: x, cache_from: y}", "cache_from requires cache and run_dir"),
        ("optimization: {seed: x, dataset: d.jsonl, test: ./d.jsonl}", "test is the file of dataset"),
        ("optimization: {seed: x, dataset: none.jsonl}", "no such file"),
        ("optimization: {seed: x, dataset: empty.jsonl}", "the dataset has no records"),
        ("optimization: {seed: x, dataset: d.jsonl, budget: 1}", "does not evaluate the seed on the 2 records"),
        ("optimization: {seed: x, seed: y}", "the key 'seed' is given twice"),
        ("optimization: [", "not valid YAML"),
        ("- a", "a spec has sections"),
    ],
)
def test_what_a_spec_cannot_mean_is_refused(tmp_path, monkeypatch, changed, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "d.jsonl").write_text("{}\n{}\n")
    (tmp_path / "empty.jsonl").write_text("\n")
    rest = "" if changed.startswith("-") else "\nevaluator: {url: http://127.0.0.1/}\nmodel: {reflection: a/b}\n"
    assert message in "\n".join(problems(tmp_path / "s.yaml", changed + rest))


def test_scalars_are_those_of_yaml_1_2(tmp_path):
    (tmp_path / "s.yaml").write_text("a: [no, 1_0, '12', 12, 1e3, .5, null, True, '${HOME}']\nb: &x {c: 1}\nd: *x\n")
    document = read_document(tmp_path / "s.yaml")
    assert document.data["a"] == ["no", "1_0", "12", 12, 1000.0, 0.5, None, True, "${HOME}"]
    assert document.data["d"] == {"c": 1}


def test_weights_keep_their_shares_to_4_decimals():
    assert shares([3, 2, 1]) == [0.5, 0.3333, 0.1667]
    assert shares([1, 1, 1]) == [0.3334, 0.3333, 0.3333]
    assert shares([1e308, 1e308]) == [0.5, 0.5]


@given(st.lists(st.floats(min_value=1e-300, max_value=1e300), min_size=1, max_size=40))
def test_shares_sum_to_1_and_keep_the_order_of_the_weights(weights):
    weights_scaled = shares(weights)
    assert sum(round(share * 10_000) for share in weights_scaled) == 10_000
    assert all(share >= 0 for share in weights_scaled)
    pairs = sorted(zip(weights, weights_scaled, strict=True))
    assert all(later >= earlier - 1e-4 - 1e-12 for (_, earlier), (_, later) in zip(pairs, pairs[1:], strict=False))


def test_an_intake_has_defaults_and_trims_its_constraints():
    reports = []
    report = lambda address, message, value: reports.append(message)  # noqa: E731
    default = read_intake({}, report)
    assert default == Intake()
    assert [(dimension.name, dimension.weight) for dimension in default.quality_dimensions] == [
        ("correctness", 0.4),
        ("clarity", 0.35),
        ("conciseness", 0.25),
    ]
    section = {"hard_constraints": [" short ", "short", " ", "kind"], "quality_dimensions": {"a": 3, "b": 1}}
    read = read_intake(section, report)
    assert read.hard_constraints == ("short", "kind")
    assert [dimension.weight for dimension in read.quality_dimensions] == [0.75, 0.25]
    assert not reports
    twice = [{"name": "a", "weight": 1}, {"name": "a", "weight": True}, {"name": "a", "weight": 1}]
    read_intake({"quality_dimensions": twice, "evaluation_pattern": "vote"}, report)
    assert len(reports) == 3
