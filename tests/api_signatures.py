"""Signatures of the public API as data, and the changes of them that break a caller or an implementer.

``python tests/api_signatures.py`` writes ``tests/api/1.json`` anew. A removed line of that file is a broken promise: give the API
a new number instead.
"""

from __future__ import annotations

import enum
import importlib
import inspect
import json
import pkgutil
import re
from collections.abc import Mapping
from pathlib import Path

import attrs

import dicast.toolkit
from dicast.testing import API

FROZEN = Path(__file__).with_name("api") / f"{API}.json"
PACKAGES = ("commands", "judging", "metric_calls", "optional", "reading", "reporting", "signals", "testing")
HOOKS = "dicast._kernel.contract.hooks"
UNIONS = {"Union", "UnionType", "_UnionGenericAlias"}  # Python 3.14 has one type for all unions
DEPRECATION = re.compile(r"Deprecated since dicast \d+\.\d+\. Use (?P<new>[\w.]+) instead\.")


def module_names():
    """Return the names of the public modules; the hooks are public by the names of their functions."""
    toolkit = [f"dicast.toolkit.{module.name}" for module in pkgutil.iter_modules(dicast.toolkit.__path__)]
    return ["dicast", *(f"dicast.{name}" for name in PACKAGES), *sorted(toolkit), HOOKS]


def public_objects(module):
    """Return the public objects of *module* by name."""
    if hasattr(module, "__all__"):
        return {name: getattr(module, name) for name in module.__all__}
    if module.__name__ == HOOKS:
        return {name: item for name, item in vars(module).items() if name.startswith("dicast_")}
    exported = {name for name in vars(module) if module.__name__ == "dicast.optional" and name.startswith("Has")}
    return {
        name: item
        for name, item in vars(module).items()
        if name in exported or (not name.startswith("_") and getattr(item, "__module__", None) == module.__name__)
    }


def describe_api(modules=None):
    """Return the description of each public object by its dotted name."""
    modules = map(importlib.import_module, module_names()) if modules is None else modules
    return {
        f"{module.__name__.replace(HOOKS, 'hooks')}.{name}": describe(item)
        for module in modules
        for name, item in sorted(public_objects(module).items())
    }


def describe(item):
    """Return the description of a public object."""
    deprecated = {"deprecated": item.__deprecated__} if isinstance(getattr(item, "__deprecated__", None), str) else {}
    if inspect.isclass(item):
        return {**describe_class(item), **deprecated}
    if callable(item) and (inspect.isfunction(item) or inspect.ismethod(item)):
        return {**describe_function(item), **deprecated}
    type_name = type(item).__name__
    described = {"kind": "value", "type": "Union" if type_name in UNIONS else type_name}
    if (
        isinstance(item, tuple | list | frozenset | set)
        and all(isinstance(part, str) for part in item)
        or isinstance(item, Mapping)
        and all(isinstance(key, str) for key in item)
    ):
        described["items"] = sorted(item)
    elif isinstance(item, str | int | float | bool):
        described["value"] = item
    return described


def describe_function(function):
    """Return the parameters and the result of *function*."""
    signature = inspect.signature(function)
    is_async = inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)
    return {
        "kind": "async function" if is_async else "function",
        "parameters": [describe_parameter(parameter) for parameter in signature.parameters.values()],
        "returns": annotation_text(signature.return_annotation),
    }


def describe_parameter(parameter):
    """Return the description of a parameter; without ``kind``, it is positional or a keyword."""
    described = {"name": parameter.name}
    if parameter.kind is not parameter.POSITIONAL_OR_KEYWORD:
        described["kind"] = parameter.kind.name.lower()
    if (text := annotation_text(parameter.annotation)) is not None:
        described["type"] = text
    return (
        described if parameter.default is parameter.empty else {**described, "default": default_text(parameter.default)}
    )


def kind_of(parameter):
    return parameter.get("kind", "positional_or_keyword")


def default_text(value):
    """Return a default as text, without an address or a value of the machine."""
    text = "a function" if inspect.isfunction(value) else repr(value)
    return type(value).__name__ if " at 0x" in text or "/" in text else text


def annotation_text(annotation):
    """Return a type as it is written; types that Python has evaluated differ between its versions, and are left out."""
    return annotation if isinstance(annotation, str) else None


def describe_class(cls):
    """Return the constructor, the public base classes and the members of *cls*."""
    is_protocol = getattr(cls, "_is_protocol", False)
    members = {}
    fields = attrs.fields_dict(cls) if attrs.has(cls) else vars(cls)
    for owner in reversed(cls.__mro__):
        if owner.__module__.partition(".")[0] != cls.__module__.partition(".")[0]:
            continue
        for name, type_ in inspect.get_annotations(owner).items():
            if not name.startswith("_"):
                members[name] = {"kind": "value", "type": annotation_text(type_)}
        for name, item in vars(owner).items():
            if name.startswith("_"):
                continue
            if inspect.ismemberdescriptor(item):
                if name not in fields:  # a cached property, whose type attrs keeps up to Python 3.13 only
                    members[name] = {"kind": "value", "type": None}
                continue
            if isinstance(item, property):
                returns = inspect.signature(item.fget).return_annotation
                members[name] = {"kind": "value", "type": annotation_text(returns)}
            elif isinstance(item, classmethod | staticmethod):
                members[name] = describe_function(getattr(cls, name))
            elif inspect.isfunction(item):
                members[name] = describe_function(item)
            elif not inspect.isdatadescriptor(item) and name not in members:
                members[name] = {"kind": "value", "type": None}
    described = {
        "kind": "protocol" if is_protocol else "class",
        "bases": sorted({base.__name__ for base in cls.__mro__[1:] if not base.__name__.startswith("_")} - {"object"}),
        "members": dict(sorted(members.items())),
    }
    if attrs.has(cls):
        described["parameters"] = describe_function(cls)["parameters"]
    elif not (is_protocol or issubclass(cls, enum.Enum | BaseException)) and "__init__" in vars(cls):
        described["parameters"] = describe_function(cls.__init__)["parameters"][1:]
    return described


