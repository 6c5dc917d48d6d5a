"""Does the output follow from the reference, and the reference from the output?"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import attrs

from dicast import ConfigError, Failure, Problem, RunContext, Score, Subject, Within
from dicast.toolkit.installing import how_to_install
from dicast.toolkit.json_values import check_field
from dicast.toolkit.references import ReferenceList, References

from .sides import Sides, text_sides
from .texts import written

if TYPE_CHECKING:
    from .nli_model import Described, Inference, NliModel

Direction = Literal["both", "from_reference", "to_reference"]
_DIRECTIONS: Mapping[str, tuple[str, ...]] = {
    "both": ("from_reference", "to_reference"),
    "from_reference": ("from_reference",),
    "to_reference": ("to_reference",),
}
_LEAST = 8
"""The least number of tokens of a pair: its special tokens and a few of each text."""


@attrs.frozen
class Entails:
    """Probability that output and reference follow from each other, by a local model of natural language inference.

    The model is a cross-encoder in ONNX: a folder with ``model.onnx``, ``tokenizer.json`` and ``config.json``, as ``optimum-cli export onnx`` writes it. No
    network is used. The score is the lower of two probabilities: that the output follows from the reference, and that the reference follows from the
    output. Needs the extra ``dicast[entails]``.

    :param model: the folder of the model, relative to the folder of the pipeline file.
    :param threshold: the least score that passes; required, because the probabilities of such models are not calibrated and .5 has no meaning. Choose it
        on labeled pairs of your own: ``dicast calibrate FILE --gold LABELS --metric LABEL``. ``pass_at`` of the metric overrides it.
    :param direction: ``both``, the lower probability counts; ``from_reference``, the output follows from the reference: it adds nothing and may
        leave something out; ``to_reference``, the reference follows from the output: the output has all of it and may add something.
    :param labels: the names of the model's outputs in the order of the model's card, one of them ``entailment``; by default ``id2label`` of ``config.json``.
    :param max_tokens: the number of tokens of a pair, special tokens included; by default as many as the model reads. The rest of the longer text is cut,
        counted in ``signals.evidence.cut``, and the run has a warning.
    :param field: compare only this place in the output, a dotted path (``steps.0.text``) or a JSON pointer
        (``/steps/0/text``), with the whole reference; text is read as JSON to get there. A missing field scores 0.
    :param references: how the output is compared with a list of references: ``any``, the best score counts; ``all``, the mean of their
        scores; ``whole``, the list is one value. Next to an output that is a list, the list is one value. Blank references in a list are
        left out.
    """

    name = "entails"
    tier = "truth"
    default_timeout = 300.0

    model: Path
    threshold: float | None = attrs.field(
        default=None, validator=attrs.validators.optional(Within(0, 1, "a number from 0 to 1"))
    )
    direction: Direction = "both"
    labels: Sequence[str] = ()
    max_tokens: int | None = attrs.field(
        default=None, validator=attrs.validators.optional(Within(_LEAST, math.inf, f"{_LEAST} or more"))
    )
    field: str | None = attrs.field(default=None, validator=check_field)
    references: References = "any"

    def __attrs_post_init__(self) -> None:
        lacking = [name for name in ("onnxruntime", "tokenizers") if find_spec(name) is None]
        if lacking:
            raise ConfigError(f"diff/entails needs {' and '.join(lacking)}: {how_to_install('entails')}")
        if self.threshold is None:
            message = (
                "diff/entails needs 'threshold', the least probability that passes: .5 has no meaning for such a model. "
                "Choose it on labeled pairs (dicast calibrate --metric); until then, any value such as 0.9 gives the same scores"
            )
            raise ConfigError(Problem(message, path="threshold"))
        self._described()

    @property
    def default_pass_at(self) -> float | None:
        """The threshold."""
        return self.threshold

    def reads(self, base: Path) -> Mapping[str, Path]:
        """Return the files of the model: other files are another metric."""
        from .nli_model import FILES  # imported late: few pipelines have a model

        return {name: self.model / name for name in FILES}

    @asynccontextmanager
    async def open(self, run: RunContext) -> AsyncIterator[Entailment]:
        """Load the model, once a run."""
        yield Entailment(self, await asyncio.to_thread(self._described().load))

    async def score(self, subject: Subject) -> Score | Failure:
        """Score *subject* outside of any run; the model is loaded for this call."""
        return await Entailment(self, await asyncio.to_thread(self._described().load)).score(subject)

    def _described(self) -> Described:
        from .nli_model import Described  # as above

        return Described.of(self.model, self.labels, self.max_tokens)


@attrs.frozen
class _Comparison:
    """A subject's output with its references, or the *answer* that needs no model."""

    texts: tuple[tuple[str, str], ...] = ()
    options: ReferenceList | None = None
    answer: Score | Failure | None = None


