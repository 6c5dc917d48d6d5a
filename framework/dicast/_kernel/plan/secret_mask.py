"""Masking of a pipeline's secrets in the answers, errors and reports of its components."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from copy import copy
from typing import Any, get_args

import attrs

from ...toolkit.masking import MASK, Mask
from ..classes import evolve
from ..values import Basis, Failure, Judgment, Score, Secret
from ..values.errors import DicastError, RequestError
from .clauses import Bound, Undecided
from .sections import METRICS, Pipeline, Tier


class SecretMask:
    """Mask that replaces the values of all Secrets of a pipeline by ``***``; without Secrets it changes nothing."""

    def __init__(self, components: object, labels: Iterable[str] = ()) -> None:
        """:param components: any nesting of components, mappings and sequences that may hold Secrets.
        :param labels: names in the file that documents repeat, such as the labels of judges; they are not masked.
        """
        values = sorted({secret.value for secret in secrets_of(components)} - {""})
        self._mask = Mask(values) if values else None
        self._names = _NAMES.union(labels)

    @classmethod
    def of(cls, pipeline: Pipeline, *components: object) -> SecretMask:
        """Return the mask of all components of *pipeline* and of *components*."""
        slots = (
            pipeline.source, pipeline.task, pipeline.ledger, pipeline.executor, *pipeline.metrics, *pipeline.judges,
            *pipeline.extractors, *pipeline.aggregates, *pipeline.early_stop, *pipeline.sinks,
            *(pipeline.baseline.compare if pipeline.baseline else ()),
        )  # fmt: skip
        labels = [slot.label for slot in (*pipeline.metrics, *pipeline.judges, *pipeline.extractors, *pipeline.sinks)]
        return cls([*(slot.component for slot in slots if slot is not None), *components], [pipeline.name, *labels])

    def text(self, text: str) -> str:
        """Return *text* without the secrets."""
        return text if self._mask is None else self._mask.message(text)

    def data(self, value: Any) -> Any:
        """Return JSON-like data without the secrets in its texts and keys; *value* itself if there are no secrets."""
        return value if self._mask is None else _mapped(value, self._mask.message)

    def document(self, document: Any) -> Any:
        """Return members of a run's *document*, or of a comparison, without the secrets.

        Names that dicast compares, such as ``early_stop``, are unchanged, although a secret may be a word of them.
        """
        return document if self._mask is None else _mapped(document, self._masked, self._masked_key)

    def answer(self, answer: Any) -> Any:
        """Return a component's answer without the secrets in its texts and signals."""
        if self._mask is None:
            return answer
        changes: dict[str, Any] = {}
        for name in _TEXTS.get(type(answer), ()):
            value = getattr(answer, name)
            if value and (masked := _mapped(value, self._mask.message)) != value:
                changes[name] = masked
        return evolve(answer, **changes) if changes else answer

    def _masked(self, text: str) -> str:
        """Return *text* without the secrets; a name is unchanged unless it is a secret, and not one of the known names."""
        masked = self.text(text)
        return text if text in self._names or (masked != MASK and _NAME.fullmatch(text)) else masked

    def _masked_key(self, key: str) -> str:
        """Return the *key* of a document without the secrets; a name is unchanged, because dicast reads it."""
        return key if _NAME.fullmatch(key) else self._masked(key)

    def error(self, error: DicastError) -> DicastError:
        """Return *error* without the secrets in its message; *error* itself if it has none."""
        if self._mask is None:
            return error
        if isinstance(error, RequestError):
            problems = [
                evolve(problem, message=self.text(problem.message), value=self.data(problem.value))
                if _is_plain(problem.value)
                else problem
                for problem in error.problems
            ]
            return error if problems == list(error.problems) else type(error)(problems)
        text = str(error)
        if (masked := self.text(text)) == text:
            return error
        clean = copy(error)
        clean.args = (masked,)
        return clean

    @contextmanager
    def masked_errors(self) -> Iterator[None]:
        """Raise an error of the block without the secrets in its message."""
        try:
            yield
        except DicastError as error:
            if (masked := self.error(error)) is error:
                raise
            raise masked from None  # the original error contains the secret


_NAME = re.compile(r"[a-z]++(?:_[a-z]++)*+")
"""A name as dicast writes it in documents: words in lower case."""

_NAMES = frozenset(
    (
        *get_args(Basis),
        *get_args(Bound),
        *get_args(Undecided),
        *get_args(Tier),
        METRICS,
        "early_stop",
        "interrupted",
        "paused",
    )
)
"""Words of documents that the code compares, although one of them may be a secret, such as ``test``."""

_TEXTS = {
    Score: ("details", "feedback", "signals"),
    Judgment: ("judge_model", "signals"),
    Failure: ("message", "reply", "retry"),
}
"""Members with texts of a component, by the type of answer."""


def _is_plain(value: object) -> bool:
    return value is None or isinstance(value, str | int | float | list | dict)


def secrets_of(value: Any) -> Iterator[Secret]:
    """Yield every Secret in *value*, at any depth."""
    if isinstance(value, Secret):
        yield value
    elif attrs.has(type(value)):
        for attribute in attrs.fields(type(value)):
            yield from secrets_of(getattr(value, attribute.name, None))
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from secrets_of(item)
    elif isinstance(value, Sequence | AbstractSet) and not isinstance(value, str | bytes):
        for item in value:
            yield from secrets_of(item)


def _mapped(value: Any, change: Callable[[str], str], change_key: Callable[[str], str] | None = None) -> Any:
    """Return JSON-like *value* with *change* made to its texts, and *change_key*, by default *change*, to its keys."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        keys = change if change_key is None else change_key
        return {_mapped(key, keys): _mapped(item, change, change_key) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_mapped(item, change, change_key) for item in value]
    return value
