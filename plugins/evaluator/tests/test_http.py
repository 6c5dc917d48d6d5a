"""``evaluator/http``: the payload to the server, and the scores from its replies."""

from __future__ import annotations

import time

import pytest

import dicast


def metric(service, **options):
    return {"evaluator/http": {"url": service.url, "preflight": False, **options}}


def test_the_payload_is_posted_and_the_result_kept_whole(judged, service):
    service.answer = {"score": 0.25, "reasoning": "short", "more": [1]}
    result = judged(metric(service, task_model="m", headers={"X-Key": "secret"}), {"output": "yes", "input": "q"})
    (score,) = result.scores
    assert (score["value"], score["details"], score["signals"]) == (0.25, "short", {"reasoning": "short", "more": [1]})
    example = {"id": "1", "input": "q"}
    assert service.payloads == [{"_protocol_version": 2, "candidate": "yes", "task_model": "m", "example": example}]
    assert {name.lower(): value for name, value in service.headers[0].items()}["x-key"] == "secret"


@pytest.mark.parametrize(
    ("answer", "kind", "message_part"),
    [
        ((500, b"broken"), "judge_call_failed", "HTTP 500: broken"),
        ((302, b"moved"), "judge_call_failed", "HTTP 302: moved"),
        (b"<html>", "judge_output_invalid", "Response is not valid JSON: <html>"),
        ({"value": 1}, "judge_output_invalid", "Evaluator output missing required 'score' field"),
        ({"score": 1.5}, "invalid_score", "Evaluator 'score' must be between 0.0 and 1.0"),
        (b'{"score": "' + b"x" * 5000 + b'"}', "judge_output_invalid", "the reply has more than 1,000 bytes"),
    ],
)
def test_what_is_no_result_is_a_failure(judged, service, answer, kind, message_part):
    service.answer = answer
    ((kind_found, message),) = judged(metric(service, max_output_bytes=1000), {"output": "a"}).failures
    assert kind_found == kind
    assert message.startswith(message_part)


def test_a_reply_that_does_not_come_is_a_timeout(judged, service):
    service.answer = lambda payload: time.sleep(1) or {"score": 1}
    failure = ("timeout", "HTTP request timed out after 0.2s")
    assert judged(metric(service, timeout=0.2), {"output": "a"}).failures == [failure]


def test_a_key_that_the_server_repeats_is_masked(judged, service):
    service.answer = (500, b"the key topsecret1 is not known")
    ((_, message),) = judged(metric(service, headers={"X-Key": "topsecret1"}), {"output": "a"}).failures
    assert message == "HTTP 500: the key *** is not known"


def test_a_refused_key_ends_the_run(judged, service):
    service.answer = (401, b"no")
    finished = judged(metric(service), *[{"output": "a"}] * 50)
    assert len(service.payloads) < 50
    assert finished.values == []


def test_an_address_with_a_password_is_refused_without_showing_it(judged):
    with pytest.raises(dicast.ConfigError) as caught:
        judged({"evaluator/http": {"url": "http://me:topsecret1@localhost/"}}, {"output": "a"})
    assert "topsecret1" not in str(caught.value)
