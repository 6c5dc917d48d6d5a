"""The JSON Schema of the pipeline file, for editors, with the options of every plugin that is installed."""

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
_ONE_A_UNIT = [{"contains": {"pattern": rf"{unit}\s*$"}, "minContains": 0, "maxContains": 1} for unit in UNITS]
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

_MOST = 2**63  # of what JSON writers take
_LIMITS = {">=": "minimum", ">": "exclusiveMinimum", "<=": "maximum", "<": "exclusiveMaximum"}
"""The words of JSON Schema for what attrs' validators compare with."""

_SOME = attrs.validators.ge(0)
_ALTERNATIVES = (type(attrs.validators.or_(_SOME, _SOME)), type(attrs.validators.not_(_SOME)))
"""attrs' validators with others inside that need not hold."""

_BESIDE: Mapping[str, type[Any]] = {
    **dict.fromkeys(("metric", "judge", "preset"), SlotOptions),
    **dict.fromkeys(("sink", "extractor", "aggregate", "early_stop", "comparison"), Label),
    "source": SourceOptions,
    "task": TaskOptions,
}
"""What may stand beside a component's own options, by its kind."""


def json_schema(registry: Registry) -> tuple[Schema, Mapping[str, str]]:
    """Load every plugin; return the JSON Schema (draft 2020-12), and what is wrong with the plugins that are left out."""
    plugins = registry.load_all().values()
    broken = {plugin.name: plugin.error for plugin in plugins if plugin.error}
    offered = [one for plugin in plugins for one in plugin.components or ()]
    definitions: Schema = {}
    for component in sorted(offered, key=lambda one: (one.kind, one.name)):
        try:
            definitions |= _component(component)
        except PluginError as error:
            broken[component.name] = str(error)
    offered = [one for one in offered if f"{one.kind}:{one.name}" in definitions]
    for kind, also in {kind: (kind, *entry.also) for kind, entry in KINDS.items()}.items():
        mine = [one for one in offered if one.kind in also]
        definitions[kind] = _choice(mine, "")
        if kind in _BESIDE:
            definitions[f"{kind}:slot"] = _choice(mine, ":slot")
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
    """The definitions of a component's options, and of its options with those of its slot beside them."""
    name, beside = f"{component.kind}:{component.name}", _BESIDE.get(component.kind)
    options = options_schema(component.cls)
    if beside is None:
        return {name: options}
    slot = options | {"properties": {**options_schema(beside)["properties"], **options["properties"]}}
    also = {f"metric:{component.name}:slot": slot} if component.kind == "judge" else {}
    return {name: options, f"{name}:slot": slot, **also}


def _choice(components: list[Component], suffix: str) -> Schema:
    """What may stand where one of *components* is expected: a name, a name with options, a name under ``define``."""
    bare = [one.name for one in components if not options_schema(one.cls)["required"]]
    given = [
        _object({one.name: _ref(f"{one.kind}:{one.name}{suffix}")}) | {"required": [one.name]} for one in components
    ]
    return {"anyOf": [{"enum": bare}, {"type": "string", "pattern": "^[^/]+$"}, *given]}


def options_schema(cls: type[Any]) -> Schema:
    """The JSON Schema of the options of *cls*, with what its docstring says of each."""
    texts = [
        inspect.cleandoc(one.__doc__ or "") for one in reversed(cls.__mro__) if attrs.has(one)
    ]  # options are inherited
    said = {name: " ".join(words.split()) for text in texts for name, words in _PARAM.findall(text)}
    fields = [field for field in hints.fields(cls) if hints.keys(field)]
    properties: Schema = {}
    for field in fields:
        about = {"description": said[field.name]} if field.name in said else {}
        about = _type(field.type) | _bounds(field.validator) | _default(field) | about
        properties |= dict.fromkeys(hints.keys(field), about)
    required = [hints.keys(field)[0] for field in fields if field.default is attrs.NOTHING]
    return {"description": summary(cls), **_object(properties), "required": required}


def _bounds(validator: object) -> Schema:
    """How small and how large a number may be, as far as *validator* is one of ours, one of attrs' or several of them."""
    inside: list[Any] = [*parts(validator)]
    if any(isinstance(one, _ALTERNATIVES) for one in inside):
        return {}
    found: list[tuple[str, Any]] = [(one.compare_op, one.bound) for one in inside if hasattr(one, "compare_op")]
    for one in inside:
        if isinstance(one, Within):
            found += [(">", one.low), ("<", one.high)] if one.open else [(">=", one.low), ("<=", one.high)]
    numbers = [(_LIMITS[how], bound) for how, bound in found if isinstance(bound, int | float | Decimal)]
    limits: Schema = {
        how: one if isinstance(one, int) else float(one) for how, one in numbers if -_MOST <= one <= _MOST
    }
    texts = (
        {"pattern": NOT_NEGATIVE.pattern}
        if any(isinstance(bound, Decimal) and bound >= 0 for _, bound in numbers)
        else {}
    )
    return limits | texts


def _default(field: attrs.Attribute[Any]) -> Schema:
    default: Any = field.default
    if isinstance(default, attrs.Factory):  # type: ignore[arg-type]  # a class; attrs' stubs call it a function
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
        return {"anyOf": [_type(one) for one in hints.members(annotation)]}
    origin, args = typing.get_origin(annotation) or annotation, typing.get_args(annotation)
    if origin is Literal:
        return {"enum": list(args)}
    if annotation in _TYPES:
        return dict(_TYPES[annotation])
    if origin in hints.SEQUENCES:
        return {"type": "array"} | _items(origin, args) | ({"allOf": _ONE_A_UNIT} if args[:1] == (Cost,) else {})
    if origin in hints.MAPPINGS:
        return {"type": "object"} | ({"additionalProperties": _type(args[1])} if args else {})
    return options_schema(annotation) if attrs.has(annotation) else {}


def _items(origin: Any, args: tuple[Any, ...]) -> Schema:
    if origin is tuple and args and args[-1] is not Ellipsis:
        return {"prefixItems": [_type(one) for one in args], "minItems": len(args), "maxItems": len(args)}
    return {"items": _type(args[0])} if args else {}


def _object(properties: Schema) -> Schema:
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _one_or_more(schema: Schema) -> Schema:
    """*schema*, or a list of such; not anyOf, so that editors say what is wrong with the one that is meant."""
    several = {"type": "array", "items": schema, "minItems": 1}
    return {"if": {"type": "array"}, "then": several, "else": schema}


def _list(definition: str) -> Schema:
    return {"type": "array", "items": _ref(definition)}


def _ref(definition: str) -> Schema:
    return {"$ref": f"#/$defs/{definition.replace('/', '~1')}"}
