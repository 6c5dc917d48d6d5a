"""``openai/batch`` against a server with files and batches."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from decimal import Decimal
from importlib.metadata import entry_points

import pytest

import dicast
from dicast.toolkit.batches import polling
from dicast.toolkit.batches.requests import BatchClient
from dicast.toolkit.endpoint import Answer, CallFault
from dicast_openai.batch_requests import BatchRequests

connect = entry_points(group="dicast")["ledger"].load().connect  # as a pipeline finds it


PRICE = {"input_per_mtok": 1, "output_per_mtok": 2}
COST = Decimal("0.0014")
"""The cost of a reply by the server's usage, at this price."""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def model(batch_server):
    """Make the model: ``model(poll=1)``."""

    def make(**options):
        return {"openai/batch": {"base_url": batch_server.url, "model": "m", "poll": 0.05, "price": PRICE, **options}}

    return make


def pipeline(judge, rows=20, **sections):
    data = [{"id": f"r{number}", "input": f"q{number}", "output": f"a{number}"} for number in range(rows)]
    budget = {"run": "1000 usd", "session": "1000 usd", "day": "1000 usd"}
    return {"name": "p", "source": {"rows/inline": {"rows": data}}, "judges": [judge], "budget": budget, **sections}


def rows(folder, count=20):
    data = ({"id": f"r{number}", "input": f"q{number}", "output": f"a{number}"} for number in range(count))
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in data))
    return {"rows/jsonl": {"path": "rows.jsonl"}}


@pytest.fixture
def judged(folder, model):
    """Run a pipeline over rows with a judge of the model: ``judged({"retries": 0}, rows=5, poll=1)``."""

    def run(judge=(), *, count=20, sections=(), **options):
        judges_option = {"llm/judge": {"model": model(**options), **dict(judge)}}
        return dicast.run(pipeline(judges_option, source=rows(folder, count), **dict(sections)))

    return run


def events(folder, *types):

    connection = connect(folder / ".dicast" / "ledger.db")
    marks = ", ".join("?" * len(types))
    query = f"SELECT type, payload FROM events WHERE type IN ({marks}) ORDER BY seq"
    rows_read = [(kind, json.loads(payload)) for kind, payload in connection.execute(query, types)]
    connection.close()
    return rows_read


def sizes(server):
    """The number of items of each batch."""
    return [len(server.files[batch["input_file_id"]].splitlines()) for batch in server.batches.values()]


def test_all_calls_of_a_stage_are_one_batch(judged, batch_server):
    done = judged(count=200)
    assert (done.scored, sizes(batch_server), batch_server.chats) == (200, [200], 0)
    assert Decimal(done.cost["usd"]) == 200 * COST


def test_more_calls_than_a_batch_may_have_become_several(judged, batch_server):
    assert judged(count=25, max_items=10).scored == 25
    assert sorted(sizes(batch_server)) == [5, 10, 10]


def test_the_key_is_recorded_before_the_request_and_stands_in_the_batch(judged, batch_server, folder):
    judged(count=3)
    (intended, created, end) = events(folder, "batch.intended", "batch.created", "batch.ended")
    (batch,) = batch_server.batches.values()
    key = intended[1]["key"]
    assert batch["metadata"]["key"] == key == created[1]["key"] == end[1]["key"]
    assert created[1]["batch_id"] == batch["id"]
    ids = [json.loads(line)["custom_id"] for line in batch_server.files[batch["input_file_id"]].splitlines()]
    assert ids == [f"{key}-{number}" for number in range(3)]
    assert (end[1]["replied"], end[1]["failed"]) == (3, 0)


def test_items_without_a_reply_are_sent_again_once(judged, batch_server):
    batch_server.outcome = lambda item: 500 if "q1\n" in item["body"]["messages"][-1]["content"] else None
    done = judged(count=5)
    assert (done.scored, sizes(batch_server)) == (4, [5, 1])
    assert done.failures == {"judge_call_failed": 1}
    assert "HTTP 500: set to fail (sent in two batches)" in done.failed_subjects[0]["error_message"]
    assert Decimal(done.cost["usd"]) == 4 * COST


