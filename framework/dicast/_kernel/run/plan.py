"""What a pipeline's components are to do: the units that judge each kind of subject, and what the run is compared by."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import attrs

from ..asking.batch import Host, placed
from ..asking.call import Call
from ..asking.metering import open_call
from ..asking.paid_calls import RunServices
from ..asking.scoring import RUBRIC_ID, RUBRIC_VERSION, MetricSet
from ..asking.task import Producer, ReplayedModel
from ..asking.unit import Unit
from ..classes import frozen
from ..contract.kinds import parts
from ..contract.protocols import Ledger
from ..events import RUN_STARTED
from ..pipeline.labels import file_labels, pipeline_labels, score_label
from ..pipeline.raw_scale import raw_labels, raw_pass_lines
from ..plan.sections import METRICS, Pipeline, Slot
from ..stream.opening import Opener
from ..stream.sinks import output
from ..stream.stream import Stream
from ..values import PARENTS, Lookahead, Query, Rubric, RunContext
from ..values.errors import ConfigError, Problem


@frozen
class Plan:
    """The units in the order of the file, and every slot's component made ready to be called.

    *collecting* are the live chat models that collect calls for batches.
    """

    units: tuple[Unit, ...]
    calls: Mapping[str, Call]
    counted: tuple[str, ...]
    task: Call | None = None
    extractors: tuple[Call, ...] = ()
    collecting: tuple[Any, ...] = ()

    @property
    def inline(self) -> bool:
        """Whether nothing ever waits: all components are ``def``, asked here and alone, and none can cost anything."""
        calls = self.calls.values()
        return not any(call.waits or call.nests or (call.estimate or call.elsewhere) is not None for call in calls)

    def units_for(self, kind: str) -> tuple[Unit, ...]:
        """The units that judge subjects of *kind*."""
        return tuple(unit for unit in self.units if _judges(unit, kind))

    def units_losing(self, kind: str) -> tuple[Unit, ...]:
        """The units that lose a subject with a failed record of *kind*: those that judge it, or a kind of which it has parts."""
        lost = {kind}
        for child, parent in reversed(PARENTS.items()):
            lost |= {child} if parent in lost else set()
        return tuple(unit for unit in self.units if any(_judges(unit, one) for one in lost))


def _judges(unit: Unit, kind: str) -> bool:
    if unit.slot is not None:
        return unit.slot.accepts(kind)
    return unit.metrics is not None and any(unit.metrics.tiers(kind))


async def make_plan(pipeline: Pipeline, run: RunContext, stack: AsyncExitStack, executor: object = None) -> Plan:
    """Open every metric and judge of *pipeline*; a live *executor* may take metrics upon itself."""
    metrics, opener = pipeline.metrics, Opener(run, stack)
    calls = {slot.path: await open_call(slot, opener) for slot in (*metrics, *pipeline.judges, *pipeline.extractors)}
    host: Host | None = getattr(executor, "host", None)
    hosted = {} if host is None else await host(metrics)
    calls = {path: placed(call, hosted.get(path), stack) for path, call in calls.items()}
    task = None if pipeline.task is None else await open_call(pipeline.task, opener, ReplayedModel)
    calls |= {} if task is None else {task.slot.path: task}
    units = []
    if metrics:
        combined = MetricSet(metrics, pipeline.scoring, at_once=bool(opener.collecting))
        units.append(Unit(METRICS, _digest(pipeline, metrics), lambda _: _COMBINED_PLAN, metrics=combined))
    units += [Unit(slot.label, slot.fingerprint, _planned(slot), slot=slot) for slot in pipeline.judges]
    extractors = tuple(calls[slot.path] for slot in pipeline.extractors)
    return Plan(tuple(units), calls, counted_labels(pipeline), task, extractors, tuple(opener.collecting))


_COMBINED_PLAN = {"rubric_id": RUBRIC_ID, "rubric_version": RUBRIC_VERSION, "judge_kind_planned": "metrics"}


def counted_labels(pipeline: Pipeline) -> tuple[str, ...]:
    """Return the labels with verdicts that decide whether a subject is scored: all metrics together, and every judge."""
    return file_labels(pipeline.metrics, pipeline.judges, ())


def pass_lines(pipeline: Pipeline) -> dict[str, float | None]:
    """Return the least value with which a subject passes, by label; None for a raw label without one, and for all metrics under ``all``."""
    slots = (*pipeline.judges, *pipeline.metrics)
    whole = pipeline.scoring.pass_at
    lines = {slot.label: slot.pass_at for slot in slots} | {METRICS: whole if isinstance(whole, float | int) else None}
    return lines | raw_pass_lines(pipeline)


def pass_rule(pipeline: Pipeline) -> dict[str, Any]:
    """The rule of passing all metrics together, as ``run.started`` records it next to the lines of the labels."""
    scoring, metrics = pipeline.scoring, pipeline.metrics
    every = not isinstance(scoring.pass_at, float | int) and METRICS not in raw_labels(metrics)
    return {
        "metrics": "all" if every else "score",
        "combine": scoring.combine,
        "threshold": scoring.threshold,
        "weights": {slot.label: slot.weight for slot in metrics},
        "truths": [slot.label for slot in metrics if slot.tier == "truth"],
    }


def run_started(
    pipeline: Pipeline,
    plan: Plan,
    data: Mapping[str, str],
    rubrics: Mapping[str, str],
    limit: int | None,
    *,
    live: bool,
) -> dict[str, Any]:
    """The payload of ``run.started``: what a reader needs to make sense of the run's events; *data* has the digest of the data, if any."""
    return {
        "name": pipeline.name,
        "file": file_identity(pipeline),
        "fingerprints": {**pipeline.fingerprints, **data},
        "setup": {**pipeline.setup, **data},
        "rubrics": dict(rubrics),
        "metrics": [slot.label for slot in pipeline.metrics],
        "on": {slot.label: slot.on for slot in pipeline.metrics},
        "judges": [slot.label for slot in pipeline.judges],
        **inside(pipeline),
        "task": pipeline.task and pipeline.task.name,
        "extractors": [slot.label for slot in pipeline.extractors],
        "outputs": [output(slot, pipeline.base) for slot in pipeline.sinks],
        **_followers(pipeline),
        **levels(pipeline),
        **decided_by(pipeline),
        "limit": limit,
        "live": live,
        **({"raw": raw} if (raw := raw_labels(pipeline.metrics)) else {}),
        **_audit(pipeline),
        **_assumed(pipeline),
    }


