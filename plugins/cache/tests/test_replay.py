"""Replies are recorded and replayed exactly, for nothing; a reply that was never recorded is a failure."""

from __future__ import annotations

import asyncio
import json
import os
import stat
import subprocess
import sys

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dicast import (
    AccessRefused,
    ChatModel,
    ChatRequest,
    ConfigError,
    Cost,
    Failure,
    Judgment,
    KeptReply,
    Message,
    Reply,
    RunContext,
    Token,
    Usage,
    estimate,
)
from dicast.testing import FakeChatModel, run_pipeline, sample
from dicast_cache.replay import Chat

HEADER = '{"dicast_replay": 1}\n'
PRICE = Cost("0.01")


def question(text="How good?", **fields):
    return ChatRequest((Message("user", text),), **fields)


def sealed(seal):
    return question(f"How good?\nseal: {seal}", nonces=(seal,))


def use_open(chat, use):
    """Open *chat*, and return the result of ``use(live)``."""

    async def work():
        async with chat.open(RunContext("R", "test", chat.path.parent)) as live:
            return await use(live)

    return asyncio.run(work())


def ask(chat, *requests, together=False):
    """The answers of *chat*, opened once."""

    async def answers(live):
        if together:
            return await asyncio.gather(*map(live.complete, requests))
        return [await live.complete(request) for request in requests]

    return use_open(chat, answers)


def record(path, replies, *requests, **fields):
    model = FakeChatModel(replies, cost=PRICE)
    return model, ask(Chat(path, model), *requests, **fields)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "made" / "replies.jsonl"


def test_what_is_recorded_costs_what_it_cost_and_is_told_again_for_nothing(path):
    reply = Reply("0.75", "m-1", "max_tokens", Usage(7, 3), PRICE, (Token("0.", -0.5), Token("75", 0.0)), {"ms": 12})
    model, answers = record(path, [reply], question(), question())
    free = attrs.evolve(reply, cost=Cost.zero(), metrics={"ms": 12, "cached": True})
    assert answers == [reply, free]
    assert ask(Chat(path), question()) == [free]
    model.assert_all_asked()


def test_recording_is_for_its_owner_alone_and_says_what_was_asked(path):
    record(path, "yes", question("Good?", schema={"type": "object"}))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    header, line = map(json.loads, path.read_text().splitlines())
    assert header == {"dicast_replay": 1}
    assert line["digest"] == question("Good?", schema={"type": "object"}).digest({})
    assert line["key"]["messages"] == [{"role": "user", "content": "Good?"}]
    assert "cost" not in line["reply"]


def test_reply_that_was_never_recorded_is_a_failure_that_says_what_to_do(path):
    record(path, "yes", question())
    (failure,) = ask(Chat(path), question("Another"))
    assert (failure.kind, failure.retryable, failure.cost) == ("judge_call_failed", False, Cost.zero())
    for part in (question("Another").digest({}), str(path), "set 'record' to a chat model"):
        assert part in failure.message


def test_failures_are_not_recorded(path):
    failure = Failure("timeout", "too slow", cost=PRICE)
    model, answers = record(path, [failure, "yes"], question(), question())
    assert answers[0] is failure
    assert answers[1].text == "yes"
    model.assert_all_asked()


def test_attempts_and_rollouts_are_recorded_apart(path):
    requests = [question(attempt=a, rollout=r) for a in (0, 1) for r in (0, 1)]
    record(path, ["a", "b", "c", "d"], *requests)
    assert [reply.text for reply in ask(Chat(path), *reversed(requests))] == ["d", "c", "b", "a"]


def test_equal_requests_at_the_same_time_are_asked_once(path):
    model = FakeChatModel(lambda request: request.messages[0].content, seconds=0.01)
    requests = [question(str(number % 3)) for number in range(30)]
    answers = ask(Chat(path, model), *requests, together=True)
    assert [reply.text for reply in answers] == [str(number % 3) for number in range(30)]
    assert len(model.asked) == 3
    assert len(path.read_text().splitlines()) == 4


def test_equal_requests_at_the_same_time_share_a_failure_that_is_paid_for_once(path):
    model = FakeChatModel(Failure("timeout", "slow", cost=PRICE), seconds=0.01)
    answers = ask(Chat(path, model), *[question()] * 20, together=True)
    assert len(model.asked) == 1
    assert sorted(answer.cost.amount for answer in answers) == [0] * 19 + [PRICE.amount]
    assert {attrs.evolve(answer, cost=PRICE) for answer in answers} == {Failure("timeout", "slow", cost=PRICE)}


def test_equal_requests_at_the_same_time_share_what_the_model_raised(path):
    model = FakeChatModel(ValueError("out of order"), seconds=0.01)

    async def use(live):
        return await asyncio.gather(*(live.complete(question()) for _ in range(5)), return_exceptions=True)

    assert list(map(repr, use_open(Chat(path, model), use))) == ["ValueError('out of order')"] * 5
    assert len(model.asked) == 1


