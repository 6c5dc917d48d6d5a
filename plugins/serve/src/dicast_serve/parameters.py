"""The parameters of a route: what they may be, and reading them out of a query, all that is wrong at once."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import attrs

from dicast import Problem, RequestError, nearest

Read = Callable[[str], Any]
"""Makes a value of a text; it raises ValueError that says what is wrong."""

OPTION = re.compile(r"--[a-z][a-z-]*")
"""An option of a command, in what a reader says."""

MOST = 2**53
"""The largest whole number: every reader of JSON knows it exactly."""


class BadRequest(RequestError):
    """Parameters, or a body, that are not what the route takes."""


@attrs.frozen
class Parameter:
    """One parameter: its *schema* as OpenAPI has it, how it is *read*, and what is meant without it.

    *many* may be repeated; *place* is ``path`` for a part of the path.
    """

    name: str
    help: str
    schema: Mapping[str, Any]
    read: Read = str
    default: Any = None
    many: bool = False
    required: bool = False
    place: str = "query"


def text(name: str, help: str, **more: Any) -> Parameter:
    """Any text but an empty one."""
    return Parameter(name, help, {"type": "string", "minLength": 1, "pattern": "^[^\\x00]+$"}, _text, **more)


def choice(name: str, help: str, values: Sequence[str], default: str | None = None) -> Parameter:
    """One of *values*."""

    def read(given: str) -> str:
        if given not in values:
            raise ValueError(f"is one of {', '.join(values)}", nearest(given, values))
        return given

    return Parameter(name, help, {"type": "string", "enum": list(values), **_default(default)}, read, default)


def number(name: str, help: str, default: float | None = None, low: float = 0.0, high: float = 1.0) -> Parameter:
    """A number from *low* to *high*."""

    def read(given: str) -> float:
        found = float(given)
        if not low <= found <= high:
            raise ValueError(f"is a number from {low:g} to {high:g}")
        return found

    schema = {"type": "number", "minimum": low, "maximum": high, **_default(default)}
    return Parameter(name, help, schema, _saying(read, f"is a number from {low:g} to {high:g}"), default)


def whole(name: str, help: str, default: int | None, low: int, high: int) -> Parameter:
    """A whole number from *low* to *high*."""

    def read(given: str) -> int:
        if not given.isascii() or not given.isdecimal() or not low <= int(given) <= high:
            raise ValueError(f"is a whole number from {low} to {high}")
        return int(given)

    schema = {"type": "integer", "minimum": low, "maximum": high, **_default(default)}
    return Parameter(name, help, schema, _saying(read, f"is a whole number from {low} to {high}"), default)


def flag(name: str, help: str, *, default: bool = False) -> Parameter:
    """``true`` or ``false``."""

    def read(given: str) -> bool:
        if given not in ("true", "false"):
            raise ValueError("is true or false", nearest(given, ("true", "false")))
        return given == "true"

    return Parameter(name, help, {"type": "boolean", "default": default}, read, default)


def moment(name: str, help: str) -> Parameter:
    """An ISO 8601 time; one without an offset is UTC, a date alone is its first moment."""

    def read(given: str) -> datetime:
        found = datetime.fromisoformat(given.replace(" ", "+"))  # a plus that was not written as %2B
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)

    wrong = "is an ISO 8601 time; write it like 2026-01-31T12:00:00Z"
    return Parameter(name, help, {"type": "string", "format": "date-time"}, _saying(read, wrong))


def in_path(name: str, help: str) -> Parameter:
    """A part of the path."""
    return text(name, help, required=True, place="path")


def values_of(
    parameters: Sequence[Parameter], query: Iterable[tuple[str, str]], path: Mapping[str, str]
) -> dict[str, Any]:
    """The value of each of *parameters* in the pairs of *query* and the parts of *path*.

    :raises BadRequest: naming every parameter that is wrong, unknown, missing or given twice.
    """
    given: dict[str, list[str]] = {name: [value] for name, value in path.items()}
    for name, value in query:
        given.setdefault(name, []).append(value)
    known = {parameter.name: parameter for parameter in parameters}
    problems = [_unknown(name, known) for name in given if name not in known]
    found: dict[str, Any] = {}
    for name, parameter in known.items():
        try:
            found[name] = _value(parameter, given.get(name, []))
        except ValueError as error:
            said, hint = (*error.args, None)[:2]
            shown = (given.get(name) or [""])[0]
            problems.append(Problem(f"{name} {said}, not {shown!r:.100}", path=name, value=shown[:100], hint=hint))
    if problems:
        raise BadRequest(problems)
    return found


def in_parameters(error: RequestError, given: Mapping[str, Any]) -> list[Problem]:
    """The problems of *error*, which says what options of a command are wrong, about the parameters that were *given*."""
    return [_about(problem, given) for problem in error.problems]


def _about(problem: Problem, given: Mapping[str, Any]) -> Problem:
    options = [_parameter_of(option) for option in OPTION.findall(problem.message)]
    named = [name for name in options if name in given] or [
        name
        for name, value in given.items()
        if isinstance(problem.value, str) and problem.value in (value if isinstance(value, tuple) else (value,))
    ]
    path = _parameter_of(problem.path) if problem.path else next(iter(named), None)
    value = given.get(path) or None if problem.value is None and path is not None else problem.value

    def said(found: re.Match[str]) -> str:
        name = _parameter_of(found[0])
        return name if name in given else f"the command's {found[0]}"

    return attrs.evolve(problem, message=OPTION.sub(said, problem.message), path=path, value=value)


def _parameter_of(option: str) -> str:
    return option.removeprefix("--").replace("-", "_")


def _value(parameter: Parameter, given: Sequence[str]) -> Any:
    if not given:
        if parameter.required:
            raise ValueError("has to be given")
        return () if parameter.many else parameter.default
    if parameter.many:
        return tuple(parameter.read(one) for one in given)
    if len(given) > 1:
        raise ValueError("is given once")
    return parameter.read(given[0])


def _unknown(name: str, known: Mapping[str, Parameter]) -> Problem:
    there = ", ".join(known) or "none"
    return Problem(
        f"unknown parameter {name!r:.100}; there are {there}", path=name[:100], hint=nearest(name[:100], known)
    )


def _text(given: str) -> str:
    if not given or "\0" in given:
        raise ValueError("is text")
    try:
        given.encode()
    except UnicodeEncodeError as error:
        raise ValueError("is text in UTF-8") from error
    return given


def _saying(read: Read, wrong: str) -> Read:
    """*read*, which says *wrong* whatever it raises."""

    def reading(given: str) -> Any:
        try:
            return read(given)
        except (ValueError, OverflowError) as error:
            raise ValueError(wrong) from error

    return reading


def _default(value: Any) -> dict[str, Any]:
    return {} if value is None else {"default": value}
