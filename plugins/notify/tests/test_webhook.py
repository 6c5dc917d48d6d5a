"""Messages about runs: their time, their text, and the effect of a channel that does not answer."""

from __future__ import annotations

import json
import re

import pytest

import dicast
from dicast import ConfigError, RequestError, Secret, read_ledger
from dicast.reading import reader
from dicast_notify import webhook
from dicast_notify.earlier import Standing

GOOD, BAD = "It is Ankara.", "SECRET-ANSWER: it is Bonn."


@pytest.fixture
def run(tmp_path, receiver):
    """Return a function that runs a pipeline on *outputs* with the webhook's *options*."""

    def run(outputs, *, gate=None, name="nightly", proxies=(), **options):
        rows = [{"id": str(number), "output": output} for number, output in enumerate(outputs)]
        (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        pipeline = {
            "name": name,
            "source": {"rows/jsonl": {"path": str(tmp_path / "rows.jsonl")}},
            "metrics": [*proxies, {"check/contains": {"as": "city", "value": "Ankara"}}],
            "sinks": [{"notify/webhook": {"url": receiver.url, **options}}],
            "ledger": {"ledger/sqlite": {"path": str(tmp_path / "ledger.db")}},
        }
        return dicast.run(pipeline | ({} if gate is None else {"gate": gate}))

    return run


def triggers(receiver):
    return [message["trigger"] for message in receiver.messages]


def test_a_gate_that_fails_after_it_passed_is_worse_and_is_reported_once(run, receiver):
    gate = {"min_pass_rate": 0.75}
    run([GOOD] * 4, gate=gate)
    assert receiver.messages == []
    first = run([GOOD, GOOD, BAD, BAD], gate=gate)
    again = run([GOOD, GOOD, BAD, BAD], gate=gate)
    assert (first.exit_code, again.exit_code) == (1, 1)
    (message,) = receiver.messages
    assert message["trigger"] == "worse"
    assert message["answer"] == "failed"
    assert message["run_id"] == first.run_id
    assert "it passed in run" in message["worse"][0]
    assert message["labels"]["metrics"]["mean"] == first.labels["metrics"]["mean"]
    assert message["previous"]["labels"]["metrics"]["mean"] == 1.0


def test_an_undecided_run_in_between_hides_no_change(run, receiver):
    gate = {"min_pass_rate": 0.75, "min_coverage": 0.9}
    run([GOOD] * 4, gate=gate)
    run([GOOD, GOOD, None, None], gate=gate)
    run([GOOD, GOOD, BAD, BAD], gate=gate)
    assert triggers(receiver) == ["worse"]


def test_a_first_run_is_not_worse_even_if_it_fails(run, receiver):
    assert run([BAD] * 4, gate={"min_pass_rate": 0.75}).exit_code == 1
    assert receiver.messages == []


def test_a_run_of_another_name_is_no_earlier_run(run, receiver):
    run([GOOD] * 4, gate={"min_pass_rate": 0.75}, name="other")
    run([BAD] * 4, gate={"min_pass_rate": 0.75})
    assert receiver.messages == []


def test_without_a_gate_a_label_that_compare_calls_worse_is_worse(run, receiver):
    run([GOOD] * 19 + [BAD])
    run([GOOD] * 17 + [BAD] * 3)
    assert receiver.messages == []
    before = run([GOOD] * 20)
    done = run([GOOD] * 5 + [BAD] * 15)
    (message,) = receiver.messages
    answer = _answer(before, done)
    assert answer["answer"] == "worse"
    figures = f"{answer['mean_difference']:+.4f} (95 % interval {answer['ci_low']:+.4f} to {answer['ci_high']:+.4f}) over 20 pairs"
    assert message["worse"] == [f"city: worse than in run {before.run_id}: {figures}"]
    assert message["gate"] is None


def test_the_gate_and_the_comparison_round_one_difference_in_one_way(run, receiver):
    """A difference of -17/32 = -0.53125 is half-way between two numbers of four decimals."""
    run([GOOD] * 32)
    run([GOOD] * 15 + [BAD] * 17, gate={"on": "metrics", "baseline": "nightly", "max_drop": 0.02})
    (message,) = receiver.messages
    assert message["worse"][0] == "metrics: the difference from the baseline is -0.5312, and max_drop is 0.02"
    assert any("worse than in run " in line and ": -0.5312 (" in line for line in message["worse"])


def test_a_drop_that_a_reason_of_the_gate_states_is_in_the_text_once(run, receiver):
    run([GOOD] * 20)
    run([GOOD] * 5 + [BAD] * 15, gate={"on": "city", "baseline": "nightly", "max_drop": 0.02})
    (message,) = receiver.messages
    assert len(message["worse"]) == 2
    assert [line for line in message["text"].splitlines() if "-0.75" in line] == message["reasons"]


def test_a_label_that_is_worse_for_every_score_of_the_held_back_is_worse(run, receiver):
    run([GOOD] * 20, proxies=["proxy/format"])
    run([""] * 2 + [BAD] * 14 + [GOOD] * 4, proxies=["proxy/format"])
    (message,) = receiver.messages
    (line,) = [line for line in message["worse"] if line.startswith("city: worse than in run ")]
    assert ": -0.8000 to -0.7000 (" in line


def _answer(before, done):
    """Return the answer of ``dicast compare`` about the label city."""
    options = {"a": before.run_id, "b": done.run_id, "compare": ("stats/paired",)}
    return read_ledger(done.ledger["path"], lambda live: reader("compare")(live, **options))["answers"]["city"]


def test_a_drop_on_the_same_rows_is_worse_although_independent_means_are_not(run, receiver):
    """A test of independent means has p = 0.03, one-sided, and does not report this drop at 0.025."""
    run([GOOD] * 20 + [BAD] * 20)
    run([GOOD] * 12 + [BAD] * 28)
    (message,) = receiver.messages
    assert message["worse"][0].startswith("city: worse than in run ")


def test_runs_over_other_rows_are_not_compared_and_the_message_has_the_reason(run, receiver):
    run([GOOD] * 30, when="always")
    run([BAD] * 20, when="always")
    message = receiver.messages[-1]
    reason = "10 of 30 subjects of the baseline have no score in this run, more than 5%"
    assert message["worse"] == []
    assert reason in message["previous"]["not_compared"]
    assert reason in message["text"]
    assert message["trigger"] == "end"


@pytest.mark.parametrize(
    ("when", "expected"),
    [
        ("failed", ["failed"]),
        ("undecided", ["undecided"]),
        ("always", ["end", "end", "end"]),
        (["worse", "failed"], ["worse"]),
        (["failed", "undecided"], ["failed", "undecided"]),
    ],
    ids=str,
)
def test_a_message_is_sent_only_for_the_reasons_in_when(run, receiver, when, expected):
    gate = {"min_pass_rate": 0.75}
    for outputs in ([GOOD] * 4, [BAD] * 4, [GOOD, None, None, None]):
        run(outputs, gate=gate, when=when)
    assert triggers(receiver) == expected


def test_a_run_that_an_endpoint_refused_is_a_message_about_an_undecided_run():
    figures = {"scored": 0, "metrics": {}, "judges": {}, "cost": {"usd": "0"}, "spend_lost": {"usd": "0"}}
    stopped = {"reason": "refused_by_provider"}
    standing = Standing({"gate": None, "undecided": ["stopped"], "stopped": stopped, **figures}, "pipeline", None, ())
    messenger = webhook.Messenger(webhook.Webhook(Secret("http://127.0.0.1:9/hook"), "undecided"), None, None, None)
    assert (standing.answer, messenger._trigger(standing)) == ("not judged (exit code 2)", "undecided")


def test_the_document_has_figures_and_no_judged_text(run, receiver):
    done = run([GOOD, BAD], gate={"min_pass_rate": 0.75}, when="always")
    (message,) = receiver.messages
    assert message["version"] == 1
    assert message["id"] == receiver.requests[0]["idempotency-key"]
    assert (message["subjects"], message["scored"], message["coverage"]) == (2, 2, 1.0)
    assert message["gate"]["passed"] is False
    assert f"dicast show {done.run_id}" in message["text"]
    assert "SECRET-ANSWER" not in json.dumps(message)


def test_the_text_form_is_a_text_alone_that_mentions_nobody(run, receiver):
    run([GOOD], when="always", form="text", name="<!channel> & @here")
    (message,) = receiver.messages
    assert [*message] == ["text"]
    assert message["text"].startswith("&lt;!channel&gt; &amp; @\u200bhere ended: no gate\n")
    assert len(message["text"]) <= 2_000


def test_a_long_name_is_cut_with_the_number_of_its_omitted_characters(run, receiver):
    run([GOOD], when="always", form="text", name="n" * 3_000)
    (message,) = receiver.messages
    assert len(message["text"]) <= 2_000
    assert "more characters)" in message["text"]


def test_the_label_of_the_gate_is_the_first_line_of_the_text_with_its_difference(run, receiver):
    gate = {"on": "city", "min_score": 0.75}
    run([GOOD] * 4, gate=gate)
    run([GOOD, GOOD, BAD, BAD], gate=gate)
    (message,) = receiver.messages
    title, line, *others = message["text"].splitlines()
    assert title == "nightly got worse"
    assert line.startswith("city: mean 0.5000")
    assert line.endswith(", below min_score 0.75, 4 of 4 scored; before 1.0000 (-0.5000)")
    assert not any(other.startswith("metrics: mean") for other in others)


def test_the_text_states_each_figure_once(run, receiver):
    gate = {"on": "city", "min_score": 0.75}
    run([GOOD] * 40, gate=gate)
    run([GOOD] * 15 + [BAD] * 25, gate=gate)
    (message,) = receiver.messages
    _, line, failed, worse, *others = message["text"].splitlines()
    assert re.fullmatch(
        r"city: mean 0\.3750 \(95 % interval 0\.\d+ to 0\.\d+\), below min_score 0\.75, 40 of 40 scored; before 1\.0000",
        line,
    )
    assert failed.startswith("the gate failed; it passed in run ")
    assert re.search(r": -0\.6250 \(95 % interval -0\.\d+ to -0\.\d+\) over 40 pairs$", worse)
    assert [other.partition(" ")[0] for other in others] == ["coverage", "spent", "next:"]
    assert message["reasons"] == ["the mean of city is 0.375, below min_score 0.75"]


def test_the_label_that_failed_the_gate_is_the_first_line(run, receiver):
    gate = [{"on": "length", "min_score": 0.5}, {"on": "city", "min_score": 0.75}]
    run([GOOD, BAD], when="failed", gate=gate, proxies=[{"check/contains": {"as": "length", "value": ""}}])
    (message,) = receiver.messages
    assert message["text"].splitlines()[1].startswith("city: mean 0.5000")


def test_headers_are_sent(run, receiver):
    run([GOOD], when="always", headers={"Authorization": "Bearer abcdefgh"})
    assert receiver.requests[0]["authorization"] == "Bearer abcdefgh"
    assert receiver.requests[0]["content-type"] == "application/json"


def test_a_refusal_is_shown_costs_no_verdict_and_is_not_repeated(run, receiver):
    receiver.answers, receiver.complaint = [404], "no channel at /services/T0SECRET/B1SECRET/verysecretword"
    done = run([GOOD, BAD], when="always")
    status = done.sinks["notify/webhook"]
    assert done.exit_code == 4
    assert len(done.verdicts) == 2
    assert status["lost"] == 1
    assert "HTTP 404" in status["error"]
    assert "verysecretword" not in str(status)
    assert "SECRET" not in str(status)
    assert len(receiver.requests) == 1


def test_a_fault_of_the_server_is_tried_again_with_the_same_id(run, receiver):
    receiver.answers, receiver.headers = [503, 429], {"Retry-After": "0"}
    done = run([GOOD], when="always")
    assert done.exit_code == 0
    assert done.sinks["notify/webhook"] == {"written": 1, "lost": 0}
    assert len({request["idempotency-key"] for request in receiver.requests}) == 1
    assert len(receiver.requests) == 3


def test_a_refusal_names_the_place_in_the_pipeline_file_the_problem_and_the_fix(tmp_path, receiver):
    receiver.answers = [404]
    (tmp_path / "rows.jsonl").write_text('{"id": "1", "output": "Ankara"}\n')
    file = tmp_path / "nightly.yaml"
    file.write_text(
        "source: {rows/jsonl: {path: rows.jsonl}}\nmetrics: [check/contains: {value: Ankara}]\n"
        f"sinks:\n  - notify/webhook: {{url: {receiver.url}, when: always}}\n"
    )
    error = dicast.run(file).sinks["notify/webhook"]["error"]
    words = f"{receiver.origin} did not accept the message: HTTP 404: ok; correct url"
    assert error == f"{file}:4:5: {words}"


def test_a_refusal_without_a_text_says_so(run, receiver):
    receiver.answers, receiver.complaint = [404], ""
    done = run([GOOD, BAD], when="always")
    assert "HTTP 404: the reply has no text" in done.sinks["notify/webhook"]["error"]


def test_a_redirect_is_not_followed(run, receiver):
    receiver.answers, receiver.headers = [302] * 3, {"Location": f"{receiver.origin}/elsewhere"}
    done = run([GOOD], when="always")
    assert "redirects" in done.sinks["notify/webhook"]["error"]
    assert {request["path"] for request in receiver.requests} == {"/services/T0SECRET/B1SECRET/verysecretword"}


def test_a_silent_receiver_ends_the_run_after_its_timeouts(run, receiver):
    receiver.answers = [0, 0, 0]
    done = run([GOOD], when="always", timeout=0.05)
    assert done.exit_code == 4
    assert "no answer within 0.05 s; raise timeout" in done.sinks["notify/webhook"]["error"]


def test_a_receiver_that_is_not_there_is_named_without_its_path(run, receiver):
    done = run([GOOD], when="always", url="http://127.0.0.1:9/services/verysecretword")
    error = done.sinks["notify/webhook"]["error"]
    assert "http://127.0.0.1:9 did not accept the message" in error
    assert "verysecretword" not in error


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"url": ""}, "url is empty; give it the address of the webhook, or leave out the sinks with --set sinks="),
        ({"url": "hooks.example.com/verysecretword"}, "url is no http:// or https:// address"),
        ({"url": "https://user:verysecretword@example.com/"}, "url holds a user name or a password"),
        ({"when": []}, "when is empty"),
        ({"when": "better"}, "better"),
        ({"when": ["worse", "better"]}, "better"),
        ({"form": "xml"}, "xml"),
        ({"timeout": 60}, "timeout"),
    ],
    ids=["empty", "no address", "password", "never", "unknown", "unknown in a list", "form", "timeout"],
)
def test_wrong_options_are_refused_before_the_run_without_the_address(run, receiver, options, message):
    with pytest.raises(RequestError, match=message) as caught:
        run([GOOD], **options)
    assert isinstance(caught.value, ConfigError)
    assert "verysecretword" not in str(caught.value)
    assert receiver.requests == []


