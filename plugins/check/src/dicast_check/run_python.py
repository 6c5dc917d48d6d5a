"""Process behind ``check/python``: calls one function of a file about one output. Imports nothing of dicast."""

from __future__ import annotations

import hashlib
import json
import math
import os
import sys
import types
from collections.abc import Awaitable
from pathlib import Path


def main() -> None:
    """Read ``{output, row}`` from stdin and write ``{result}`` or ``{error, kind}`` to stdout."""
    path, function, digest = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    data = json.loads(sys.stdin.buffer.read())
    answer = os.dup(1)
    os.dup2(2, 1)  # output of the user's code is not the answer
    try:
        result = call(path, function, digest, data)
        unfit = isinstance(result, float) and not math.isfinite(result)
        reply = {"error": f"it returned {result}", "kind": "invalid_score"} if unfit else {"result": result}
        text = json.dumps(reply, allow_nan=False, default=plain)
    except Exception as error:  # boundary to the user's code
        text = json.dumps({"error": f"{type(error).__name__}: {error}", "kind": "crashed"})
    with os.fdopen(answer, "wb") as file:
        file.write(text.encode(errors="backslashreplace"))


def call(path: Path, function: str, digest: str, data: dict[str, object]) -> object:
    """Return the result of *function* in the file *path*, which has the SHA-256 *digest*."""
    source = path.read_bytes()
    if hashlib.sha256(source).hexdigest() != digest:
        raise RuntimeError("the file has changed since the run started")
    sys.path[0] = str(path.parent)
    module = types.ModuleType(path.stem)
    module.__file__ = str(path)
    sys.modules[path.stem] = module
    exec(compile(source, str(path), "exec"), module.__dict__)  # noqa: S102  # the run has consent for this file
    target = getattr(module, function, None)
    if not callable(target):
        names = ", ".join(name for name, value in vars(module).items() if isinstance(value, types.FunctionType))
        raise LookupError(  # noqa: TRY004  # usually it is missing
            f"the file has no function {function!r}; it has {names or 'none'}"
        )
    result = target(data["output"], data["row"])
    return _awaited(result) if isinstance(result, Awaitable | types.GeneratorType) else result


def _awaited(result: object) -> object:
    """Await *result* if it can be awaited. Importing asyncio takes longer than the rest of a call."""
    import asyncio
    import inspect

    async def wait() -> object:
        return await result  # type: ignore[misc]  # asked below

    return asyncio.run(wait()) if inspect.isawaitable(result) else result


def plain(value: object) -> object:
    """Return *value* as plain data, such as a number of another library."""
    item = getattr(value, "item", None)
    if callable(item):
        return item()
    raise TypeError(f"the result has a {type(value).__name__}, which is not JSON")


if __name__ == "__main__":
    main()
