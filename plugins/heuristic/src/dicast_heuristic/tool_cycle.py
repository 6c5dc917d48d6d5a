"""The judge ``heuristic/tool_cycle``: whether a call of a tool did its work, and whether the agent went in circles after it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice

import attrs
import orjson

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

MOST_WINDOW = 20
"""How many of the calls that follow it the sources of traces bring with a tool cycle."""

Payload = Mapping[str, object]


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
            thrash.count("window", most=MOST_WINDOW),
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
class ToolCycle:
    """Score one call of a tool: did it succeed, was it called again at once, did the agent thrash, is its output of a likely size.

    It reads the call, its end, and the calls that follow in the turn, as the sources of traces bring them.

    :param rubric: the figures, by id or as a YAML file; there a tool may be given a range for the size of its output.
    """

    accepts = ("tool_cycle",)
    judge_kind = "heuristic"
    needs_output = False

    # The kernel puts the rubric in place of its id.
    rubric: Rubric = attrs.field(default="tool-cycle-heuristic-v1")  # type: ignore[assignment]  # an id
    _figures: Figures = attrs.field(init=False, eq=False, repr=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "_figures", Figures.read(self.rubric))

    def judge(self, subject: Subject, children: Sequence[Verdict]) -> Judgment | Failure:
        """Judge the call; where the events have neither it nor its end there is nothing to judge it by."""
        figures, events = self._figures, subject.events
        place, end = _own(events, subject.id)
        known = end if place is None else events[place]
        if known is None:
            return Failure("subject_not_found", f"no event is about the tool call {subject.id}")
        tool = known.payload.get("tool_name")
        again, thrash = _repetition(events, place, figures)
        repetition = figures.signs[NO_RE_CALL][not again], figures.signs[NO_THRASH][not thrash]
        signs = [_outcome(end, figures), *repetition, *_size(tool, end, figures)]
        positive, negative = flags(signs)
        signals = {"flags": positive, "flags_negative": negative, "tool_name": tool, "succeeded": signs[0].good}
        sure = confidence(figures.confidence, positive, negative)
        return Judgment(share(signs), sure, "heuristic", signals=signals, rubric=self.rubric)


def _own(events: Sequence[TraceEvent], id: str) -> tuple[int | None, TraceEvent | None]:
    """Where the call *id* is among *events*, and how it ended."""
    place, end = None, None
    for number, event in enumerate(events):
        payload, type_ = event.payload, event.type
        use = payload.get("tool_use_id")
        if use is None or (use != id and str(use) != id):
            continue
        if type_ == "tool.called":
            place = number if place is None else place
        elif type_ in {"tool.completed", "tool.failed"}:
            end = event
    return place, end


def _outcome(end: TraceEvent | None, figures: Figures) -> Sign:
    """The sign of how the call ended; an end that says nothing of success is one."""
    if end is None:
        return figures.incomplete
    return figures.signs[SUCCEEDED][end.type == "tool.completed" and end.payload.get("success") is not False]


def _repetition(events: Sequence[TraceEvent], place: int | None, figures: Figures) -> tuple[bool, bool]:
    """Whether the call at *place* is made again at once, and whether nearly so within the window."""
    if place is None:
        return False, False
    call = events[place].payload
    later = (event.payload for event in islice(events, place + 1, None) if event.type == "tool.called")
    following = list(islice(later, max(1, figures.window)))
    again = bool(following) and _repeats(call, following[0])
    return again, _is_thrash(call, following[: figures.window], figures.distance)


def _repeats(call: Payload, other: Payload) -> bool:
    """Whether *other* is the same tool with the same input, by the hash where both have one."""
    if call.get("tool_name") != other.get("tool_name"):
        return False
    digest, another = call.get("input_hash"), other.get("input_hash")
    if digest is not None and another is not None:
        return digest == another
    return "input" in call and "input" in other and _canonical(call) == _canonical(other)


def _is_thrash(call: Payload, following: Sequence[Payload], distance: float) -> bool:
    """Whether one of the calls *following* is the same tool with nearly the same input; an unknown input must be the same."""
    tool = call.get("tool_name")
    alike = [other for other in following if other.get("tool_name") == tool]
    if not alike or "input" not in call:
        return any(_repeats(call, other) for other in alike)
    own = _canonical(call)
    return any(
        within(own, _canonical(other), distance) if "input" in other else _repeats(call, other) for other in alike
    )


def _canonical(call: Payload) -> str:
    """The input of *call* as canonical JSON."""
    return orjson.dumps(call["input"], option=orjson.OPT_SORT_KEYS).decode()


def _size(tool: object, end: TraceEvent | None, figures: Figures) -> list[Sign]:
    """The sign of the output's size, where the tool has a range and the size is known."""
    limits = figures.sizes.get(str(tool))
    size = None if end is None else end.payload.get("output_size")
    if limits is None or not isinstance(size, int | float):
        return []
    return [figures.signs[SIZE][limits[0] <= size <= limits[1]]]
