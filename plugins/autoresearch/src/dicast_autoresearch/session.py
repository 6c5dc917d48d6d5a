"""The session: measurement, scope and budgets, in ``.auto/session.yaml``."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

import attrs

from dicast import ConfigError, Problem, nearest
from dicast.toolkit import yaml
from dicast.toolkit.atomic_file import AtomicFile
from dicast.toolkit.files import error_reason, read_bytes

from .decision import DIRECTIONS, Direction, Policy
from .log import LOG

FOLDER = ".auto"
FILE = f"{FOLDER}/session.yaml"
SESSION_FILES = (FOLDER, LOG)
"""Files of the session, which no change may touch."""


@attrs.frozen(kw_only=True)
class Session:
    """A session's file.

    :param primary: the deciding METRIC. ``primary_metric`` is another name of this option.
    :param command: prints METRIC lines; a text that is split like a shell's.
    :param checks: a command that must exit with 0 before anything is measured.
    :param scope: files and folders, relative to the repository, that a change may touch.
    :param runs: the most experiments of a segment, without the baseline; *minutes* the time limit of a loop, *money* the most
        that runs may cost in USD, by the METRIC ``cost_usd``.
    :param timeout: seconds for the command, *checks_timeout* for the checks, *propose_timeout* for a proposer.
    :param secondary_directions: the better direction of other METRICs by name, if the name does not show it; their regressions are
        named in ``learned``.
    :param link: untracked paths that the commands need; every checkout has them read-only.
    :param validation: the secondary METRIC that may not fall by more than ``max_validation_drop``.
    """

    name: str
    primary: str
    direction: Direction
    command: str
    scope: tuple[str, ...]
    checks: str | None = None
    min_delta: float = 0.0
    min_relative_delta: float = 0.0
    noise: str = "none"
    min_confidence: float = 2.0
    floor: float = 0.01
    retries: int = 2
    validation: str | None = None
    max_validation_drop: float = 0.05
    runs: int | None = None
    minutes: float | None = None
    money: str | None = None
    timeout: float = 600.0
    checks_timeout: float = 300.0
    propose_timeout: float = 600.0
    goal: str = ""
    secondary_directions: Mapping[str, Direction] = attrs.field(factory=dict)
    link: tuple[str, ...] = ()

    @property
    def policy(self) -> Policy:
        """Return the conditions for keeping a change."""
        noise: Any = self.noise
        return Policy(
            direction=self.direction,
            min_delta=self.min_delta,
            min_relative_delta=self.min_relative_delta,
            noise=noise,
            min_confidence=self.min_confidence,
            floor=self.floor,
            max_validation_drop=None if self.validation is None else self.max_validation_drop,
        )

    def words(self, command: str) -> list[str]:
        """Return the words of *command*."""
        return shlex.split(command)


def write(root: Path, session: Session) -> None:
    """Write the session's file below *root*."""
    path = root / FILE
    path.parent.mkdir(exist_ok=True)
    values = {name: value for name, value in attrs.asdict(session).items() if value is not None}
    values["scope"] = list(session.scope)
    values["link"] = list(session.link)
    for name in ("secondary_directions", "link"):
        if not values[name]:
            del values[name]
    try:
        with AtomicFile(path) as file:
            file.write(yaml.write_yaml(values).encode())
            file.commit()
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror or error}") from error


def read(root: Path) -> Session:
    """Return the session below *root*.

    :raises ConfigError: naming all problems of the file, with their places.
    """
    path = root / FILE
    try:
        values = yaml.read_yaml(read_bytes(path), str(path)).plain()
    except FileNotFoundError as error:
        raise ConfigError(f"there is no session in {root}: start one with dicast autoresearch init") from error
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error_reason(error)}") from error
    if not isinstance(values, dict):
        raise ConfigError(f"{path} is a mapping of options, not {type(values).__name__}")
    return make(values, str(path))