@pytest.mark.parametrize("outcome", [429, "missing", "batch_expired"])
def test_an_item_that_fails_once_is_bought_once(judged, batch_server, outcome):
    failed = set()

    def once(item):
        text = item["body"]["messages"][-1]["content"]
        is_first = "q1\n" in text and not failed
        failed.update({text} if is_first else ())
        return outcome if is_first else None

    batch_server.outcome = once
    done = judged(count=5)
    assert (done.scored, sizes(batch_server), Decimal(done.cost["usd"])) == (5, [5, 1], 5 * COST)
    assert done.spend_lost["usd"] == "0"


def test_an_expired_batch_is_settled_as_far_as_it_came(judged, batch_server):
    batch_server.expires = True
    done = judged(count=8)
    assert sizes(batch_server) == [8, 4]
    assert (done.scored, done.failures) == (6, {"judge_call_failed": 2})
    assert Decimal(done.cost["usd"]) == 6 * COST


def test_bad_replies_are_asked_for_again_in_a_next_batch(judged, batch_server):
    texts = []

    def reply(body):
        from_server = json.loads(json.dumps(first(body)))
        texts.append(body["messages"][-1]["content"])
        if "q1\n" in texts[-1] and len(texts) <= 5:
            from_server["choices"][0]["message"]["content"] = "no verdict"
        return from_server

    first, batch_server.reply = batch_server.reply, reply
    done = judged(count=5)
    assert (done.scored, sizes(batch_server), Decimal(done.cost["usd"])) == (5, [5, 1], 6 * COST)


@pytest.mark.slow
def test_the_timeout_of_a_judge_does_not_count_the_wait(judged, batch_server):
    batch_server.seconds = 2.5
    assert judged({"timeout": 2}, count=3).scored == 3


def test_calls_that_wait_do_not_count_for_the_concurrency(judged, batch_server):
    done = judged(count=40, sections={"executor": {"dicast/async": {"concurrency": 1}}})
    assert (done.scored, sizes(batch_server)) == (40, [40])


def test_a_cap_makes_several_batches_and_is_never_exceeded(judged, batch_server, folder):
    done = judged(count=12, sections={"budget": {"run": "0.02 usd"}})
    reserved = [Decimal(payload["amount"]) for _, payload in events(folder, "spend.reserved")]
    assert len(sizes(batch_server)) > 1
    assert max(reserved) * max(sizes(batch_server)) <= Decimal("0.02")
    assert Decimal(done.cost["usd"]) <= Decimal("0.02")
    assert done.scored + sum(done.failures.values()) == 12


def test_a_cascade_sends_only_what_escalates(folder, model, batch_server):
    cascade = {
        "hybrid/cascade": {
            "stages": [
                {
                    "llm/judge": {
                        "model": {"openai/chat": {"base_url": batch_server.url, "model": "s", "price": "free"}}
                    }
                },
                {"llm/judge": {"model": model()}},
            ]
        }
    }

    def reply(body):
        answer = plain(body)
        sure = 0.2 if body["model"] == "s" and "q1\n" in body["messages"][-1]["content"] else 0.9
        verdict = json.loads(answer["choices"][0]["message"]["content"])
        answer["choices"][0]["message"]["content"] = json.dumps({**verdict, "confidence": sure})
        return answer

    plain, batch_server.reply = batch_server.reply, reply
    done = dicast.run(pipeline(cascade, source=rows(folder, 30)))
    assert (done.scored, sizes(batch_server), batch_server.chats) == (30, [1], 30)


def test_the_two_orders_of_a_pair_are_one_batch(folder, model, batch_server):
    def reply(body):
        answer = plain(body)
        seal = json.loads(answer["choices"][0]["message"]["content"])["seal"]
        text = json.dumps({"seal": seal, "winner": "A", "confidence": 0.9, "rationale": "x"})
        answer["choices"][0]["message"]["content"] = text
        return answer

    plain, batch_server.reply = batch_server.reply, reply
    dicast.run(pipeline({"llm/pairwise": {"model": model(), "opponent": "reference"}}, source=with_references(folder)))
    assert sizes(batch_server)[0] == 10


def with_references(folder):
    data = [{"id": f"r{n}", "input": f"q{n}", "output": f"a{n}", "reference": f"b{n}"} for n in range(5)]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in data))
    return {"rows/jsonl": {"path": "rows.jsonl"}}