def test_an_address_of_an_empty_variable_names_the_variable(run, receiver, monkeypatch):
    monkeypatch.setenv("CHANNEL_URL", "")
    with pytest.raises(RequestError, match="url is empty; .*; the environment variable CHANNEL_URL is empty"):
        run([GOOD], url="${CHANNEL_URL}")
    assert receiver.requests == []


def test_a_message_whose_comparison_was_ended_in_between_is_sent_by_the_next_try(run, receiver, monkeypatch):
    compare, calls = webhook.standing_of, []

    def ended_once(*arguments):
        calls.append(arguments)
        if len(calls) == 1:
            raise TimeoutError("the comparison took too long")
        return compare(*arguments)

    monkeypatch.setattr(webhook, "standing_of", ended_once)
    done = run([BAD] * 4, gate={"min_pass_rate": 0.75}, when="failed")
    assert triggers(receiver) == ["failed"]
    assert done.sinks["notify/webhook"] == {"written": 1, "lost": 0}


def test_a_message_whose_comparison_never_ends_is_lost_and_counted(run, receiver, monkeypatch):
    def never(*_):
        raise TimeoutError("the comparison took too long")

    monkeypatch.setattr(webhook, "standing_of", never)
    done = run([BAD] * 4, gate={"min_pass_rate": 0.75}, when="failed")
    assert receiver.messages == []
    assert done.sinks["notify/webhook"]["lost"] == 1
    assert done.exit_code == 4