def test_equal_requests_at_the_same_time_are_refused_access_together_and_one_has_paid(path):
    model = FakeChatModel(AccessRefused("401", PRICE), seconds=0.01)

    async def use(live):
        return await asyncio.gather(*(live.complete(question()) for _ in range(5)), return_exceptions=True)

    refused = use_open(Chat(path, model), use)
    assert [(str(error), error.cost) for error in refused] == [("401", PRICE)] + [("401", None)] * 4
    assert len(model.asked) == 1


def test_cancelled_request_that_waits_leaves_the_others_their_answer(path):
    model = FakeChatModel("yes", seconds=0.02)

    async def use(live):
        first, second, third = (asyncio.ensure_future(live.complete(question())) for _ in range(3))
        await asyncio.sleep(0.005)
        second.cancel()
        return await first, await third

    assert [reply.text for reply in use_open(Chat(path, model), use)] == ["yes", "yes"]
    assert len(model.asked) == 1


def test_one_takes_over_from_a_cancelled_request_for_all_that_wait(path):
    model = FakeChatModel(Failure("timeout", "slow"), seconds=0.02)

    async def use(live):
        first, *waiting = (asyncio.ensure_future(live.complete(question())) for _ in range(5))
        await asyncio.sleep(0.005)
        first.cancel()
        return await asyncio.gather(*waiting)

    assert [answer.kind for answer in use_open(Chat(path, model), use)] == ["timeout"] * 4
    assert len(model.asked) == 2


def test_shared_reply_has_the_seal_of_each_call(path):
    model = FakeChatModel(
        lambda request: Reply(f"<{request.nonces[0]}>", stop_reason="refusal", cost=PRICE), seconds=0.01
    )
    seals = [letter * 12 for letter in "abc"]
    answers = ask(Chat(path, model), *map(sealed, seals), together=True)
    assert [answer.text for answer in answers] == [f"<{seal}>" for seal in seals]
    assert ([answer.cost for answer in answers], len(model.asked)) == ([PRICE, Cost.zero(), Cost.zero()], 1)


def test_quoted_seal_becomes_that_of_the_new_call(path):
    first, second = "aaaaaaaaaaaa", "bbbbbbbbbbbb"
    record(path, lambda request: json.dumps({"seal": request.nonces[0], "score": 1}), sealed(first))
    (reply,) = ask(Chat(path), sealed(second))
    assert reply.text == json.dumps({"seal": second, "score": 1})


NONCES = st.lists(st.text("0123456789abcdef", min_size=4, max_size=12), min_size=1, max_size=3, unique=True)


@given(NONCES, NONCES, st.data())
def test_renamed_tokens_still_make_up_the_renamed_text(old, new, data):
    parts = data.draw(st.lists(st.sampled_from([*old, "{", " score: ", "ä", "-"]), max_size=8))
    text = "".join(parts)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    bounds = [0, *cuts, len(text)]
    tokens = tuple(Token(text[a:b], -0.1) for a, b in zip(bounds, bounds[1:], strict=False))
    renamed = KeptReply(Reply(text, logprobs=tokens), tuple(old)).renew(tuple(new))
    assert "".join(token.text for token in renamed.logprobs) == renamed.text
    assert [token.logprob for token in renamed.logprobs] == [token.logprob for token in tokens]
    if len(new) < len(old):
        return
    unchanged = KeptReply(Reply(text, logprobs=tokens), tuple(old)).renew(tuple(old))
    assert (unchanged.text, unchanged.logprobs) == (text, tokens)


def test_two_nonces_may_swap_without_being_mixed_up():
    assert KeptReply(Reply("aaaa bbbb"), ("aaaa", "bbbb")).renew(("bbbb", "aaaa")).text == "bbbb aaaa"


def test_estimate_is_nothing_for_what_is_recorded_and_the_models_for_the_rest(path):
    chat = Chat(path, FakeChatModel("yes", cost=PRICE))
    ask(chat, question())

    async def estimates():
        async with chat.open(RunContext("R", "test", path.parent)) as live:
            return estimate(live, question()), estimate(live, question("Another"))

    assert asyncio.run(estimates()) == (Cost.zero(), PRICE)
    assert (estimate(chat, question()), estimate(Chat(path), question())) == (PRICE, Cost.zero())


def test_missing_recording_is_refused_where_the_file_names_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=r"no recording at .*none\.jsonl: name one, or set 'record'"):
        run_pipeline("define: {m: {replay/chat: {path: none.jsonl}}}\nmetrics: [proxy/format]")


