"""Read-only dicts and lists, so that the judged content and the events are the same for all components and for the ledger."""

from __future__ import annotations

from copy import deepcopy
from typing import Any, NoReturn

from . import Event, Subject, TraceEvent

REFUSED = "subjects, records and events are read-only, because several components share them"
"""Start of the message for a change of a read-only value."""

_SIMPLE = frozenset((str, int, float, bool, type(None)))


def _refuse(self: object, *args: object, **kwargs: object) -> NoReturn:
    raise TypeError(f"{REFUSED}; change a copy (copy.deepcopy)")


class ReadOnlyDict(dict[Any, Any]):
    """A dict that cannot be changed. A copy can be changed; after pickling it is read-only again."""

    __slots__ = ()
    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self) -> tuple[type[ReadOnlyDict], tuple[dict[Any, Any]]]:
        return ReadOnlyDict, (dict(self),)

    def __copy__(self) -> dict[Any, Any]:
        return dict(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> dict[Any, Any]:
        return deepcopy(dict(self), memo)


_NOTHING = ReadOnlyDict()


class ReadOnlyList(list[Any]):
    """A list that cannot be changed. A copy can be changed; after pickling it is read-only again."""

    __slots__ = ()
    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse
    append = clear = extend = insert = pop = remove = reverse = sort = _refuse

    def __reduce__(self) -> tuple[type[ReadOnlyList], tuple[list[Any]]]:
        return ReadOnlyList, (list(self),)

    def __copy__(self) -> list[Any]:
        return list(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> list[Any]:
        return deepcopy(list(self), memo)


def read_only(value: Any) -> Any:
    """Return *value* with read-only copies in place of dicts and lists. Other values, and values that contain themselves, are unchanged."""
    try:
        return value if type(value) in _SIMPLE else _copy(value)
    except RecursionError:  # recording it fails later, with the name of the subject
        return value


def _copy(value: Any) -> Any:
    kind = type(value)
    if kind is dict:
        copy: Any = ReadOnlyDict(value)
        if _SIMPLE.issuperset(map(type, value.values())):
            return copy
        for key, inner in value.items():
            if type(inner) not in _SIMPLE:
                dict.__setitem__(copy, key, _copy(inner))
        return copy
    if kind is list:
        if _SIMPLE.issuperset(map(type, value)):
            return ReadOnlyList(value)
        return ReadOnlyList([inner if type(inner) in _SIMPLE else _copy(inner) for inner in value])
    return tuple(map(_copy, value)) if kind is tuple else value


def seal(subject: Subject) -> None:
    """Make the values of *subject* read-only; simple values are unchanged."""
    put = object.__setattr__  # written flat: for every row
    if type(subject.output) not in _SIMPLE:
        put(subject, "output", read_only(subject.output))
    if type(subject.input) not in _SIMPLE:
        put(subject, "input", read_only(subject.input))
    if type(subject.reference) not in _SIMPLE:
        put(subject, "reference", read_only(subject.reference))
    context = subject.context
    put(subject, "context", read_only(context) if context or type(context) is not dict else _NOTHING)
    if subject.columns:
        put(subject, "columns", read_only(subject.columns))


def seal_event(event: TraceEvent) -> None:
    """Make the values of *event* read-only."""
    object.__setattr__(event, "payload", read_only(event.payload))
    object.__setattr__(event, "extra", read_only(event.extra) if event.extra else _NOTHING)


def is_sealed(event: object) -> bool:
    """Return whether *event* is a trace event that :func:`seal_event` made read-only."""
    return type(event) is TraceEvent and type(event.payload) is ReadOnlyDict


def seal_payload(event: Event) -> Event:
    """Return *event* after its payload was made read-only: sinks, the report and the ledger share it."""
    if type(event.payload) is dict:
        object.__setattr__(event, "payload", read_only(event.payload))
    return event
