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
    """Compile *path*.

    :raises ConfigError: with the fault of *path* and its place.
    """
    # It takes 0.2 s to import, and only this extractor needs it.
    from jsonpath import JSONPathEnvironment, JSONPathError

    if not path.startswith("$"):
        raise ConfigError(f"{path!r:.100} is no JSONPath (RFC 9535): it begins with $, as in $.score")
    try:
        query = JSONPathEnvironment(strict=True).compile(path)
    except JSONPathError as error:
        reason = str(error).partition("\n")[0]
        at = len(path) if error.token is None or error.token.index < 0 else error.token.index
        raise ConfigError(f"{path!r:.100} is no JSONPath (RFC 9535) at character {at + 1}: {reason}") from error
    assert not hasattr(query, "path")  # strict: no unions of several paths
    return query


def _check_path(extractor: JsonPath, attribute: attrs.Attribute[str], path: str) -> None:
    _compiled(path)


@attrs.frozen
class JsonPath:
    """Reads the values at a JSONPath (RFC 9535) in a reply that is JSON.

    The reply is a JSON value as a whole, or has one fenced block of JSON. One match gives its value unchanged, but an object as
    JSON text, because its keys come from the model. Several matches give the list of their values in their order. Without a match, and for a reply that is no JSON, the value is missing: null.

    :param path: the JSONPath: ``$.score``, ``$.steps[0].ok``, ``$..score``, ``$.steps[?@.ok == true].name``.
    :param into: the place of the values, a dotted path under ``metrics``: ``scores`` by default, and ``scores.CRITERION`` with a
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
        """Return the values in *record*, at their place."""
        return extracted(record, self.into, self.criterion, self._read)

    def _read(self, content: object) -> object:
        value = as_json(content)
        matches = [] if value is MISSING or isinstance(value, str) else self._query.findall(value)
        if not matches:
            return None
        return (
            matches
            if len(matches) > 1
            else orjson.dumps(matches[0]).decode()
            if isinstance(matches[0], dict)
            else matches[0]
        )
