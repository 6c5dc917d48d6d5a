"""Real logs: the counts of the source equal the counts of a script that shares no code with it."""

from __future__ import annotations

import json
import os
import zipfile
from pathlib import Path

import pytest

from dicast_inspect import Log

TRACES = Path(os.environ.get("DICAST_OUTSIDE_DATA", Path(__file__).parents[4] / "shared" / "data")) / "traces"
FILES = sorted([*TRACES.glob("inspect-eval/*.eval"), *TRACES.glob("inspect-json/*.json")])

pytestmark = pytest.mark.outside_data


def raw_samples(path: Path) -> list[dict]:
    """Return the samples of a log as it has them."""
    if path.suffix == ".json":
        return json.loads(path.read_text())["samples"]
    with zipfile.ZipFile(path) as archive:
        return [json.loads(archive.read(name)) for name in archive.namelist() if name.startswith("samples/")]


@pytest.mark.skipif(not FILES, reason="needs the logs of the shared data")
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name[:40])
def test_counts_of_a_real_log_are_right(path):
    samples = raw_samples(path)
    messages = [message for sample in samples for message in sample["messages"]]
    calls = [call["id"] for message in messages for call in message.get("tool_calls") or ()]
    results = [message for message in messages if message["role"] == "tool"]
    scores = [name for sample in samples for name in sample["scores"] or {}]
    source = Log(path=path, subjects=("session",))
    with source.reading() as live:
        live.check()
        items = list(live.subjects())
        counts = live.read_counts()
    contents = counts.details["contents"]
    assert contents["sessions"] == len(samples) == len(items)
    assert contents["messages"] == len(messages)
    assert contents["calls"] == len(calls) == len(set(calls))
    assert contents["results"] == len(results)
    assert contents["failed_results"] == sum(bool(message.get("error")) for message in results)
    assert sum(counts.details.get("recorded_scores", {}).values()) == len(scores)
    assert counts.details["unknown"] == {}
