"""The differences between calls and reference calls, in words and as signals."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property

import attrs

from .arguments import ArgumentRules
from .calls import UNKNOWN, Call
from .matching import Equal, Matching

_MOST = 10
"""Most calls that one line of the feedback names."""


@attrs.frozen(slots=False)
class Comparison:
    """A comparison of *calls* with *references*, paired by *matching*. *repeats* are the places of allowed repeats."""

    calls: Sequence[Call]
    references: Sequence[Call]
    matching: Matching
    repeats: Collection[int]
    rules: ArgumentRules
    equal: Equal

    @cached_property
    def _misplaced(self) -> Mapping[int, int]:
        """Open reference calls that equal a free call at another place in the order: the place of the call by that of the reference."""
        free = [place for place in self._unmatched if place not in self.repeats]
        misplaced: dict[int, int] = {}
        for reference in self._open:
            place = next((place for place in free if self.equal(place, reference)), None)
            if place is not None:
                misplaced[reference] = place
                free.remove(place)
        return misplaced

    @cached_property
    def _differing(self) -> Mapping[int, int]:
        """Other open reference calls with a free call of the same tool: the place of the call by that of the reference."""
        free = [place for place in self._unmatched if place not in {*self.repeats, *self._misplaced.values()}]
        differing: dict[int, int] = {}
        for reference in self._open:
            name = self.references[reference].name
            place = next((place for place in free if self.calls[place].name == name), None)
            if reference not in self._misplaced and place is not None:
                differing[reference] = place
                free.remove(place)
        return differing

    @cached_property
    def _unmatched(self) -> list[int]:
        return sorted(set(range(len(self.calls))) - self.matching.calls())

    @cached_property
    def _open(self) -> list[int]:
        return sorted(set(range(len(self.references))) - self.matching.references())

    def signals(self, mode: str) -> Mapping[str, object]:
        """Return the tools of missing, extra, misplaced and differing calls, without empty lists."""
        explained = {**self._misplaced, **self._differing}
        lists = {
            "missing": [self.references[place].name for place in self._open if place not in explained],
            "extra": [self.calls[place].name for place in self._extra],
            "misplaced": [self.references[place].name for place in self._misplaced],
            "differing": [self.references[place].name for place in self._differing],
        }
        return {kind: names for kind, names in lists.items() if names}

    @property
    def _extra(self) -> list[int]:
        explained = {*self.repeats, *self._misplaced.values(), *self._differing.values()}
        return [place for place in self._unmatched if place not in explained]

    def feedback(self, mode: str) -> str:
        """Return a line for each kind of difference that *mode* counts."""
        explained = {**self._misplaced, **self._differing}
        missing = [call_text(self.references[place]) for place in self._open if place not in explained]
        extra = [f"{call_text(self.calls[place])} (call {place + 1})" for place in self._extra]
        misplaced = [
            f"{self.references[reference].name} (call {place + 1}, reference {reference + 1})"
            for reference, place in self._misplaced.items()
        ]
        differing = [
            f"{self.references[reference].name} (call {place + 1}): {'; '.join(self._differences(place, reference))}"
            for reference, place in self._differing.items()
        ]
        lines = {"Missing": missing, "Extra": extra, "Misplaced": misplaced, "Differing arguments": differing}
        ignored = {"exact": (), "subset": ("Missing",)}.get(mode, ("Extra",))
        return "\n".join(f"{kind}: {_some(texts)}." for kind, texts in lines.items() if texts and kind not in ignored)

    def _differences(self, place: int, reference: int) -> list[str]:
        return self.rules.differences(self.calls[place].arguments, self.references[reference].arguments)


def call_text(call: Call) -> str:
    """Return *call* in one line."""
    if call.arguments is UNKNOWN or call.arguments == {}:
        return call.name
    arguments = call.arguments
    if isinstance(arguments, Mapping):
        text = ", ".join(f"{key}={value!r}" for key, value in arguments.items())
    else:
        text = repr(arguments)
    return f"{call.name}({text if len(text) <= 80 else text[:80] + '…'})"


def _some(texts: Sequence[str]) -> str:
    rest = len(texts) - _MOST
    return ", ".join(texts[:_MOST]) + (f" and {rest} more" if rest > 0 else "")
