"""Sandboxed versions of Jinja2's filters that enlarge their input."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from typing import Any

import jinja2
import orjson
from jinja2.runtime import Undefined

from .bounds import MOST_CHARS, WIDEST, Steps, Unrenderable, joined_length, percent_length, replaced_length

_OF_WIDTHS = ("batch", "center", "indent", "round", "slice")

Filter = Callable[..., Any]
Length = Callable[..., int]

STEPS = "\0steps"
"""Name of :class:`Steps` in a context; no template can write it."""

REFUSED = ("attr", "pprint", "urlize", "xmlattr")
"""Removed filters: they reach attributes, or their size and work cannot be computed in advance."""


def bounded(filters: Mapping[str, Filter]) -> dict[str, Filter]:
    """Return the *filters* that need a limit, each with its limit."""
    bounded_filters = {name: _bounded(name, filters[name], length) for name, length in _LENGTHS.items()}
    return bounded_filters | {"join": _join, "sum": _sum, "tojson": _tojson}


def _bounded(name: str, filter: Filter, length: Length) -> Filter:
    """Return *filter* with a limit: *length* computes the greatest length of its result from its arguments."""
    passed = getattr(filter, "jinja_pass_arg", None)  # the first argument: environment, context, or neither

    @jinja2.pass_context
    @wraps(filter)
    def narrow(context: Any, value: Any, *rest: Any, **options: Any) -> Any:
        every = (*rest, *options.values())
        if name in _OF_WIDTHS and any(isinstance(argument, int) and argument > WIDEST for argument in every):
            raise Unrenderable(f"the filters {', '.join(_OF_WIDTHS)} take numbers up to {WIDEST:,}")
        text = value if isinstance(value, str | list | tuple | Undefined) else str(value)
        context.parent[STEPS].make(0 if isinstance(text, Undefined) else length(context.parent[STEPS], text, *every))
        first = {"context": context, "eval_context": context.eval_ctx, "environment": context.environment}
        return filter(*([first[passed.name]] if passed else []), value, *rest, **options)

    return narrow


def _wide(_steps: Steps, value: Any, *every: Any) -> int:
    """Return the value's length plus all widths and counts in the arguments."""
    return len(value) + sum(argument for argument in every if isinstance(argument, int))


def _indent(_steps: Steps, value: Any, *every: Any) -> int:
    widths = [
        len(argument) if isinstance(argument, str) else argument
        for argument in every
        if isinstance(argument, str | int)
    ] or [4]
    return len(value) + (value.count("\n") + 1) * max(widths) if isinstance(value, str) else 0


def _pieces(_steps: Steps, value: Any, *every: Any) -> int:
    """Return the length with the longest argument after each character of the value."""
    return len(value) * (1 + max((len(argument) for argument in every if isinstance(argument, str)), default=0))


def _around(_steps: Steps, value: Any, *every: Any) -> int:
    """Return the length with all texts next to the value, plus the work of searching them."""
    texts = sum(len(argument) for argument in every if isinstance(argument, str))
    return len(value) + texts + texts * len(value) // 1000


def _replace(_steps: Steps, value: Any, old: Any = "", new: Any = "", *_: Any) -> int:
    return replaced_length(str(value), str(old), str(new))


def _format(steps: Steps, value: Any, *every: Any) -> int:
    return percent_length(str(value), sum(map(steps.weigh, every)))


_LENGTHS: Mapping[str, Length] = {
    **dict.fromkeys(("batch", "center", "round", "slice"), _wide),
    **dict.fromkeys(("trim", "truncate"), _around),
    "format": _format,
    "indent": _indent,
    "replace": _replace,
    "wordwrap": _pieces,
}


@jinja2.pass_context
def _join(context: Any, value: Iterable[Any], d: str = "", attribute: str | int | None = None) -> str:
    """Return the values as texts, with *d* between them."""
    if attribute is not None:
        value = context.environment.call_filter("map", value, [], {"attribute": attribute}, context)
    parts = []
    left = MOST_CHARS
    for part in map(str, value):
        left -= len(part) + len(d)
        if left < 0:
            break  # the rest does not make it shorter
        parts.append(part)
    context.parent[STEPS].make(joined_length(parts, str(d)) if left >= 0 else MOST_CHARS + 1)
    return str(d).join(parts)


@jinja2.pass_context
def _sum(context: Any, iterable: Iterable[Any], attribute: str | int | None = None, start: float = 0) -> Any:
    """Return the sum of numbers. A sum of lists is refused, as it would copy them repeatedly."""
    if not isinstance(start, int | float):
        raise Unrenderable("the filter sum adds numbers, and start is one")
    if attribute is not None:
        iterable = context.environment.call_filter("map", iterable, [], {"attribute": attribute}, context)
    return sum(iterable, start)


def _tojson(value: Any, indent: int | None = None) -> str:
    """Return plain JSON; Jinja2's own filter escapes ``<`` and others for HTML."""
    if isinstance(value, Undefined):
        return str(value)  # raises an error
    return orjson.dumps(value, option=orjson.OPT_INDENT_2 if indent else None).decode()
