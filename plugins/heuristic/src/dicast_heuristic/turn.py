"""The judge ``heuristic/turn``: scores a turn by lifecycle signals, the assistant's text and the user's feedback."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf

import attrs

from dicast import ConfigError, Failure, Judgment, Rubric, Subject, TraceEvent, Verdict, Within

from .children import of_kind
from .feedback import Weighing, of_turn
from .reading import Confidence, open_rubric
from .signs import Pair, Sign, confidence, flags, pair, seen, share
from .wording import KEYS, Wording, last_text

NEGATIVE = {
    "stop_reason_clean": "stop_reason_unclean",
    "no_llm_failure": "llm_call_failed",
    "no_tool_failure": "tool_failed",
    "no_tool_exit_failure": "tool_returned_failure",
    "no_max_tokens_hit": "max_tokens_hit",
    "tool_cycle_count_reasonable": "tool_cycle_count_excessive",
}
"""Every lifecycle signal, with its negative flag if it does not fire."""

LOW_CYCLES = "tool_cycles_with_score_below_threshold"

UNFINISHED = {"model_failure": 0.4, "interruption": 0.4}
"""Factors on the score of a turn that the agent did not finish, by the values of ``ended_by`` in ``turn.completed``. A rubric may have others
in its section ``unfinished``. A negative flag ``ended_by_VALUE`` belongs to each value."""


@attrs.frozen
class Figures:
    """Figures of a rubric: *lifecycle* has the signs by the names of their signals, *low_cycles* the signs of tool cycles.

    *unfinished* has the factors on turns that the agent did not finish, by the values of ``ended_by``.
    """

    lifecycle: Mapping[str, Pair]
    clean_stop_reasons: tuple[str, ...]
    max_tool_calls: int
    wording: Wording
    unfinished: Mapping[str, float]
    low_cycles: Pair
    cycle_threshold: float
    feedback: Weighing
    confidence: tuple[Confidence, ...]

    @classmethod
    def read(cls, rubric: object) -> Figures:
        """Read the figures of *rubric*.

        :raises ConfigError: with every fault of the rubric.
        """
        keys = ("weights", "clean_stop_reasons", "max_tool_calls", *KEYS, "tool_cycles", "feedback", "confidence")
        content, problems = open_rubric(rubric, (*keys, "unfinished"))
        weights = content.section("weights", tuple(NEGATIVE))
        cycles = content.section("tool_cycles", ("weight", "threshold"))
        unfinished = content.optional("unfinished", tuple(UNFINISHED))
        figures = cls(
            {name: pair(name, negative, weights.number(name)) for name, negative in NEGATIVE.items()},
            content.texts("clean_stop_reasons"),
            content.count("max_tool_calls"),
            Wording.read(content),
            {name: unfinished.number(name, 1, factor) for name, factor in UNFINISHED.items()},
            pair("no_tool_cycle_below_threshold", "tool_cycle_below_threshold", cycles.number("weight")),
            cycles.number("threshold", 1),
            Weighing.read(content.section("feedback", ("weights", "bounds"))),
            content.confidence("confidence"),
        )
        if problems:
            raise ConfigError(problems)
        if not any(good.weight for _, good in figures.lifecycle.values()):
            raise ConfigError("the rubric's weights are all 0; at least one signal must count")
        return figures


@attrs.frozen
class Turn:
    """Score a turn by its end, its failures, the assistant's text and the user's feedback.

    A turn of a recorded session that ends with a failed call of the model, or that was stopped, does not pass without a thumb up.
    A thumb decides on which side of 0.5 the score is. Without a thumb, a retry, a swap of the model or an edit of the question puts
    the score below 0.5. The rubric has the weight of low verdicts of the turn's tool cycles.

    :param rubric: the figures, by id or as a YAML file.
    :param lookahead_messages: the number of later user messages within which a retry counts. In a live session, a turn is judged after
        this number of messages.
    :param lookahead_hours: the number of hours without a later message after which a live turn is judged. It has no effect on files,
        which have all messages.
    """

    accepts = ("turn",)
    judge_kind = "heuristic"
    needs_output = False

    # The kernel replaces the id by the rubric.
    rubric: Rubric = attrs.field(default="turn-heuristic-v1")  # type: ignore[assignment]  # an id
    lookahead_messages: int = attrs.field(default=5, validator=Within(0, inf, "0 or more"))
    lookahead_hours: float = attrs.field(default=24.0, validator=Within(0, inf, "0 or more hours"))
    _figures: Figures = attrs.field(init=False, eq=False, repr=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "_figures", Figures.read(self.rubric))

    def judge(self, subject: Subject, children: Sequence[Verdict] = ()) -> Judgment | Failure:
        """Return the judgment of the turn, or a failure if it has no events."""
        if not subject.events:
            return Failure("subject_not_found", f"turn {subject.id} has no events")
        figures, opinion = self._figures, of_turn(subject, self.lookahead_messages)
        completed = _completed(subject.events)
        low_cycles = _low_cycles(children, figures.cycle_threshold)
        signs = seen(figures.lifecycle, _lifecycle(subject.events, completed, figures))
        signs += _cycle_sign(low_cycles, figures.low_cycles)
        signs += figures.feedback.signs(opinion)
        score, (positive, negative) = share(signs), flags(signs)
        if fault := figures.wording.fault(_final_text(completed)):
            negative.append(fault)
            score *= figures.wording.penalties[fault]
        if (ended_by := _ended_by(completed)) is not None:
            negative.append(f"ended_by_{ended_by}")
            score *= figures.unfinished[ended_by]
        score = figures.feedback.hold(score, opinion)
        value = confidence(figures.confidence, positive, negative)
        signals = {"flags": positive, "flags_negative": negative, **_signals(completed, low_cycles)}
        return Judgment(score, value, "heuristic", signals=signals, rubric=self.rubric)


def _completed(events: Sequence[TraceEvent]) -> Mapping[str, object] | None:
    """Return the payload of the turn's last ``turn.completed``, or None."""
    return next((event.payload for event in reversed(events) if event.type == "turn.completed"), None)


