"""Endpoints' words for the end of a reply."""

from __future__ import annotations

import pytest

from dicast import normalize_stop_reason


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        *((word, "end_turn") for word in ("stop", "STOP", "eos", "eos_token", "end_turn", "completed", "COMPLETE")),
        *((word, "stop_sequence") for word in ("stop_sequence", "STOP_SEQUENCE")),
        *(
            (word, "max_tokens")
            for word in (
                "length",
                "max_tokens",
                "MAX_TOKENS",
                "FinishReason.MAX_TOKENS",
                "FINISH_REASON_MAX_TOKENS",
                "model_length",
            )
        ),
        *((word, "refusal") for word in ("content_filter", "content-filter", "SAFETY", "guardrail_intervened")),
        *((word, word) for word in ("tool_calls", "network_error", "Weird", "", "ended by its length")),
        (None, None),
    ],
)
def test_known_words_are_mapped_and_unknown_ones_stay(word, reason):
    assert normalize_stop_reason(word) == reason
