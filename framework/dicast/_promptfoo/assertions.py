"""promptfoo's assertions as the checks of ``check/assertions``."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import attrs
import orjson

from .._kernel.contract.registry import Registry
from .._kernel.pipeline.build import load_pipeline
from .._kernel.pipeline.yaml_nodes import Node, Place
from .._kernel.values import Failure, Subject
from .._kernel.values.names import nearest
from .configuration import (
    Losses,
    as_text,
    column_name,
    data_of,
    file_named,
    mapping_of,
    node_of,
    renamed,
    rendered,
    variables_of,
)

RUBRIC = "llm-rubric"

_TEXTS = ("contains", "icontains", "equals", "starts-with", "regex")
_LISTS = ("contains-any", "contains-all", "icontains-any", "icontains-all")
_JSON = ("is-json", "contains-json")
_LIMITS = {"latency": ("max_latency", 1000.0), "cost": ("max_cost", 1.0)}
_KEPT = {"type", "value", "weight", "threshold", "metric", "description", "provider"}

_INSTEAD = {
    "javascript": "write it as a metric of your own (dicast new metric NAME), or as evaluator/command",
    "python": "write it as a metric of your own (dicast new metric NAME), or as evaluator/command",
    "webhook": "name the address in evaluator/http",
    "similar": "llm/judge with a criterion, or diff/similarity against a reference",
    "levenshtein": "diff/similarity against a reference",
    "rouge-n": "diff/similarity against a reference",
    "bleu": "diff/similarity against a reference",
    "factuality": "llm/judge with the criterion that the output agrees with the reference",
    "model-graded-closedqa": "llm/judge with its text as a criterion",
    "g-eval": "llm/judge with its text as a criterion",
    "assert-set": "write each row's checks with weights, and a threshold of check/assertions",
    "is-valid-openai-tools-call": "proxy/tool_params_schema",
}
_OTHERWISE = "dicast has no check of this name; a metric of your own does it (dicast new metric NAME)"

_EXPECTED = re.compile(r"(?P<type>(?:not-)?[a-z][a-z-]+)(?:\((?P<threshold>[\d.]+)\))?(?::(?P<value>.*))?", re.DOTALL)
_CODE = {"fn": "javascript", "eval": "javascript", "grade": RUBRIC}
_LONGEST = 200
_WITHOUT_VALUE = ("is-json", "contains-json", "latency", "cost")


Fault = Callable[[Mapping[str, Any], Mapping[str, Any]], str | None]


def fault_finder() -> Fault:
    """What says why ``check/assertions`` cannot ask a check in a row with certain names; nothing is said where it is not installed."""
    if "check" not in Registry().scan():
        return lambda *_: None
    (slot,) = load_pipeline({"metrics": ["check/assertions"]}, needs_source=False).metrics

    def fault(check: Mapping[str, Any], names: Mapping[str, Any]) -> str | None:
        context = {column_name(name): value for name, value in names.items()}
        row = Subject("row", "1", output="", context={**context, "latency_seconds": 0, "cost": 0, "assert": [check]})
        found = slot.component.score(row)
        message = found.message if isinstance(found, Failure) else None
        return message and message.removeprefix("assert: item 1: ").removeprefix(f"{check['check']}: ")[:_LONGEST]

    return fault


@attrs.define
class Carried:
    """What of a test's assertions goes over: *checks* of the row, and *rubrics* for a model, with their place.

    *fault* says why no row with these names can have a check.
    """

    losses: Losses
    names: Mapping[str, Any]
    fault: Fault
    checks: list[dict[str, Any]] = attrs.field(factory=list)
    rubrics: list[tuple[Place, str]] = attrs.field(factory=list)

    def add(self, node: Node) -> None:
        """Carry over one assertion, or note why not."""
        given = mapping_of(node)
        kind = data_of(given.get("type"))
        if kind == "assert-set" and "threshold" not in given:
            for one in given["assert"].value if "assert" in given and isinstance(given["assert"].value, list) else ():
                self.add(one)
            return
        if not isinstance(kind, str):
            self.losses.add(node.place, "an assertion without a type", "write it as {check, value} in the rows' assert")
            return
        name, negate = kind.removeprefix("not-"), kind.startswith("not-")
        weight = data_of(given.get("weight"))
        odd = sorted(set(given) - _KEPT)
        if odd:
            self.losses.add(
                node.place, f"{kind} with {', '.join(odd)}", "check what a task or an extractor makes of the output"
            )
        elif isinstance(weight, int | float) and weight < 0:
            self.losses.add(node.place, f"{kind} of weight {weight}", "a weight is above 0; not-… turns a check round")
        elif not isinstance(weight, int | float | None) or weight == 0:
            self.losses.add(node.place, f"{kind} of weight {weight}", "it decides nothing, and is left out")
        elif name == RUBRIC and not negate:
            self._rubric(given, node)
        elif (options := self._options(name, given)) is None:
            self.losses.add(node.place, kind, _INSTEAD.get(name) or _lack(name, given, self.names))
        else:
            check = options | ({"negate": True} if negate else {}) | ({} if weight is None else {"weight": weight})
            why = self.fault(check, self.names)
            if why is None:
                self.checks.append(check)
            else:
                self.losses.add(node.place, kind, f"check/assertions says: {why}")

    def _rubric(self, given: Mapping[str, Node], node: Node) -> None:
        text = self._filled(given["value"]) if "value" in given and isinstance(given["value"].value, str) else None
        if text is None:
            self.losses.add(node.place, RUBRIC, "llm/judge with its text as a criterion")
        else:
            self.rubrics.append((node.place, text))

    def _options(self, name: str, given: Mapping[str, Node]) -> dict[str, Any] | None:
        """The check with its value; None where there is none for it."""
        value = given.get("value")
        if name in _LIMITS:
            check, unit = _LIMITS[name]
            most = data_of(given.get("threshold"))
            return {"check": check, "value": most / unit} if isinstance(most, int | float) else None
        if value is not None and file_named(value) is not None:
            return None
        if name in _JSON:
            return self._schema(name, data_of(value))
        if name in _LISTS and value is not None:
            values = data_of(value)
            several = values if isinstance(values, list) else next(csv.reader([str(values)], skipinitialspace=True), [])
            texts = [self._filled(node_of(one, value.place)) for one in several]
            case = {"ignore_case": True} if name.startswith("i") else {}
            return None if None in texts else {"check": name.removeprefix("i"), "value": texts, **case}
        if name in _TEXTS and value is not None:
            filled = (
                data_of(value) if name == "equals" and isinstance(value.value, dict | list) else self._filled(value)
            )
            return None if filled is None else {"check": name, "value": filled}
        return None

    def _schema(self, name: str, schema: Any) -> dict[str, Any] | None:
        if isinstance(schema, str):
            try:
                schema = orjson.loads(schema)
            except orjson.JSONDecodeError:
                return None
        return {"check": name} if schema is None else {"check": name, "value": schema}

    def _filled(self, node: Node) -> str | None:
        """The text of *node*, as a template where the row has all texts that it names; else as it is for this row."""
        text = as_text(data_of(node))
        if any(name.partition(".")[0] not in self.names for name in variables_of(text)):
            return None  # promptfoo would look for an empty text, which every output contains
        if all(isinstance(self.names.get(name), str) for name in variables_of(text)) and rendered(text, {}) is not None:
            return renamed(text)
        return rendered(text, self.names)


def _lack(name: str, given: Mapping[str, Node], names: Mapping[str, Any]) -> str:
    """What keeps an assertion *name* from becoming a check of a test with the variables *names*."""
    known = (*_TEXTS, *_LISTS, *_JSON, *_LIMITS)
    if name not in known:
        near = nearest(name, (*known, *_INSTEAD, RUBRIC))
        return f"did you mean {near}?" if near else _OTHERWISE
    value = given.get("value")
    if value is not None and file_named(value) is not None:
        return f"write what {value.value} has into the configuration"
    if name in _LIMITS:
        return "it needs a threshold that is a number"
    unknown = [one for one in variables_of(as_text(data_of(value))) if one.partition(".")[0] not in names]
    if unknown:
        return f"its test has no variable {unknown[0]}: write the value itself"
    return "it needs a value" if value is None else "its value is more than texts with names in braces, or no JSON"


def assertion_in(text: str, place: Place) -> Iterator[Node]:
    """The assertion in a cell of a column ``__expected``; nothing in an empty one."""
    text = text.strip()
    if not text:
        return
    match = _EXPECTED.fullmatch(text)
    kind = _CODE.get(match["type"], match["type"]) if match else "equals"
    named = match is not None and (match["value"] is not None or match["threshold"] or kind in _WITHOUT_VALUE)
    if match is None or not named or not _is_known(kind):
        yield node_of({"type": "equals", "value": text}, place)
        return
    made: dict[str, Any] = {"type": kind} | ({"value": match["value"].strip()} if match["value"] else {})
    threshold = match["threshold"] or (match["value"] if kind in _LIMITS else None)
    yield node_of(made | ({"threshold": float(threshold)} if threshold else {}), place)


def _is_known(kind: str) -> bool:
    name = kind.removeprefix("not-")
    return name in (*_TEXTS, *_LISTS, *_JSON, *_LIMITS, *_INSTEAD, RUBRIC)
