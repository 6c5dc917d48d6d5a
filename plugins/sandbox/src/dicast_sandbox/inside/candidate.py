"""Server in the candidate's sandbox: imports the candidate's module, and answers calls of the tests in the other sandbox.

The argument is the module's file. Calls come by stdin and answers go by stdout, one JSON document a line. Arguments and results are plain
values.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import sys
from typing import Any


def main(path: str) -> None:
    """Answer calls until there are no more."""
    calls, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDWR), 0)
    os.dup2(2, 1)  # the candidate's own output goes to stderr, because stdout carries the answers
    module, failed = load(path)
    for line in calls:
        answers.write(json.dumps(failed or answer_call(module, json.loads(line))).encode() + b"\n")
        answers.flush()


def load(path: str) -> tuple[Any, dict[str, Any] | None]:
    """Return the module at *path*; if it cannot be imported, None and the answer to every call."""
    try:
        package, folder = locate_package(path)
        sys.path.insert(1, folder)
        name = os.path.basename(path).removesuffix(".py")  # noqa: PTH119
        if package:
            return importlib.import_module(f"{package}.{name}"), None
        spec = importlib.util.spec_from_file_location(name, path)  # even if another module has the name
        assert spec is not None and spec.loader is not None  # noqa: PT018  # the path is a Python file
        module = sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    except BaseException as error:  # any exception of the candidate
        return None, describe_exception(error)
    return module, None


def locate_package(path: str) -> tuple[str, str]:
    """Return the package of the module at *path*, and the folder in which the package is found.

    A package begins below the last folder without ``__init__.py``; without any such file, each folder is a package.
    """
    *folders, _ = path.split("/")
    top = len(folders)
    while top and os.path.exists("/".join([*folders[:top], "__init__.py"])):  # noqa: PTH110
        top -= 1
    packages = folders[top:] or (folders if all(map(str.isidentifier, folders)) else [])
    return ".".join(packages), os.path.abspath("/".join(folders[:top]))


def answer_call(module: Any, call: dict[str, Any]) -> dict[str, Any]:
    """Call the function; without arguments in *call*, return whether it is callable, or its value."""
    try:
        named = getattr(module, call["name"])
        if "args" not in call:
            return {"callable": callable(named), **({} if callable(named) else {"value": pack(named)})}
        return {"value": pack(named(*map(unpack, call["args"]), **{k: unpack(v) for k, v in call["kwargs"].items()}))}
    except BaseException as error:  # as above
        return describe_exception(error)


def describe_exception(error: BaseException) -> dict[str, Any]:
    """Return *error* as an answer."""
    message = error.args[0] if isinstance(error, KeyError) and error.args else error  # KeyError quotes its message
    return {"raised": type(error).__name__, "message": str(message)[:2000]}


_PLAIN = (bool, str, int, float, complex, bytes, list, tuple, set, frozenset, dict)


def pack(value: Any) -> Any:
    """Encode *value* as JSON tagged with its type. Subclasses are encoded as their built-in base type.

    :raises TypeError: if the value, or a value in it, is not plain.
    """
    kind = next((kind for kind in type(value).__mro__ if kind in _PLAIN), None)
    if value is None or kind is bool or kind is str:
        return value
    if kind is float or kind is bytes:
        return {kind.__name__: kind.hex(value)}
    if kind is int or kind is complex:
        return {kind.__name__: kind.__repr__(value)}
    if kind is dict:
        return {"dict": [[pack(key), pack(item)] for key, item in value.items()]}
    if kind is None:
        raise TypeError(f"a {type(value).__name__} cannot pass between the tests and the candidate")
    return {kind.__name__: [pack(item) for item in value]}


_MAKERS: dict[str, Any] = {
    "int": int,
    "complex": complex,
    "float": float.fromhex,
    "bytes": bytes.fromhex,
    "list": lambda items: [unpack(item) for item in items],
    "tuple": lambda items: tuple(map(unpack, items)),
    "set": lambda items: set(map(unpack, items)),
    "frozenset": lambda items: frozenset(map(unpack, items)),
    "dict": lambda items: {unpack(key): unpack(item) for key, item in items},
}


def unpack(value: Any) -> Any:
    """Decode a value that :func:`pack` encoded."""
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    return _MAKERS[kind](content)


if __name__ == "__main__":
    sys.path[0] = os.getcwd()  # noqa: PTH109  # the folder of the candidate's imports
    sys.set_int_max_str_digits(0)
    main(sys.argv[1])
