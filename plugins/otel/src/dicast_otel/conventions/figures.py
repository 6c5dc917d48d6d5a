"""Model, usage, cost and stop reason of a span, as recorded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from ..span import Attributes
from .values import parsed

_MODELS = ("gen_ai.response.model", "ai.response.model", "gen_ai.request.model", "llm.model_name", "langfuse.observation.model.name", "ai.model.id",
           "mlflow.llm.model", "model_name")  # fmt: skip
_USAGE = {
    "input_tokens": ("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "llm.token_count.prompt", "ai.usage.inputTokens", "ai.usage.promptTokens",
                     "llm.usage.prompt_tokens"),
    "output_tokens": ("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens", "llm.token_count.completion", "ai.usage.outputTokens",
                      "ai.usage.completionTokens", "llm.usage.completion_tokens"),
    "total_tokens": ("llm.usage.total_tokens", "gen_ai.usage.total_tokens", "llm.token_count.total", "ai.usage.totalTokens"),
    "cache_read_input_tokens": ("gen_ai.usage.cache_read.input_tokens", "gen_ai.usage.cache_read_input_tokens",
                                "llm.token_count.prompt_details.cache_read", "ai.usage.cachedInputTokens"),
    "cache_creation_input_tokens": ("gen_ai.usage.cache_creation.input_tokens", "gen_ai.usage.cache_creation_input_tokens",
                                    "llm.token_count.prompt_details.cache_write"),
    "reasoning_tokens": ("gen_ai.usage.reasoning.output_tokens", "gen_ai.usage.reasoning_tokens", "llm.usage.reasoning_tokens",
                         "llm.token_count.completion_details.reasoning", "ai.usage.reasoningTokens"),
}  # fmt: skip
_USAGE_KEYS = {name: frozenset(keys) for name, keys in _USAGE.items()}
_OBJECTS = ("langfuse.observation.usage_details", "mlflow.chat.tokenUsage")
_WORDS = {
    "input": "input_tokens",
    "output": "output_tokens",
    "total": "total_tokens",
    "prompt_tokens": "input_tokens",
    "completion_tokens": "output_tokens",
}
_BODIES = ("mlflow.spanOutputs", "mlflow.spanInputs")
"""The reply and the request of a model, which have its name in versions without an attribute for it."""

_COSTS = ("gen_ai.usage.cost", "llm.cost.total", "gen_ai.usage.total_cost", "operation.cost")
_STOPS = (
    "gen_ai.response.finish_reasons",
    "gen_ai.response.finish_reason",
    "ai.response.finishReason",
    "ai.finishReason",
    "llm.finish_reason",
)


@attrs.frozen
class Figures:
    """Recorded figures of a call of a model; None for a figure that the span does not have."""

    model: str | None = None
    usage: Mapping[str, object] | None = None
    cost_usd: object = None
    stop_reason: str | None = None

    def stopped(self, reason: str) -> Figures:
        """Return these figures with the stop reason *reason*."""
        return Figures(self.model, self.usage, self.cost_usd, reason)

    def or_else(self, other: Figures) -> Figures:
        """Return these figures, with missing figures from *other*."""
        return Figures(
            self.model or other.model,
            self.usage or other.usage,
            other.cost_usd if self.cost_usd is None else self.cost_usd,
            self.stop_reason or other.stop_reason,
        )


def figures_of(attributes: Attributes) -> Figures:
    """Return the figures in *attributes*."""
    model = next((value for key in _MODELS if isinstance(value := attributes.get(key), str) and value), None)
    usage: dict[str, object] = {}
    if model is None:
        bodies = (parsed(attributes.get(key)) for key in _BODIES)
        models = (body.get("model") for body in bodies if isinstance(body, dict))
        model = next((name for name in models if isinstance(name, str) and name), None)
    for name, keys in _USAGE.items():
        if _USAGE_KEYS[name].isdisjoint(attributes):  # as most
            continue
        value = next((number for key in keys if (number := _number(attributes.get(key))) is not None), None)
        if value is not None:
            usage[name] = value
    for key in _OBJECTS:
        details = parsed(attributes.get(key))
        if isinstance(details, dict):
            usage = {**{_WORDS.get(str(name), str(name)): value for name, value in details.items()}, **usage}
    cost: object = next((number for key in _COSTS if (number := _number(attributes.get(key))) is not None), None)
    costs = parsed(attributes.get("langfuse.observation.cost_details"))
    if cost is None and isinstance(costs, dict):
        cost = _number(costs.get("total"))
    return Figures(model, usage or None, cost, _stop(attributes))


def _number(value: Any) -> int | float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _stop(attributes: Attributes) -> str | None:
    for key in _STOPS:
        value = parsed(attributes.get(key))
        if isinstance(value, list):
            value = next(iter(value), None)
        if isinstance(value, str) and value:
            return value
    return None
