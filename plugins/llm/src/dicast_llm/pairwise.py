"""The judge ``llm/pairwise``: which of two outputs is better, asked in both orders."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
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
    Rubric,
    RunContext,
    Subject,
    Verdict,
    Within,
    judging,
)
from dicast.judging import (
    REASON_FIRST,
    REASONING,
    Accepted,
    Capture,
    Question,
    ask,
    rationale_signals,
)

from .ballots import Ballot, Vote, cost_of, outcome, read_json, read_labels
from .ballots import schema as schema_of
from .evidence import MAX_CHARS, Compared, Evidence, EvidenceKind, Prepared, Showing, evidence_options
from .evidence import gather as evidence_of
from .examples import PairExample
from .labels import Labels, Side
from .letters import REPLY, TITLES, Letters, Order, letters
from .opponent import EarlierRun, reference
from .reasoning import ReasonFirst, Reasoning, reasoning_of, with_reasons
from .together import gather

_RUBRIC = Rubric(
    "pairwise",
    "1.0.0",
    """\
You compare two outputs that answer the same input, and say which one is better: which one does what the input asks for, is \
right, and holds nothing that is wrong or was not asked for. Length, style and the order in which the two are shown count for \
nothing. Two outputs that are equally good are a tie.""",
)


_TITLES = ("FIRST OUTPUT", "SECOND OUTPUT")
_PLACES: tuple[Side, Side] = ("first", "second")  # the place of the output in the first and in the second question
_FORM = """\
Reply with one JSON object and nothing else: {{{seal}"winner": "first", "second" or "tie", \
"confidence": how sure you are, from 0 to 1{rationale}}}, with these keys in this order and no others."""
_RATIONALE = ', "rationale": "why, in one sentence"'
_SEAL = '"seal": "WORD", '
_WORD = ' WORD is the word in the line "seal: WORD" that stands in the message outside of all fences.'
_LABELLED = """\
The outputs are called {0} and {1}. Say in one or two sentences why one is better, then end with a line that holds only {0} or \
only {1}."""


_NO_OUTPUT = {
    "session": "a session is a conversation; let llm/pairwise compare its turns, or llm/judge judge it whole",
    "tool_cycle": "the trace does not say what the call returned; let llm/pairwise compare turns",
}
"""Why subjects of a kind may have no output."""


@attrs.frozen
class Pairwise:
    """Ask a model which of two outputs is better, in both orders, so that a preference for a place cancels out.

    The score is 1.0 if the subject's output wins in both orders, 0.0 if it loses both, else 0.5. ``signals.winners`` has
    the winner of each order (``output``, ``opponent`` or ``tie``), first of the order that begins with the output.
    ``signals.flipped`` is true if they differ, ``signals.opponent_run`` is the run of the opponents. The confidence is the mean of the two stated confidences (1.0 with *labels*, which
    have none), halved by a flip.

    With ``form: letter`` each order asks for one token, A or B, and no text is read. The score is the probability that the output is
    better: the logistic function of half the difference of both orders' log-odds, in which a preference for a letter cancels. The
    confidence is the distance of the score from even, from 0 to 1. ``signals.log_odds`` has both log-odds of letter A.

    :param model: the chat model to ask; every subject takes two calls, at the same time, and four with ``reasoning: before``.
    :param form: ``verdict`` asks for a winner as JSON, ``letter`` for one token. The model must report the probabilities of tokens
        then (``logprobs`` with ``top_logprobs``).
    :param examples: judged examples for ``form: letter``: a list of ``{input, better, worse}``, or the name of a column of the row's
        context that has such a list. The better output is shown first in every second example.
    :param reasoning: ``after`` asks for reasons after the winner, ``none`` for the winner alone. ``before`` makes two calls for each order:
        the first for free reasons, the second for the winner, with the reasons fenced as data. By default ``after``, and ``none`` with ``form: letter``.
    :param max_reasoning_tokens: the limit of the first reply under ``reasoning: before``.
    :param opponent: the other output: ``reference``, the subject's reference; the id of a run in the ledger, whose
        output for the subject of the same kind and id is used; or ``last``, the newest run before this one. With ``last``
        the version of the rubric ends in ``+`` and that run's id, so verdicts against different runs differ in their
        fingerprint.
    :param labels: two texts that name the first and the second output in the reply, which is plain text then, without JSON.
        A last line with a label alone counts, else ``LABEL is better``, else another such line, else the only label that is
        named. There is no seal: quoted texts and sentences are left out before reading, but a model that paraphrases them
        may be misled. Choose labels only for models that cannot write JSON.
    :param criteria: criteria for the better output, one a line.
    :param system_prompt: a text in place of the built-in instructions on how to compare; the rules on fences and on the form of
        the reply are still added to it.
    :param evidence: ``full`` shows the part of a conversation before a turn's or a tool call's output, as with ``llm/judge``;
        ``summary`` its input alone. A mapping ``{kind, reasoning, media}`` has more options, as with ``llm/judge``.
    :param max_evidence_chars: the largest number of characters of the evidence and the two outputs; earlier turns are cut first.
    :param context: columns of the row's context to show, by name or dotted path. Each item of a list is shown as a separate message.
    :param max_output_tokens: the limit of a reply.
    :param retries: how often each order is asked again after a reply without a verdict.
    :param seal: ask for a random word in the verdict, so that no judged text can pass for a verdict; false for models too small to
        copy it.
    :param capture_rationale: whether the reasons of both orders are recorded, as ``signals.rationale_redacted``, and the reply of a failed judgment, as ``reply`` of ``eval.failed``. Both may quote the judged
        texts. ``auto`` stores them in a ledger that stores content, and sends them to sinks that ask for content; ``true`` sends them to all sinks; ``false`` does neither.
    :param fallback: the judge that is asked if a cap does not allow this judge.
    """

    accepts = ()
    judge_kind = "llm"

    model: ChatModel
    opponent: str = "reference"
    labels: tuple[str, ...] | None = None
    criteria: tuple[str, ...] = ()
    system_prompt: str | None = None
    max_output_tokens: int = attrs.field(default=256, validator=Within(1, inf, "1 or more"))
    retries: int = attrs.field(default=1, validator=Within(0, inf, "0 or more"))
    seal: bool = True
    capture_rationale: Capture = attrs.field(default="auto", metadata={"counts": False})
    evidence: EvidenceKind = "full"
    max_evidence_chars: int = attrs.field(default=MAX_CHARS, validator=Within(1, inf, "1 or more"))
    context: tuple[str, ...] = ()
    fallback: Judge | None = None
    form: Literal["verdict", "letter"] = attrs.field(default="verdict", metadata={"later": True})
    examples: tuple[PairExample, ...] | str = attrs.field(default=(), metadata={"later": True})
    reasoning: Reasoning | None = attrs.field(default=None, metadata={"later": True})
    max_reasoning_tokens: int = attrs.field(
        default=512, validator=Within(1, inf, "1 or more"), metadata={"later": True}
    )
    _showing: Showing = attrs.field(init=False, eq=False, repr=False)
    _prepared: Prepared[list[Evidence | Failure]] = attrs.field(init=False, factory=Prepared, eq=False, repr=False)
    _rubric: Rubric = attrs.field(init=False, eq=False, repr=False)
    _labels: Labels | None = attrs.field(init=False, eq=False, repr=False)
    _letters: Letters | None = attrs.field(init=False, eq=False, repr=False)
    _reasoning: Reasoning = attrs.field(init=False, eq=False, repr=False)
    _system: str = attrs.field(init=False, eq=False, repr=False)
    _first: ReasonFirst | None = attrs.field(init=False, default=None, eq=False, repr=False)
    _earlier: EarlierRun | None = attrs.field(init=False, default=None, eq=False, repr=False)

    def __attrs_post_init__(self) -> None:
        if self.labels is not None and len(self.labels) != 2:
            raise ConfigError(f"labels are two texts, for the first and the second output, not {len(self.labels)}")
        object.__setattr__(
            self, "_showing", Showing(evidence_options(self.evidence), self.max_evidence_chars, self.context)
        )
        prompt = self.system_prompt
        version = "" if prompt is None else sha256(prompt.encode()).hexdigest()[:12]
        rubric = _RUBRIC if prompt is None else Rubric("system-prompt", version, prompt)
        object.__setattr__(self, "_rubric", rubric)
        object.__setattr__(self, "_labels", self.labels and Labels(*self.labels))
        object.__setattr__(self, "_reasoning", reasoning_of(self.reasoning, self.form, plain=bool(self.labels)))
        short = letters(
            self.form,
            self.examples,
            self.max_evidence_chars,
            has_labels=bool(self.labels),
            needs_media=self._needs_media,
        )
        object.__setattr__(self, "_letters", short)
        form = self._reply_form()
        if self._reasoning == "before":
            first = ReasonFirst(
                self._instructions(rubric.text, REASON_FIRST), self.max_reasoning_tokens, self._needs_media
            )
            object.__setattr__(self, "_first", first)
            form = f"{REASONING}\n\n{form}"
        object.__setattr__(self, "_system", self._instructions(rubric.text, form))

    @asynccontextmanager
    async def open(self, run: RunContext) -> AsyncIterator[Pairwise]:
        """Yield the live judge, with the run whose outputs are the opponents unless the opponent is the reference.

        :raises ConfigError: if there is no such run.
        """
        if self.opponent == "reference":
            yield self
            return
        live = attrs.evolve(self)
        with EarlierRun.find(self.opponent, run) as earlier:
            object.__setattr__(live, "_earlier", earlier)
            if self.opponent == "last":  # the run differs each time, so the options do not identify the comparison
                version = f"{self._rubric.version}+{earlier.run_id}"
                object.__setattr__(live, "_rubric", attrs.evolve(self._rubric, version=version))
            yield live

    def estimate(self, subject: Subject) -> Cost:
        """Return the largest cost of both orders, each asked once."""
        if judging.is_free(self.model) or isinstance(opponent := self._opponent(subject), Failure):
            return Cost.zero()
        both_evidence = self._prepared.keep(subject, partial(self._both_evidence, subject, opponent))
        sides = [Evidence(()) if isinstance(evidence, Failure) else evidence for evidence in both_evidence]
        return judging.total([self._estimate(subject, evidence) for evidence in sides])

    def _estimate(self, subject: Subject, evidence: Evidence) -> Cost:
        before = Cost.zero()
        if self._first is not None:
            before, evidence = self._first.estimate(self.model, evidence), self._first.longest(evidence)
        if self._letters is not None:
            return before + self._letters.estimate(self.model, subject, self._system, evidence)
        return before + self._question(evidence).estimate(self.model)

    def show(self, subject: Subject) -> Evidence | Failure:
        """Return the evidence of the first order; a Failure where the opponent is the output of another run."""
        if self.opponent != "reference":
            return Failure("missing_input", "the opponent is the output of another run")
        opponent = reference(subject)
        return opponent if isinstance(opponent, Failure) else self._evidence(subject, opponent, "first")

    def rubric_for(self, kind: str) -> Rubric:
        """Return the rubric, which is the same for subjects of any *kind*."""
        return self._rubric

    async def judge(self, subject: Subject, children: Sequence[Verdict] = ()) -> Judgment | Failure:
        """Ask in both orders; return a Failure if either order fails."""
        opponent = self._opponent(subject)
        if isinstance(opponent, Failure):
            return opponent
        both_evidence = self._prepared.take(subject, partial(self._both_evidence, subject, opponent))
        if isinstance(both_evidence[0], Failure):
            return both_evidence[0]
        good = [pair for pair in both_evidence if isinstance(pair, Evidence)]
        answers = await gather(*(self._ask(subject, *pair) for pair in zip(good, _PLACES, strict=True)))
        cost = judging.total([answer.cost for answer in answers])
        for answer in answers:
            if isinstance(answer, Failure):
                return attrs.evolve(answer, cost=cost)
        return self._judgment([answer for answer in answers if isinstance(answer, Vote)], cost, good[0])

    async def _ask(self, subject: Subject, evidence: Evidence, place: Side) -> Vote | Failure:
        """Ask in one order: with ``reasoning: before`` for reasons first, then for the verdict."""
        if self._first is None:
            answer = await self._verdict(subject, evidence, evidence.texts, place)
            return answer if isinstance(answer, Failure) else Vote(answer, cost_of(answer), None)
        reasons = await self._first.ask(self.model, evidence, self.retries, self.capture_rationale)
        if isinstance(reasons, Failure):
            return reasons
        answer = await self._verdict(subject, with_reasons(evidence, reasons.value), evidence.texts, place)
        if isinstance(answer, Failure):
            return attrs.evolve(answer, cost=reasons.cost + answer.cost)
        return Vote(answer, reasons.cost + cost_of(answer), reasons)

    async def _verdict(
        self, subject: Subject, evidence: Evidence, texts: Sequence[str], place: Side
    ) -> Accepted[Ballot] | Order | Failure:
        if self._letters is not None:
            return await self._letters.ask(self.model, subject, self._system, evidence)
        read = (
            partial(read_labels, self._labels, texts, place)
            if self._labels
            else partial(read_json, place, sealed=self.seal, rationale=self._reasoning == "after")
        )
        return await ask(self.model, self._question(evidence), self.retries, read, capture=self.capture_rationale)

    def _both_evidence(self, subject: Subject, opponent: object) -> list[Evidence | Failure]:
        return [self._evidence(subject, opponent, at) for at in _PLACES]

    def _evidence(self, subject: Subject, opponent: object, place: Side) -> Evidence | Failure:
        """Return the evidence with the output in *place*, and the opponent in the other place."""
        first, second = (subject.output, opponent) if place == "first" else (opponent, subject.output)
        first_title, other = TITLES if self._letters is not None else self.labels or _TITLES
        subject_title = first_title if place == "first" else other
        compared = Compared(((first_title, first), (other, second)), subject_title, self.opponent != "reference")
        return evidence_of(subject, self._showing, compared)

    def _question(self, evidence: Evidence) -> Question:
        schema = None if self.labels else schema_of(sealed=self.seal, rationale=self._reasoning == "after")
        return Question(
            self._system,
            evidence.sections,
            "Which output is better?",
            schema,
            self.max_output_tokens,
            sealed=self.seal and self.labels is None,
            media=evidence.media,
            needs_media=self._needs_media,
        )

    @property
    def _needs_media(self) -> bool:
        """Return True if a model that does not read all media is a failure."""
        return evidence_options(self.evidence).media == "show"

    def _opponent(self, subject: Subject) -> object:
        if subject.output is None and (why := _NO_OUTPUT.get(subject.kind)) is not None:
            return Failure("missing_input", f"{subject.kind} {subject.id} has no output to compare: {why}")
        if self.opponent == "reference":
            return reference(subject)
        if self._earlier is None:
            return subject.output  # estimates before the run; the output stands in for the opponent's length
        return self._earlier.output(subject)

    def _reply_form(self) -> str:
        """Return the instructions on the reply with the verdict."""
        if self._letters is not None:
            return REPLY
        if self.labels:
            return _LABELLED.format(*self.labels)
        rationale = _RATIONALE if self._reasoning == "after" else ""
        form = _FORM.format(seal=_SEAL if self.seal else "", rationale=rationale)
        return form + _WORD if self.seal else form

    def _instructions(self, how: str, form: str) -> str:
        """Return the system message, which is the same for all subjects."""
        criteria = "What makes an output better:\n" + "\n".join(f"- {criterion}" for criterion in self.criteria)
        rules = (
            f"{judging.RULES}\n\n{judging.MESSAGES}"
            if evidence_options(self.evidence).kind == "full"
            else judging.RULES
        )
        return "\n\n".join((how, criteria, rules, form) if self.criteria else (how, rules, form))

    def _judgment(self, votes: Sequence[Vote], cost: Cost, evidence: Evidence) -> Judgment:
        score, confidence, signals = outcome(votes)
        if self._reasoning != "none":
            rationale = "\n\n".join(vote.rationale for vote in votes).strip()
            signals |= rationale_signals(rationale, self.capture_rationale)
        signals |= {name: value for vote in votes for name, value in vote.signals.items()}
        signals |= {
            "attempts": sum(vote.attempts for vote in votes),
            "evidence": evidence.signals(votes[0].reply.media),
        }
        if self._earlier is not None:
            signals["opponent_run"] = self._earlier.run_id
        model = votes[0].reply.model
        return Judgment(score, confidence, "llm", model, cost, signals, self._rubric, includes_replies=True)
