"""What a run does, as events, and what the ledger and a reader make of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import attrs

from ..classes import define, frozen
from .basis import Basis, basis_of
from .record import Results
from .score import Cost
from .subject import TraceEvent


@define
class EventFields:
    """The fields of :class:`Event`, as long as they can be written."""

    id: str
    type: str
    time: str
    run_id: str
    payload: Mapping[str, object]
    session_id: str | None = None
    turn_id: str | None = None
    subject_kind: str | None = None
    subject_id: str | None = None
    sensitivity: str = "pseudonymous"


@frozen
class Event(EventFields):
    """One thing that happened in a run.

    *id* is a monotonic ULID; *time* is ISO 8601 UTC with milliseconds; *sensitivity* is ``pseudonymous`` or
    ``user_controlled``; *payload* is JSON-serialisable.
    """

    @classmethod
    def of(cls, *fields: Any) -> Event:
        """As the class itself, in a third of the time: attrs sets the fields of what is frozen one by one."""
        event: Any = EventFields(*fields)
        event.__class__ = cls
        made: Event = event
        return made


def _basis(verdict: Verdict) -> Basis:
    return basis_of(verdict.judge_kind, verdict.tier, verdict.judge_model)


@frozen
class Verdict:
    """One judgment of one subject, with its provenance: the payload of ``eval.completed``.

    *scores* holds a mapping a metric and rollout: ``{metric, value, confidence, tier, weight, rollout, details, cost,
    signals}``, and ``feedback`` where the metric gave some. *tier* is ``truth`` when a truth metric or a judge entered the
    score; *truth_reason* is ``gate`` when the truth metrics ran because every proxy passed, ``audit`` when they ran to measure
    the gate (then with weight 0), else None; *propensity* is the probability with which the truth was looked at.
    *spared* says of each truth metric that the gate kept from running ``{metric, runs, amount, unit}``: in how many
    rollouts, and what these might have cost by its estimate. *fingerprint* digests everything that could change the number.
    Amounts are None when unknown. *basis* is what the score rests on, one of :data:`BASES`; for a ledger that does not say it, what
    *judge_kind* and *tier* say. *calibrated* says that a model was measured against labels. Where the label's values are on a scale
    of their own, *score* is None and *raw* is the value; both are None if the proxies held the subject back. *adapted* are the parameters
    that endpoints refused and that were left out or translated, by the label of the component that asked.
    """

    eval_id: str
    subject_kind: str
    subject_id: str
    score: float | None
    confidence: float
    judge_kind: str
    judge_model: str | None
    judge_cost_usd: Decimal | None
    judge_pricing_version: str | None
    judge_latency_ms: int
    rubric_id: str
    rubric_version: str
    signals: Mapping[str, object]
    parent_eval_id: str | None
    created_at: str
    run_id: str
    judge: str
    fingerprint: str
    scores: tuple[Mapping[str, object], ...] = ()
    tier: str = "truth"
    truth_reason: str | None = None
    skipped: tuple[Mapping[str, object], ...] = ()
    propensity: float | None = None
    judge_cost_msat: Decimal | None = Decimal(0)
    spared: tuple[Mapping[str, object], ...] = ()
    basis: Basis = attrs.field(default=attrs.Factory(_basis, takes_self=True))
    calibrated: bool = False
    raw: float | None = None
    adapted: Mapping[str, tuple[str, ...]] = attrs.field(factory=dict)


@frozen
class Head:
    """The newest row of a ledger: its number and its digest."""

    seq: int
    digest: str


@frozen
class Entry:
    """One row of a ledger: an event with its place in the chain."""

    seq: int
    event: Event
    prev: str
    digest: str


@frozen
class Query:
    """What to read from a ledger, oldest first; every condition that is given must hold.

    *until* is an inclusive ISO 8601 time; *after* is a sequence number; *limit* counts rows.
    """

    run_id: str | None = None
    types: tuple[str, ...] = ()
    subject_kind: str | None = None
    subject_id: str | None = None
    session_id: str | None = None
    until: str | None = None
    after: int = 0
    newest_first: bool = False
    limit: int | None = None


@frozen
class Verification:
    """What checking a whole ledger found: *bad_seq* is the first row that does not hold, with the *reason*."""

    events: int
    head: Head | None
    bad_seq: int | None = None
    reason: str | None = None

    @property
    def ok(self) -> bool:
        """True when every row holds."""
        return self.bad_seq is None


@frozen
class Cap:
    """A limit on spending: at most *limit* in *scope* (``run:ID``, ``session:ID`` or ``day:YYYY-MM-DD``)."""

    scope: str
    reason: str
    limit: Cost


@frozen
class Claim:
    """Room that is asked for: *event* is the ``spend.reserved`` to append if all *caps* hold."""

    event: Event
    caps: Sequence[Cap]


@frozen
class Refusal:
    """Why a reservation was not made. *wait* is True while other open reservations may still be released."""

    cap: Cap
    wait: bool


@frozen
class Lease:
    """Who carries out a run: *owner*, until the ISO 8601 time *until*, which the owner moves on while it lives.

    *token* grows by one with each owner; *over* says that the lease has ended by the ledger's clock, or was given back.
    """

    run_id: str
    token: int
    owner: str
    until: str
    over: bool = False


def sensitivity(payload: Mapping[str, Any]) -> str:
    """Return how an event with this *payload* is to be handled.

    It is ``user_controlled`` if it holds a rationale or a model's reply, because these may quote the judged text.
    """
    reply = payload.get("reply")
    if isinstance(reply, str):
        return "user_controlled"
    for held in (payload, *payload.get("scores", ()), *([reply] if isinstance(reply, dict) else ())):
        if "rationale_redacted" in (held.get("signals") or ()):
            return "user_controlled"
    return "pseudonymous"


@frozen
class Lookahead:
    """How long a turn waits for what its user does next: so many later *messages*, or so many *hours* without one."""

    messages: int = 0
    hours: float = 0.0


@frozen
class Sizes:
    """How many *subjects* of some *kinds* a source has (of any where these are empty), in how many *sessions*, and how many are in the *longest*.

    A subject without a session is one of its own.
    """

    kinds: tuple[str, ...]
    subjects: int
    sessions: int
    longest: int


def _not_known(label: str) -> None:
    return None


def _no_rows(query: Query) -> Iterator[Entry]:
    return iter(())


def _not_live(events: Sequence[TraceEvent], position: Mapping[str, object] | None = None) -> None:
    raise RuntimeError("trace events are recorded by a live source, while its subjects are read")


@frozen
class BatchLog:
    """Services of a run for chat models that collect calls and send them in batches.

    *record* appends an event of the types ``batch.*`` to the ledger: once it returns, the event survives a kill of the process. *cancel* says that the
    user wants the batches of the run cancelled, and no new one made. *cancelled* has a document ``{batch_id, model, endpoint}`` for each batch that was
    cancelled so, by its id; the run's summary lists them.
    """

    record: Callable[[str, Mapping[str, object]], None]
    cancel: bool = False
    cancelled: dict[str, Mapping[str, str]] = attrs.field(factory=dict)


@frozen
class RunContext:
    """What a component's ``open(run)`` is given: which run it serves, and whether it continues an earlier process's run.

    *read* gives the rows of the run's ledger, also those of earlier runs; a ledger itself has none to read yet. *lookahead*
    is the longest that one of the run's judges asks for. ``record(events, position)`` is for a live source while its subjects
    are read: it appends *events* to the ledger at once, and in the same transaction ``source.position`` with *position*.
    *concurrency* is how many subjects are judged at once. *continued* says of a sink that an earlier process of the run had one that wrote to the same ``path`` (or, without such an option,
    one with the same options): what it finds in its place is the run's own. *keeps_content* says whether the ledger stores what was judged;
    *ledger_path* is its file, None for one that is none. *pass_at* has for each metric, each judge and all metrics together the least score with which a subject passes.
    For an early stop, *shuffle* is the seed of the random order in which subjects come, ``sizes(label)`` says how many there are for a label to judge where
    they come so, *baseline* has the records that the run is compared with, and ``gate_at(label)`` is the line that the gate holds the label's mean against.
    *batches* is None where no chat model may collect calls: outside of ``dicast run``, and in watch mode.
    *trust* has the files of code that the user consented to run; None, under ``--yes``, stands for all. Ask ``trusts(file)``.
    """

    run_id: str
    name: str
    base: Path
    resumed: bool = False
    read: Callable[[Query], Iterator[Entry]] = _no_rows
    lookahead: Lookahead = Lookahead()
    record: Callable[..., None] = _not_live
    continued: bool = False
    concurrency: int = 1
    keeps_content: bool = True
    shuffle: int | None = None
    sizes: Callable[[str], Sizes | None] = _not_known
    baseline: Results | None = None
    gate_at: Callable[[str], float | None] = _not_known
    ledger_path: Path | None = None
    pass_at: Mapping[str, float] = attrs.field(factory=dict)
    trust: tuple[Path, ...] | None = ()
    batches: BatchLog | None = None

    def trusts(self, file: Path) -> bool:
        """Return whether the user consented to run the code of *file*: it is in the section ``trust``, or ``--yes`` was given."""
        return self.trust is None or os.path.realpath(file) in map(os.path.realpath, self.trust)
