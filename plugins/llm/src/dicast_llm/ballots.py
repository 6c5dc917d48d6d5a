"""Verdicts of a comparison: the answer of each order, and the result of both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import attrs

from dicast import Cost, Reply, judging, mean
from dicast.judging import Accepted, BadReply, Marks, find_verdict

from .labels import Labels, Side
from .letters import Order, letter_signals, preference
from .reasoning import call_signals

Winner = Literal["output", "opponent", "tie"]

FLIP = 0.5
"""The confidence after a flip: of two contradictory verdicts at most one is right."""

SCORES: dict[Winner, float] = {"output": 1.0, "opponent": 0.0, "tie": 0.5}

_KEYS = ("winner", "confidence", "rationale")


@attrs.frozen
class Ballot:
    """The verdict of one order: the winner, the confidence of the model (1.0 if it was not asked for), and the reasons."""

    winner: Winner
    confidence: float
    rationale: str


@attrs.frozen
class Vote:
    """The answer of one order, after *reasons* if they were asked for before it."""

    answer: Accepted[Ballot] | Order
    cost: Cost
    reasons: Accepted[str] | None

    @property
    def signals(self) -> dict[str, object]:
        """The signals of the calls."""
        return call_signals({"attempts": 1} if isinstance(self.answer, Order) else self.answer.signals, self.reasons)

    @property
    def attempts(self) -> int:
        """The number of calls."""
        attempts = 1 if isinstance(self.answer, Order) else self.answer.attempts
        return attempts + (0 if self.reasons is None else self.reasons.attempts)

    @property
    def reply(self) -> Reply:
        """The reply with the verdict."""
        return self.answer.answer.reply if isinstance(self.answer, Order) else self.answer.reply

    @property
    def rationale(self) -> str:
        """The reasons, before the verdict or in it."""
        if self.reasons is not None:
            return self.reasons.value
        return "" if isinstance(self.answer, Order) else self.answer.value.rationale


def cost_of(answer: Accepted[Ballot] | Order) -> Cost:
    """Return the cost of the calls for *answer*."""
    return answer.answer.reply.cost if isinstance(answer, Order) else answer.cost


def outcome(votes: Sequence[Vote]) -> tuple[float, float, dict[str, object]]:
    """Return the score, the confidence and the signals of both orders."""
    orders = [vote.answer for vote in votes if isinstance(vote.answer, Order)]
    if orders:
        first, second = (order.log_odds for order in orders)
        score = preference(first, second)
        return score, abs(2 * score - 1), dict(letter_signals(first, second))
    ballots = [vote.answer.value for vote in votes if isinstance(vote.answer, Accepted)]
    winners = [ballot.winner for ballot in ballots]
    flipped = len(set(winners)) > 1
    confidence = mean([ballot.confidence for ballot in ballots]) * (FLIP if flipped else 1.0)
    return SCORES["tie" if flipped else winners[0]], confidence, {"flipped": flipped, "winners": winners}


def read_json(place: Side, reply: Reply, marks: Marks, judged: str, *, sealed: bool, rationale: bool = True) -> Ballot:
    """Return the ballot of a JSON reply, in which the output was in *place*.

    :raises BadReply: if the reply holds no verdict.
    """
    keys = _KEYS if rationale else _KEYS[:-1]
    reply_object = find_verdict(reply.text, keys, marks.seal if sealed else None, judged, optional=_KEYS)
    winner = reply_object.text("winner")
    if winner not in judging.WINNERS:
        raise BadReply("'winner' is not first, second or tie")
    reasons = reply_object.text("rationale").strip() if rationale else ""
    return Ballot(_winner(winner, place), reply_object.number("confidence"), reasons)


def read_labels(labels: Labels, texts: Sequence[str], place: Side, reply: Reply, marks: Marks, judged: str) -> Ballot:
    """Return the ballot of a plain reply that names one of *labels*.

    :raises BadReply: if the reply does not name the better output.
    """
    side = labels.winner(labels.without_quotations(reply.text, texts))
    if side is None:
        raise BadReply("it does not say which output is better")
    return Ballot(_winner(side, place), 1.0, reply.text.strip())


def _winner(label: str, place: Side) -> Winner:
    return "tie" if label == "tie" else "output" if label == place else "opponent"


def schema(*, sealed: bool, rationale: bool) -> dict[str, Any]:
    """Return the JSON Schema of the reply."""
    properties = {
        "seal": {"type": "string"},
        "winner": {"type": "string", "enum": list(judging.WINNERS)},
        "confidence": {"type": "number", "minimum": 0, "maximum": 1},
        "rationale": {"type": "string"},
    }
    for key, is_asked in (("seal", sealed), ("rationale", rationale)):
        if not is_asked:
            del properties[key]
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
