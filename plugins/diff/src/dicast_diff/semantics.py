"""Do output and reference mean the same? A judge is asked."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

import attrs

from dicast import Cost, Failure, Judge, Judgment, Score, Subject, weakest

from .sides import Sides
from .texts import written

_SIGNALS = ("score", "confidence", "judge_kind", "judge_model")


async def compare_meaning(sides: Sides, subject: Subject, judge: Judge) -> Score | Failure:
    """Return the lower of two scores: of the output judged by the reference, and of the reference judged by the output.

    Texts with the same words have the same meaning, and no judge is asked.
    """
    texts = written(sides.output), written(sides.reference)
    if None not in texts and str(texts[0]).split() == str(texts[1]).split():
        return Score(1.0, signals={"asked": 0})
    forth = attrs.evolve(subject, output=sides.output, reference=sides.reference)
    # An id of its own, by which its reply is found again where a run is resumed.
    back = attrs.evolve(subject, id=f"{subject.id} (reversed)", output=sides.reference, reference=sides.output)
    answers = await _both(judge, forth, back)
    cost = _total(answers)
    failed = [answer for answer in answers if isinstance(answer, Failure)]
    if failed:
        return attrs.evolve(failed[0], cost=cost)
    return _combined([answer for answer in answers if isinstance(answer, Judgment)], cost)


async def _both(judge: Judge, forth: Subject, back: Subject) -> Sequence[Judgment | Failure]:
    async def ask(subject: Subject) -> Judgment | Failure:
        return await judge.judge(subject, ())

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(ask(subject_)) for subject_ in (forth, back)]
    except BaseExceptionGroup as several:
        raise several.exceptions[0] from several
    return [task.result() for task in tasks]


def _combined(judgments: Sequence[Judgment], cost: Cost) -> Score:
    records = [_record(judgment) for judgment in judgments]
    signals = {"asked": 2, "output_to_reference": records[0], "reference_to_output": records[1]}
    forth, back = (judgment.score for judgment in judgments)
    details = "" if forth == back else f"{forth:g} from output to reference, {back:g} from reference to output"
    confidence = min(judgment.confidence for judgment in judgments)
    basis = weakest(judgment.basis for judgment in judgments)
    return Score(min(forth, back), confidence, details, cost=cost, signals=signals, basis=basis)


def _record(judgment: Judgment) -> Mapping[str, object]:
    """Return a judgment without its own signals, so that no rationale becomes part of the verdict."""
    rubric = (
        {} if judgment.rubric is None else {"rubric_id": judgment.rubric.id, "rubric_version": judgment.rubric.version}
    )
    return {name: getattr(judgment, name) for name in _SIGNALS} | rubric


def _total(answers: Sequence[Judgment | Failure]) -> Cost:
    """Return the cost of both answers, in the unit of the first answer with a cost: two units are never added."""
    costs = [answer.cost for answer in answers if not answer.cost.is_zero]
    unit = costs[0].unit if costs else "usd"
    return sum((cost for cost in costs if cost.unit == unit), Cost.zero(unit))