def test_all_judges_rollouts_and_metrics_of_a_file_are_one_batch(folder, model, batch_server):
    judges = [{"llm/judge": {"as": label, "model": model()}} for label in ("one", "two")]
    metrics = [{"llm/judge": {"as": label, "model": model()}} for label in ("three", "four")]
    document = pipeline(judges[0], source=rows(folder, 5), metrics=metrics, scoring={"rollouts": 2})
    done = dicast.run({**document, "judges": judges, "name": "p"})
    assert sizes(batch_server) == [5 * (2 + 2 * 2)]
    assert Decimal(done.cost["usd"]) == 30 * COST


def test_reasons_before_the_verdict_are_two_batches_that_are_taken_up(started, batch_server, model, folder):
    def reply(body):
        answer, text = plain(body), body["messages"][-1]["content"]
        if "seal: " not in text:
            fence = text.split("<<<data ")[1].split("\n")[0]
            answer["choices"][0]["message"]["content"] = f"Between the lines with {fence} stands an answer."
        return answer

    plain, batch_server.reply = batch_server.reply, reply
    running = started(judge={"reasoning": "before"})
    while len(batch_server.batches) < 2 and running.process.poll() is None:
        time.sleep(0.01)
    running.end(signal.SIGKILL)
    done = started("--resume", judge={"reasoning": "before"}).end()
    assert (done["scored"], sizes(batch_server), sum(batch_server.billed.values())) == (5, [5, 5], 10)
    assert Decimal(done["cost"]["usd"]) == 10 * COST


