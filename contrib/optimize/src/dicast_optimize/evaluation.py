"""Candidates in, evaluations out: a batch of them is a run of a pipeline."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import attrs

from dicast import ConfigError, Due, Event, Problem, Run, Subject, nearest, run
from dicast.signals import shared_signals
from dicast.toolkit import yaml
from dicast.toolkit.files import read_bytes

from .journal import Journal, digest
from .spec import Example, Spec

COMPLETED, FAILED = "eval.completed", "eval.failed"
METRICS = "metrics"


class Stopped(Exception):
    """The search cannot go on: *reason* is a word, the message says more."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


@attrs.frozen
class Item:
    """A record of a split; *example* is None where there is no data, and a candidate is evaluated by itself."""

    split: str
    index: int
    example: Example | None = None

    @property
    def cluster(self) -> object:
        """What its score is independent of: other sessions' records."""
        session = None if self.example is None else self.example.get("session_id")
        return self.index if session is None else str(session)


@attrs.frozen
class Evaluation:
    """The answer about a candidate; *score* is None where there is none, and *failure* says why.

    *is_raw* says that the score is on the evaluator's own scale. *metrics* has each label's score, *told* the details and signals.
    """

    score: float | None
    failure: str | None = None
    metrics: Mapping[str, float] = attrs.field(factory=dict)
    told: Mapping[str, Any] = attrs.field(factory=dict)
    is_raw: bool = False


@attrs.define
class Evaluations:
    """Counts of the evaluations of an optimization: *count* of all, *kinds* of those that failed, *first* reasons."""

    count: int = 0
    kinds: Counter[str] = attrs.field(factory=Counter)
    first: list[str] = attrs.field(factory=list)

    def add(self, one: Evaluation) -> None:
        """Count an evaluation."""
        self.count += 1
        if one.failure is not None:
            self.kinds[one.failure.partition(":")[0]] += 1
            if len(self.first) < SHOWN and one.failure not in self.first:
                self.first.append(one.failure)

    def document(self) -> dict[str, Any]:
        """Return the counts as JSON data: ``{failed, of, kinds, messages}``."""
        failed = {"failed": self.kinds.total(), "of": self.count, "kinds": dict(sorted(self.kinds.items()))}
        return {**failed, "messages": list(self.first)}


SHOWN = 3
"""How many different messages of failed evaluations are reported."""


def items(split: str, examples: Sequence[Example] | None) -> list[Item]:
    """The records of *split*; without *examples* the one item that stands for none."""
    if examples is None:
        return [Item("candidate", 0)]
    return [Item(split, n, example) for n, example in enumerate(examples)]


def evaluator_digest(spec: Spec) -> str:
    """A digest of what decides an evaluation, as far as the spec and the pipeline file say it."""
    file = spec.evaluator.get("pipeline")
    text = None if file is None else read_bytes(Path(spec.folder, file)).hex()
    return digest(dict(spec.evaluator), text, spec.optimization.get("task_model"))


