"""JSON Schema of the pipeline file for editors, with the options of every installed plugin."""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

import attrs

from ..contract.kinds import KINDS, Component, parts, summary
from ..contract.registry import Registry
from ..plan.clauses import Clause
from ..plan.sections import Budget, Label, Plugins, Scoring, SlotOptions, SourceOptions, TaskOptions
from ..values import Cost, InputPath, Rubric, Secret
from ..values.bounds import Within
from ..values.errors import PluginError
from ..values.score import DECIMAL, MONEY, MOST, NOT_NEGATIVE, UNITS
from . import types as hints
from .clause import clause_classes
from .describe import describe

Schema = dict[str, Any]

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_PARAM = re.compile(r":param (\w+):\s*(.+?)(?=\n:|\n\n|\Z)", re.DOTALL)
_EXPERIMENT = {
    "type": ["object", "null"],
    "properties": {
        "variables": {"type": "object", "additionalProperties": {"type": ["string", "number", "boolean"]}},
        "set": {"type": "object"},
    },
    "additionalProperties": False,
}
_AMOUNT = {"type": "string", "pattern": MONEY.pattern}
_ONE_PER_UNIT = [{"contains": {"pattern": rf"{unit}\s*$"}, "minContains": 0, "maxContains": 1} for unit in UNITS]
_TYPES: Mapping[Any, Schema] = {
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    str: {"type": "string"},
    type(None): {"type": "null"},
    Decimal: {
        "type": ["number", "string"],
        "pattern": DECIMAL.pattern,
        "exclusiveMaximum": MOST,
    },
    Path: {"type": "string"},
    InputPath: {"type": "string"},
    Secret: {"type": "string"},
    Rubric: {"type": "string"},
    Cost: _AMOUNT,
}

_MOST = 2**63  # JSON writers accept no larger number
_LIMITS = {">=": "minimum", ">": "exclusiveMinimum", "<=": "maximum", "<": "exclusiveMaximum"}
"""Keywords of JSON Schema for the operators of attrs' validators."""

_SOME = attrs.validators.ge(0)
_ALTERNATIVES = (type(attrs.validators.or_(_SOME, _SOME)), type(attrs.validators.not_(_SOME)))
"""Validators of attrs with nested validators that may fail."""

_SLOT_CLASSES: Mapping[str, type[Any]] = {
    **dict.fromkeys(("metric", "judge", "preset"), SlotOptions),
    **dict.fromkeys(("sink", "extractor", "aggregate", "early_stop", "comparison"), Label),
    "source": SourceOptions,
    "task": TaskOptions,
}
"""Class of the slot options next to a component's own options, by its kind."""


def json_schema(registry: Registry) -> tuple[Schema, Mapping[str, str]]:
    """Load every plugin; return the JSON Schema (draft 2020-12), and the errors of plugins that are left out."""
    plugins = registry.load_all().values()
    broken = {plugin.name: plugin.error for plugin in plugins if plugin.error}
    offered = [component_ for plugin in plugins for component_ in plugin.components or ()]
    definitions: Schema = {}
    for component in sorted(offered, key=lambda component_: (component_.kind, component_.name)):
        try:
            definitions |= _component(component)
        except PluginError as error:
            broken[component.name] = str(error)
    offered = [component_ for component_ in offered if f"{component_.kind}:{component_.name}" in definitions]
    for kind, also in {kind: (kind, *entry.also) for kind, entry in KINDS.items()}.items():
        matching = [component_ for component_ in offered if component_.kind in also]
        definitions[kind] = _choice(matching, "")
        if kind in _SLOT_CLASSES:
            definitions[f"{kind}:slot"] = _choice(matching, ":slot")
    clause, errors = _clause()
    return _pipeline(definitions, clause), broken | errors


def _clause() -> tuple[Schema, dict[str, str]]:
    """Return the JSON Schema of a clause of the gate with the keys of plugins, and the errors of plugins by key."""
    classes, errors = clause_classes()
    schema = options_schema(Clause)
    properties = dict(schema["properties"])
    for cls in classes:
        properties |= options_schema(cls)["properties"]
    return schema | {"properties": properties}, errors


def _sections(clause: Schema) -> Schema:
    """Return the JSON Schema of each section."""
    metrics = {"type": "array", "items": {"anyOf": [_ref("metric:slot"), _ref("preset:slot")]}}
    return {
        "name": {"type": "string"},
        "include": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
        "define": {"type": "object", "additionalProperties": {"anyOf": [_ref(kind) for kind in KINDS]}},
        "source": _ref("source:slot"),
        "task": _ref("task:slot"),
        "metrics": {"anyOf": [metrics, _object({"proxy": metrics, "truth": metrics})]},
        "scoring": options_schema(Scoring),
        "judges": _list("judge:slot"),
        "extractors": _list("extractor:slot"),
        "aggregates": _list("aggregate:slot"),
        "early_stop": _list("early_stop:slot"),
        "baseline": _object({"run": {"type": "string"}, "compare": _list("comparison:slot")}) | {"required": ["run"]},
        "experiments": {"type": "object", "additionalProperties": _EXPERIMENT},
        "budget": options_schema(Budget),
        "gate": _one_or_more(clause),
        "sinks": _list("sink:slot"),
        "ledger": _ref("ledger"),
        "executor": _ref("executor"),
        "disabled": {"type": "boolean"},
        "plugins": options_schema(Plugins),
        "trust": {"type": "array", "items": {"type": "string"}},
    }


