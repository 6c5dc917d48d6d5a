"""Recording of a model's reasons and of the replies of failed judgments, by the option ``capture_rationale``."""

from __future__ import annotations

from hashlib import sha256
from typing import Literal

from .._kernel.classes import evolve
from .._kernel.values import Failure
from .._kernel.values.rationale import LEDGER, RATIONALE, SCOPE

Capture = bool | Literal["auto"]
"""Whether reasons and failed replies are recorded; ``auto``: in the ledger alone, where it keeps content."""


def rationale_signals(text: str, capture: Capture) -> dict[str, object]:
    """Return the signals of a rationale: its hash, and by *capture* the text with its scope."""
    signals: dict[str, object] = {"rationale_hash": sha256(text.encode(errors="replace")).hexdigest()}
    if capture is not False:
        signals[RATIONALE] = text
    if capture == "auto":
        signals[SCOPE] = LEDGER
    return signals


def with_reply(failure: Failure, text: str, capture: Capture) -> Failure:
    """Return *failure* with the reply of the model, as far as *capture* allows."""
    if capture is False or not text:
        return failure
    return evolve(failure, reply=text, reply_scope=LEDGER if capture == "auto" else None)
