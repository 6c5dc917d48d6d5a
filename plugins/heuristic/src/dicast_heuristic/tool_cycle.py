"""The judge ``heuristic/tool_cycle``: whether a call of a tool did its work, and whether the agent went in circles after it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import islice

import attrs

from dicast import ConfigError, Failure, Judgment, Rubric, Subject, TraceEvent, Verdict

from .distance import within
from .reading import Confidence, open_rubric
from .signs import Pair, Sign, confidence, flags, pair, share

SUCCEEDED, NO_RE_CALL = "tool_succeeded", "no_immediate_re_call_same_input"
NO_THRASH, SIZE = "no_thrash_in_window", "output_size_in_window"
NEGATIVE = {
    SUCCEEDED: "tool_failed",
    NO_RE_CALL: "immediate_re_call_same_input",
    NO_THRASH: "thrash_in_window",
    SIZE: "output_size_out_of_window",
}
INCOMPLETE = "tool_did_not_complete"


@attrs.frozen
class Figures:
    """What a rubric says: *signs* by the names of their signals, and *incomplete*, that of a call without an end."""

    signs: Mapping[str, Pair]
    incomplete: Sign
    window: int
    distance: float
    sizes: Mapping[str, tuple[float, float]]
    confidence: tuple[Confidence, ...]

    @classmethod
    def read(cls, rubric: object) -> Figures:
        """Read the figures of *rubric*.

        :raises ConfigError: naming everything that is wrong with it.
        """
        content, problems = open_rubric(rubric, ("weights", "thrash", "output_sizes", "confidence"))
        weights = content.section("weights", tuple(NEGATIVE))
        thrash = content.section("thrash", ("window", "distance"))
        signs = {name: pair(name, negative, weights.number(name)) for name, negative in NEGATIVE.items()}
        figures = cls(
            signs,
            Sign(INCOMPLETE, False, signs[SUCCEEDED][0].weight),
            thrash.count("window"),
            thrash.number("distance", 1),
            content.ranges("output_sizes"),
            content.confidence("confidence"),
        )
        if problems:
            raise ConfigError(problems)
        if not any(signs[name][0].weight for name in (SUCCEEDED, NO_RE_CALL, NO_THRASH)):
            raise ConfigError(
                "the rubric's weights are 0 for every tool without a range; at least one signal must count"
            )
        return figures


@attrs.frozen
class Call:
    """One call of a tool: its name, its input as canonical JSON (None where unknown), and the input's hash."""

    tool: object
    input: str | None
    hash: object

    @classmethod
    def of(cls, event: TraceEvent) -> Call:
        """The call of a ``tool.called``."""
        payload = event.payload
        known, given = "input" in payload, payload.get("input")
        text = json.dumps(given, sort_keys=True, ensure_ascii=False, separators=(",", ":")) if known else None
        return cls(payload.get("tool_name"), text, payload.get("input_hash"))

    def repeats(self, other: Call) -> bool:
        """Whether *other* is the same tool with the same input, by the hash where both have one."""
        if self.tool != other.tool:
            return False
        if self.hash is not None and other.hash is not None:
            return self.hash == other.hash
        return self.input is not None and self.input == other.input

    def resembles(self, other: Call, distance: float) -> bool:
        """Whether *other* is the same tool with nearly the same input; where the inputs are unknown, with the same one."""
        if self.input is None or other.input is None:
            return self.repeats(other)
        return self.tool == other.tool and within(self.input, other.input, distance)


@attrs.frozen
class ToolCycle:
    """Score one call of a tool: did it succeed, was it called again at once, did the agent thrash, is its output of a likely size.

    It reads the call, its end, and the calls that follow in the turn, as the sources of traces bring them.

    :param rubric: the figures, by id or as a YAML file; there a tool may be given a range for the size of its output.
    """

    accepts = ("tool_cycle",)
    judge_kind = "heuristic"

    # The kernel puts the rubric in place of its id.
    rubric: Rubric = attrs.field(default="tool-cycle-heuristic-v1")  # type: ignore[assignment]  # an id
    _figures: Figures = attrs.field(init=False, eq=False, repr=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "_figures", Figures.read(self.rubric))

    def judge(self, subject: Subject, children: Sequence[Verdict]) -> Judgment | Failure:
        """Judge the call; where the events have neither it nor its end there is nothing to judge it by."""
        own = [event for event in subject.events if _is_of(event, subject.id)]
        call = next((event for event in own if event.type == "tool.called"), None)
        end = next((event for event in reversed(own) if event.type in ("tool.completed", "tool.failed")), None)
        known = call or end
        if known is None:
            return Failure("subject_not_found", f"no event is about the tool call {subject.id}")
        figures, tool = self._figures, known.payload.get("tool_name")
        signs = [_outcome(end, figures), *_size(tool, end, figures)]
        signs[1:1] = _repetition(call, subject.events, figures)
        positive, negative = flags(signs)
        signals = {"flags": positive, "flags_negative": negative, "tool_name": tool, "succeeded": signs[0].good}
        sure = confidence(figures.confidence, positive, negative)
        return Judgment(share(signs), sure, "heuristic", signals=signals, rubric=self.rubric)


def _is_of(event: TraceEvent, id: str) -> bool:
    use = event.payload.get("tool_use_id")
    return use is not None and str(use) == id


def _outcome(end: TraceEvent | None, figures: Figures) -> Sign:
    """The sign of how the call ended; an end that says nothing of success is one."""
    if end is None:
        return figures.incomplete
    return figures.signs[SUCCEEDED][end.type == "tool.completed" and end.payload.get("success") is not False]


def _repetition(call: TraceEvent | None, events: Sequence[TraceEvent], figures: Figures) -> list[Sign]:
    """The signs of the calls that follow *call* among *events*."""
    following: list[Call] = []
    if call is not None:
        place = next(place for place, event in enumerate(events) if event is call)
        later = (event for event in events[place + 1 :] if event.type == "tool.called")
        following = [Call.of(event) for event in islice(later, max(1, figures.window))]
    again = thrash = False
    if call is not None and following:
        own = Call.of(call)
        again = own.repeats(following[0])
        thrash = any(own.resembles(other, figures.distance) for other in following[: figures.window])
    return [figures.signs[NO_RE_CALL][not again], figures.signs[NO_THRASH][not thrash]]


def _size(tool: object, end: TraceEvent | None, figures: Figures) -> list[Sign]:
    """The sign of the output's size, where the tool has a range and the size is known."""
    limits = figures.sizes.get(str(tool))
    size = None if end is None else end.payload.get("output_size")
    if limits is None or not isinstance(size, int | float):
        return []
    return [figures.signs[SIZE][limits[0] <= size <= limits[1]]]
