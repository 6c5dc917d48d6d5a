"""Events of a run, rows of the ledger, and the context of a component."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import attrs

from ..classes import define, frozen
from ..events import SPEND_LOST
from .basis import Basis, basis_of
from .clock import derived_id
from .record import Results
from .score import Cost
from .subject import TraceEvent


@define
class EventFields:
    """Fields of :class:`Event` while they are writable."""

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
    """Event of a run.

    *id* is a monotonic ULID; *time* is ISO 8601 UTC with milliseconds; *sensitivity* is ``pseudonymous`` or
    ``user_controlled``; *payload* is JSON-serializable.

    :param type: the type, from the page of events.
    :param run_id: the run.
    :param session_id: the session, if the event is about one.
    :param turn_id: the turn, if the event is about one.
    :param subject_kind: the kind of the subject, if the event is about one.
    :param subject_id: its id.
    """

    @classmethod
    def of(cls, *fields: Any) -> Event:
        """Return an event of these *fields*, in a third of the time of the class: attrs sets the fields of a frozen object one by one."""
        event: Any = EventFields(*fields)
        event.__class__ = cls
        result: Event = event
        return result


def _basis(verdict: Verdict) -> Basis:
    return basis_of(verdict.judge_kind, verdict.tier, verdict.judge_model)


@frozen
class Verdict:
    """Judgment of a subject with its provenance: the payload of ``eval.completed``.

    *scores* has a mapping for each metric and rollout: ``{metric, value, confidence, tier, weight, rollout, details, cost,
    signals}``, and ``feedback`` if the metric gave some. *tier* is ``truth`` if a truth metric or a judge entered the
    score. *truth_reason* is ``gate`` if the truth metrics ran because every proxy passed, ``audit`` if they ran to measure
    the gate (then with weight 0), otherwise None. *propensity* is the probability with which the truth metrics ran.
    *spared* has ``{metric, runs, amount, unit}`` for each truth metric that the gate prevented: the number of rollouts, and their cost
    by the metric's estimate. *fingerprint* digests everything that could change the number.
    Amounts are None if unknown. *basis* is the basis of the score, one of :data:`BASES`; for a ledger without it, it follows from
    *judge_kind* and *tier*. *calibrated* is whether a model was measured against labels. If the label's values are on a scale
    of their own, *score* is None and *raw* is the value; both are None if the proxies held the subject back. *adapted* are the parameters
    that endpoints refused and that were left out or translated, by the label of the calling component.

    :param eval_id: the id of the evaluation.
    :param subject_kind: the kind of the subject.
    :param subject_id: its id.
    :param confidence: from 0 to 1.
    :param judge_model: the model that answered; None without a model.
    :param judge_cost_usd: the cost in usd; None if unknown.
    :param judge_cost_msat: the cost in thousandths of a satoshi; None if unknown.
    :param judge_pricing_version: the price list of the cost, or None.
    :param judge_latency_ms: the duration in whole milliseconds.
    :param rubric_id: the rubric.
    :param rubric_version: its version.
    :param signals: the evidence, as JSON data.
    :param parent_eval_id: the verdict on the subject's parent, or None.
    :param created_at: the time, ISO 8601 UTC.
    :param run_id: the run.
    :param judge: the label.
    :param skipped: the metrics that did not run, each with its reason.
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
    """The newest row of a ledger: its number and its digest.

    :param seq: the number of the row, from 1.
    :param digest: 64 hexadecimal digits.
    """

    seq: int
    digest: str


class Position(NamedTuple):
    """Place of a row of a ledger. *seq* is unique in the ledger, and grows within a shard of a run; shards may record at the same time."""

    run_id: str
    shard: int
    seq: int


@frozen
class Entry:
    """A row of a ledger: an event with its place in the chain.

    :param seq: the number of the row, from 1.
    :param event: the event.
    :param prev: the digest of the row before it; 64 zeros for the first row. Empty if the chain of the ledger is not over events.
    :param digest: the digest of this row, 64 hexadecimal digits, or empty.
    :param shard: the part of the run that recorded the event, from 0.
    """

    seq: int
    event: Event
    prev: str
    digest: str
    shard: int = 0

    @property
    def position(self) -> Position:
        """The place of the row in its run."""
        return Position(self.event.run_id, self.shard, self.seq)