def _assumed(pipeline: Pipeline) -> dict[str, Any]:
    """Return the distinct assumptions of the components of *pipeline*."""
    slots = [*pipeline.metrics, *pipeline.judges, *((pipeline.task,) if pipeline.task else ())]
    found = [getattr(part, "assumptions", None) for slot in slots for part in parts(slot.component)]
    texts = dict.fromkeys(str(text) for assumptions in found if callable(assumptions) for text in assumptions())
    return {"assumed": [*texts]} if texts else {}


def _followers(pipeline: Pipeline) -> dict[str, Any]:
    """Return the sinks that take the verdicts of later re-evaluations, with the place of each one's file; nothing without any."""
    found = [
        {
            "name": slot.name,
            "options": dict(slot.options),
            "path": str(Path(pipeline.base, slot.component.path).absolute()),
        }
        for slot in pipeline.sinks
        if getattr(slot.component, "takes_reevaluations", False)
    ]
    return {"followers": found} if found else {}


def _audit(pipeline: Pipeline) -> dict[str, Any]:
    """What is audited, and which metrics that is about."""
    audit = pipeline.scoring.audit
    truths = [slot.label for slot in pipeline.metrics if slot.tier == "truth"]
    return (
        {}
        if audit is None
        else {"audit": attrs.asdict(audit, filter=lambda _, value: value is not None), "truths": truths}
    )


def inside(pipeline: Pipeline) -> dict[str, Any]:
    """What ``run.started`` says of the judges inside others; nothing where there are none."""
    found = {one.label: one.fingerprint for slot in pipeline.judges for one in slot.inside.values()}
    return {"inside": found} if found else {}


def decided_by(pipeline: Pipeline) -> dict[str, Any]:
    """What ``run.started`` says of how scores are counted, which may be another thing when the run is taken up."""
    return {
        "labels": list(labels := pipeline_labels(pipeline)),
        "score_label": score_label(pipeline.gate, labels),
        "counted": list(counted_labels(pipeline)),
        "gated": list(dict.fromkeys(clause.on for clause in pipeline.gate.clauses if clause.on is not None)),
        "pass_at": pass_lines(pipeline),
        "pass_rule": pass_rule(pipeline),
    }


