"""Logs that the real Inspect AI writes with its mock model: tools, agents, errors, epochs and both formats."""

from __future__ import annotations

from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

INSPECT = "inspect-ai==0.3.285"
MODEL = "mockllm/model"
SCRIPT = Path(__file__).parent / "write_logs.py"


@pytest.fixture(scope="module")
def logs(run_with):
    """Return a folder with logs, which a process with Inspect in an environment of its own writes."""
    return run_with(SCRIPT, packages=(INSPECT, "openai"), module="inspect_ai")


@pytest.mark.parametrize("log_format", ["eval", "json"])
def test_samples_of_a_task_with_tools_and_an_error(logs, read, log_format):
    log = read(logs / f"sums.{log_format}")
    contents = log.counts.details["contents"]
    assert (contents["sessions"], contents["calls"], contents["results"], contents["failed_results"]) == (2, 2, 2, 1)
    assert {*log.failures} == {"bad"}
    assert log.scores("sum") == {
        "includes": (1.0, None, None, "recorded", "includes"),
        "model_graded_qa": (1.0, None, None, "model", MODEL),
    }
    assert log.scores("neg")["includes"][0] == 0.0
    events = next(subject for subject in log.subjects if subject.id == "sum").events
    usage = [event.payload["usage"]["total_tokens"] for event in events if event.type == "llm.call_completed"]
    assert usage == [15, 15]


def test_an_agent_as_a_tool_is_a_session_of_its_own(logs, read):
    log = read(logs / "agent.eval")
    assert [(subject.id, subject.parent_id) for subject in log.subjects] == [("1", None), ("1/agent-1", "1")]
    contents = log.counts.details["contents"]
    assert (contents["calls"], contents["results"], contents["unmatched_calls"]) == (3, 3, 0)


def test_an_agent_that_takes_over_stays_in_the_conversation(logs, read):
    log = read(logs / "handoff.eval")
    assert [subject.id for subject in log.subjects] == ["1"]
    assert log.counts.details["contents"]["calls"] == log.counts.details["contents"]["results"] > 0


def test_samples_in_parts_read_as_whole_samples(logs, read):
    whole, parts = read(logs / "twice.eval"), read(logs / "parts" / "twice.eval")
    assert [subject.id for subject in whole.subjects] == ["1", "1_epoch_2"]
    assert [subject.events for subject in parts.subjects] == [subject.events for subject in whole.subjects]
    assert parts.scores("1") == whole.scores("1")


def test_a_folder_of_logs_is_read_as_a_whole(logs, read):
    log = read(logs)
    assert log.counts.details["contents"]["sessions"] == 13
    assert log.counts.details["unknown"] == {}
