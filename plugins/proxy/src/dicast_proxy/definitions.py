"""Reading a file of JSON or YAML strictly, for schemas are shared with other programs that read them so."""

from __future__ import annotations

import math
import re
from pathlib import Path

import orjson
import yaml

from dicast import ConfigError, Problem

_WORDS = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_INTEGER = re.compile(r"[-+]?[0-9]{1,300}")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_VALUES, _LEVELS = 100_000, 200


def read_definitions(path: Path) -> object:
    """The data in the file at *path*: JSON where its name ends in ``.json``, else YAML (the core schema of YAML 1.2).

    :raises ConfigError: naming the place of what is wrong.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"cannot read {path.name}: {error.strerror or error}") from error
    try:
        if path.suffix == ".json":
            return orjson.loads(content.removeprefix(b"\xef\xbb\xbf"))
        return _Reader(path.name).read(content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path.name} is not UTF-8 at byte {error.start}; save the file as UTF-8") from error
    except orjson.JSONDecodeError as error:
        raise ConfigError(Problem(f"not JSON: {error.msg}", path.name, error.lineno, error.colno)) from error


class _Reader:
    """Makes plain data of YAML; ``yes`` is a text, a key stands once, and aliases cannot grow into gigabytes."""

    def __init__(self, name: str) -> None:
        self._name, self._values = name, 0

    def read(self, text: str) -> object:
        try:
            root = yaml.compose(text, Loader=yaml.BaseLoader)
        except (yaml.YAMLError, RecursionError) as error:
            mark = getattr(error, "problem_mark", None)
            place = (None, None) if mark is None else (mark.line + 1, mark.column + 1)
            message = f"not valid YAML: {getattr(error, 'problem', None) or error}"
            raise ConfigError(Problem(message, self._name, *place)) from error
        return None if root is None else self._value(root, 0)

    def _value(self, node: yaml.Node, level: int) -> object:
        self._values += 1
        if self._values > _VALUES or level > _LEVELS:
            raise self._fault(node, f"more than {_VALUES:,} values, aliases expanded, or {_LEVELS} levels")
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, level)
        if isinstance(node, yaml.SequenceNode):
            return [self._value(item, level + 1) for item in node.value]
        return node.value if getattr(node, "style", None) is not None else _scalar(node.value)

    def _mapping(self, node: yaml.MappingNode, level: int) -> dict[str, object]:
        found = dict[str, object]()
        for key, item in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise self._fault(key, "a key must be text; quote one that begins with { or [")
            if key.value in found:
                raise self._fault(key, f"the key {key.value!r} is given twice; keep one")
            found[key.value] = self._value(item, level + 1)
        return found

    def _fault(self, node: yaml.Node, message: str) -> ConfigError:
        mark = node.start_mark
        return ConfigError(Problem(message, self._name, mark.line + 1, mark.column + 1))


def _scalar(text: str) -> object:
    """The value of what stands without quotes."""
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    return float(text) if _FLOAT.fullmatch(text) and math.isfinite(float(text)) else text
