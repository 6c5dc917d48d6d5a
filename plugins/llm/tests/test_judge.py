"""``llm/judge``: its prompts, its reading of replies, and its costs."""

from __future__ import annotations

import asyncio
import json
import math
import pickle
import re
from decimal import Decimal
from hashlib import sha256
from typing import ClassVar

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dicast import ConfigError, Cost, Failure, Judgment, Reply, Rubric, Subject, Token, TraceEvent, rubric
from dicast.testing import FakeChatModel, JudgeConformance
from dicast_llm import LlmJudge

ROW = Subject("row", "7", "Why is the sky blue?", "Rayleigh scattering.")
CENT = Cost("0.01")


def seal(request):
    match = re.search(r"^seal: ([0-9a-f]{12})$", request.messages[-1].content, re.MULTILINE)
    return match and match[1]


def verdict_reply(**fields):
    """A model's reply: a verdict with the seal of the call."""
    return lambda request: json.dumps(
        {"seal": seal(request), "rationale": "Good.", "score": 0.8, "confidence": 0.7} | fields
    )


def ask(replies, subject=ROW, cost=CENT, **options):
    """The judge's answer, and the requests it made."""
    if isinstance(replies, list):
        left = iter(replies)

        def model_replies(request):
            reply = next(left)
            return reply(request) if callable(reply) else reply
    else:
        model_replies = replies
    model = FakeChatModel(model_replies, cost=cost)
    return asyncio.run(LlmJudge(model, **options).judge(subject, ())), model.asked


def judged(replies, subject=ROW, **options):
    answer, _ = ask(replies, subject, **options)
    assert isinstance(answer, Judgment), answer
    return answer


def refused(replies, subject=ROW, **options):
    answer, _ = ask(replies, subject, **options)
    assert isinstance(answer, Failure), answer
    return answer


def prompts_of(subject=ROW, **options):
    """Return the system message and the user message."""
    _, (request, *_) = ask(verdict_reply(), subject, **options)
    return request.messages


def good(request):
    """Return the reply of :func:`verdict_reply`, as a function that can be pickled."""
    return verdict_reply()(request)


def good_dimension(request):
    """Return a verdict on the dimension ``clarity``, without a seal, with log probabilities; a function that can be pickled."""
    verdict = {
        "rationale": "Good.",
        "score": 0.8,
        "confidence": 0.7,
        "clarity": 0.8,
        "hard_constraints_satisfied": True,
    }
    text = json.dumps(verdict)
    return Reply(text, logprobs=spelled(text, {}), cost=CENT)


class TestContract(JudgeConformance):
    judge = "llm/judge"
    options: ClassVar = {"model": "grader"}
    components: ClassVar = {"grader": FakeChatModel(good)}


class TestContractWithEveryOption(JudgeConformance):
    judge = "llm/judge"
    options: ClassVar = {
        "model": "grader", "system_prompt": "Judge.", "criteria": ["Is it short?"], "dimensions": {"clarity": 2},
        "hard_constraints": ["No advertising."], "grounding_tokens": ["sky"], "forbidden_grounding": ["sea"],
        "max_output_tokens": 100, "retries": 0, "confidence": "logprob", "seal": False, "capture_rationale": True,
        "max_chars": 100,
    }  # fmt: skip
    components: ClassVar = {"grader": FakeChatModel(good_dimension, cost=CENT)}


# What it makes of a reply.


def test_a_verdict_becomes_a_judgment():
    answer = judged(verdict_reply(rationale="  Good.\n"), capture_rationale=False)
    assert (answer.score, answer.confidence, answer.judge_kind, answer.judge_model) == (0.8, 0.7, "llm", "fake")
    assert answer.cost == CENT
    evidence = answer.signals["evidence"]
    assert answer.signals == {"rationale_hash": sha256(b"Good.").hexdigest(), "attempts": 1, "evidence": evidence}
    assert {**evidence, "digest": "?"} == {"sections": ["INPUT", "OUTPUT"], "chars": 40, "cut": 0, "digest": "?"}


