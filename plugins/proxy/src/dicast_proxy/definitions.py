"""Files of JSON or YAML with tool schemas, read strictly: other programs share them and read them so."""

from __future__ import annotations

from pathlib import Path

import orjson

from dicast import ConfigError, Problem
from dicast.toolkit import yaml
from dicast.toolkit.files import read_bytes
from dicast.toolkit.json_values import inexact


def read_definitions(path: Path) -> object:
    """Return the data in the file at *path*: JSON where its name ends in ``.json``, else YAML (the core schema of YAML 1.2).

    :raises ConfigError: with the place of each problem.
    """
    try:
        content = read_bytes(path)
    except OSError as error:
        raise ConfigError(f"cannot read {path.name}: {error.strerror or error}") from error
    if path.suffix != ".json":
        return yaml.read_yaml(content, path.name).plain()
    content = content.removeprefix(b"\xef\xbb\xbf")
    try:
        content.decode()
        value = orjson.loads(content)
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path.name} is not UTF-8 at byte {error.start}; save the file as UTF-8") from error
    except orjson.JSONDecodeError as error:
        raise ConfigError(Problem(f"not JSON: {error.msg}", path.name, error.lineno, error.colno)) from error
    if (digits := inexact(content)) is not None:
        raise ConfigError(Problem(f"the number {digits:.40} needs more than 64 bits; write it as a string", path.name))
    return value