def producer(
    pipeline: Pipeline, plan: Plan, services: RunServices, stream: Stream, time: Callable[[], str]
) -> Producer | None:
    """What makes the records; None where there are none."""
    if plan.task is None and not plan.extractors:
        return None
    rollouts = pipeline.scoring.rollouts
    return Producer(services, stream, plan.task, plan.extractors, rollouts, levels(pipeline), time)


def levels(pipeline: Pipeline) -> dict[str, object]:
    """What the task says of every record: how secret it is, and how sure to come out the same again."""
    task = pipeline.task and pipeline.task.component
    names = "security_level", "determinism_level"
    return {name: getattr(task, name) for name in names if getattr(task, name, None) is not None}


def refuse_experiment(pipeline: Pipeline) -> None:
    """Refuse the sections that belong to runs over what is all there.

    :raises ConfigError: naming them.
    """
    made = {
        "task": pipeline.task,
        "aggregates": pipeline.aggregates,
        "early_stop": pipeline.early_stop,
        "baseline": pipeline.baseline,
    }
    if given := [section for section, found in made.items() if found]:
        raise ConfigError(
            Problem(
                f"the section {section!r} is for runs that end; what is watched goes on: leave it out", path=section
            )
            for section in given
        )


def lookahead(pipeline: Pipeline) -> Lookahead:
    """How long turns are to wait: the longest that a judge, or one inside it, asks for."""
    found = [part for slot in (*pipeline.metrics, *pipeline.judges) for part in parts(slot.component)]
    return Lookahead(
        max((getattr(part, "lookahead_messages", 0) for part in found), default=0),
        max((getattr(part, "lookahead_hours", 0.0) for part in found), default=0.0),
    )


def file_identity(pipeline: Pipeline) -> str:
    """What says that two runs are of one pipeline file, and of one experiment in it."""
    file = pipeline.file if pipeline.file.startswith("<") else str(Path(pipeline.file).resolve())
    return file if pipeline.experiment is None else f"{file}#{pipeline.experiment}"


def _planned(slot: Slot) -> Callable[[str], Mapping[str, object]]:
    """What is said of a verdict of *slot* before it is made, by the subject's kind."""
    component = slot.component
    given = getattr(component, "rubric", None)
    own = given if isinstance(given, Rubric) else Rubric(slot.name, slot.version)
    rubric_for: Callable[[str], Rubric] = getattr(component, "rubric_for", lambda _: own)
    judge_kind = getattr(component, "judge_kind", "evaluator")

    @cache
    def planned(kind: str) -> Mapping[str, object]:
        rubric = rubric_for(kind)
        return {"rubric_id": rubric.id, "rubric_version": rubric.version, "judge_kind_planned": judge_kind}

    return planned


def _digest(pipeline: Pipeline, metrics: Sequence[Slot]) -> str:
    parts = [pipeline.fingerprints["scoring"], *(f"{slot.label}={slot.fingerprint}" for slot in metrics)]
    return sha256("\n".join(parts).encode()).hexdigest()


def unchanged_rubrics(pipeline: Pipeline, ledger: Ledger) -> Mapping[str, str]:
    """The digest of each rubric's text, by id and version.

    :raises ConfigError: naming each whose text is another than in an earlier run of this ledger, under the same version.
    """
    slots = (*pipeline.metrics, *pipeline.judges)
    found = [part for slot in slots for part in parts(slot.component) if isinstance(part, Rubric)]
    digests = {f"{rubric.id} {rubric.version}": sha256(rubric.text.encode()).hexdigest() for rubric in found}
    changed: dict[str, str] = {}
    for entry in ledger.read(Query(types=(RUN_STARTED,))) if digests else ():
        before = entry.event.payload.get("rubrics")
        earlier = before if isinstance(before, Mapping) else {}
        changed |= {name: entry.event.run_id for name in digests if earlier.get(name, digests[name]) != digests[name]}
    if changed:
        raise ConfigError(
            Problem(
                f"the text of rubric {name} is not what it was in run {run_id}; give the changed one a new version",
                value=name,
            )
            for name, run_id in changed.items()
        )
    return digests
