"""Each quirk of ``endpoint_modes.py``: the score, the cost, the number of calls and the adapted parameters of a judge that asks it."""

from __future__ import annotations

import json
import subprocess
from contextlib import asynccontextmanager
from decimal import Decimal
from pathlib import Path

import httpx
import pytest
import stamina

import dicast
from dicast.toolkit.endpoint.transport import open_transport

PRICE = {"input_per_mtok": 10, "output_per_mtok": 100, "cached_input_per_mtok": 1, "cache_write_per_mtok": 12}
ROWS = [dicast.Subject("row", str(number), f"q {number}", f"a {number}") for number in range(2)]


def usd(read: int, written: int, cached: int = 0, stored: int = 0) -> Decimal:
    """Return the cost of tokens by PRICE."""
    return Decimal((read - cached - stored) * 10 + cached + stored * 12 + written * 100) / 1_000_000


VERDICT = usd(100, 20)
REASONED = usd(100, 520)

# mode: (options, calls for two rows, cost, adapted)
SCORED = {
    "plain": ({}, 2, 2 * VERDICT, []),
    "openai_gpt5": ({}, 5, 2 * REASONED + usd(100, 256), ["max_tokens", "temperature"]),
    "openai_o1_mini": ({}, 3, 2 * VERDICT, ["system_role"]),
    "openai_needs_json": ({}, 3, 2 * VERDICT, ["response_format"]),
    "developer_only": ({}, 3, 2 * VERDICT, ["system_role"]),
    "gemini": ({"seed": 1}, 4, 2 * usd(100, 320), ["seed", "system_role"]),
    "mistral": ({"seed": 1}, 3, 2 * VERDICT, ["seed"]),
    "deepseek": ({}, 3, 2 * usd(100, 20, 60), ["response_format"]),
    "only_max_tokens": ({}, 2, 2 * VERDICT, []),
    "xai_stop": ({"stop": ["END"]}, 3, 2 * VERDICT, ["stop"]),
    "xai_effort": ({"reasoning_effort": "low"}, 3, 2 * VERDICT, ["reasoning_effort"]),
    "vllm_system": ({}, 3, 2 * VERDICT, ["system_role"]),
    "template_roles": ({}, 3, 2 * VERDICT, ["system_role"]),
    "llamacpp_grammar": ({}, 4, 2 * VERDICT, ["response_format"]),
    "openrouter_parameters": ({}, 4, 2 * VERDICT, ["response_format"]),
    "groq_schema": ({}, 3, 2 * VERDICT, ["response_format"]),
    "tgi_temperature": ({}, 3, 2 * VERDICT, ["temperature"]),
    "bedrock_top_p": ({"top_p": 0.5, "temperature": None}, 3, 2 * VERDICT, ["top_p"]),
    "unnamed_format": ({}, 4, 2 * VERDICT, ["response_format"]),
    "reasoning": ({}, 3, 2 * REASONED + usd(100, 256), []),
    "grok": ({}, 2, 2 * usd(1000, 3020), []),
    "cached": ({}, 2, 2 * usd(100, 20, 80), []),
    "cache_written": ({}, 2, 2 * usd(100, 20, 30, 50), []),
    "moonshot_cached": ({}, 2, 2 * usd(100, 20, 40), []),
    "float_usage": ({}, 2, 2 * VERDICT, []),
    "openrouter_cost": ({}, 2, 2 * VERDICT, []),
    "litellm_proxy": ({}, 2, 2 * VERDICT, []),
    "openrouter_502": ({}, 3, 2 * VERDICT, []),
    "openrouter_choice": ({}, 3, 2 * VERDICT, []),
    "gemini_rate": ({}, 3, 2 * VERDICT, []),
    "rate": ({}, 3, 2 * VERDICT, []),
    "rate_ms": ({}, 3, 2 * VERDICT, []),
    "parts": ({}, 2, 2 * VERDICT, []),
    "streamed": ({}, 2, 2 * VERDICT, []),
    "tool": ({}, 2, 2 * VERDICT, []),
    **{
        f"ends_{word}": ({}, 2, 2 * VERDICT, [])
        for word in ("eos", "eos_token", "STOP", "end_turn", "stop_sequence", "COMPLETE", "completed", None)
    },
}

