"""Evaluation of candidates: each batch is a run of a pipeline."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import attrs

from dicast import ALL_METRICS, ConfigError, Due, Event, Problem, Run, Subject, nearest, run
from dicast.signals import shared_signals
from dicast.toolkit import yaml
from dicast.toolkit.files import read_bytes

from .journal import Journal, digest
from .spec import Example, Spec

COMPLETED, FAILED = "eval.completed", "eval.failed"


class Stopped(Exception):
    """The search cannot continue. *reason* is one word for reports; the message has the details."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


@attrs.frozen
class Item:
    """A record of a split. Without data there is one item whose *example* is None."""

    split: str
    index: int
    example: Example | None = None

    @property
    def cluster(self) -> object:
        """The cluster of its score: the session, whose records depend on each other, else the record itself."""
        session = None if self.example is None else self.example.get("session_id")
        return self.index if session is None else str(session)


@attrs.frozen
class Evaluation:
    """The evaluation of a candidate on one item. *score* is None if it failed; *failure* is the reason.

    *is_raw* is true for a score on the evaluator's own scale. *metrics* has the score of each label, ``told`` the details and signals for
    the reflection model. The fields are the keys of an answer in the journal.
    """

    score: float | None
    failure: str | None = None
    metrics: Mapping[str, float] = attrs.field(factory=dict)
    told: Mapping[str, Any] = attrs.field(factory=dict)
    is_raw: bool = False


@attrs.define
class Evaluations:
    """Counts of an optimization's evaluations: *count* of all, *kinds* of failures, and the *first* different reasons of failures."""

    count: int = 0
    kinds: Counter[str] = attrs.field(factory=Counter)
    first: list[str] = attrs.field(factory=list)

    def add(self, evaluation: Evaluation) -> None:
        """Count an evaluation."""
        self.count += 1
        if evaluation.failure is not None:
            self.kinds[evaluation.failure.partition(":")[0]] += 1
            if len(self.first) < MOST_MESSAGES and evaluation.failure not in self.first:
                self.first.append(evaluation.failure)

    def document(self) -> dict[str, Any]:
        """Return the counts as JSON data: ``{failed, of, kinds, messages}``."""
        failed = {"failed": self.kinds.total(), "of": self.count, "kinds": dict(sorted(self.kinds.items()))}
        return {**failed, "messages": list(self.first)}


MOST_MESSAGES = 3
"""Most messages of failed evaluations in the report."""


def items(split: str, examples: Sequence[Example] | None) -> list[Item]:
    """Return the records of *split*; without *examples*, a single item without an example."""
    if examples is None:
        return [Item("candidate", 0)]
    return [Item(split, n, example) for n, example in enumerate(examples)]


def evaluator_digest(spec: Spec) -> str:
    """Return a digest of the settings that decide an evaluation, from the spec and the pipeline file."""
    file = spec.evaluator.get("pipeline")
    text = None if file is None else read_bytes(Path(spec.folder, file)).hex()
    return digest(dict(spec.evaluator), text, spec.optimization.get("task_model"))


