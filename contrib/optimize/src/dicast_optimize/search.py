"""The search: gepa's loop around our evaluations and reflections."""

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
"""How many steps may pass without a new evaluation."""

PERFECT = 1.0


@attrs.frozen
class Candidate:
    """A text that was evaluated on every item it is compared on; *score* is None where one of them has none."""

    text: str
    evaluations: Sequence[Evaluation]

    @property
    def score(self) -> float | None:
        """The mean score, in [0, 1] or on the evaluator's own scale."""
        scores = [one.score for one in self.evaluations if one.score is not None]
        return fsum(scores) / len(scores) if scores and len(scores) == len(self.evaluations) else None

    @property
    def is_raw(self) -> bool:
        """Whether the score is on the evaluator's own scale."""
        return any(one.is_raw for one in self.evaluations)

    @property
    def metrics(self) -> dict[str, float]:
        """The mean of each label."""
        found: dict[str, list[float]] = {}
        for one in self.evaluations:
            for label, value in one.metrics.items():
                found.setdefault(label, []).append(value)
        return {label: fsum(values) / len(values) for label, values in found.items()}


class Search:
    """Looks for a better text than the seed of *spec*. *candidates* are those that were compared, the seed first."""

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
        """The first of the candidates with the highest score."""
        scored = [one for one in self.candidates if one.score is not None]
        return max(scored, key=lambda one: one.score or 0.0, default=None)

    @property
    def is_raw(self) -> bool:
        """Whether the evaluator answers on its own scale."""
        return any(one.is_raw for one in self._latest.values())

    @property
    def lowest(self) -> float:
        """The lowest score there is to compare a failed evaluation with: 0, or the lowest raw score until now."""
        scores = [one.score for one in self._latest.values() if one.score is not None]
        return min(scores, default=0.0) if self.is_raw else 0.0

    @property
    def has_only_seed(self) -> bool:
        """Whether texts were proposed, and not one of them has a score."""
        proposed = [(text, one) for (_, text), one in self._latest.items() if text != self._spec.seed]
        return bool(proposed) and all(one.score is None for _, one in proposed)

    @property
    def unscored(self) -> int:
        """How many texts lack a score: on an item that candidates are compared on, or on every item that they were tried on."""
        tried: dict[str, list[Evaluation]] = {}
        for (_, text), one in self._latest.items():
            tried.setdefault(text, []).append(one)
        without = {text for text, found in tried.items() if all(one.score is None for one in found)}
        return len(without | {one.text for one in self.candidates if one.score is None})

    def run(self) -> None:
        """Search until something ends it; :attr:`stopped` says what."""
        from gepa.api import optimize  # takes a while to import

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
                stop_callbacks=cast("Any", [self._ended]),
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
        """What is said of *text* on *batch*.

        :raises Stopped: when nothing at all can be said of the seed.
        """
        with self._noted():
            found = self._evaluator.ask(text, batch)
        self._latest.update({(_plain(item), text): one for item, one in zip(batch, found, strict=True)})
        if not self.candidates and all(one.score is None for one in found):
            raise Stopped("seed_failed", f"the seed has no score: {found[0].failure}")
        return found

    @contextmanager
    def _noted(self) -> Iterator[None]:
        """Keep why it cannot go on: gepa takes what is raised within a step for a step that failed."""
        if self._fault is not None:
            raise self._fault
        try:
            yield
        except Exception as error:
            self._fault = error
            raise

    def compared(self, text: str) -> None:
        """Note that *text* was evaluated on all that candidates are compared on."""
        one = Candidate(text, [self._latest[_plain(item), text] for item in self.compared_on])
        self.candidates.append(one)
        score = "no score" if one.score is None else f"{one.score:.4f}"
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

    def _ended(self, state: object) -> bool:
        """Whether the search is over; called before each step."""
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
            return "perfect", "the best candidate has the highest score there is"
        if self._evaluator.limit is not None and calls + needed > self._evaluator.limit:
            return "budget", f"another step may need {needed} calls, {self._evaluator.limit - calls} are left"
        window, threshold = optimization.get("early_stop_window", 10), optimization.get("early_stop_threshold", 0.005)
        stops = self._spec.early_stop and (not self.is_raw or "early_stop_threshold" in optimization)
        if stops and standstill(self._history, window, threshold):
            return "plateau", f"the best score rose by no more than {threshold} over {window} steps"
        if self._idle >= MOST_IDLE:
            return "idle", f"{MOST_IDLE} steps brought nothing new to evaluate"
        return None


class _Adapter:
    """What gepa calls; its candidates have one component, the text."""

    propose_new_texts = None

    def __init__(self, search: Search) -> None:
        self._search = search

    def evaluate(self, batch: list[Item], candidate: dict[str, str], capture_traces: bool = False) -> Any:
        """Return the evaluations of *batch*. gepa needs a number for each: a failed one is the lowest score there, and there alone."""
        from gepa.core.adapter import EvaluationBatch  # as above

        found = self._search.evaluate(batch, candidate[TEXT])
        return EvaluationBatch(
            outputs=[None] * len(found),
            scores=[self._search.lowest if one.score is None else one.score for one in found],
            trajectories=list(zip(batch, found, strict=True)) if capture_traces else None,
        )

    def make_reflective_dataset(
        self, candidate: dict[str, str], eval_batch: Any, components_to_update: list[str]
    ) -> dict[str, list[dict[str, Any]]]:
        """What the reflection model is shown of a batch."""
        return {name: [_record(item, one) for item, one in eval_batch.trajectories] for name in components_to_update}


class _Watch:
    """Reports each candidate that was compared."""

    def __init__(self, search: Search) -> None:
        self._search = search

    def on_valset_evaluated(self, event: Mapping[str, Any]) -> None:
        """Called by gepa."""
        self._search.compared(event["candidate"][TEXT])


class _Quiet:
    """gepa's log, which nobody asked for."""

    def log(self, message: str, *args: object, **kwargs: object) -> None:
        """Nothing."""


def _plain(item: Item) -> Item:
    """*item* as a key: its example is no part of it."""
    return attrs.evolve(item, example=None)


def _record(item: Item, one: Evaluation) -> dict[str, Any]:
    example = {} if item.example is None else {"example": dict(item.example)}
    failed = {} if one.failure is None else {"failure": one.failure}
    return {**example, "score": one.score, **failed, **({"metrics": one.metrics} if one.metrics else {}), **one.told}
