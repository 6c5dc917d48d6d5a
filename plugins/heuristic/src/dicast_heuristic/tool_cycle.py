"""The judge ``heuristic/tool_cycle``: scores a call of a tool by its success and by repetitions after it."""

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
"""Maximum number of later calls that a source of traces adds to a tool cycle."""

Payload = Mapping[str, object]


@attrs.frozen
class Figures:
    """Figures of a rubric: *signs* by the names of their signals, and *incomplete*, the sign of a call without an end."""

    signs: Mapping[str, Pair]
    incomplete: Sign
    window: int
    distance: float
    sizes: Mapping[str, tuple[float, float]]
    confidence: tuple[Confidence, ...]

    @classmethod
    def read(cls, rubric: object) -> Figures:
        """Read the figures of *rubric*.

        :raises ConfigError: with every fault of the rubric.
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
    """Score a call of a tool by its success, an immediate repetition, thrashing, and the size of its output.

    The judge reads the call, its end, and the later calls of the turn.

    :param rubric: the figures, by id or as a YAML file. They may have a range for the size of a tool's output.
    """

    accepts = ("tool_cycle",)
    judge_kind = "heuristic"
    needs_output = False

    # The kernel replaces the id by the rubric.
    rubric: Rubric = attrs.field(default="tool-cycle-heuristic-v1")  # type: ignore[assignment]  # an id
    _figures: Figures = attrs.field(init=False, eq=False, repr=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "_figures", Figures.read(self.rubric))

    def judge(self, subject: Subject, children: Sequence[Verdict] = ()) -> Judgment | Failure:
        """Return the judgment of the call, or a failure if the events have neither the call nor its end."""
        figures, events = self._figures, subject.events
        place, end = _find_call(events, subject.id)
        event = end if place is None else events[place]
        if event is None:
            return Failure("subject_not_found", f"no event is about the tool call {subject.id}")
        tool = event.payload.get("tool_name")
        again, thrash = _repetition(events, place, figures)
        repetition = figures.signs[NO_RE_CALL][not again], figures.signs[NO_THRASH][not thrash]
        signs = [_outcome(end, figures), *repetition, *_size(tool, end, figures)]
        positive, negative = flags(signs)
        signals = {"flags": positive, "flags_negative": negative, "tool_name": tool, "succeeded": signs[0].good}
        value = confidence(figures.confidence, positive, negative)
        return Judgment(share(signs), value, "heuristic", signals=signals, rubric=self.rubric)


def _find_call(events: Sequence[TraceEvent], id: str) -> tuple[int | None, TraceEvent | None]:
    """Return the index of the call *id* in *events*, and its end."""
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
    """Return the sign of the call's end; an end without a word about success counts as a success."""
    if end is None:
        return figures.incomplete
    return figures.signs[SUCCEEDED][end.type == "tool.completed" and end.payload.get("success") is not False]


def _repetition(events: Sequence[TraceEvent], place: int | None, figures: Figures) -> tuple[bool, bool]:
    """Return whether the call at *place* is repeated at once, and whether a similar call follows within the window."""
    if place is None:
        return False, False
    call = events[place].payload
    later = (event.payload for event in islice(events, place + 1, None) if event.type == "tool.called")
    following = list(islice(later, max(1, figures.window)))
    again = bool(following) and _repeats(call, following[0])
    return again, _is_thrash(call, following[: figures.window], figures.distance)


def _repeats(call: Payload, later: Payload) -> bool:
    """Return whether *later* has the same tool and input as *call*, by their hashes if both have one."""
    if call.get("tool_name") != later.get("tool_name"):
        return False
    digest, later_digest = call.get("input_hash"), later.get("input_hash")
    if digest is not None and later_digest is not None:
        return digest == later_digest
    return "input" in call and "input" in later and _canonical(call) == _canonical(later)


def _is_thrash(call: Payload, following: Sequence[Payload], distance: float) -> bool:
    """Return whether a call in *following* has the same tool and a similar input. Unknown inputs are compared by hash."""
    tool = call.get("tool_name")
    candidates = [later for later in following if later.get("tool_name") == tool]
    if not candidates or "input" not in call:
        return any(_repeats(call, later) for later in candidates)
    text = _canonical(call)
    return any(
        within(text, _canonical(later), distance) if "input" in later else _repeats(call, later) for later in candidates
    )


def _canonical(call: Payload) -> str:
    """Return the input of *call* as canonical JSON."""
    return orjson.dumps(call["input"], option=orjson.OPT_SORT_KEYS).decode()


def _size(tool: object, end: TraceEvent | None, figures: Figures) -> list[Sign]:
    """Return the sign of the output's size, if the tool has a range and the size is known."""
    limits = figures.sizes.get(str(tool))
    size = None if end is None else end.payload.get("output_size")
    if limits is None or not isinstance(size, int | float):
        return []
    return [figures.signs[SIZE][limits[0] <= size <= limits[1]]]
