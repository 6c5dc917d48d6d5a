"""Types and signatures as texts for the pages of the API: names as an author imports them, and aliases that no page has in full."""  # noqa: INP001  # a part of a script

from __future__ import annotations

import builtins
import collections.abc
import inspect
import re
import sys
import types
from collections.abc import Collection
from functools import cached_property
from typing import Any, ForwardRef, Literal, TypeVar, Union, get_args, get_origin

_MODULE = re.compile(r"\b(?:dicast|collections|typing|pathlib|decimal|types|contextlib)(?:\.\w+)*\.(?=[A-Z])")
_MANAGERS = {
    inspect.isgeneratorfunction: "AbstractContextManager",
    inspect.isasyncgenfunction: "AbstractAsyncContextManager",
}


class _Names(dict[str, Any]):
    """The names of a module. A name that only type checkers import, and a name with an entry of its own on a page, is a variable of that name."""

    def __missing__(self, name: str) -> Any:
        if hasattr(builtins, name):
            raise KeyError(name)
        return TypeVar(name)  # type: ignore[misc]  # a name for the text alone


class TypeTexts:
    """Texts of types in signatures and fields.

    :param documented: names of aliases with an entry of their own on a page.
    """

    def __init__(self, documented: Collection[str] = ()) -> None:
        self._documented = documented

    def type_text(self, annotation: object, module: str = "") -> str:
        """Return *annotation*, as it is written in *module*, with short names and without aliases."""
        value = annotation
        if isinstance(annotation, str) and module in sys.modules:
            names = {name: value for name, value in vars(sys.modules[module]).items() if name not in self._documented}
            try:
                value = eval(annotation, {}, _Names(names))  # noqa: S307  # our own code
            except (AttributeError, TypeError):  # a part of a name that only type checkers import
                value = annotation
        return _MODULE.sub("", _written(value))

    def signature(self, value: Any, *, bound: bool = False) -> str:
        """Return the parameters of a function in parentheses and the type of its result; the type alone of a property.

        :param bound: whether to leave out the first parameter, the object or the class.
        """
        if isinstance(value, property | cached_property):
            getter = value.fget if isinstance(value, property) else value.func
            return f": {self._result(getter)}" if "return" in getattr(getter, "__annotations__", {}) else ""
        if not callable(value):
            return ""
        try:
            parameters = list(inspect.signature(value).parameters.values())
        except (TypeError, ValueError):
            return "()"
        module = inspect.unwrap(value).__module__ if hasattr(value, "__module__") else ""
        parts = list[str]()
        previous: object = None
        for parameter in parameters[bound:]:
            if previous is parameter.POSITIONAL_ONLY is not parameter.kind:
                parts.append("/")
            if previous not in (parameter.VAR_POSITIONAL, parameter.KEYWORD_ONLY) and (
                parameter.kind is parameter.KEYWORD_ONLY
            ):
                parts.append("*")
            previous = parameter.kind
            parts.append(self._parameter(parameter, module))
        parts += ["/"] if previous is inspect.Parameter.POSITIONAL_ONLY else []
        result = "" if inspect.isclass(value) else self._result(value)
        return f"({', '.join(parts)}){f' -> {result}' if result else ''}"

    def _parameter(self, parameter: inspect.Parameter, module: str) -> str:
        stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
        is_typed, has_default = parameter.annotation is not parameter.empty, parameter.default is not parameter.empty
        kind = f": {self.type_text(parameter.annotation, module)}" if is_typed else ""
        default = repr(parameter.default) if _is_short(parameter.default) else "…"
        equals = " = " if is_typed else "="
        return f"{stars}{parameter.name}{kind}{f'{equals}{default}' if has_default else ''}"

    def _result(self, value: Any) -> str:
        """Return the type of the result of a function; of a context manager, what its block gets."""
        inner = inspect.unwrap(value)
        annotation = inner.__annotations__.get("return")
        if annotation in (None, "None") and not inspect.iscoroutinefunction(inner):
            return "None" if annotation == "None" else ""
        text = self.type_text(annotation, inner.__module__)
        if inspect.iscoroutinefunction(inner):
            return f"Awaitable[{text}]"
        manager = next((name for is_maker, name in _MANAGERS.items() if is_maker(inner) and not is_maker(value)), None)
        if manager is not None:
            return f"{manager}[{text.partition('[')[2].removesuffix(']').removesuffix(', None')}]"
        return text


def _written(value: Any) -> str:
    """Return the type *value* as it is written in code."""
    if value is None or value is types.NoneType:
        return "None"
    if value is Ellipsis:
        return "..."
    if isinstance(value, str):
        return value
    if isinstance(value, ForwardRef):
        return value.__forward_arg__
    if isinstance(value, list):
        return f"[{', '.join(map(_written, value))}]"
    origin, arguments = get_origin(value), get_args(value)
    if origin in (Union, types.UnionType):
        return " | ".join(map(_written, arguments))
    if origin is Literal:
        return f"Literal[{', '.join(map(repr, arguments))}]"
    if origin is collections.abc.Callable and isinstance(arguments[0], list | type(Ellipsis)):
        return f"Callable[{_written(arguments[0])}, {_written(arguments[1])}]"
    if arguments:
        return f"{_written(origin)}[{', '.join(map(_written, arguments))}]"
    return str(getattr(value, "__qualname__", None) or getattr(value, "__name__", None) or value)


def _is_short(value: object) -> bool:
    return value is None or (isinstance(value, bool | int | float | str | bytes | tuple) and len(repr(value)) < 30)
