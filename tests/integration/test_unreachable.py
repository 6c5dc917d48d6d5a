"""Endpoints that nothing listens at: the run ends soon, and is taken up once they are back."""

from __future__ import annotations

import asyncio
import re
import threading
import time

import attrs
import pytest

from dicast import Cost, EndpointUnreachable, Failure
from dicast.toolkit.rate_limit import Reachability

QUICK = "price: free, retries: 0"
JUDGED = """\
judges: [{{llm/judge: {{model: {{openai/chat: {{base_url: "{url}", model: m-1, {more}}}}}}}}}]
executor: {{dicast/async: {{concurrency: {concurrency}}}}}
"""
CASCADE = """\
source: {{traces/messages: {{path: chats.jsonl, id: "{{{{ id }}}}"}}}}
judges:
  - hybrid/cascade:
      stages: [heuristic/turn, {{llm/judge: {{model: {{openai/chat: {{base_url: "{url}", model: m-1, {more}}}}}}}}}]
      escalation_threshold: 1
"""
BOTH = """\
judges:
  - llm/judge: {{as: first, model: {{openai/chat: {{base_url: "{alive}", model: m-1, price: free}}}}}}
  - llm/judge: {{as: second, model: {{openai/chat: {{base_url: "{dead}", model: m-2, price: free, retries: 0}}}}}}
executor: {{dicast/async: {{concurrency: 1}}}}
"""
OTHERS = {
    "jury": "define: {{m: {{openai/chat: {{base_url: '{url}', model: m-1, {more}}}}}}}\njudges: [{{llm/jury: {{judges: [{{llm/judge: {{model: m}}}}, {{llm/judge: {{model: m, retries: 0}}}}]}}}}]\n",
    "litellm": 'judges: [{{llm/judge: {{model: {{litellm/chat: {{api_base: "{url}", model: openai/m-1, api_key: k, {more}}}}}}}}}]\n',
    "cache": 'judges: [{{llm/judge: {{model: {{cache/chat: {{path: kept.db, model: {{openai/chat: {{base_url: "{url}", model: m-1, {more}}}}}}}}}}}}}]\n',
    "replay": 'judges: [{{llm/judge: {{model: {{replay/chat: {{path: kept.jsonl, record: {{openai/chat: {{base_url: "{url}", model: m-1, {more}}}}}}}}}}}}}]\n',
    "prompt": 'task: {{prompt/chat: {{user: "{{{{ output }}}}", model: {{openai/chat: {{base_url: "{url}", model: m-1, {more}}}}}}}}}\n',
    "http": 'task: {{task/http: {{url: "{url}", retries: 0}}}}\n',
}


@pytest.fixture
def closed(unused_port):
    """The base URL of a port that refuses connections, until a test starts a server on it."""
    return f"http://127.0.0.1:{unused_port()}/v1"


def run(shop, text, *arguments):
    return shop.dicast("run", shop.pipeline(text).name, "--json", *arguments)


def states(shop):
    return {kind: len(list(shop.events(f"eval.{kind}"))) for kind in ("completed", "failed")}


@pytest.mark.parametrize("concurrency", [1, 4, 32])
def test_a_dead_endpoint_ends_the_run_after_the_first_calls(shop, closed, concurrency):
    shop.rows(*map(str, range(300)))
    done = run(shop, JUDGED.format(url=closed, more=QUICK, concurrency=concurrency))
    stopped = done.json["stopped"]
    assert (done.code, stopped["reason"]) == (2, "endpoint_unreachable")
    calls = max(10, concurrency)
    assert f"{calls} calls in a row got no connection; the last: m-1 at {closed}" in stopped.pop("message")
    assert stopped == {"reason": "endpoint_unreachable", "model": "m-1", "url": closed, "calls": calls}
    assert (done.json["gate"], bool(done.json["undecided"])) == (None, True)
    assert done.json["scored"] == 0
    assert done.json["failed"] < 10  # at 32 at once, none: who begins with the others ends with them
    assert done.json["subjects"] <= 300 / 2
    assert shop.dicast("ledger", "verify", "--json").json["ok"]


def test_the_summary_of_a_run_that_was_refused_says_that_nothing_was_judged(shop, closed):
    shop.rows(*map(str, range(30)))
    pipeline = shop.pipeline(JUDGED.format(url=closed, more=QUICK, concurrency=1)).name
    for options in ((), ("--full",)):
        done = shop.dicast("run", pipeline, *options)
        assert done.code == 2
        assert "gate: none; not judged (exit code 2): the run was not completed: endpoint_unreachable" in " ".join(
            done.out.split()
        )
        assert "undecided" not in done.out


