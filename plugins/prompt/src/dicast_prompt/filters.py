"""Those of Jinja2's filters that make more than they are given, as they are in the sandbox."""

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
"""The name under which :class:`Steps` stand; no template can spell it."""

REFUSED = ("attr", "pprint", "urlize", "xmlattr")
"""Filters that there are not: they reach attributes, or make and take more than can be told before."""


def bounded(filters: Mapping[str, Filter]) -> dict[str, Filter]:
    """Those of *filters* that need it, each with what it may make."""
    found = {name: _bounded(name, filters[name], length) for name, length in _LENGTHS.items()}
    return found | {"join": _join, "sum": _sum, "tojson": _tojson}


def _bounded(name: str, given: Filter, length: Length) -> Filter:
    """The filter *given*, which makes something at most as long as *length* says of its arguments."""
    passed = getattr(given, "jinja_pass_arg", None)  # which of the environment, the context and neither it wants first

    @jinja2.pass_context
    @wraps(given)
    def narrow(context: Any, value: Any, *rest: Any, **options: Any) -> Any:
        every = (*rest, *options.values())
        if name in _OF_WIDTHS and any(isinstance(one, int) and one > WIDEST for one in every):
            raise Unrenderable(f"the filters {', '.join(_OF_WIDTHS)} take numbers up to {WIDEST:,}")
        text = value if isinstance(value, str | list | tuple | Undefined) else str(value)
        context.parent[STEPS].make(0 if isinstance(text, Undefined) else length(context.parent[STEPS], text, *every))
        first = {"context": context, "eval_context": context.eval_ctx, "environment": context.environment}
        return given(*([first[passed.name]] if passed else []), value, *rest, **options)

    return narrow


def _wide(_steps: Steps, value: Any, *every: Any) -> int:
    """As wide, or as many, as it is told."""
    return len(value) + sum(one for one in every if isinstance(one, int))


def _indent(_steps: Steps, value: Any, *every: Any) -> int:
    widths = [len(one) if isinstance(one, str) else one for one in every if isinstance(one, str | int)] or [4]
    return len(value) + (value.count("\n") + 1) * max(widths) if isinstance(value, str) else 0


def _pieces(_steps: Steps, value: Any, *every: Any) -> int:
    """A text that may stand behind each of the value's characters."""
    return len(value) * (1 + max((len(one) for one in every if isinstance(one, str)), default=0))


def _beside(_steps: Steps, value: Any, *every: Any) -> int:
    """A text that may stand beside the value, or is looked up for each of its characters."""
    texts = sum(len(one) for one in every if isinstance(one, str))
    return len(value) + texts + texts * len(value) // 1000


def _replace(_steps: Steps, value: Any, old: Any = "", new: Any = "", *_: Any) -> int:
    return replaced_length(str(value), str(old), str(new))


def _format(steps: Steps, value: Any, *every: Any) -> int:
    return percent_length(str(value), sum(map(steps.weigh, every)))


_LENGTHS: Mapping[str, Length] = {
    **dict.fromkeys(("batch", "center", "round", "slice"), _wide),
    **dict.fromkeys(("trim", "truncate"), _beside),
    "format": _format,
    "indent": _indent,
    "replace": _replace,
    "wordwrap": _pieces,
}


@jinja2.pass_context
def _join(context: Any, value: Iterable[Any], d: str = "", attribute: str | int | None = None) -> str:
    """The values as texts, with *d* between them."""
    if attribute is not None:
        value = context.environment.call_filter("map", value, [], {"attribute": attribute}, context)
    parts = []
    left = MOST_CHARS
    for part in map(str, value):
        left -= len(part) + len(d)
        if left < 0:
            break  # what follows does not make it shorter
        parts.append(part)
    context.parent[STEPS].make(joined_length(parts, str(d)) if left >= 0 else MOST_CHARS + 1)
    return str(d).join(parts)


@jinja2.pass_context
def _sum(context: Any, iterable: Iterable[Any], attribute: str | int | None = None, start: float = 0) -> Any:
    """The sum of numbers; one of lists would copy them over and over."""
    if not isinstance(start, int | float):
        raise Unrenderable("the filter sum adds numbers, and start is one")
    if attribute is not None:
        iterable = context.environment.call_filter("map", iterable, [], {"attribute": attribute}, context)
    return sum(iterable, start)


def _tojson(value: Any, indent: int | None = None) -> str:
    """Plain JSON: Jinja2's own filter writes ``<`` and the like as HTML wants them."""
    if isinstance(value, Undefined):
        return str(value)  # which is an error
    return orjson.dumps(value, option=orjson.OPT_INDENT_2 if indent else None).decode()
