"""Result of a served pipeline."""

from __future__ import annotations

import pytest

from dicast import Event
from dicast_evaluator.served import result


def completed(signals):
    payload = {
        "judge": "j",
        "eval_id": "e",
        "score": 1.0,
        "confidence": 0.9,
        "basis": "model",
        "judge_model": "m",
        "signals": signals,
    }
    return Event("1", "eval.completed", "", "run", payload)


@pytest.mark.parametrize(("scope", "is_shown"), [({}, True), ({"rationale_scope": "ledger"}, False)])
def test_a_rationale_for_the_ledger_alone_is_no_part_of_the_result(scope, is_shown):
    document = result([completed({"rationale_redacted": "because", "attempts": 1, **scope})], None)
    signals = document["judges"]["j"]["signals"]
    assert signals["attempts"] == 1
    assert ("rationale_redacted" in signals) is is_shown
    assert "rationale_scope" not in signals
