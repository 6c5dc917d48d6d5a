"""The extractor ``extract/label``."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Mapping

import attrs

from dicast import ConfigError, Record

from .content import as_text
from .places import check_into, extracted, scores_of


def _check_labels(
    extractor: Label, attribute: attrs.Attribute[Mapping[str, float]], labels: Mapping[str, float]
) -> None:
    if not labels:
        raise ConfigError("labels is empty; give each text its number, as in {good: 1, bad: 0}")
    texts: dict[str, str] = {}
    for label, value in labels.items():
        if not label.strip():
            raise ConfigError(f"the label {label!r} is blank; it would be found in every reply")
        other = texts.setdefault(_plain(label, extractor.case_sensitive), label)
        if other != label:
            raise ConfigError(f"the labels {other!r} and {label!r} are the same to a search that ignores case")
        if not math.isfinite(value):
            raise ConfigError(f"the number of the label {label!r} is {value}, and must be finite")


@attrs.frozen
class Label:
    """Reads the one label that a reply has, as that label's number: ``{yes: 1, no: 0}``.

    A label must be a whole word or words, and the longest label at a place counts: "not good" has the label "not good",
    not the label "good". If a reply has no label, or two different labels, the value is missing: null.

    :param labels: the texts with their numbers.
    :param case_sensitive: distinguish "Yes" from "yes".
    :param into: the place of the values, a dotted path under ``metrics``: ``scores`` by default, and ``scores.CRITERION`` with a
        ``criterion``. Statistics read ``scores``.
    :param criterion: the criterion whose reply is read; its value is at ``into``. By default all are read, and their values are at
        ``into.CRITERION``; a task without criteria has the one criterion ``default``.
    """

    case_sensitive: bool = False
    labels: Mapping[str, float] = attrs.field(kw_only=True, validator=_check_labels)
    criterion: str | None = None
    into: str = attrs.field(default=scores_of, validator=check_into)
    _values: Mapping[str, float] = attrs.field(init=False, eq=False, repr=False)
    _pattern: re.Pattern[str] = attrs.field(init=False, eq=False, repr=False)

    @_values.default
    def _plain_labels(self) -> Mapping[str, float]:
        return {_plain(label, self.case_sensitive): value for label, value in self.labels.items()}

    @_pattern.default
    def _compile(self) -> re.Pattern[str]:
        longest_first = sorted(self._values, key=len, reverse=True)
        return re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, longest_first))})(?!\w)")

    @property
    def writes(self) -> tuple[str]:
        """The one place."""
        return (self.into,)

    def extract(self, record: Record) -> Mapping[str, object]:
        """Return the values in *record*, at their place."""
        return extracted(record, self.into, self.criterion, self._read)

    def _read(self, content: object) -> float | None:
        matches = set(self._pattern.findall(_plain(as_text(content), self.case_sensitive)))
        return self._values[matches.pop()] if len(matches) == 1 else None


def _plain(text: str, case_sensitive: bool) -> str:
    """*text* so that equal texts are equal strings: composed (NFC), with single blanks and, unless case counts, its case folded."""
    return " ".join(unicodedata.normalize("NFC", text if case_sensitive else text.casefold()).split())
