"""The judge ``evaluator/rubric``: a skill answers each case, and a model scores the answer by a rubric of dimensions."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from math import inf
from pathlib import Path

import attrs

from dicast import (
    COMPLETE,
    ChatModel,
    ChatRequest,
    ConfigError,
    Cost,
    Failure,
    Judge,
    Judgment,
    Message,
    Problem,
    Reply,
    Rubric,
    RunContext,
    Subject,
    Verdict,
    Within,
    estimate,
    normalize_stop_reason,
)
from dicast.judging import (
    BadReply,
    Capture,
    Dimension,
    Form,
    Marks,
    Question,
    ask,
    closing,
    collapse,
    find_verdict,
    is_free,
    of_rubric,
    system_message,
)
from dicast.toolkit.files import error_reason, read_text

from .case import case_text
from .opinion import REASONS, confidence_of, number_of, reasons_of, section

_CHARS_PER_TOKEN = 4


@attrs.frozen
class Opinion:
    """Content of a verdict: the score of each dimension on its scale, and the signals of the reasons."""

    dimensions: Mapping[str, float]
    confidence: float
    signals: Mapping[str, object]


@attrs.frozen
class Answered:
    """Answer to a case, and its cost."""

    text: str
    cost: Cost


@attrs.frozen(kw_only=True)
class RubricJudge:
    """Score a skill's answer to each case by a rubric of dimensions, with a model as the judge.

    The skill (a SKILL.md) is the system prompt of *model*, and the case is the user message. *judge_model* gets the case, the answer and
    the reference, if the row has one. The case is the file named in the row's column ``case`` or ``path``, else its input, else its
    output. Without a skill, the row's output is scored.

    The score is the sum over dimensions of the score, divided by the end of its scale, times its weight. ``signals.dimensions`` has the
    scores on their scales. A number may be text (``"8.5"``), which sets ``signals.coerced``. A dimension that is missing, or not on its
    scale, makes the verdict invalid: the judge is asked again, then it is a failure.

    :param rubric: YAML with ``dimensions: [{name, weight, scale: "1-10", criteria}]``; the weights must sum to 1.
    :param judge_model: the chat model that judges.
    :param skill: the file of the skill.
    :param model: the chat model that gets the skill.
    :param retries: how often the judge is asked again after an invalid reply, 0 to 10.
    :param max_output_tokens: the longest answer of the skill in tokens.
    :param max_verdict_tokens: the longest reply of the judge in tokens.
    :param max_chars: the most characters shown to the judge of the case, of the answer and of the reference; the middle is left out.
    :param keep_output: keep the answer, as ``signals.output``.
    :param capture_rationale: whether the judge's reasons are recorded, as ``signals.rationale_redacted``, and the reply of a failed judgment, as ``reply`` of ``eval.failed``. Both may quote judged
        content. ``auto`` stores them in a ledger that stores content, and passes them to sinks that ask for content; ``true`` passes them to all sinks; ``false`` drops both.
    """

    name = "rubric"
    accepts = ()
    judge_kind = "llm"
    needs_output = False

    rubric: Rubric
    judge_model: ChatModel
    skill: Path | None = attrs.field(default=None, metadata={"counts": False})
    model: ChatModel | None = None
    retries: int = attrs.field(default=1, validator=Within(0, 10, "a number from 0 to 10"))
    max_output_tokens: int = attrs.field(default=4096, validator=Within(1, inf, "1 or more"))
    max_verdict_tokens: int = attrs.field(default=512, validator=Within(1, inf, "1 or more"))
    max_chars: int = attrs.field(default=60_000, validator=Within(1, inf, "1 or more"))
    keep_output: bool = attrs.field(default=False, metadata={"counts": False})
    capture_rationale: Capture = attrs.field(default="auto", metadata={"counts": False})
    _form: Form = attrs.field(init=False, eq=False, repr=False)

    def __attrs_post_init__(self) -> None:
        if (self.skill is None) != (self.model is None):
            message = "skill and model belong together: the model answers each case with the skill as its system prompt"
            raise ConfigError(Problem(message, path="skill" if self.skill is None else "model"))
        if "dimensions" not in self.rubric.data:
            message = f"rubric {self.rubric.id} has no dimensions; it is YAML with dimensions: [{{name, weight, scale, criteria}}]"
            raise ConfigError(Problem(message, path="rubric", value=self.rubric.id))
        object.__setattr__(self, "_form", Form(of_rubric(self.rubric)))

    @asynccontextmanager
    async def open(self, run: RunContext) -> AsyncIterator[Judge]:
        """Yield the judge for one run.

        :raises ConfigError: when the skill cannot be read.
        """
        yield RubricJudging(self, self.instructions(), run.base)

    def reads(self, base: Path) -> dict[str, Path]:
        """Return the file of the skill."""
        return {} if self.skill is None else {"skill": self.skill}

    def instructions(self) -> str:
        """Return the text of the skill; empty without a skill.

        :raises ConfigError: when it cannot be read.
        """
        try:
            text = "" if self.skill is None else read_text(self.skill)
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(
                Problem(f"cannot read the skill {self.skill}: {error_reason(error)}", path="skill")
            ) from error
        if self.skill is not None and not text.strip():
            raise ConfigError(Problem(f"the skill {self.skill} is empty", path="skill"))
        return text

    async def judge(self, subject: Subject, children: Sequence[Verdict] = ()) -> Judgment | Failure:
        """Judge *subject* outside of any run; paths in it are relative to the current folder."""
        return await RubricJudging(self, self.instructions(), Path()).judge(subject, children)

    @property
    def keeps_texts(self) -> bool:
        """True if verdicts contain the skill's answer."""
        return self.keep_output

    @property
    def dimensions(self) -> tuple[Dimension, ...]:
        """Dimensions of the rubric."""
        return self._form.dimensions

    def question(self, case: str, answer: str, reference: object) -> Question:
        """Return the question for the judge about an *answer* to a *case*."""
        values = {"CASE": case or None, "OUTPUT": answer, "REFERENCE": reference}
        sections = [section(title, text, self.max_chars) for title, text in values.items() if text is not None]
        system = system_message(self.rubric, (), (), self._form)
        return Question(
            system,
            tuple(sections),
            closing(self._form),
            self._form.schema,
            self.max_verdict_tokens,
            limit="max_verdict_tokens",
        )

    def verdict_in(self, reply: Reply, marks: Marks, message: str) -> Opinion:
        """Return the verdict in *reply*."""
        names = [dimension.name for dimension in self.dimensions]
        verdict = find_verdict(reply.text, ("seal", *names), marks.seal, message, optional=(*self._form.keys, *REASONS))
        numbers = {dimension.name: number_of(verdict, dimension.name) for dimension in self.dimensions}
        for dimension in self.dimensions:
            if not dimension.low <= numbers[dimension.name][0] <= dimension.high:
                raise BadReply(f"{dimension.name!r} is not a number from {dimension.low:g} to {dimension.high:g}")
        signals = reasons_of(verdict, self.capture_rationale)
        if any(is_coerced for _, is_coerced in numbers.values()):
            signals["coerced"] = True
        return Opinion({name: number for name, (number, _) in numbers.items()}, confidence_of(verdict), signals)


