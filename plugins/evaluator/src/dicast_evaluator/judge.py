"""The judge ``evaluator/judge``: judges by an objective."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from math import inf

import attrs

from dicast import ChatModel, ConfigError, Cost, Failure, Judgment, Problem, Reply, Rubric, Subject, Verdict, Within
from dicast.judging import (
    CONSTRAINTS,
    Accepted,
    BadReply,
    Capture,
    Dimension,
    Form,
    Marks,
    Question,
    ReplyObject,
    ask,
    closing,
    collapse,
    find_verdict,
    is_free,
    of_option,
    system_message,
)

from .opinion import REASONS, confidence_of, number_of, reasons_of, section, value_of

_VERSION_DIGITS = 12
_NO, _YES = ("", "false", "no"), ("true", "yes")


@attrs.frozen
class Weighted:
    """A dimension as an option.

    :param weight: above 0.
    :param description: its meaning, for the model.
    """

    weight: float = 1.0
    description: str = ""


@attrs.frozen
class Opinion:
    """Content of a verdict."""

    score: float
    confidence: float
    signals: Mapping[str, object]


@attrs.frozen
class EvaluatorJudge:
    """Ask a language model how well a candidate meets an objective: the judge of the evaluator protocol.

    The candidate is the row's output. The prompt also shows the row's input, reference and other columns. All of them are data, in random
    fences, and the verdict must repeat the seal of its call. With dimensions, the score is their weighted mean and any score of the model is
    ignored; without dimensions it is the model's score. A number outside of [0, 1] is clamped and named in ``signals.clamped``. A dimension or
    score that is missing, not a number or not finite makes the verdict invalid: the model is asked again, then it is a failure.

    Every prompt has the hard constraints. If the model finds a violation, the score is 0 and
    ``signals.hard_constraint_violation`` is true.

    :param model: the chat model to ask.
    :param objective: the properties of a good candidate, in a sentence or more.
    :param dimensions: ``{name: {weight, description}}``; the weights are above 0 and need not sum to 1.
    :param hard_constraints: conditions that must hold, each in a sentence.
    :param retries: how often the model is asked again after an invalid reply, 0 to 10.
    :param max_output_tokens: the longest reply in tokens.
    :param max_chars: the most characters shown of each section; the middle is left out.
    :param capture_rationale: whether the model's reasons are recorded, as ``signals.rationale_redacted``, and the reply of a failed judgment, as ``reply`` of ``eval.failed``. Both may quote judged
        content. ``auto`` stores them in a ledger that stores content, and passes them to sinks that ask for content; ``true`` passes them to all sinks; ``false`` drops both.
    """

    name = "judge"
    accepts = ()
    judge_kind = "llm"

    model: ChatModel
    objective: str
    dimensions: Mapping[str, Weighted] = attrs.field(factory=dict)
    hard_constraints: Sequence[str] = ()
    retries: int = attrs.field(default=1, validator=Within(0, 10, "a number from 0 to 10"))
    max_output_tokens: int = attrs.field(default=512, validator=Within(1, inf, "1 or more"))
    max_chars: int = attrs.field(default=60_000, validator=Within(1, inf, "1 or more"))
    capture_rationale: Capture = attrs.field(default="auto", metadata={"counts": False})
    _form: Form = attrs.field(init=False, eq=False, repr=False)
    _system: str = attrs.field(init=False, eq=False, repr=False)
    _rubric: Rubric = attrs.field(init=False, eq=False, repr=False)

    def __attrs_post_init__(self) -> None:
        if not self.objective.strip():
            raise ConfigError(Problem("objective is empty; describe a good candidate", path="objective"))
        if any(not constraint.strip() for constraint in self.hard_constraints):
            raise ConfigError(Problem("one of the hard_constraints is empty; leave it out", path="hard_constraints"))
        form = Form(_dimensions(self.dimensions), bool(self.hard_constraints))
        text = f"You judge how well a candidate meets this objective:\n{self.objective.strip()}"
        system = system_message(Rubric("objective", "", text), (), self.hard_constraints, form)
        version = sha256(system.encode()).hexdigest()[:_VERSION_DIGITS]
        object.__setattr__(self, "_form", form)
        object.__setattr__(self, "_system", system)
        object.__setattr__(self, "_rubric", Rubric("objective", version, text))

    @property
    def rubric(self) -> Rubric:
        """The objective as the rubric of verdicts; its version changes with every word of the prompt."""
        return self._rubric

    async def judge(self, subject: Subject, children: Sequence[Verdict] = ()) -> Judgment | Failure:
        """Ask the model, and ask again after an invalid reply."""
        answer = await ask(
            self.model, self._question(subject), self.retries, self._read, capture=self.capture_rationale
        )
        return answer if isinstance(answer, Failure) else self._judgment(answer)

    def estimate(self, subject: Subject) -> Cost:
        """Return the highest cost of the judgment, with all calls that *retries* allows."""
        return Cost.zero() if is_free(self.model) else self._question(subject).estimate(self.model)

    def _question(self, subject: Subject) -> Question:
        values = {
            "INPUT": subject.input,
            "CANDIDATE": subject.text,
            "REFERENCE": subject.reference,
            "EXAMPLE": dict(subject.context) or None,
        }
        sections = tuple(section(title, value, self.max_chars) for title, value in values.items() if value is not None)
        form = self._form
        return Question(self._system, sections, closing(form), form.schema, self.max_output_tokens)

    def _read(self, reply: Reply, marks: Marks, message: str) -> Opinion:
        keys = (*self._form.keys, CONSTRAINTS, *REASONS)
        verdict = find_verdict(reply.text, ("seal",), marks.seal, message, optional=keys)
        signals = reasons_of(verdict, self.capture_rationale)
        if self.hard_constraints and _is_violated(verdict):
            return Opinion(0.0, confidence_of(verdict), signals | {"hard_constraint_violation": True})
        score, numbers = self._score(verdict)
        return Opinion(score, confidence_of(verdict), signals | numbers)

    def _score(self, verdict: ReplyObject) -> tuple[float, dict[str, object]]:
        """Return the score, and the signals with its parts."""
        dimensions = self._form.dimensions
        numbers = {name: number_of(verdict, name) for name in [dimension.name for dimension in dimensions] or ["score"]}
        values = {name: min(max(number, 0.0), 1.0) for name, (number, _) in numbers.items()}
        signals: dict[str, object] = {"dimensions": values} if dimensions else {}
        if any(coerced for _, coerced in numbers.values()):
            signals["coerced"] = True
        if clamped := [name for name, (number, _) in numbers.items() if number != values[name]]:
            signals["clamped"] = clamped
        return collapse(dimensions, values) if dimensions else values["score"], signals

    def _judgment(self, accepted: Accepted[Opinion]) -> Judgment:
        opinion, signals = accepted.value, {**accepted.value.signals, **accepted.signals}
        return Judgment(
            opinion.score,
            opinion.confidence,
            "llm",
            accepted.reply.model,
            accepted.cost,
            signals,
            self._rubric,
            includes_replies=True,
        )


def _is_violated(verdict: ReplyObject) -> bool:
    """Return whether the verdict reports a violated constraint. A verdict without the key reports none.

    :raises BadReply: when the value is a text that means neither.
    """
    if all(member.key != CONSTRAINTS for member in verdict.members):
        return False
    value = value_of(verdict, CONSTRAINTS)
    if isinstance(value, str) and value.strip().lower() not in (*_NO, *_YES):  # other keys may be part of the text
        raise BadReply(f"LLM {CONSTRAINTS!r} field is neither true nor false")
    return value.strip().lower() in _NO if isinstance(value, str) else not value


def _dimensions(options: Mapping[str, Weighted]) -> tuple[Dimension, ...]:
    checked = of_option({name: option.weight for name, option in options.items()})
    return tuple(attrs.evolve(dimension, criteria=options[dimension.name].description.strip()) for dimension in checked)
