"""Plan of a run: the units that judge each kind of subject, and the properties by which runs are compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import orjson

from ..asking.batch import Host, placed
from ..asking.call import Call
from ..asking.metering import open_call
from ..asking.paid_calls import RunServices
from ..asking.scoring import RUBRIC_ID, RUBRIC_VERSION, MetricSet
from ..asking.unit import Unit
from ..classes import frozen
from ..contract.kinds import parts
from ..contract.protocols import Ledger
from ..events import RUN_STARTED
from ..pipeline.raw_scale import raw_labels, raw_pass_lines
from ..plan.labels import file_labels, pipeline_labels, score_label
from ..plan.sections import METRICS, Pipeline, Slot
from ..stream.opening import Opener
from ..stream.sinks import output
from ..stream.stream import Stream
from ..values import PARENTS, Lookahead, Query, Rubric, RunContext
from ..values.errors import ConfigError, Problem
from .option_texts import option_texts

if TYPE_CHECKING:
    from ..asking.task import Producer


@frozen
class Plan:
    """Units in the order of the file, and the opened component of every slot.

    *collecting* are the live chat models that collect calls for batches. *keeps_content* is whether the ledger stores the judged content.
    """

    units: tuple[Unit, ...]
    calls: Mapping[str, Call]
    counted: tuple[str, ...]
    task: Call | None = None
    extractors: tuple[Call, ...] = ()
    collecting: tuple[Any, ...] = ()
    keeps_content: bool = True

    @property
    def inline(self) -> bool:
        """True if no call ever waits: every component is a ``def``, runs in this process, nests no other, and costs nothing."""
        calls = self.calls.values()
        return not any(call.waits or call.nests or (call.estimate or call.elsewhere) is not None for call in calls)

    def units_for(self, kind: str) -> tuple[Unit, ...]:
        """Return the units that judge subjects of *kind*."""
        return tuple(unit for unit in self.units if _judges(unit, kind))

    def units_losing(self, kind: str) -> tuple[Unit, ...]:
        """Return the units that lose a subject with a failed record of *kind*: units that judge *kind* or a kind of its parts."""
        lost = {kind}
        for child, parent in reversed(PARENTS.items()):
            lost |= {child} if parent in lost else set()
        return tuple(unit for unit in self.units if any(_judges(unit, lost_kind) for lost_kind in lost))


def _judges(unit: Unit, kind: str) -> bool:
    if unit.slot is not None:
        return unit.slot.accepts(kind)
    return unit.metrics is not None and any(unit.metrics.tiers(kind))


async def make_plan(pipeline: Pipeline, run: RunContext, stack: AsyncExitStack, executor: object = None) -> Plan:
    """Open every metric and judge of *pipeline*; a live *executor* may host metrics."""
    metrics, opener = pipeline.metrics, Opener(run, stack)
    calls = {slot.path: await open_call(slot, opener) for slot in (*metrics, *pipeline.judges, *pipeline.extractors)}
    host: Host | None = getattr(executor, "host", None)
    hosted = {} if host is None else await host(metrics)
    calls = {path: placed(call, hosted.get(path), stack) for path, call in calls.items()}
    task = None
    if pipeline.task is not None:
        from ..asking.task import ReplayedModel  # most runs have no task

        task = await open_call(pipeline.task, opener, ReplayedModel)
        calls[task.slot.path] = task
    units = []
    if metrics:
        combined = MetricSet(metrics, pipeline.scoring, concurrent=bool(opener.collecting))
        units.append(Unit(METRICS, _digest(pipeline, metrics), lambda _: _COMBINED_PLAN, metrics=combined))
    units += [Unit(slot.label, slot.fingerprint, _planned(slot), slot=slot) for slot in pipeline.judges]
    extractors = tuple(calls[slot.path] for slot in pipeline.extractors)
    collecting, counted = tuple(opener.collecting), counted_labels(pipeline)
    return Plan(tuple(units), calls, counted, task, extractors, collecting, run.keeps_content)


_COMBINED_PLAN = {"rubric_id": RUBRIC_ID, "rubric_version": RUBRIC_VERSION, "judge_kind_planned": "metrics"}


def counted_labels(pipeline: Pipeline) -> tuple[str, ...]:
    """Return the labels whose verdicts decide if a subject is scored: all metrics together, and every judge."""
    return file_labels(pipeline.metrics, pipeline.judges, ())


def pass_lines(pipeline: Pipeline) -> dict[str, float | None]:
    """Return the smallest value with which a subject passes, by label.

    None for a raw label without a line, and for all metrics under ``all``.
    """
    slots = (*pipeline.judges, *pipeline.metrics)
    combined = pipeline.scoring.pass_at
    lines = {slot.label: slot.pass_at for slot in slots} | {
        METRICS: combined if isinstance(combined, float | int) else None
    }
    return lines | raw_pass_lines(pipeline)


def pass_rule(pipeline: Pipeline) -> dict[str, Any]:
    """Return the rule of passing all metrics together, as ``run.started`` records it next to the lines of the labels."""
    scoring, metrics = pipeline.scoring, pipeline.metrics
    needs_all = not isinstance(scoring.pass_at, float | int) and METRICS not in raw_labels(metrics)
    return {
        "metrics": "all" if needs_all else "score",
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
    """Return the payload of ``run.started``: the properties that a reader of the run's events needs.

    *data* has the digest of the data, if there is one.
    """
    return {
        "name": pipeline.name,
        "file": file_identity(pipeline),
        "fingerprints": {**pipeline.fingerprints, **data},
        "setup": {**pipeline.setup, **data},
        "options": option_texts(pipeline, keeps_content=plan.keeps_content),
        "rubrics": dict(rubrics),
        "metrics": [slot.label for slot in pipeline.metrics],
        "on": {slot.label: slot.on for slot in pipeline.metrics},
        "judges": [slot.label for slot in pipeline.judges],
        **inside(pipeline),
        "task": pipeline.task and pipeline.task.name,
        "extractors": [slot.label for slot in pipeline.extractors],
        "outputs": [output(slot, pipeline.base) for slot in pipeline.sinks],
        **followers(pipeline),
        **levels(pipeline),
        **decided_by(pipeline),
        "limit": limit,
        "live": live,
        **({"raw": raw} if (raw := raw_labels(pipeline.metrics)) else {}),
        **({"rollouts": pipeline.scoring.rollouts} if pipeline.scoring.rollouts > 1 else {}),
        **_audit(pipeline),
        **_assumed(pipeline),
        **_prompts(pipeline, keeps_content=plan.keeps_content),
    }


def _prompts(pipeline: Pipeline, *, keeps_content: bool) -> dict[str, Any]:
    """Return the texts of the task's prompts by criterion and role; only their digests if the ledger keeps no content; empty without prompts.

    The texts have the names of environment variables, because their values may be secrets; values that are in the file are filled in.
    """
    texts = getattr(pipeline.task and pipeline.task.component, "prompt_texts", None)
    prompts: Mapping[str, Mapping[str, str]] = texts() if callable(texts) else {}
    prompts = {
        name: {role: pipeline.named.get(text, text) for role, text in prompt.items()}
        for name, prompt in prompts.items()
    }
    if not keeps_content:
        prompts = {
            name: {"digest": sha256(orjson.dumps(prompt, option=orjson.OPT_SORT_KEYS)).hexdigest()}
            for name, prompt in prompts.items()
        }
    return {"prompts": prompts} if prompts else {}


def _assumed(pipeline: Pipeline) -> dict[str, Any]:
    """Return the distinct assumptions of the components of *pipeline*."""
    slots = [*pipeline.metrics, *pipeline.judges, *((pipeline.task,) if pipeline.task else ())]
    functions = [getattr(part, "assumptions", None) for slot in slots for part in parts(slot.component)]
    texts = dict.fromkeys(str(text) for assumptions in functions if callable(assumptions) for text in assumptions())
    return {"assumed": [*texts]} if texts else {}


def followers(pipeline: Pipeline) -> dict[str, Any]:
    """Return the sinks that take the verdicts of later re-evaluations, with the path of each sink's file; empty without any."""
    followers = [
        {
            "name": slot.name,
            "options": dict(slot.options),
            "path": str(Path(pipeline.base, slot.component.path).absolute()),
        }
        for slot in pipeline.sinks
        if getattr(slot.component, "takes_reevaluations", False)
    ]
    return {"followers": followers} if followers else {}


