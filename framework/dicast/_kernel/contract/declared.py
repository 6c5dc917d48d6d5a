"""Values that components declare: their types, and the names in them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from inspect import getattr_static
from typing import Any

from ...toolkit.json_values import MISSING
from .. import events
from ..values.names import nearest
from ..values.score import JUDGE_KINDS
from .plugin_errors import describe_error, in_brackets, place_of

_EVENT_TYPES = tuple(value for name, value in vars(events).items() if name.isupper() and isinstance(value, str))

Check = Callable[[Any], str | None]
"""Returns the fault of a declared value, or None."""


def _names(noun: str, names: Collection[str], is_known: Callable[[str], bool]) -> Check:
    """Return the check for a tuple of names; *noun* is the noun for a name."""

    def check(value: Any) -> str | None:
        if isinstance(value, str):
            return f"is the text {value!r}; write a tuple: ({value!r},)"
        if not isinstance(value, Collection) or not all(isinstance(name, str) for name in value):
            return f"is {value!r:.100}, not a tuple of texts"
        wrong = next((name for name in value if not is_known(name)), None)
        return None if wrong is None else _unknown(noun, wrong, names)

    return check


def _unknown(noun: str, name: object, names: Collection[str]) -> str:
    near = nearest(str(name), names)
    hint = f", did you mean {near!r}?" if near else f"; use one of {', '.join(names)}"
    return f"has {name!r:.100}, which is no {noun}{hint}"


def _judge_kind(value: Any) -> str | None:
    return None if value in JUDGE_KINDS else _unknown("kind of judge", value, JUDGE_KINDS)


def _concurrency(value: Any) -> str | None:
    is_count = type(value) is int and value >= 1
    return None if is_count else f"is {value!r:.100}, not an integer of 1 or more"


def _label_options(value: Any) -> str | None:
    if isinstance(value, Mapping) and all(_is_texts(names) for names in value.values()):
        return None
    return f'is {value!r:.100}, not a mapping of options to tuples of labels, such as {{"on": (self.on,)}}'


def _is_texts(names: object) -> bool:
    is_list = isinstance(names, Collection) and not isinstance(names, str)
    return is_list and all(isinstance(name, str) for name in names)  # type: ignore[attr-defined]


_SUBJECT_KINDS = _names("kind of subject", (), bool)  # a source may have kinds of its own

_CHECKS: Mapping[str, Mapping[str, Check]] = {
    "source": {"kinds": _SUBJECT_KINDS},
    "judge": {"accepts": _SUBJECT_KINDS, "judge_kind": _judge_kind},
    "sink": {
        "wants": _names(
            "type of event",
            _EVENT_TYPES,
            lambda name: name in _EVENT_TYPES or not name.startswith(events.RESERVED_AREAS),
        )
    },
    "extractor": {"writes": _names("field", (), bool)},
    "executor": {"concurrency": _concurrency},
}


def declared_faults(kind: str, component: object) -> Iterator[str]:
    """Yield a message for each value that *component*, a component or a live object of *kind*, declares and a run cannot use."""
    for member, check in {**_CHECKS.get(kind, {}), "label_options": _label_options}.items():
        try:
            is_declared = getattr_static(component, member, MISSING) is not MISSING
            value = getattr(component, member) if is_declared else getattr(component, member, MISSING)  # of a wrapper
            fault = None if value is MISSING else check(value)
        except Exception as error:  # a property of a plugin
            fault = f"raised {describe_error(error, type(component).__module__)}"
        if fault is not None:
            yield f"{member} {fault}{in_brackets(place_of(type(component)))}"
