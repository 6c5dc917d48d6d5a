"""Questions that are answered in one token: fixed instructions and examples first, then the evidence."""

from __future__ import annotations

import math
import secrets
from collections.abc import Mapping, Sequence
from typing import Literal

import attrs

from dicast import ChatModel, ChatRequest, ConfigError, Cost, Message, Problem, Rubric, estimate
from dicast.judging import Fenced, Marks, Question

from .evidence import Evidence
from .words import TOP, bare_word

ShortForm = Literal["yes_no", "choice", "letter"]

QUESTION = "Is the output good?"
YES_NO: Mapping[str, float] = {"yes": 1.0, "no": 0.0}
_FIXED = Marks("example", "")
_FENCE_BYTES = 4  # fences are most of a short question's tokens; one of 2 ** 32 words cannot be guessed
_LONGEST_MARKS = Marks("0" * 16, "0" * 12)  # for an estimate: a digit counts as a token


def short_marks() -> Marks:
    """Return the marks of one call: a fence of 8 hex digits, half as long as that of a long question."""
    return Marks(secrets.token_hex(_FENCE_BYTES), "")


@attrs.frozen
class Shot:
    """An example: the evidence for the model, and the answering word."""

    sections: tuple[Fenced, ...]
    answer: str

    def messages(self, marks: Marks, closing: str) -> tuple[Message, Message]:
        """Return the example as a question and its answer."""
        return Message("user", _user(self.sections, marks, closing)), Message("assistant", self.answer)


@attrs.frozen
class Prompt:
    """The texts that are the same for all subjects: the *system* message, and the *closing* line of each question."""

    system: str
    closing: str


@attrs.frozen
class ShortQuestion:
    """A question about one subject, to be answered in one token.

    :param prompt: the instructions, the same for all subjects.
    :param examples: the examples of the pipeline file. The part that is the same for all subjects ends after them, and is marked for prompt caching.
    :param row_examples: the examples in the subject's row. They are fenced as data, like *evidence*.
    :param needs_media: whether a model that does not read all media is a failure.
    """

    prompt: Prompt
    examples: tuple[Shot, ...]
    row_examples: tuple[Shot, ...]
    evidence: Evidence
    needs_media: bool = False

    def request(self, marks: Marks) -> ChatRequest:
        """Return the request, fenced by *marks*."""
        sections, media = self.evidence.sections, self.evidence.media
        question = Question(
            self.prompt.system, sections, self.prompt.closing, None, 1, sealed=False, logprobs=True, media=media
        )
        request = attrs.evolve(question, needs_media=self.needs_media).request(marks)
        system, user = request.messages
        shared = [attrs.evolve(system, cache=False)]
        shared += [message for shot in self.examples for message in shot.messages(_FIXED, self.prompt.closing)]
        shared[-1] = attrs.evolve(shared[-1], cache=True)
        row_messages = [message for shot in self.row_examples for message in shot.messages(marks, self.prompt.closing)]
        return attrs.evolve(request, messages=(*shared, *row_messages, user), top_logprobs=TOP)

    def estimate(self, model: ChatModel) -> Cost:
        """Return the most that the question may cost."""
        return estimate(model, self.request(_LONGEST_MARKS))


def _user(sections: Sequence[Fenced], marks: Marks, closing: str) -> str:
    return "\n\n".join((*(section.render(marks) for section in sections), closing))


def reply_form(form: ShortForm, scores: Mapping[str, float]) -> str:
    """Return the instructions on the reply."""
    if form == "yes_no":
        return 'Reply with one word and nothing else: "yes" if the output is good by all that is said above, else "no".'
    ordered = sorted(scores.items(), key=lambda pair: -pair[1])
    lines = [f"- {word}: {score:g}" for word, score in ordered]
    return "\n".join(
        ("Reply with one of these words and nothing else; the number says how good the output is then:", *lines)
    )


def closing(rubric: Rubric, scores: Mapping[str, float]) -> str:
    """Return the last line of the question: the ``question`` of *rubric*, by default whether the output is good, and the words."""
    question = rubric.data.get("question")
    text = question.strip() if isinstance(question, str) and question.strip() else QUESTION
    return f"{text} Reply {' or '.join(scores)}."


def check_choice(form: str, choice: Mapping[str, float] | None) -> None:
    """Check the option ``choice`` of *form*.

    :raises ConfigError: if it is missing, or set for another form; if it has fewer than two words, a score outside [0, 1], a word with blanks or marks
        around it, or a word that begins another word.
    """
    if form != "choice":
        if choice is not None:
            raise ConfigError(
                Problem(f"choice is for form: choice, and form is {form}. Set form: choice", path="choice")
            )
        return
    if choice is None or len(choice) < 2:
        raise ConfigError(
            Problem(
                "form: choice needs the option choice with two words or more, such as {A: 1.0, B: 0.5, C: 0}",
                path="choice",
            )
        )
    words = {word: bare_word(word).casefold() for word in choice}
    for word, score in choice.items():
        if not words[word] or not math.isfinite(score) or not 0 <= score <= 1:
            raise ConfigError(
                Problem(f"choice: {word!r}: {score:g}: a word has letters, and a score from 0 to 1", path="choice")
            )
        if word != (bare := bare_word(word)):
            message = f"choice: {word!r} has blanks or marks around it, which are left out of tokens. Write {bare!r}"
            raise ConfigError(Problem(message, path="choice"))
        longer = next((label for label in choice if label != word and words[label].startswith(words[word])), None)
        if longer is not None:
            message = f"choice: {word!r} begins {longer!r}, so a first token could mean both. Choose words with different beginnings"
            raise ConfigError(Problem(message, path="choice"))


def check_rubric(form: str, rubric: Rubric | None, instead: str) -> None:
    """Check that *rubric* is a text that agrees with *form*; *instead* is the rubric to name in the message.

    :raises ConfigError: if its ``forms`` leave out *form*.
    """
    forms = None if rubric is None else rubric.data.get("forms")
    if rubric is not None and isinstance(forms, list | tuple) and form not in forms:
        message = f"rubric {rubric.id} is for form: {' or '.join(map(str, forms))}, and form is {form}. Take {instead}, or write a text for it"
        raise ConfigError(Problem(message, path="rubric", value=rubric.id))


def expected(shares: Mapping[str, float], scores: Mapping[str, float]) -> float:
    """Return the mean of *scores*, weighted by the probability of each word."""
    return min(1.0, max(0.0, math.fsum(share * scores[word] for word, share in shares.items())))


def certainty(shares: Mapping[str, float]) -> float:
    """Return the distance from even shares: 0 if all words are equally probable, 1 if one word has all."""
    even = 1 / len(shares)
    return min(1.0, max(0.0, (max(shares.values()) - even) / (1 - even)))