def _audit(pipeline: Pipeline) -> dict[str, Any]:
    """Return the audit of the scoring, and the truth metrics that it covers."""
    audit = pipeline.scoring.audit
    truths = [slot.label for slot in pipeline.metrics if slot.tier == "truth"]
    return (
        {}
        if audit is None
        else {"audit": attrs.asdict(audit, filter=lambda _, value: value is not None), "truths": truths}
    )


def inside(pipeline: Pipeline) -> dict[str, Any]:
    """Return the fingerprints of nested judges for ``run.started``; empty without any."""
    fingerprints = {nested.label: nested.fingerprint for slot in pipeline.judges for nested in slot.inside.values()}
    return {"inside": fingerprints} if fingerprints else {}


def decided_by(pipeline: Pipeline) -> dict[str, Any]:
    """Return the members of ``run.started`` on how scores are counted, which may change when the run is resumed."""
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
    """Return the producer of the records; None if the pipeline makes none."""
    if plan.task is None and not plan.extractors:
        return None
    from ..asking.task import Producer  # as in make_plan

    rollouts = pipeline.scoring.rollouts
    return Producer(services, stream, plan.task, plan.extractors, rollouts, levels(pipeline), time)


def levels(pipeline: Pipeline) -> dict[str, object]:
    """Return the members that the task adds to every record: ``security_level`` and ``determinism_level``."""
    task = pipeline.task and pipeline.task.component
    names = "security_level", "determinism_level"
    return {name: getattr(task, name) for name in names if getattr(task, name, None) is not None}


