"""Kinds of components. A component is a frozen attrs class whose fields are its options.

A component with a connection or state has ``open(run: RunContext) -> AsyncContextManager`` of the live object; the kernel enters and
leaves it once for each run. A method may be ``def`` (pure, quick work) or, if the annotation has ``Awaitable``, ``async def`` (work
that waits). The answer of a ``def`` can be awaited too, so the caller of a nested component always writes ``await``.

A component that reads files or other data outside its options has ``reads(base: Path) -> Mapping[str, Path | str]``. A path enters its
fingerprint by its content, a text by itself; *base* is the folder of the pipeline file. An option with ``metadata={"counts": False}`` is
not in the fingerprint. The page docs/how-to/plugins.md states which options these are.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, overload, runtime_checkable

from ..values import (
    ChatRequest,
    Claim,
    Cost,
    Due,
    Entry,
    Event,
    Failure,
    Head,
    Judgment,
    Query,
    Record,
    Refusal,
    Reply,
    Results,
    Score,
    Subject,
    Verdict,
    Verification,
)
from .has_open import HasOpen
from .plugin_errors import in_brackets, place_of

if TYPE_CHECKING:
    from ..values.raw_score import RawScore
    from ..values.sandbox import Execution, Program


T = TypeVar("T")

Classes = Sequence[Callable[..., T | HasOpen[T]]]
"""Result of a hook: classes of components of a kind, as in ``Classes[Sink]``. The kind's methods are in the class, or in the live object of its ``open``."""


@runtime_checkable
class Source(Protocol):
    """Source of subjects.

    docs/reference/authors.md lists the optional members of a source. The most frequent: ``kinds``, the subject kinds that it yields, and
    ``check() -> str``, which is called before the first subject is judged. It reads all input, raises :class:`~dicast.DataError` with every
    invalid line, and returns a digest of the data. After it, ``total`` may have the number of subjects, and ``no_output`` (a Problem) the
    reason why no subject has an output: the run is refused if it judges outputs and no task makes them. A source with ``live = True`` waits
    for future data: it yields a subject when it is due, and again if there is a reason. While it waits, verdicts are recorded. With
    ``pauses = True`` its end is not the end of the run: the next process continues the run.

    A record with a failure in the recording system is ``Due(subject, failure=Failure("source_error", message))``, whose subject has its kind, its
    id and the known parts. Scores of another tool are ``Due(subject, recorded=(RecordedScore(name, value),))``: they become verdicts
    with the label ``recorded/NAME``. A source that marks, drops or fails records has ``read_counts() -> ReadCounts``.
    """

    def subjects(self) -> Iterator[Subject | Due] | AsyncIterator[Subject | Due]:
        """Yield every subject once, always in the same order, without holding them all in memory."""
        ...


@runtime_checkable
class Task(Protocol):
    """Task that makes the judged output: a prompt to a chat model, a command, a call over HTTP.

    Optional members: ``estimate(subject) -> Cost``; ``security_level`` and ``determinism_level``, texts for every record; ``criteria``, the
    names of its responses, empty for a single response. A component that reads other criteria is refused with the file. A field of type
    ChatModel takes a model whose replies are paid for and kept for a resumed run, one by one.
    """

    def produce(self, subject: Subject) -> Awaitable[Subject | Failure]:
        """Return *subject* with its output; an :class:`~dicast.Answered` also has the responses by criterion."""
        ...


@runtime_checkable
class Extractor(Protocol):
    """Extractor of numbers from a record. ``writes`` lists the places under ``metrics`` that it writes to, as dotted paths.

    An option ``criteria`` (names) or ``criterion`` (a name) restricts it to these criteria of the task.
    """

    @property
    def writes(self) -> Sequence[str]:
        """The places that it writes to."""
        ...

    def extract(self, record: Record) -> Mapping[str, object] | Awaitable[Mapping[str, object]]:
        """Return the values to merge under the record's ``metrics``; keys are in snake case or names of criteria, and values are JSON."""
        ...


@runtime_checkable
class Aggregate(Protocol):
    """Summary of all records of a run. It has state, so ``open(run)`` returns the live object.

    An option ``criteria`` restricts it, or a comparison, to the scores of these criteria. The scores are under ``metrics.scores``, or under
    the option ``source_field``. A record of a subject with a weight other than 1 has it as ``weight``.
    """

    def add(self, record: Record) -> None:
        """Add one record, in the order of the source."""
        ...

    def finish(self) -> Mapping[str, object]:
        """Return the summary as JSON data; called once, at the end of the run."""
        ...


