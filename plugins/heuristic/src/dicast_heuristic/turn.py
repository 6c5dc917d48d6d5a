"""The judge ``heuristic/turn``: lifecycle signals and what the assistant said, against a rubric."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from dicast import ConfigError, Failure, Judgment, Rubric, Subject, TraceEvent, Verdict

from .reading import Confidence, open_rubric

NEGATIVE = {
    "stop_reason_clean": "stop_reason_unclean",
    "no_llm_failure": "llm_call_failed",
    "no_tool_failure": "tool_failed",
    "no_tool_exit_failure": "tool_returned_failure",
    "no_max_tokens_hit": "max_tokens_hit",
    "tool_cycle_count_reasonable": "tool_cycle_count_excessive",
}
"""Every lifecycle signal, and the negative flag that stands where it does not fire."""

REFUSAL, EMPTY = "assistant_refusal_detected", "empty_assistant_response"

_TEXTS = ("final_response_text", "assistant_response_text")  # two names of one key


@attrs.frozen
class Figures:
    """What a rubric says; *total* is the sum of the *weights*, over which the fired ones are taken."""

    weights: Mapping[str, float]
    total: float
    clean_stop_reasons: tuple[str, ...]
    max_tool_calls: int
    penalties: Mapping[str, float]
    window: int
    phrases: tuple[str, ...]
    confidence: tuple[Confidence, ...]

    @classmethod
    def read(cls, rubric: object) -> Figures:
        """Read the figures of *rubric*.

        :raises ConfigError: naming everything that is wrong with it.
        """
        keys = ("weights", "clean_stop_reasons", "max_tool_calls", "penalties", "refusal", "confidence")
        content, problems = open_rubric(rubric, keys)
        weights = content.section("weights", tuple(NEGATIVE))
        penalties = content.section("penalties", (REFUSAL, EMPTY))
        refusal = content.section("refusal", ("window", "phrases"))
        weight = {name: weights.number(name) for name in NEGATIVE}
        figures = cls(
            weight,
            sum(weight.values()),
            content.texts("clean_stop_reasons"),
            content.count("max_tool_calls"),
            {name: penalties.number(name, 1) for name in (REFUSAL, EMPTY)},
            refusal.count("window"),
            tuple(_plain(phrase) for phrase in refusal.texts("phrases")),
            content.confidence("confidence"),
        )
        if problems:
            raise ConfigError(problems)
        if not figures.total:
            raise ConfigError("the rubric's weights are all 0; at least one signal must count")
        return figures


@attrs.frozen
class Turn:
    """Score a turn from its events: how it ended, what failed, whether the assistant refused or said nothing.

    :param rubric: the figures, by id or as a YAML file.
    :param lookahead_messages: after how many later user messages of the session a turn is judged where it is judged while the
        session goes on. A file that is read has them all: there it changes nothing.
    :param lookahead_hours: after how many hours without a later message it is judged then.
    """

    accepts = ("turn",)

    # The kernel puts the rubric in place of its id.
    rubric: Rubric = attrs.field(default="turn-heuristic-v1")  # type: ignore[assignment]  # an id
    lookahead_messages: int = attrs.field(default=5, validator=attrs.validators.ge(0))
    lookahead_hours: float = attrs.field(default=24.0, validator=attrs.validators.ge(0))
    _figures: Figures = attrs.field(init=False, eq=False, repr=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "_figures", Figures.read(self.rubric))

    def judge(self, subject: Subject, children: Sequence[Verdict]) -> Judgment | Failure:
        """Judge the turn; without any event there is nothing to judge it by."""
        if not subject.events:
            return Failure("subject_not_found", f"turn {subject.id} has no events")
        figures = self._figures
        completed = _completed(subject.events)
        fired = _lifecycle(subject.events, completed, figures)
        penalty = _penalty(completed, figures)
        positive = [name for name, good in fired.items() if good]
        negative = [NEGATIVE[name] for name, good in fired.items() if not good]
        score = sum(figures.weights[name] for name in positive) / figures.total
        if penalty is not None:
            negative.append(penalty)
            score *= figures.penalties[penalty]
        signals: dict[str, object] = {
            "flags": positive,
            "flags_negative": negative,
            "tool_call_count": _calls(completed),
        }
        if completed is not None:
            signals["stop_reason"] = completed.get("stop_reason")
        confidence = _confidence(figures.confidence, len(positive), len(negative))
        return Judgment(score, confidence, "heuristic", signals=signals, rubric=self.rubric)


def _completed(events: Sequence[TraceEvent]) -> Mapping[str, object] | None:
    """The payload of the turn's ``turn.completed``, the last if there are several."""
    return next((event.payload for event in reversed(events) if event.type == "turn.completed"), None)


def _lifecycle(
    events: Sequence[TraceEvent], completed: Mapping[str, object] | None, figures: Figures
) -> dict[str, bool]:
    """Which signals fired, in the order of the rubric's weights."""
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


def _penalty(completed: Mapping[str, object] | None, figures: Figures) -> str | None:
    """The flag of what is wrong with the assistant's text; nothing is wrong with a text that is not known."""
    texts = None if completed is None else completed.get("signals_extra")
    if not isinstance(texts, Mapping):
        return None
    given = [str(texts[key] or "").strip() for key in _TEXTS if key in texts]
    if not given:
        return None
    start = _plain(next(filter(None, given), "")[: figures.window])[: figures.window]
    if not start:
        return EMPTY
    return REFUSAL if any(phrase in start for phrase in figures.phrases) else None


def _plain(text: str) -> str:
    """Lower case, with straight apostrophes."""
    return text.lower().replace("\u2019", "'")


def _confidence(table: Sequence[Confidence], positive: int, negative: int) -> float:
    return next(line.value for line in table if negative <= line.max_negative and positive >= line.min_positive)