class Evaluator:
    """Evaluates candidates as *spec* says, into the ledger in *folder*; what *journal* knows is not asked for again.

    At most *limit* evaluations are bought; *calls* counts them, with those of a run before that is resumed.
    """

    def __init__(self, spec: Spec, folder: Path, journal: Journal, session: str, limit: int | None) -> None:
        self._spec, self._journal, self._session = spec, journal, session
        self._ledger = folder / "ledger.db"
        self._made = 0
        self.limit = limit
        self.calls = 0
        self.counts = Evaluations()

    def ask(self, candidate: str, batch: Sequence[Item]) -> list[Evaluation]:
        """The evaluations of *candidate* on each item of *batch*.

        :raises Stopped: when there is no room for all of them, or the run was stopped.
        """
        keys = [digest(candidate, item.split == "test", item.example) for item in batch]
        asked = [self._journal.answer("evaluation", key) for key in keys]
        new = sum(counts for _, counts in asked)
        if self.limit is not None and self.calls + new > self.limit:
            raise Stopped("budget", f"the next step needs {new} calls, {self.limit - self.calls} are left")
        self.calls += new
        found: dict[int, Mapping[str, Any]] = {n: answer for n, (answer, _) in enumerate(asked) if answer is not None}
        due = [n for n, (answer, counts) in enumerate(asked) if answer is None and counts]
        if due:
            self._buy(candidate, [(n, keys[n], batch[n]) for n in due], found)
        by_key = {keys[n]: answer for n, answer in found.items()}
        answers = [Evaluation(**found.get(n, by_key[key])) for n, key in enumerate(keys)]
        for one, (_, counts) in zip(answers, asked, strict=True):
            if counts:
                self.counts.add(one)
        return answers

    def judge_with(self, candidate: str, batch: Sequence[Item], judges: Sequence[Any]) -> dict[str, list[Evaluation]]:
        """The evaluations by each of *judges*, by label, of a run of their own."""
        found: dict[str, list[Evaluation]] = {}

        def answered(events: Sequence[Event]) -> None:
            for label, event in _terminal(events).items():
                found.setdefault(label, []).append(_evaluation(event))

        subjects = [Due(self._subject(candidate, item), answered=answered) for item in batch]
        with placed(self._spec, "model"):
            done = run(
                {**common(self._spec, self._ledger), "judges": [_with_intake(self._spec, judge) for judge in judges]},
                subjects=subjects,
            )
        _refuse_stopped(done)
        return found

    def _buy(self, candidate: str, due: Sequence[tuple[int, str, Item]], found: dict[int, Mapping[str, Any]]) -> None:
        """Run the pipeline on *due*, and put the answers into *found*."""
        events: dict[int, Sequence[Event]] = {}
        subjects = [Due(self._subject(candidate, item), answered=partial(events.__setitem__, n)) for n, _, item in due]
        done: Run | None = None
        try:
            done = evaluation_run(self._spec, self._ledger, subjects)
        finally:  # what was answered before an interrupt was paid for
            out_of_money = done is not None and bool(done.unaffordable or done.throttled)
            for n, key, _ in due:
                if n in events and not out_of_money:
                    found[n] = attrs.asdict(self._counted(events[n]))
                    self._journal.keep("evaluation", key, found[n])
        if out_of_money:
            raise Stopped("money", "the budget in money leaves no room for the next evaluation")
        _refuse_stopped(done)
        if len(events) < len(due):
            raise Stopped("not_judged", "the pipeline judges no such subject: look at on, accepts and evaluator.kind")

    def _subject(self, candidate: str, item: Item) -> Subject:
        self._made += 1
        row = item.example or {}
        context: dict[str, Any] = {**row, "example": item.example}
        if self._spec.source == "pipeline" and _has_task(self._spec):
            context["candidate"] = candidate
        return Subject(
            self._spec.evaluator.get("kind", "candidate"),
            f"{item.split}-{item.index + 1}-{digest(candidate)[:12]}-{self._made}",
            input=row.get("input"),
            output=candidate,
            reference=row.get("reference", row.get("expected")),
            context=context,
            session_id=self._session,
        )

    def _counted(self, events: Sequence[Event]) -> Evaluation:
        """What the label that counts says."""
        found = _terminal(events)
        on = self._spec.evaluator.get("on")
        label = on or (METRICS if METRICS in found else next(iter(found), METRICS))
        if label not in found or (on is None and label != METRICS and len(found) > 1):
            message = f"evaluator.on says whose score counts, of {', '.join(found)}"
            raise ConfigError(self._spec.document.problem(("evaluator", "on"), message, on, nearest(label, found)))
        return _evaluation(found[label])


