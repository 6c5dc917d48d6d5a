"""The cells of a CSV file of tests: variables, assertions and settings of the test."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from .._kernel.values.errors import ConfigError
from ..toolkit.yaml.nodes import Node, Place
from .configuration import node_of, read_text
from .kinds import CARRIED, INSTEAD
from .lists import comma_separated

_EXPECTED = re.compile(
    r"(?P<negated>not-)?(?P<type>[a-z][a-z0-9:-]*?)(?:\((?P<threshold>\d+(?:\.\d+)?)\))?(?::(?P<value>.*))?", re.DOTALL
)
_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?")
_CODE = {"javascript:": "javascript", "fn:": "javascript", "eval:": "javascript", "python:": "python"}
_RUBRICS = ("grade:", "llm-rubric:")
_LISTS = ("contains-all", "contains-any", "icontains-all", "icontains-any")
_LIMITED = ("cost", "latency", "levenshtein", "rouge-n")
_LIMIT = 0.75
"""promptfoo's default threshold for a cell without one."""

_OPTIONS = {"__prefix": "prefix", "__suffix": "suffix"}
_IDLE = ("__metadata",)


def csv_tests(path: Path) -> Iterator[Node]:
    """Yield the tests of the CSV file *path*, one for each row."""
    reader = csv.DictReader(io.StringIO(read_text(path).removeprefix("\ufeff"), newline=""))
    for row in reader:
        place = Place(str(path), reader.line_num, 1, path.parent)
        cells = {str(name).strip(): value or "" for name, value in row.items() if name is not None}
        yield node_of(_test(cells, place), place)


def _test(cells: Mapping[str, str], place: Place) -> dict[str, Any]:
    test: dict[str, Any] = {"vars": {name: text for name, text in cells.items() if not name.startswith("__")}}
    texts = [text.strip() for name, text in cells.items() if name.startswith("__expected")]
    asserts = [assertion(text) for text in texts if text]
    for name, text in cells.items():
        if not name.startswith("__") or name.startswith(("__expected", *_IDLE)) or not text.strip():
            continue
        if name in _OPTIONS:
            test.setdefault("options", {})[_OPTIONS[name]] = text
        elif name == "__description":
            test["description"] = text
        elif name == "__threshold":
            test |= {} if _number(text) is None else {"threshold": _number(text)}
        elif name == "__metric":
            asserts = [{**check, "metric": text} for check in asserts]
        elif name.startswith("__config:"):
            _configure(name, text, asserts, place)
        else:
            test[name.removeprefix("__")] = text
    return test | {"assert": asserts}


def _configure(name: str, text: str, asserts: list[dict[str, Any]], place: Place) -> None:
    match = re.fullmatch(r"__config:__expected(\d*):threshold", name)
    number = _number(text)
    if match is None or number is None:
        raise ConfigError(place.problem(f"{name}: {text!r:.40} is no threshold of a column __expected; write a number"))
    index = int(match[1] or 1) - 1
    if index < len(asserts):
        asserts[index]["threshold"] = number


def assertion(text: str) -> dict[str, Any]:
    """Return the assertion of a cell ``__expected``, which is not empty."""
    for prefix, kind in _CODE.items():
        if text.startswith(prefix):
            return {"type": kind, "value": text[len(prefix) :].strip()}
    for prefix in _RUBRICS:
        if text.startswith(prefix):
            return {"type": "llm-rubric", "value": text[len(prefix) :]}
    if text.startswith("file://"):
        path = text.removeprefix("file://").partition(":")[0]
        if path.endswith((".js", ".cjs", ".mjs", ".ts")):
            return {"type": "javascript", "value": text}
        if path.endswith(".py"):
            return {"type": "python", "value": text}
    match = _EXPECTED.fullmatch(text)
    if match is None or match["type"] not in (*CARRIED, *INSTEAD):
        return {"type": "equals", "value": text}
    kind, value = match["type"], match["value"]
    entry: dict[str, Any] = {"type": f"{match['negated'] or ''}{kind}"}
    if kind in _LISTS and value:
        entry["value"] = _listed(value)
    elif value is not None:
        entry["value"] = value if kind in ("is-json", "contains-json") else value.strip()
    if kind in _LIMITED:
        entry["threshold"] = _LIMIT if match["threshold"] is None else float(match["threshold"])
    return entry


def _listed(value: str) -> list[str] | str:
    try:
        return comma_separated(value)
    except ValueError:
        return value  # the assertion itself says what is wrong


def _number(text: str) -> float | None:
    return float(text) if _NUMBER.fullmatch(text.strip()) else None
