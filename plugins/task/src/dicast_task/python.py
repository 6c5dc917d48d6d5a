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
from dicast.toolkit.raised import raised_text

_TARGET = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")


def _check_target(_instance: object, _attribute: attrs.Attribute[str], target: str) -> None:
    if not _TARGET.fullmatch(target):
        raise ConfigError(f"target is MODULE:FUNCTION, such as answers:reply, not {target!r}")


@attrs.frozen
class Python:
    """Calls a Python function for each row; its result is the output.

    The module is searched in the pipeline file's folder, then on Python's path. The function's parameters are the row's columns by
    their names (``input``, ``reference`` and so on); ``row`` is all of them as a dict, ``subject`` the Subject, and a single
    parameter of another name gets the input. It returns text, another JSON value, a mapping with ``content`` and ``metrics`` or with
    ``responses`` by criterion, a Subject, or a Failure. An exception fails its row as ``crashed``; None and blank text fail it as
    ``judge_output_invalid``.

    An ``async def`` runs in the event loop. A ``def`` runs in a separate thread for each row, ``concurrency`` of them at a time, and
    continues there after its time (the slot key ``timeout``, 600 s by default) is over. The function runs with dicast's own rights, so it must be
    trusted. The module's file is part of the task: a changed file is another task in comparisons of runs. Its imports are unknown.

    :param target: the module and the function in it, ``MODULE:FUNCTION``.
    :param security_level: a text that is added to every record, such as ``official``.
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
        """Return the module's file, if it has one."""
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
    """Return the spec of *module*, without importing its parent packages."""
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
        part: Any = importlib.import_module(module)
    except Exception as error:  # the border to the user's code
        raise ConfigError(f"task/python: {module} failed to import: {raised_text(error, module)}") from error
    for name in path.split("."):
        if not hasattr(part, name):
            near = nearest(name, (attribute for attribute in vars(part) if not attribute.startswith("_")))
            raise ConfigError(f"task/python: {module} has no {path!r}" + (f", did you mean {near!r}?" if near else ""))
        part = getattr(part, name)
    return part  # type: ignore[no-any-return]
