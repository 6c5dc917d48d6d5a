"""The search: gepa's loop with dicast's evaluations and reflections."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import fsum
from typing import Any, cast

import attrs

from .evaluation import Evaluation, Evaluator, Item, Stopped, items
from .reflect import Reflector
from .spec import Spec
from .summary import standstill

TEXT = "text"
MOST_IDLE = 20
"""Most steps in a row without a new evaluation."""

PERFECT = 1.0


@attrs.frozen
class Candidate:
    """A text that was evaluated on every item of the comparison; *score* is None if an evaluation failed."""

    text: str
    evaluations: Sequence[Evaluation]

    @property
    def score(self) -> float | None:
        """The mean score, in [0, 1] or on the evaluator's own scale."""
        scores = [evaluation.score for evaluation in self.evaluations if evaluation.score is not None]
        return fsum(scores) / len(scores) if scores and len(scores) == len(self.evaluations) else None

    @property
    def is_raw(self) -> bool:
        """True if the score is on the evaluator's own scale."""
        return any(evaluation.is_raw for evaluation in self.evaluations)

    @property
    def metrics(self) -> dict[str, float]:
        """The mean score of each label."""
        scores_by_label: dict[str, list[float]] = {}
        for evaluation in self.evaluations:
            for label, value in evaluation.metrics.items():
                scores_by_label.setdefault(label, []).append(value)
        return {label: fsum(values) / len(values) for label, values in scores_by_label.items()}


class Search:
    """Search for a better text than the seed of *spec*. *candidates* are the compared texts, the seed first."""

    def __init__(self, spec: Spec, evaluator: Evaluator, reflector: Reflector, say: Callable[[str], object]) -> None:
        self._spec, self._evaluator, self._reflector, self._say = spec, evaluator, reflector, say
        self.compared_on = items(spec.validated_on, spec.dataset if spec.valset is None else spec.valset)
        self.trained_on = items("dataset", spec.dataset)
        self._minibatch = min(int(spec.optimization.get("minibatch", 3)), len(self.trained_on))
        self._history: list[float] = []
        self._idle, self._calls_then = 0, -1
        self._latest: dict[tuple[Item, str], Evaluation] = {}
        self.candidates: list[Candidate] = []
        self._fault: Exception | None = None
        self.stopped = Stopped("budget", "the budget of calls is spent")

    @property
    def best(self) -> Candidate | None:
        """The first candidate with the highest score."""
        scored = [candidate for candidate in self.candidates if candidate.score is not None]
        return max(scored, key=lambda candidate: candidate.score or 0.0, default=None)

    @property
    def is_raw(self) -> bool:
        """True if the evaluator answers on its own scale."""
        return any(evaluation.is_raw for evaluation in self._latest.values())

    @property
    def lowest(self) -> float:
        """Score of a failed evaluation in the ranking: 0, or the lowest score so far on a raw scale."""
        scores = [evaluation.score for evaluation in self._latest.values() if evaluation.score is not None]
        return min(scores, default=0.0) if self.is_raw else 0.0

    @property
    def has_only_seed(self) -> bool:
        """True if texts were proposed, and none of the proposals has a score."""
        proposed = [(text, evaluation) for (_, text), evaluation in self._latest.items() if text != self._spec.seed]
        return bool(proposed) and all(evaluation.score is None for _, evaluation in proposed)

    @property
    def unscored(self) -> int:
        """The number of texts without a score: candidates whose mean is None, and texts whose evaluations all failed."""
        tried: dict[str, list[Evaluation]] = {}
        for (_, text), candidate in self._latest.items():
            tried.setdefault(text, []).append(candidate)
        without = {
            text for text, evaluations in tried.items() if all(candidate.score is None for candidate in evaluations)
        }
        return len(without | {candidate.text for candidate in self.candidates if candidate.score is None})

    def run(self) -> None:
        """Search until a limit is reached; :attr:`stopped` has the reason."""
        from gepa.api import optimize  # slow import

        try:
            optimize(
                {TEXT: self._spec.seed},
                trainset=self.trained_on,
                valset=self.compared_on,
                adapter=cast("Any", _Adapter(self)),
                custom_candidate_proposer=self._propose,
                reflection_minibatch_size=self._minibatch,
                perfect_score=PERFECT,
                skip_perfect_score=not self._spec.is_raw,
                seed=int(self._spec.optimization.get("random_seed", 0)),
                stop_callbacks=cast("Any", [self._is_over]),
                callbacks=cast("Any", [_Watch(self)]),
                logger=_Quiet(),
                track_best_outputs=False,
                raise_on_exception=True,
            )
        except Stopped as stopped:
            self.stopped = stopped
        except KeyboardInterrupt:
            self.stopped = Stopped("interrupted", "interrupted")

    def evaluate(self, batch: Sequence[Item], text: str) -> list[Evaluation]:
        """Return the evaluations of *text* on *batch*.

        :raises Stopped: if every evaluation of the seed failed.
        """
        with self._noted():
            evaluations = self._evaluator.ask(text, batch)
        self._latest.update(
            {(_plain(item), text): evaluation for item, evaluation in zip(batch, evaluations, strict=True)}
        )
        if not self.candidates and all(evaluation.score is None for evaluation in evaluations):
            raise Stopped("seed_failed", f"the seed has no score: {evaluations[0].failure}")
        return evaluations

    @contextmanager
    def _noted(self) -> Iterator[None]:
        """Keep an exception and raise it again on later calls. gepa would only treat its step as failed."""
        if self._fault is not None:
            raise self._fault
        try:
            yield
        except Exception as error:
            self._fault = error
            raise

    def compared(self, text: str) -> None:
        """Record *text* as a candidate; all items of the comparison have been evaluated."""
        candidate = Candidate(text, [self._latest[_plain(item), text] for item in self.compared_on])
        self.candidates.append(candidate)
        score = "no score" if candidate.score is None else f"{candidate.score:.4f}"
        self._say(
            f"candidate {len(self.candidates)}: {score} on {self._spec.validated_on}, {self._evaluator.calls} calls"
        )

    def _propose(
        self,
        candidate: Mapping[str, str],
        reflective_dataset: Mapping[str, Sequence[Mapping[str, Any]]],
        components_to_update: Sequence[str],
    ) -> dict[str, str]:
        with self._noted():
            return {TEXT: self._reflector.propose(candidate[TEXT], reflective_dataset[TEXT])}

    def _is_over(self, state: object) -> bool:
        """Return whether the search is over; called before each step."""
        if self._fault is None and (reason := self._reason()) is not None:
            self._fault = Stopped(*reason)
        if isinstance(self._fault, Stopped):
            self.stopped = self._fault
        elif self._fault is not None:
            raise self._fault
        return self._fault is not None

    def _reason(self) -> tuple[str, str] | None:
        best, optimization = self.best, self._spec.optimization
        calls = self._evaluator.calls
        self._idle = self._idle + 1 if calls == self._calls_then else 0
        self._calls_then = calls
        if best is not None or not self.is_raw:
            self._history.append(0.0 if best is None or best.score is None else best.score)
        needed = 2 * self._minibatch + len(self.compared_on)
        if best is not None and not best.is_raw and best.score is not None and best.score >= PERFECT:
            return "perfect", "the best candidate has the highest possible score"
        if self._evaluator.limit is not None and calls + needed > self._evaluator.limit:
            return "budget", f"another step may need {needed} calls, but {self._evaluator.limit - calls} are left"
        window, threshold = optimization.get("early_stop_window", 10), optimization.get("early_stop_threshold", 0.005)
        stops = self._spec.early_stop and (not self.is_raw or "early_stop_threshold" in optimization)
        if stops and standstill(self._history, window, threshold):
            return "plateau", f"the best score rose by no more than {threshold} over {window} steps"
        if self._idle >= MOST_IDLE:
            return "idle", f"{MOST_IDLE} steps brought nothing new to evaluate"
        return None


