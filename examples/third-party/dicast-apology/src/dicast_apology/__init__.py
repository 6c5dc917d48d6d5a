"""A judge for dicast: does a reply apologize where an apology is due?"""

from __future__ import annotations

from collections.abc import Sequence

import attrs
from dicast import ChatModel, Failure, Judgment, Reply, Subject, Verdict, hookimpl
from dicast.judging import RULES, Form, Marks, Question, Section, ask, closing, find_verdict

__all__ = ["Fits"]

QUESTION = """You judge whether a reply to a customer apologizes exactly where an apology is due.

- 1.0: it apologizes for a fault of the company, or it does not apologize and there is no fault.
- 0.5: it apologizes vaguely, or more than the fault deserves.
- 0.0: it does not apologize for a fault, or it blames the customer."""


@attrs.frozen
class Fits:
    """Asks a model whether a reply apologizes exactly where an apology is due.

    :param model: the chat model.
    """

    name = "fits"
    accepts = ("row", "turn")
    judge_kind = "llm"

    model: ChatModel

    async def judge(self, subject: Subject, children: Sequence[Verdict] = ()) -> Judgment | Failure:
        """Ask the model about *subject*."""
        if not isinstance(subject.input, str) or not subject.input.strip():
            return Failure("missing_input", "there is no text of the customer (input)")
        form = Form()
        sections = (Section("CUSTOMER", subject.input), Section("REPLY", subject.text))
        system = f"{QUESTION}\n\n{RULES}\n\n{form.text}"
        answer = await ask(self.model, Question(system, sections, closing(form), form.schema), 1, _read)
        if isinstance(answer, Failure):
            return answer
        score, confidence = answer.value
        return Judgment(score, confidence, "llm", answer.reply.model)


def _read(reply: Reply, marks: Marks, message: str) -> tuple[float, float]:
    """Return the score and the confidence in *reply*."""
    verdict = find_verdict(reply.text, Form().keys, marks.seal, message)
    return verdict.number("score"), verdict.number("confidence")


@hookimpl
def dicast_judges() -> list[type[Fits]]:
    """Offer ``apology/fits``."""
    return [Fits]
