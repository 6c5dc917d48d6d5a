"""promptfoo's tests as rows: variables, and assertions of their own."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any

import attrs
import orjson

from .._kernel.pipeline.yaml_nodes import Node, Place
from .._kernel.values.errors import ConfigError
from .assertions import Carried, assertion_in, fault_finder
from .configuration import (
    Losses,
    column_name,
    data_of,
    file_named,
    items,
    mapping_of,
    node_of,
    read_node,
    read_text,
    rendered,
)

_KNOWN = {"vars", "assert", "threshold", "description", "metadata", "options"}
_READABLE = "write them to a CSV, YAML, JSON or JSON lines file, one name at a time"
_CSV = {"__description": "description", "__threshold": "threshold"}


@attrs.frozen
class Case:
    """A test with one choice of its variables: their values as promptfoo's prompts know them, *threshold*, and what of its assertions goes over."""

    place: Place
    names: Mapping[str, Any]
    carried: Carried
    threshold: float | None
    description: str | None

    def row(self) -> dict[str, Any]:
        """The columns of its row."""
        said = {} if self.description is None else {"description": self.description}
        return (
            said
            | {column_name(name): value for name, value in self.names.items()}
            | ({"assert": self.carried.checks} if self.carried.checks else {})
        )


def cases(configuration: Mapping[str, Node], losses: Losses) -> list[Case]:
    """All tests of the configuration, each as often as its lists of values ask for."""
    default = mapping_of(configuration.get("defaultTest"))
    found = []
    fault = fault_finder()
    said = items(configuration.get("tests"))
    tests = [one for node in said for one in _tests(node, losses)]
    if said and not tests:
        raise ConfigError(
            [node.place.problem(f"no test could be read from {data_of(node)}; {_READABLE}") for node in said]
        )
    for test in tests or [Node({}, next(iter(configuration.values())).place)]:
        given = mapping_of(test)
        for name in sorted(set(given) - _KNOWN):
            losses.add(
                given[name].place,
                f"{name} of a test",
                "dicast has no counterpart: leave it, or give these rows a pipeline of their own",
            )
        for owner in (given, default):
            for name, node in mapping_of(owner.get("options")).items():
                if name != "provider":
                    losses.add(node.place, f"option {name}", "write it into the prompt, or an extractor")
        bar = data_of(given.get("threshold", default.get("threshold")))
        threshold = bar if isinstance(bar, int | float) and 0 <= bar <= 1 else None
        for names in _combinations({**mapping_of(default.get("vars")), **mapping_of(given.get("vars"))}, losses):
            carried = Carried(losses, names, fault)
            for node in (*items(default.get("assert")), *items(given.get("assert"))):
                carried.add(node)
            found.append(Case(test.place, names, carried, threshold, data_of(given.get("description"))))
    return found


def _combinations(variables: Mapping[str, Node], losses: Losses) -> Iterator[dict[str, Any]]:
    """The values of the variables: every choice of one of each list, templates in them filled in."""
    values = [_values(name, node, losses) for name, node in variables.items()]
    for chosen in product(*values):
        names = dict(zip(variables, chosen, strict=True))
        yield {
            name: (rendered(value, names) or value) if isinstance(value, str) and "{{" in value else value
            for name, value in names.items()
        }


def _values(name: str, node: Node, losses: Losses) -> list[Any]:
    path = file_named(node)
    if path is None:
        value = data_of(node)
        return value if isinstance(value, list) else [value]
    if path.suffix in (".txt", ".md") and path.is_file():
        return [read_text(path)]
    losses.add(node.place, f"variable {name} from {node.value}", "write its value into the rows")
    return [""]


def _tests(node: Node, losses: Losses) -> Iterator[Node]:
    """The tests that *node* is, or that its file has."""
    if isinstance(node.value, dict):
        yield node
        return
    path = file_named(node) or (Path(node.place.file).parent / node.value if isinstance(node.value, str) else None)
    if path is None or not path.is_file() or path.suffix not in (".csv", ".yaml", ".yml", ".json", ".jsonl"):
        losses.add(
            node.place,
            f"tests from {node.value}",
            _READABLE,
        )
    elif path.suffix == ".csv":
        yield from _of_csv(path)
    elif path.suffix == ".jsonl":
        for number, line in enumerate(read_text(path).splitlines(), 1):
            if line.strip():
                place = Place(str(path), number, 1, path.parent)
                try:
                    yield node_of(orjson.loads(line), place)
                except orjson.JSONDecodeError as error:
                    raise ConfigError(place.problem(f"the line is not JSON: {error.msg}")) from error
    else:
        yield from items(read_node(path))


def _of_csv(path: Path) -> Iterator[Node]:
    reader = csv.DictReader(io.StringIO(read_text(path), newline=""))
    for row in reader:
        place = Place(str(path), reader.line_num, 1, path.parent)
        cells = {str(name).strip(): value or "" for name, value in row.items() if name is not None}
        test: dict[str, Any] = {"vars": {name: value for name, value in cells.items() if not name.startswith("__")}}
        for name, value in cells.items():
            if name in _CSV and value:
                test[_CSV[name]] = _number(value) if name == "__threshold" else value
            elif name.startswith("__") and not name.startswith("__expected") and value:
                test[name] = value
        checks = [
            one for name, text in cells.items() if name.startswith("__expected") for one in assertion_in(text, place)
        ]
        node = node_of(test, place)
        assert isinstance(node.value, dict)  # of a mapping
        yield attrs.evolve(node, value={**node.value, "assert": Node([*checks], place, place)})


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text