def test_the_listed_price_is_halved(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-x")
    from dicast_openai.batch import Batch
    from dicast_openai.chat import Chat

    usage = dicast.Usage(1_000_000, 1_000_000)
    batch, chat = Batch("gpt-4o-mini").cost(usage), Chat("gpt-4o-mini").cost(usage)
    assert batch.amount == chat.amount / 2
    assert batch.pricing_version == f"{chat.pricing_version}, half of it (batch)"


def test_a_written_price_is_the_price_of_the_batch(judged):
    assert Decimal(judged(count=1).cost["usd"]) == COST


def test_an_endpoint_without_batches_ends_the_run(judged, batch_server):
    done = judged(count=3, base_url=batch_server.url.replace("/v1", "/elsewhere"))
    assert done.stopped["reason"] == "refused_by_provider"
    assert done.exit_code == 2


def test_an_endpoint_that_is_not_there_ends_the_run(judged, batch_server):
    done = judged(count=3, base_url="http://127.0.0.1:9/v1", retries=0)
    assert done.stopped["reason"] == "endpoint_unreachable"
    assert (done.cost["usd"], done.spend_lost["usd"]) == ("0", "0")


def test_a_batch_that_the_endpoint_refuses_fails_its_calls(judged, batch_server):
    batch_server.refuses = "enqueued token limit reached"
    done = judged(count=3)
    assert done.failures == {"judge_call_failed": 3}
    assert "enqueued token limit reached" in done.failed_subjects[0]["error_message"]
    assert (done.cost["usd"], done.spend_lost["usd"]) == ("0", "0")


@pytest.mark.parametrize("answer", ["break", 500])
def test_an_unconfirmed_batch_is_looked_up_and_not_made_twice(judged, batch_server, answer):
    batch_server.hook = lambda step, detail: answer if step == "created" else None
    assert judged(count=5).scored == 5
    assert sizes(batch_server) == [5]


def test_a_broken_connection_before_the_batch_makes_it_anew(judged, batch_server):
    drops = iter(["drop"])
    batch_server.hook = lambda step, detail: next(drops, None) if step == "create" else None
    assert judged(count=5).scored == 5
    assert (sizes(batch_server), batch_server.steps.count("list")) == ([5], 1)


def test_a_parameter_that_items_are_refused_for_is_left_out_of_the_next_batch(judged, batch_server):
    def outcome(item):
        return (400, "Unsupported parameter: 'temperature'") if "temperature" in item["body"] else None

    batch_server.outcome = outcome
    done = judged(count=3)
    assert (done.scored, sizes(batch_server)) == (3, [3, 3])


NESTED = json.loads("[" * 900 + "]" * 900)


def test_a_failed_item_has_the_parameters_that_were_adapted(judged, batch_server):
    def outcome(item):
        is_sent = "temperature" in item["body"]
        return (400, "Unsupported parameter: 'temperature'" if is_sent else "The content is too long.")

    batch_server.outcome = outcome
    done = judged(count=2)
    assert (done.scored, done.failed) == (0, 2)
    assert done.adapted == {"llm/judge": ["temperature"]}


@pytest.mark.parametrize("body", ["no completion", {"choices": NESTED}, NESTED], ids=["text", "choices", "list"])
def test_an_item_that_came_back_unreadable_is_paid_by_its_bound(judged, batch_server, body):
    batch_server.reply = lambda request: body
    done = judged(count=1)
    assert (done.failures, sizes(batch_server)) == ({"judge_call_failed": 1}, [1, 1])
    assert Decimal(done.cost["usd"]) > 2 * Decimal("0.0005")


def test_results_that_cannot_be_read_are_paid_by_their_bounds(judged, monkeypatch):
    async def refuse(self, batch):
        raise CallFault("no file of results", again=False)
        yield

    monkeypatch.setattr(BatchRequests, "results", refuse)
    done = judged(count=3)
    assert done.failures == {"judge_call_failed": 3}
    assert "no file of results" in done.failed_subjects[0]["error_message"]
    assert [batch["calls"] for batch in done.batches] == [3]
    assert Decimal(done.cost["usd"]) > 3 * Decimal("0.0005")


def test_an_answer_about_a_batch_that_is_too_long_is_not_read(judged, batch_server):
    def pad(step, detail):
        if step == "poll":
            next(iter(batch_server.batches.values()))["padding"] = "x" * 9_000_000

    batch_server.hook = pad
    assert "more than 8,388,608 bytes" in judged(count=1).failed_subjects[0]["error_message"]


def test_messages_of_items_are_cut(judged, batch_server):
    batch_server.outcome = lambda item: (413, "x" * 100_000)
    assert len(judged(count=1).failed_subjects[0]["error_message"]) < 400


@pytest.mark.parametrize(
    ("page", "problem"),
    [
        ({"data": [{"id": "a", "created_at": 4e9}], "has_more": True}, "goes on after 1,000 pages"),
        ({"data": {"a": 1}}, "list of batches is not a list of objects"),
        ({"data": [1]}, "list of batches is not a list of objects"),
    ],
)
def test_a_batch_that_no_list_shows_is_paid_by_its_bounds(judged, batch_server, monkeypatch, page, problem):
    batch_server.hook = lambda step, detail: 500 if step == "created" else None
    listed(monkeypatch, page)
    done = judged(count=2, window="0.1s")
    assert problem in done.failed_subjects[0]["error_message"]
    assert Decimal(done.cost["usd"]) > 2 * Decimal("0.0005")


def listed(monkeypatch, page):
    """Answer each request for a list with *page*; nobody waits long for a better one."""
    ask = BatchClient.ask

    async def answer(self, method, path, *rest, **options):
        is_list = method == "GET" and path.startswith("/batches?")
        return (
            Answer(200, {}, json.dumps(page).encode()) if is_list else await ask(self, method, path, *rest, **options)
        )

    monkeypatch.setattr(BatchClient, "ask", answer)
    monkeypatch.setattr(polling, "SLACK_SECONDS", 0.1)


PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAgAAAAICAIAAABLbSncAAAAEklEQVR4nGP4z8CAFWEXHbQSACj/P8Fu7N9hAAAAAElFTkSuQmCC"


@pytest.fixture
def judged_images(folder, model):
    """Run a judge over three rows with an image each."""
    rows = ({"id": str(n), "output": "a", "photo": f"data:image/png;base64,{PIXEL}"} for n in range(3))
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    source = {"rows/jsonl": {"path": "rows.jsonl", "fields": {"photo": {"column": "photo", "media": "image"}}}}
    return lambda: dicast.run(pipeline({"llm/judge": {"model": model()}}, source=source))


def test_images_are_sent_in_batches(judged_images, batch_server):
    done = judged_images()
    assert (done.scored, sizes(batch_server)) == (3, [3])
    (batch,) = batch_server.batches.values()
    for line in batch_server.files[batch["input_file_id"]].splitlines():
        parts = json.loads(line)["body"]["messages"][-1]["content"]
        assert [part["type"] for part in parts] == ["text", "image_url", "text"]
    assert not done.warnings


def test_items_that_are_refused_for_their_images_are_sent_again_with_markers(judged_images, batch_server):
    def outcome(item):
        is_text = isinstance(item["body"]["messages"][-1]["content"], str)
        return None if is_text else (400, "This model does not support image input.")

    batch_server.outcome = outcome
    done = judged_images()
    assert (done.scored, sizes(batch_server)) == (3, [3, 3])
    assert [warning["hidden"] for warning in done.warnings] == [{"image": 3}]


class Started:
    """``dicast run`` in a process of its own."""

    def __init__(self, folder, *arguments):
        command = [sys.executable, "-m", "dicast", "run", "p.json", "--json", *arguments]
        self.process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def wait_for(self, server, step):
        ends = time.monotonic() + 100
        while step not in server.steps and time.monotonic() < ends:
            time.sleep(0.01)
        assert step in server.steps

    def end(self, number=None):
        if number is not None:
            self.process.send_signal(number)
        out, err = self.process.communicate(timeout=200)
        self.err = err.decode()
        return json.loads(out) if out else err


def printed(folder, *command):
    return subprocess.run(
        [sys.executable, "-m", "dicast", *command], check=True, cwd=folder, capture_output=True
    ).stdout.decode()


@pytest.fixture
def started(folder, model, batch_server):
    def start(*arguments, count=5, judge=(), **options):
        judges_option = {"llm/judge": {"model": model(**options), **dict(judge)}}
        (folder / "p.json").write_text(json.dumps(pipeline(judges_option, source=rows(folder, count))))
        return Started(folder, *arguments)

    return start


def test_ctrl_c_leaves_the_batch_and_its_reservations(started, batch_server, folder):
    batch_server.seconds = 1e9
    running = started()
    running.wait_for(batch_server, "poll")
    done = running.end(signal.SIGINT)
    (batch,) = batch_server.batches.values()
    assert (done["stopped"]["reason"], batch["status"], batch_server.steps.count("cancel")) == (
        "interrupted",
        "in_progress",
        0,
    )
    assert (done["cost"]["usd"], done["spend_lost"]["usd"]) == ("0", "0")
    assert done["batches"][0]["batch_id"] == batch["id"]
    assert Decimal(done["reserved"]["usd"]) > 5 * COST / 2
    assert f"waiting for batch {batch['id']}: 5 calls to m;" in running.err
    output = printed(folder, "show", "last")
    assert f"reserved for calls in batches: {done['reserved']['usd']} usd" in output
    for flags in ("", " --cancel-batches"):
        assert f"    dicast run p.json --resume {done['run_id']}{flags}\n" in output
    (listed,) = json.loads(printed(folder, "runs", "--json"))["runs"]
    assert (listed["state"], listed["batches"][0]["calls"]) == ("waiting", 5)
    assert "waiting" in printed(folder, "runs")
    batch["_due"] = 0
    done = started("--resume").end()
    assert (done["scored"], sizes(batch_server), Decimal(done["cost"]["usd"])) == (5, [5], 5 * COST)


def test_an_endpoint_that_is_away_for_a_while_is_waited_for(judged, batch_server):
    away = iter([500] * 6)
    batch_server.hook = lambda step, detail: next(away, None) if step == "poll" else None
    assert judged(count=3, retries=0).scored == 3
    assert sizes(batch_server) == [3]


def test_cancel_batches_cancels_at_ctrl_c_and_a_resumed_run_buys_the_rest(started, batch_server):
    batch_server.seconds = 1e9
    running = started("--cancel-batches", count=6)
    running.wait_for(batch_server, "poll")
    done = running.end(signal.SIGINT)
    assert batch_server.steps.count("cancel") == 1
    assert [batch["batch_id"] for batch in done["cancelled_batches"]] == [*batch_server.batches]
    batch_server.seconds = 0.1
    done = started("--resume", count=6).end()
    assert (done["scored"], sizes(batch_server), sum(batch_server.billed.values())) == (6, [6, 3], 6)
    assert Decimal(done["cost"]["usd"]) == 6 * COST


def test_a_resumed_run_with_cancel_batches_makes_no_new_batch(started, batch_server):
    batch_server.seconds = 1e9
    running = started(count=6)
    running.wait_for(batch_server, "poll")
    running.end(signal.SIGKILL)
    done = started("--resume", "--cancel-batches", count=6).end()
    assert (done["scored"], done["failures"], sizes(batch_server)) == (3, {"judge_call_failed": 3}, [6])
    assert (Decimal(done["cost"]["usd"]), done["spend_lost"]["usd"]) == (3 * COST, "0")
    (batch,) = batch_server.batches.values()
    assert [(cancelled["batch_id"], cancelled["model"]) for cancelled in done["cancelled_batches"]] == [
        (batch["id"], "m")
    ]
    message = done["failed_subjects"][0]["error_message"]
    assert f"batch {batch['id']} was canceled before it replied to this call" in message
    assert "--resume --retry-failed" in message


def test_cancel_batches_takes_up_the_run_of_the_same_name_alone(started, batch_server, folder):
    batch_server.seconds = 1e9
    names = [("--set", f"name={name}") for name in ("one", "other")]
    for name in names:
        batch_server.steps.clear()
        running = started(*name)
        running.wait_for(batch_server, "poll")
        running.end(signal.SIGKILL)
    first, second = batch_server.batches.values()
    done = started(*names[0], "--resume", "--cancel-batches").end()
    assert [cancelled["batch_id"] for cancelled in done["cancelled_batches"]] == [first["id"]]
    assert (done["name"], second["status"], batch_server.steps.count("cancel")) == ("one", "in_progress", 1)


def test_the_summary_names_whole_commands_and_cancelled_batches(started, batch_server, folder):
    batch_server.seconds = 1e9
    command = ["run", "p.json", "--set", "name=n"]
    started(count=2).end(signal.SIGKILL)  # it has written the file
    batch_server.steps.clear()
    process = subprocess.Popen(
        [sys.executable, "-m", "dicast", *command], cwd=folder, stdout=subprocess.PIPE, text=True
    )
    Started.wait_for(None, batch_server, "poll")
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=200)
    (run_id,) = re.findall("run (\\w{26})", out)
    for flags in ("", " --cancel-batches"):
        assert f"    dicast run p.json --set name=n --resume {run_id}{flags}\n" in out
    batch = [*batch_server.batches.values()][-1]
    resumed = [*command, "--resume", "--cancel-batches"]
    done = subprocess.run(
        [sys.executable, "-m", "dicast", *resumed], check=False, cwd=folder, capture_output=True, text=True
    )
    assert f"  canceled: batch {batch['id']} of calls to m" in done.stdout
    assert f"batch {batch['id']} has ended" in done.stderr


