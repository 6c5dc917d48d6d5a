"""``shuffle: SEED`` on a source: a random order that a resumed run keeps."""

from __future__ import annotations

import asyncio
import json
from itertools import pairwise

import attrs
import pytest

from dicast import ConfigError, DataError, Subject, TraceEvent, Trail
from dicast._kernel.source.shuffle import TOGETHER, shuffled_source
from dicast.testing import run_pipeline


def order(done):
    return [event.subject_id for event in done.of("subject.read")]


@pytest.fixture
def rows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = (json.dumps({"id": str(at), "output": "x"}) for at in range(300))
    (tmp_path / "rows.jsonl").write_text("\n".join(lines))


def shuffled(seed, extra="", path="rows.jsonl"):
    return run_pipeline(f"source: {{rows/jsonl: {{path: {path}, shuffle: {seed}}}}}\nmetrics: [proxy/length]\n{extra}")


def test_the_seed_decides_the_order_and_nobody_is_left_out(rows):
    first, again, other = (order(shuffled(seed)) for seed in (1, 1, 2))
    plain = [str(at) for at in range(300)]
    assert first == again
    assert sorted(first, key=int) == sorted(other, key=int) == plain
    assert len({tuple(first), tuple(other), tuple(plain)}) == 3


def test_who_comes_first_is_not_who_is_audited(rows):
    """Both are hashes of the same seed and id: the audited are all over the file."""
    text = "metrics: [proxy/length: {min: 3}, check/regex: {pattern: x}]\nscoring: {audit: {rate: 0.2, seed: 1}}"
    done = run_pipeline(f"source: {{rows/jsonl: {{path: rows.jsonl, shuffle: 1}}}}\n{text}")
    audited = [at for at, verdict in enumerate(done.verdicts) if verdict.truth_reason == "audit"]
    assert 100 < sum(audited) / len(audited) < 200


def test_turns_stay_with_their_session_and_its_events_are_recorded_once(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    turn = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]
    lines = [json.dumps({"messages": turn * (1 + at % 4)}) for at in range(20)]
    (tmp_path / "chats.jsonl").write_text("\n".join(lines))
    text = "source: {traces/messages: {path: chats.jsonl%s}}\nmetrics: [proxy/length]"
    plain, mixed = (run_pipeline(text % extra) for extra in ("", ", shuffle: 9"))
    sessions = [turn.split("/")[0] for turn in order(mixed)]
    assert list(dict.fromkeys(sessions)) != [str(at) for at in range(1, 21)]
    assert sorted(order(mixed)) == sorted(order(plain))
    assert len([1 for before, after in pairwise(sessions) if before != after]) == 19
    assert len(mixed.of("turn.completed")) == len(plain.of("turn.completed")) == 50
    mine = [turn for turn in order(mixed) if turn.startswith("8/")]
    assert mine == ["8/1", "8/2", "8/3", "8/4"]


@pytest.mark.parametrize("count", [2, TOGETHER + 2])
@pytest.mark.parametrize("place", ["events", "trail"])
def test_an_event_that_subjects_of_a_session_share_is_in_memory_once(place, count):
    event = TraceEvent("message", {"text": "x"})
    shared = {"events": (event,)} if place == "events" else {"trail": Trail((event,), 1)}

    @attrs.frozen
    class Turns:
        def subjects(self):
            for at in range(count):
                yield Subject("turn", str(at), session_id="s", **shared)

    async def read():
        return [subject async for subject in shuffled_source(Turns(), 3, live=False).subjects()]

    subjects = asyncio.run(read())
    assert len(subjects) == count
    assert len({id(event) for subject in subjects for event in (*subject.events, *subject.trail)}) == 1


def test_interleaved_sessions_come_together(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = [{"id": str(at), "output": "x", "session_id": f"s{at % 7}"} for at in range(70)]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, lines)))
    ids = list(map(int, order(shuffled(3))))
    sessions = [at % 7 for at in ids]
    assert len([1 for before, after in pairwise(sessions) if before != after]) == 6
    for session in range(7):
        mine = [at for at in ids if at % 7 == session]
        assert mine == sorted(mine)


def test_a_limit_takes_the_first_of_the_random_order(rows, tmp_path):
    full = order(shuffled(4))
    stop = "early_stop: [stats/threshold: {metric: score, threshold: 0, min_rows: 20}]\nexecutor: {dicast/async: {concurrency: 1}}"
    assert order(shuffled(4, stop)) == full[:20]


@pytest.mark.parametrize("seed", ["yes", "1.5", str(2**63)])
def test_what_is_no_seed_is_refused(rows, seed):
    with pytest.raises(ConfigError, match="shuffle"):
        shuffled(seed)


def test_what_is_still_to_come_has_no_order(rows):
    @attrs.frozen
    class Live:
        live = True

        def subjects(self):
            yield Subject("row", "1", output="x")

    with pytest.raises(ConfigError, match="future subjects of a live source have no random order"):
        shuffled_source(Live(), 3, live=False)


def test_bad_rows_are_found_first_as_without(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.jsonl").write_text('{"id": "a", "output": "x"}\nnone\n')
    with pytest.raises(DataError, match="line is not JSON"):
        shuffled(1)
