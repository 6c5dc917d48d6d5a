"""Is the output the same JSON value as the reference, and where not?"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

import attrs
import orjson

from dicast import ConfigError, Failure, Score, Subject
from dicast.toolkit.json_values import check_field, read_json

from .paths import Branches, grow, pointer
from .sides import Sides, sides
from .values import differences

_MAX_LISTED = 3
_LISTED = 20
_COUNTED = 1000


def _paths(paths: Iterable[str]) -> tuple[str, ...]:
    if isinstance(paths, str):
        raise ConfigError(f"ignore is a list of paths: write [{paths}]")
    return tuple(paths)


def _check_paths(_: object, __: object, paths: tuple[str, ...]) -> None:
    grow(paths)


@attrs.frozen
class Json:
    """1 if the output is the same JSON value as the reference, else 0.

    The order of keys does not matter, 1 equals 1.0 and not true, and text is read as JSON. An output that is no JSON scores 0, a
    reference that is no JSON is a Failure. ``signals.paths`` are the JSON pointers of the first 20 differences, and
    ``signals.differences`` is their number, counted to 1000.

    :param ignore_order: lists are equal if they have the same items equally often, in any order.
    :param ignore: places that are left out on both sides, with everything inside them: dotted paths (``meta.time``) or JSON pointers
        (``/meta/time``), in which ``*`` is any key or index (``items.*.id``).
    :param field: compare only this place in the output, a dotted path (``steps.0.args``) or a JSON pointer
        (``/steps/0/args``), with the whole reference; text is read as JSON to get there. A missing field scores 0.
    """

    name = "json"
    tier = "truth"

    ignore_order: bool = False
    ignore: tuple[str, ...] = attrs.field(default=(), converter=_paths, validator=_check_paths)
    field: str | None = attrs.field(default=None, validator=check_field)
    _ignored: Branches = attrs.field(init=False, eq=False, repr=False)

    @_ignored.default
    def _grow(self) -> Branches:
        return grow(self.ignore)

    def score(self, subject: Subject) -> Score | Failure:
        """Compare the output of *subject*, or its field, with its reference."""
        sides_ = sides(subject, self.field, "diff/json")
        if not isinstance(sides_, Sides):
            return sides_
        try:
            reference = _value(sides_.reference)
        except orjson.JSONDecodeError as error:
            return sides_.unusable(f"is not JSON: {error}")
        try:
            output = _value(sides_.output)
        except orjson.JSONDecodeError as error:
            return Score(0.0, details=f"not JSON: {sides_.emptiness or error}", signals={"is_json": False})
        return self._compare(output, reference)

    def _compare(self, output: object, reference: object) -> Score:
        difference_list = differences(output, reference, self._ignored, ignore_order=self.ignore_order)
        counted = list(islice(difference_list, _COUNTED))
        if not counted:
            return Score(1.0, signals={"is_json": True, "equal": True})
        number = len(counted)
        listed = "; ".join(map(str, counted[:_MAX_LISTED])) + (
            f"; and {number - _MAX_LISTED:,} more" if number > _MAX_LISTED else ""
        )
        summary = "1 difference" if number == 1 else f"{number:,} differences{' or more' if number == _COUNTED else ''}"
        paths = [pointer(difference.path) for difference in counted[:_LISTED]]
        signals = {"is_json": True, "equal": False, "differences": number, "paths": paths}
        return Score(0.0, details=f"{summary}: {listed}", signals=signals)


def _value(side: object) -> object:
    return read_json(side) if isinstance(side, str) else side