@pytest.mark.parametrize(
    ("capture", "signals"),
    [
        (False, {}),
        (True, {"rationale_redacted": "Good."}),
        ("auto", {"rationale_redacted": "Good.", "rationale_scope": "ledger"}),
    ],
)
def test_a_rationale_has_the_scope_that_the_option_says(capture, signals):
    judgment = judged(verdict_reply(rationale=" Good. "), capture_rationale=capture).signals
    assert {
        key: value for key, value in judgment.items() if key in ("rationale_redacted", "rationale_scope")
    } == signals


@pytest.mark.parametrize(
    ("capture", "reply", "scope"), [(False, None, None), (True, "So so.", None), ("auto", "So so.", "ledger")]
)
def test_the_reply_of_a_failed_judgment_is_kept_likewise(capture, reply, scope):
    answer, _ = ask("So so.", capture_rationale=capture, retries=0)
    assert (answer.reply, answer.reply_scope) == (reply, scope)


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        ("So so.", "with the seal of this call: there is no JSON object in it"),
        ('{"seal": "SEAL",\n "score": .8}', "the JSON is broken at line 2, column 11, character 28 of 30: a JSON value is missing"),
        ('{"seal": "SEAL", "score": 0.8', "the JSON is broken at line 1, column 30, the end of the text: the text ends inside the object"),
        (verdict_reply(seal="other"), "with the seal of this call: its seal is another one"),
        ('{"score": 0.8, "confidence": 1, "rationale": "r"}', "the object has no 'seal'"),
        (lambda request: json.dumps({"seal": seal(request), "confidence": 1, "rationale": "r"}), "the verdict has no 'score'"),
        (Reply('{"seal": "SEAL", "sc', stop_reason="max_tokens"), "the token limit cut it at 256 tokens; raise max_output_tokens (now 256)"),
    ],
)  # fmt: skip
def test_the_message_says_what_was_wrong_in_the_reply(reply, message):
    assert message in ask(reply, retries=0)[0].message


def test_two_bad_replies_are_a_failure_after_two_calls():
    answer, requests = ask(["Very good!", verdict_reply(score=1.5)])
    assert answer.kind == "judge_output_invalid"
    assert answer.message == "the last of 2 replies is no verdict: 'score' is 1.5, not a number from 0 to 1"
    assert answer.cost == Cost("0.02")
    assert [request.attempt for request in requests] == [0, 1]


def test_it_is_asked_again_under_a_new_seal_and_without_history():
    answer, (first, second) = ask(["Very good!", verdict_reply()])
    assert (answer.score, answer.cost, answer.signals["attempts"]) == (0.8, Cost("0.02"), 2)
    assert [len(request.messages) for request in (first, second)] == [2, 2]
    assert not set(first.nonces) & set(second.nonces)
    assert first.messages[1].content != second.messages[1].content
    assert {**first.key(), "attempt": 1} == second.key()


def test_a_verdict_with_the_seal_of_an_earlier_call_is_none():
    earlier = []

    def late(request):
        earlier.append(verdict_reply()(request))
        return earlier[0]

    assert ask(late, retries=0)[0].score == 0.8
    assert refused([late, late]).kind == "judge_output_invalid"


@pytest.mark.parametrize("retries", [0, 1, 3])
def test_the_number_of_calls_is_retries_and_one(retries):
    answer, requests = ask(lambda request: "no", retries=retries)
    assert answer.kind == "judge_output_invalid"
    assert len(requests) == retries + 1


@pytest.mark.parametrize("text", ["", " \n", "{}", "0.8", "[]"])
def test_a_reply_without_a_verdict_is_asked_for_again(text):
    assert judged([text, verdict_reply()]).signals["attempts"] == 2


