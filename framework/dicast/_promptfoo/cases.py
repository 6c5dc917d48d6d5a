"""promptfoo's tests as rows with their variables and their assertions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs
import orjson

from .._kernel.values.errors import ConfigError
from ..toolkit.yaml.nodes import Node, Place
from .assertions import Carried, Setting, is_share
from .cells import csv_tests
from .configuration import Folders, column_name, data_of, follow, items, mapping_of, node_of, read_node, read_text
from .kinds import JUDGED
from .variables import refuse_many, variables

_READABLE = "write them to a CSV, YAML, JSON or JSON lines file"
_FILES = (".csv", ".yaml", ".yml", ".json", ".jsonl")
_KEYS = {"vars", "assert", "threshold", "description", "metadata", "options"}
_IDLE = {"provider", "disableVarExpansion", "disableDefaultAsserts", "runSerially", "disableConversationVar"}
"""Options of a test that need no conversion: they are read elsewhere, or change neither its output nor its verdict."""

_GRADING = {"rubricPrompt", "factuality"}
"""Options that change the verdict of model-graded assertions."""

_CHANGES = "it changes the output or the verdict of these rows: give them a pipeline of their own"


@attrs.frozen
class Case:
    """A test with one combination of the values of its variables (*names*), its *threshold*, and its assertions (*carried*)."""

    place: Place
    names: Mapping[str, Any]
    carried: Carried
    threshold: float | None
    description: str | None

    def row(self) -> dict[str, Any]:
        """Return the columns of its row."""
        checks, lost = self.carried.items, [loss.line for loss in self.carried.lost]
        row: dict[str, Any] = {} if self.description is None else {"description": self.description}
        row |= {column_name(name): value for name, value in self.names.items()}
        if any(_has_code(child) for child in checks):
            row["vars"] = dict(self.names)
        return row | ({"assert": checks} if checks else {}) | ({"not_carried": lost} if lost else {})


def _has_code(item: Mapping[str, Any]) -> bool:
    return "file" in item or any(map(_has_code, item.get("assert", ())))


def cases(setting: Setting) -> list[Case]:
    """Return all tests of the configuration, each once for every combination of its lists of values.

    :raises ConfigError: if no test can be read, or there would be too many rows.
    """
    default = default_test(setting.root, setting.folders)
    named = items(setting.root.get("tests"))
    tests = [test for node in named for test in _tests(node, setting)]
    tests += _scenario_tests(setting)
    if named and not tests:
        raise ConfigError(
            [node.place.problem(f"no test could be read from {data_of(node)}; {_READABLE}") for node in named]
        )
    result: list[Case] = []
    for test in tests or [Node({}, next(iter(setting.root.values())).place)]:
        result += _of_test(test, default, setting, len(result))
    if any(case.carried.count for case in result):
        for case in result:
            _lose_unasserted(case)
    return result


def _lose_unasserted(case: Case) -> None:
    if case.carried.count == 0 and not case.carried.lost:
        why = "promptfoo passes it without looking; give it an assertion"
        case.carried.lose(case.place, "a test without an assertion", why)


def default_test(root: Mapping[str, Node], folders: Folders) -> Mapping[str, Node]:
    """Return the test with the defaults of all tests, which may be in a file."""
    node = root.get("defaultTest")
    path = None if node is None else folders.file(node)
    return mapping_of(node if path is None else read_node(path))


def _of_test(test: Node, default: Mapping[str, Node], setting: Setting, before: int) -> Iterator[Case]:
    """Yield the rows of *test*; *before* is the number of rows of earlier tests."""
    keys = mapping_of(test)
    options = {**mapping_of(default.get("options")), **mapping_of(keys.get("options"))}
    expand = data_of(options.get("disableVarExpansion")) is not True
    values = variables([default.get("vars"), keys.get("vars")], setting.folders, expand=expand)
    refuse_many(before + values.rows, test, values.sizes())
    asserts = [] if data_of(options.get("disableDefaultAsserts")) is True else items(default.get("assert"))
    asserts = [*asserts, *items(keys.get("assert"))]
    threshold = data_of(keys.get("threshold", default.get("threshold")))
    for names in values.combinations():
        carried = Carried(setting, names)
        _lose_keys(carried, keys, default, _changing(options, asserts))
        for name, (node, why) in values.unreadable.items():
            carried.lose(node.place, f"variable {name} from {data_of(node)}", why)
        for node in asserts:
            carried.add(_with_grader(node, options))
        if threshold is not None and not is_share(threshold):
            carried.lose(test.place, f"threshold {threshold!r}", "a threshold is a number in [0, 1]")
        share = threshold if is_share(threshold) else None
        yield Case(test.place, names, carried, share, data_of(keys.get("description")))


def _lose_keys(
    carried: Carried, keys: Mapping[str, Node], default: Mapping[str, Node], options: Mapping[str, Node]
) -> None:
    """Record the keys of a test and of the default test that change its rows and cannot be converted."""
    for name, node in sorted({**default, **keys}.items()):
        if name not in _KEYS:
            carried.lose(node.place, f"{name} of a test", _CHANGES)
    for name, node in options.items():
        why = "llm/judge has its own form; write what it asks for into criteria" if name in _GRADING else _CHANGES
        carried.lose(node.place, f"option {name}", why)


def _changing(options: Mapping[str, Node], asserts: list[Node]) -> Mapping[str, Node]:
    """Return the options that change the output or the verdict of a test with these assertions."""
    idle = _IDLE if any(map(_is_judged, asserts)) else _IDLE | _GRADING
    return {name: node for name, node in options.items() if name not in idle}


def _is_judged(node: Node) -> bool:
    keys = mapping_of(node)
    kind = str(data_of(keys.get("type"))).removeprefix("not-")
    return kind in JUDGED or any(map(_is_judged, items(keys.get("assert"))))


def _with_grader(node: Node, options: Mapping[str, Node]) -> Node:
    """Return the assertion *node*; without a grader it gets the grader of its test."""
    keys, grader = mapping_of(node), options.get("provider")
    if grader is None or not keys or "provider" in keys:
        return node
    inner = keys.get("assert")
    extra = {"provider": grader}
    if inner is not None and isinstance(inner.value, list):
        extra = {"assert": attrs.evolve(inner, value=[_with_grader(child, options) for child in inner.value])}
    return attrs.evolve(node, value={**keys, **extra})


def _tests(node: Node, setting: Setting) -> Iterator[Node]:
    """Yield the test *node*, or the tests in the files that it names."""
    node = follow(node, setting.root)
    keys = mapping_of(node)
    if keys and "path" not in keys:
        yield node
        return
    named = keys.get("path", node)
    name = str(named.value)
    paths = setting.folders.matches(name, named.place) if "://" not in name.removeprefix("file://") else []
    if not paths or any(path.suffix not in _FILES for path in paths):
        setting.losses.add(node.place, f"tests from {name}", _READABLE)
    for path in paths:
        if path.suffix == ".csv":
            yield from csv_tests(path)
        elif path.suffix == ".jsonl":
            yield from _lines(path)
        elif path.suffix in _FILES:
            for child in items(read_node(path)):
                yield from _tests(child, setting) if isinstance(child.value, str) else [follow(child, setting.root)]


def _scenario_tests(setting: Setting) -> Iterator[Node]:
    """Yield the tests of each scenario with each of its configurations, whose variables and assertions come first."""
    for named in items(setting.root.get("scenarios")):
        path = setting.folders.file(named)
        for node in [named] if path is None else items(read_node(path)):
            keys, empty = mapping_of(follow(node, setting.root)), [Node({}, node.place)]
            configurations = [
                child_test for child in items(keys.get("config")) for child_test in _tests(child, setting)
            ]
            tests = [child_test for child in items(keys.get("tests")) for child_test in _tests(child, setting)]
            for configuration in configurations or empty:
                for test in tests or empty:
                    yield _laid_over(configuration, test)


def _laid_over(below: Node, above: Node) -> Node:
    """Return a test with the keys of both tests: *above* wins, assertions are joined, variables and options are merged."""
    lower, upper = mapping_of(below), mapping_of(above)
    keys = {**lower, **upper}
    for name in ("vars", "options"):
        if name not in lower or name not in upper:
            continue
        if isinstance(lower[name].value, dict) and isinstance(upper[name].value, dict):
            keys[name] = attrs.evolve(upper[name], value={**mapping_of(lower[name]), **mapping_of(upper[name])})
        else:  # a file of variables, whose test is not judged
            keys[f"scenario with {name} from a file"] = upper[name]
    if asserts := [*items(lower.get("assert")), *items(upper.get("assert"))]:
        keys["assert"] = Node(asserts, above.place)
    return Node(keys, above.place if upper else below.place)


def _lines(path: Path) -> Iterator[Node]:
    for number, line in enumerate(read_text(path).splitlines(), 1):
        if line.strip():
            place = Place(str(path), number, 1, path.parent)
            try:
                yield node_of(orjson.loads(line), place)
            except orjson.JSONDecodeError as error:
                raise ConfigError(place.problem(f"the line is not JSON: {error.msg}")) from error
