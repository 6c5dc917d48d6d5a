"""Requests to the reflection model for a better text."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import inf
from pathlib import Path
from typing import Any

import attrs
import orjson

from dicast import (
    ONLY,
    Answered,
    ChatModel,
    ChatRequest,
    Cost,
    Due,
    Failure,
    Message,
    Run,
    Subject,
    Within,
    estimate,
    read_ledger,
    results,
    run,
)

from .evaluation import Stopped, common, placed
from .journal import Journal, digest
from .spec import Spec

_FENCE = re.compile(r"^(`{3,})[\w.+-]*\n(.*?)\n?^\1`*[ \t]*$", re.DOTALL | re.MULTILINE)
_TICKS = re.compile(r"`{3,}")
_EXCERPT_CHARS = 4000


@attrs.frozen
class Reflect:
    """Send a subject's input to a chat model; the reply is the output.

    ``dicast optimize`` requests candidates with this task, so that these calls have budgets and ledger entries like other calls.

    :param model: the chat model.
    :param temperature: the temperature of the reply; ``null`` uses the model's own options.
    :param max_output_tokens: the most tokens of a reply.
    """

    default_timeout = 600.0

    model: ChatModel
    temperature: float | None = attrs.field(
        default=None, validator=attrs.validators.optional(Within(0, inf, "0 or more"))
    )
    max_output_tokens: int = attrs.field(default=4096, validator=Within(1, inf, "1 or more"))

    def estimate(self, subject: Subject) -> Cost:
        """Return the highest cost of the call."""
        return estimate(self.model, self._request(subject))

    async def produce(self, subject: Subject) -> Subject | Failure:
        """Return *subject* with the model's reply as its output."""
        reply = await self.model.complete(self._request(subject))
        if isinstance(reply, Failure):
            return reply
        if not reply.text.strip():
            return Failure("judge_output_invalid", "the reflection model said nothing", cost=reply.cost)
        return Answered.of(subject, {ONLY: {"content": reply.text, "metrics": {"model": reply.model}}})

    def _request(self, subject: Subject) -> ChatRequest:
        return ChatRequest((Message("user", str(subject.input)),), self.max_output_tokens, self.temperature)


class Reflector:
    """Client of the reflection model of *spec*; each call is a separate run in the ledger in *folder*."""

    def __init__(self, spec: Spec, folder: Path, journal: Journal, session: str) -> None:
        self._spec, self._folder, self._journal, self._session = spec, folder, journal, session
        self.calls = 0

    def propose(self, candidate: str, records: Sequence[Mapping[str, Any]]) -> str:
        """Return a new text in place of *candidate*, based on the *records* of its evaluations.

        :raises Stopped: if there is no reply.
        """
        text = prompt(self._spec, candidate, records)
        key = digest(text)
        answer, _ = self._journal.answer("reflection", key)
        if answer is None:
            answer = {"text": self._reply(text)}
            self._journal.keep("reflection", key, answer)
        self.calls += 1
        return proposed(answer["text"]) or candidate

    def _reply(self, text: str) -> str:
        ledger = self._folder / "ledger.db"
        subject = Subject("reflection", f"{self.calls + 1}-{digest(text)[:12]}", input=text, session_id=self._session)
        done = reflection_run(self._spec, ledger, [Due(subject)])
        if done.unaffordable or done.throttled:
            raise Stopped("money", "the budget in money leaves no room for the next reflection")
        if done.stopped is not None and done.stopped["reason"] == "interrupted":
            raise Stopped("interrupted", "interrupted")
        if done.failed or done.stopped is not None or done.run_id is None:
            failed = [failed_subject["error_message"] for failed_subject in done.failed_subjects]
            why = failed[0] if failed else _excerpt(done.stopped)
            raise Stopped("reflection_failed", f"the reflection model gave no reply: {why}")
        run_id = done.run_id
        ((_, record),) = read_ledger(ledger, lambda live: list(results(live, run_id).records()))
        return str(record["response"]["content"])


def reflection_run(spec: Spec, ledger: Path, subjects: Sequence[Due]) -> Run:
    """Send *subjects* to the reflection model of *spec*; without subjects, only open it.

    :raises ConfigError: if it cannot be used.
    """
    model = spec.model
    options = {name: model[name] for name in ("temperature", "max_output_tokens", "timeout") if name in model}
    task = {"optimize/reflect": {"model": model["reflection"], **options}}
    with placed(spec, "model"):
        return run({**common(spec, ledger), "task": task}, subjects=subjects)


def prompt(spec: Spec, candidate: str, records: Sequence[Mapping[str, Any]]) -> str:
    """Return the prompt for the reflection model."""
    optimization, intake = spec.optimization, spec.intake
    dimensions = "".join(
        f"- {constraint.name} ({constraint.weight:g}){f': {constraint.description}' if constraint.description else ''}\n"
        for constraint in intake.quality_dimensions
    )
    constraints = "".join(f"- {constraint}\n" for constraint in intake.hard_constraints)
    fence = "`" * max(3, 1 + max(map(len, _TICKS.findall(candidate)), default=0))
    parts = [
        "You improve a text so that it scores higher. Here is the text as it is:",
        f"{fence}\n{candidate}\n{fence}",
        *([f"Objective: {optimization['objective']}"] if "objective" in optimization else []),
        *([f"Background: {optimization['background']}"] if "background" in optimization else []),
        *([f"It is judged by:\n{dimensions}"] if "intake" in spec.document.data else []),
        *([f"It must by all means keep to:\n{constraints}"] if constraints else []),
        "This is how it did. Scores go from 0 (worst) to 1 (best).",
        *(f"Case {n}: {_excerpt(record)}" for n, record in enumerate(records, 1)),
        f"Find out what costs it points, and write a better text. Answer with the whole new text alone, between two lines of {fence}.",
    ]
    return "\n\n".join(parts)


def proposed(reply: str) -> str:
    """Return the text in *reply*: the content of its longest fenced block, else the whole reply."""
    blocks = [block for _, block in _FENCE.findall(reply)]
    return str(max(blocks, key=len) if blocks else reply.strip().strip("`")).strip()


def _excerpt(value: object) -> str:
    text = orjson.dumps(value, default=str).decode()
    return text if len(text) <= _EXCERPT_CHARS else f"{text[:_EXCERPT_CHARS]}… (cut)"