@pytest.mark.parametrize(("stop", "attempts"), [
    (None, 1), ("end_turn", 1), ("stop_sequence", 1), ("max_tokens", 2), ("length", 2), ("MAX_TOKENS", 2), ("eos_token", 1), ("STOP", 1), ("completed", 1), ("pause", 1),
])  # fmt: skip
def test_a_reply_that_is_cut_off_is_no_verdict(stop, attempts):
    first = lambda request: Reply(verdict_reply()(request), stop_reason=stop)  # noqa: E731
    assert judged([first, verdict_reply()]).signals["attempts"] == attempts


def test_an_unknown_stop_reason_of_a_sealed_verdict_is_kept():
    signals = judged(
        [lambda request: Reply(verdict_reply()(request), stop_reason="pause", finish_reason="Pause")]
    ).signals
    assert signals["finish_reason"] == "Pause"
    assert "finish_reason" not in judged([verdict_reply()]).signals


def test_without_a_seal_an_unknown_stop_reason_is_no_verdict():
    reply = Reply(json.dumps({"score": 0.8, "confidence": 0.7, "rationale": "Good."}), stop_reason="pause")
    failure = refused([reply, reply], seal=False)
    assert (failure.kind, failure.finish_reason) == ("judge_output_invalid", "pause")
    assert "without a seal, the unknown finish reason 'pause'" in failure.message


def test_replies_that_were_cut_are_counted():
    cut = Reply("{", stop_reason="max_tokens", finish_reason="length")
    assert judged([cut, verdict_reply()]).signals["cut_replies"] == 1
    assert "cut_replies" not in judged([verdict_reply()]).signals
    failure = refused([cut, cut])
    assert (failure.finish_reason, failure.reply) == ("length", "{")


@pytest.mark.parametrize("word", ["content_filter", "SAFETY", "refusal"])
def test_a_filtered_reply_is_a_refusal(word):
    assert refused([Reply("", stop_reason=word)]).kind == "refused"


def test_a_refusal_is_not_asked_for_again():
    failure = refused([Reply("I cannot judge that.", stop_reason="refusal", cost=CENT)])
    assert (failure.kind, failure.cost) == ("refused", CENT)


@pytest.mark.parametrize("kind", ["judge_call_failed", "timeout", "refused"])
def test_a_failure_of_the_model_is_returned_at_once_with_what_was_spent(kind):
    fault = Failure(kind, "HTTP 500", retryable=True, cost=CENT)
    assert refused(["Very good!", fault], retries=3) == attrs.evolve(fault, cost=Cost("0.02"))


def test_an_unknown_cost_stays_unknown():
    replies = [Reply("no", cost=Cost.unknown()), lambda request: Reply(verdict_reply()(request), cost=CENT)]
    assert judged(replies).cost.amount is None


def test_what_has_no_output_is_not_asked_about():
    answer, requests = ask(verdict_reply(), Subject("row", "7", "Why?"))
    assert answer.kind == "missing_input"
    assert not requests


# Dimensions and constraints.


def test_dimensions_are_weighed_whatever_score_the_model_gave():
    weights = {"clarity": 0.6, "conciseness": 0.4}
    for score in (0.1, 9, "high", None):
        answer = judged(verdict_reply(clarity=0.85, conciseness=0.52, score=score), dimensions=weights)
        assert answer.score == pytest.approx(0.718)
        assert answer.signals["dimensions"] == {"clarity": 0.85, "conciseness": 0.52}


@given(st.lists(st.tuples(st.floats(1e-6, 1e6), st.floats(0, 1)), min_size=1, max_size=5))
def test_a_weighted_score_lies_between_its_dimensions(pairs):
    weights = {f"d{number}": weight for number, (weight, _) in enumerate(pairs)}
    values = {f"d{number}": value for number, (_, value) in enumerate(pairs)}
    score = judged(verdict_reply(**values), dimensions=weights, system_prompt="Judge.").score
    assert min(values.values()) - 1e-12 <= score <= max(values.values()) + 1e-12
    assert 0.0 <= score <= 1.0