@frozen
class Query:
    """Selection of rows of a ledger, oldest first; every given condition must hold.

    *until* is an inclusive ISO 8601 time; *after* is a sequence number; *limit* counts rows.

    :param run_id: the run.
    :param types: the types of the events; all if empty.
    :param subject_kind: the kind of the subject.
    :param subject_id: its id.
    :param session_id: the session.
    :param newest_first: the newest row first.
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
    """Result of the check of a whole ledger: *bad_seq* is the first invalid row, with the *reason*. *absent* is the number of rows whose content was
    erased or never stored.

    :param events: the number of rows.
    :param head: the newest row, or None.
    """

    events: int
    head: Head | None
    bad_seq: int | None = None
    reason: str | None = None
    absent: int = 0

    @property
    def ok(self) -> bool:
        """True if every row is valid."""
        return self.bad_seq is None


@frozen
class Cap:
    """A limit on spending: at most *limit* in *scope* (``run:ID``, ``session:ID`` or ``day:YYYY-MM-DD``).

    :param reason: the name of the cap, such as ``run_cap``.
    """

    scope: str
    reason: str
    limit: Cost


@frozen
class Claim:
    """A request for money under *caps*: *event* is the ``spend.reserved`` to append if all caps allow it."""

    event: Event
    caps: Sequence[Cap]


@frozen
class Lost:
    """Rule for reservations that ran out: their amounts count as spent. It is data, so that a ledger can apply it in another process.

    A call with the entry of a ``spend.reserved`` event returns the ``spend.lost`` event. The event is the same in every process.

    :param id: a new ULID, of which the new event has the time.
    :param time: the time of the new event.
    """

    id: str
    time: str

    def __call__(self, entry: Entry) -> Event:
        """Return the ``spend.lost`` event for the reservation made at *entry*."""
        reserved = entry.event
        payload = {key: reserved.payload[key] for key in ("reservation_id", "amount", "unit")}
        id_ = derived_id(self.id, f"{self.id} {reserved.payload['reservation_id']}")
        return Event(id_, SPEND_LOST, self.time, reserved.run_id, payload, session_id=reserved.session_id)


@frozen
class Refusal:
    """Reason why a reservation was not made. *wait* is True while other open reservations may still be released.

    :param cap: the cap that forbids the reservation.
    :param spent: the amount that all runs in the ledger spent in the cap's scope, with *wait* also the reserved amount; None if the ledger does
        not state it. Equal refusals may differ in it.
    """

    cap: Cap
    wait: bool
    spent: Cost | None = attrs.field(default=None, eq=False)


@frozen
class Lease:
    """Right of a process to carry out a run: *owner* has it until the ISO 8601 time *until*, and renews it while it is alive.

    *token* grows by one with each owner; *over* is whether the lease has ended by the ledger's clock, or was returned.

    :param run_id: the run.
    """

    run_id: str
    token: int
    owner: str
    until: str
    over: bool = False


def sensitivity(payload: Mapping[str, Any]) -> str:
    """Return the sensitivity of an event with this *payload*.

    It is ``user_controlled`` if it holds a rationale or a model's reply, because these may quote the judged text.
    """
    reply = payload.get("reply")
    if isinstance(reply, str):
        return "user_controlled"
    for part in (payload, *payload.get("scores", ()), *([reply] if isinstance(reply, dict) else ())):
        if "rationale_redacted" in (part.get("signals") or ()):
            return "user_controlled"
    return "pseudonymous"


@frozen
class Lookahead:
    """Time that a turn waits for its user's next messages: until a number of later *messages*, or for *hours* without a message."""

    messages: int = 0
    hours: float = 0.0


@frozen
class Sizes:
    """Number of *subjects* of some *kinds* in a source (of any kind if empty), of *sessions*, and of subjects in the *longest* session.

    A subject without a session is a session of its own.
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

    *record* appends an event of the types ``batch.*`` to the ledger; after it returns, the event survives a kill of the process. *cancel* is
    whether the user wants the batches of the run cancelled, and no new batches. *cancelled* has a document ``{batch_id, model, endpoint}`` for each
    cancelled batch, by its id; the run's summary lists them.
    """

    record: Callable[[str, Mapping[str, object]], None]
    cancel: bool = False
    cancelled: dict[str, Mapping[str, str]] = attrs.field(factory=dict)


@frozen
class RunContext:
    """Context of a component's ``open(run)``: the run, and the services of the kernel.

    *read* yields the rows of the run's ledger, earlier runs included; a ledger itself has no rows to read yet. *lookahead*
    is the longest lookahead of the run's judges. ``record(events, position)`` is for a live source while its subjects
    are read: it appends *events* to the ledger at once, and ``source.position`` with *position* in the same transaction.
    *concurrency* is the number of subjects that are judged at the same time. *continued* is, for a sink, whether an earlier process of the run had a sink
    with the same ``path`` (or, without such an option, with the same options): existing output there is the run's own. *keeps_content* is whether
    the ledger stores the judged content. *ledger_path* is its file, None for a ledger without a file. *pass_at* has for each metric, each judge and
    all metrics together the least score with which a subject passes.
    For an early stop, *shuffle* is the seed of the random order of subjects, ``sizes(label)`` returns the number of subjects that the label judges in this
    order, *baseline* has the records that the run is compared with, and ``gate_at(label)`` returns the gate's line for the label's mean.
    *batches* is None if no chat model may collect calls: outside of ``dicast run``, and in watch mode.
    *trust* has the files of code that the user consented to run; None, under ``--yes``, is all files. Call ``trusts(file)``.

    :param run_id: the id of the run.
    :param name: the name of the pipeline.
    :param base: the folder of the pipeline file; relative paths begin there.
    :param resumed: whether the run continues the run of an earlier process.
    :param live: whether subjects arrive while they are judged, as in ``dicast watch``.
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
    live: bool = False

    def trusts(self, file: Path) -> bool:
        """Return whether the user consented to run the code of *file*: it is in the section ``trust``, or ``--yes`` was given."""
        return self.trust is None or os.path.realpath(file) in map(os.path.realpath, self.trust)
