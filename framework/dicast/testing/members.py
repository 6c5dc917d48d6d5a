"""Checks of a component's class without calling it: names of members that dicast does not know, and options that no code reads."""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from textwrap import dedent
from typing import Any

import attrs

from .. import optional
from .._kernel.contract.kinds import CLAIMABLE, KINDS
from .._kernel.contract.plugin_errors import function_of, in_brackets, place_of
from .._kernel.pipeline import types as hints
from .._kernel.values import Secret

_WORDS: Mapping[str, str] = {"model": "chat model", "early_stop": "early stop"}
"""Names of kinds in the docstrings of :mod:`dicast.optional`, if they differ."""

_GENERAL = frozenset(("name", "tier", "estimates_judges"))
"""Class attributes of components outside the protocols."""

_LOOKUP = re.compile(r'getattr\([^",]+, "(\w+)"')

_READERS = ("getattr", "attrgetter")
"""Functions that read an attribute by its name."""

_ALL_ATTRIBUTES = ("asdict", "astuple", "fields", "fields_dict", "vars")
"""Functions that read all attributes."""

_COMPUTED = "*"
"""Sign for attributes whose names are computed."""

_COMMON = frozenset(("check", "content", "path", "total"))
"""Names of members that are common words: components of other kinds may use them for other purposes."""

_SECRETS = frozenset(("key", "apikey", "token", "secret", "password", "passphrase"))
"""Last words in the names of options that take a secret."""

_PATHS = frozenset(("path", "file", "filename", "folder", "dir", "directory"))
"""Last words in the names of options that take a path."""

_WITH_FILES = ("source", "sink", "ledger")
"""Kinds with files of their own. In other kinds, ``path`` may be a place in a document or in a sandbox."""

_FILES = ("file", "filename", "folder", "directory")
"""Names of options that are files in every kind."""

_DATA = re.compile(
    r"(sort|group|label|primary|foreign|field|row|record|json|metric|score|cache|stop|start|end|pad|mask)_(key|token)"
    r"|(json|url|field|row|record)_path"
)
"""Names in data, such as a column or a place in a document."""

_PRIVATE_IMPORT = re.compile(rb"^\s*(?:from|import)\b.*\bdicast\b.*[\s.(]_(?!_)", re.MULTILINE)
"""A line that may import a private module. Only a file with such a line is parsed."""

_PRIVATE = re.compile(r"dicast\.(\w+\.)*_(?!_)")

_ALIKE, _LONG_ALIKE, _LONG = 0.82, 0.88, 8


@cache
def _optional() -> Mapping[str, frozenset[str]]:
    """Return the optional members by kind."""
    members: dict[str, set[str]] = {kind: set() for kind in KINDS}
    for protocol in vars(optional).values():
        if isinstance(protocol, type) and protocol.__name__.startswith("Has"):
            kinds = (protocol.__doc__ or "").lower()
            for kind in KINDS:
                if "any kind" in kinds or _plural(_WORDS.get(kind, kind)) in kinds:
                    members[kind] |= {name for name in vars(protocol) if not name.startswith("_")}
    return {kind: frozenset(names) for kind, names in members.items()}


def _plural(word: str) -> str:
    return f"{word[:-1]}ies" if word.endswith("y") else f"{word}es" if word.endswith("x") else f"{word}s"


def known_members(kind: str) -> frozenset[str]:
    """Return the names of the members that a component of *kind* may have."""
    return frozenset(KINDS[kind].members) | _optional()[kind] | _GENERAL


def misnamed(kind: str, cls: type[Any]) -> Iterator[str]:
    """Yield a message for each public member of *cls* that resembles a member of its *kind*, or belongs to other kinds alone."""
    names = known_members(kind)
    options = {field.name for field in attrs.fields(cls)} if attrs.has(cls) else set()
    for base in cls.__mro__:
        if base is object or base.__module__.partition(".")[0] in ("dicast", "typing", "abc"):
            continue
        for name, value in vars(base).items():
            if name.startswith("_") or name in names or name in options:
                continue
            if near := get_close_matches(name, names, 1, _ALIKE):
                fix = f"did you mean {near[0]!r}? Rename it, or begin the name of a helper with '_'"
                yield f"{cls.__name__}.{name} is not a member of a {kind}, {fix}{_at(value, base)}"
            elif owners := [other for other in KINDS if name in _optional()[other] - _COMMON]:
                yield f"{cls.__name__}.{name} has no effect on a {kind}; it is a member of a {' or a '.join(owners)}{_at(value, base)}"
    for name in sorted(options - names):
        near = get_close_matches(name, names, 1, _LONG_ALIKE) if len(name) >= _LONG else []
        if near:
            yield f"{cls.__name__}.{name} is an option, did you mean the member {near[0]!r}?{_at(cls, cls)}"


def mistyped(kind: str, cls: type[Any]) -> Iterator[str]:
    """Yield a message for each text option of *cls* with the name of a secret or a path, and for each relative default path."""
    for field in hints.fields(cls) if attrs.has(cls) else ():
        option = next(iter(hints.keys(field)), "")
        if isinstance(field.default, Path) and not field.default.is_absolute():
            yield (
                f"{cls.__name__}.{option} has the default {str(field.default)!r}, which is relative to the current directory, because "
                f"defaults are not resolved; make None the default, and begin the path with run.base in open{_at(cls, cls)}"
            )
        types = hints.members(field.type)
        word = option.lower().rpartition("_")[2]
        if str not in types or _DATA.search(option.lower()):
            continue
        is_shown = isinstance(field.default, str) and field.default != ""
        if word in _SECRETS and Secret not in types and not is_shown:
            yield (
                f"{cls.__name__}.{option} is a str, so it is stored in the ledger and shown in messages; use dicast.Secret{_at(cls, cls)}"
            )
        if (
            word in _PATHS
            and (kind in _WITH_FILES or option in _FILES)
            and not any(hints.mentions(type_, Path) for type_ in types)
        ):
            yield (
                f"{cls.__name__}.{option} is a str, so it is relative to the current directory; "
                f"use pathlib.Path, or dicast.InputPath for a file that exists{_at(cls, cls)}"
            )