# mode: (calls for two rows, cost, kind of failure, words in its message)
FAILED = {
    "always_reasoning": (
        4,
        usd(100, 256) + 2 * usd(100, 4352) + usd(100, 8448),
        "judge_output_invalid",
        "4,352 reasoning tokens; the limit had 256 tokens for the answer and 4,096 for reasoning; raise max_reasoning_tokens",
    ),
    "azure_policy": (2, Decimal(0), "refused", "content management policy"),
    "qwen_inspection": (2, Decimal(0), "refused", "inappropriate content"),
    "openrouter_moderation": (2, Decimal(0), "refused", "flagged"),
    "filtered": (2, 2 * VERDICT, "refused", "refused to judge"),
    "gemini_safety": (2, 2 * VERDICT, "refused", "refused to judge"),
    "refusal": (2, 2 * VERDICT, "refused", "refused to judge"),
    "cut": (4, 4 * VERDICT, "judge_output_invalid", "max_output_tokens"),
    "vllm_length": (2, Decimal(0), "judge_call_failed", "maximum context length is 128"),
    "context": (2, Decimal(0), "judge_call_failed", "maximum context length is 8192"),
}

# mode: words in the message with which the run ends
ENDED = {
    "openai_quota": "exceeded your current quota",
    "openai_billing": "Billing hard limit",
    "deepseek_balance": "Insufficient Balance",
    "account_disabled": "account has been disabled",
    "credit_balance": "credit balance is too low",
    "wrapped_quota": "Insufficient credits",
}


@pytest.fixture
def judged(chat_server, endpoint_modes, tmp_path):
    """Judge rows, one after the other, by a model with the quirk *mode*."""

    def run(mode, judge=(), baseline=None, rows=ROWS, budget=None, **options):
        chat_server.answer = endpoint_modes.MODES[mode]
        model = {"base_url": chat_server.url, "model": "m", "price": PRICE, **options}
        pipeline = {
            "judges": [{"llm/judge": {"as": "judge", "model": {"openai/chat": model}, **dict(judge)}}],
            "executor": {"dicast/async": {"concurrency": 1 if rows is ROWS else len(rows)}},
            "ledger": {"ledger/sqlite": {"path": str(tmp_path / "ledger.db")}},
        }
        if budget is not None:
            pipeline["budget"] = {"run": f"{budget} usd", "day": f"{budget} usd"}
        if baseline is not None:
            pipeline["baseline"] = {"run": baseline}
        with stamina.set_testing(True, attempts=100, cap=True):
            return dicast.run(pipeline, subjects=rows)

    return run


@pytest.mark.parametrize("mode", SCORED)
def test_a_verdict_is_read_and_paid(chat_server, judged, mode):
    options, calls, cost, adapted = SCORED[mode]
    run = judged(mode, **options)
    assert run.failed_subjects == []
    assert (run.scored, run.score["mean"]) == (2, 0.8)
    assert (chat_server.count, Decimal(run.cost["usd"])) == (calls, cost)
    assert run.adapted == ({"judge": adapted} if adapted else {})


MANY = [dicast.Subject("row", str(number), f"q {number}", f"a {number}") for number in range(20)]


@pytest.mark.parametrize("mode", ["openai_gpt5", "gemini", "groq_schema", "reasoning"])
def test_rows_that_are_judged_together_learn_from_the_first_call(chat_server, judged, mode):
    options, calls, _, adapted = SCORED[mode]
    run = judged(mode, rows=MANY, budget=100, **options)
    assert (run.scored, chat_server.count) == (20, calls + 18)
    assert run.adapted == ({"judge": adapted} if adapted else {})


def test_a_slow_first_reply_holds_the_others_back_for_a_while_only(chat_server, judged, monkeypatch):
    monkeypatch.setattr("dicast.toolkit.endpoint.first_call.FIRST_SECONDS", 0.1)
    chat_server.gathers = 20
    assert judged("plain", rows=MANY).scored == 20
    assert chat_server.peak == 20