@pytest.mark.parametrize("value", [None, "0.5", True, 1.5, math.nan, -0.1])
def test_a_dimension_without_a_number_is_no_verdict(value):
    failure = refused(verdict_reply(clarity=value), dimensions={"clarity": 1, "depth": 1}, retries=0)
    assert failure.kind == "judge_output_invalid"


def test_a_missing_dimension_is_no_verdict():
    assert "'depth'" in refused(verdict_reply(clarity=1), dimensions={"clarity": 1, "depth": 1}).message


@pytest.mark.parametrize("weights", [{"a": 0}, {"a": -0.5}, {"a": math.inf}, {"a": math.nan}, {"a": True}, {"": 1},
                                     {"score": 1}, {"seal": 1}, {"a": 1.7e308, "b": 1.7e308}])  # fmt: skip
def test_weights_are_finite_and_above_zero_and_names_are_free(weights):
    with pytest.raises(ConfigError, match="dimension"):
        LlmJudge(FakeChatModel(), dimensions=weights)


def test_a_violated_constraint_makes_the_score_zero():
    answer = judged(verdict_reply(hard_constraints_satisfied=False, score=0.9), hard_constraints=["No advertising."])
    assert (answer.score, answer.confidence, answer.signals["hard_constraint_violation"]) == (0.0, 0.7, True)


def test_a_constraint_that_holds_changes_nothing():
    answer = judged(verdict_reply(hard_constraints_satisfied=True), hard_constraints=["No advertising."])
    assert answer.score == 0.8
    assert "hard_constraint_violation" not in answer.signals


@pytest.mark.parametrize("fields", [{}, {"hard_constraints_satisfied": "yes"}, {"hard_constraints_satisfied": 1}])
def test_a_verdict_that_does_not_say_whether_constraints_hold_is_none(fields):
    assert (
        "hard_constraints_satisfied" in refused(verdict_reply(**fields), hard_constraints=["No advertising."]).message
    )


# Confidence from log probabilities.


def spelled(text, probabilities):
    """Return *text* as tokens of one character. The tokens at the places in *probabilities* are less than certain."""
    return tuple(Token(letter, math.log(probabilities.get(at, 1.0))) for at, letter in enumerate(text))


def test_confidence_is_the_probability_of_the_scores_tokens():
    def reply(request):
        text = '{"score": 1} ' + verdict_reply(score=0.8)(request)
        at = text.rindex("0.8")
        return Reply(text, logprobs=spelled(text, {0: 0.1, at: 0.9, at + 1: 0.5, at + 2: 0.8, at + 3: 0.2}))

    assert judged(reply, confidence="logprob").confidence == pytest.approx(0.9 * 0.5 * 0.8)


def test_confidence_over_dimensions_is_the_geometric_mean():
    def reply(request):
        text = verdict_reply(clarity=1, depth=0)(request)
        places = {text.index('"clarity": ') + 11: 0.9, text.index('"depth": ') + 9: 0.4}
        return Reply(text, logprobs=spelled(text, places))

    answer = judged(reply, confidence="logprob", dimensions={"clarity": 1, "depth": 1})
    assert answer.confidence == pytest.approx(math.sqrt(0.9 * 0.4))


@pytest.mark.parametrize(
    ("logprobs", "reason"),
    [
        (None, "the model reported none"),
        ((), "the model reported none"),
        ((Token("other text", -0.1),), "the tokens do not match the text"),
    ],
)
def test_without_log_probabilities_there_is_no_confidence(logprobs, reason):
    reply = lambda request: Reply(verdict_reply()(request), cost=CENT, logprobs=logprobs)  # noqa: E731
    failure = refused(reply, confidence="logprob")
    assert (failure.kind, failure.cost) == ("judge_output_invalid", CENT)
    assert "confidence: logprob" in failure.message
    assert failure.message.endswith(reason)


