"""The comparison of the output with the reference."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Literal, get_args

import attrs

from dicast import ConfigError, Failure, Judge, Problem, Score, Subject, nearest
from dicast.toolkit.json_values import check_field
from dicast.toolkit.references import ReferenceList, References

from .sides import Sides, compare_sides, sides, text_sides
from .texts import compare_exactly, compare_words
from .tokens import PYTHON

Strictness = Literal["exact", "normalized_whitespace", "ast_equivalent", "semantic"]
Written = Literal[
    "exact",
    "normalized_whitespace",
    "ast_equivalent",
    "semantic",
    "Exact",
    "NormalizedWhitespace",
    "AstEquivalent",
    "Semantic",
]
_ALIASES = {
    "Exact": "exact",
    "NormalizedWhitespace": "normalized_whitespace",
    "AstEquivalent": "ast_equivalent",
    "Semantic": "semantic",
}


def _strictness(written: str) -> str:
    return _ALIASES.get(written, written)


def _check_language(_: object, __: object, language: str) -> None:
    if language != PYTHON:
        from .grammar import check_language  # few comparisons are of code

        check_language(language)


@attrs.frozen
class Match:
    """1 if the output equals the reference; less, down to 0, by the share that they have in common.

    Under ``exact`` and ``normalized_whitespace`` objects and lists are compared as JSON values. If only one of output and
    reference is text, the text is read as JSON. For the credit, values are compared as JSON text with sorted keys.

    :param strictness: ``exact``: 1 or 0. ``normalized_whitespace``: 1 if the words are equal, white space aside, else
        2·L/(n+m) of their n and m words, where L is the length of the longest common subsequence. ``ast_equivalent``: 1 if
        both are code with the same syntax tree, with any comments, layout, quotes and redundant parentheses, else 0; an
        output that does not parse is 0, a reference that does not parse is a Failure. ``semantic``: the lower of two scores of the
        ``judge``, which is asked about the output with this reference, and about the reference with the output as its
        reference; if the words are equal it is not asked. ``Exact``, ``NormalizedWhitespace``, ``AstEquivalent`` and ``Semantic``
        are other names of these.
    :param language: the language of the code under ``ast_equivalent``: ``python``, by the running Python, or any language that
        tree-sitter-language-pack has a grammar for (``javascript``, ``rust``, …; install ``dicast[grammars]``).
    :param judge: the judge that is asked under ``semantic``: any judge of two texts. State in its criteria that output and
        reference must have the same meaning.
    :param field: compare only this place in the output, a dotted path (``steps.0.code``) or a JSON pointer
        (``/steps/0/code``), with the whole reference; text is read as JSON to get there. A missing field scores 0.
    :param references: the comparison with a list of references: ``any``, the best score counts; ``all``, the mean of their
        scores; ``whole``, the list is one value. Next to an output that is a list, the list is one value. Blank references in a list are
        left out.
    """

    name = "match"
    tier = "truth"

    strictness: Strictness = attrs.field(
        default="normalized_whitespace", converter=_strictness, metadata={"takes": Written}
    )
    language: str = attrs.field(default=PYTHON, validator=_check_language)
    judge: Judge | None = None
    field: str | None = attrs.field(default=None, validator=check_field)
    references: References = attrs.field(default="any", metadata={"later": True})

    def __attrs_post_init__(self) -> None:
        strictnesses = get_args(Strictness)
        if self.strictness not in strictnesses:
            wrong = (
                f"unknown strictness {self.strictness!r}: it is {', '.join(strictnesses[:-1])} or {strictnesses[-1]}"
            )
            raise ConfigError(Problem(wrong, value=self.strictness, hint=nearest(str(self.strictness), strictnesses)))
        if self.language != PYTHON and self.strictness != "ast_equivalent":
            raise ConfigError(f"language: {self.language} belongs to strictness: ast_equivalent")
        if self.strictness == "semantic" and self.judge is None:
            raise ConfigError("strictness: semantic asks a judge; name it: judge: {llm/judge: {…}}")
        if self.strictness != "semantic" and self.judge is not None:
            raise ConfigError("judge belongs to strictness: semantic")

    @property
    def score(self) -> Callable[[Subject], Score | Failure | Awaitable[Score | Failure]]:
        """Compare the output of a subject with its reference; without one the answer is a Failure ``missing_input``.

        Only asking a judge is waited for.
        """
        return self._ask if self.strictness == "semantic" else self._compare

    def _compare(self, subject: Subject) -> Score | Failure:
        if self.strictness == "normalized_whitespace":
            sides_ = text_sides(subject, self.field, "diff/match", self.references)
        else:
            sides_ = sides(subject, self.field, "diff/match")
        if not isinstance(sides_, Sides):
            return sides_
        return compare_sides(sides_, self.references, self._compare_one)

    def _compare_one(self, sides_: Sides) -> Score | Failure:
        if self.strictness == "ast_equivalent":
            from .code import compare_code  # as above

            return compare_code(sides_, self.language)
        return compare_exactly(sides_) if self.strictness == "exact" else compare_words(sides_)

    async def _ask(self, subject: Subject) -> Score | Failure:
        from .semantics import compare_meaning  # few comparisons ask a judge

        sides_ = sides(subject, self.field, "diff/match")
        if not isinstance(sides_, Sides):
            return sides_
        assert self.judge is not None  # as checked above
        references = ReferenceList.of(sides_.reference, sides_.output, self.references)
        if references is None:
            return await compare_meaning(sides_, subject, self.judge)
        answers = list[Score | Failure]()
        for place, reference in zip(references.places, references.values, strict=True):
            # An id of its own, by which its replies are found again where a run is resumed.
            subject_ = attrs.evolve(subject, id=f"{subject.id} (reference {place or 'list'})")
            answers.append(await compare_meaning(attrs.evolve(sides_, reference=reference), subject_, self.judge))
            if references.is_enough(answers[-1]):
                break
        return references.combine(answers)