@pytest.mark.parametrize("judge", [{}, {"reasoning": "before"}])
def test_a_model_that_turns_out_to_reason_stays_within_the_cap(judged, judge):
    """A call is reserved without room for reasoning; the cap has to hold when its reply shows that the model needs it."""
    run = judged("reasoning", judge, rows=MANY, budget=1.2)
    assert Decimal(run.cost["usd"]) <= Decimal("1.2")
    assert run.overruns == 0
    assert run.scored > 0
    assert run.failures == {"throttled_no_heuristic": 20 - run.scored}


@pytest.mark.parametrize("mode", FAILED)
def test_a_failure_is_paid_and_explained(chat_server, judged, mode):
    calls, cost, kind, words = FAILED[mode]
    run = judged(mode, budget=10)
    assert run.failures == {kind: 2}
    assert words in run.failed_subjects[0]["error_message"]
    assert (chat_server.count, Decimal(run.cost["usd"])) == (calls, cost)


@pytest.mark.parametrize("mode", ENDED)
def test_an_account_without_quota_ends_the_run_at_its_first_call(chat_server, judged, mode):
    run = judged(mode)
    assert run.stopped["reason"] == "refused_by_provider"
    assert ENDED[mode] in run.stopped["message"]
    assert (chat_server.count, run.exit_code, Decimal(run.cost["usd"])) == (1, 2, 0)


PAGE = Path(__file__).parents[1] / "docs" / "how-to" / "models.md"


def test_the_model_alone_is_enough_for_a_reasoning_model_of_openai(chat_server, endpoint_modes, judged, monkeypatch):
    """As docs/how-to/models.md says; requests to OpenAI's address go to the endpoint of the test, which refuses the same parameters."""

    @asynccontextmanager
    async def rerouted(address, proxy=None):
        async with open_transport(chat_server.url, proxy) as transport:
            yield Rerouted(transport, chat_server.url)

    monkeypatch.setattr("dicast.toolkit.endpoint.client.open_transport", rerouted)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-a-test")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    assert "openai/chat: {model: gpt-5-mini}" in PAGE.read_text(encoding="utf-8")
    run = judged("openai_gpt5", base_url=None, model="gpt-5-mini", price=None)
    assert (run.scored, run.score["mean"], run.failures) == (2, 0.8, {})
    assert run.adapted == {"judge": ["max_tokens", "temperature"]}
    assert chat_server.count == 4  # two refusals, and no empty reply: the name shows that the model reasons
    limits = [request.body.get("max_completion_tokens") for request in chat_server.requests[1:]]
    assert limits == [256 + 4096] * 3
    assert 0 < Decimal(run.cost["usd"]) < Decimal("0.01")


class Rerouted(httpx.AsyncBaseTransport):
    """Sends requests for any host to the one at *url*."""

    def __init__(self, transport, url):
        self.transport, self.url = transport, httpx.URL(url)

    async def handle_async_request(self, request):
        request.url = request.url.copy_with(scheme="http", host=self.url.host, port=self.url.port)
        return await self.transport.handle_async_request(request)


@pytest.mark.parametrize(
    ("mode", "judge", "option"),
    [
        ("logprobs", {"confidence": "logprob"}, "confidence: logprob"),
        ("needs_schema", {"seal": False}, "response_format"),
    ],
)
def test_a_parameter_that_the_judgment_needs_is_never_left_out(chat_server, judged, mode, judge, option):
    run = judged(mode, judge)
    assert run.stopped["reason"] == "refused_by_provider"
    assert option in run.stopped["message"]
    assert (run.exit_code, run.scored) == (2, 0)


def test_an_adaptation_is_part_of_the_fingerprint_of_a_verdict(judged):
    plain, adapted = (judged(mode).verdicts[0] for mode in ("plain", "tgi_temperature"))
    assert plain.fingerprint != adapted.fingerprint
    same = judged("tgi_temperature").verdicts[0]
    assert adapted.fingerprint == same.fingerprint
    assert (plain.adapted, adapted.adapted) == ({}, {"judge": ("temperature",)})


