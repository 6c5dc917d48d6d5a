"""The extractor ``score_extractor/scores``."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal

import attrs

from dicast import ConfigError, Record, as_json, responses

from .numbers import number

Mode = Literal["gte", "gt", "lte", "lt"]

SCORES = "scores"
_PASSES: Mapping[Mode, Callable[[float, float], bool]] = {
    "gte": operator.ge,
    "gt": operator.gt,
    "lte": operator.le,
    "lt": operator.lt,
}
_NAME = re.compile(r"[a-z][a-z0-9_]*")


def _check_flag_field(extractor: Scores, attribute: attrs.Attribute[str], name: str) -> None:
    if not _NAME.fullmatch(name) or name == SCORES:
        raise ConfigError(f"flag_field must be a name in snake case other than {SCORES!r}, got {name!r}")


@attrs.frozen
class Scores:
    """Reads the score of each criterion from its response into ``metrics.scores``, and writes a flag for each score that passes.

    The score is the value of *key* in the response's metrics. If the metrics have no such key, it is the value of *key* in the
    reply, if the reply is a JSON object, plain or in a fenced block. True is 1 and false is 0. A text that is a single number counts,
    and ``85%`` is 85. Any other value is a missing score: other texts, two numbers, NaN, infinity, null, a list. A task without
    criteria has the single criterion ``default``.

    :param key: the name of the score in the response's metrics, or in its JSON object.
    :param parse_json_content: read the reply if the metrics have no such key.
    :param allow_missing: leave out criteria with a missing score. By default their score is null, they are counted as missing, and they
        do not pass.
    :param threshold: the score at which a criterion passes. Without a threshold there are no flags. A missing score has no flag.
    :param threshold_mode: ``gte`` (a score at or above the threshold passes), ``gt``, ``lte`` or ``lt``.
    :param flag_field: the name of the flags under ``metrics``.
    :param criteria: the criteria to read; all by default.
    """

    key: str = attrs.field(default="score", validator=attrs.validators.min_len(1))
    parse_json_content: bool = True
    allow_missing: bool = False
    threshold: float | None = None
    threshold_mode: Mode = "gte"
    flag_field: str = attrs.field(default="score_flags", validator=_check_flag_field)
    criteria: tuple[str, ...] = ()

    @property
    def writes(self) -> tuple[str, ...]:
        """The fields under ``metrics`` that the extractor writes: with *criteria*, a field for each criterion."""
        fields = (SCORES,) if self.threshold is None else (SCORES, self.flag_field)
        return tuple(f"{field}.{name}" for field in fields for name in self.criteria) if self.criteria else fields

    def extract(self, record: Record) -> Mapping[str, Mapping[str, object]]:
        """Return the scores of *record* and their flags by criterion; empty mappings are left out."""
        scores = dict(self._scores(record))
        threshold, passes = self.threshold, _PASSES[self.threshold_mode]
        flags = {} if threshold is None else {c: passes(s, threshold) for c, s in scores.items() if s is not None}
        return {field: values for field, values in ((SCORES, scores), (self.flag_field, flags)) if values}

    def _scores(self, record: Record) -> Iterator[tuple[str, float | None]]:
        for name, response in responses(record).items():
            if self.criteria and name not in self.criteria:
                continue
            score = number(self._score_value(response))
            if score is not None or not self.allow_missing:
                yield name, score

    def _score_value(self, response: Mapping[str, Any]) -> object:
        metrics = response.get("metrics") or {}
        if self.key in metrics:
            return metrics[self.key]
        content = as_json(response.get("content")) if self.parse_json_content else None
        return content.get(self.key) if isinstance(content, Mapping) else None
