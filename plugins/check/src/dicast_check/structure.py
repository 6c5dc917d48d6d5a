"""Checks of JSON: whether the output is or contains JSON, and fits a schema."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from importlib.util import find_spec
from typing import Any

import attrs
import orjson

from dicast import ConfigError, Subject
from dicast.toolkit.installing import how_to_install
from dicast.toolkit.json_values import read_json

from .check import Answer, Check

_STARTS = 1000
"""Most brackets in a text that are tried as the start of JSON."""

_READ = 20_000_000
"""Most characters read in failed tries, about 2 seconds. Each unclosed bracket would otherwise read to the end of the text."""

_CACHE_SIZE = 64
"""Size of the cache of compiled schemas, for rows with their own schemas."""


def _check_schema(_instance: object, _attribute: attrs.Attribute[Any], schema: Mapping[str, object] | None) -> None:
    if schema is None:
        return
    if find_spec("jsonschema_rs") is None:
        raise ConfigError(f"a schema needs jsonschema-rs, which is not installed: {how_to_install('schemas')}")
    _validator(orjson.dumps(schema))


@lru_cache(_CACHE_SIZE)
def _validator(schema: bytes) -> Any:
    """Return the validator of the JSON text *schema*.

    :raises ConfigError: when it is invalid.
    """
    import jsonschema_rs  # 15 MB, needed only with schemas

    try:
        return jsonschema_rs.validator_for(orjson.loads(schema), validate_formats=True, offline=True)
    except jsonschema_rs.ValidationError as error:
        place = "".join(f"/{step}" for step in error.instance_path)
        raise ConfigError(f"schema{place}: {error.message}") from error


@attrs.frozen
class _JsonCheck(Check):
    schema: Mapping[str, object] | None = attrs.field(default=None, validator=_check_schema)

    def _wrong(self, value: object) -> str | None:
        """Return how *value* breaks the schema; None if it fits."""
        if self.schema is None:
            return None
        error = next(iter(_validator(orjson.dumps(self.schema)).iter_errors(value)), None)
        if error is None:
            return None
        place = "".join(f"/{step}" for step in error.instance_path)
        return f"breaks the schema{f' at {place}' if place else ''}: {error.message:.200}"


@attrs.frozen
class IsJson(_JsonCheck):
    """1 if the output is JSON and, with a *schema*, fits it, else 0.

    :param schema: a JSON Schema; needs ``dicast[schemas]``. Its references are never fetched.
    """

    name = "is_json"

    def answer(self, output: Any, subject: Subject) -> Answer:
        """Parse *output* as JSON; a value other than text is JSON already."""
        value = output
        if isinstance(output, str):
            try:
                value = read_json(output)
            except ValueError as error:
                return Answer(False, f"is not JSON: {error}")
        wrong = self._wrong(value)
        return Answer(wrong is None, wrong or "is JSON")


@attrs.frozen
class ContainsJson(_JsonCheck):
    """1 if the output contains a JSON object or list and, with a *schema*, it fits, else 0.

    :param schema: a JSON Schema; needs ``dicast[schemas]``. Its references are never fetched.
    :param objects: look only for objects, also inside lists.
    """

    name = "contains_json"

    objects: bool = False

    def answer(self, output: Any, subject: Subject) -> Answer:
        """Look for JSON in *output*."""
        why = f"contains no JSON object{'' if self.objects else ' or list'}"
        starts = "{" if self.objects else "{["
        for value in embedded(output, starts) if isinstance(output, str) else (output,):
            wrong = self._wrong(value)
            if wrong is None:
                return Answer(True, "contains JSON")
            why = f"contains JSON that {wrong}"
        return Answer(False, why)


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def embedded(text: str, brackets: str = "{[") -> Iterator[Any]:
    """Yield the JSON values in *text* that start with one of *brackets*, in order, without nested ones."""
    decoder, place, tried, read = json.JSONDecoder(parse_constant=_refuse), 0, 0, 0
    while tried < _STARTS and read < _READ:
        starts = [start for bracket in brackets if (start := text.find(bracket, place)) >= 0]
        if not starts:
            return
        start, tried = min(starts), tried + 1
        try:
            value, place = decoder.raw_decode(text, start)
        except (ValueError, RecursionError) as error:
            read += getattr(error, "pos", len(text)) - start  # nested too deep, with an unknown position
            place = start + 1
        else:
            yield value
