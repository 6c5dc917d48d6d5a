"""Runs in the candidate's sandbox: imports its module, and answers the calls of the tests, who are in another one.

Started with the module's file; calls come by stdin and answers go by stdout, a line of JSON each. What is called has plain
values as arguments and gives one back.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import sys
from typing import Any


def main(path: str) -> None:
    """Answer until there are no more calls."""
    calls, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDWR), 0)
    os.dup2(2, 1)  # what the candidate prints is no answer
    module, failed = load(path)
    for line in calls:
        answers.write(json.dumps(failed or answer_call(module, json.loads(line))).encode() + b"\n")
        answers.flush()


def load(path: str) -> tuple[Any, dict[str, Any] | None]:
    """The module, and what is answered to every call where it cannot be imported."""
    try:
        package, folder = locate_package(path)
        sys.path.insert(1, folder)
        name = os.path.basename(path).removesuffix(".py")  # noqa: PTH119
        if package:
            return importlib.import_module(f"{package}.{name}"), None
        spec = importlib.util.spec_from_file_location(name, path)  # whatever else has the name
        assert spec is not None and spec.loader is not None  # noqa: PT018  # it is a Python file
        module = sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    except BaseException as error:  # the candidate's, whatever it is
        return None, describe_exception(error)
    return module, None


def locate_package(path: str) -> tuple[str, str]:
    """The package of the module at *path*, and the folder that this is found in.

    A package begins below the last folder without ``__init__.py``; where none has one, each folder is a package.
    """
    *folders, _ = path.split("/")
    top = len(folders)
    while top and os.path.exists("/".join([*folders[:top], "__init__.py"])):  # noqa: PTH110
        top -= 1
    packages = folders[top:] or (folders if all(map(str.isidentifier, folders)) else [])
    return ".".join(packages), os.path.abspath("/".join(folders[:top]))


def answer_call(module: Any, call: dict[str, Any]) -> dict[str, Any]:
    """Call the function, or say whether it is there."""
    try:
        named = getattr(module, call["name"])
        if "args" not in call:
            return {"callable": callable(named), **({} if callable(named) else {"value": pack(named)})}
        return {"value": pack(named(*map(unpack, call["args"]), **{k: unpack(v) for k, v in call["kwargs"].items()}))}
    except BaseException as error:  # as above
        return describe_exception(error)


def describe_exception(error: BaseException) -> dict[str, Any]:
    """An exception as an answer."""
    message = error.args[0] if isinstance(error, KeyError) and error.args else error  # which quotes its message
    return {"raised": type(error).__name__, "message": str(message)[:2000]}


_PLAIN = (bool, str, int, float, complex, bytes, list, tuple, set, frozenset, dict)


def pack(value: Any) -> Any:
    """*value* as JSON that says its type, for one that is derived of a plain one that; only plain values can be said."""
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
    """The value that :func:`pack` has said."""
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    return _MAKERS[kind](content)


if __name__ == "__main__":
    sys.path[0] = os.getcwd()  # noqa: PTH109  # where what the candidate imports is
    sys.set_int_max_str_digits(0)
    main(sys.argv[1])
