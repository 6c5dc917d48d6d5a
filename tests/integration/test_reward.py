"""A pipeline as a reward function."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

import dicast

TEXT = """
metrics:
  - diff/match
  - proxy/length: {min: 1}
scoring: {threshold: 0, weights: {diff/match: 1, proxy/length: 0}}
ledger: {ledger/sqlite: {path: ledger.db}}
"""


@pytest.fixture
def pipeline(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("quality.yaml").write_text("metrics: [diff/match]\nledger: {ledger/sqlite: {path: ledger.db}}\n")
    return Path("quality.yaml")


def test_a_batch_is_scored_in_its_order_by_the_columns_of_the_rows(pipeline):
    reward = dicast.reward(pipeline)
    result = reward(
        prompts=["a", "b", "c"], completions=["1", "2", [{"role": "assistant", "content": "3"}]],
        reference=["1", "0", "3"], trainer_state=object(), completion_ids=[[1], [2], [3]],
    )  # fmt: skip
    assert result == [1.0, 0.0, 1.0]
    assert reward.__name__ == "quality"
    assert reward([]) == []


def test_it_can_be_pickled(pipeline):
    reward = pickle.loads(pickle.dumps(dicast.reward(pipeline, failures="none")))
    assert reward(["1"], reference=["1"]) == [1.0]


def test_what_cannot_be_scored_is_an_error_that_names_it_and_never_0(pipeline):
    with pytest.raises(dicast.RewardError, match=r"1 of 2 completions have no reward: 1: missing_input: "):
        dicast.reward(pipeline)(["1", "2"], reference=["1", None])
    assert dicast.reward(pipeline, failures="none")(["1", "2"], reference=["1", None]) == [1.0, None]


def test_a_wrong_pipeline_and_a_wrong_option_are_refused(pipeline):
    with pytest.raises(dicast.PluginError, match="did you mean 'diff/match'"):
        dicast.reward({"metrics": ["diff/matc"]})(["1"])
    with pytest.raises(ValueError, match="failures"):
        dicast.reward(pipeline, failures="zero")


def test_another_label_may_be_the_reward(pipeline):
    judges = {"judges": [{"heuristic/turn": {"as": "a"}}], "ledger": {"ledger/sqlite": {"path": "ledger.db"}}}
    with pytest.raises(dicast.DicastError):
        dicast.reward(judges, on="b")(["1"])


def test_prompts_and_completions_are_as_many():
    with pytest.raises(dicast.ConfigError, match="2 completions and 1 prompts"):
        dicast.reward({"metrics": ["diff/match"]})(completions=["a", "b"], prompts=["x"], reference=["a", "b"])
