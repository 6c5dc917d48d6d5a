"""Replacement for the candidate's module in the tests' sandbox: its functions are called in the candidate's own sandbox.

Arguments and results are plain values: numbers, texts, bytes, None, and lists, tuples, sets and dictionaries of them. They are
copied, so a function that changes its argument changes nothing here. An exception of the candidate is raised here as the built-in
exception of the same name, if tests commonly expect that exception; else as a RuntimeError, because others, such as StopIteration,
would change the tests' control flow. Line breaks in its message are escaped, because the tests' output also has their report.
"""

from __future__ import annotations

import builtins
import json
import os
import sys
from pathlib import Path
from typing import Any

_VALUES = Path(".dicast", "candidate_values.py")
sys.path.insert(
    0, next(str(folder / ".dicast") for folder in Path(__file__).resolve().parents if (folder / _VALUES).exists())
)

from candidate_values import pack, unpack  # type: ignore[import-not-found]  # noqa: E402  # it exists only inside

sys.path.pop(0)
sys.set_int_max_str_digits(0)

_RAISED = {
    name: getattr(builtins, name)
    for name in [
        "ArithmeticError",
        "AssertionError",
        "AttributeError",
        "ConnectionError",
        "Exception",
        "FileExistsError",
        "FileNotFoundError",
        "FloatingPointError",
        "ImportError",
        "IndexError",
        "IsADirectoryError",
        "KeyError",
        "LookupError",
        "MemoryError",
        "ModuleNotFoundError",
        "NameError",
        "NotADirectoryError",
        "NotImplementedError",
        "OSError",
        "OverflowError",
        "PermissionError",
        "RecursionError",
        "RuntimeError",
        "SyntaxError",
        "TimeoutError",
        "TypeError",
        "UnicodeError",
        "ValueError",
        "ZeroDivisionError",
    ]
}

_socket = os.fdopen(int(os.environ["DICAST_PEER_FD"]), "r+b", buffering=0)
_answers = os.fdopen(os.dup(_socket.fileno()), "rb")


def _ask(call: dict[str, Any]) -> Any:
    try:
        _socket.write(json.dumps(call).encode() + b"\n")
        line = _answers.readline()
    except ConnectionError:
        line = b""
    if not line:
        raise RuntimeError("the candidate has ended")
    answer = json.loads(line)
    if "raised" not in answer:
        return answer
    name, message = str(answer["raised"]), _line(str(answer.get("message")))
    if name in _RAISED:
        raise _RAISED[name](message)
    raise RuntimeError(f"{_line(name)}: {message}")


def _line(text: str) -> str:
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    answer = _ask({"name": name})
    if not answer.get("callable"):
        return unpack(answer.get("value"))

    def call(*args: Any, **kwargs: Any) -> Any:
        arguments = {
            "args": [pack(value) for value in args],
            "kwargs": {key: pack(value) for key, value in kwargs.items()},
        }
        return unpack(_ask({"name": name, **arguments}).get("value"))

    call.__name__ = name
    return call