def _pipeline(definitions: Schema, clause: Schema) -> Schema:
    one_of = ("metrics", "judges", "task", "extractors")
    needs = {"anyOf": [{"required": [section]} for section in one_of], "required": ["source"]}
    return {
        "$schema": _DIALECT,
        "title": "dicast pipeline",
        **_object(_sections(clause)),
        **needs,
        "$defs": definitions,
    }


def _component(component: Component) -> Schema:
    """Return the definitions of a component's options, without and with the options of its slot."""
    name, slot_class = f"{component.kind}:{component.name}", _SLOT_CLASSES.get(component.kind)
    options = options_schema(component.cls)
    if slot_class is None:
        return {name: options}
    slot = options | {"properties": {**options_schema(slot_class)["properties"], **options["properties"]}}
    also = {f"metric:{component.name}:slot": slot} if component.kind == "judge" else {}
    return {name: options, f"{name}:slot": slot, **also}


def _choice(components: list[Component], suffix: str) -> Schema:
    """Return the schema of a place for one of *components*: a name, a name with options, or a name under ``define``."""
    bare = [component.name for component in components if not options_schema(component.cls)["required"]]
    with_options = [
        _object({component.name: _ref(f"{component.kind}:{component.name}{suffix}")}) | {"required": [component.name]}
        for component in components
    ]
    return {"anyOf": [{"enum": bare}, {"type": "string", "pattern": "^[^/]+$"}, *with_options]}


def options_schema(cls: type[Any]) -> Schema:
    """Return the JSON Schema of the options of *cls*, with their descriptions from its docstring."""
    texts = [
        inspect.cleandoc(base.__doc__ or "") for base in reversed(cls.__mro__) if attrs.has(base)
    ]  # options are inherited
    descriptions = {name: " ".join(words.split()) for text in texts for name, words in _PARAM.findall(text)}
    fields = [field for field in hints.fields(cls) if hints.keys(field)]
    properties: Schema = {}
    for field in fields:
        about = {"description": descriptions[field.name]} if field.name in descriptions else {}
        about = _type(field.type) | _bounds(field.validator) | _default(field) | about
        properties |= dict.fromkeys(hints.keys(field), about)
    required = [hints.keys(field)[0] for field in fields if field.default is attrs.NOTHING]
    return {"description": summary(cls), **_object(properties), "required": required}


def _bounds(validator: object) -> Schema:
    """Return the smallest and largest number, as far as *validator* is dicast's, attrs' or a combination of them."""
    inside: list[Any] = [*parts(validator)]
    if any(isinstance(part, _ALTERNATIVES) for part in inside):
        return {}
    comparisons: list[tuple[str, Any]] = [
        (part.compare_op, part.bound) for part in inside if hasattr(part, "compare_op")
    ]
    for part in inside:
        if isinstance(part, Within):
            comparisons += [(">", part.low), ("<", part.high)] if part.open else [(">=", part.low), ("<=", part.high)]
    numbers = [(_LIMITS[word], bound) for word, bound in comparisons if isinstance(bound, int | float | Decimal)]
    limits: Schema = {
        word: part if isinstance(part, int) else float(part) for word, part in numbers if -_MOST <= part <= _MOST
    }
    texts = (
        {"pattern": NOT_NEGATIVE.pattern}
        if any(isinstance(bound, Decimal) and bound >= 0 for _, bound in numbers)
        else {}
    )
    return limits | texts


def _default(field: attrs.Attribute[Any]) -> Schema:
    default: Any = field.default
    if isinstance(default, attrs.Factory):  # type: ignore[arg-type]  # a class, although attrs' stubs declare a function
        if default.takes_self:
            return {}
        default = default.factory()
    if default is attrs.NOTHING or default is None or hints.mentions(field.type, Cost):
        return {}
    return {"default": describe(default, {}, {})}


def _type(annotation: Any) -> Schema:
    kinds = hints.kinds(annotation)
    if kinds and annotation == KINDS[kinds[0]].protocol:
        return _ref(kinds[0])
    if len(hints.members(annotation)) > 1:
        return {"anyOf": [_type(member) for member in hints.members(annotation)]}
    origin, args = typing.get_origin(annotation) or annotation, typing.get_args(annotation)
    if origin is Literal:
        return {"enum": list(args)}
    if annotation in _TYPES:
        return dict(_TYPES[annotation])
    if origin in hints.SEQUENCES:
        return {"type": "array"} | _items(origin, args) | ({"allOf": _ONE_PER_UNIT} if args[:1] == (Cost,) else {})
    if origin in hints.MAPPINGS:
        return {"type": "object"} | ({"additionalProperties": _type(args[1])} if args else {})
    return options_schema(annotation) if attrs.has(annotation) else {}


def _items(origin: Any, args: tuple[Any, ...]) -> Schema:
    if origin is tuple and args and args[-1] is not Ellipsis:
        return {"prefixItems": [_type(item) for item in args], "minItems": len(args), "maxItems": len(args)}
    return {"items": _type(args[0])} if args else {}


def _object(properties: Schema) -> Schema:
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _one_or_more(schema: Schema) -> Schema:
    """Return a schema for *schema* or a list of it; without anyOf, so that editors report the errors of the intended form."""
    several = {"type": "array", "items": schema, "minItems": 1}
    return {"if": {"type": "array"}, "then": several, "else": schema}


def _list(definition: str) -> Schema:
    return {"type": "array", "items": _ref(definition)}


def _ref(definition: str) -> Schema:
    return {"$ref": f"#/$defs/{definition.replace('/', '~1')}"}
