"""Keys of the gate that plugins add."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import attrs
import pytest

from dicast import ConfigError, PluginError, Subject
from dicast._kernel.cli import main
from dicast._kernel.contract import registry
from dicast._kernel.contract.registry import CLAUSE_EXTRAS, Offer
from dicast.testing import run_pipeline

ROOT = Path(__file__).resolve().parents[2]
SUBJECTS = [Subject("row", str(number), output="yes") for number in range(4)]


@attrs.frozen
class LeastScored:
    """Requires a number of scored subjects.

    :param least_scored: the number.
    """

    least_scored: int = 0

    @property
    def label_key(self):
        return "least_scored"

    def faults(self, clause, file):
        if self.least_scored > 1000:
            yield "least_scored", f"{self.least_scored} subjects of {file.on} are too many"

    def decide(self, findings, run):
        count = run.figures["scored"]
        passed = count >= self.least_scored
        line, reason = float(self.least_scored), f"{count} subjects of {run.on} have a score"
        finding = attrs.evolve(findings[0], rule="least_scored", line=line, value=count, passed=passed, reason=reason)
        return [*findings, finding]


@attrs.frozen
class WrongClause(LeastScored):
    """A clause that decides *answers*."""

    wrong_answer: str = ""

    @property
    def label_key(self):
        return "wrong_answer"

    def decide(self, findings, run):
        return {"none": None, "text": [*findings, "passed"], "drops": []}[self.wrong_answer]


@attrs.frozen
class NoClause:
    wrong: bool = False


def offer(name, target):
    return Offer(name, "dicast-other", "1.0", f"{__name__}:{target}")


@pytest.fixture
def offers(monkeypatch):
    """Offer the keys of this module; return the keys whose class was loaded."""
    original, load, loaded = registry.offers_by_name, registry.load_gate_clause, []
    added = {"least_scored": offer("least_scored", "LeastScored"), "wrong": offer("wrong", "NoClause")}
    added["wrong_answer"] = offer("wrong_answer", "WrongClause")
    added["twice"] = attrs.evolve(offer("twice", "NoClause"), error="gate_clause 'twice' is offered by a and b")
    added["broken"] = offer("broken", "Missing")
    monkeypatch.setattr(
        registry, "offers_by_name", lambda group: added if group == "dicast.gate_clauses" else original(group)
    )

    def load_and_note(key):
        loaded.append(key)
        return load(key)

    monkeypatch.setattr("dicast._kernel.pipeline.clause.load_gate_clause", load_and_note)
    return loaded


def run(gate):
    return run_pipeline(f"metrics: [check/contains: {{value: y}}]\ngate: {gate}", subjects=SUBJECTS)


def test_a_key_of_a_plugin_is_a_rule_of_the_gate(offers):
    assert run("{min_score: 0.5, least_scored: 4}").document["gate"]["passed"] is True
    gate = run("{min_score: 0.5, least_scored: 5}").document["gate"]
    assert (gate["passed"], gate["reasons"]) == (False, ["4 subjects of metrics have a score"])
    assert [clause["rule"] for clause in gate["clauses"]] == ["min_coverage", "min_score", "least_scored"]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ("none", r"wrong_answer: decide returned None, not the findings \(\S+test_gate_clauses\.py:\d+\)"),
        ("text", r"wrong_answer: decide returned 'passed', not a Finding \(\S+test_gate_clauses\.py:\d+\)"),
        ("drops", r"wrong_answer: decide drops the finding about min_coverage; return \[\*findings, …\] \(\S+:\d+\)"),
        ("other", r"wrong_answer: decide raised KeyError: 'other' \(\S+test_gate_clauses\.py:\d+\)"),
    ],
)
def test_a_clause_that_cannot_decide_leaves_the_gate_undecided(offers, answer, message):
    done = run(f"{{min_score: 0.5, wrong_answer: {answer}}}")
    gate = done.document["gate"]
    (reason,) = gate["reasons"]
    assert (gate["passed"], done.exit_code) == (None, 3)
    assert re.fullmatch(message, reason)


def test_a_class_is_loaded_only_for_one_of_its_keys(offers):
    run("{min_score: 0.5}")
    assert offers == []
    run("{least_scored: 1}")
    assert set(offers) == {"least_scored"}


def test_faults_of_a_plugin_have_the_place_of_its_key(offers):
    with pytest.raises(ConfigError) as caught:
        run("[{least_scored: 2000}]")
    (problem,) = caught.value.problems
    assert (problem.path, problem.message) == ("gate[0].least_scored", "2000 subjects of metrics are too many")


def test_a_value_of_the_wrong_type_is_refused(offers):
    with pytest.raises(ConfigError, match="invalid value for least_scored, expected int, got 'many'"):
        run("{least_scored: many}")


def test_an_unknown_key_has_the_nearest_key_of_a_plugin(offers):
    with pytest.raises(ConfigError) as caught:
        run("{least_scord: 4}")
    (problem,) = caught.value.problems
    assert (problem.message, problem.hint) == ("unknown option 'least_scord' of gate", "least_scored")


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("wrong", r"dicast-other: NoClause has no label_key, faults, decide \(\S+\.py:\d+\)"),
        ("twice", "is offered by a and b"),
        ("broken", r"gate clause 'broken' \(dicast-other 1\.0\): its entry point names .* has no such name"),
    ],
)
def test_a_class_that_cannot_be_used_is_an_error_of_the_plugin(offers, key, message):
    with pytest.raises(PluginError, match=message):
        run(f"{{{key}: true}}")


def test_keys_of_missing_plugins_are_the_entry_points_of_the_plugins():
    offered = {}
    for path in ROOT.glob("plugins/*/pyproject.toml"):
        groups = tomllib.loads(path.read_text(encoding="utf-8"))["project"]["entry-points"]
        offered |= dict.fromkeys(groups.get("dicast.gate_clauses", ()), path.parent.name)
    assert dict(CLAUSE_EXTRAS) == offered


def test_a_shard_needs_no_plugin_of_the_gate_that_it_leaves_out(tmp_path, monkeypatch, capsys):
    original = registry.offers_by_name
    monkeypatch.setattr(
        registry, "offers_by_name", lambda group: {} if group == "dicast.gate_clauses" else original(group)
    )
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.jsonl").write_text('{"id": "0", "output": "yes"}\n{"id": "1", "output": "no"}\n')
    (tmp_path / "a.yaml").write_text(
        "source: {rows/jsonl: {path: rows.jsonl}}\nmetrics: [check/contains: {value: yes}]\n"
        "gate: [{min_pass_rate: 0.5}, {baseline: main.json, max_drop: 0.02}]\n"
    )
    assert main(["run", "a.yaml"]) == 2
    assert "the option 'baseline' of the gate needs the plugin stats" in capsys.readouterr().err
    for number in (1, 2):
        assert main(["run", "a.yaml", "--shard", f"{number}/2", "--ledger", f"shard-{number}.db"]) == 0
    assert main(["merge", "shard-1.db", "shard-2.db", "--ledger", "merged.db"]) == 2
    (tmp_path / "a.yaml").write_text((tmp_path / "a.yaml").read_text().replace("0.5}", "0.5, wrong: 1}"))
    assert main(["run", "a.yaml", "--shard", "1/2", "--ledger", "other.db"]) == 2