@runtime_checkable
class Comparison(Protocol):
    """Comparison of two runs."""

    def compare(self, baseline: Results, variant: Results) -> Mapping[str, object]:
        """Return the difference of *variant* from *baseline*, as JSON data."""
        ...


@runtime_checkable
class EarlyStop(Protocol):
    """Rule that ends a run when the evidence suffices. It has state, so ``open(run)`` returns the live object."""

    def observe(self, record: Record) -> Mapping[str, object] | None:
        """Add one record, in the order of the source; return the reason to stop the run as JSON data, or None."""
        ...


@runtime_checkable
class Metric(Protocol):
    """Metric of a subject. The class attribute ``tier`` is ``"proxy"`` (cheap, may gate) or ``"truth"``.

    A subject with neither an output nor trace events is a Failure ``missing_input``, and no metric is called for it. A metric that judges
    something else, such as the input, has ``needs_output = False``. A metric that reads the output alone has ``needs_output = "always"``:
    trace events do not replace an output. The same applies to judges.

    Optional members: ``estimate(subject) -> Cost``, the most that one call may cost; zero without it. The kernel reserves the cost of nested
    judges itself. If the estimate covers only these judges, for projections, the metric has ``estimates_judges = True``. A metric without costs
    may have ``score_batch(subjects) -> Sequence[Score | Failure]``, with an answer for each subject in order. It is called for all active
    subjects together. If it raises, or takes longer than one call may, ``score`` is called for each subject.
    """

    def score(self, subject: Subject) -> Awaitable[Score | RawScore | Failure]:
        """Return the score of *subject*. An exception becomes a Failure ``crashed``; a score is never invented. A RawScore is on another scale."""
        ...


@runtime_checkable
class Preset(Protocol):
    """Name for several metrics, each with its own label, gate and cost."""

    def metrics(self) -> Sequence[str | Mapping[str, object]]:
        """Return the metrics in the form of a pipeline file; an option that takes a component may have the component itself."""
        ...


@runtime_checkable
class Judge(Protocol):
    """Judge with its own verdict. The class attribute ``accepts`` lists the subject kinds that it judges; empty means any.

    Optional members: ``estimate(subject) -> Cost``; ``lookahead_messages`` and ``lookahead_hours``, the time that a turn waits for its user's
    next messages if it is judged during the session; ``fallback``, the judge for calls that a cap forbids; ``judge_kind``, and
    ``rubric_for(kind) -> Rubric``, the rubric that it is going to use. A judge is accepted wherever a metric is expected, as a truth metric. A
    field of this type takes another judge: the kernel reserves and settles the cost of that judge, and a cap gives a Failure with a
    ``throttled_reason``.
    """

    def judge(self, subject: Subject, children: Sequence[Verdict] = ()) -> Awaitable[Judgment | Failure]:
        """Return the judgment of *subject*; *children* are the newest verdicts on the subjects inside it, in their order."""
        ...


@runtime_checkable
class ChatModel(Protocol):
    """Model that replies to a conversation. A component that calls a model has a field of this type.

    Optional members: ``estimate(request) -> Cost``, the most that one call may cost; the kernel adds up the costs of replies, so that the
    caller need not. ``identity() -> Mapping``, the options that decide a reply, as JSON data without secrets, for components that keep
    replies. An exception becomes a Failure ``judge_call_failed``, except :class:`~dicast.AccessRefused`, which ends the run and has the cost
    of earlier tries. A model with a :class:`~dicast.toolkit.rate_limit.RateLimiter` reports the cost of a failed try to it at once.
    """

    def complete(self, request: ChatRequest) -> Awaitable[Reply | Failure]:
        """Return the reply to *request*, or a failure with its cost: ``judge_call_failed``, ``timeout`` or ``refused``."""
        ...


