"""Opening of components with a connection or state: once for each run, nested components first."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import attrs

from ..contract.declared import declared_faults
from ..contract.implements import implements
from ..contract.kinds import KINDS, member_faults
from ..contract.plugin_errors import describe_error, error_text, in_brackets, place_of, raise_interruption
from ..contract.protocols import ChatModel, Sandbox
from ..values import RunContext
from ..values.errors import DicastError, PluginError, Problem
from .opening_context import opening

Wrap = Callable[[Any, str], Any]
"""Returns the wrapper of a nested live object, given the object and its address."""


class ComponentStack(AsyncExitStack):
    """Stack of a run's open components. *faults* has the errors of closing parts, by address; such an error does not end the run."""

    def __init__(self) -> None:
        super().__init__()
        self.faults: dict[str, str] = {}
        self._leave: dict[str, Callable[..., Awaitable[None]]] = {}

    def part(self, at: str) -> AsyncExitStack:
        """Return the stack for the components of the part at the address *at*."""
        part = AsyncExitStack()

        async def leave(*raised: Any) -> None:
            try:
                await part.__aexit__(*raised)
            except Exception as error:  # the border to a plugin's code
                self.faults[at] = f"{type(error).__name__}: {error_text(error)}"

        self._leave[at] = leave
        self.push_async_exit(leave)
        return part

    async def close_part(self, at: str) -> str | None:
        """Close the part at the address *at* before the others; return its fault, which is then in *faults* no more."""
        await self._leave[at](None, None, None)
        return self.faults.pop(at, None)


async def open_component(component: Any, run: RunContext, stack: AsyncExitStack, kind: str | None = None) -> Any:
    """Return the live object of *component*, closed with *stack*; the component itself if it needs no opening.

    :raises PluginError: if it cannot be opened, or if the live object is not of *kind*.
    """
    live = await Opener(run, stack).open(component)
    if kind is not None:
        check_live(kind, component, live)
    return live


def check_live(kind: str, component: object, live: object) -> None:
    """Refuse a *live* object without the members of *kind*, or with values that a run cannot use.

    :raises PluginError: with every fault.
    """
    faults = [*member_faults(kind, type(live), live), *(declared_faults(kind, live) if live is not component else ())]
    faults += _async_faults(live) if kind == "ledger" else []
    if faults:
        name = type(live).__qualname__
        raise PluginError(Problem(f"{class_name(component)}: {name}: {fault}") for fault in faults)


def class_name(component: object) -> str:
    """Return the module and the name of the class of *component*."""
    return f"{type(component).__module__}.{type(component).__qualname__}"


class Opener:
    """Opener of a run's components, closed with *stack*. Equal chat models and sandboxes share one live object."""

    def __init__(self, run: RunContext, stack: AsyncExitStack) -> None:
        self._run, self._stack = run, stack
        self.collecting: list[Any] = []
        self._shared: list[tuple[Any, Any]] = []
        self._opened: dict[int, tuple[Any, Any]] = {}  # live object and component, by the id of the live object

    def note_collecting(self, model: object) -> None:
        """Note a live chat model if it collects calls."""
        if hasattr(model, "send_collected") and all(model is not noted for noted in self.collecting):
            self.collecting.append(model)

    def configured(self, live: Any) -> Any:
        """Return the component that *live* was opened from, or *live* itself if it needed no opening."""
        return self._opened.get(id(live), (live, live))[1]

    async def open(self, component: Any, wrap: Wrap | None = None, at: str = "") -> Any:
        """Return the live object of *component*.

        :param wrap: a function that wraps the live object of each nested component before its owner gets it.
        :param at: the address of *component*, for *wrap*.
        """
        component = await self._open_fields(component, wrap, at)
        if not hasattr(component, "open"):
            return component
        try:
            live = await self._stack.enter_async_context(opening(component, self._run))
        except DicastError:
            raise
        except Exception as error:  # the border to a plugin's code
            raise_interruption(error)
            raise PluginError(f"{class_name(component)} could not be opened: {_reason(error, component)}") from error
        self._opened[id(live)] = live, component
        return live

    async def _open_fields(self, component: Any, wrap: Wrap | None, at: str) -> Any:
        if not attrs.has(type(component)):
            return component
        changes = {}
        for field in attrs.fields(type(component)):
            value = getattr(component, field.name)
            live = await self._open_value(value, wrap, f"{at}.{field.alias}")
            if live is not value and field.init:
                changes[field.alias] = live
        return attrs.evolve(component, **changes) if changes else component

    async def _open_value(self, value: Any, wrap: Wrap | None, at: str) -> Any:
        if isinstance(value, list | tuple):
            live = [await self._open_value(item, wrap, f"{at}[{index}]") for index, item in enumerate(value)]
            return type(value)(live) if any(a is not b for a, b in zip(live, value, strict=True)) else value
        if isinstance(value, dict):
            opened = {key: await self._open_value(item, wrap, f"{at}.{key}") for key, item in value.items()}
            return opened if any(opened[key] is not value[key] for key in value) else value
        if attrs.has(type(value)) and not isinstance(value, type):
            live = await self._open_once(value, wrap, at)
            return live if wrap is None else wrap(live, at)
        return value

    async def _open_once(self, component: Any, wrap: Wrap | None, at: str) -> Any:
        for shared, live in self._shared:
            if type(shared) is type(component) and shared == component:
                return live
        live = await self.open(component, wrap, at)
        if implements(live, ChatModel) or implements(live, Sandbox):
            self._shared.append((component, live))
        return live


def _async_faults(live: object) -> list[str]:
    """Return the fault of a live ledger whose ``async def`` methods nobody would await."""
    names = [name for name in KINDS["ledger"].members if inspect.iscoroutinefunction(getattr(live, name, None))]
    fault = f"{', '.join(names)} is async def: give the class of the component the attribute is_async_ledger = True"
    return [fault] if names else []


def _reason(error: Exception, component: Any) -> str:
    """Return the reason why *component* could not be opened, with the author's line."""
    function = type(component).open
    if (
        inspect.isasyncgenfunction(function)
        or inspect.iscoroutinefunction(function)
        or inspect.isgeneratorfunction(function)
    ):
        place = in_brackets(place_of(function))
        return f"open returns no context manager; decorate it with @contextlib.asynccontextmanager{place}"
    return describe_error(error, type(component).__module__)
