"""A stored reply costs nothing; unfit replies and new requests go to the model."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from decimal import Decimal

import attrs
import pytest

from dicast import (
    AccessRefused,
    ChatModel,
    ChatRequest,
    ConfigError,
    Cost,
    Failure,
    Judgment,
    Message,
    Price,
    Reply,
    Secret,
    Token,
    Usage,
    estimate,
)
from dicast.testing import FakeChatModel, run_pipeline, sample
from dicast_cache.cache import Chat

PRICE = Cost("0.01")


def question(text="How good?", **fields):
    return ChatRequest((Message("system", "Judge."), Message("user", text)), **fields)


def sealed(seal, **fields):
    return question(f"seal: {seal}", nonces=(seal,), **fields)


def cached(answers):
    return [answer.metrics["cached"] for answer in answers]


def test_second_time_costs_nothing_and_says_the_same(ask, path):
    reply = Reply("0.75", "m-1", None, Usage(7, 3), PRICE, (Token("0.75", -0.5),), {"ms": 12})
    model = FakeChatModel([reply])
    first, second = ask(Chat(model, path), question(), question())
    (third,) = ask(Chat(model, path), question())
    key = question().digest(model.identity())
    assert first == attrs.evolve(reply, metrics={"ms": 12, "cached": False, "cache_key": key})
    assert second == third
    assert third == attrs.evolve(reply, cost=Cost.zero(), metrics={"ms": 12, "cached": True, "cache_key": key})
    model.assert_all_asked()


@pytest.mark.parametrize(
    "other",
    [
        {"attempt": 1},
        {"rollout": 1},
        {"temperature": 0.5},
        {"schema": {"type": "object"}},
        {"max_output_tokens": 9},
        {"logprobs": True},
        {"text": "How bad?"},
    ],
    ids=lambda other: next(iter(other)),
)
def test_what_was_asked_otherwise_is_asked_anew(ask, path, other):
    model = FakeChatModel(["one", "two"])
    answers = ask(Chat(model, path), question(), question(**other), question(**other), question())
    assert [answer.text for answer in answers] == ["one", "two", "two", "one"]


def test_another_model_is_asked_anew(ask, path):
    ask(Chat(FakeChatModel("one", "a"), path), question())
    assert ask(Chat(FakeChatModel("two", "b"), path), question())[0].text == "two"


def test_the_probabilities_of_one_token_are_remembered_although_the_limit_cut_the_reply(ask, path):
    token = Token("yes", -0.1, (Token("yes", -0.1), Token("no", -2.5)))
    model = FakeChatModel([Reply("", stop_reason="max_tokens", logprobs=(token,), cost=PRICE)])
    request = question(max_output_tokens=1, logprobs=True, top_logprobs=20)
    first, second = ask(Chat(model, path), request, request)
    assert first.logprobs == second.logprobs == (token,)
    assert second.metrics["cached"]
    model.assert_all_asked()


def test_a_reply_of_one_token_without_probabilities_is_asked_for_again(ask, path):
    model = FakeChatModel([Reply("yes", stop_reason="max_tokens"), Reply("yes", stop_reason="max_tokens")])
    request = question(max_output_tokens=1, logprobs=True, top_logprobs=20)
    ask(Chat(model, path), request, request)
    assert len(model.asked) == 2


@pytest.mark.parametrize(
    "unfit",
    [
        Failure("timeout", "no", cost=PRICE),
        Reply("no", stop_reason="refusal"),
        Reply("0.", stop_reason="max_tokens"),
        Reply("\n"),
    ],
    ids=["failure", "refusal", "cut off", "empty"],
)
def test_what_is_of_no_use_is_asked_for_again(ask, path, unfit):
    model = FakeChatModel([unfit, unfit, Reply("yes")])
    answers = ask(Chat(model, path), *[question()] * 4)
    assert answers[1].cost == unfit.cost
    assert (answers[2].text, answers[3].text, cached(answers[2:])) == ("yes", "yes", [False, True])
    model.assert_all_asked()


def test_refused_access_ends_the_run_and_leaves_nothing(ask, path):
    with pytest.raises(AccessRefused):
        ask(Chat(FakeChatModel([AccessRefused("401")]), path), question())
    assert ask(Chat(FakeChatModel("yes"), path), question())[0].text == "yes"


def test_equal_requests_at_the_same_time_are_asked_once(ask, path):
    model = FakeChatModel(lambda request: request.messages[-1].content, seconds=0.01)
    requests = [question(str(number % 3)) for number in range(30)]
    answers = ask(Chat(model, path), *requests, together=True)
    assert [answer.text for answer in answers] == [str(number % 3) for number in range(30)]
    assert (len(model.asked), cached(answers).count(False)) == (3, 3)


def test_equal_requests_at_the_same_time_share_a_failure_that_is_paid_for_once(ask, path):
    model = FakeChatModel(Failure("timeout", "slow", cost=PRICE), seconds=0.01)
    answers = ask(Chat(model, path), *[question()] * 20, together=True)
    assert len(model.asked) == 1
    assert sorted(answer.cost.amount for answer in answers) == [0] * 19 + [PRICE.amount]
    assert {attrs.evolve(answer, cost=PRICE) for answer in answers} == {Failure("timeout", "slow", cost=PRICE)}


def test_equal_requests_at_the_same_time_share_what_the_model_raised(opened, path):
    model = FakeChatModel(ValueError("out of order"), seconds=0.01)

    async def use(live):
        return await asyncio.gather(*(live.complete(question()) for _ in range(5)), return_exceptions=True)

    assert list(map(repr, opened(Chat(model, path), use))) == ["ValueError('out of order')"] * 5
    assert len(model.asked) == 1


def test_equal_requests_at_the_same_time_are_refused_access_together_and_one_has_paid(opened, path):
    model = FakeChatModel(AccessRefused("401", PRICE), seconds=0.01)

    async def use(live):
        return await asyncio.gather(*(live.complete(question()) for _ in range(5)), return_exceptions=True)

    refused = opened(Chat(model, path), use)
    assert [(str(error), error.cost) for error in refused] == [("401", PRICE)] + [("401", None)] * 4
    assert len(model.asked) == 1


def test_cancelled_request_that_waits_leaves_the_others_their_answer(opened, path):
    model = FakeChatModel("yes", seconds=0.02)

    async def use(live):
        first, second, third = (asyncio.ensure_future(live.complete(question())) for _ in range(3))
        await asyncio.sleep(0.005)
        second.cancel()
        return await first, await third

    assert [reply.text for reply in opened(Chat(model, path), use)] == ["yes", "yes"]
    assert len(model.asked) == 1


def test_one_takes_over_from_a_cancelled_request_for_all_that_wait(opened, path):
    model = FakeChatModel(Failure("timeout", "slow"), seconds=0.02)

    async def use(live):
        first, *waiting = (asyncio.ensure_future(live.complete(question())) for _ in range(5))
        await asyncio.sleep(0.005)
        first.cancel()
        return await asyncio.gather(*waiting)

    assert [answer.kind for answer in opened(Chat(model, path), use)] == ["timeout"] * 4
    assert len(model.asked) == 2


def test_shared_reply_has_the_seal_of_each_call(ask, path):
    model = FakeChatModel(
        lambda request: Reply(f"<{request.nonces[0]}>", stop_reason="refusal", cost=PRICE), seconds=0.01
    )
    seals = [letter * 12 for letter in "abc"]
    answers = ask(Chat(model, path), *map(sealed, seals), together=True)
    assert [answer.text for answer in answers] == [f"<{seal}>" for seal in seals]
    assert ([answer.cost for answer in answers], len(model.asked)) == ([PRICE, Cost.zero(), Cost.zero()], 1)


def test_reply_that_the_model_itself_says_is_cached_stays_so(ask, path):
    replayed = Reply("yes", metrics={"cached": True})
    assert cached(ask(Chat(FakeChatModel(replayed), path), question())) == [True]


def test_seal_is_that_of_the_new_call_in_the_text_and_its_tokens(ask, path):
    def quoting(request):
        seal = request.nonces[0]
        return Reply(f"<{seal}>", logprobs=(Token(f"<{seal[:3]}", -1.0), Token(f"{seal[3:]}>", -2.0)))

    model = FakeChatModel(quoting)
    first, second = ask(Chat(model, path), sealed("aaaaaaaaaaaa"), sealed("bbbbbbbbbbbb"))
    assert (first.text, second.text, len(model.asked)) == ("<aaaaaaaaaaaa>", "<bbbbbbbbbbbb>", 1)
    assert "".join(token.text for token in second.logprobs) == second.text
    assert [token.logprob for token in second.logprobs] == [-1.0, -2.0]


def test_estimate_is_nothing_for_what_is_remembered_and_the_models_for_the_rest(ask, opened, path):
    chat = Chat(FakeChatModel("yes", cost=PRICE), path)
    ask(chat, question())

    async def estimates(live):
        return [estimate(live, request) for request in (question(), question(rollout=1), question("Another"))]

    assert opened(chat, estimates) == [Cost.zero(), PRICE, PRICE]
    assert estimate(chat, question()) == PRICE


def test_file_is_for_its_owner_alone_while_it_is_open_too(opened, path):
    async def modes(live):
        await live.complete(question())
        return {stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}

    assert opened(Chat(FakeChatModel(), path), modes) == {0o600}
    assert [file.name for file in path.parent.iterdir()] == ["cache.db"]


# Files that are no cache


def foreign(path):
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE mine (x)")


def newer(path):
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript("PRAGMA application_id = 0x64696363; PRAGMA user_version = 2;")


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda path: path.write_text("my notes\n" * 100), "it is not a SQLite file; choose another path"),
        (foreign, "is a database, but not a cache of dicast"),
        (newer, "is a cache of format 2, this dicast-cache reads format 1"),
        (lambda path: path.mkdir(), "cannot be used: this is a folder"),
        (lambda path: path.touch(mode=0o600), "not a cache of dicast"),
    ],
    ids=["text", "foreign", "newer", "folder", "empty"],
)
def test_file_that_is_no_cache_is_refused_and_left_as_it_was(ask, path, make, problem):
    path.parent.mkdir()
    make(path)
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(ConfigError, match=problem) as caught:
        ask(Chat(FakeChatModel(), path), question())
    assert str(path) in str(caught.value)
    assert (path.read_bytes() if path.is_file() else None) == before


def test_path_that_cannot_be_written_is_refused(ask, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="cannot be used"):
        ask(Chat(FakeChatModel(), tmp_path / "file" / "below"), question())


def test_reply_that_cannot_be_kept_counts_and_is_told_of(ask, path, caplog):
    ask(Chat(FakeChatModel("yes"), path), question("before"))
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TRIGGER full BEFORE INSERT ON requests BEGIN SELECT RAISE(FAIL, 'disk full'); END")
    assert ask(Chat(FakeChatModel("yes"), path), question())[0].text == "yes"
    assert f"a reply could not be stored in {path}: disk full" in caplog.text


ASKER = """
import asyncio, sys
from pathlib import Path
from dicast import ChatRequest, Message, RunContext
from dicast.testing import FakeChatModel
from dicast_cache.cache import Chat