class _Adapter:
    """Adapter for gepa, whose candidates have only one component: the text."""

    propose_new_texts = None

    def __init__(self, search: Search) -> None:
        self._search = search

    def evaluate(self, batch: list[Item], candidate: dict[str, str], capture_traces: bool = False) -> Any:
        """Return the evaluations of *batch*. gepa needs a number for each, so that a failed evaluation gets the lowest score here."""
        from gepa.core.adapter import EvaluationBatch  # slow import

        evaluations = self._search.evaluate(batch, candidate[TEXT])
        return EvaluationBatch(
            outputs=[None] * len(evaluations),
            scores=[
                self._search.lowest if evaluation.score is None else evaluation.score for evaluation in evaluations
            ],
            trajectories=list(zip(batch, evaluations, strict=True)) if capture_traces else None,
        )

    def make_reflective_dataset(
        self, candidate: dict[str, str], eval_batch: Any, components_to_update: list[str]
    ) -> dict[str, list[dict[str, Any]]]:
        """Return the records of a batch that the reflection model reads."""
        return {
            name: [_record(item, evaluation) for item, evaluation in eval_batch.trajectories]
            for name in components_to_update
        }


class _Watch:
    """Callback that reports each compared candidate."""

    def __init__(self, search: Search) -> None:
        self._search = search

    def on_valset_evaluated(self, event: Mapping[str, Any]) -> None:
        """Record and report the candidate; gepa calls this."""
        self._search.compared(event["candidate"][TEXT])


class _Quiet:
    """Logger that drops gepa's log."""

    def log(self, message: str, *args: object, **kwargs: object) -> None:
        """Drop *message*."""


def _plain(item: Item) -> Item:
    """Return *item* without its example, as a key."""
    return attrs.evolve(item, example=None)


def _record(item: Item, evaluation: Evaluation) -> dict[str, Any]:
    example = {} if item.example is None else {"example": dict(item.example)}
    failed = {} if evaluation.failure is None else {"failure": evaluation.failure}
    return {
        **example,
        "score": evaluation.score,
        **failed,
        **({"metrics": evaluation.metrics} if evaluation.metrics else {}),
        **evaluation.told,
    }
