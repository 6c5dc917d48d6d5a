"""The judge ``heuristic/session``: scores a session by the verdicts of its turns and by its end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from dicast import ConfigError, Failure, Judgment, Rubric, Subject, TraceEvent, Verdict, mean, nearest, weakest

from .children import labels, of_kind
from .feedback import DOWN, UP, Bounds, of_session
from .reading import open_rubric

MEAN, MIN, COMPLETED = "mean_turn_score", "min_turn_score", "disposition_completed"


@attrs.frozen
class Figures:
    """Figures of a rubric; *by_confidence* weighs each turn by its verdict's confidence."""

    weights: Mapping[str, float]
    by_confidence: bool
    no_turns: float
    swap_factor: float
    thumb_weight: float
    bounds: Bounds
    with_turns: float
    without_turns: float

    @classmethod
    def read(cls, rubric: object) -> Figures:
        """Read the figures of *rubric*.

        :raises ConfigError: with every fault of the rubric.
        """
        keys = ("weights", "turn_weight", "no_turns", "model_swap_factor", "thumbs", "confidence")
        content, problems = open_rubric(rubric, keys)
        weights = content.section("weights", (MEAN, MIN, COMPLETED))
        thumbs = content.section("thumbs", ("weight", "bounds"))
        confidence = content.section("confidence", ("with_turns", "without_turns"))
        figures = cls(
            {name: weights.number(name) for name in (MEAN, MIN, COMPLETED)},
            content.choice("turn_weight", ("equal", "confidence")) == "confidence",
            content.number("no_turns", 1),
            content.number("model_swap_factor", 1),
            thumbs.number("weight"),
            Bounds.read(thumbs.section("bounds", (UP, DOWN))),
            confidence.number("with_turns", 1),
            confidence.number("without_turns", 1),
        )
        if problems:
            raise ConfigError(problems)
        if not any(figures.weights.values()):
            raise ConfigError("the rubric's weights are all 0; at least one value must count")
        return figures

    def score(self, values: Mapping[str, float], swaps: int, thumb: str | None) -> float:
        """Return the score of *values*, named like their weights, after *swaps* of models and the *thumb*."""
        weighed = mean([values[name] for name in self.weights], [*self.weights.values()])
        score = weighed * self.swap_factor**swaps
        if thumb is not None:
            score = (score + self.thumb_weight * (thumb == UP)) / (1.0 + self.thumb_weight)
        return self.bounds.hold(score, thumb)


@attrs.frozen
class Session:
    """Score a session by the verdicts of its turns, its end, swaps of models, and the user's thumb.

    The basis of the verdict is ``heuristic``, or ``proxy`` if a turn's verdict has the basis ``proxy``.

    :param rubric: the figures, by id or as a YAML file.
    :param children: the label of the judge whose verdicts of turns count; by default the preceding judge of turns in the file.
    """

    accepts = ("session",)
    judge_kind = "heuristic"
    needs_output = False

    # The kernel replaces the id by the rubric.
    rubric: Rubric = attrs.field(default="session-aggregate-v1")  # type: ignore[assignment]  # an id
    children: str | None = None
    _figures: Figures = attrs.field(init=False, eq=False, repr=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "_figures", Figures.read(self.rubric))

    def judge(self, subject: Subject, children: Sequence[Verdict] = ()) -> Judgment | Failure:
        """Return the judgment of the session, or a failure if it has neither events nor verdicts."""
        turns = of_kind("turn", children, self.children)
        if not turns and (known_labels := labels("turn", children)):
            return Failure("missing_input", _unknown_label(str(self.children), known_labels))
        if not turns and not subject.events:
            return Failure("subject_not_found", f"session {subject.id} has neither events nor verdicts on its turns")
        figures, disposition = self._figures, _disposition(subject.events)
        thumb, thumbs_down = of_session(subject.events)
        swaps = _swaps(subject.events)
        values = self._turn_values(turns)
        score = figures.score({**values, COMPLETED: disposition == "completed"}, swaps, thumb)
        positive, negative = _flags(disposition, thumb, swaps)
        signals = {
            "flags": positive,
            "flags_negative": negative,
            "child_eval_ids": [turn.eval_id for turn in turns],
            **values,
            "turn_count": len(turns),
            "disposition": disposition,
            "turns_with_explicit_thumbs_down": thumbs_down,
            "distinct_models_swapped": swaps,
        }
        confidence = figures.with_turns if turns else figures.without_turns
        basis = weakest(("heuristic", *(turn.basis for turn in turns)))
        return Judgment(score, confidence, "heuristic", signals=signals, rubric=self.rubric, basis=basis)

    def _turn_values(self, turns: Sequence[Verdict]) -> dict[str, float]:
        figures = self._figures
        scores = [turn.score for turn in turns if turn.score is not None]
        if not scores:
            return {MEAN: figures.no_turns, MIN: figures.no_turns}
        weights = [turn.confidence if figures.by_confidence else 1.0 for turn in turns if turn.score is not None]
        if not any(weights):
            weights = [1.0] * len(scores)
        return {MEAN: mean(scores, weights), MIN: min(scores)}


def _unknown_label(label: str, known_labels: Sequence[str]) -> str:
    hint = nearest(label, known_labels)
    advice = f", did you mean {hint!r}?" if hint else ""
    names = ", ".join(known_labels)
    return f"no verdict on the session's turns is by {label!r}{advice} (option children; there are {names})"


def _disposition(events: Sequence[TraceEvent]) -> str | None:
    """Return the disposition at the session's end, or None if it is unknown."""
    ends = (event.payload.get("disposition") for event in reversed(events) if event.type == "session.ended")
    disposition = next(ends, None)
    return None if disposition is None else str(disposition)


def _swaps(events: Sequence[TraceEvent]) -> int:
    """Return the number of distinct models that the user swapped to.

    The model of a swap is that of the next ``route.decided``. All swaps without such an event count as a single model.
    """
    models: set[object] = set()
    swapping = False
    for event in events:
        if event.type == "feedback.implicit" and event.payload.get("type") == "manual_swap":
            swapping = True
        elif swapping and event.type == "route.decided":
            models.add(event.payload.get("chosen_model"))
            swapping = False
    return len(models | {None} if swapping else models)


def _flags(disposition: str | None, thumb: str | None, swaps: int) -> tuple[list[str], list[str]]:
    """Return the positive and the negative flags."""
    end = [f"disposition_{disposition}"] if disposition else []
    positive, negative = (end, []) if disposition == "completed" else ([], end)
    if thumb is not None:
        (positive if thumb == UP else negative).append(thumb)
    if swaps:
        negative.append("model_swapped")
    return positive, negative