def test_what_began_together_is_taken_up_when_the_endpoint_is_back(shop, closed, chat_server):
    shop.rows(*map(str, range(40)))
    pipeline = shop.pipeline(JUDGED.format(url=closed, more=QUICK, concurrency=32)).name
    assert shop.dicast("run", pipeline, "--json").code == 2
    assert states(shop) == {"completed": 0, "failed": 0}
    back = type(chat_server)(port=int(closed.rsplit(":", 1)[1].partition("/")[0])).start()
    try:
        done = shop.dicast("run", pipeline, "--json", "--resume")
    finally:
        back.stop()
    assert (done.code, done.json["scored"], done.json["stopped"]) == (0, 40, None)
    assert shop.dicast("ledger", "verify", "--json").json["ok"]


def test_how_many_calls_end_a_run_are_options_of_the_model(shop, closed):
    shop.rows(*map(str, range(30)))
    done = run(shop, JUDGED.format(url=closed, more=f"{QUICK}, unreachable_at_start: 3", concurrency=1))
    assert "3 calls in a row" in done.json["stopped"]["message"]


def test_only_the_first_call_waits_for_an_endpoint_that_was_never_there(shop, closed):
    shop.rows(*map(str, range(30)))
    run(shop, JUDGED.format(url=closed, more="price: free, retries: 1", concurrency=1))
    tries = [event["payload"]["error_message"].endswith("(2 tries)") for event in shop.events("eval.failed")]
    assert tries == [True] + [False] * 8


def test_subjects_that_failed_one_by_one_before_the_end_are_judged_again_on_request(shop, closed, chat_server):
    shop.rows(*map(str, range(20)))
    pipeline = shop.pipeline(JUDGED.format(url=closed, more=f"{QUICK}, unreachable_at_start: 3", concurrency=1)).name
    assert shop.dicast("run", pipeline, "--json").json["failed"] == 2
    back = type(chat_server)(port=int(closed.rsplit(":", 1)[1].partition("/")[0])).start()
    try:
        done = shop.dicast("run", pipeline, "--json", "--resume", "--retry-failed")
    finally:
        back.stop()
    assert (done.code, done.json["scored"], done.json["failed"]) == (0, 20, 0)


def test_an_endpoint_that_goes_away_ends_the_run_and_what_was_judged_is_kept(shop, chat_server):
    shop.rows(*map(str, range(40)))
    leaving = type(chat_server)().start()
    options = f"{QUICK}, unreachable_later: 5"
    pipeline = shop.pipeline(JUDGED.format(url=leaving.url, more=options, concurrency=1)).name
    leaving.latency = 0.02

    def leave():
        while leaving.count < 3:
            time.sleep(0.005)
        leaving.stop()

    thread = threading.Thread(target=leave)
    thread.start()
    done = shop.dicast("run", pipeline, "--json")
    thread.join()
    assert (done.code, done.json["stopped"]["reason"], done.json["stopped"]["calls"]) == (3, "endpoint_unreachable", 5)
    assert (done.json["gate"], bool(done.json["undecided"])) == (None, True)
    assert done.json["scored"] >= 3


@pytest.mark.parametrize("answer", [429, 500, 503])
def test_an_endpoint_that_answers_was_reached_whatever_it_says(shop, chat_server, answer):
    shop.rows(*map(str, range(15)))
    chat_server.answer = chat_server.error(answer)
    done = run(shop, JUDGED.format(url=chat_server.url, more=QUICK, concurrency=1))
    assert (done.json["failed"], done.json["stopped"]) == (15, None)


def test_each_model_of_a_run_is_counted_for_itself(shop, closed, chat_server):
    shop.rows(*map(str, range(30)))
    done = run(shop, BOTH.format(dead=closed, alive=chat_server.url))
    stopped = done.json["stopped"]
    assert (stopped["reason"], stopped["model"], stopped["calls"]) == ("endpoint_unreachable", "m-2", 10)
    assert chat_server.count >= 9  # its successes in between are not the other's


@pytest.mark.slow
@pytest.mark.parametrize("model", OTHERS)
def test_every_model_and_task_that_connects_ends_its_run(shop, closed, model):
    shop.rows(*map(str, range(40)))
    done = run(shop, OTHERS[model].format(url=closed, more=QUICK))
    assert (done.code, done.json["stopped"]["reason"]) == (2, "endpoint_unreachable")


