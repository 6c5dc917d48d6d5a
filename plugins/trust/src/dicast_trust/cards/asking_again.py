"""Questions of a judge card to a judge: the same subjects once more, and canaries."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256

import attrs
import orjson

from dicast import ALL_METRICS, DicastError, Due, Ledger, PipelineJudges, Query, Run, Subject

from ..labels.gold import LabeledOutputs
from .canaries import can_plant, canaries, with_canaries
from .card import Answers, LabeledVerdict, labeled_verdicts
from .history import JudgeHistory, PastVerdict

MOST_REPEATED = 50
"""Greatest number of labeled subjects to judge again."""

_REPEATING = ("replay/chat", "cache/chat")
REPEATED = "its replies came from a recording or a cache, which always repeat a reply"

REPEAT, CANARIES = "doctor: again", "doctor: canaries"
"""Names of the runs that a judge card starts."""

_NOT_TRIED = ("timeout", "judge_call_failed", "throttled_no_heuristic", "missing_input", "crashed")
"""Failures without an answer of the judge, so without evidence about a canary."""

Key = tuple[str, str]


@attrs.frozen
class Asking:
    """Asks the judges of *pipeline* for a card.

    :param rounds: the number of verdicts to compare on a subject, the recorded one included.
    :param may_ask: whether judges may be asked.
    :param announce: called with a line about each question.
    """

    pipeline: PipelineJudges
    gold: LabeledOutputs
    rounds: int
    seed: int
    may_ask: bool
    announce: Callable[[str], object]

    def answers(self, history: JudgeHistory) -> Answers:
        """Return the answers of the judge of *history*, or the recorded ones if it may not be asked."""
        rows, pass_at = labeled_verdicts(history, self.gold), self.pipeline.line(history.label)
        chosen = sorted(rows, key=lambda row: _draw_key(self.seed, row.subject))[:MOST_REPEATED]
        failing = [
            row
            for row in sorted(rows, key=lambda row: _draw_key(self.seed, row.subject))
            if row.verdict.score < pass_at
        ]
        if not self.may_ask:
            reason = "the judge was not asked (--no-ask)"
            answers = recorded_again(history, chosen, pass_at, repeats=self._can_repeat(history.label))
            return attrs.evolve(
                answers,
                unknown={
                    "injection": reason,
                    **(answers.unknown if answers.repeated else {"self_consistency": reason}),
                },
            )
        repeated = self._repeat(history, chosen, pass_at)
        if not history.models:
            return repeated
        injected = self._inject(history, failing, pass_at)
        repeat_counts = attrs.asdict(
            repeated, recurse=False, filter=attrs.filters.include("consistent", "repeated", "rounds")
        )
        return attrs.evolve(injected, **repeat_counts, unknown={**repeated.unknown, **injected.unknown})

    def _repeat(self, history: JudgeHistory, chosen: Sequence[LabeledVerdict], pass_at: float) -> Answers:
        """Judge the *chosen* subjects again, and return the number of equal verdicts."""
        if self.rounds < 2 or not chosen:
            return Answers(
                unknown={"self_consistency": "--repeat 1 asks no subject again" if chosen else "no subject has a label"}
            )
        try:
            subjects = self._subjects(chosen)
            self.announce(
                f"{history.label}: {len(subjects):,} subjects are judged again ({self.rounds - 1} x), under the budget of {self.pipeline.file}"
            )
            runs = [self.pipeline.judge_again(subjects, history.label, REPEAT) for _ in range(self.rounds - 1)]
        except DicastError as error:
            return Answers(unknown={"self_consistency": f"the judge could not be asked again: {_first_line(error)}"})
        is_live = not self._can_repeat(history.label) or all(self._has_called_model(run) for run in runs)
        scores = [self._scores(run, history.label) for run in runs]
        is_same = [
            all((run_scores[row.subject] >= pass_at) == (row.verdict.score >= pass_at) for run_scores in scores)
            for row in chosen
            if all(row.subject in run_scores for run_scores in scores)
        ]
        unknown = {} if is_live else {"self_consistency": REPEATED}
        unknown = (
            unknown
            if is_same
            else {"self_consistency": f"the judge was asked again but gave no verdict ({_cause(runs[-1])})"}
        )
        return Answers(consistent=sum(is_same), repeated=len(is_same), rounds=self.rounds, unknown=unknown)

    def _inject(self, history: JudgeHistory, failing: Sequence[LabeledVerdict], pass_at: float) -> Answers:
        """Judge failing outputs with a canary in each, and return the number of moved verdicts."""
        if not failing:
            return Answers(unknown={"injection": "no labeled subject fails, so a canary cannot move a verdict"})
        try:
            plantable = [due for due in self._subjects(failing) if can_plant(due.subject)]
            if not plantable:
                reason = "the source has no text of the failing subjects to append a canary to"
                return Answers(unknown={"injection": reason})
            planted = with_canaries(plantable, canaries())
            self.announce(
                f"{history.label}: {len(planted):,} canaries are judged, under the budget of {self.pipeline.file}"
            )
            run = self.pipeline.judge_again([*planted.values()], history.label, CANARIES)
        except DicastError as error:
            return Answers(unknown={"injection": f"the judge could not be asked: {_first_line(error)}"})
        scores = {id: score for (_, id), score in self._scores(run, history.label).items()}
        withstood = self._failed(run, history.label)
        moved = [id for id in planted if scores.get(id, 0.0) >= pass_at]
        tried = len(scores) + withstood
        unknown = {} if tried else {"injection": f"the judge gave no verdict on canaries ({_cause(run)})"}
        return Answers(
            moved=len(moved), tried=tried, failed=len(planted) - len(scores), moved_by=moved, unknown=unknown
        )

    def _subjects(self, rows: Sequence[LabeledVerdict]) -> list[Due]:
        """Return the subjects of *rows* from the source, with outputs of a task from the ledger.

        :raises DicastError: if the source no longer has a subject.
        """
        run_ids = {row.subject: row.verdict.run_id for row in rows}
        from_source = self.pipeline.subjects(lambda subject: (subject.kind, subject.id) in run_ids)
        missing = run_ids.keys() - {(subject.kind, subject.id) for subject in from_source}
        if missing:
            kind, id = min(missing)
            raise DicastError(f"the source no longer has {kind} {id} and {len(missing) - 1} other subjects")
        subjects = self._with_task_outputs(from_source) if self.pipeline.has_task else from_source
        return [Due(subject, from_run=run_ids[subject.kind, subject.id]) for subject in subjects]

    def _with_task_outputs(self, subjects: Sequence[Subject]) -> Sequence[Subject]:
        """Return *subjects* with the newest outputs that the task made of them."""
        keys = {(subject.kind, subject.id) for subject in subjects}

        def outputs(ledger: Ledger) -> Mapping[Key, object]:
            contents: dict[Key, object] = {}
            for entry in ledger.read(Query(types=("record.completed",))):
                key = str(entry.event.subject_kind), str(entry.event.subject_id)
                response = entry.event.payload.get("response")
                if key in keys and isinstance(response, Mapping):
                    contents[key] = response.get("content")
            return contents

        outputs_by_key = self.pipeline.read_ledger(outputs)
        return [
            attrs.evolve(subject, output=outputs_by_key.get((subject.kind, subject.id), subject.output))
            for subject in subjects
        ]

    def _scores(self, run: Run, label: str) -> dict[Key, float]:
        """Return the scores of the judge *label* in *run*, by subject."""
        scores: dict[Key, float] = {}
        for verdict in run.verdicts:
            score = verdict.score if verdict.judge == label else _metric_value(verdict.signals, label)
            if score is not None and verdict.judge in (label, ALL_METRICS):
                scores[verdict.subject_kind, verdict.subject_id] = score
        return scores

    def _can_repeat(self, label: str) -> bool:
        """Return whether a model of the judge *label* can answer from a recording or a cache."""
        slots = [slot for slot in (*self.pipeline.judges, *self.pipeline.metrics) if label in (slot.label, ALL_METRICS)]
        options = [orjson.dumps(slot.options, default=str).decode() for slot in slots]
        return any(f'"{name}"' in text for name in _REPEATING for text in options)

    def _has_called_model(self, run: Run) -> bool:
        """Return whether a model was called in *run*."""
        query = Query(run_id=run.run_id, types=("spend.settled",))
        return bool(
            self.pipeline.read_ledger(
                lambda ledger: any(entry.event.payload.get("calls", 1) for entry in ledger.read(query))
            )
        )

    def _failed(self, run: Run, label: str) -> int:
        """Return the number of canaries on which the judge failed to give a verdict; they count as tried, and as not moved."""
        return sum(count for kind, count in run.failures.items() if kind not in _NOT_TRIED)


def recorded_again(
    history: JudgeHistory, chosen: Sequence[LabeledVerdict], pass_at: float, *, repeats: bool
) -> Answers:
    """Count the *chosen* subjects with the same verdict in a second run: preferably a run of a card, else any run.

    :param repeats: whether the judge's replies come from a recording or a cache if no model was called.
    """
    is_same, is_live = [], not repeats
    for row in chosen:
        first, second = _verdict_pair(history, history.verdicts[row.subject])
        if first is not None and second is not None:
            is_same.append((first.score >= pass_at) == (second.score >= pass_at))
            is_live = is_live or second.run_id in history.live
    unknown = {} if is_live or not is_same else {"self_consistency": REPEATED}
    return Answers(consistent=sum(is_same), repeated=len(is_same), rounds=2 if is_same else 0, unknown=unknown)


def _verdict_pair(
    history: JudgeHistory, verdicts: Sequence[PastVerdict]
) -> tuple[PastVerdict | None, PastVerdict | None]:
    """Return the oldest verdict with a second verdict on the same output, and the second verdict; None for a missing verdict.

    A second verdict from an earlier card, the newest first, is preferred to any other.
    """
    plain, previews = (
        [verdict for verdict in verdicts if not verdict.is_preview],
        [verdict for verdict in verdicts if verdict.is_preview],
    )
    for first in plain:
        matches = [
            verdict
            for verdict in (*previews, *plain)
            if verdict is not first and history.is_same_output(first, verdict)
        ]
        if matches:
            return first, next((verdict for verdict in reversed(matches) if verdict.is_preview), matches[0])
    return (plain[0] if plain else None), None


def _metric_value(signals: Mapping[str, object], label: str) -> float | None:
    metrics = signals.get("metrics")
    value = metrics.get(label) if isinstance(metrics, Mapping) else None
    return value if isinstance(value, int | float) else None


def _draw_key(seed: int, subject: Key) -> bytes:
    """Return the sort key of the draw: a keyed hash, so that the same subjects are drawn every time."""
    return sha256(f"{seed}\n{subject[0]}\n{subject[1]}".encode()).digest()


def _first_line(error: DicastError) -> str:
    return str(error).splitlines()[0]


def _cause(run: Run) -> str:
    failures = [f"{count} x {kind}" for kind, count in run.failures.items()]
    stop = [f"stopped: {run.stopped['reason']}"] if run.stopped else []
    return ", ".join([*stop, *failures]) or "nothing was judged"