def _at(value: object, cls: type[Any]) -> str:
    return in_brackets((place_of(value) if inspect.isroutine(value) else "") or place_of(cls))


def private_imports(cls: type[Any]) -> Iterator[str]:
    """Yield the place and the name of each private module of dicast that the package of *cls* imports."""
    for path in _files(cls.__module__):
        if not _PRIVATE_IMPORT.search(path.read_bytes()):  # parsing takes long
            continue
        tree = _parse(path)
        for node in () if isinstance(tree, str) else ast.walk(tree):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names = [f"{node.module}.{alias.name}" for alias in node.names]
            else:
                continue
            private = (name for name in names if _PRIVATE.match(name))
            yield from (f"{path.parent.name}/{path.name}:{node.lineno} imports {name}" for name in private)


def undocumented(cls: type[Any], readme: str) -> list[str]:
    """Return the options of *cls* that neither a docstring nor *readme* has as a whole word."""
    text = " ".join([*(base.__doc__ or "" for base in cls.__mro__ if attrs.has(base)), readme])
    names = (hints.keys(field)[0] for field in hints.fields(cls) if hints.keys(field))
    return [name for name in names if not re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text)]


def unread_fault(kind: str, cls: type[Any]) -> str | None:
    """Return a sentence about the options of *cls* that no code reads, with the place of each module that is not Python; None if all are read."""
    if not (unread := unread_options(kind, cls)):
        return None
    faults = [tree for path in _files(cls.__module__) if isinstance(tree := _parse(path), str)]
    return "; ".join([f"no code reads {', '.join(unread)} of {cls.__qualname__}", *faults])


def unread_options(kind: str, cls: type[Any]) -> list[str]:
    """Return the options of *cls* that no code of its package reads, and that the kernel does not read either.

    Options of a base class from another package are not checked, and neither is a package that reads attributes by computed names.
    A module that is not Python reads nothing.
    """
    names = set(_declared(cls)) - known_members(kind) - {*CLAIMABLE} - _looked_up()
    function = function_of(cls)
    if function is not None and names <= set(inspect.signature(function).parameters):
        source = _source(function)
        return sorted(names - _names_read(source)) if source else []
    reads = set[str]()
    package = cls.__module__.partition(".")[0]
    bases = [base for base in cls.__mro__ if base.__module__.partition(".")[0] == package]
    modules = {value.__module__ for base in bases for value in vars(base).values() if inspect.isfunction(value)}
    modules = {
        cls.__module__,
        *(module for module in modules if module.startswith("dicast.")),
    }  # methods of a decorator
    for path in {path for module in modules for path in _files(module)}:
        reads |= _attributes_of(path, path.stat().st_mtime_ns)
    return (
        []
        if _COMPUTED in reads or not reads
        else sorted(name for name in names if not {name, name.lstrip("_")} & reads)
    )


@cache
def _looked_up() -> frozenset[str]:
    """Return the names that dicast's own code looks up in objects that may lack them, such as an option of a source."""
    folder = Path(optional.__file__).parent
    return frozenset(
        name for path in folder.rglob("*.py") for name in _LOOKUP.findall(path.read_text(encoding="utf-8"))
    )


def _declared(cls: type[Any]) -> Iterator[str]:
    """Yield the options that *cls*, or a base class of the same package, declares."""
    package = cls.__module__.partition(".")[0]
    for base in cls.__mro__:
        if attrs.has(base) and base.__module__.partition(".")[0] == package:
            yield from (field.name for field in attrs.fields(base) if field.init and not field.inherited)


def _source(function: Any) -> str:
    try:
        return dedent(inspect.getsource(function))
    except (OSError, TypeError):
        return ""


def _names_read(source: str) -> set[str]:
    nodes = ast.walk(ast.parse(source))
    return {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}


@cache
def _attributes_of(path: Path, changed: int) -> frozenset[str]:
    """Return the attributes that the file *path*, *changed* at this time, reads; :data:`_COMPUTED` for computed names."""
    names: set[str] = set()
    tree = _parse(path)
    for node in () if isinstance(tree, str) else ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            names.add(node.attr)
        elif isinstance(node, ast.Call):
            function = getattr(node.func, "id", getattr(node.func, "attr", ""))
            texts = [part.value for part in node.args if isinstance(part, ast.Constant) and isinstance(part.value, str)]
            if function in _ALL_ATTRIBUTES or (function in _READERS and not texts):
                names.add(_COMPUTED)
            names |= set(texts) if function in _READERS else set()
    return frozenset(names)


def _parse(path: Path) -> ast.Module | str:
    """Return the tree of a Python file; the place and the error of a file that is not Python."""
    try:
        return ast.parse(path.read_bytes())
    except SyntaxError as error:
        return f"{path}:{error.lineno or 1}: {error.msg}"
    except ValueError as error:  # a null byte
        return f"{path}:1: {error}"


def _files(module: str) -> list[Path]:
    """Return the files of the top-level package of *module*; for a module of dicast, the files of its folder."""
    is_ours = module.startswith("dicast.")
    package = sys.modules.get(module if is_ours else module.partition(".")[0])
    file = getattr(package, "__file__", None)
    if file is None or not (is_ours or hasattr(package, "__path__")):
        return [Path(file)] if file else []
    return sorted(Path(file).parent.rglob("*.py"))