class Evaluator:
    """Evaluates candidates by *spec*, with a ledger in *folder*. Evaluations in *journal* are not paid for again.

    *limit* is the most evaluations to pay for. *calls* counts the evaluations, including the evaluations that a resumed optimization paid for earlier.
    """

    def __init__(self, spec: Spec, folder: Path, journal: Journal, session: str, limit: int | None) -> None:
        self._spec, self._journal, self._session = spec, journal, session
        self._ledger = folder / "ledger.db"
        self._subject_count = 0
        self.limit = limit
        self.calls = 0
        self.counts = Evaluations()

    def ask(self, candidate: str, batch: Sequence[Item]) -> list[Evaluation]:
        """Return the evaluations of *candidate* on each item of *batch*.

        :raises Stopped: if the remaining budget is too small for all of them, or the run was stopped.
        """
        keys = [digest(candidate, item.split == "test", item.example) for item in batch]
        journal_answers = [self._journal.answer("evaluation", key) for key in keys]
        new = sum(counts for _, counts in journal_answers)
        if self.limit is not None and self.calls + new > self.limit:
            raise Stopped("budget", f"the next step needs {new} calls, but {self.limit - self.calls} are left")
        self.calls += new
        answers_by_number: dict[int, Mapping[str, Any]] = {
            n: answer for n, (answer, _) in enumerate(journal_answers) if answer is not None
        }
        due = [n for n, (answer, counts) in enumerate(journal_answers) if answer is None and counts]
        if due:
            self._buy(candidate, [(n, keys[n], batch[n]) for n in due], answers_by_number)
        by_key = {keys[n]: answer for n, answer in answers_by_number.items()}
        answers = [Evaluation(**answers_by_number.get(n, by_key[key])) for n, key in enumerate(keys)]
        for evaluation, (_, counts) in zip(answers, journal_answers, strict=True):
            if counts:
                self.counts.add(evaluation)
        return answers

    def judge_with(self, candidate: str, batch: Sequence[Item], judges: Sequence[Any]) -> dict[str, list[Evaluation]]:
        """Return the evaluations by each of *judges*, by label, in a separate run."""
        evaluations_by_label: dict[str, list[Evaluation]] = {}

        def answered(events: Sequence[Event]) -> None:
            for label, event in _terminal(events).items():
                evaluations_by_label.setdefault(label, []).append(_evaluation(event))

        subjects = [Due(self._subject(candidate, item), answered=answered) for item in batch]
        with placed(self._spec, "model"):
            done = run(
                {**common(self._spec, self._ledger), "judges": [_with_intake(self._spec, judge) for judge in judges]},
                subjects=subjects,
            )
        _refuse_stopped(done)
        return evaluations_by_label

    def _buy(self, candidate: str, due: Sequence[tuple[int, str, Item]], answers: dict[int, Mapping[str, Any]]) -> None:
        """Run the pipeline on *due*, and add the answers to *answers*."""
        events: dict[int, Sequence[Event]] = {}
        subjects = [Due(self._subject(candidate, item), answered=partial(events.__setitem__, n)) for n, _, item in due]
        done: Run | None = None
        try:
            done = evaluation_run(self._spec, self._ledger, subjects)
        finally:  # keep the answers before an interrupt: they were paid for
            out_of_money = done is not None and bool(done.unaffordable or done.throttled)
            for n, key, _ in due:
                if n in events and not out_of_money:
                    answers[n] = attrs.asdict(self._counted(events[n]))
                    self._journal.keep("evaluation", key, answers[n])
        if out_of_money:
            raise Stopped("money", "the remaining budget is too small for the next evaluation")
        _refuse_stopped(done)
        if len(events) < len(due):
            raise Stopped("not_judged", "the pipeline judges no such subject: check on, accepts and evaluator.kind")

    def _subject(self, candidate: str, item: Item) -> Subject:
        self._subject_count += 1
        row = item.example or {}
        context: dict[str, Any] = {**row, "example": item.example}
        if self._spec.source == "pipeline" and _has_task(self._spec):
            context["candidate"] = candidate
        return Subject(
            self._spec.evaluator.get("kind", "candidate"),
            f"{item.split}-{item.index + 1}-{digest(candidate)[:12]}-{self._subject_count}",
            input=row.get("input"),
            output=candidate,
            reference=row.get("reference", row.get("expected")),
            context=context,
            session_id=self._session,
        )

    def _counted(self, events: Sequence[Event]) -> Evaluation:
        """Return the evaluation by the label whose score counts."""
        terminal_events = _terminal(events)
        on = self._spec.evaluator.get("on")
        label = on or (ALL_METRICS if ALL_METRICS in terminal_events else next(iter(terminal_events), ALL_METRICS))
        if label not in terminal_events or (on is None and label != ALL_METRICS and len(terminal_events) > 1):
            message = f"choose the label whose score counts with evaluator.on: {', '.join(terminal_events)}"
            raise ConfigError(
                self._spec.document.problem(("evaluator", "on"), message, on, nearest(label, terminal_events))
            )
        return _evaluation(terminal_events[label])


def evaluation_run(spec: Spec, ledger: Path, subjects: Sequence[Due], *, preflight: bool = False) -> Run:
    """Run the evaluator of *spec* on *subjects*. Without subjects, only open it, and test it if *preflight* is true.

    :raises ConfigError: if it cannot be used.
    """
    if spec.source == "pipeline":
        overrides = {**_dotted(common(spec, ledger)), "sinks": []}
        return run(
            Path(spec.folder, spec.evaluator["pipeline"]), overrides=overrides, subjects=subjects, kind="evaluate"
        )
    with placed(spec, "evaluator"):
        return run(
            {**common(spec, ledger), **_judged_by(spec, preflight=preflight)}, subjects=subjects, kind="evaluate"
        )


@contextmanager
def placed(spec: Spec, section: str) -> Iterator[None]:
    """Give problems of components the place of *section* in *spec*."""
    try:
        yield
    except ConfigError as error:
        raise ConfigError(
            _moved(spec, section, problem) if problem.file in (None, "<mapping>") else problem
            for problem in error.problems
        ) from error


def _moved(spec: Spec, section: str, problem: Problem) -> Problem:
    """Return *problem* at its place in *spec*."""
    address = ("optimization", "money") if (problem.path or "").startswith("budget") else (section,)
    return spec.document.problem(address, problem.message, problem.value, problem.hint)