def test_runs_with_other_adaptations_are_not_alike(judged):
    judged("plain")
    run = judged("tgi_temperature", baseline="last")
    assert run.baseline["differs"] == ["the parameters that the endpoint of judge refused (temperature, not none)"]


@pytest.mark.slow
def test_the_summary_says_once_what_was_adapted_and_assumed(chat_server, endpoint_modes, tmp_path):
    chat_server.answer = endpoint_modes.MODES["tgi_temperature"]
    rows = "".join(json.dumps({"id": str(number), "input": "q", "output": "a"}) + "\n" for number in range(3))
    (tmp_path / "rows.jsonl").write_text(rows, encoding="utf-8")
    (tmp_path / "run.yaml").write_text(
        f"source: {{rows/jsonl: {{path: rows.jsonl}}}}\n"
        f"judges: [{{llm/judge: {{as: judge, model: {{openai/chat: {{base_url: '{chat_server.url}', model: m}}}}}}}}]\n",
        encoding="utf-8",
    )
    done = subprocess.run(["dicast", "run", "run.yaml"], cwd=tmp_path, capture_output=True, text=True, check=False)
    text = " ".join(done.stdout.split())
    assert text.count("adapted: [temperature] (refused by the endpoint of judge") == 1
    assert text.count(f"assumed: m at {chat_server.url} is free") == 1
    assert "spent: nothing" in text
    command = ["dicast", "show", "1", "--ledger", ".dicast/ledger.db"]
    shown = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False).stdout
    assert "adapted: [temperature] (refused by the endpoint of judge)" in " ".join(shown.split())


def test_a_loopback_price_is_assumed_only_while_no_reply_reports_a_cost(chat_server, judged):
    run = judged("openrouter_cost", price=None)
    assert run.stopped["reason"] == "refused_by_provider"
    assert "reports a cost of 0.0005 usd, and the file has no price" in run.stopped["message"]
    assert (chat_server.count, Decimal(run.cost["usd"]), run.exit_code) == (1, Decimal("0.0005"), 3)
    assert judged("openrouter_cost", price="free").scored == 2


@pytest.mark.parametrize("options", [{"api_key": "x"}, {"model": "gpt-5-mini"}])
def test_a_loopback_price_is_asked_for_with_a_key_or_a_listed_model(judged, options):
    with pytest.raises(dicast.RequestError, match="no price is listed for"):
        judged("plain", price=None, **options)


@pytest.mark.slow
def test_a_resumed_run_keeps_the_adaptations_of_replies_that_were_paid(chat_server, endpoint_modes, tmp_path):
    refused = [True]

    def answer(asked):
        if asked.body["model"] == "first":
            return endpoint_modes.MODES["tgi_temperature"](asked)
        return chat_server.Answer(status=401, delay=0.5, body={}) if refused[0] else endpoint_modes.verdict()

    chat_server.answer = answer
    (tmp_path / "rows.jsonl").write_text('{"id": "1", "input": "q", "output": "a"}\n', encoding="utf-8")
    price = "{input_per_mtok: 1, output_per_mtok: 1}"
    judges = [
        f"{{llm/judge: {{as: {name}, model: {{openai/chat: {{base_url: '{chat_server.url}', model: {name}, price: {price}}}}}}}}}"
        for name in ("first", "second")
    ]
    (tmp_path / "run.yaml").write_text(
        f"source: {{rows/jsonl: {{path: rows.jsonl}}}}\nmetrics: [{', '.join(judges)}]\n", encoding="utf-8"
    )
    command = ["dicast", "run", "run.yaml", "--json"]
    stopped = json.loads(subprocess.run(command, cwd=tmp_path, capture_output=True, check=False).stdout)
    assert stopped["stopped"]["reason"] == "refused_by_provider"
    refused[0] = False
    resumed = subprocess.run([*command, "--resume", stopped["run_id"]], cwd=tmp_path, capture_output=True, check=False)
    done = json.loads(resumed.stdout)
    assert [request.body["model"] for request in chat_server.requests].count("first") == 2
    assert (done["scored"], done["adapted"]) == (1, {"first": ["temperature"]})