def make(values: Mapping[str, Any], file: str) -> Session:
    """Return the session with these *values*.

    :raises ConfigError: naming all problems.
    """
    fields = {field.name: field for field in attrs.fields(Session)}
    problems = []
    if "primary_metric" in values:
        if "primary" in values and values["primary"] != values["primary_metric"]:
            message = "primary and primary_metric are one option, with two values here. Keep one of them."
            problems.append(Problem(message, file, path="primary_metric", value=values["primary_metric"]))
        values = {"primary": values["primary_metric"], **values}
        values = {name: value for name, value in values.items() if name != "primary_metric"}
    problems += [
        Problem(
            f"unknown option {key!r}",
            file,
            path=str(key),
            value=key,
            hint=nearest(str(key), [*fields, "primary_metric"]),
        )
        for key in values
        if key not in fields
    ]
    for name, field in fields.items():
        if field.default is attrs.NOTHING and not values.get(name):
            problems.append(Problem(f"the session needs {name}", file, path=name))
    problems += [
        Problem(message, file, path=name, value=values[name])
        for name, message in _wrong(values)
        if name in fields and name in values
    ]
    if problems:
        raise ConfigError(problems)
    options = {key: value for key, value in values.items() if key in fields}
    secondary = {name: DIRECTIONS[way] for name, way in (options.get("secondary_directions") or {}).items()}
    shaped = {
        "direction": DIRECTIONS[options["direction"]],
        "scope": tuple(options["scope"]),
        "link": tuple(options.get("link") or ()),
        "secondary_directions": secondary,
    }
    return Session(**{**options, **shaped})


def _wrong(values: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return name and problem of each invalid value in *values*."""
    problems: list[tuple[str, str]] = []

    def expect(name: str, expected: str, *, holds: bool) -> None:
        if values.get(name) is not None and not holds:
            problems.append((name, f"invalid value for {name}, expected {expected}, got {values[name]!r:.100}"))

    for name in ("name", "primary", "goal", "validation"):
        expect(name, "text", holds=isinstance(values.get(name), str))
    for name in ("command", "checks"):
        expect(name, "a command", holds=isinstance(values.get(name), str) and is_command(values[name]))
    expect("direction", "higher_is_better or lower_is_better", holds=str(values.get("direction")) in DIRECTIONS)
    expect("noise", "none, confidence or recent", holds=values.get("noise") in ("none", "confidence", "recent"))
    for name in ("min_delta", "min_relative_delta", "min_confidence", "floor", "max_validation_drop"):
        expect(name, "a number of 0 or more", holds=_is_number(values.get(name), 0))
    for name in ("timeout", "checks_timeout", "propose_timeout", "minutes"):
        expect(name, "a number above 0", holds=_is_number(values.get(name), 0, open_=True))
    for name in ("runs", "retries"):
        number = values.get(name)
        expect(name, "an integer of 0 or more", holds=type(number) is int and number >= 0)
    expect("money", "an amount of USD, such as '2.50'", holds=_is_amount(values.get("money")))
    ways = values.get("secondary_directions")
    named = isinstance(ways, Mapping) and all(isinstance(n, str) and str(way) in DIRECTIONS for n, way in ways.items())
    expect("secondary_directions", "higher_is_better or lower_is_better by the name of a METRIC", holds=named)
    for name in ("scope", "link"):
        paths = values.get(name)
        expect(
            name,
            "a list of paths below the repository",
            holds=isinstance(paths, list | tuple) and all(map(_is_inside, paths)),
        )
    return problems


def is_command(text: str) -> bool:
    """Return whether *text* can be split into the words of a command."""
    try:
        return bool(shlex.split(text)) and "\0" not in text
    except ValueError:
        return False


def _is_number(value: object, least: float, *, open_: bool = False) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return least < value < 1e300 if open_ else least <= value < 1e300


def _is_amount(value: object) -> bool:
    try:
        return not isinstance(value, bool | float) and Decimal(str(value)) >= 0
    except InvalidOperation:
        return False


def _is_inside(path: object) -> bool:
    if not isinstance(path, str) or not path or "\0" in path:
        return False
    parts = Path(path).parts
    return not Path(path).is_absolute() and ".." not in parts and parts[:1] not in ((".git",), (FOLDER,), (LOG,))
