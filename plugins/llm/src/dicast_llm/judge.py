"""The judge ``llm/judge``: one model, one question, one verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from math import inf
from typing import Literal

import attrs

from dicast import (
    ChatModel,
    ConfigError,
    Cost,
    Failure,
    Judge,
    Judgment,
    Problem,
    Reply,
    Rubric,
    Subject,
    Verdict,
    Within,
)
from dicast import rubric as installed
from dicast.judging import (
    CONSTRAINTS,
    REASON_FIRST,
    REASONING,
    Accepted,
    Capture,
    Dimension,
    Form,
    Marks,
    Question,
    ReplyObject,
    ask,
    body,
    closing,
    collapse,
    find_verdict,
    has_dimensions,
    is_free,
    rationale_signals,
    system_message,
    with_reply,
)
from dicast.toolkit.references import is_missing

from .choosing import Choice
from .evidence import MAX_CHARS, Evidence, EvidenceKind, Prepared, Showing, evidence_options, gather
from .examples import Example
from .likelihood import NoLikelihood, likelihood
from .material import Hints, is_turn
from .one_token import OneToken, ShortVerdict, one_token
from .reasoning import ReasonFirst, Reasoning, call_signals, reasoning_of, with_reasons
from .rubrics import chosen_dimensions, chosen_rubric
from .short import Prompt, check_rubric
from .short import closing as short_closing

_DEFAULTS = {"verdict": ("turn-llm-v1", "row-llm-v1")}
_SHORT_DEFAULTS = ("turn-short-v1", "row-short-v1")
_MOST_RETRIES = 10


@attrs.frozen
class Briefing:
    """A rubric, and the system messages for its verdicts and for reasons before them."""

    rubric: Rubric
    system: str
    first: ReasonFirst | None = None
    closing: str = ""

    @property
    def prompt(self) -> Prompt:
        """The texts of a question that is answered in one token."""
        return Prompt(self.system, self.closing)


@attrs.frozen
class Opinion:
    """The verdict of a reply; *confidence* is the confidence that the model states."""

    reply_object: ReplyObject
    score: float
    confidence: float
    rationale: str
    dimensions: Mapping[str, float]
    violated: bool


@attrs.frozen
class LlmJudge:
    """Ask a language model whether an answer, a turn or a workload is good, by a rubric.

    The judged texts are shown as data, between random fences. The verdict must bear the seal of its call, so that a verdict in the judged text does not count. Its
    numbers come before its reasons, so that no text quoted in the reasons can affect them. After a reply without a verdict the model is asked again, as a new call; after
    the last try the judgment is a failure.

    In the short forms (``form: yes_no`` and ``form: choice``) the model is asked for one token. The probabilities of its first token are the verdict, and no text is
    read. The model must report them (``logprobs`` with ``top_logprobs``).

    :param model: the chat model that is asked.
    :param form: ``verdict`` asks for numbers as JSON. ``yes_no`` asks for one word: the score is P(yes) / (P(yes) + P(no)) over all tokens that begin either word. ``choice``
        asks for one of the words of *choice*: the score is the mean of their scores, weighted by their probabilities. The confidence of both is the distance from even
        probabilities, from 0 to 1.
    :param choice: the words of ``form: choice`` with their scores from 0 to 1, such as ``{A: 1.0, B: 0.5, C: 0}``. No word may begin another word.
    :param examples: judged examples for the short forms: a list of ``{input, output, reference, answer}``, or the name of a column of the row's context that has such a list.
    :param reasoning: ``after`` asks for reasons after the numbers, ``none`` for numbers alone. ``before`` makes two calls: the first for free reasons, the second for the
        verdict, with the reasons fenced as data. By default ``after``, and ``none`` in the short forms.
    :param max_reasoning_tokens: the limit of the first reply under ``reasoning: before``.
    :param rubric: the rubric, by id or as a file; by default turn-llm-v1 for turns, tool cycles, sessions and workloads, and row-llm-v1 for other kinds; in the short forms
        turn-short-v1 and row-short-v1.
    :param system_prompt: a text in place of a rubric. Verdicts then name the rubric system-prompt, and as its version the first 12 digits of the text's SHA-256. Rules on fences
        and on the form of the reply are added to a rubric and to this text.
    :param criteria: further criteria, each in a sentence.
    :param dimensions: names with weights above 0. The model scores each dimension; the score is their weighted mean, and replaces the score that the model states;
        ``signals.dimensions`` has them. A rubric in YAML may have dimensions with scales of their own.
    :param hard_constraints: conditions that must hold, each in a sentence. If one does not hold, the score is 0, and ``signals.hard_constraint_violation`` is true.
    :param grounding_tokens: words in an answer that show that it keeps to its sources; the model sees them as hints. A workload may add words, in its context under the same
        name.
    :param forbidden_grounding: words that show that an answer was made up. They are shown and added in the same way.
    :param max_output_tokens: the limit of the reply.
    :param retries: how often the model is asked again after a reply without a verdict, 0 to 10.
    :param confidence: ``stated`` takes the confidence that the model states; ``logprob`` the probability of the tokens that spell the score (with dimensions, the geometric mean
        over their numbers), which the endpoint must report.
    :param seal: false for a model too small to copy the seal. Then the last complete verdict counts that is not part of the judged text.
    :param capture_rationale: whether the model's reasons are recorded, as ``signals.rationale_redacted``, and the reply of a failed judgment, as ``reply`` of ``eval.failed``.
        Both may quote the judged texts. ``auto`` stores them in a ledger that stores content, and sends them to sinks that ask for content; ``true`` sends them to all sinks;
        ``false`` does neither.
    :param evidence: ``full`` shows a turn, a tool cycle or a session as a conversation: the system's policy, earlier turns, its own messages, tool calls with arguments and
        results, feedback, and its ending. ``summary`` shows a turn by its prompt, its final response, and each tool's name, success and size. If a source has only hashes, turns
        are shown as a summary in any case, and tool cycles and sessions are ``missing_input``. A mapping ``{kind, reasoning, media}`` has more options: ``reasoning: true`` shows
        the reasoning of the judged model too. ``media: auto`` sends images, sounds and files to a model that reads them; any other model sees markers such as ``[image/png, 48
        kB]``, which ``signals.evidence.hidden`` counts. ``media: show`` fails the subject instead, ``media: mark`` always shows markers. ``urls: allow``, or a list of hosts,
        lets the model's endpoint fetch media by their addresses; without it an address is a marker.
    :param max_evidence_chars: the largest number of characters of evidence. Earlier turns are cut first, from the oldest on, then the longest messages, in their middle. The
        model sees a notice of each cut, and ``signals.evidence`` counts the characters.
    :param context: columns of the row's context to show, by name or dotted path. Each item of a list is shown as a separate message.
    :param max_chars: the largest number of characters of each text or message; by default only *max_evidence_chars* limits them, and 2000 in a summary.
    :param fallback: the judge that is asked instead if a cap does not allow this judge.
    :param models: other chat models by name: a workload whose ``evaluate`` block names one as its ``llm_judge_model`` is judged by it. A workload that names an unknown model,
        which is not the *model* either, is ``rubric_invalid``.
    """

    name = "judge"
    accepts = ()
    judge_kind = "llm"

    model: ChatModel
    rubric: Rubric | None = None
    system_prompt: str | None = None
    criteria: Sequence[str] = ()
    dimensions: Mapping[str, float] = attrs.field(factory=dict)
    hard_constraints: Sequence[str] = ()
    grounding_tokens: Sequence[str] = ()
    forbidden_grounding: Sequence[str] = ()
    max_output_tokens: int = attrs.field(default=256, validator=Within(1, inf, "1 or more"))
    retries: int = attrs.field(default=1, validator=Within(0, _MOST_RETRIES, f"a number from 0 to {_MOST_RETRIES}"))
    confidence: Literal["stated", "logprob"] = "stated"
    seal: bool = True
    capture_rationale: Capture = attrs.field(default="auto", metadata={"counts": False})
    evidence: EvidenceKind = "full"
    max_evidence_chars: int = attrs.field(default=MAX_CHARS, validator=Within(1, inf, "1 or more"))
    context: Sequence[str] = ()
    max_chars: int | None = attrs.field(default=None, validator=Within(1, inf, "1 or more"))
    fallback: Judge | None = None
    models: Mapping[str, ChatModel] = attrs.field(factory=dict)
    form: Literal["verdict", "yes_no", "choice"] = attrs.field(default="verdict", metadata={"later": True})
    choice: Mapping[str, float] | None = attrs.field(default=None, metadata={"later": True})
    examples: Sequence[Example] | str = attrs.field(default=(), metadata={"later": True})
    reasoning: Reasoning | None = attrs.field(default=None, metadata={"later": True})
    max_reasoning_tokens: int = attrs.field(
        default=512, validator=Within(1, inf, "1 or more"), metadata={"later": True}
    )
    _dimensions: tuple[Dimension, ...] = attrs.field(init=False, eq=False, repr=False)
    _showing: Showing = attrs.field(init=False, eq=False, repr=False)
    _prepared: Prepared[Evidence | Failure] = attrs.field(init=False, factory=Prepared, eq=False, repr=False)
    _form: Form = attrs.field(init=False, eq=False, repr=False)
    _reasoning: Reasoning = attrs.field(init=False, eq=False, repr=False)
    _short: OneToken | None = attrs.field(init=False, eq=False, repr=False)
    _turn: Briefing = attrs.field(init=False, eq=False, repr=False)
    _row: Briefing = attrs.field(init=False, eq=False, repr=False)

    def __attrs_post_init__(self) -> None:
        dimensions = chosen_dimensions(self.rubric, self.dimensions)
        object.__setattr__(self, "_dimensions", dimensions)
        hints = Hints(tuple(self.grounding_tokens), tuple(self.forbidden_grounding))
        showing = Showing(
            evidence_options(self.evidence), self.max_evidence_chars, tuple(self.context), self.max_chars, hints
        )
        object.__setattr__(self, "_showing", showing)
        object.__setattr__(self, "_reasoning", reasoning_of(self.reasoning, self.form))
        object.__setattr__(self, "_short", one_token(self, dimensions))
        form = Form(dimensions, bool(self.hard_constraints), self.seal, self._reasoning == "after")
        object.__setattr__(self, "_form", form)
        turn, row = _DEFAULTS.get(self.form, _SHORT_DEFAULTS)
        object.__setattr__(self, "_turn", self._brief(turn, is_turn=True))
        object.__setattr__(self, "_row", self._brief(row, is_turn=False))

    async def judge(self, subject: Subject, children: Sequence[Verdict] = ()) -> Judgment | Failure:
        """Ask the model until a reply has a verdict, at most 1 + *retries* times; *children* are not shown to it."""
        if self._needs_reference(subject):
            rubric = self._briefing(subject.kind).rubric.id
            message = f"rubric {rubric} compares with a reference, and {subject.kind} {subject.id} has none"
            return Failure("missing_input", message)
        model = Choice(self.model, self.models).of(subject)
        if isinstance(model, Failure):
            return model
        evidence = self._prepared.take(subject, partial(gather, subject, self._showing))
        if isinstance(evidence, Failure):
            return evidence
        reasons = await self._reasons(model, subject, evidence)
        if isinstance(reasons, Failure):
            return reasons
        answer = await self._verdict(model, subject, evidence, reasons)
        before = Cost.zero() if reasons is None else reasons.cost
        return answer if reasons is None else attrs.evolve(answer, cost=before + answer.cost)

    async def _reasons(self, model: ChatModel, subject: Subject, evidence: Evidence) -> Accepted[str] | Failure | None:
        """Ask for reasons before the verdict; None without ``reasoning: before``."""
        first = self._briefing(subject.kind).first
        return None if first is None else await first.ask(model, evidence, self.retries, self.capture_rationale)

    async def _verdict(
        self, model: ChatModel, subject: Subject, evidence: Evidence, reasons: Accepted[str] | None
    ) -> Judgment | Failure:
        """Ask for the verdict, after *reasons* if there are any. The cost is the cost of the verdict alone."""
        full_evidence = evidence if reasons is None else with_reasons(evidence, reasons.value)
        if self._short is not None:
            briefing = self._briefing(subject.kind)
            verdict = await self._short.ask(model, subject, briefing.prompt, full_evidence)
            return (
                verdict
                if isinstance(verdict, Failure)
                else self._short_judgment(verdict, briefing.rubric, evidence, reasons)
            )
        question = self._question(subject, full_evidence)
        accepted = await ask(model, question, self.retries, self._read, capture=self.capture_rationale)
        return accepted if isinstance(accepted, Failure) else self._judgment(subject, accepted, evidence, reasons)

    def show(self, subject: Subject) -> Evidence | Failure:
        """Return the evidence that the judge shows the model."""
        return gather(subject, self._showing)

    def estimate(self, subject: Subject) -> Cost:
        """Return the most that the calls of one judgment may cost; asking again is reserved when it happens."""
        model = Choice(self.model, self.models).of(subject)
        if isinstance(model, Failure) or is_free(model) or self._needs_reference(subject):
            return Cost.zero()
        evidence = self._prepared.keep(subject, partial(gather, subject, self._showing))
        shown_evidence = Evidence(()) if isinstance(evidence, Failure) else evidence
        briefing = self._briefing(subject.kind)
        before = Cost.zero()
        if briefing.first is not None:
            before, shown_evidence = (
                briefing.first.estimate(model, shown_evidence),
                briefing.first.longest(shown_evidence),
            )
        if self._short is not None:
            return before + self._short.estimate(model, subject, briefing.prompt, shown_evidence)
        return before + self._question(subject, shown_evidence).estimate(model)

    def _needs_reference(self, subject: Subject) -> bool:
        """Return True if the rubric has ``needs: [reference]`` and the subject has no reference."""
        needs = self._briefing(subject.kind).rubric.data.get("needs")
        return isinstance(needs, list | tuple) and "reference" in needs and is_missing(subject.reference)

    def _brief(self, default: str, *, is_turn: bool) -> Briefing:
        chosen = chosen_rubric(self.rubric, self.system_prompt) or installed(default)
        if chosen.data and not chosen.text.startswith("---") and not has_dimensions(chosen):
            message = f"rubric {chosen.id} has figures for a heuristic; name a rubric for a model, which is Markdown or has dimensions"
            raise ConfigError(Problem(message, path="rubric", value=chosen.id))
        if not body(chosen):
            raise ConfigError(Problem(f"rubric {chosen.id} has no text to judge by", path="rubric", value=chosen.id))
        check_rubric(self.form, chosen, default)
        has_messages = bool(self.context) or (evidence_options(self.evidence).kind == "full" and is_turn)
        text = partial(system_message, chosen, self.criteria, self.hard_constraints, self._form, messages=has_messages)
        reply = self._form.text if self._short is None else self._short.reply
        last = "" if self._short is None else short_closing(chosen, self._short.scores)
        if self._reasoning != "before":
            return Briefing(chosen, text(reply=reply), closing=last)
        first = ReasonFirst(text(reply=REASON_FIRST, scored=False), self.max_reasoning_tokens, self._needs_media)
        return Briefing(chosen, text(reply=f"{REASONING}\n\n{reply}"), first, last)

    @property
    def _needs_media(self) -> bool:
        """Return True if a model that does not read all media is a failure."""
        return evidence_options(self.evidence).media == "show"

    def rubric_for(self, kind: str) -> Rubric:
        """Return the rubric for subjects of *kind*."""
        return self._briefing(kind).rubric

    def _briefing(self, kind: str) -> Briefing:
        return self._turn if is_turn(kind) else self._row

    def _question(self, subject: Subject, evidence: Evidence) -> Question:
        return Question(
            self._briefing(subject.kind).system,
            evidence.sections,
            closing(self._form),
            self._form.schema,
            self.max_output_tokens,
            self.seal,
            self.confidence == "logprob",
            media=evidence.media,
            needs_media=self._needs_media,
        )

    def _read(self, reply: Reply, marks: Marks, message: str) -> Opinion:
        needed = [key for key in self._form.keys if key != "score" or not self._dimensions]
        reply_object = find_verdict(
            reply.text, needed, marks.seal if self.seal else None, message, optional=(*self._form.keys, "rationale")
        )
        dimensions = {
            dimension.name: reply_object.number(dimension.name, dimension.low, dimension.high)
            for dimension in self._dimensions
        }
        score = collapse(self._dimensions, dimensions) if dimensions else reply_object.number("score")
        violated = bool(self.hard_constraints) and not reply_object.flag(CONSTRAINTS)
        stated = reply_object.number("confidence")
        reasons = reply_object.text("rationale").strip() if self._form.rationale else ""
        return Opinion(reply_object, 0.0 if violated else score, stated, reasons, dimensions, violated)

    def _judgment(
        self, subject: Subject, accepted: Accepted[Opinion], evidence: Evidence, reasons: Accepted[str] | None
    ) -> Judgment | Failure:
        opinion = accepted.value
        try:
            confidence = self._confidence(accepted)
        except NoLikelihood as error:
            message = f"confidence: logprob needs the log probabilities of the reply's tokens, and {error}"
            failure = Failure("judge_output_invalid", message, cost=accepted.cost)
            return with_reply(failure, accepted.reply.text, self.capture_rationale)
        return Judgment(
            opinion.score,
            confidence,
            "llm",
            accepted.reply.model,
            accepted.cost,
            self._signals(opinion, reasons)
            | call_signals(accepted.signals, reasons)
            | {"evidence": evidence.signals(accepted.reply.media)},
            self._briefing(subject.kind).rubric,
            includes_replies=True,
        )

    def _short_judgment(
        self, verdict: ShortVerdict, rubric: Rubric, evidence: Evidence, reasons: Accepted[str] | None
    ) -> Judgment:
        signals = dict(verdict.signals)
        if reasons is not None:
            signals |= rationale_signals(reasons.value, self.capture_rationale)
        signals |= call_signals({"attempts": 1}, reasons) | {"evidence": evidence.signals(verdict.reply.media)}
        model, cost = verdict.reply.model, verdict.reply.cost
        return Judgment(verdict.score, verdict.confidence, "llm", model, cost, signals, rubric, includes_replies=True)

    def _confidence(self, accepted: Accepted[Opinion]) -> float:
        if self.confidence == "stated":
            return accepted.value.confidence
        return likelihood(
            accepted.reply,
            accepted.value.reply_object,
            tuple(dimension.name for dimension in self._dimensions) or ("score",),
        )

    def _signals(self, opinion: Opinion, reasons: Accepted[str] | None) -> dict[str, object]:
        signals = dict[str, object]()
        if self._reasoning != "none":
            text = opinion.rationale if reasons is None else reasons.value
            signals |= rationale_signals(text, self.capture_rationale)
        if opinion.dimensions:
            signals["dimensions"] = opinion.dimensions
        if opinion.violated:
            signals["hard_constraint_violation"] = True
        return signals
