"""Request for a run, and its outcome."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ..classes import field, frozen
from ..contract.protocols import Source
from ..report.fold import Report
from ..resume.open_runs import RunCommand

if TYPE_CHECKING:
    from ..source.filters import Condition, Failing
    from ..source.shard import Shard
    from .reuse import ReusedReplies


@frozen
class Request:
    """Options of a run.

    :param limit: the largest number of subjects to read.
    :param resume: the id of the run to resume, or ``""`` for the newest unfinished run of the file.
    :param retry_failed: judge the failed subjects of the resumed run again.
    :param allow_ended: also resume a run that has ended, to decide it by another gate.
    :param source: a source in place of the file's.
    :param live: the source is live; an unfinished run of it is resumed, unless *new*.
    :param suite: the suite that the run belongs to.
    :param preview: the run is not to be resumed or compared with.
    :param kind: the recorded kind, one of ``RUN_KINDS``; by default derived from the other members.
    :param pause_after: pause after this number of subjects; the run can be resumed.
    :param trusts_all: the consent to run code that the section ``trust`` does not name.
    :param signals: let Ctrl-C and SIGTERM stop the run in order.
    :param progress: is called from time to time.
    :param cancel_batches: cancel the open batches of the run, and send no new ones.
    :param command: the command that the user gave, for messages.
    :param filters: the rules that select the subjects.
    :param reuse: paid replies of earlier runs; this run adds its own.
    :param experiments: the ids of the runs of the suite so far, by experiment, for the baselines of the gate.
    :param shard: the part of the subjects to judge; all without it.
    """

    limit: int | None = None
    resume: str | None = None
    retry_failed: bool = False
    allow_ended: bool = False
    source: Source | None = None
    live: bool = False
    new: bool = False
    suite: Mapping[str, object] | None = None
    preview: bool = False
    kind: str | None = None
    pause_after: int | None = None
    trusts_all: bool = False
    signals: bool = False
    progress: Callable[[Report], None] | None = None
    cancel_batches: bool = False
    command: RunCommand | None = None
    filters: tuple[Condition | Failing, ...] = ()
    reuse: ReusedReplies | None = None
    experiments: Mapping[str, str | None] = field(factory=dict)
    shard: Shard | None = None

    @property
    def flags(self) -> list[str]:
        """The options that go with ``--resume``."""
        flags = {"--retry-failed": self.retry_failed, "--cancel-batches": self.cancel_batches}
        return [flag for flag, is_given in flags.items() if is_given]

    @property
    def shard_setup(self) -> dict[str, str]:
        """The members of ``setup`` by which a resumed shard is compared; empty for a whole run."""
        return {} if self.shard is None else {"shard": str(self.shard)}


@frozen
class RunOutcome:
    """Result of a run: the document of ``run --json`` and its exit code."""

    document: Mapping[str, Any]
    exit_code: int
