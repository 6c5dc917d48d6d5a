"""The metric ``evaluator/worker``: its options."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import attrs

from dicast import Metric, RunContext, Within
from dicast.toolkit.scripts import scripts

from .options import EvaluatorOptions, check_env, command_words


@attrs.frozen(kw_only=True)
class Worker(EvaluatorOptions):
    """Score with a long-running process: a payload as a line of JSON on its stdin, a result as a line of JSON on its stdout.

    The payload is that of ``evaluator/command`` with an ``id``, which the result repeats. Results may come in any order. A line that is
    not a JSON object, or does not have the ``id`` of a waiting row, counts as the worker's own output and is ignored.

    A worker that ends is started again. Its rows are sent once more, one at a time. A row with which the worker ends
    again is a Failure, with the end of the worker's stderr. After the time limit the worker is ended and started again: the row
    that waited longest is the Failure, and the other rows are sent again. At the end of the run stdin is closed; two seconds later
    dicast ends the worker and every process it started.

    Before judging starts, dicast sends it one preflight candidate.

    :param command: a list of words, or a text that is split like a shell's and run without a shell.
    :param workers: the number of processes; each is started when there is work for it.
    :param cwd: the folder to start in; the pipeline file's by default.
    :param env: variables in addition to dicast's own environment.
    :param timeout: seconds from one result to the next, while a worker has rows.
    :param task_model: the model whose work is judged: in the payload, and in the variables ``OPTIMIZE_ANYTHING_TASK_MODEL`` and
        ``DICAST_TASK_MODEL``.
    :param score_range: ``unit``: scores are in [0, 1]. ``any``: any finite numbers. The slot key ``range`` maps them to [0, 1]; without it they stay raw.
    :param preflight: whether it is tested before judging starts.
    :param max_line_bytes: the longest result in bytes.
    """

    name = "worker"

    command: str | tuple[str, ...] = attrs.field(kw_only=False)
    workers: int = attrs.field(default=1, validator=Within(1, 1000, "from 1 to 1,000"), metadata={"counts": False})
    cwd: Path | None = None
    env: Mapping[str, str] = attrs.field(factory=dict, validator=check_env)
    max_line_bytes: int = attrs.field(default=10_000_000, validator=Within(1, 2**40, "1 or more"))

    def __attrs_post_init__(self) -> None:
        command_words(self.command)

    @asynccontextmanager
    async def open(self, run: RunContext) -> AsyncIterator[Metric]:
        """Yield the workers of one run, after the preflight."""
        from .workers import Workers

        live = Workers(self, run.base, run.concurrency)
        try:
            if self.preflight:
                await live.check()
            yield live
        finally:
            await live.close()

    def reads(self, base: Path) -> dict[str, Path]:
        """Return the script named in the command."""
        return scripts(command_words(self.command), self.cwd or base)