def evaluation_run(spec: Spec, ledger: Path, subjects: Sequence[Due], *, preflight: bool = False) -> Run:
    """Run what *spec* evaluates with on *subjects*. With none, and *preflight*, it is opened and looked at.

    :raises ConfigError: when it cannot be used.
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
    """Say of what is wrong with components that they stand in the *section* of *spec*."""
    try:
        yield
    except ConfigError as error:
        raise ConfigError(
            _moved(spec, section, problem) if problem.file in (None, "<mapping>") else problem
            for problem in error.problems
        ) from error


def _moved(spec: Spec, section: str, problem: Problem) -> Problem:
    """*problem* at the place that what it is about has in *spec*."""
    address = ("optimization", "money") if (problem.path or "").startswith("budget") else (section,)
    return spec.document.problem(address, problem.message, problem.value, problem.hint)


def common(spec: Spec, ledger: Path) -> dict[str, Any]:
    """The sections that all runs of an optimisation have: its ledger is its own, and all of it is one session."""
    amount, number = spec.optimization.get("money"), spec.optimization.get("workers")
    return {
        "name": f"optimize {spec.name}",
        "ledger": {"ledger/sqlite": {"path": str(ledger)}},
        **({} if amount is None else {"budget": {"session": amount, "day": amount}}),
        **({} if number is None else {"executor": {"dicast/async": {"concurrency": number}}}),
    }


def _dotted(sections: Mapping[str, Any]) -> dict[str, Any]:
    """Overrides that leave the rest of a section as it is."""
    budget = {f"budget.{scope}": amount for scope, amount in sections.get("budget", {}).items()}
    return {**budget, **{name: value for name, value in sections.items() if name != "budget"}}


def _judged_by(spec: Spec, *, preflight: bool) -> dict[str, Any]:
    """The metrics or the judge that *spec* names."""
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
    """``evaluator/judge`` with the spec's objective and intake, where it does not say its own."""
    name, options = next(iter(judge.items())) if isinstance(judge, dict) else (judge, {})
    if name != "evaluator/judge" or not isinstance(options, dict):
        return judge
    intake, given = spec.intake, {}
    if "intake" in spec.document.data:
        found = {one.name: {"weight": one.weight, "description": one.description} for one in intake.quality_dimensions}
        given = {"dimensions": found, "hard_constraints": list(intake.hard_constraints)}
    if "objective" in spec.optimization:
        given["objective"] = spec.optimization["objective"]
    return {name: {**given, **options}}


def _has_task(spec: Spec) -> bool:
    """Whether the pipeline makes outputs of its own, so that a candidate is what it makes them with."""
    try:
        data = yaml.read_yaml(read_bytes(Path(spec.folder, spec.evaluator["pipeline"])), "pipeline", []).plain()
    except (OSError, ConfigError):
        return False  # the run reports the problems of the file
    return isinstance(data, dict) and bool({"task", "include"} & data.keys())


def _terminal(events: Sequence[Event]) -> dict[str, Event]:
    return {str(event.payload["judge"]): event for event in events if event.type in (COMPLETED, FAILED)}


def _evaluation(event: Event) -> Evaluation:
    payload: Mapping[str, Any] = event.payload
    if event.type == FAILED:
        return Evaluation(None, f"{payload['failure_mode']}: {payload['error_message']}")
    scores = [score for score in payload.get("scores", ()) if score.get("rollout", 0) == 0]
    told = {
        score["metric"]: {name: score[name] for name in ("details", "signals") if score.get(name)} for score in scores
    }
    told = {
        label: {**one, "signals": shared_signals(one["signals"])} if "signals" in one else one
        for label, one in told.items()
    }
    if not scores and payload.get("signals"):
        told[str(payload["judge"])] = {"signals": shared_signals(payload["signals"])}
    values = {score["metric"]: score["raw"] if score["value"] is None else score["value"] for score in scores}
    told = {label: details for label, details in told.items() if details}
    if payload["score"] is not None:
        return Evaluation(payload["score"], None, values, told)
    if payload.get("raw") is None:
        return Evaluation(None, "held_back: a proxy is below scoring.threshold", values, told, is_raw=True)
    return Evaluation(payload["raw"], None, values, told, is_raw=True)


def _refuse_stopped(done: Run) -> None:
    if done.disabled:
        raise Stopped("disabled", "judging is switched off: DICAST_DISABLED, or the pipeline's budget")
    if done.stopped is not None:
        raise Stopped(str(done.stopped["reason"]), str(done.stopped.get("error") or done.stopped["reason"]))
