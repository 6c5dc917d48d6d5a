"""The JSON Schemas of tools' params: read, checked whole, and made ready to check by."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

import attrs
import orjson

from dicast import ConfigError, Problem, nearest
from dicast.toolkit.installing import how_to_install

from .calls import shortened
from .definitions import read_definitions

Schema = Mapping[str, object] | bool

_DRAFTS = {
    "https://json-schema.org/draft/2020-12/schema": "Draft202012Validator",
    "https://json-schema.org/draft/2019-09/schema": "Draft201909Validator",
    "http://json-schema.org/draft-07/schema": "Draft7Validator",
    "http://json-schema.org/draft-06/schema": "Draft6Validator",
    "http://json-schema.org/draft-04/schema": "Draft4Validator",
}
_LATEST = next(iter(_DRAFTS))
_TYPES = ("array", "boolean", "integer", "null", "number", "object", "string")
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_NAMING = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies")
_DATA = ("const", "enum", "default", "examples", "required")
_BACKTRACKS = 100_000  # steps that a pattern may take in one text
_MAX_VIOLATIONS = 100  # violations
_MAX_SHOWN = 40  # letters of a value in a message
_MASK = "\x00"  # replaces the value in the library's messages, which would have all of it


class _Compiled(Protocol):
    """A validator of jsonschema-rs."""

    def is_valid(self, instance: Any) -> bool: ...
    def iter_errors(self, instance: Any) -> Iterator[Any]: ...


@attrs.frozen
class Violation:
    """Where params break their schema: *pointer* into the params, the *keyword* that they break, and how."""

    pointer: str
    keyword: str
    message: str

    def __str__(self) -> str:
        return f"params{self.pointer}: {self.message}"


class Overrun(Exception):
    """A pattern of the schema takes too many steps on a text."""


class Validator:
    """A compiled schema. It is pickled as its source.

    :raises ConfigError: with every fault of the schema, by JSON pointer.
    """

    __slots__ = ("_compiled", "_formats", "_schema")

    def __init__(self, schema: object, formats: bool) -> None:
        self._schema, self._formats = schema, formats
        self._compiled = _compiled(schema, formats)

    def __reduce__(self) -> tuple[type[Validator], tuple[object, bool]]:
        return Validator, (self._schema, self._formats)

    def is_valid(self, params: object) -> bool:
        """Return True if *params*, which must be JSON values, keep to the schema."""
        return self._compiled.is_valid(params)

    def violations(self, params: object) -> list[Violation]:
        """Return the first hundred violations.

        :raises Overrun: if a pattern takes too long.
        """
        return [_violation(error) for error in islice(self._compiled.iter_errors(params), _MAX_VIOLATIONS)]


class Compiled:
    """Validators of schemas that come with the data; equal schemas are compiled once, as far as they fit."""

    def __init__(self) -> None:
        self._validators: dict[bytes, Validator | str] = {}

    def __reduce__(self) -> tuple[type[Compiled], tuple[()]]:
        return Compiled, ()

    def of(self, tools: Mapping[str, object], formats: bool) -> dict[str, Validator | str]:
        """Return the validator of each tool, or why its schema does not compile."""
        return {name: self._validator(schema, formats) for name, schema in tools.items()}

    def _validator(self, schema: object, formats: bool) -> Validator | str:
        try:
            key = orjson.dumps([schema, formats], option=orjson.OPT_SORT_KEYS)
        except TypeError as error:
            return f"it is not JSON: {error}"
        if key not in self._validators:
            if len(self._validators) >= _MOST_SCHEMAS:
                self._validators.clear()
            self._validators[key] = _validator_or_error(schema, formats)
        return self._validators[key]


_MOST_SCHEMAS = 1000


def _validator_or_error(schema: object, formats: bool) -> Validator | str:
    try:
        return Validator(schema, formats)
    except ConfigError as error:
        return "; ".join(problem.message.strip(" :") for problem in error.problems)


def read_tools(source: object) -> Mapping[str, object]:
    """Return the schemas by tool, from *source* or from the file that it names. Lists of function tools become a mapping.

    :raises ConfigError: with all faults of its form.
    """
    data = read_definitions(source) if isinstance(source, Path) else source
    if isinstance(data, Mapping) and isinstance(data.get("tools"), list):
        data = data["tools"]
    if isinstance(data, list | tuple):
        data = _listed(data)
    if not isinstance(data, Mapping) or not data:
        raise ConfigError("tools are a mapping of names to JSON Schemas, or a list of function tools, at least one")
    return data


def compile_tools(tools: Mapping[str, object], formats: bool) -> dict[str, Validator]:
    """Return a validator for each of *tools*.

    :raises ConfigError: with every fault of every schema, or if the library is missing.
    """
    if importlib.util.find_spec("jsonschema_rs") is None:
        needed = "proxy/tool_params_schema needs jsonschema-rs, which is not installed"
        raise ConfigError(f"{needed}: {how_to_install('schemas')}")
    problems, validators = list[Problem](), {}
    for name, schema in tools.items():
        try:
            validators[name] = Validator(schema, formats)
        except ConfigError as error:
            problems += [
                attrs.evolve(problem, message=f"the schema of {name!r}{problem.message}") for problem in error.problems
            ]
    if problems:
        raise ConfigError(problems)
    return validators


def pointer(steps: Sequence[object]) -> str:
    """Return the JSON pointer (RFC 6901) of *steps*."""
    return "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in steps)


def _listed(items: Sequence[object]) -> dict[str, object]:
    """Return the schemas by tool of a list in the format of OpenAI (``{type: function, function: {name, parameters}}``) or MCP."""
    schemas, problems = dict[str, object](), list[Problem]()
    for number, item in enumerate(items):
        inner = item.get("function", item) if isinstance(item, Mapping) else None
        name = inner.get("name") if isinstance(inner, Mapping) else None
        if not isinstance(inner, Mapping) or not isinstance(name, str):
            problems.append(Problem(f"[{number}] is no function tool: it needs a name, and parameters"))
        elif name in schemas:
            problems.append(Problem(f"[{number}] is a second tool of the name {name!r}; keep one"))
        else:
            keys = (key for key in ("parameters", "input_schema", "inputSchema") if key in inner)
            schemas[name] = inner.get(next(keys, ""), {"type": "object"})
    if problems:
        raise ConfigError(problems)
    return schemas


def _compiled(schema: object, formats: bool) -> _Compiled:
    import jsonschema_rs  # 15 MB, and needed only where schemas are

    if not isinstance(schema, Mapping | bool):
        raise ConfigError(f" is a mapping, true or false, not {type(schema).__name__}")
    try:
        orjson.dumps(schema)
    except TypeError as error:
        raise ConfigError(f" is not JSON: {error}") from error
    uri = _draft(schema)
    problems = [_fault(error) for error in _meta(uri).iter_errors(schema)]
    if problems:
        raise ConfigError([*problems, *_broken(schema)])
    make = getattr(jsonschema_rs, _DRAFTS[uri])
    patterns = jsonschema_rs.FancyRegexOptions(backtrack_limit=_BACKTRACKS)
    try:
        compiled: _Compiled = make(schema, validate_formats=formats, mask=_MASK, pattern_options=patterns, offline=True)
    except jsonschema_rs.ValidationError as error:
        raise ConfigError([*_broken(schema)] or f": {error.message.replace(_MASK, 'it')}") from error
    return compiled


def _draft(schema: Schema) -> str:
    """Return the URI of the draft of JSON Schema that *schema* states."""
    draft_uri = schema.get("$schema", _LATEST) if isinstance(schema, Mapping) else _LATEST
    uri = draft_uri.rstrip("#") if isinstance(draft_uri, str) else None
    if uri not in _DRAFTS:
        drafts = f"the drafts known are {', '.join(_DRAFTS)}"
        near = nearest(uri, _DRAFTS) if uri else None
        raise ConfigError(Problem(f" at /$schema: {draft_uri!r:.100} is no draft of JSON Schema; {drafts}", hint=near))
    return uri


@cache
def _meta(uri: str) -> _Compiled:
    """Return the schema of schemas, which is part of the library."""
    import jsonschema_rs

    validator: _Compiled = getattr(jsonschema_rs, _DRAFTS[uri])(
        {"$ref": uri}, validate_formats=True, mask=_MASK, offline=True
    )
    return validator


def _fault(error: Any) -> Problem:
    """Return the problem at one place of a schema."""
    steps, value = error.instance_path, error.instance
    hint = nearest(value, _TYPES) if steps and steps[-1] == "type" and isinstance(value, str) else None
    if hint or (steps and steps[-1] == "type"):
        message = f"{_quoted(value)} is no type; the types are {', '.join(_TYPES)}"
    else:
        message = _worded(error)
    return Problem(f" at {pointer(steps) or 'its root'}: {message}", hint=hint)


def _violation(error: Any) -> Violation:
    if type(error.kind).__qualname__.endswith("BacktrackLimitExceeded"):
        raise Overrun(
            f"params{pointer(error.instance_path)}: the pattern at {pointer(error.schema_path)} of the schema"
        )
    keyword = error.schema_path[-1] if error.schema_path else "false"
    return Violation(shortened(pointer(error.instance_path)), str(keyword), _worded(error))


def _worded(error: Any) -> str:
    """Return the library's message with a short form of the value."""
    return shortened(error.message.replace(_MASK, _quoted(error.instance) if _MASK in error.message else ""))