def breaks(frozen, current):
    """Yield a message for each change from *frozen* to *current* that breaks a caller or an implementer; each names the object."""
    for name, before in frozen.items():
        if name not in current:
            yield f"{name} was removed"
        else:
            yield from _changes(name, before, current[name])
    for name, after in current.items():
        message = after.get("deprecated")
        if message is not None and not ((match := DEPRECATION.match(message)) and match["new"] in current):
            yield f"{name}: its deprecation needs the form 'Deprecated since dicast VERSION. Use NAME instead.', got {message!r}"


def _changes(name, before, after):
    if before["kind"] != after["kind"]:
        yield f"{name} was a {before['kind']}, and is a {after['kind']}"
        return
    is_implemented = before["kind"] == "protocol"
    yield from (f"{name} is no longer a {base}" for base in before.get("bases", ()) if base not in after["bases"])
    if "parameters" in before:
        yield from _parameter_changes(name, before["parameters"], after.get("parameters", []))
    for member, described in before.get("members", {}).items():
        if member not in after["members"]:
            yield f"{name}.{member} was removed"
        else:
            yield from _member_changes(
                f"{name}.{member}", described, after["members"][member], is_implemented=is_implemented
            )
    if is_implemented:
        added = [member for member in after["members"] if member not in before["members"]]
        yield from (f"{name}.{member} was added: existing components lack it" for member in added)
    if not _is_within(after.get("returns"), before.get("returns")):
        yield f"{name} returned {before['returns']}, and returns {after['returns']}"
    yield from _value_changes(name, before, after)


def _member_changes(name, before, after, *, is_implemented):
    yield from _changes(name, before, after)
    if is_implemented and before["kind"] == after["kind"] != "value":
        known = {parameter["name"] for parameter in before["parameters"]}
        added = [parameter["name"] for parameter in after["parameters"] if parameter["name"] not in known]
        yield from (f"{name}: {parameter} was added: existing components do not accept it" for parameter in added)


def _value_changes(name, before, after):
    if before["kind"] != "value":
        return
    if before["type"] != after["type"] and not _is_within(after["type"], before["type"]):
        yield f"{name} was {before['type']}, and is {after['type']}"
    yield from (
        f"{name} no longer has {item!r}" for item in before.get("items", ()) if item not in after.get("items", ())
    )
    if before.get("value") != after.get("value"):
        yield f"{name} was {before.get('value')!r}, and is {after.get('value')!r}"


def _parameter_changes(name, before, after):
    places = {parameter["name"]: number for number, parameter in enumerate(after)}
    positions = [parameter["name"] for parameter in after if kind_of(parameter).startswith("positional")]
    takes_any = any(kind_of(parameter) == "var_keyword" for parameter in after)
    for number, parameter in enumerate(before):
        argument = f"{name}: the argument {parameter['name']}"
        if parameter["name"] not in places:
            if not (takes_any and kind_of(parameter) == "keyword_only"):
                yield f"{argument} was removed"
            continue
        current = after[places[parameter["name"]]]
        if kind_of(parameter) != kind_of(current) != "positional_or_keyword":
            yield f"{argument} was {kind_of(parameter)}, and is {kind_of(current)}"
        elif kind_of(parameter).startswith("positional") and positions[number : number + 1] != [parameter["name"]]:
            yield f"{argument} has another position"
        if "default" in parameter and "default" not in current:
            yield f"{argument} was optional, and is required"
        elif "default" in parameter and parameter["default"] != current["default"]:
            yield f"{argument} had the default {parameter['default']}, and has {current['default']}"
        if not _is_within(parameter.get("type"), current.get("type")):
            yield f"{argument} was {parameter['type']}, and is {current['type']}"
    known = {parameter["name"] for parameter in before}
    for parameter in after:
        if parameter["name"] not in known and "default" not in parameter and not kind_of(parameter).startswith("var_"):
            yield f"{name}: the required argument {parameter['name']} was added"


def _is_within(narrow, wide):
    """Return True if the type *narrow* is part of the type *wide*, by the members of unions; True if either is unknown."""
    if narrow is None or wide is None or narrow == wide or wide in {"object", "Any"}:
        return True
    return _members(narrow) <= _members(wide)


def _members(text):
    """Return the members of a union, split outside of brackets."""
    members, depth = [""], 0
    for character in text:
        depth += (character in "[(") - (character in "])")
        if character == "|" and not depth:
            members.append("")
        else:
            members[-1] += character
    return {member.strip() for member in members}


def main():
    FROZEN.parent.mkdir(exist_ok=True)
    lines = [f"{json.dumps(name)}: {json.dumps(described)}" for name, described in describe_api().items()]
    FROZEN.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
