"""Parameters of a route: their schemas, and parsing of a query with all its problems at once."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import attrs

from dicast import Problem, RequestError, nearest

Read = Callable[[str], Any]
"""Parser of a text; it raises ValueError with the problem."""

OPTION = re.compile(r"--[a-z][a-z-]*")
"""An option of a command in a reader's message."""

MOST = 2**53
"""The largest integer that every reader of JSON represents exactly."""


class BadRequest(RequestError):
    """Invalid parameters or body of a request."""


@attrs.frozen
class Parameter:
    """A parameter: its OpenAPI *schema*, its parser *read*, and its *default*.

    An *is_repeatable* parameter may be repeated; *place* is ``path`` for a part of the path.
    """

    name: str
    help: str
    schema: Mapping[str, Any]
    read: Read = str
    default: Any = None
    is_repeatable: bool = False
    required: bool = False
    place: str = "query"


def text(name: str, help: str, **options: Any) -> Parameter:
    """Return a parameter that takes any text except an empty text."""
    return Parameter(name, help, {"type": "string", "minLength": 1, "pattern": "^[^\\x00]+$"}, _text, **options)


def choice(name: str, help: str, values: Sequence[str], default: str | None = None) -> Parameter:
    """Return a parameter that takes one of *values*."""

    def read(text: str) -> str:
        if text not in values:
            raise ValueError(f"is one of {', '.join(values)}", nearest(text, values))
        return text

    return Parameter(name, help, {"type": "string", "enum": list(values), **_default(default)}, read, default)


def number(name: str, help: str, default: float | None = None, low: float = 0.0, high: float = 1.0) -> Parameter:
    """Return a parameter that takes a number from *low* to *high*."""

    def read(text: str) -> float:
        value = float(text)
        if not low <= value <= high:
            raise ValueError(f"is a number from {low:g} to {high:g}")
        return value

    schema = {"type": "number", "minimum": low, "maximum": high, **_default(default)}
    return Parameter(name, help, schema, _with_message(read, f"is a number from {low:g} to {high:g}"), default)


def integer(name: str, help: str, default: int | None, low: int, high: int) -> Parameter:
    """Return a parameter that takes an integer from *low* to *high*."""

    def read(text: str) -> int:
        if not text.isascii() or not text.isdecimal() or not low <= int(text) <= high:
            raise ValueError(f"is an integer from {low} to {high}")
        return int(text)

    schema = {"type": "integer", "minimum": low, "maximum": high, **_default(default)}
    return Parameter(name, help, schema, _with_message(read, f"is an integer from {low} to {high}"), default)


def flag(name: str, help: str, *, default: bool = False) -> Parameter:
    """Return a parameter that takes ``true`` or ``false``."""

    def read(text: str) -> bool:
        if text not in ("true", "false"):
            raise ValueError("is true or false", nearest(text, ("true", "false")))
        return text == "true"

    return Parameter(name, help, {"type": "boolean", "default": default}, read, default)


def moment(name: str, help: str) -> Parameter:
    """Return a parameter that takes an ISO 8601 time. A time without an offset is UTC; a date without a time is the start of the day."""

    def read(text: str) -> datetime:
        time = datetime.fromisoformat(text.replace(" ", "+"))  # a plus sign that was not encoded as %2B
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).astimezone(UTC)

    wrong = "is an ISO 8601 time; write it like 2026-01-31T12:00:00Z"
    return Parameter(name, help, {"type": "string", "format": "date-time"}, _with_message(read, wrong))


def in_path(name: str, help: str) -> Parameter:
    """Return a parameter that is a part of the path."""
    return text(name, help, required=True, place="path")


def values_of(
    parameters: Sequence[Parameter], query: Iterable[tuple[str, str]], path: Mapping[str, str]
) -> dict[str, Any]:
    """Return the value of each of *parameters* in the pairs of *query* and the parts of *path*.

    :raises BadRequest: naming every parameter that is wrong, unknown, missing or repeated.
    """
    texts: dict[str, list[str]] = {name: [value] for name, value in path.items()}
    for name, value in query:
        texts.setdefault(name, []).append(value)
    by_name = {parameter.name: parameter for parameter in parameters}
    problems = [_unknown(name, by_name) for name in texts if name not in by_name]
    values: dict[str, Any] = {}
    for name, parameter in by_name.items():
        try:
            values[name] = _value(parameter, texts.get(name, []))
        except ValueError as error:
            problem, hint = (*error.args, None)[:2]
            text = (texts.get(name) or [""])[0]
            problems.append(Problem(f"{name} {problem}, not {text!r:.100}", path=name, value=text[:100], hint=hint))
    if problems:
        raise BadRequest(problems)
    return values


def in_parameters(error: RequestError, values: Mapping[str, Any]) -> list[Problem]:
    """Return the problems of *error* with options of a command renamed to the parameters in *values*."""
    return [_about(problem, values) for problem in error.problems]


def _about(problem: Problem, values: Mapping[str, Any]) -> Problem:
    options = [_parameter_of(option) for option in OPTION.findall(problem.message)]
    named = [name for name in options if name in values] or [
        name
        for name, value in values.items()
        if isinstance(problem.value, str) and problem.value in (value if isinstance(value, tuple) else (value,))
    ]
    path = _parameter_of(problem.path) if problem.path else next(iter(named), None)
    value = values.get(path) or None if problem.value is None and path is not None else problem.value

    def renamed(match: re.Match[str]) -> str:
        name = _parameter_of(match[0])
        return name if name in values else f"the command's {match[0]}"

    return attrs.evolve(problem, message=OPTION.sub(renamed, problem.message), path=path, value=value)


def _parameter_of(option: str) -> str:
    return option.removeprefix("--").replace("-", "_")


def _value(parameter: Parameter, texts: Sequence[str]) -> Any:
    if not texts:
        if parameter.required:
            raise ValueError("is required")
        return () if parameter.is_repeatable else parameter.default
    if parameter.is_repeatable:
        return tuple(parameter.read(text) for text in texts)
    if len(texts) > 1:
        raise ValueError("is given once")
    return parameter.read(texts[0])


def _unknown(name: str, parameters: Mapping[str, Parameter]) -> Problem:
    names = ", ".join(parameters) or "none"
    return Problem(
        f"unknown parameter {name!r:.100}; there are {names}", path=name[:100], hint=nearest(name[:100], parameters)
    )


def _text(text: str) -> str:
    if not text or "\0" in text:
        raise ValueError("is text")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError("is text in UTF-8") from error
    return text


def _with_message(read: Read, wrong: str) -> Read:
    """Return *read* with every error replaced by the message *wrong*."""

    def reading(text: str) -> Any:
        try:
            return read(text)
        except (ValueError, OverflowError) as error:
            raise ValueError(wrong) from error

    return reading


def _default(value: Any) -> dict[str, Any]:
    return {} if value is None else {"default": value}
