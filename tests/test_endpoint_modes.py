"""Each quirk of ``endpoint_modes.py``: the score, the cost, the number of calls and the adapted parameters of a judge that asks it."""

from __future__ import annotations

from decimal import Decimal

import pytest
import stamina

import dicast

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
        "4,352 reasoning tokens, with room for 4,096; raise max_reasoning_tokens",
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

    def run(mode, judge=(), rows=ROWS, **options):
        chat_server.answer = endpoint_modes.MODES[mode]
        model = {"base_url": chat_server.url, "model": "m", "price": PRICE, **options}
        pipeline = {
            "judges": [{"llm/judge": {"as": "judge", "model": {"openai/chat": model}, **dict(judge)}}],
            "executor": {"dicast/async": {"concurrency": 1}},
            "ledger": {"ledger/sqlite": {"path": str(tmp_path / "ledger.db")}},
        }
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


@pytest.mark.parametrize("mode", FAILED)
def test_a_failure_is_paid_and_explained(chat_server, judged, mode):
    calls, cost, kind, words = FAILED[mode]
    run = judged(mode)
    assert run.failures == {kind: 2}
    assert words in run.failed_subjects[0]["error_message"]
    assert (chat_server.count, Decimal(run.cost["usd"])) == (calls, cost)


@pytest.mark.parametrize("mode", ENDED)
def test_an_account_without_quota_ends_the_run_at_its_first_call(chat_server, judged, mode):
    run = judged(mode)
    assert run.stopped["reason"] == "refused_by_provider"
    assert ENDED[mode] in run.stopped["message"]
    assert (chat_server.count, run.exit_code, Decimal(run.cost["usd"])) == (1, 2, 0)
