"""Words of endpoints for the end of a model's text, mapped to the few words of dicast."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

END_TURN, STOP_SEQUENCE, MAX_TOKENS, REFUSAL = "end_turn", "stop_sequence", "max_tokens", "refusal"

COMPLETE = (None, END_TURN, STOP_SEQUENCE, "stop")
"""The stop reasons of a whole reply. None means that the endpoint gives no reason; ``stop`` is another word for ``end_turn``."""

_WORDS = {
    END_TURN: "stop end_turn endturn eos eos_token eos_found end_of_text complete completed finish finished done end normal",
    STOP_SEQUENCE: "stop_sequence stop_str stopped_sequence",
    MAX_TOKENS: "max_tokens max_token max_output_tokens max_new_tokens max_completion_tokens max_length length length_limit "
    "token_limit tokens_limit model_length model_context_window_exceeded context_length context_length_exceeded",
    REFUSAL: "refusal content_filter content_filtered content_policy content_policy_violation sensitive safety "
    "prohibited_content blocklist spii recitation image_safety guardrail_intervened error_toxic",
}
_NORMALIZED = {word: reason for reason, words in _WORDS.items() for word in words.split()}


def normalize_stop_reason(reason: str | None) -> str | None:
    """Return ``end_turn``, ``stop_sequence``, ``max_tokens`` or ``refusal`` for an endpoint's word, in any case of letters.

    None stays None: the endpoint gives no reason. An unknown word is returned unchanged.
    """
    if reason is None:
        return None
    word = reason.strip().lower().replace("-", "_").replace(" ", "_")
    return _NORMALIZED.get(word.removeprefix("finishreason.").removeprefix("finish_reason_"), reason)


def output_ending(record: Mapping[str, Any], read: Mapping[str, Any] | None = None) -> str | None:
    """Return the word for the end of a subject's output; None if it is unknown.

    For a task's *record*, it is the first response's word that means a cut or a refusal, else the first word; without a response it is
    ``finish_reason`` of *read*, the payload of ``subject.read``.
    """
    responses = record.get("responses") or {"": record.get("response")}
    endings = [_ending(response) for response in responses.values() if isinstance(response, Mapping)]
    if not endings and read is not None:
        endings = [read.get("finish_reason")]
    words = [ending for ending in endings if isinstance(ending, str)]
    bad = (ending for ending in words if normalize_stop_reason(ending) in (MAX_TOKENS, REFUSAL))
    return next(bad, words[0] if words else None)


def _ending(response: Mapping[str, Any]) -> object:
    """Return the word in the metrics of a task's response. A refusal that the endpoint's word does not show counts as such."""
    metrics = response.get("metrics")
    if not isinstance(metrics, Mapping):
        return None
    reason, finish = metrics.get("stop_reason"), metrics.get("finish_reason")
    return reason if reason == REFUSAL or not isinstance(finish, str) else finish
