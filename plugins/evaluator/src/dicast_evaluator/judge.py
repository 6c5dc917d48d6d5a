"""The judge ``evaluator/judge``: document 004's judge, of an objective."""

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
    :param description: what it means, for the model.
    """

    weight: float = 1.0
    description: str = ""


@attrs.frozen
class Opinion:
    """What a verdict says."""

    score: float
    confidence: float
    signals: Mapping[str, object]


@attrs.frozen
class EvaluatorJudge:
    """Ask a language model how well a candidate meets an objective: the judge of the evaluator protocol.

    The candidate is the row's output; its input, its reference and its other columns are shown beside it. All of it is data, in random
    fences, and the verdict must bear the seal of its call. With dimensions the score is their weighted mean, whatever score the model gives; without them it is the
    model's score. A number outside of [0, 1] is brought to the nearer end, and named in ``signals.clamped``. A dimension or a score that
    is missing, no number or not finite is no verdict: the model is asked again, then it is a failure.

    Hard constraints stand in every prompt. Where the model says that one does not hold, the score is 0 and
    ``signals.hard_constraint_violation`` is true.

    :param model: the chat model that is asked.
    :param objective: what a good candidate does, in a sentence or more.
    :param dimensions: ``{name: {weight, description}}``; the weights are above 0 and need not sum to 1.
    :param hard_constraints: what must hold, each in a sentence.
    :param retries: how often the model is asked again after a reply that is no verdict, 0 to 10.
    :param max_output_tokens: how long the reply may be.
    :param max_chars: how many characters of each of these are shown; the middle is left out.
    :param capture_rationale: whether the model's reasons are recorded, as ``signals.rationale_redacted``, and the reply of a failed judgment, as ``reply`` of ``eval.failed``. Both may quote what was
        judged. ``auto`` keeps them in the ledger where it keeps content, and gives them to sinks that ask for content; ``true`` gives them to all sinks; ``false`` keeps neither.
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
            raise ConfigError(Problem("objective is empty; write what a good candidate does", path="objective"))
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
        """The objective, as what verdicts name; its version changes with every word of the prompt."""
        return self._rubric

    async def judge(self, subject: Subject, children: Sequence[Verdict]) -> Judgment | Failure:
        """Ask the model, again as long as its reply is no verdict."""
        asked = await ask(self.model, self._question(subject), self.retries, self._read, capture=self.capture_rationale)
        return asked if isinstance(asked, Failure) else self._judgment(asked)

    def estimate(self, subject: Subject) -> Cost:
        """What the judgment may cost at most: all calls that *retries* allows."""
        return Cost.zero() if is_free(self.model) else self._question(subject).estimate(self.model)

    def _question(self, subject: Subject) -> Question:
        shown = {
            "INPUT": subject.input,
            "CANDIDATE": subject.text,
            "REFERENCE": subject.reference,
            "EXAMPLE": dict(subject.context) or None,
        }
        sections = tuple(section(title, value, self.max_chars) for title, value in shown.items() if value is not None)
        form = self._form
        return Question(self._system, sections, closing(form), form.schema, self.max_output_tokens)

    def _read(self, reply: Reply, marks: Marks, message: str) -> Opinion:
        keys = (*self._form.keys, CONSTRAINTS, *REASONS)
        found = find_verdict(reply.text, ("seal",), marks.seal, message, optional=keys)
        signals = reasons_of(found, self.capture_rationale)
        if self.hard_constraints and _is_violated(found):
            return Opinion(0.0, confidence_of(found), signals | {"hard_constraint_violation": True})
        score, numbers = self._score(found)
        return Opinion(score, confidence_of(found), signals | numbers)

    def _score(self, found: ReplyObject) -> tuple[float, dict[str, object]]:
        """The score, and the signals that say what it was made of."""
        dimensions = self._form.dimensions
        numbers = {name: number_of(found, name) for name in [each.name for each in dimensions] or ["score"]}
        values = {name: min(max(number, 0.0), 1.0) for name, (number, _) in numbers.items()}
        signals: dict[str, object] = {"dimensions": values} if dimensions else {}
        if any(coerced for _, coerced in numbers.values()):
            signals["coerced"] = True
        if clamped := [name for name, (number, _) in numbers.items() if number != values[name]]:
            signals["clamped"] = clamped
        return collapse(dimensions, values) if dimensions else values["score"], signals

    def _judgment(self, asked: Accepted[Opinion]) -> Judgment:
        opinion, signals = asked.value, {**asked.value.signals, **asked.signals}
        return Judgment(
            opinion.score,
            opinion.confidence,
            "llm",
            asked.reply.model,
            asked.cost,
            signals,
            self._rubric,
            includes_replies=True,
        )


def _is_violated(found: ReplyObject) -> bool:
    """Whether the verdict says that a constraint does not hold; one that says nothing says that all do.

    :raises BadReply: when it is a text that says neither.
    """
    if all(member.key != CONSTRAINTS for member in found.members):
        return False
    said = value_of(found, CONSTRAINTS)
    if isinstance(said, str) and said.strip().lower() not in (*_NO, *_YES):  # a text may have swallowed other keys
        raise BadReply(f"LLM {CONSTRAINTS!r} field is neither true nor false")
    return said.strip().lower() in _NO if isinstance(said, str) else not said


def _dimensions(given: Mapping[str, Weighted]) -> tuple[Dimension, ...]:
    checked = of_option({name: one.weight for name, one in given.items()})
    return tuple(attrs.evolve(each, criteria=given[each.name].description.strip()) for each in checked)