class RubricJudging:
    """Live judge with *options*; *skill* is the text of the skill, and paths in rows are relative to *base*."""

    needs_output = False

    def __init__(self, options: RubricJudge, skill: str, base: Path) -> None:
        self._options, self._skill, self._base = options, skill, base

    async def judge(self, subject: Subject, children: Sequence[Verdict] = ()) -> Judgment | Failure:
        """Get the answer to the case, and have it judged."""
        options = self._options
        text = case_text(subject, self._base)
        if isinstance(text, Failure):
            return text
        answered = await self._answered(subject, text)
        if isinstance(answered, Failure):
            return answered
        case = "" if options.model is None and text == subject.text else text
        question = options.question(case, answered.text, subject.reference)
        capture = options.capture_rationale
        accepted = await ask(options.judge_model, question, options.retries, options.verdict_in, capture=capture)
        cost = answered.cost + accepted.cost
        if isinstance(accepted, Failure):
            return attrs.evolve(accepted, cost=cost)
        opinion = accepted.value
        signals = {**opinion.signals, "dimensions": dict(opinion.dimensions), **accepted.signals}
        signals |= {"output": answered.text} if options.keep_output else {}
        score = collapse(options.dimensions, opinion.dimensions)
        return Judgment(
            score,
            opinion.confidence,
            "llm",
            accepted.reply.model,
            cost,
            signals,
            options.rubric,
            includes_replies=True,
        )

    def estimate(self, subject: Subject) -> Cost:
        """Return the highest cost of the judgment."""
        options, text = self._options, case_text(subject, self._base)
        if isinstance(text, Failure):
            return Cost.zero()
        cost, answer = Cost.zero(), subject.text
        if options.model is not None:
            cost = estimate(options.model, self._request(text))
            answer = "x" * min(options.max_chars, options.max_output_tokens * _CHARS_PER_TOKEN)
        if is_free(options.judge_model):
            return cost
        question = options.question(text, answer, subject.reference)
        return cost + question.estimate(options.judge_model)

    def _request(self, case: str) -> ChatRequest:
        messages = (Message("system", self._skill, cache=True), Message("user", case))
        return ChatRequest(messages, self._options.max_output_tokens)

    async def _answered(self, subject: Subject, case: str) -> Answered | Failure:
        """Return the skill's answer to *case*, or the row's output if there is no skill."""
        if self._options.model is None:
            if subject.output is None:
                return Failure("missing_input", f"the {subject.kind} has no output to judge, and no skill makes one")
            return Answered(subject.text, Cost.zero())
        reply = await self._options.model.complete(self._request(case))
        if isinstance(reply, Failure):
            return reply
        if normalize_stop_reason(reply.stop_reason) not in COMPLETE:
            word = reply.finish_reason or reply.stop_reason
            message = f"the skill's answer is not whole (stop reason {word!r:.40}; max_output_tokens)"
            return Failure("judge_output_invalid", message, cost=reply.cost)
        return Answered(reply.text, reply.cost)
