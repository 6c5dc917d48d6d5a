"""Stands in the tests' sandbox for the candidate's module: its functions are called in the candidate's own sandbox.

Arguments and results are plain values: numbers, texts, bytes, None, and lists, tuples, sets and dictionaries of them, which are
copied, so that a function that changes its argument changes nothing here. What the candidate raises is raised here as the
built-in exception of that name, or as a RuntimeError.
"""

from __future__ import annotations

import builtins
import json
import os
import sys
from typing import Any

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".dicast"))  # noqa: PTH118, PTH120

from candidate_values import pack, unpack  # type: ignore[import-not-found]  # it is there only inside

sys.path.pop(0)
sys.set_int_max_str_digits(0)

_socket = os.fdopen(int(os.environ["DICAST_PEER_FD"]), "r+b", buffering=0)
_answers = os.fdopen(os.dup(_socket.fileno()), "rb")


def _ask(call: dict[str, Any]) -> Any:
    _socket.write(json.dumps(call).encode() + b"\n")
    line = _answers.readline()
    if not line:
        raise RuntimeError("the candidate has ended")
    answer = json.loads(line)
    if "raised" not in answer:
        return answer
    kind = getattr(builtins, str(answer["raised"]), None)
    if isinstance(kind, type) and issubclass(kind, Exception) and kind is not UnicodeDecodeError:
        try:
            error = kind(str(answer.get("message")))
        except TypeError:  # it takes more than a message
            error = RuntimeError(f"{kind.__name__}: {answer.get('message')}")
        raise error
    raise RuntimeError(f"{answer['raised']}: {answer.get('message')}")


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    found = _ask({"name": name})
    if not found.get("callable"):
        return unpack(found.get("value"))

    def call(*args: Any, **kwargs: Any) -> Any:
        said = {"args": [pack(one) for one in args], "kwargs": {key: pack(one) for key, one in kwargs.items()}}
        return unpack(_ask({"name": name, **said}).get("value"))

    call.__name__ = name
    return call
