"""The judge ``evaluator/rubric``: a skill answers each case, and a model scores the answer by document 000's rubric."""

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
    maybe_await,
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
from dicast.toolkit.files import read_text

from .case import case_text
from .opinion import REASONS, confidence_of, number_of, reasons_of, section

_CHARS_PER_TOKEN = 4


@attrs.frozen
class Opinion:
    """What a verdict says: the score of each dimension on its scale, and what is recorded of the reasons."""

    dimensions: Mapping[str, float]
    confidence: float
    signals: Mapping[str, object]


@attrs.frozen
class Answered:
    """What is judged of a case, and what it cost to make it."""

    text: str
    cost: Cost


@attrs.frozen(kw_only=True)
class RubricJudge:
    """Score what a skill makes of each case by a rubric of dimensions, as a model that is the judge sees it.

    The skill (a SKILL.md) is the system prompt and the case the user message of *model*; *judge_model* is shown the case, the answer and,
    where the row has one, the reference. The case is the file that the row's column ``case`` or ``path`` names, else its input, else its
    output. Without a skill the row's output itself is scored.

    The score is the sum of each dimension's score, divided by the end of its scale, times its weight. ``signals.dimensions`` has the
    scores on their scales. A number may be text (``"8.5"``), and ``signals.coerced`` says so. A dimension that is missing, or not on its
    scale, is no verdict: the judge is asked again, then it is a failure.

    :param rubric: YAML with ``dimensions: [{name, weight, scale: "1-10", criteria}]``; the weights must sum to 1.
    :param judge_model: the chat model that judges.
    :param skill: the file of the skill.
    :param model: the chat model that has the skill.
    :param retries: how often the judge is asked again after a reply that is no verdict, 0 to 10.
    :param max_output_tokens: how long the skill's answer may be.
    :param max_verdict_tokens: how long the judge's reply may be.
    :param max_chars: how many characters of the case, of the answer and of the reference the judge is shown each; the middle is left out.
    :param keep_output: keep the answer, as ``signals.output``.
    :param capture_rationale: whether the judge's reasons are recorded, as ``signals.rationale_redacted``, and the reply of a failed judgment, as ``reply`` of ``eval.failed``. Both may quote what was
        judged. ``auto`` keeps them in the ledger where it keeps content, and gives them to sinks that ask for content; ``true`` gives them to all sinks; ``false`` keeps neither.
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
        """Ready for one run.

        :raises ConfigError: when the skill cannot be read.
        """
        yield RubricJudging(self, self.instructions(), run.base)

    def reads(self, base: Path) -> dict[str, Path]:
        """The skill."""
        return {} if self.skill is None else {"skill": self.skill}

    def instructions(self) -> str:
        """The text of the skill; empty where there is none.

        :raises ConfigError: when it cannot be read.
        """
        try:
            text = "" if self.skill is None else read_text(self.skill)
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(Problem(f"cannot read the skill {self.skill}: {error}", path="skill")) from error
        if self.skill is not None and not text.strip():
            raise ConfigError(Problem(f"the skill {self.skill} is empty", path="skill"))
        return text

    async def judge(self, subject: Subject, children: Sequence[Verdict]) -> Judgment | Failure:
        """Judge *subject* outside of any run; paths in it are relative to the current folder."""
        return await RubricJudging(self, self.instructions(), Path()).judge(subject, children)

    @property
    def keeps_texts(self) -> bool:
        """Whether verdicts hold what the skill answered."""
        return self.keep_output

    @property
    def dimensions(self) -> tuple[Dimension, ...]:
        """Those of the rubric."""
        return self._form.dimensions

    def question(self, case: str, answer: str, reference: object) -> Question:
        """What the judge is asked about an *answer* to a *case*."""
        shown = {"CASE": case or None, "OUTPUT": answer, "REFERENCE": reference}
        sections = [section(title, text, self.max_chars) for title, text in shown.items() if text is not None]
        system = system_message(self.rubric, (), (), self._form)
        return Question(
            system,
            tuple(sections),
            closing(self._form),
            self._form.schema,
            self.max_verdict_tokens,
            limit="max_verdict_tokens",
        )

    def read(self, reply: Reply, marks: Marks, message: str) -> Opinion:
        """The verdict in *reply*."""
        names = [each.name for each in self.dimensions]
        found = find_verdict(reply.text, ("seal", *names), marks.seal, message, optional=(*self._form.keys, *REASONS))
        numbers = {each.name: number_of(found, each.name) for each in self.dimensions}
        for each in self.dimensions:
            if not each.low <= numbers[each.name][0] <= each.high:
                raise BadReply(f"{each.name!r} is no number from {each.low:g} to {each.high:g}")
        signals = reasons_of(found, self.capture_rationale)
        if any(is_coerced for _, is_coerced in numbers.values()):
            signals["coerced"] = True
        return Opinion({name: number for name, (number, _) in numbers.items()}, confidence_of(found), signals)


class RubricJudging:
    """Judges by the *options*; *skill* is the text of the skill, and paths in rows are relative to *base*."""

    needs_output = False

    def __init__(self, options: RubricJudge, skill: str, base: Path) -> None:
        self._options, self._skill, self._base = options, skill, base

    async def judge(self, subject: Subject, children: Sequence[Verdict]) -> Judgment | Failure:
        """Have the case answered, and the answer judged."""
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
        asked = await ask(options.judge_model, question, options.retries, options.read, capture=capture)
        cost = answered.cost + asked.cost
        if isinstance(asked, Failure):
            return attrs.evolve(asked, cost=cost)
        opinion = asked.value
        signals = {**opinion.signals, "dimensions": dict(opinion.dimensions), **asked.signals}
        signals |= {"output": answered.text} if options.keep_output else {}
        score = collapse(options.dimensions, opinion.dimensions)
        return Judgment(
            score,
            opinion.confidence,
            "llm",
            asked.reply.model,
            cost,
            signals,
            options.rubric,
            includes_replies=True,
        )

    def estimate(self, subject: Subject) -> Cost:
        """What the judgment may cost at most."""
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
        """The skill's answer to *case*, or the row's output where there is no skill."""
        if self._options.model is None:
            if subject.output is None:
                return Failure("missing_input", f"the {subject.kind} has no output to judge, and no skill makes one")
            return Answered(subject.text, Cost.zero())
        reply = await maybe_await(self._options.model.complete(self._request(case)))
        if isinstance(reply, Failure):
            return reply
        if normalize_stop_reason(reply.stop_reason) not in COMPLETE:
            message = f"the skill's answer is not whole (stop reason {reply.stop_reason!r:.40}; max_output_tokens)"
            return Failure("judge_output_invalid", message, cost=reply.cost)
        return Answered(reply.text, reply.cost)