def test_a_cascade_with_a_free_stage_ends_likewise(shop, closed):
    chat = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]
    shop.write("chats.jsonl", [{"id": f"c{n}", "messages": chat} for n in range(40)])
    done = run(shop, CASCADE.format(url=closed, more=QUICK))
    assert done.json["stopped"]["reason"] == "endpoint_unreachable"


# Reachability itself


@attrs.define
class Line:
    """Calls on an endpoint whose answers a test gives by hand."""

    watched: Reachability
    tasks: list = attrs.field(factory=list)
    answers: list = attrs.field(factory=list)

    async def begin(self, count):
        loop = asyncio.get_running_loop()
        self.answers = [loop.create_future() for _ in range(count)]
        self.tasks = [asyncio.ensure_future(self.watched.watch(answer)) for answer in self.answers]
        await asyncio.sleep(0)

    async def end(self, number, reached):
        self.answers[number].set_result((Failure("judge_call_failed", "refused", cost=Cost("0.5")), reached))
        for _ in range(5):
            await asyncio.sleep(0)

    @property
    def outcomes(self):
        """Return the outcome of each call: the type of an error or an answer, None while it waits."""
        return [type(one.exception() or one.result()).__name__ if one.done() else None for one in self.tasks]


def scene(count, ends, at_start=3, later=5):
    async def play():
        line = Line(Reachability(at_start, later))
        await line.begin(count)
        for number, reached in enumerate(ends):
            await line.end(number, reached)
        found = line.outcomes
        for task in line.tasks:
            task.cancel()
        await asyncio.gather(*line.tasks, return_exceptions=True)
        return found

    return asyncio.run(play())


def test_calls_without_a_connection_wait_for_the_others_under_way():
    assert scene(3, [False, False]) == [None, None, None]


def test_all_of_them_end_the_run():
    assert scene(3, [False] * 3) == ["EndpointUnreachable"] * 3


def test_one_that_connects_makes_the_others_failures():
    assert scene(3, [False, False, True]) == ["Failure"] * 3


def test_the_last_under_way_waits_for_nobody():
    assert scene(2, [False, False]) == ["Failure"] * 2


def test_once_reached_an_endpoint_may_miss_more():
    assert scene(7, [True] + [False] * 6) == ["Failure"] * 5 + ["EndpointUnreachable"] * 2


def test_a_call_that_is_given_up_lets_the_others_go():
    async def play():
        line = Line(Reachability(3, 5))
        await line.begin(2)
        await line.end(0, reached=False)
        line.tasks[1].cancel()
        await asyncio.gather(*line.tasks, return_exceptions=True)
        return line.tasks[0].result()

    assert isinstance(asyncio.run(play()), Failure)


def test_a_stop_shows_an_address_without_what_may_be_secret():
    watched = Reachability(1, 1, model="m", url="https://me:s3cret@example.org:8/v1?key=s3cret#s3cret")
    with pytest.raises(EndpointUnreachable) as raised:
        asyncio.run(watched.watch(missed()))
    assert raised.value.details == {"model": "m", "url": "https://example.org:8/v1", "calls": 1}


async def missed():
    return Failure("judge_call_failed", "refused"), False


def test_one_that_waited_for_the_same_call_gets_the_error_without_its_cost():
    error = EndpointUnreachable("gone", Cost("0.5"), {"calls": 3}).unpaid()
    assert (type(error), str(error), error.cost, error.details) == (EndpointUnreachable, "gone", None, {"calls": 3})


def test_what_the_tries_did_cost_is_told_with_the_error():
    async def play():
        watched = Reachability(1, 1)
        answer = asyncio.get_running_loop().create_future()
        answer.set_result((Failure("judge_call_failed", "refused", cost=Cost("0.5")), False))
        await watched.watch(answer)

    with pytest.raises(EndpointUnreachable) as raised:
        asyncio.run(play())
    assert raised.value.cost == Cost("0.5")


def test_an_endpoint_that_too_few_rows_ask_to_be_called_dead_is_explained_once(shop, closed):
    shop.rows(1, 1, 1)
    shop.pipeline(JUDGED.format(url=closed, more=QUICK, concurrency=32))
    done = shop.dicast("run", "p.yaml")
    assert done.code == 3  # decided by the rule for 10 calls alone: three rows were asked about, and failed
    told = " ".join(done.out.split())
    assert told.count("no connection to") == 1
    assert re.search(
        r"failed: 3 judge_call_failed \(a call to a model failed\) judge_call_failed: row r\d, llm/judge: ", told
    )
