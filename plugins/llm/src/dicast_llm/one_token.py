"""The short forms of ``llm/judge``: one token, whose probabilities are the verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Protocol

import attrs

from dicast import ChatModel, ConfigError, Cost, Failure, Problem, Reply, Subject
from dicast.judging import Dimension

from .evidence import Evidence, EvidenceKind, evidence_options
from .examples import Example, file_shots, row_shots, shot
from .short import (
    YES_NO,
    Prompt,
    ShortForm,
    ShortQuestion,
    Shot,
    certainty,
    check_choice,
    expected,
    reply_form,
    short_marks,
)
from .words import NoAnswer, Support, ask_words, no_answer

_PART = 8  # each text of an example of the row has at most an eighth of the evidence's characters


class Options(Protocol):
    """The options of ``llm/judge`` that affect a short form."""

    @property
    def form(self) -> Any: ...  # noqa: D102
    @property
    def choice(self) -> Mapping[str, float] | None: ...  # noqa: D102
    @property
    def examples(self) -> Sequence[Example] | str: ...  # noqa: D102
    @property
    def hard_constraints(self) -> Sequence[str]: ...  # noqa: D102
    @property
    def confidence(self) -> Any: ...  # noqa: D102
    @property
    def evidence(self) -> EvidenceKind: ...  # noqa: D102
    @property
    def max_evidence_chars(self) -> int: ...  # noqa: D102


@attrs.frozen
class ShortVerdict:
    """The *score*, *confidence* and *signals* of a *reply*."""

    score: float
    confidence: float
    signals: Mapping[str, object]
    reply: Reply


@attrs.frozen
class OneToken:
    """Questions of one *form*, with the score of each word.

    :param file_shots: the examples of the pipeline file.
    :param column: the column that has the examples of a row; None if the file has them.
    :param most: the limit of characters for each text of a row's example.
    :param needs_media: whether a model that does not read all media is a failure.
    """

    form: ShortForm
    scores: Mapping[str, float]
    file_shots: tuple[Shot, ...]
    column: str | None
    most: int
    needs_media: bool
    _support: Support = attrs.field(factory=Support, init=False, eq=False, repr=False)

    @property
    def reply(self) -> str:
        """The instructions on the reply."""
        return reply_form(self.form, self.scores)

    async def ask(
        self, model: ChatModel, subject: Subject, prompt: Prompt, evidence: Evidence
    ) -> ShortVerdict | Failure:
        """Ask for the token, once: a second call would find the same probabilities."""
        question = self._question(subject, prompt, evidence)
        if isinstance(question, Failure):
            return question
        words = tuple(self.scores)
        option = f"llm/judge with form: {self.form}"
        answer = await ask_words(model, question.request(short_marks()), words, self._support, option)
        if isinstance(answer, Failure):
            return answer
        try:
            shares = answer.distribution.shares()
        except NoAnswer as error:
            return no_answer(error, answer.reply.cost)
        signals = {"form": self.form, "probabilities": shares, "mass": answer.distribution.mass}
        return ShortVerdict(expected(shares, self.scores), certainty(shares), signals, answer.reply)

    def estimate(self, model: ChatModel, subject: Subject, prompt: Prompt, evidence: Evidence) -> Cost:
        """Return the most that the token may cost; zero if the question cannot be asked."""
        question = self._question(subject, prompt, evidence)
        return Cost.zero() if isinstance(question, Failure) else question.estimate(model)

    def _question(self, subject: Subject, prompt: Prompt, evidence: Evidence) -> ShortQuestion | Failure:
        shots: tuple[Shot, ...] | Failure = ()
        if self.column is not None:
            build = partial(_shot, words=tuple(self.scores), most=self.most)
            shots = row_shots(subject, self.column, Example, build)
        if isinstance(shots, Failure):
            return shots
        return ShortQuestion(prompt, self.file_shots, shots, evidence, self.needs_media)


def _shot(number: int, example: Example, words: Sequence[str], most: int | None = None) -> Shot:
    return shot(example, words, most)


def one_token(options: Options, dimensions: Sequence[Dimension]) -> OneToken | None:
    """Return the short form that *options* ask for; None for ``form: verdict``.

    :raises ConfigError: naming every option that does not agree with the form.
    """
    check_choice(options.form, options.choice)
    if options.form == "verdict":
        if options.examples:
            raise ConfigError(Problem("examples are for form: yes_no or choice, and form is verdict", path="examples"))
        return None
    problems = [
        Problem(f"{name} needs form: verdict, as form: {options.form} asks for one token", path=name)
        for name, is_set in (
            ("dimensions", bool(dimensions)),
            ("hard_constraints", bool(options.hard_constraints)),
            ("confidence", options.confidence != "stated"),
        )
        if is_set
    ]
    if problems:
        raise ConfigError(problems)
    scores = YES_NO if options.choice is None else dict(options.choice)
    column = options.examples if isinstance(options.examples, str) else None
    examples = () if isinstance(options.examples, str) else options.examples
    shots = file_shots(examples, partial(_shot, words=tuple(scores)))
    return OneToken(
        options.form,
        scores,
        shots,
        column,
        max(1, options.max_evidence_chars // _PART),
        evidence_options(options.evidence).media == "show",
    )
