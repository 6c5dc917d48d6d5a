"""The short form of ``llm/pairwise``: one letter in each order, combined so that a preference for a letter cancels."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial

import attrs

from dicast import ChatModel, ConfigError, Cost, Failure, Problem, Subject

from .evidence import Evidence
from .examples import PairExample, file_shots, pair_shot, row_shots
from .short import Prompt, ShortQuestion, Shot, short_marks
from .words import Answer, NoAnswer, Support, ask_words, no_answer

LETTERS = ("A", "B")
TITLES = ("OUTPUT A", "OUTPUT B")
REPLY = "Reply with one letter and nothing else: A if OUTPUT A is better, B if OUTPUT B is better."
_CLOSING = "Which output is better? Reply A or B."
_PART = 8  # each text of an example of the row has at most an eighth of the evidence's characters


@attrs.frozen
class Order:
    """The answer in one order: the log-odds of letter A, which is the output that is shown first."""

    log_odds: float
    answer: Answer


@attrs.frozen
class Letters:
    """Questions for a letter.

    :param file_shots: the examples of the pipeline file.
    :param column: the column that has the examples of a row; None if the file has them.
    :param most: the limit of characters for each text of a row's example.
    :param needs_media: whether a model that does not read all media is a failure.
    """

    file_shots: tuple[Shot, ...]
    column: str | None
    most: int
    needs_media: bool
    _support: Support = attrs.field(factory=Support, init=False, eq=False, repr=False)

    def question(self, subject: Subject, system: str, evidence: Evidence) -> ShortQuestion | Failure:
        """Return the question about *evidence*; a Failure if the row's own examples cannot be shown."""
        shots: tuple[Shot, ...] | Failure = ()
        if self.column is not None:
            shots = row_shots(subject, self.column, PairExample, partial(pair_shot, most=self.most))
        return (
            shots
            if isinstance(shots, Failure)
            else ShortQuestion(Prompt(system, _CLOSING), self.file_shots, shots, evidence, self.needs_media)
        )

    async def ask(self, model: ChatModel, subject: Subject, system: str, evidence: Evidence) -> Order | Failure:
        """Ask for the letter in one order."""
        question = self.question(subject, system, evidence)
        if isinstance(question, Failure):
            return question
        request = question.request(short_marks())
        answer = await ask_words(model, request, LETTERS, self._support, "llm/pairwise with form: letter")
        if isinstance(answer, Failure):
            return answer
        try:
            return Order(answer.distribution.log_odds(*LETTERS), answer)
        except NoAnswer as error:
            return no_answer(error, answer.reply.cost)

    def estimate(self, model: ChatModel, subject: Subject, system: str, evidence: Evidence) -> Cost:
        """Return the most that one order may cost."""
        question = self.question(subject, system, evidence)
        return Cost.zero() if isinstance(question, Failure) else question.estimate(model)


def letters(
    form: str, examples: Sequence[PairExample] | str, most: int, *, has_labels: bool, needs_media: bool
) -> Letters | None:
    """Return the short form that the options ask for; None for ``form: verdict``.

    :raises ConfigError: if ``examples`` or ``labels`` do not agree with the form.
    """
    if form == "verdict":
        if examples:
            raise ConfigError(Problem("examples are for form: letter, and form is verdict", path="examples"))
        return None
    if has_labels:
        raise ConfigError(
            Problem("labels are for form: verdict; form: letter names the outputs A and B", path="labels")
        )
    column = examples if isinstance(examples, str) else None
    shots = file_shots(() if isinstance(examples, str) else examples, pair_shot)
    return Letters(shots, column, max(1, most // _PART), needs_media)


def preference(first: float, second: float) -> float:
    """Return the probability that the output is better, from the log-odds of letter A in both orders.

    The output has letter A in the *first* order and letter B in the *second*. Half of the difference is its log-odds: a preference for
    a letter adds the same to both, and cancels.
    """
    half = (first - second) / 2
    return 1 / (1 + math.exp(-half)) if half >= 0 else math.exp(half) / (1 + math.exp(half))


def letter_signals(first: float, second: float) -> Mapping[str, object]:
    """Return the signals of both orders: log-odds of letter A, the letter's own part in it, winners, and whether they differ."""
    winners = [_winner(first, "output", "opponent"), _winner(second, "opponent", "output")]
    return {
        "form": "letter",
        "log_odds": [first, second],
        "letter_bias": (first + second) / 2,
        "winners": winners,
        "flipped": len(set(winners)) > 1,
    }


def _winner(log_odds: float, at_a: str, at_b: str) -> str:
    return "tie" if log_odds == 0 else at_a if log_odds > 0 else at_b
