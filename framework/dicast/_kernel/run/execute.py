"""Execution of a run: its ledger, its lease, and the steps that carry it out."""

from __future__ import annotations

from pathlib import Path

from ..classes import evolve
from ..contract.protocols import Ledger, splits_runs
from ..leases.hold_lease import hold_lease
from ..plan.secret_mask import SecretMask
from ..plan.sections import Pipeline, Slot
from ..resume import resume
from ..resume.open_runs import Retry, find, find_live, refuse_open_merge
from ..source.source import SubjectList
from ..stream.opening import ComponentStack, open_component
from ..timing.stop import Stop
from ..values import RunContext
from ..values.clock import Clock
from ..values.errors import ConfigError
from .plan import refuse_experiment
from .request import Request, RunOutcome
from .run import RunSteps
from .started import origin_of

_CI = ("dicast", "ci")


async def execute(pipeline: Pipeline, ledger: Slot, request: Request) -> RunOutcome:
    """Run *pipeline* on *ledger*.

    :raises RequestError: when the request is invalid; nothing was judged then.
    :raises LedgerRefused: when the ledger cannot be used.
    """
    source = (
        None if isinstance(request.source, SubjectList) else request.source
    )  # subjects of a program have no secrets
    mask = SecretMask.of(pipeline, ledger.component, source)
    with mask.masked_errors():
        return await _execute(pipeline, ledger, request, mask)


async def _execute(pipeline: Pipeline, ledger: Slot, request: Request, mask: SecretMask) -> RunOutcome:
    if request.live:
        refuse_experiment(pipeline)
    clock, stop = Clock(), Stop()
    async with ComponentStack() as parts:
        if request.signals:
            parts.enter_context(stop.on_signals())
        draft = RunContext(clock.id(), pipeline.name, pipeline.base)
        trust = None if request.trusts_all else pipeline.trust
        draft = evolve(draft, concurrency=pipeline.executor.component.concurrency, trust=trust)
        part = parts.part("ledger")
        live: Ledger = await open_component(ledger.component, draft, part, ledger.kind)
        keeps_content = getattr(live, "keeps_content", True)
        if request.live and not keeps_content:
            raise ConfigError(
                "a live run assembles its subjects from the ledger and needs a ledger with content: store"
            )
        if request.shard is not None:
            from .shard_run import shard_pipeline  # few runs are shards

            pipeline = shard_pipeline(pipeline)
        if request.command is not None and tuple(request.command.program) == _CI:
            from .day_note import with_day_note  # few runs are jobs of CI

            pipeline = with_day_note(pipeline, live)
        earlier = _earlier(pipeline, live, request)
        ledger_path = getattr(live, "path", None)
        draft = evolve(
            draft, read=live.read, keeps_content=keeps_content, ledger_path=ledger_path and Path(ledger_path)
        )
        context = evolve(draft, run_id=earlier.run_id, resumed=True) if earlier else draft
        part.enter_context(hold_lease(live, context.run_id))
        if earlier:  # another process may have ended the run in between
            _earlier(pipeline, live, evolve(request, resume=earlier.run_id, live=False))
        steps: type[RunSteps] = RunSteps
        if splits_runs(pipeline.executor.component) and not request.preview:
            from .split_run import SplitSteps  # few executors split runs

            steps = SplitSteps
        return await steps(pipeline, live, clock, stop, context, earlier, request, mask).carry_out(parts)


def _earlier(pipeline: Pipeline, ledger: Ledger, request: Request) -> resume.EarlierRun | None:
    if request.live:
        return None if request.new else find_live(ledger, origin_of(pipeline, request), pipeline.setup)
    if request.resume is None:
        if request.retry_failed:
            raise ConfigError("--retry-failed judges the failed subjects of an earlier run again; add --resume")
        return None
    finished_too = request.retry_failed or request.allow_ended
    retry = Retry(request.limit, [rule.text for rule in request.filters]) if request.retry_failed else None
    run = find(ledger, origin_of(pipeline, request), request.resume or None, finished_too=finished_too, retry=retry)
    refuse_open_merge(ledger, run)
    return run
