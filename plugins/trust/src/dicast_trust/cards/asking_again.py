"""What a judge card asks a judge: the same subjects once more, and canaries."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256

import attrs
import orjson

from dicast import DicastError, Due, Ledger, PipelineJudges, Query, Run, Subject

from ..labels.gold import LabeledOutputs
from .canaries import can_plant, canaries, with_canaries
from .card import Answers, Labeled, labeled
from .identity import METRICS
from .recorded import Recorded, Said

MOST_REPEATED = 50
"""On so many labeled subjects a judge is asked again."""

_REPEATING = ("replay/chat", "cache/chat")
REPEATED = "its replies came from a recording or a cache, which repeat themselves"

REPEAT, CANARIES = "doctor: again", "doctor: canaries"
"""What stands in the name of a run that a judge card made."""

_NOT_TRIED = ("timeout", "judge_call_failed", "throttled_no_heuristic", "missing_input", "crashed")
"""Failures that say nothing of whether a canary would have moved the verdict."""

Key = tuple[str, str]


@attrs.frozen
class Asking:
    """Asks the judges of *pipeline*; *rounds* is how many verdicts on a subject are compared, the recorded one among them.

    *may_ask* is whether there is leave to; *told* is called with what is going to be asked.
    """

    pipeline: PipelineJudges
    gold: LabeledOutputs
    rounds: int
    seed: int
    may_ask: bool
    told: Callable[[str], object]

    def answers(self, recorded: Recorded) -> Answers:
        """What comes of asking the judge of *recorded*, or of what is recorded where there is no leave."""
        rows, pass_at = labeled(recorded, self.gold), self.pipeline.line(recorded.label)
        chosen = sorted(rows, key=lambda row: _drawn(self.seed, row.subject))[:MOST_REPEATED]
        failing = [
            row for row in sorted(rows, key=lambda row: _drawn(self.seed, row.subject)) if row.said.score < pass_at
        ]
        if not self.may_ask:
            why = "it takes asking the judge, and --no-ask gives no leave to"
            kept = recorded_again(recorded, chosen, pass_at, repeats=self._repeats(recorded.label))
            return attrs.evolve(
                kept, unknown={"injection": why, **(kept.unknown if kept.repeated else {"self_consistency": why})}
            )
        again = self._repeat(recorded, chosen, pass_at)
        if not recorded.models:
            return again
        injected = self._inject(recorded, failing, pass_at)
        same = attrs.asdict(again, recurse=False, filter=attrs.filters.include("same", "repeated", "rounds"))
        return attrs.evolve(injected, **same, unknown={**again.unknown, **injected.unknown})

    def _repeat(self, recorded: Recorded, chosen: Sequence[Labeled], pass_at: float) -> Answers:
        """Let the judge judge the *chosen* again."""
        if self.rounds < 2 or not chosen:
            return Answers(
                unknown={"self_consistency": "--repeat 1 asks nothing again" if chosen else "no subject has a label"}
            )
        try:
            subjects = self._subjects(chosen)
            self.told(
                f"{recorded.label}: {len(subjects):,} subjects are judged {self.rounds - 1} x again, under the budget of {self.pipeline.file}"
            )
            runs = [self.pipeline.judge_again(subjects, recorded.label, REPEAT) for _ in range(self.rounds - 1)]
        except DicastError as error:
            return Answers(unknown={"self_consistency": f"it could not be asked again: {_first(error)}"})
        is_live = not self._repeats(recorded.label) or all(self._called(run) for run in runs)
        scores = [self._scores(run, recorded.label) for run in runs]
        same = [
            all((found[row.subject] >= pass_at) == (row.said.score >= pass_at) for found in scores)
            for row in chosen
            if all(row.subject in found for found in scores)
        ]
        unknown = {} if is_live else {"self_consistency": REPEATED}
        unknown = unknown if same else {"self_consistency": f"asked again it gave no verdict ({_why(runs[-1])})"}
        return Answers(same=sum(same), repeated=len(same), rounds=self.rounds, unknown=unknown)

    def _inject(self, recorded: Recorded, failing: Sequence[Labeled], pass_at: float) -> Answers:
        """Let the judge judge outputs that fail, with a canary in each."""
        if not failing:
            return Answers(unknown={"injection": "no labeled subject fails, so that a canary could move nothing"})
        try:
            there = [due for due in self._subjects(failing) if can_plant(due.subject)]
            if not there:
                why = "the source has no text of the subjects that fail, behind which a canary could stand"
                return Answers(unknown={"injection": why})
            planted = with_canaries(there, canaries())
            self.told(
                f"{recorded.label}: {len(planted):,} canaries are judged, under the budget of {self.pipeline.file}"
            )
            run = self.pipeline.judge_again([*planted.values()], recorded.label, CANARIES)
        except DicastError as error:
            return Answers(unknown={"injection": f"it could not be asked: {_first(error)}"})
        scores = {id: score for (_, id), score in self._scores(run, recorded.label).items()}
        stood = self._failed(run, recorded.label)
        moved = [id for id in planted if scores.get(id, 0.0) >= pass_at]
        tried = len(scores) + stood
        unknown = {} if tried else {"injection": f"asked about them it gave no verdict ({_why(run)})"}
        return Answers(
            moved=len(moved), tried=tried, failed=len(planted) - len(scores), moved_by=moved, unknown=unknown
        )

    def _subjects(self, rows: Sequence[Labeled]) -> list[Due]:
        """The subjects of *rows* as the source has them; what a task made of them from the ledger.

        :raises DicastError: when the source has them no more.
        """
        wanted = {row.subject: row.said.run_id for row in rows}
        found = self.pipeline.subjects(lambda one: (one.kind, one.id) in wanted)
        missing = wanted.keys() - {(one.kind, one.id) for one in found}
        if missing:
            kind, id = min(missing)
            raise DicastError(f"the source has {kind} {id} no more, and {len(missing) - 1} others")
        made = self._made(found) if self.pipeline.has_task else found
        return [Due(one, from_run=wanted[one.kind, one.id]) for one in made]

    def _made(self, subjects: Sequence[Subject]) -> Sequence[Subject]:
        """*subjects* with the newest outputs that the task made of them."""
        wanted = {(one.kind, one.id) for one in subjects}

        def outputs(ledger: Ledger) -> Mapping[Key, object]:
            found: dict[Key, object] = {}
            for entry in ledger.read(Query(types=("record.completed",))):
                key = str(entry.event.subject_kind), str(entry.event.subject_id)
                response = entry.event.payload.get("response")
                if key in wanted and isinstance(response, Mapping):
                    found[key] = response.get("content")
            return found

        made = self.pipeline.read_ledger(outputs)
        return [attrs.evolve(one, output=made.get((one.kind, one.id), one.output)) for one in subjects]

    def _scores(self, run: Run, label: str) -> dict[Key, float]:
        """What the judge *label* said in *run*, by subject."""
        found: dict[Key, float] = {}
        for verdict in run.verdicts:
            score = verdict.score if verdict.judge == label else _metric(verdict.signals, label)
            if score is not None and verdict.judge in (label, "metrics"):
                found[verdict.subject_kind, verdict.subject_id] = score
        return found

    def _repeats(self, label: str) -> bool:
        """Whether a model of the judge *label* answers from a recording or a cache, as far as it can."""
        slots = [one for one in (*self.pipeline.judges, *self.pipeline.metrics) if label in (one.label, METRICS)]
        told = [orjson.dumps(one.options, default=str).decode() for one in slots]
        return any(f'"{name}"' in text for name in _REPEATING for text in told)

    def _called(self, run: Run) -> bool:
        """Whether a model was called in *run*."""
        query = Query(run_id=run.run_id, types=("spend.settled",))
        return bool(
            self.pipeline.read_ledger(
                lambda ledger: any(one.event.payload.get("calls", 1) for one in ledger.read(query))
            )
        )

    def _failed(self, run: Run, label: str) -> int:
        """How many canaries the judge gave no verdict on, though it was asked: they have moved none."""
        return sum(count for kind, count in run.failures.items() if kind not in _NOT_TRIED)


def recorded_again(recorded: Recorded, chosen: Sequence[Labeled], pass_at: float, *, repeats: bool) -> Answers:
    """How many of the *chosen* have the same verdict again, by the first run that judged them again: of a card's own runs, else of any.

    :param repeats: whether the judge's replies come from a recording or a cache, where no model was called.
    """
    same, is_live = [], not repeats
    for row in chosen:
        first, again = _twice(recorded, recorded.said[row.subject])
        if first is not None and again is not None:
            same.append((first.score >= pass_at) == (again.score >= pass_at))
            is_live = is_live or again.run_id in recorded.live
    unknown = {} if is_live or not same else {"self_consistency": REPEATED}
    return Answers(same=sum(same), repeated=len(same), rounds=2 if same else 0, unknown=unknown)


def _twice(recorded: Recorded, said: Sequence[Said]) -> tuple[Said | None, Said | None]:
    """Return a verdict and another one on the same output; a verdict that the card asked for counts before others."""
    plain, asked = [one for one in said if not one.preview], [one for one in said if one.preview]
    for first in plain:
        same = [one for one in (*asked, *plain) if one is not first and recorded.is_same_output(first, one)]
        if same:
            return first, next((one for one in reversed(same) if one.preview), same[0])
    return (plain[0] if plain else None), None


def _metric(signals: Mapping[str, object], label: str) -> float | None:
    metrics = signals.get("metrics")
    value = metrics.get(label) if isinstance(metrics, Mapping) else None
    return value if isinstance(value, int | float) else None


def _drawn(seed: int, subject: Key) -> bytes:
    """Who is asked again: a keyed hash, so that it is the same again."""
    return sha256(f"{seed}\n{subject[0]}\n{subject[1]}".encode()).digest()


def _first(error: DicastError) -> str:
    return str(error).splitlines()[0]


def _why(run: Run) -> str:
    told = [f"{count} x {kind}" for kind, count in run.failures.items()]
    stopped = [f"stopped: {run.stopped['reason']}"] if run.stopped else []
    return ", ".join([*stopped, *told]) or "nothing was judged"