def test_every_bad_line_is_named(path):
    path.parent.mkdir()
    good = json.dumps({"digest": question().digest({}), "reply": {"text": "yes"}})
    bad = [
        "{",
        "[1]",
        "3",
        '{"digest": "00"}',
        '{"digest": "zz", "reply": {"text": "a"}}',
        '{"digest": "00", "reply": 1}',
    ]
    bad.append('{"digest": "00", "reply": {"text": 1}}')
    bad.append('{"digest": "00", "reply": {"text": "a", "txet": "a"}}')
    path.write_text("\n".join([HEADER.strip(), good, *bad]) + "\n")
    with pytest.raises(ConfigError) as caught:
        ask(Chat(path))
    assert [problem.line for problem in caught.value.problems] == list(range(3, 3 + len(bad)))
    assert "replies.jsonl:6: this is not a recorded reply (no 'reply')" in str(caught.value)


def test_thousand_bad_lines_are_counted_and_a_hundred_named(path):
    path.parent.mkdir()
    path.write_text("{}\n" * 1000)
    with pytest.raises(ConfigError, match="… and 900 more") as caught:
        ask(Chat(path))
    assert len(caught.value.problems) == 101


@pytest.mark.parametrize(
    ("text", "problem"),
    [(HEADER + '{"digest"', ":2: the last line is cut off"), ('{"dicast_replay": 2}\n', "has format 2")],
)
def test_cut_off_or_newer_recording_is_refused_and_left_as_it_was(path, text, problem):
    path.parent.mkdir()
    path.write_text(text)
    with pytest.raises(ConfigError, match=problem):
        ask(Chat(path, FakeChatModel()))
    assert path.read_text() == text


def test_first_of_two_replies_to_one_request_counts_and_a_header_is_not_needed(path):
    path.parent.mkdir()
    lines = [{"digest": question().digest({}), "reply": {"text": text}} for text in ("one", "two")]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert ask(Chat(path), question()) == [Reply("one", metrics={"cached": True})]


def test_recording_that_cannot_be_opened_is_refused(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match=r"the recording .*below cannot be opened"):
        ask(Chat(tmp_path / "file" / "below", FakeChatModel()))


def test_full_disk_is_a_failure_with_its_cost_and_leaves_no_half_line(path, monkeypatch):
    record(path, "yes", question("first"))
    before = path.read_bytes()
    write = os.write
    monkeypatch.setattr("dicast_cache.replay.recording.os.write", lambda file, data: write(file, data[:20]))
    _, (failure,) = record(path, "yes", question())
    assert (failure.kind, failure.cost) == ("judge_call_failed", PRICE)
    assert "only 20 of" in failure.message
    assert path.read_bytes() == before


RECORDER = """
import asyncio, sys
from pathlib import Path
from dicast import ChatRequest, Message, RunContext
from dicast.testing import FakeChatModel
from dicast_cache.replay import Chat

async def work(path, name):
    chat = Chat(path, FakeChatModel("x" * 5000))
    async with chat.open(RunContext("R", "test", path.parent)) as live:
        for number in range(100):
            await live.complete(ChatRequest((Message("user", f"{name} {number}"),)))

asyncio.run(work(Path(sys.argv[1]), sys.argv[2]))
"""


@pytest.mark.slow
def test_processes_may_record_into_one_file(path):
    running = [subprocess.Popen([sys.executable, "-c", RECORDER, str(path), name]) for name in "ab"]
    assert [process.wait(200) for process in running] == [0, 0]
    requests = [question(f"{name} {number}") for name in "ab" for number in range(100)]
    assert {len(reply.text) for reply in ask(Chat(path), *requests)} == {5000}


@attrs.frozen
class Grader:
    """Takes the reply for the score."""

    model: ChatModel

    async def judge(self, subject, children):
        reply = await self.model.complete(question(subject.text))
        if isinstance(reply, Failure):
            return reply
        return Judgment(float(reply.text), 0.5, "llm", reply.model)

    def estimate(self, subject):
        return estimate(self.model, question(subject.text))


def run(model, *texts):
    subjects = [sample(text, id=text) for text in texts]
    return run_pipeline("judges: [grader]", subjects=subjects, components={"grader": Grader(model)})


def test_recorded_run_can_be_repeated_exactly_and_for_nothing(path):
    first = run(Chat(path, FakeChatModel(lambda request: request.messages[0].content, cost=PRICE)), "0.25", "1")
    second = run(Chat(path), "0.25", "1", "0.5")
    assert [(verdict.subject_id, verdict.score) for verdict in first.verdicts] == [("0.25", 0.25), ("1", 1.0)]
    assert [(v.subject_id, v.score, v.judge_model) for v in second.verdicts] == [
        (v.subject_id, v.score, v.judge_model) for v in first.verdicts
    ]
    assert (first.document["cost"]["usd"], second.document["cost"]["usd"]) == ("0.02", "0")
    assert second.document["failures"] == {"judge_call_failed": 1}
