"""A sample of sessions: allocation, weights, and counts of the sessions that were not drawn."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dicast import DataError
from dicast.testing import SourceConformance, run_pipeline
from dicast_traces.sample import allocation


def chat(number: int, model: str) -> str:
    messages = [
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": "a"},
        {"role": "user", "content": "r"},
        {"role": "assistant", "content": "b"},
    ]
    return json.dumps({"id": f"s{number}", "team": model, "messages": messages}) + "\n"


CHATS = "".join(chat(number, "rare" if number % 10 == 0 else "common") for number in range(100))
PIPELINE = "name: x\nsource: {traces/sample: {source: {traces/messages: {path: a.jsonl, id: '{{ id }}'}}, size: %s%s}}\njudges: [heuristic/turn]\n"


class TestSample(SourceConformance):
    source = "traces/sample"
    files = {"a.jsonl": CHATS}
    options = {"source": {"traces/messages": {"path": "a.jsonl"}}, "size": 5, "by": "team"}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.jsonl").write_text(CHATS)
    return tmp_path


def test_a_stratified_sample_has_weights_that_add_up_to_the_population():
    run = run_pipeline(PIPELINE % (20, ", by: team"))
    read = [event for event in run.of("subject.read") if event.subject_id.endswith("/1")]
    weights = {event.subject_id: event.payload.get("weight", 1) for event in read}
    assert len(weights) == 20
    assert sum(weights.values()) == pytest.approx(100)
    assert sorted(set(weights.values())) == [1, 9]
    document = run.document["read"]
    assert (document["sample"], document["dropped"]) == ({"drawn": 20, "of": 100}, {"not_drawn": 80})
    assert any("common 10 of 90, rare 10 of 10" in note for note in document["notes"])
    assert run.document["score"]["weight"] == pytest.approx(200)
    assert all(
        event.payload.get("weight", 1) == weights[event.subject_id[:-1] + "1"] for event in run.of("subject.read")
    )


def test_the_same_seed_draws_the_same_sessions_in_any_order(folder):
    def drawn(options: str) -> set[str]:
        return {verdict.subject_id for verdict in run_pipeline(PIPELINE % (10, options)).verdicts}

    first = drawn("")
    (folder / "a.jsonl").write_text("".join(reversed(CHATS.splitlines(keepends=True))))
    assert drawn("") == first
    assert drawn(", seed: 2") != first
    assert len(first) == 20


def test_a_sample_of_everything_has_no_weights():
    run = run_pipeline(PIPELINE % (500, ""))
    assert "weight" not in run.document["score"]
    assert run.document["read"]["sample"] == {"drawn": 100, "of": 100}


def test_more_groups_than_sessions_are_refused():
    with pytest.raises(DataError, match="makes more than 5 groups: 100; draw 100 sessions or more"):
        run_pipeline(PIPELINE % (5, ", by: id"))


@given(st.dictionaries(st.text(max_size=3), st.integers(1, 50), min_size=1, max_size=8), st.integers(0, 200))
def test_an_allocation_draws_equally_many_and_never_too_many(counts, more):
    size = len(counts) + more
    drawn = allocation(counts, size)
    assert sum(drawn.values()) == min(size, sum(counts.values()))
    assert all(1 <= drawn[name] <= counts[name] for name in counts)
    open_groups = [drawn[name] for name in counts if drawn[name] < counts[name]]
    assert not open_groups or max(drawn.values()) - min(open_groups) <= 1


@pytest.mark.parametrize(("options", "message"), [
    ((20, ", by: taem"), "no session has a value 'taem'"), ((1, ", by: team"), "by team makes more than 1 group: 2; draw 2 sessions"),
])  # fmt: skip
def test_a_key_that_no_session_has_and_too_many_groups_are_refused(options, message):
    with pytest.raises(DataError, match=message):
        run_pipeline(PIPELINE % options)