@runtime_checkable
class Sink(Protocol):
    """Receiver of a run's events. The class attribute ``wants`` lists the event types that it receives; empty means all.

    With ``rewrites = True`` each process writes the sink's output anew, so a resumed run sends all events again.
    """

    def write(self, events: Sequence[Event]) -> int | Awaitable[int | None] | None:
        """Write *events*, in order; return the number of written records (None: one for each event).

        An exception means that these events were not written: the kernel tries again, then counts them as lost.
        """
        ...

    def close(self) -> int | Awaitable[int | None] | None:
        """Finish the output. It may be called repeatedly; a further call has no effect. Returns as :meth:`write` does."""
        ...


@runtime_checkable
class Ledger(Protocol):
    """Append-only, hash-chained record of events and spending, over all runs and processes.

    ``append`` and ``reserve`` may be ``async def`` if the class of the component has ``is_async_ledger = True``: dicast opens such a ledger in a
    thread with an event loop, and a run awaits its answers there.
    """

    def append(self, events: Sequence[Event]) -> Head:
        """Append *events* in one transaction, computing the digests inside it, and return the new head.

        ``spend.*`` events also move the amounts that :meth:`reserve` reads.

        :raises LedgerError: if no event was appended.
        """
        ...

    def read(self, query: Query) -> Iterator[Entry]:
        """Yield the rows that match *query*."""
        ...

    def head(self) -> Head | None:
        """Return the newest row, or None for an empty ledger."""
        ...

    def verify(self, head: str | None = None) -> Verification:
        """Check the whole chain; with *head*, also that there is a row with this digest."""
        ...

    def reserve(
        self, claims: Sequence[Claim], lost: Callable[[Entry], Event], before: Sequence[Event] = ()
    ) -> Sequence[Refusal | None]:
        """Append *before*, close reservations whose lease is over, and decide each claim by its caps, in one transaction.

        A cap is exceeded if the settled, lost and reserved amounts in its scope and the claim's amount together are more than its limit, each
        in the limit's unit. The claims are decided in order, and earlier granted claims count. The result has None for a granted claim, whose
        event is appended, and the first exceeded cap for a refused claim. *lost* makes the ``spend.lost`` event for a reservation (its
        ``spend.reserved`` entry) that ran out. A run passes a :class:`~dicast.Lost`, which another process can apply.

        :raises LedgerError: if no event was appended.
        """
        ...

    def reservations(self, run_id: str | None) -> Sequence[Entry]:
        """Return the ``spend.reserved`` entries of *run_id*, or of all runs, that were neither settled, released nor lost."""
        ...


@runtime_checkable
class Executor(Protocol):
    """Execution of a run's work."""

    @property
    def concurrency(self) -> int:
        """Maximum number of subjects that are judged at the same time. The component's value counts, also if it has ``open``."""
        ...


def splits_runs(executor: object) -> bool:
    """Return True if *executor*, a component, has ``shard``: it divides the subjects of a run into shards, and its ``run`` has them judged elsewhere."""
    return hasattr(executor, "shard")


@runtime_checkable
class Sandbox(Protocol):
    """Sandbox for untrusted programs. A component that runs a program has a field of this type.

    Optional member: ``check()``, which raises :class:`~dicast.ConfigError` with a fix if the sandbox does not work on this system. The
    component that has the sandbox calls it once its options are known. Equal sandboxes of a run share one live object, and so one pool.
    """

    def execute(self, program: Program) -> Awaitable[Execution | Failure]:
        """Run *program* to its end, without leftovers; return a Failure if it could not be started."""
        ...


class WrongEstimate(TypeError):
    """An estimate that is no cost."""


@overload
def estimate(component: Metric | Judge, request: Subject) -> Cost: ...
@overload
def estimate(component: ChatModel, request: ChatRequest) -> Cost: ...
def estimate(component: object, request: object) -> Cost:
    """Return the most that a call of *component* may cost; zero if *component* has no estimate.

    :raises WrongEstimate: with the line of the method, if its answer is no cost.
    """
    method: Callable[[object], object] | None = getattr(component, "estimate", None)
    cost = Cost.zero() if method is None else method(request)
    if not isinstance(cost, Cost):
        raise WrongEstimate(f"estimate must return a dicast.Cost, not {cost!r:.100}{in_brackets(place_of(method))}")
    return cost


def member(live: object, component: object, name: str, default: Any = None) -> Any:
    """Return the optional member *name* of the *live* object, or else of the *component* that it was opened from."""
    return getattr(live, name, getattr(component, name, default))