def refuse_experiment(pipeline: Pipeline) -> None:
    """Refuse the sections that need a source with an end.

    :raises ConfigError: naming them.
    """
    sections = {
        "task": pipeline.task,
        "aggregates": pipeline.aggregates,
        "early_stop": pipeline.early_stop,
        "baseline": pipeline.baseline,
    }
    if present := [section for section, content in sections.items() if content]:
        raise ConfigError(
            Problem(
                f"the section {section!r} needs a source that ends, but a live source does not; remove the section",
                path=section,
            )
            for section in present
        )


def lookahead(pipeline: Pipeline) -> Lookahead:
    """Return how long a turn waits for later messages: the longest time that any judge or nested judge of *pipeline* asks for."""
    components = [part for slot in (*pipeline.metrics, *pipeline.judges) for part in parts(slot.component)]
    return Lookahead(
        max((getattr(part, "lookahead_messages", 0) for part in components), default=0),
        max((getattr(part, "lookahead_hours", 0.0) for part in components), default=0.0),
    )


def file_identity(pipeline: Pipeline) -> str:
    """Return the identity of the pipeline file and of the experiment in it; equal for two runs of the same."""
    file = pipeline.file if pipeline.file.startswith("<") else str(Path(pipeline.file).resolve())
    return file if pipeline.experiment is None else f"{file}#{pipeline.experiment}"


def _planned(slot: Slot) -> Callable[[str], Mapping[str, object]]:
    """Return a function of the subject's kind that returns the properties of a verdict of *slot* before it is made."""
    component = slot.component
    option = getattr(component, "rubric", None)
    default = option if isinstance(option, Rubric) else Rubric(slot.name, slot.version)
    rubric_for: Callable[[str], Rubric] = getattr(component, "rubric_for", lambda _: default)
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
    """Return the digest of each rubric's text, by id and version.

    :raises ConfigError: naming each rubric whose text differs from an earlier run in this ledger under the same version.
    """
    slots = (*pipeline.metrics, *pipeline.judges)
    rubrics = [part for slot in slots for part in parts(slot.component) if isinstance(part, Rubric)]
    digests = {f"{rubric.id} {rubric.version}": sha256(rubric.text.encode()).hexdigest() for rubric in rubrics}
    changed: dict[str, str] = {}
    for entry in ledger.read(Query(types=(RUN_STARTED,))) if digests else ():
        recorded = entry.event.payload.get("rubrics")
        earlier = recorded if isinstance(recorded, Mapping) else {}
        changed |= {name: entry.event.run_id for name in digests if earlier.get(name, digests[name]) != digests[name]}
    if changed:
        raise ConfigError(
            Problem(
                f"the text of rubric {name} differs from its text in run {run_id}; give the changed rubric a new version",
                value=name,
            )
            for name, run_id in changed.items()
        )
    return digests
