"""What the fixtures give: a run with a ledger of the test's own, and one component to ask."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

import dicast
from dicast import Cost, Due, Event, Judgment, RequestError, Run, Score, ScoringError, Subject, Verdict

SUBJECT = "1"
"""The id of a text that is judged as a row."""


def run_in(folder: Path) -> Callable[..., Run]:
    """``dicast.run`` with its ledger in *folder*, whatever ledger the pipeline names."""
    ledger = {"ledger/sqlite": {"path": str(folder / "ledger.db")}}

    def dicast_run(
        pipeline: Path | str | Mapping[str, object],
        *,
        overrides: Mapping[str, object] | Sequence[str] = (),
        subjects: Iterable[Subject | Due] | None = None,
        task: Callable[..., Any] | None = None,
    ) -> Run:
        given: Mapping[str, object] | Sequence[str] = (
            {"ledger": ledger, **overrides}
            if isinstance(overrides, Mapping)
            else [f"ledger={json.dumps(ledger)}", *overrides]
        )
        return dicast.run(pipeline, overrides=given, subjects=subjects, task=task)

    return dicast_run


@attrs.frozen
class Asked:
    """A metric or a judge; called with a text, or a subject, it gives its score or its judgment."""

    component: object
    run: Callable[..., Run]

    def __call__(self, subject: str | Subject, **more: Any) -> Score | Judgment:
        """What it says of *subject*; of a text, the output of a row, *more* may be its ``input``, ``reference`` and ``context``.

        :raises RequestError: when there is no such component, or its options are wrong.
        :raises ScoringError: when it fails, with the kind of the failure and its message.
        """
        asked = subject if isinstance(subject, Subject) else Subject("row", SUBJECT, output=subject, **more)
        try:
            done, is_judge = self._run("judges", asked), True
        except RequestError:
            done, is_judge = self._run("metrics", asked), False
        verdicts = done.verdicts
        if not verdicts:
            raise ScoringError(_why(done, asked))
        return _judgment(verdicts[0]) if is_judge else _score(verdicts[0])

    def _run(self, section: str, subject: Subject) -> Run:
        return self.run({"name": "judge", section: [self.component]}, subjects=[subject])


def maker_in(folder: Path) -> Callable[..., Asked]:
    """Makes components, by name and options or made in Python, whose ledger is in *folder*."""

    def judge(component: object, **options: object) -> Asked:
        return Asked({component: options} if options else component, run_in(folder))

    return judge


def _why(done: Run, subject: Subject) -> str:
    """Why a run of one subject has no verdict."""

    def failures(events: Iterable[Event]) -> list[str]:
        return [f"{event.payload['failure_mode']}: {event.payload['error_message']}" for event in events]

    found = done.read(("eval.failed",), failures)
    return found[0] if found else f"it does not judge subjects of the kind {subject.kind!r}"


def _score(verdict: Verdict) -> Score:
    one: Mapping[str, Any] = verdict.scores[0]
    details, feedback = one.get("details") or "", one.get("feedback") or ""
    return Score(one["value"], one["confidence"], details, feedback, _cost(one["cost"]), one["signals"], one.get("raw"))


def _cost(told: Mapping[str, Any]) -> Cost:
    if told["amount"] is None:
        return Cost.unknown()
    return Cost(told["amount"], told["unit"], told.get("pricing_version"))


def _judgment(verdict: Verdict) -> Judgment:
    usd = verdict.judge_cost_usd
    cost = Cost.unknown() if usd is None else Cost(usd, "usd", verdict.judge_pricing_version)
    kind, model = verdict.judge_kind, verdict.judge_model
    assert verdict.score is not None  # a judge's has one
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
