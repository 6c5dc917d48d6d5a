"""Runs with audits where nothing is installed that makes corrected means of them."""

from __future__ import annotations

import pytest

from dicast import PluginError, Subject
from dicast._kernel.contract import registry
from dicast.testing import run_pipeline

PIPELINE = """
metrics: [proxy/length: {min: 8}, check/contains: {value: y}]
scoring: {audit: {rate: 0.5, seed: 1}}
gate: {on: metrics, min_score: 0.1, corrected: true}
"""


@pytest.fixture
def without_plugin(monkeypatch):
    original = registry.offers_by_name
    monkeypatch.setattr(
        registry, "offers_by_name", lambda group: {} if group == "dicast.gate_clauses" else original(group)
    )


def test_without_the_plugin_the_mean_is_null_and_the_reason_names_the_extra(without_plugin):
    text = PIPELINE.replace(", corrected: true", "")
    done = run_pipeline(text, subjects=[Subject("row", str(at), output="y" * (at % 12)) for at in range(60)])
    for entry in (done.document["score"], done.document["metrics"]["check/contains"]):
        assert entry["corrected"] is None
        assert entry["reasons"]["corrected"]["reason"] == "not_installed"
        assert "dicast[trust]" in entry["reasons"]["corrected"]["message"]
    assert set(done.document["cost"]) == {"usd", "msat"}


def test_without_the_plugin_its_key_of_the_gate_is_refused_with_the_command_that_installs_it(without_plugin):
    with pytest.raises(
        PluginError, match=r"the option 'corrected' of the gate needs the plugin trust; .*dicast\[trust\]"
    ):
        run_pipeline(PIPELINE, subjects=[Subject("row", "1", output="y")])


def test_a_verdict_says_what_an_audit_would_have_made_of_its_score():
    done = run_pipeline(PIPELINE, subjects=[Subject("row", str(at), output="y" * 3) for at in range(20)])
    audited = [event.payload["audit"] for event in done.of("eval.completed") if "audit" in event.payload]
    assert 0 < len(audited) < 20
    assert audited[0] == {"score": (3 / 8 + 1) / 2, "metrics": {"proxy/length": 3 / 8, "check/contains": 1.0}}
