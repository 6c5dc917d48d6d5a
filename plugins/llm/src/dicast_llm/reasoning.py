"""Reasons before the verdict: a first call for free reasons, which a second call shows the model as data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import attrs

from dicast import ChatModel, ConfigError, Cost, Failure, Problem, Reply
from dicast.judging import Accepted, Capture, Marks, Question, ask

from .evidence import Evidence
from .room import ShownSection
from .section import Section

Reasoning = Literal["after", "before", "none"]

LIMIT = "max_reasoning_tokens"
_CLOSING = "Give your reasons. Reply with plain text, without a score and without a verdict."


def reasoning_of(option: Reasoning | None, form: str, *, plain: bool = False) -> Reasoning:
    """Return the option ``reasoning`` of a judge with *form*; by default ``after`` for verdicts, and ``none`` for one token.

    :param plain: whether the reply is plain text that ends in a label (``labels``); its reasons always come first.
    :raises ConfigError: if a reply of this form cannot have reasons at the place that *option* names.
    """
    if plain and option is not None:
        raise ConfigError(
            Problem("labels asks for reasons and a label in one text. Leave out reasoning, or labels", path="reasoning")
        )
    if form == "verdict":
        return option or "after"
    if option == "after":
        message = f"form: {form} asks for one token, which has no reasons after it. Set reasoning: before, or none"
        raise ConfigError(Problem(message, path="reasoning", value=option))
    return option or "none"


@attrs.frozen
class ReasonFirst:
    """The first of two calls, which asks for reasons.

    :param system: its system message.
    :param tokens: the limit of its reply.
    :param needs_media: whether a model that does not read all media is a failure.
    """

    system: str
    tokens: int
    needs_media: bool = False

    def question(self, evidence: Evidence) -> Question:
        """Return the question for reasons about *evidence*."""
        return Question(
            self.system,
            evidence.sections,
            _CLOSING,
            None,
            self.tokens,
            sealed=False,
            limit=LIMIT,
            media=evidence.media,
            needs_media=self.needs_media,
        )

    async def ask(
        self, model: ChatModel, evidence: Evidence, retries: int, capture: Capture
    ) -> Accepted[str] | Failure:
        """Ask for the reasons, again while the reply is cut or empty."""
        return await ask(model, self.question(evidence), retries, _text, capture=capture, noun="reasoning")

    def estimate(self, model: ChatModel, evidence: Evidence) -> Cost:
        """Return the most that the first call may cost."""
        return self.question(evidence).estimate(model)

    def longest(self, evidence: Evidence) -> Evidence:
        """Return *evidence* with as many reasons as the limit allows, for the projection of the second call."""
        return with_reasons(evidence, "0" * self.tokens)  # a digit counts as a token


def with_reasons(evidence: Evidence, reasons: str) -> Evidence:
    """Return *evidence* with *reasons* as its last section. The placeholder characters of media are removed from the reasons."""
    text = reasons.translate({ord(place): None for place in evidence.media})
    return attrs.evolve(
        evidence, parts=(*evidence.parts, ShownSection(Section("REASONING", text), len(text), len(text)))
    )


def call_signals(signals: Mapping[str, object], reasons: Accepted[str] | None) -> dict[str, object]:
    """Return the *signals* of the call for the verdict, with the calls for *reasons* added to ``attempts`` and ``cut_replies``."""
    if reasons is None:
        return dict(signals)
    before = reasons.signals
    sums = {
        name: sum(int(str(signal.get(name, 0))) for signal in (before, signals)) for name in ("attempts", "cut_replies")
    }
    return {**before, **signals, **{name: count for name, count in sums.items() if count}}


def _text(reply: Reply, marks: Marks, message: str) -> str:
    return reply.text.strip()