def _quoted(value: object) -> str:
    if isinstance(value, Mapping):
        return "this object"
    if isinstance(value, list):
        return "this list"
    text = orjson.dumps(value[:_MAX_SHOWN] if isinstance(value, str) else value).decode()
    return f"{text[:-1]}…" + '"' if isinstance(value, str) and len(value) > _MAX_SHOWN else text


def _broken(schema: object) -> Iterator[Problem]:
    """Yield the references of *schema* that lead nowhere, or out of it."""
    identifiers = set(_identifiers(schema)) | set(_DRAFTS)
    for place, target in _references(schema, ""):
        uri, _, fragment = target.partition("#")
        if uri and uri not in identifiers:
            yield Problem(
                f" at {place}: {target!r:.200} is outside of the schema, and other documents are never fetched; "
                "put it under $defs and refer to '#/$defs/NAME'"
            )
        elif not uri and fragment.startswith("/") and not _leads(schema, fragment):
            yield Problem(f" at {place}: {target!r:.200} leads nowhere")


def _leads(schema: object, fragment: str) -> bool:
    from urllib.parse import unquote

    value: Any = schema
    for step in unquote(fragment)[1:].split("/"):
        key = step.replace("~1", "/").replace("~0", "~")
        if isinstance(value, Mapping) and key in value:
            value = value[key]
        elif isinstance(value, list) and key.isdecimal() and int(key) < len(value):
            value = value[int(key)]
        else:
            return False
    return True


def _identifiers(schema: object) -> Iterator[str]:
    """Yield the identifiers of the parts of *schema* that have one."""
    if isinstance(schema, Mapping):
        name = schema.get("$id", schema.get("id"))
        if isinstance(name, str):
            yield name.rstrip("#")
    for item in schema.values() if isinstance(schema, Mapping) else schema if isinstance(schema, list) else ():
        yield from _identifiers(item)


def _references(schema: object, at: str) -> Iterator[tuple[str, str]]:
    """Yield the references in *schema*, each with its place. Data in it, such as the values of ``enum``, have no references."""
    if isinstance(schema, list):
        for number, item in enumerate(schema):
            yield from _references(item, f"{at}/{number}")
    for key, value in schema.items() if isinstance(schema, Mapping) else ():
        place = at + pointer([key])
        if key in _REFERENCES and isinstance(value, str):
            yield place, value
        elif key in _NAMING and isinstance(value, Mapping):
            for name, item in value.items():
                yield from _references(item, place + pointer([name]))
        elif key not in _DATA:
            yield from _references(value, place)