@attrs.frozen
class Entailment:
    """Scores subjects with a loaded model."""

    options: Entails
    model: NliModel

    default_timeout = Entails.default_timeout

    async def score(self, subject: Subject) -> Score | Failure:
        """Score one subject, in a thread."""
        return (await self.score_batch([subject]))[0]

    async def score_batch(self, subjects: Sequence[Subject]) -> Sequence[Score | Failure]:
        """Score several subjects; their pairs are computed together, in a thread."""
        return await asyncio.to_thread(self._scored, subjects)

    def _scored(self, subjects: Sequence[Subject]) -> list[Score | Failure]:
        compared = [self._comparison(subject) for subject in subjects]
        inferred = iter(
            self.model.infer([pair for sides_ in compared for texts in sides_.texts for pair in self._pairs(*texts)])
        )
        return [self._answer(sides_, inferred) for sides_ in compared]

    def _pairs(self, output: str, reference: str) -> Iterator[tuple[str, str]]:
        """Yield the premise and the hypothesis of each direction."""
        for direction in _DIRECTIONS[self.options.direction]:
            yield (reference, output) if direction == "from_reference" else (output, reference)

    def _comparison(self, subject: Subject) -> _Comparison:
        """Return the texts of *subject* to compare."""
        sides_ = text_sides(subject, self.options.field, "diff/entails", self.options.references)
        if not isinstance(sides_, Sides):
            return _Comparison(answer=sides_)
        options = ReferenceList.of(sides_.reference, sides_.output, self.options.references)
        values = (sides_.reference,) if options is None else options.values
        texts = tuple((_text(sides_.output), _text(value)) for value in values)
        if any(not output.strip() for output, _ in texts):
            return _Comparison(answer=Score(0.0, details="the output is blank"))
        return _Comparison(texts, options)

    def _answer(self, compared: _Comparison, inferred: Iterator[Inference]) -> Score | Failure:
        if compared.answer is not None:
            return compared.answer
        names = _DIRECTIONS[self.options.direction]
        answers = [self._score_inferred({name: next(inferred) for name in names}) for _ in compared.texts]
        return answers[0] if compared.options is None else compared.options.combine(answers)

    def _score_inferred(self, inferred: Mapping[str, Inference]) -> Score:
        """Return the score of one output and one reference."""
        from .nli_model import ENTAILMENT  # as above

        values = {name: inference.probabilities[ENTAILMENT] for name, inference in inferred.items()}
        signals: dict[str, object] = {name: dict(inference.probabilities) for name, inference in inferred.items()}
        cut = max(inference.cut for inference in inferred.values())
        if cut:
            limit = f"the model reads {self.model.described.length:,} tokens of a pair"
            signals["evidence"] = {"cut": cut, "unit": "tokens", "limit": limit}
        inferences = " and ".join(f"{value:.4g} {_WORDS[name]}" for name, value in values.items())
        details = f"entailment {inferences}" + (f"; {cut:,} tokens were cut" if cut else "")
        return Score(min(values.values()), details=details, signals=signals, basis="model")


_WORDS = {"from_reference": "from reference to output", "to_reference": "from output to reference"}


def _text(value: object) -> str:
    text = written(value)
    return str(value) if text is None else str(text)
