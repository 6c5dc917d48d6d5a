"""The extractor ``extract/json_path``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import attrs
import orjson

from dicast import ConfigError, Record, as_json
from dicast.toolkit.json_values import MISSING

from .places import check_into, extracted, scores_of

if TYPE_CHECKING:
    from jsonpath import JSONPath


def _compiled(path: str) -> JSONPath:
    """*path*, ready for use.

    :raises ConfigError: naming what is wrong with it, and where.
    """
    # It takes 0.2 s to import, and only this extractor needs it.
    from jsonpath import JSONPathEnvironment, JSONPathError

    if not path.startswith("$"):
        raise ConfigError(f"{path!r:.100} is no JSONPath (RFC 9535): it begins with $, as in $.score")
    try:
        query = JSONPathEnvironment(strict=True).compile(path)
    except JSONPathError as error:
        said = str(error).partition("\n")[0]
        at = len(path) if error.token is None or error.token.index < 0 else error.token.index
        raise ConfigError(f"{path!r:.100} is no JSONPath (RFC 9535) at character {at + 1}: {said}") from error
    assert not hasattr(query, "path")  # strict: no unions of several paths
    return query


def _check_path(extractor: JsonPath, attribute: attrs.Attribute[str], path: str) -> None:
    _compiled(path)


@attrs.frozen
class JsonPath:
    """Reads what a JSONPath (RFC 9535) leads to in a reply that is JSON.

    The reply is a JSON value as a whole, or one fenced block of it. One place that is found gives its value as it is, an object its
    JSON text, for its keys are the model's; several places give the list of theirs in their order. Nothing found, and a reply that is no JSON, give null: the value is missing.

    :param path: the JSONPath: ``$.score``, ``$.steps[0].ok``, ``$..score``, ``$.steps[?@.ok == true].name``.
    :param into: where the values go, a dotted path under ``metrics``: ``scores`` by default, and ``scores.CRITERION`` with a
        ``criterion``. Statistics read ``scores``.
    :param criterion: the criterion whose reply is read; its value is at ``into``. By default all are read, and their values are at
        ``into.CRITERION``; a task without criteria has the one criterion ``default``.
    """

    path: str = attrs.field(validator=_check_path)
    criterion: str | None = None
    into: str = attrs.field(default=scores_of, validator=check_into)
    _query: Any = attrs.field(init=False, eq=False, repr=False)

    @_query.default
    def _compile(self) -> Any:
        return _compiled(self.path)

    @property
    def writes(self) -> tuple[str]:
        """The one place."""
        return (self.into,)

    def extract(self, record: Record) -> Mapping[str, object]:
        """What is found in *record*, at its place."""
        return extracted(record, self.into, self.criterion, self._read)

    def _read(self, content: object) -> object:
        value = as_json(content)
        found = [] if value is MISSING or isinstance(value, str) else self._query.findall(value)
        if not found:
            return None
        return found if len(found) > 1 else orjson.dumps(found[0]).decode() if isinstance(found[0], dict) else found[0]
