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
        raise ConfigError(f"flag_field is a name in snake case, and not {SCORES!r}: {name!r}")


@attrs.frozen
class Scores:
    """Reads each criterion's score out of its response into ``metrics.scores``, and into flags whether it passes.

    The score is what the model reports under the key or, where it reports nothing of that name, what the reply has there, which then
    is a JSON object; it may stand in a fenced block. Numbers count as they are, true as 1, false as 0, and so does text that is one
    number; ``85%`` is 85. Anything else is missing: other text, two numbers, NaN, infinity, null, a list. A task without criteria has
    the one criterion ``default``.

    :param key: the score's name in the response's metrics, or in its JSON object.
    :param parse_json_content: look into the reply where the metrics have no such key.
    :param allow_missing: leave out the criteria whose score is missing. Without it they are null, are counted as missing, and do not
        pass.
    :param threshold: which score passes; without it there are no flags. A missing score has none.
    :param threshold_mode: ``gte`` (a score passes that is the threshold or more), ``gt``, ``lte`` or ``lt``.
    :param flag_field: the name under ``metrics`` for whether each criterion passed.
    :param criteria: read these alone; all by default.
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
        """The places under ``metrics``: those of the criteria, where they are named."""
        fields = (SCORES,) if self.threshold is None else (SCORES, self.flag_field)
        return tuple(f"{field}.{name}" for field in fields for name in self.criteria) if self.criteria else fields

    def extract(self, record: Record) -> Mapping[str, Mapping[str, object]]:
        """The scores of *record* and their flags, by criterion; nothing where there are none."""
        found = dict(self._scores(record))
        threshold, passes = self.threshold, _PASSES[self.threshold_mode]
        flags = {} if threshold is None else {c: passes(s, threshold) for c, s in found.items() if s is not None}
        return {field: values for field, values in ((SCORES, found), (self.flag_field, flags)) if values}

    def _scores(self, record: Record) -> Iterator[tuple[str, float | None]]:
        for name, response in responses(record).items():
            if self.criteria and name not in self.criteria:
                continue
            score = number(self._found(response))
            if score is not None or not self.allow_missing:
                yield name, score

    def _found(self, response: Mapping[str, Any]) -> object:
        metrics = response.get("metrics") or {}
        if self.key in metrics:
            return metrics[self.key]
        content = as_json(response.get("content")) if self.parse_json_content else None
        return content.get(self.key) if isinstance(content, Mapping) else None
