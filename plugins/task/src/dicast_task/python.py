"""The task ``task/python``."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from typing import Any

import attrs

from dicast import ConfigError, RunContext, Task, nearest
from dicast.toolkit.function_task import FunctionTask

_TARGET = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")


def _check_target(_instance: object, _attribute: attrs.Attribute[str], target: str) -> None:
    if not _TARGET.fullmatch(target):
        raise ConfigError(f"target is MODULE:FUNCTION, such as answers:reply, not {target!r}")


@attrs.frozen
class Python:
    """Calls a Python function about each row; what it returns is the output.

    The module is looked for in the pipeline file's folder, then where Python looks. The function's parameters are the row's columns by
    their names (``input``, ``reference``, and the others'); ``row`` is all of them as a dict, ``subject`` the Subject, and a single
    parameter of another name gets the input. It returns text, another JSON value, a mapping with ``content`` and ``metrics`` or with
    ``responses`` by criterion, a Subject, or a Failure. What it raises fails its row as ``crashed``; None and blank text fail it as
    ``judge_output_invalid``.

    An ``async def`` runs in the event loop; a ``def`` runs in a thread of its own for each row, ``concurrency`` of them at a time, and
    goes on there when its time (the slot key ``timeout``, 600 s by default) is over. It runs with dicast's own rights: for code that is
    trusted. The module's file is part of the task: a changed one is another task when runs are compared. What it imports is not known.

    :param target: the module and the function in it, ``MODULE:FUNCTION``.
    :param security_level: a text that every record carries, such as ``official``.
    :param determinism_level: likewise, such as ``high``.
    """

    name = "python"

    target: str = attrs.field(validator=_check_target)
    security_level: str | None = attrs.field(default=None, metadata={"counts": False})
    determinism_level: str | None = attrs.field(default=None, metadata={"counts": False})

    @asynccontextmanager
    async def open(self, run: RunContext) -> AsyncIterator[Task]:
        """Import the module; its folder can be imported from while the run lasts.

        :raises ConfigError: when there is no such module or function, or when it fails to import.
        """
        with _importable(run.base):
            yield FunctionTask(_function(self.target, run.base))

    def reads(self, base: Path) -> dict[str, Path]:
        """The module's file, where it has one."""
        module = self.target.partition(":")[0]
        spec = _spec(module, base)
        return {} if spec is None or spec.origin is None or not spec.has_location else {module: Path(spec.origin)}


@contextmanager
def _importable(folder: Path) -> Iterator[None]:
    place = str(folder.resolve())
    sys.path.insert(0, place)
    try:
        yield
    finally:
        sys.path.remove(place)


def _spec(module: str, base: Path) -> ModuleSpec | None:
    """Where *module* is, found without importing a package that it is in."""
    paths: list[str] | None = [str(base.resolve()), *sys.path]
    spec: ModuleSpec | None = None
    names = module.split(".")
    for depth in range(1, len(names) + 1):
        spec = PathFinder.find_spec(".".join(names[:depth]), paths)
        if spec is None:
            return None
        paths = list(spec.submodule_search_locations or ())
    return spec


def _function(target: str, base: Path) -> Callable[..., Any]:
    module, _, path = target.partition(":")
    spec = _spec(module, base)
    if spec is None:
        near = nearest(module, (file.stem for file in base.glob("*.py")))
        raise ConfigError(
            f"task/python: there is no module {module!r} in {base} or where Python looks"
            + (f", did you mean {near!r}?" if near else "")
        )
    if spec.origin and Path(spec.origin).is_relative_to(base.resolve()):
        sys.modules.pop(module, None)  # another folder's of the same name, or the file as it was before an edit
    try:
        found: Any = importlib.import_module(module)
    except Exception as error:  # the border to the user's code
        raise ConfigError(f"task/python: {module} failed to import: {type(error).__name__}: {error}") from error
    for name in path.split("."):
        if not hasattr(found, name):
            near = nearest(name, (one for one in vars(found) if not one.startswith("_")))
            raise ConfigError(f"task/python: {module} has no {path!r}" + (f", did you mean {near!r}?" if near else ""))
        found = getattr(found, name)
    return found  # type: ignore[no-any-return]
