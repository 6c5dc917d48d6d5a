"""Reader of rubrics: installed rubrics by id, or files."""

from __future__ import annotations

import importlib
import importlib.resources
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

from ...toolkit.files import error_reason, read_text
from ...toolkit.installing import installer
from ...toolkit.yaml.reader import Composer
from ..contract.plugin_errors import error_text
from ..contract.registry import Offer, rubrics
from ..contract.requirements import refuse_conflicts
from ..values import Rubric
from ..values.errors import ConfigError, PluginError, Problem
from ..values.names import nearest
from .yaml_nodes import Place, to_data

SUFFIXES = (".yaml", ".yml", ".md")
_RUBRICS = "dicast-rubrics"
_FENCE = "---"
_VERSION_DIGITS = 12


def load_rubric(text: str, base: Path) -> Rubric:
    """Return the rubric *text*: the id of an installed rubric, or a path (recognized by its suffix) relative to *base*.

    :raises ConfigError: when there is none, or it is not a rubric.
    :raises PluginError: when its distribution is broken, or another distribution has the same id.
    """
    if text.endswith(SUFFIXES):
        return _file(text, base / text)
    installed = rubrics()
    offer = installed.get(text)
    if offer is None:
        message = f"unknown rubric {text!r} (installed: {', '.join(sorted(installed)) or 'none'}); a file ends in .yaml or .md"
        if not any(other.distribution == _RUBRICS for other in installed.values()):
            message += f". The rubrics of dicast are in {_RUBRICS}: {installer()} install {_RUBRICS}"
        raise ConfigError(Problem(message, value=text, hint=nearest(text, installed)))
    rubric = _resource(offer)
    if rubric.id != text:
        raise PluginError(f"rubric {text!r} of {offer.distribution} {offer.version} has the id {rubric.id!r}")
    return rubric


def _file(name: str, path: Path) -> Rubric:
    try:
        text = read_text(path)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(Problem(f"cannot read the rubric {name}: {error_reason(error)}", value=name)) from error
    return read_rubric(name, text)


def _resource(offer: Offer) -> Rubric:
    owner = f"rubric {offer.name!r} ({offer.distribution} {offer.version})"
    if offer.error:
        raise PluginError(offer.error)
    refuse_conflicts(owner, offer.distribution)
    try:
        folder = importlib.resources.files(importlib.import_module(offer.target))
        files = [folder / f"{offer.name}{suffix}" for suffix in SUFFIXES]
        resource = next((file for file in files if file.is_file()), None)
        text = None if resource is None else resource.read_text(encoding="utf-8")
    except Exception as error:  # code and files of another distribution
        raise PluginError(f"{owner} cannot be read: {type(error).__name__}: {error_text(error)}") from error
    if resource is None or text is None:
        raise PluginError(f"{owner}: there is no {offer.name}.yaml and no {offer.name}.md in {offer.target}")
    return read_rubric(resource.name, text)


def read_rubric(name: str, text: str) -> Rubric:
    """Read a rubric from the *text* of the file *name*: YAML, or Markdown that begins with YAML between two ``---``.

    A YAML rubric with dimensions may leave out ``id`` and ``version``: its id is its ``name``, and its version is the first 12 digits of its SHA-256.

    :raises ConfigError: when *text* has neither form, or lacks ``id`` or ``version``.
    """
    data = _yaml(name, _front_matter(name, text) if name.endswith(".md") else text)
    if "dimensions" in data and not name.endswith(".md"):
        digest = sha256(text.encode()).hexdigest()[:_VERSION_DIGITS]
        data = {"id": data.get("name", Path(name).stem), "version": digest, **data}
    missing = [key for key in ("id", "version") if not isinstance(data.get(key), str)]
    if missing:
        advice = "; quote a version that is a number" if "version" in data else ""
        raise ConfigError(Problem(f"{name} needs {' and '.join(missing)} as text{advice}", file=name, value=name))
    return Rubric(str(data["id"]), str(data["version"]), text, data)


def _front_matter(name: str, text: str) -> str:
    lines = text.removeprefix("\ufeff").splitlines()
    if not lines or lines[0].rstrip() != _FENCE or _FENCE not in (line.rstrip() for line in lines[1:]):
        message = f"{name} must begin with id and version between two lines {_FENCE}"
        raise ConfigError(Problem(message, file=name, value=name))
    end = next(number for number, line in enumerate(lines) if number and line.rstrip() == _FENCE)
    return "\n".join(("", *lines[1:end]))  # the empty line preserves the line numbers


def _yaml(name: str, text: str) -> Mapping[str, object]:
    problems: list[Problem] = []
    data = to_data(Composer(Place(name, 1, 1, Path()), problems).compose(text))
    if problems:
        raise ConfigError(problems)
    if not isinstance(data, dict):
        raise ConfigError(Problem(f"{name} must be a mapping with id and version", file=name, line=1, column=1))
    return data
