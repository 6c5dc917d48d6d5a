"""Why a model's text ended: the words of endpoints, mapped to the few words of dicast."""

from __future__ import annotations

END_TURN, STOP_SEQUENCE, MAX_TOKENS, REFUSAL = "end_turn", "stop_sequence", "max_tokens", "refusal"

COMPLETE = (None, END_TURN, STOP_SEQUENCE, "stop")
"""The stop reasons of a reply that is whole; None where the endpoint does not say. ``stop`` is what some call ``end_turn``."""

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
    """Return ``end_turn``, ``stop_sequence``, ``max_tokens`` or ``refusal`` for an endpoint's word, in letters of any case.

    None stays None: the endpoint does not say why the text ended. An unknown word is returned unchanged.
    """
    if reason is None:
        return None
    word = reason.strip().lower().replace("-", "_").replace(" ", "_")
    return _NORMALIZED.get(word.removeprefix("finishreason.").removeprefix("finish_reason_"), reason)