@pytest.mark.parametrize("values", [(1e26, 1e26), (math.inf, -math.inf), (math.nan, -0.1), (2.0, -9.0)])
def test_log_probabilities_that_are_none_give_no_confidence(values):
    def reply(request):
        text = verdict_reply(score=0.8)(request)
        at = text.index("0.8")
        tokens = (Token(text[:at], 0.0), Token("0.", values[0]), Token("8", values[1]), Token(text[at + 3 :], 0.0))
        return Reply(text, logprobs=tokens)

    failure = refused(reply, confidence="logprob")
    assert failure.kind == "judge_output_invalid"
    assert failure.message.endswith("are above 0")


@pytest.mark.parametrize("halves", [("\\xf0\\x9f\\x98", "\\x80"), ("\ufffd", "\ufffd"), ("", "")])
@pytest.mark.parametrize("before", [True, False])
def test_tokens_that_split_a_character_still_tell_the_scores_probability(halves, before):
    def reply(request):
        start, end = verdict_reply(rationale="0.8 good ")(request).split(" good ")
        text = f"{start} \U0001f600 {end}" if before else f"{start} {end} \U0001f600!"
        first_half, other = text.split("\U0001f600")
        at = text.rindex("0.8")
        score_text, shift = (other, at - len(first_half) - 1) if before else (first_half, at)
        score_tokens = spelled(score_text, {shift + 1: 0.5, shift + 2: 0.8})
        middle = tuple(Token(half, -0.1) for half in halves)
        tokens = (
            (*spelled(first_half, {}), *middle, *score_tokens)
            if before
            else (*score_tokens, *middle, *spelled(other, {}))
        )
        return Reply(text, logprobs=tokens)

    assert judged(reply, confidence="logprob").confidence == pytest.approx(0.5 * 0.8)


def test_log_probabilities_are_asked_for_only_where_they_are_used():
    assert not ask(verdict_reply())[1][0].logprobs
    assert ask(verdict_reply(), confidence="logprob")[1][0].logprobs


# What is asked.


def test_the_system_message_is_marked_for_caching_and_the_same_for_every_subject():
    first, second = (prompts_of(attrs.evolve(ROW, output=text))[0] for text in ("a", "b" * 9999))
    assert first == second
    assert first.cache
    assert first.role == "system"
    assert not prompts_of()[1].cache


def test_the_system_message_says_what_the_user_added():
    system = prompts_of(criteria=["Is it short?"], dimensions={"clarity": 1}, hard_constraints=["No advertising."])[
        0
    ].content
    for text in ("- Is it short?", "- clarity", "- No advertising.", '"hard_constraints_satisfied"', '"clarity"'):
        assert text in system


def test_nothing_of_a_subject_is_in_the_system_message():
    subject = Subject(
        "turn", "marmot-1", "marmot-2", "marmot-3", "marmot-4", {"marmot-5": "marmot-6"}, session_id="marmot-7"
    )
    system, user = prompts_of(subject)
    assert "marmot" not in system.content
    assert {"marmot-2", "marmot-3"} == set(re.findall(r"marmot-\d", user.content))


def test_a_row_shows_input_output_and_reference():
    sections = re.findall(
        r"^([A-Z ]+):$", prompts_of(attrs.evolve(ROW, reference="Scattering."))[1].content, re.MULTILINE
    )
    assert sections == ["INPUT", "OUTPUT", "REFERENCE"]
    assert "REFERENCE" not in prompts_of()[1].content


def test_an_object_is_shown_as_json():
    assert (
        '\n{"answer":["Canberra",null]}\n'
        in prompts_of(attrs.evolve(ROW, output={"answer": ["Canberra", None]}))[1].content
    )


def test_a_row_is_shown_whole_unless_told_otherwise():
    long = attrs.evolve(ROW, output="x" * 9000)
    assert "x" * 9000 in prompts_of(long)[1].content
    user = prompts_of(long, max_chars=100)[1].content
    assert "OUTPUT (cut: 100 of 9000 characters, without the middle):\n" in user
    assert re.search(r"\nx{47}\n\[\.\.\.\]\nx{46}\n", user)


