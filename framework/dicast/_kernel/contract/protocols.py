"""The kinds of component. Each is a frozen attrs class whose fields are its options.

A component that needs a connection or state offers ``open(run: RunContext) -> AsyncContextManager`` of the live object; the
runner enters and leaves it once a run. Methods may be ``def`` (pure, quick work) or ``async def`` (anything that waits)
where the annotation says ``Awaitable``.

One that reads files, or anything else, from outside its options offers ``reads(base: Path) -> Mapping[str, Path | str]``: a path enters
its fingerprint by the content, a text as it is; *base* is the pipeline file's folder. ``metadata={"counts": False}`` leaves an option
out of the fingerprint. The page docs/how-to/plugins.md says which.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, overload, runtime_checkable

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

if TYPE_CHECKING:
    from ..values.raw_score import RawScore
    from ..values.sandbox import Execution, Program


@runtime_checkable
class Source(Protocol):
    """Where subjects come from.

    docs/reference/members.md lists all that a source may have beside :meth:`subjects`. The most used: ``kinds``, the subject kinds it yields, and
    ``check() -> str``, called before anything is judged:
    it reads all input, raises :class:`~dicast.DataError` naming every bad line, and returns a digest of the data; after it,
    ``total`` may say how many subjects there are, and ``no_output`` (a Problem) why none of them has an output: where outputs
    are judged and no task makes them, the run is then refused. A source with ``live = True`` waits for what is still to happen: it yields
    a subject when it is due, and again when there is reason to; while it waits, what was judged is recorded. With ``pauses = True``
    its end is not the run's: the next process takes the run up.

    A record that failed where it was recorded is ``Due(subject, failure=Failure("source_error", message))``: the subject has its kind, its id
    and what is known of it. A source that marks, drops or fails anything says so in ``read_counts() -> ReadCounts``.
    """

    def subjects(self) -> Iterator[Subject | Due] | AsyncIterator[Subject | Due]:
        """Yield every subject once, always in the same order, without holding them all in memory."""
        ...


@runtime_checkable
class Task(Protocol):
    """Makes the output that is judged: a prompt to a chat model, a command, a call over HTTP.

    It may also have ``estimate(subject) -> Cost``; ``security_level`` and ``determinism_level``, texts that every record carries;
    ``criteria``, the names of its responses, empty where it has a single one: what reads others is then refused with the file. A
    field of type ChatModel takes a model whose replies are paid for, and kept for a resumed run, one by one.
    """

    def produce(self, subject: Subject) -> Subject | Failure | Awaitable[Subject | Failure]:
        """Return *subject* with its output; an :class:`~dicast.Answered` also has the responses by criterion."""
        ...


@runtime_checkable
class Extractor(Protocol):
    """Reads numbers out of a record. ``writes`` lists the places under ``metrics`` that it writes to, as dotted paths.

    An option ``criteria`` (names) or ``criterion`` (one of them) says which of the task's it reads alone.
    """

    writes: Sequence[str]

    def extract(self, record: Record) -> Mapping[str, object] | Awaitable[Mapping[str, object]]:
        """What is merged under the record's ``metrics``; keys are in snake case, or names of criteria, and values are JSON."""
        ...


@runtime_checkable
class Aggregate(Protocol):
    """Makes one thing of all records of a run. What it has seen is state, so ``open(run)`` gives the live object.

    An option ``criteria`` names the scores that it is about alone; so with a comparison. They are under ``metrics.scores``, or where
    an option ``source_field`` says.
    """

    def add(self, record: Record) -> None:
        """Take one record, in the order of the source."""
        ...

    def finish(self) -> Mapping[str, object]:
        """What it comes to, as JSON data; called once, at the end of the run."""
        ...


@runtime_checkable
class Comparison(Protocol):
    """Compares two runs."""

    def compare(self, baseline: Results, variant: Results) -> Mapping[str, object]:
        """What *variant* has over *baseline*, as JSON data."""
        ...


@runtime_checkable
class EarlyStop(Protocol):
    """Says when enough is known. What it has seen is state, so ``open(run)`` gives the live object."""

    def observe(self, record: Record) -> Mapping[str, object] | None:
        """Take one record, in the order of the source; why the run is to stop, as JSON data, or None."""
        ...


@runtime_checkable
class Metric(Protocol):
    """Scores a subject. The class attribute ``tier`` is ``"proxy"`` (cheap, may gate) or ``"truth"``.

    A subject with neither an output nor trace events is a Failure ``missing_input``, and nobody is asked about it; a metric that
    judges something else, its input perhaps, has ``needs_output = False``. One that reads nothing but the output has
    ``needs_output = "always"``: trace events do not stand in for it. So with judges.

    A metric may also have ``estimate(subject) -> Cost``: what one call may cost at most; without it, nothing. The kernel reserves for judges
    inside by itself. If the estimate is about them alone, for projections, the metric has ``estimates_judges = True``. A metric that
    costs nothing may have ``score_batch(subjects) -> Sequence[Score | Failure]``, an answer for each in their order: it is asked
    about the subjects that are under way at the same time together. When it raises, or takes longer than one call may,
    each of them is asked about alone, with ``score``.
    """

    def score(self, subject: Subject) -> Score | RawScore | Failure | Awaitable[Score | RawScore | Failure]:
        """Judge *subject*. Whatever it raises becomes a Failure ``crashed``; a score is never made up. A RawScore is on another scale."""
        ...


