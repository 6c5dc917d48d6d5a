"""Opening components: those that need a connection or state are entered once a run, the nested ones first."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import Any

import attrs

from ..errors import DicastError, PluginError
from ..model import RunContext


async def open_component(component: Any, run: RunContext, stack: AsyncExitStack) -> Any:
    """The live object of *component*, closed with *stack*; the component itself where it needs no opening."""
    component = await _open_fields(component, run, stack)
    opened = getattr(component, "open", None)
    if opened is None:
        return component
    try:
        return await stack.enter_async_context(opened(run))
    except DicastError:
        raise
    except Exception as error:  # the border to a plugin's code
        name = f"{type(component).__module__}.{type(component).__qualname__}"
        raise PluginError(f"{name} could not be opened: {type(error).__name__}: {error}") from error


async def _open_fields(component: Any, run: RunContext, stack: AsyncExitStack) -> Any:
    if not attrs.has(type(component)):
        return component
    changes = {}
    for field in attrs.fields(type(component)):
        value = getattr(component, field.name)
        live = await _open_value(value, run, stack)
        if live is not value and field.init:
            changes[field.alias] = live
    return attrs.evolve(component, **changes) if changes else component


async def _open_value(value: Any, run: RunContext, stack: AsyncExitStack) -> Any:
    if isinstance(value, list | tuple):
        live = [await _open_value(item, run, stack) for item in value]
        return type(value)(live) if any(a is not b for a, b in zip(live, value, strict=True)) else value
    if isinstance(value, dict):
        opened = {key: await _open_value(item, run, stack) for key, item in value.items()}
        return opened if any(opened[key] is not value[key] for key in value) else value
    if attrs.has(type(value)) and not isinstance(value, type):
        return await open_component(value, run, stack)
    return value