TURN = Subject(
    "turn", "t1", "Book it.", "Booked.",
    events=(
        TraceEvent("route.decided", {"chosen_model": "qwen3-8b"}),
        TraceEvent("tool.called", {"tool_name": "book", "input_hash": "6c1f", "side_effect": "write", "input": {"a": "secret"}}),
        TraceEvent("tool.completed", {"tool_name": "book", "success": True, "output_size": 412, "output": "secret"}),
        TraceEvent("tool.failed", {"tool_name": "mail", "error": "HTTP 503"}),
        TraceEvent("llm.call_failed", {"model": "m", "error": "context length exceeded"}),
        TraceEvent("turn.completed", {"stop_reason": "end_turn", "tool_call_count": 2}),
    ),
)  # fmt: skip


def test_the_summary_of_a_turn_shows_its_texts_its_tools_and_its_end():
    options = {"grounding_tokens": ["ZFA04Y"], "forbidden_grounding": ["LHR"], "evidence": "summary"}
    user = prompts_of(TURN, **options)[1].content
    titles = re.findall(r"^([A-Z ]+):$", user, re.MULTILINE)
    assert titles == ["USER PROMPT", "ASSISTANT FINAL RESPONSE", "TOOL ACTIVITY", "TURN LIFECYCLE", "GROUNDING HINTS"]
    for line in (
        "Book it.", "Booked.", "routed to qwen3-8b", "called book input_hash=6c1f side_effect=write",
        "completed book success=true output_size=412", "failed mail: HTTP 503",
        "model call failed: context length exceeded", "completed stop_reason=end_turn tool_call_count=2",
        "expected: ZFA04Y", "made up: LHR",
    ):  # fmt: skip
        assert f"\n{line}\n" in user
    assert "secret" not in user


def test_what_a_turn_lacks_is_not_available():
    called = TraceEvent("tool.called", {"tool_name": "book", "input_hash": "6c1f"})
    user = prompts_of(Subject("turn", "t1", None, "", events=(called, TraceEvent("turn.completed"))))[1].content
    assert user.count(":\n(not available)\n") == 3
    assert "TURN LIFECYCLE:\n<<<data" in user


def test_texts_of_a_summary_are_cut_at_two_thousand_characters():
    user = prompts_of(attrs.evolve(TURN, input="i" * 2000, output="o" * 2001), evidence="summary")[1].content
    assert "i" * 2000 in user
    assert "ASSISTANT FINAL RESPONSE (cut: the first 2000 of 2001 characters):" in user
    assert "o" * 2001 not in user


BLOCK = {"grounding_tokens": ["RoutingEngine"], "forbidden_grounding": ["RouterChain"]}


@pytest.mark.parametrize("kind", ["row", "workload", "turn"])
def test_the_evaluate_block_of_a_subject_brings_its_grounding(kind):
    user = prompts_of(Subject(kind, "w", output="Text", context={"evaluate": BLOCK}), grounding_tokens=["policy="])[
        1
    ].content
    assert "expected: policy=\nexpected: RoutingEngine\nmade up: RouterChain\n" in user
    for odd in ("text", {"grounding_tokens": "text"}, {"forbidden_grounding": None}):
        assert (
            "GROUNDING HINTS:\n"
            not in prompts_of(Subject("row", "w", output="x", context={"evaluate": odd}))[1].content
        )


def test_what_stands_in_the_block_and_beside_it_is_shown_once():
    context = {"evaluate": BLOCK, **BLOCK}
    user = prompts_of(Subject("workload", "w", output="Text", context=context))[1].content
    assert user.count("expected: RoutingEngine") == user.count("made up: RouterChain") == 1