def _ended_by(completed: Mapping[str, object] | None) -> str | None:
    """Return why the agent did not finish the turn, one of :data:`UNFINISHED`; None for another turn."""
    ended_by = None if completed is None else completed.get("ended_by")
    return ended_by if isinstance(ended_by, str) and ended_by in UNFINISHED else None


def _signals(completed: Mapping[str, object] | None, low_cycles: int | None) -> dict[str, object]:
    """Return the further signals of the verdict, without unknown values."""
    stop_reason = {} if completed is None else {"stop_reason": completed.get("stop_reason")}
    cycles = {} if low_cycles is None else {LOW_CYCLES: low_cycles}
    return {"tool_call_count": _calls(completed), **stop_reason, **cycles}


def _lifecycle(
    events: Sequence[TraceEvent], completed: Mapping[str, object] | None, figures: Figures
) -> dict[str, bool]:
    """Return for each signal whether it fired, in the order of the rubric's weights."""
    fired = dict.fromkeys(NEGATIVE, True)
    fired["stop_reason_clean"] = completed is not None and completed.get("stop_reason") in figures.clean_stop_reasons
    fired["tool_cycle_count_reasonable"] = _calls(completed) <= figures.max_tool_calls
    for event in events:
        match event.type:
            case "llm.call_failed":
                fired["no_llm_failure"] = False
            case "tool.failed":
                fired["no_tool_failure"] = False
            case "tool.completed" if event.payload.get("success") is False:
                fired["no_tool_exit_failure"] = False
            case "llm.call_completed" if event.payload.get("stop_reason") == "max_tokens":
                fired["no_max_tokens_hit"] = False
    return fired


def _calls(completed: Mapping[str, object] | None) -> int:
    count = 0 if completed is None else completed.get("tool_call_count")
    return count if isinstance(count, int) else 0


def _final_text(completed: Mapping[str, object] | None) -> str | None:
    return None if completed is None else last_text(completed.get("signals_extra"))


def _low_cycles(children: Sequence[Verdict], threshold: float) -> int | None:
    """Return the number of the turn's tool cycles with a score below *threshold*, or None without verdicts."""
    cycles = of_kind("tool_cycle", children) if children else ()
    return sum(cycle.score is not None and cycle.score < threshold for cycle in cycles) if cycles else None


def _cycle_sign(low_cycles: int | None, signs: Pair) -> list[Sign]:
    """Return the sign of the tool cycles, if they have verdicts and the sign has a weight."""
    sign = signs[not low_cycles]
    return [sign] if sign.weight and low_cycles is not None else []