@pytest.mark.parametrize("how", ["error", "reply"])
def test_a_failed_judgment_is_bought_anew_when_it_is_retried(started, batch_server, how):
    plain = batch_server.reply

    def reply(body):
        answer = plain(body)
        if "q1\n" in body["messages"][-1]["content"]:
            answer["choices"][0]["message"]["content"] = "no verdict"
        return answer

    if how == "error":
        batch_server.outcome = lambda item: 500 if "q1\n" in item["body"]["messages"][-1]["content"] else None
    else:
        batch_server.reply = reply
    assert started(judge={"retries": 0}).end()["scored"] == 4
    batch_server.outcome, batch_server.reply = lambda item: None, plain
    done = started("--resume", "--retry-failed", judge={"retries": 0}).end()
    assert (done["scored"], done["failures"]) == (5, {})
    assert sizes(batch_server) == ([5, 1, 1] if how == "error" else [5, 1])


def test_reservations_of_a_dead_run_are_open_for_other_runs(started, batch_server, folder, judged):
    batch_server.seconds = 1e9
    running = started()
    running.wait_for(batch_server, "poll")
    running.end(signal.SIGKILL)
    batch_server.seconds = 0.1
    before = events(folder, "spend.lost")
    assert judged(count=2).scored == 2
    assert events(folder, "spend.lost") == before == []


def test_watch_mode_and_servers_refuse_batches(model, folder):
    from dicast import RunContext
    from dicast_openai.batch import Batch

    async def opened():
        async with Batch("m", "http://127.0.0.1:1/v1", price="free").open(RunContext("r", "n", folder)):
            raise AssertionError("it was opened")

    import asyncio

    with pytest.raises(dicast.ConfigError, match="only dicast run waits for that"):
        asyncio.run(opened())
