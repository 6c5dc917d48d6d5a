"""Examples for questions that are answered in one token: from the pipeline file, or from a column of the row."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import attrs

from dicast import ConfigError, Failure, Problem, Subject, nearest
from dicast.judging import Fenced
from dicast.toolkit.json_values import lookup

from . import room
from .conversation import as_text
from .short import Shot


@attrs.frozen
class Example:
    """An output that was judged, with the right answer.

    :param output: the judged output.
    :param answer: the right word: yes or no, or one of ``choice``.
    :param input: the input that the output answers.
    :param reference: the reference.
    """

    output: object
    answer: str | bool
    input: object = None
    reference: object = None


@attrs.frozen
class PairExample:
    """Two outputs that were compared.

    :param better: the better output.
    :param worse: the other output.
    :param input: the input that both answer.
    """

    better: object
    worse: object
    input: object = None


E = TypeVar("E", Example, PairExample)
_PLACES = ("A", "B")


def shot(example: Example, words: Sequence[str], most: int | None = None) -> Shot:
    """Return *example* in the form that is shown, each text cut to *most* characters.

    :raises ValueError: if its answer is not one of *words*.
    """
    texts = (("INPUT", example.input), ("OUTPUT", example.output), ("REFERENCE", example.reference))
    return Shot(_sections(texts, most), _answer(example.answer, words))


def pair_shot(number: int, example: PairExample, most: int | None = None) -> Shot:
    """Return *example* as it is shown; the better output comes first in each second example, by *number* from 0."""
    outputs = (example.better, example.worse) if number % 2 == 0 else (example.worse, example.better)
    texts = (("INPUT", example.input), *zip((f"OUTPUT {place}" for place in _PLACES), outputs, strict=True))
    return Shot(_sections(texts, most), _PLACES[number % 2])


def _sections(texts: Sequence[tuple[str, object]], most: int | None) -> tuple[Fenced, ...]:
    texts_of = [(title, as_text(value)) for title, value in texts if value is not None]
    return tuple(room.text(title, text, len(text) if most is None else most).section for title, text in texts_of)


def _answer(answer: str | bool, words: Sequence[str]) -> str:
    text = {True: "yes", False: "no"}[answer] if isinstance(answer, bool) else answer.strip()
    word = next((word for word in words if word.casefold() == text.casefold()), None)
    if word is None:
        near = nearest(text, words)
        raise ValueError(
            f"answer {text!r} is not one of {', '.join(words)}" + (f"; did you mean {near!r}?" if near else "")
        )
    return word


def file_shots(examples: Sequence[E], build: Callable[[int, E], Shot]) -> tuple[Shot, ...]:
    """Return the *examples* of the pipeline file as they are shown.

    :raises ConfigError: naming every example that cannot be shown.
    """
    shots, problems = list[Shot](), list[Problem]()
    for number, example in enumerate(examples):
        try:
            shots.append(build(number, example))
        except ValueError as error:
            problems.append(Problem(f"examples[{number}]: {error}", path="examples"))
    if problems:
        raise ConfigError(problems)
    return tuple(shots)


def row_shots(
    subject: Subject, column: str, cls: type[E], build: Callable[[int, E], Shot]
) -> tuple[Shot, ...] | Failure:
    """Return the examples in the *column* of the subject's context as they are shown; a Failure ``missing_input`` if an item is not an example."""
    where = f"column {column!r} of {subject.kind} {subject.id}"
    value = lookup(subject.context, column)
    if not isinstance(value, list | tuple):
        return Failure("missing_input", f"{where} has no list of examples")
    shots = list[Shot]()
    for number, item in enumerate(value):
        try:
            shots.append(build(number, _example(item, cls)))
        except ValueError as error:
            return Failure("missing_input", f"{where}, example {number + 1}: {error}")
    return tuple(shots)


def _example(item: object, cls: type[E]) -> E:
    """Return *item* as an example.

    :raises ValueError: if it is not a mapping with the fields of *cls*.
    """
    fields = attrs.fields_dict(cls)
    if not isinstance(item, Mapping):
        raise ValueError(f"an example is a mapping of {', '.join(fields)}")  # noqa: TRY004  # data, not a call
    if unknown := [key for key in item if key not in fields]:
        raise ValueError(f"unknown field {str(unknown[0])!r} (an example has {', '.join(fields)})")
    if absent := [name for name, field in fields.items() if field.default is attrs.NOTHING and item.get(name) is None]:
        raise ValueError(f"it has no {' and no '.join(absent)}")
    if "answer" in item and not isinstance(item["answer"], str | bool):
        raise ValueError(f"its answer is not a text: {item['answer']!r:.40}")
    return cls(**item)
