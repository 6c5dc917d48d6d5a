"""Python objects in a pipeline: components, and a function as the task."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from ..contract.implements import implements
from ..contract.kinds import KINDS
from ..contract.protocols import Task
from ..pipeline.overrides import put
from ..pipeline.read import PipelineFile
from ..pipeline.yaml_nodes import Place, from_data
from ..values.errors import ConfigError

_MEMBERS = tuple({member for kind in KINDS.values() for member in kind.members})
"""Members of components; a callable without any of them is a plain function."""


def plain(value: Any, ready: dict[str, object]) -> Any:
    """Return *value* as plain data. Each component in it is put into *ready*, and replaced by its name there.

    :raises ConfigError: at a function that is no component.
    """
    if isinstance(value, Mapping):
        return {key: plain(item, ready) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [plain(item, ready) for item in value]
    if attrs.has(value if isinstance(value, type) else type(value)):
        return ready_name(_with_defaults(value) if isinstance(value, type) else value, ready)
    if callable(value) and not any(hasattr(value, member) for member in _MEMBERS):
        function_name = getattr(value, "__name__", "it")
        raise ConfigError(
            f"{function_name!r} is a function, not a component; decorate it with @dicast.metric(tier='truth') or @dicast.judge(), "
            "or pass it as task="
        )
    return value


def _with_defaults(cls: type[Any]) -> object:
    """Return a component of *cls* with the defaults of its options.

    :raises ConfigError: with every option that has no default.
    """
    needed = [field.alias for field in attrs.fields(cls) if field.init and field.default is attrs.NOTHING]
    if needed:
        name = getattr(cls, "name", cls.__name__)
        options = " and ".join(map(repr, needed))
        raise ConfigError(f"{name} needs the option {options}; write {name}({'=…, '.join(map(str, needed))}=…)")
    return cls()


def ready_name(component: object, ready: dict[str, object]) -> str:
    """Put *component* into *ready*; return its name there, by which a pipeline refers to it."""
    first = str(getattr(component, "name", type(component).__name__)).rpartition("/")[2]
    names = (first, *(f"{first}_{number}" for number in range(2, len(ready) + 3)))
    free = next(name for name in names if ready.get(name, component) is component)
    ready[free] = component
    return free


def with_task(file: PipelineFile, task: Callable[..., Any] | Task, ready: dict[str, object]) -> PipelineFile:
    """Return *file* with *task*, a function or a component, as its task.

    :raises ConfigError: for a suite, because its experiments have their own tasks.
    """
    if file.experiments:
        raise ConfigError("the experiments of a suite have their own tasks; use task/python in the file")
    from ...toolkit.function_task import FunctionTask

    name = ready_name(task if implements(task, Task) else FunctionTask(task), ready)
    place = Place("task=", None, None, Path.cwd())
    return attrs.evolve(file, root=put(file.root, "task", from_data(name, place)))
