"""The judge ``llm/judge``: one model, one question, one verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from hashlib import sha256
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
    Accepted,
    Capture,
    Dimension,
    Form,
    Found,
    Marks,
    Question,
    ask,
    body,
    closing,
    collapse,
    find_verdict,
    has_dimensions,
    is_free,
    of_option,
    of_rubric,
    rationale_signals,
    system_message,
    with_reply,
)
from dicast.toolkit.references import is_missing

from .choosing import Choice
from .evidence import MAX_CHARS, Evidence, EvidenceKind, Prepared, Showing, evidence_options, gather
from .likelihood import NoLikelihood, likelihood
from .material import Hints, is_turn

_TURN, _ROW = "turn-llm-v1", "row-llm-v1"
_VERSION_DIGITS = 12
_MOST_RETRIES = 10


@attrs.frozen
class Briefing:
    """A rubric, and the system message that was made of it."""

    rubric: Rubric
    system: str


@attrs.frozen
class Opinion:
    """What a verdict says; *confidence* is the model's own word for it."""

    found: Found
    score: float
    confidence: float
    rationale: str
    dimensions: Mapping[str, float]
    violated: bool


@attrs.frozen
class LlmJudge:
    """Ask a language model whether an answer, a turn or a workload is good, by a rubric.

    What is judged is shown as data, between random fences; the verdict must bear the seal of its call, so that no verdict in
    the judged text is taken for it. Its numbers stand before its reasons, so that no text quoted in these can reach them. A
    reply that is no verdict is asked for again, as a new call; then it is a failure.

    :param model: the chat model that is asked.
    :param rubric: what to judge by, by id or as a file; by default turn-llm-v1 for turns, tool cycles, sessions and workloads,
        and row-llm-v1 for anything else.
    :param system_prompt: a text to judge by in place of a rubric. Verdicts then name the rubric system-prompt, and as its
        version the first 12 digits of the text's SHA-256. What fences are and how to reply is added to either.
    :param criteria: what to judge by besides, each in a sentence.
    :param dimensions: names with weights above 0. The model scores each one; the score is their weighted mean, whatever score
        the model gave itself; ``signals.dimensions`` has them. A rubric in YAML may have dimensions on scales of their own.
    :param hard_constraints: what must hold, each in a sentence. Where one does not, the score is 0, and
        ``signals.hard_constraint_violation`` is true.
    :param grounding_tokens: words that an answer uses which keeps to its sources; the model sees them as hints. A workload may
        bring more, in its context under the same name.
    :param forbidden_grounding: words that show that an answer was made up; shown and brought likewise.
    :param max_output_tokens: how long the reply may be.
    :param retries: how often the model is asked again after a reply that is no verdict, 0 to 10.
    :param confidence: ``stated`` takes the model's word for it; ``logprob`` the probability of the tokens that spell the score
        (with dimensions, the geometric mean over their numbers), which the endpoint must tell.
    :param seal: false for a model too small to copy the seal. Then the last whole verdict counts that does not occur in the
        judged text.
    :param capture_rationale: whether the model's reasons are recorded, as ``signals.rationale_redacted``, and the reply of a failed judgment, as ``reply`` of ``eval.failed``. Both may quote what was
        judged. ``auto`` keeps them in the ledger where it keeps content, and gives them to sinks that ask for content; ``true`` gives them to all sinks; ``false`` keeps neither.
    :param evidence: ``full`` shows a turn, a tool cycle or a session as a conversation: the system's policy, earlier turns, its
        own messages, tool calls with arguments and results, feedback, and how it ended. ``summary`` shows turns as document 001
        does: prompt, final response, and each tool's name, success and size. Where a source has hashes alone, turns are
        shown so in any case, and tool cycles and sessions are ``missing_input``. A mapping ``{kind, reasoning, media}`` says more:
        ``reasoning: true`` shows the reasoning of the judged model too. ``media: auto`` sends images, sounds and files to a model that reads
        them; any other sees markers such as ``[image/png, 48 kB]``, which ``signals.evidence.hidden`` counts. ``media: show`` fails the
        subject instead, ``media: mark`` always shows markers. ``urls: allow``, or a list of hosts, lets the model's endpoint fetch media by
        their addresses; without it an address is a marker.
    :param max_evidence_chars: how many characters of evidence are shown. Earlier turns are cut first, from the oldest on, then
        the longest messages, in their middle; the model is told what is cut, and ``signals.evidence`` says how much.
    :param context: columns of the row's context to show, by name or dotted path. Of a list, each item is shown as a message of its own.
    :param max_chars: how many characters of each text or message are shown at most; by default there is no limit but
        *max_evidence_chars*, and 2000 in a summary.
    :param fallback: the judge that is asked instead where a cap leaves no room for this one.
    :param models: other chat models by name: a workload whose ``evaluate`` block has one as its ``llm_judge_model`` is judged by
        it. A workload that names one which is neither here nor the *model* itself is ``rubric_invalid``.
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
    _dimensions: tuple[Dimension, ...] = attrs.field(init=False, eq=False, repr=False)
    _showing: Showing = attrs.field(init=False, eq=False, repr=False)
    _prepared: Prepared[Evidence | Failure] = attrs.field(init=False, factory=Prepared, eq=False, repr=False)
    _form: Form = attrs.field(init=False, eq=False, repr=False)
    _turn: Briefing = attrs.field(init=False, eq=False, repr=False)
    _row: Briefing = attrs.field(init=False, eq=False, repr=False)

    def __attrs_post_init__(self) -> None:
        dimensions = _dimensions(self.rubric, self.dimensions)
        object.__setattr__(self, "_dimensions", dimensions)
        hints = Hints(tuple(self.grounding_tokens), tuple(self.forbidden_grounding))
        showing = Showing(
            evidence_options(self.evidence), self.max_evidence_chars, tuple(self.context), self.max_chars, hints
        )
        object.__setattr__(self, "_showing", showing)
        object.__setattr__(self, "_form", Form(dimensions, bool(self.hard_constraints), self.seal))
        object.__setattr__(self, "_turn", self._brief(_TURN))
        object.__setattr__(self, "_row", self._brief(_ROW))

    async def judge(self, subject: Subject, children: Sequence[Verdict]) -> Judgment | Failure:
        """Ask the model, again as long as its reply is no verdict; *children* are not shown to it."""
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
        question = self._question(subject, evidence)
        asked = await ask(model, question, self.retries, self._read, capture=self.capture_rationale)
        return asked if isinstance(asked, Failure) else self._judgment(subject, asked, evidence)

    def shown(self, subject: Subject) -> Evidence | Failure:
        """Return the evidence that the judge shows the model."""
        return gather(subject, self._showing)

    def estimate(self, subject: Subject) -> Cost:
        """What one ask may cost at most; asking again is reserved when it happens."""
        model = Choice(self.model, self.models).of(subject)
        if isinstance(model, Failure) or is_free(model) or self._needs_reference(subject):
            return Cost.zero()
        evidence = self._prepared.keep(subject, partial(gather, subject, self._showing))
        shown = Evidence(()) if isinstance(evidence, Failure) else evidence
        return self._question(subject, shown).estimate(model)

    def _needs_reference(self, subject: Subject) -> bool:
        """Whether the rubric says ``needs: [reference]``, and the subject has none."""
        needs = self._briefing(subject.kind).rubric.data.get("needs")
        return isinstance(needs, list | tuple) and "reference" in needs and is_missing(subject.reference)

    def _brief(self, default: str) -> Briefing:
        chosen = _chosen(self.rubric, self.system_prompt) or installed(default)
        if chosen.data and not chosen.text.startswith("---") and not has_dimensions(chosen):
            message = f"rubric {chosen.id} is figures in YAML, for a heuristic; one for a model is Markdown, or has dimensions"
            raise ConfigError(Problem(message, path="rubric", value=chosen.id))
        has_messages = bool(self.context) or (evidence_options(self.evidence).kind == "full" and default == _TURN)
        if not body(chosen):
            raise ConfigError(Problem(f"rubric {chosen.id} has no text to judge by", path="rubric", value=chosen.id))
        return Briefing(
            chosen, system_message(chosen, self.criteria, self.hard_constraints, self._form, messages=has_messages)
        )

    def rubric_for(self, kind: str) -> Rubric:
        """The rubric that subjects of *kind* are judged by."""
        return self._briefing(kind).rubric

    def _briefing(self, kind: str) -> Briefing:
        return self._turn if is_turn(kind) else self._row

    def _question(self, subject: Subject, shown: Evidence) -> Question:
        return Question(
            self._briefing(subject.kind).system,
            shown.sections,
            closing(self._form),
            self._form.schema,
            self.max_output_tokens,
            self.seal,
            self.confidence == "logprob",
            media=shown.media,
            needs_media=self._showing.evidence.media == "show",
        )

    def _read(self, reply: Reply, marks: Marks, message: str) -> Opinion:
        needed = [key for key in self._form.keys if key != "score" or not self._dimensions]
        found = find_verdict(reply.text, needed, marks.seal if self.seal else None, message, optional=self._form.keys)
        dimensions = {each.name: found.number(each.name, each.low, each.high) for each in self._dimensions}
        score = collapse(self._dimensions, dimensions) if dimensions else found.number("score")
        violated = bool(self.hard_constraints) and not found.flag(CONSTRAINTS)
        stated, reasons = found.number("confidence"), found.text("rationale").strip()
        return Opinion(found, 0.0 if violated else score, stated, reasons, dimensions, violated)

    def _judgment(self, subject: Subject, asked: Accepted[Opinion], evidence: Evidence) -> Judgment | Failure:
        opinion = asked.value
        try:
            confidence = self._confidence(asked)
        except NoLikelihood as error:
            message = f"confidence: logprob needs the log probabilities of the reply's tokens, and {error}"
            failure = Failure("judge_output_invalid", message, cost=asked.cost)
            return with_reply(failure, asked.reply.text, self.capture_rationale)
        return Judgment(
            opinion.score,
            confidence,
            "llm",
            asked.reply.model,
            asked.cost,
            self._signals(opinion) | {**asked.signals, "evidence": evidence.signals(asked.reply.media)},
            self._briefing(subject.kind).rubric,
            includes_replies=True,
        )

    def _confidence(self, asked: Accepted[Opinion]) -> float:
        if self.confidence == "stated":
            return asked.value.confidence
        return likelihood(asked.reply, asked.value.found, tuple(each.name for each in self._dimensions) or ("score",))

    def _signals(self, opinion: Opinion) -> dict[str, object]:
        signals = rationale_signals(opinion.rationale, self.capture_rationale)
        if opinion.dimensions:
            signals["dimensions"] = opinion.dimensions
        if opinion.violated:
            signals["hard_constraint_violation"] = True
        return signals


def _chosen(given: Rubric | None, system_prompt: str | None) -> Rubric | None:
    """The rubric that the options name, if they do."""
    if system_prompt is None:
        return given
    if given is not None:
        raise ConfigError(Problem("give a rubric or a system_prompt, not both", path="system_prompt"))
    if not system_prompt.strip():
        raise ConfigError(Problem("system_prompt is empty; leave it out to judge by a rubric", path="system_prompt"))
    return Rubric("system-prompt", sha256(system_prompt.encode()).hexdigest()[:_VERSION_DIGITS], system_prompt)


def _dimensions(rubric: Rubric | None, weights: Mapping[str, float]) -> tuple[Dimension, ...]:
    """The dimensions of the *rubric* where it has some, else those of the option."""
    if rubric is None or not has_dimensions(rubric):
        return of_option(weights)
    if weights:
        message = f"rubric {rubric.id} has dimensions of its own; leave out the option, or take another rubric"
        raise ConfigError(Problem(message, path="dimensions"))
    return of_rubric(rubric)