def common(spec: Spec, ledger: Path) -> dict[str, Any]:
    """Return the pipeline sections that all runs of an optimization have: its ledger and its session."""
    amount, number = spec.optimization.get("money"), spec.optimization.get("workers")
    return {
        "name": f"optimize {spec.name}",
        "ledger": {"ledger/sqlite": {"path": str(ledger)}},
        **({} if amount is None else {"budget": {"session": amount, "day": amount}}),
        **({} if number is None else {"executor": {"dicast/async": {"concurrency": number}}}),
    }


def _dotted(sections: Mapping[str, Any]) -> dict[str, Any]:
    """Return overrides that change single keys of a section."""
    budget = {f"budget.{scope}": amount for scope, amount in sections.get("budget", {}).items()}
    return {**budget, **{name: value for name, value in sections.items() if name != "budget"}}


def _judged_by(spec: Spec, *, preflight: bool) -> dict[str, Any]:
    """Return the metrics or the judge in *spec*."""
    source, evaluator = spec.source, dict(spec.evaluator)
    if source == "metrics":
        return {"metrics": evaluator["metrics"]}
    if source == "judge":
        return {"judges": [_with_intake(spec, evaluator["judge"])]}
    options = {name: value for name, value in evaluator.items() if name not in ("on", "kind")}
    if not preflight:
        options["preflight"] = False
    if "task_model" in spec.optimization:
        options["task_model"] = spec.optimization["task_model"]
    name = {"command": "evaluator/command", "url": "evaluator/http"}[source]
    return {"metrics": [{name: {"as": "evaluator", **options}}]}


def _with_intake(spec: Spec, judge: object) -> object:
    """Return ``evaluator/judge`` with the spec's objective and intake as defaults."""
    name, options = next(iter(judge.items())) if isinstance(judge, dict) else (judge, {})
    if name != "evaluator/judge" or not isinstance(options, dict):
        return judge
    intake, criteria = spec.intake, {}
    if "intake" in spec.document.data:
        dimensions = {
            quality.name: {"weight": quality.weight, "description": quality.description}
            for quality in intake.quality_dimensions
        }
        criteria = {"dimensions": dimensions, "hard_constraints": list(intake.hard_constraints)}
    if "objective" in spec.optimization:
        criteria["objective"] = spec.optimization["objective"]
    return {name: {**criteria, **options}}


def _has_task(spec: Spec) -> bool:
    """Return whether the pipeline has a task; if so, a candidate is the task's input instead of the judged output."""
    try:
        data = yaml.read_yaml(read_bytes(Path(spec.folder, spec.evaluator["pipeline"])), "pipeline", []).plain()
    except (OSError, ConfigError):
        return False  # the run will report the problems of the file
    return isinstance(data, dict) and bool({"task", "include"} & data.keys())


def _terminal(events: Sequence[Event]) -> dict[str, Event]:
    return {str(event.payload["judge"]): event for event in events if event.type in (COMPLETED, FAILED)}


def _evaluation(event: Event) -> Evaluation:
    payload: Mapping[str, Any] = event.payload
    if event.type == FAILED:
        return Evaluation(None, f"{payload['failure_mode']}: {payload['error_message']}")
    scores = [score for score in payload.get("scores", ()) if score.get("rollout", 0) == 0]
    details_by_label = {
        score["metric"]: {name: score[name] for name in ("details", "signals") if score.get(name)} for score in scores
    }
    details_by_label = {
        label: {**event_, "signals": shared_signals(event_["signals"])} if "signals" in event_ else event_
        for label, event_ in details_by_label.items()
    }
    if not scores and payload.get("signals"):
        details_by_label[str(payload["judge"])] = {"signals": shared_signals(payload["signals"])}
    values = {score["metric"]: score["raw"] if score["value"] is None else score["value"] for score in scores}
    details_by_label = {label: details for label, details in details_by_label.items() if details}
    if payload["score"] is not None:
        return Evaluation(payload["score"], None, values, details_by_label)
    if payload.get("raw") is None:
        return Evaluation(None, "held_back: a proxy is below scoring.threshold", values, details_by_label, is_raw=True)
    return Evaluation(payload["raw"], None, values, details_by_label, is_raw=True)


def _refuse_stopped(done: Run) -> None:
    if done.disabled:
        raise Stopped("disabled", "judging is switched off: DICAST_DISABLED, or the pipeline's budget")
    if done.stopped is not None:
        raise Stopped(str(done.stopped["reason"]), str(done.stopped.get("error") or done.stopped["reason"]))