def chosen(model_name, kind="workload", **named):
    """Which model was asked, the judge's *own_model* or one of those *named*; or the failure."""
    models = {name: FakeChatModel(verdict_reply(), cost=CENT) for name in named}
    own_model = FakeChatModel(verdict_reply(), cost=Cost("0.02"))
    object.__setattr__(own_model, "model", "haiku-4")
    judge = LlmJudge(own_model, models=models)
    subject = Subject(kind, "w", output="Text", context={"evaluate": {"llm_judge_model": model_name}})
    answer = asyncio.run(judge.judge(subject, ()))
    names = [name for name, model in {"own": own_model, **models}.items() if model.asked]
    cost = judge.estimate(subject)
    assert bool(names) == (not cost.is_zero) == isinstance(answer, Judgment)
    return names or (answer.kind, answer.message)


def test_a_workload_is_judged_by_the_model_that_it_names():
    assert chosen("sonnet", sonnet=True) == ["sonnet"]
    assert chosen(None, sonnet=True) == chosen("haiku-4") == chosen("anthropic:haiku-4") == ["own"]
    assert chosen("sonnet", kind="row", sonnet=True) == ["own"]


def test_a_model_that_the_judge_does_not_have_is_refused_with_the_nearest_and_what_to_do():
    kind, message = chosen("sonet", sonnet=True)
    assert kind == "rubric_invalid"
    assert message == (
        "workload w: llm_judge_model 'sonet' is not a model of this judge, did you mean 'sonnet'? (its models: sonnet, haiku-4); "
        "add it to the judge's option models, as {'sonet': MODEL}, where MODEL is a component or a name from define"
    )


def test_a_workload_brings_its_own_grounding():
    context = {"grounding_tokens": ["RoutingEngine"], "forbidden_grounding": ["RouterChain", 5]}
    user = prompts_of(Subject("workload", "w", output="Text", context=context), grounding_tokens=["policy="])[1].content
    assert "expected: policy=\nexpected: RoutingEngine\nmade up: RouterChain\n" in user
    assert "RoutingEngine" not in prompts_of(Subject("turn", "w", output="Text", context=context))[1].content


def test_the_reply_is_described_by_a_schema_with_the_reasons_last():
    _, (request,) = ask(
        verdict_reply(clarity=1, hard_constraints_satisfied=True), dimensions={"clarity": 1}, hard_constraints=["x"]
    )
    keys = ["seal", "clarity", "hard_constraints_satisfied", "score", "confidence", "rationale"]
    assert list(request.schema["properties"]) == request.schema["required"] == keys
    assert request.schema["additionalProperties"] is False
    assert request.schema["properties"]["score"] == {"type": "number", "minimum": 0, "maximum": 1}


def test_without_a_seal_none_is_asked_for():
    answer, (request,) = ask('{"rationale": "Good.", "score": 0.8, "confidence": 0.7}', seal=False)
    assert answer.score == 0.8
    assert "seal" not in " ".join(message.content for message in request.messages)
    assert "seal" not in request.schema["properties"]
    assert len(request.nonces) == 1


def test_marks_are_drawn_anew_for_every_call():
    judge = LlmJudge(model := FakeChatModel(verdict_reply()))

    async def work():
        await asyncio.gather(*(judge.judge(ROW, ()) for _ in range(50)))

    asyncio.run(work())
    assert len({nonce for request in model.asked for nonce in request.nonces}) == 100
    assert len({json.dumps(request.key()) for request in model.asked}) == 1


def test_every_nonce_stands_in_the_message():
    _, (request,) = ask(verdict_reply())
    assert all(nonce in request.messages[1].content for nonce in request.nonces)
    assert seal(request) in request.nonces


# Rubrics, and what it costs.