@runtime_checkable
class Preset(Protocol):
    """Stands for several metrics, each of which has a label, a gate and a cost of its own."""

    def metrics(self) -> Sequence[str | Mapping[str, object]]:
        """The metrics, written as in the pipeline file; an option that takes a component may be given the component itself."""
        ...


@runtime_checkable
class Judge(Protocol):
    """Makes a verdict of its own. The class attribute ``accepts`` lists the subject kinds it judges; empty means any.

    A judge may also have ``estimate(subject) -> Cost``; ``lookahead_messages`` and ``lookahead_hours``, how long a turn is to
    wait for what its user does next, where it is judged while the session goes on; ``fallback``, a judge that is asked in its place when a cap leaves no
    room for it; ``judge_kind``, and ``rubric_for(kind) -> Rubric``, by which it is going to judge. It may stand wherever a metric is expected, as a truth metric. A field of this type takes another judge:
    the kernel reserves and settles what that one costs by itself, and a cap gives a Failure with a ``throttled_reason``.
    """

    def judge(
        self, subject: Subject, children: Sequence[Verdict]
    ) -> Judgment | Failure | Awaitable[Judgment | Failure]:
        """Judge *subject*; *children* are the newest verdicts on the subjects it is made of, in their order."""
        ...


@runtime_checkable
class ChatModel(Protocol):
    """Answers a conversation. A component that asks one has a field of this type.

    A chat model may also have ``estimate(request) -> Cost``, what one call may cost at most. The kernel
    adds up what the replies cost, so that whoever asks need not. ``identity() -> Mapping`` says, as JSON data without secrets,
    what of it decides a reply: for those that keep replies. What it raises becomes a Failure ``judge_call_failed``,
    except :class:`~dicast.AccessRefused`, which ends the run and says what tries before it did cost. One that has a
    :class:`~dicast.toolkit.rate_limit.RateLimiter` passes on at once what a try of no use did cost.
    """

    def complete(self, request: ChatRequest) -> Reply | Failure | Awaitable[Reply | Failure]:
        """Answer *request*, or say why not: ``judge_call_failed``, ``timeout`` or ``refused``, with what it cost."""
        ...


@runtime_checkable
class Sink(Protocol):
    """Receives a run's events. The class attribute ``wants`` lists the event types it receives; empty means all.

    ``rewrites = True`` says that the sink's output is made anew each time, so that a resumed run sends it everything again.
    """

    def write(self, events: Sequence[Event]) -> int | None:
        """Take *events*, in order; return how many records were written (None: one an event).

        Raising means that these events were not taken: the kernel tries again, then counts them as lost.
        """
        ...

    def close(self) -> int | None:
        """Finish the output. Called once or more; the second time does nothing. Returns like :meth:`write`."""
        ...


@runtime_checkable
class Ledger(Protocol):
    """The append-only, hash-chained record of events, and of what was spent, over all runs and processes."""

    def append(self, events: Sequence[Event]) -> Head:
        """Append *events* in one transaction, computing the digests inside it.

        ``spend.*`` events also move the amounts that :meth:`reserve` reads.

        :raises LedgerError: when nothing was appended.
        """
        ...

    def read(self, query: Query) -> Iterator[Entry]:
        """Yield the rows that match *query*."""
        ...

    def head(self) -> Head | None:
        """The newest row, or None in an empty ledger."""
        ...

    def verify(self, head: str | None = None) -> Verification:
        """Check the whole chain; with *head*, also that a row with this digest is there."""
        ...

    def reserve(
        self, claims: Sequence[Claim], lost: Callable[[Entry], Event], before: Sequence[Event] = ()
    ) -> Sequence[Refusal | None]:
        """In one transaction: append *before*, close reservations whose lease is over, and grant each claim whose caps all hold.

        A cap is exceeded when what was settled or lost in its scope, what is reserved, and the claim's amount are together
        more than its limit, each in the limit's unit. Each claim is decided in its turn, with those before it counted: if
        it is granted its event is appended, and there is None in its place; else its first exceeded cap. *lost* makes the
        ``spend.lost`` event for a reservation (its ``spend.reserved`` entry) that ran out.

        :raises LedgerError: when nothing was appended.
        """
        ...

    def reservations(self, run_id: str | None) -> Sequence[Entry]:
        """The ``spend.reserved`` entries of *run_id*, or of all runs, that were neither settled, released nor lost."""
        ...


@runtime_checkable
class Executor(Protocol):
    """How a run's work is carried out."""

    concurrency: int
    """How many subjects are judged at the same time, at most."""


@runtime_checkable
class Sandbox(Protocol):
    """Runs programs that nobody trusts. A component that runs one has a field of this type.

    A sandbox may also have ``check()``, which raises :class:`~dicast.ConfigError` where it does not work here, and says what to
    do about it: it is for whoever is given one to call, once the options are known. Equal sandboxes of a run share one live
    object, so one pool.
    """

    async def execute(self, program: Program) -> Execution | Failure:
        """Run *program* to its end, of which nothing is left; a Failure when it could not be started."""
        ...


@overload
def estimate(component: Metric | Judge, asked: Subject) -> Cost: ...
@overload
def estimate(component: ChatModel, asked: ChatRequest) -> Cost: ...
def estimate(component: object, asked: object) -> Cost:
    """Return the most that a call of *component* may cost; zero if *component* has no estimate."""
    method: Callable[[object], Cost] | None = getattr(component, "estimate", None)
    return Cost.zero() if method is None else method(asked)


def member(live: object, component: object, name: str, default: Any = None) -> Any:
    """Return the optional member *name* of the *live* object, or else of the *component* that it was opened from."""
    return getattr(live, name, getattr(component, name, default))
