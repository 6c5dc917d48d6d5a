"""Results of the fixtures: a function for runs with the test's own ledger, and single components."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

import dicast
from dicast import Cost, Due, Event, Judgment, RequestError, Run, Score, ScoringError, Subject, Verdict

SUBJECT = "1"
"""Id of a text that is judged as a row."""


def run_in(folder: Path) -> Callable[..., Run]:
    """Return a function like ``dicast.run`` that puts the ledger in *folder* instead of the pipeline's place."""
    ledger = {"ledger/sqlite": {"path": str(folder / "ledger.db")}}

    def dicast_run(
        pipeline: Path | str | Mapping[str, object],
        *,
        overrides: Mapping[str, object] | Sequence[str] = (),
        subjects: Iterable[Subject | Due] | None = None,
        task: Callable[..., Any] | None = None,
    ) -> Run:
        components: Mapping[str, object] | Sequence[str] = (
            {"ledger": ledger, **overrides}
            if isinstance(overrides, Mapping)
            else [f"ledger={json.dumps(ledger)}", *overrides]
        )
        return dicast.run(pipeline, overrides=components, subjects=subjects, task=task)

    return dicast_run


@attrs.frozen
class Component:
    """A metric or a judge; call it with a text or a subject to get a score or a judgment."""

    component: object
    run: Callable[..., Run]

    def __call__(self, subject: str | Subject, **fields: Any) -> Score | Judgment:
        """Return the score or judgment of *subject*: a subject, or the output of a row with ``input``, ``reference`` and ``context`` in *fields*.

        :raises RequestError: if there is no such component, or its options are wrong.
        :raises ScoringError: if it fails, with the kind of the failure and its message.
        """
        judged_subject = subject if isinstance(subject, Subject) else Subject("row", SUBJECT, output=subject, **fields)
        try:
            done, is_judge = self._run("judges", judged_subject), True
        except RequestError:
            done, is_judge = self._run("metrics", judged_subject), False
        verdicts = done.verdicts
        if not verdicts:
            raise ScoringError(_why(done, judged_subject))
        return _judgment(verdicts[0]) if is_judge else _score(verdicts[0])

    def _run(self, section: str, subject: Subject) -> Run:
        return self.run({"name": "judge", section: [self.component]}, subjects=[subject])


def maker_in(folder: Path) -> Callable[..., Component]:
    """Return a function that creates components from a name and options, or from a Python object; their ledger is in *folder*."""

    def judge(component: object, **options: object) -> Component:
        return Component({component: options} if options else component, run_in(folder))

    return judge


def _why(done: Run, subject: Subject) -> str:
    """Return the reason why a run of one subject has no verdict."""

    def failures(events: Iterable[Event]) -> list[str]:
        return [f"{event.payload['failure_mode']}: {event.payload['error_message']}" for event in events]

    messages = done.read(("eval.failed",), failures)
    return messages[0] if messages else f"it does not judge subjects of the kind {subject.kind!r}"


def _score(verdict: Verdict) -> Score:
    score: Mapping[str, Any] = verdict.scores[0]
    details, feedback = score.get("details") or "", score.get("feedback") or ""
    return Score(
        score["value"], score["confidence"], details, feedback, _cost(score["cost"]), score["signals"], score.get("raw")
    )


def _cost(cost: Mapping[str, Any]) -> Cost:
    if cost["amount"] is None:
        return Cost.unknown()
    return Cost(cost["amount"], cost["unit"], cost.get("pricing_version"))


def _judgment(verdict: Verdict) -> Judgment:
    usd = verdict.judge_cost_usd
    cost = Cost.unknown() if usd is None else Cost(usd, "usd", verdict.judge_pricing_version)
    kind, model = verdict.judge_kind, verdict.judge_model
    assert verdict.score is not None  # a judge's verdict has a score
    return Judgment(
        verdict.score,
        verdict.confidence,
        kind,
        model,
        cost,
        verdict.signals,
        basis=verdict.basis,
        includes_replies=True,
    )