@pytest.mark.parametrize(("kind", "id"), [
    ("turn", "turn-llm-v1"), ("workload", "turn-llm-v1"), ("row", "row-llm-v1"), ("candidate", "row-llm-v1"),
])  # fmt: skip
def test_the_rubric_goes_by_the_kind_of_subject(kind, id):
    answer, (request,) = ask(verdict_reply(), Subject(kind, "1", "in", "out"))
    assert answer.rubric == rubric(id)
    assert answer.rubric.text.splitlines()[-1] in request.messages[0].content
    assert "version:" not in request.messages[0].content


def test_a_rubric_that_is_given_judges_every_kind():
    mine = Rubric("mine-v1", "3", "---\nid: mine-v1\nversion: '3'\n---\nBe strict --- very.\n---\nReally.")
    for kind in ("turn", "row"):
        answer, (request,) = ask(verdict_reply(), Subject(kind, "1", "in", "out"), rubric=mine)
        assert answer.rubric == mine
        assert request.messages[0].content.startswith("Be strict --- very.\n---\nReally.\n\n")


@pytest.mark.parametrize("reference", [None, " ", []])
def test_a_rubric_that_needs_a_reference_asks_nothing_without_one(reference):
    needs = {"rubric": rubric("factuality-v1")}
    answer, requests = ask(verdict_reply(), Subject("row", "1", "in", "out", reference), **needs)
    assert (answer.kind, requests) == ("missing_input", [])
    answer, requests = ask(verdict_reply(), Subject("row", "1", "in", "out", "right"), **needs)
    assert (answer.score is not None, len(requests)) == (True, 1)


def test_a_system_prompt_stamps_its_own_version():
    answer, (request,) = ask(verdict_reply(), system_prompt="Be strict.")
    assert (answer.rubric.id, answer.rubric.version) == ("system-prompt", sha256(b"Be strict.").hexdigest()[:12])
    assert request.messages[0].content.startswith("Be strict.\n\n")
    assert "<<<data WORD" in request.messages[0].content


@pytest.mark.parametrize("options", [
    {"system_prompt": "Judge.", "rubric": Rubric("r", "1", "text")}, {"system_prompt": " "},
    {"rubric": Rubric("r", "1", "---\nid: r\n---\n")},
])  # fmt: skip
def test_there_is_one_text_to_judge_by(options):
    with pytest.raises(ConfigError):
        LlmJudge(FakeChatModel(), **options)


@attrs.frozen
class Tariff:
    """Costs a cent a token of the input."""

    def estimate(self, request):
        return Cost(Decimal(request.input_tokens) / 100)


@pytest.mark.parametrize("retries", [0, 2])
def test_the_estimate_is_at_least_what_one_call_comes_to(retries):
    """The estimate holds for any drawn words: a digit is counted as more tokens than a letter."""
    judge = LlmJudge(Tariff(), retries=retries)
    estimates = {judge.estimate(ROW) for _ in range(20)}
    assert len(estimates) == 1
    for _ in range(20):
        _, (request,) = ask(verdict_reply(), retries=retries)
        least = Decimal(request.input_tokens) / 100
        assert least <= min(estimate.amount for estimate in estimates) <= least + Decimal("0.7")


def test_a_model_that_says_no_price_is_estimated_at_nothing():
    assert LlmJudge(object()).estimate(ROW) == Cost.zero()


def test_the_estimate_holds_for_a_subject_without_output():
    assert LlmJudge(FakeChatModel(cost=CENT)).estimate(Subject("row", "1")) == CENT


def test_a_judge_can_be_pickled():
    judge = LlmJudge(Tariff(), dimensions={"clarity": 1}, criteria=["a"])
    assert pickle.loads(pickle.dumps(judge)) == judge


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [("retries", 11, "a number from 0 to 10"), ("max_output_tokens", 0, "1 or more"), ("max_chars", 0, "1 or more")],
)
def test_a_number_out_of_its_bounds_is_refused_with_what_is_expected(option, value, words):
    with pytest.raises(ConfigError, match=f"^invalid value for {option}, expected {words}, got {value}$"):
        LlmJudge(FakeChatModel("{}"), **{option: value})