async def work(path):
    chat = Chat(FakeChatModel(lambda request: request.messages[0].content), path)
    async with chat.open(RunContext("R", "test", path.parent)) as live:
        for number in range(200):
            reply = await live.complete(ChatRequest((Message("user", f"number {number}"),)))
            assert reply.text == f"number {number}"

asyncio.run(work(Path(sys.argv[1])))
"""


@pytest.mark.slow
def test_processes_share_one_file_from_its_making_on(path):
    running = [subprocess.Popen([sys.executable, "-c", ASKER, str(path)]) for _ in range(4)]
    assert [process.wait(200) for process in running] == [0] * 4
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(*), count(reply) FROM requests").fetchone() == (200, 200)
    assert [file.name for file in path.parent.iterdir() if "tmp" in file.name] == []


# What decides a reply


@attrs.frozen
class Plain:
    """A chat model of a third party, without ``identity()``."""

    url: str
    key: Secret = Secret("s3cret")
    timeout: float = 60
    price: Price | None = None
    options: dict[str, object] = attrs.field(factory=dict)
    inner: ChatModel | None = None
    client: object = None

    def complete(self, request):
        return Reply(f"from {self.url}")


def test_model_without_an_identity_is_told_apart_by_its_options(ask, path):
    ask(Chat(Plain("a", options={"top_p": Decimal("0.5")}, inner=FakeChatModel()), path), question())
    equal = Plain("a", Secret("other"), 5, Price(1, 2), {"top_p": Decimal("0.5")}, FakeChatModel())
    distinct = [
        attrs.evolve(equal, url="b"),
        attrs.evolve(equal, options={}),
        attrs.evolve(equal, inner=FakeChatModel("", "x")),
    ]
    assert cached([ask(Chat(model, path), question())[0] for model in (equal, *distinct)]) == [
        True,
        False,
        False,
        False,
    ]
    assert b"s3cret" not in path.read_bytes()


@pytest.mark.parametrize(
    ("model", "problem"),
    [(Plain("a", client=object()), "'client' that is a object"), (object(), "is not an attrs class")],
)
def test_model_that_cannot_be_told_apart_is_refused(ask, path, model, problem):
    with pytest.raises(ConfigError, match=f"{problem}.*give it a method identity"):
        ask(Chat(model, path), question())
    assert not path.exists()


@attrs.frozen
class Grader:
    """Takes the reply for the score, and asks for another where it is none."""

    model: ChatModel

    async def judge(self, subject, children):
        total = Cost.zero()
        for attempt in range(2):
            reply = await self.model.complete(sealed(subject.id, attempt=attempt))
            total += reply.cost
            if json.loads(reply.text)["seal"] == subject.id:
                return Judgment(0.5, 0.5, "llm", reply.model)
        return Failure("judge_output_invalid", reply.text, cost=total)

    def estimate(self, subject):
        return estimate(self.model, sealed(subject.id))


def test_second_run_costs_nothing_and_fits_under_a_cap_of_nothing(path):
    model = FakeChatModel(lambda request: json.dumps({"seal": request.nonces[0]}), cost=PRICE)

    def run(cap):
        text = f"judges: [grader]\nbudget: {{run: {cap} usd}}"
        subjects = [sample("x", id="aaaaaaaaaaaa"), sample("x", id="bbbbbbbbbbbb")]
        return run_pipeline(text, subjects=subjects, components={"grader": Grader(Chat(model, path))})

    first, second = run(1), run(0)
    assert (first.document["cost"]["usd"], second.document["cost"]["usd"]) == ("0.01", "0")
    assert [len(done.verdicts) for done in (first, second)] == [2, 2]
    assert {(verdict.judge_model, verdict.fingerprint) for done in (first, second) for verdict in done.verdicts} == {
        ("fake", first.verdicts[0].fingerprint)
    }
    assert len(model.asked) == 1
