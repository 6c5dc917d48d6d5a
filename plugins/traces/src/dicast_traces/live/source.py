"""A trace that is followed as a source of subjects."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, asynccontextmanager, suppress
from pathlib import Path

import attrs

from dicast import ConfigError, Due, ReadCounts, RunContext
from dicast.optional import HasReceiver
from dicast.toolkit.listening import ListenAddress
from dicast.toolkit.reception import ReceivedSession, Reception
from dicast.toolkit.scan import Scan
from dicast.toolkit.sessions import Kind

from ..events import STDIN
from ..messages import Layout
from .following import Following
from .intake import Intake
from .lines import Line
from .listening import Listener, Post, Status
from .names import Names
from .piping import Piped
from .receiving import Receiving
from .status import Console, Snapshot
from .tail import CHUNK
from .windows import GRACE

ROOM = 2000
"""Number of subjects waiting for a judge at which reading of the input pauses."""

TOGETHER_SECONDS = 0.1
"""Seconds for which the input of a running watch is collected, because each reading of it ends with a transaction."""

STATUS_SECONDS = 5.0
"""Seconds that a request for the status waits for its answer."""


@attrs.frozen
class Watching:
    """The options of a watch. It is a source that yields due subjects.

    :param path: a file, a directory, or ``-`` for standard input.
    :param kinds: the kinds of subjects to judge.
    :param once: read the present input, judge the due subjects, and end; the next process continues there.
    :param poll: seconds between two checks of the files.
    :param conversations: the layout of the lines if each is a whole conversation; None if each is one event.
    :param listen: the address that takes events over HTTP, with the *token* that a request must bear.
    :param receiver: a source that receives sessions at the address *listen*, in place of the path.
    :param scan: search for secrets in the input; a receiver of spans searches by itself.
    """

    path: Path
    kinds: tuple[Kind, ...]
    max_line_bytes: int
    once: bool = False
    poll: float = 0.1
    listen: ListenAddress | None = None
    token: str = attrs.field(default="", repr=False)
    console: Console = attrs.field(factory=Console, eq=False, repr=False)
    conversations: Layout | None = None
    receiver: HasReceiver | None = None
    scan: Scan = "off"

    @asynccontextmanager
    async def open(self, run: RunContext) -> AsyncIterator[Watch]:
        """Yield the live source. The files and the server are closed at the end.

        :raises ConfigError: if the address cannot be used.
        """
        with ExitStack() as stack:
            watch = Watch(self, run, stack)
            try:
                yield watch
            finally:
                await watch.close()

    def subjects(self) -> AsyncIterator[Due]:
        """Fail: a watch belongs to a run, which opens it."""
        raise RuntimeError("a watch yields its subjects once a run has opened it")


class Watch:
    """A trace that is followed: :meth:`subjects` waits for due subjects."""

    live = True

    def __init__(self, options: Watching, run: RunContext, stack: ExitStack) -> None:
        self.kinds = options.kinds
        self.pauses = options.once and options.path != STDIN  # a pipe ends by itself
        self._options, self._resumed = options, run.resumed
        self._received: Receiving | None = None
        self._queue: asyncio.Queue[Due | None] = asyncio.Queue()
        self._posts: deque[Post] = deque()
        self._woken = asyncio.Event()
        self._ended = False
        self._loop = asyncio.get_running_loop()
        self._following: asyncio.Task[None] | None = None
        names = stack.enter_context(Names())
        receives = options.receiver is not None
        self.intake = Intake(
            run, options.kinds, options.console, names, self._queue.put_nowait, options.conversations, receives=receives,
            scan=options.scan,
        )  # fmt: skip
        most = options.max_line_bytes
        self._input: Following | Piped | Receiving
        if options.receiver is not None:
            self._input = self._received = self._receiving(options.receiver, run, stack)
            return
        if options.path == STDIN:
            self._input = stack.enter_context(Piped(most, self._woken.set))
        else:
            self._input = stack.enter_context(Following(options.path, most))
        if options.listen is not None:
            listener = stack.enter_context(Listener(options.listen, options.token, most, self._take, self._ask))
            options.console.say(f"listening on {listener.url}/events")

    def _receiving(self, receiver: HasReceiver, run: RunContext, stack: ExitStack) -> Receiving:
        """Open the receiver. Its data are in a file of the run, next to the ledger."""
        if run.ledger_path is None:
            raise ConfigError(
                "a receiver keeps its data next to the ledger, but this ledger has no file: use ledger/sqlite"
            )
        spool = run.ledger_path.with_name(f"otlp-{run.run_id}.db")
        address = None if self._options.once else self._options.listen
        reception = Reception(address, spool, self.intake.growth.name_call, self._options.console.say, self._wake)
        return Receiving(stack.enter_context(receiver.receiving(reception)))

    async def subjects(self) -> AsyncIterator[Due]:
        """Yield each subject when it is due.

        :raises LedgerError: if events could not be recorded.
        """
        following = self._following = asyncio.create_task(self._follow())
        following.add_done_callback(lambda _: self._queue.put_nowait(None))
        while (due := await self._queue.get()) is not None:
            yield due
        await following

    def read_counts(self) -> ReadCounts:
        """Return the counts of the records so far."""
        return self.intake.read_counts()

    async def close(self) -> None:
        """Stop reading the input, and answer the waiting requests."""
        if self._following is not None:
            self._following.cancel()
            await asyncio.gather(self._following, return_exceptions=True)  # its errors were raised by subjects()
        self._ended = True
        self._refuse_posts()

    async def _follow(self) -> None:
        intake, options = self.intake, self._options
        piped = options.path == STDIN
        once = self.pauses
        intake.windows.backfilling = not piped and self._received is None
        if self._resumed:
            self._input.restore(intake.rebuild())
        while True:
            began = time.monotonic()
            full = self._queue.qsize() >= ROOM
            lines = () if full else self._input.read(CHUNK)
            cost = time.monotonic() - began
            sessions = () if full or self._received is None else self._received.sessions(time.time())
            caught_up = not (lines or sessions or full or self._input.is_behind)
            if caught_up and once:
                lines = self._input.rest()
            if caught_up and intake.windows.backfilling and not lines:
                intake.windows.caught_up()
            self._step(lines, time.time(), sessions)
            options.console.show(self._snapshot)
            if caught_up and not lines and (self._input.is_at_end or once):
                break
            is_busy = sessions or self._input.is_behind or (lines and (once or intake.windows.backfilling))
            await (asyncio.sleep(0) if is_busy else self._wait(cost))
        if self._input.is_at_end:
            intake.close(time.time())
        else:
            self._step((), time.time() + GRACE)

    def _step(self, lines: Sequence[Line], now: float, sessions: Sequence[ReceivedSession] = ()) -> None:
        posts = [self._posts.popleft() for _ in range(len(self._posts))]
        try:
            self.intake.step(lines, posts, self._input.positions(), now, sessions)
        except BaseException:
            self._posts.extend(post for post in posts if not post.answer.done())  # they are answered at the end
            raise
        if self._received is not None and sessions:
            self._received.settle()

    async def _wait(self, cost: float) -> None:
        """Wait until there may be new input. The longer a check of the files takes, the rarer the checks are."""
        together = min(self._options.poll, TOGETHER_SECONDS)
        seconds = max(self._options.poll, 20 * cost)
        received = None if self._received is None else self._received.deadline()
        for deadline in (self.intake.windows.deadline(), received):
            if deadline is not None:
                seconds = min(seconds, max(together, deadline - time.time()))
        began = time.monotonic()
        await self._until_woken(seconds)
        while not self._posts and (rest := began + together - time.monotonic()) > 0:  # a request waits for its answer
            await self._until_woken(rest)

    async def _until_woken(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._woken.wait()
        self._woken.clear()

    def _take(self, post: Post) -> None:
        """Pass a request to the event loop; called in the server's threads."""
        self._loop.call_soon_threadsafe(self._came, post)

    def _came(self, post: Post) -> None:
        self._posts.append(post)
        self._woken.set()
        if self._ended:
            self._refuse_posts()

    def _ask(self) -> Status:
        """Return the status, for the server's threads."""
        answer: Future[Status] = Future()
        self._loop.call_soon_threadsafe(lambda: answer.set_result(attrs.asdict(self._snapshot())))
        return answer.result(STATUS_SECONDS)

    def _snapshot(self) -> Snapshot:
        return self.intake.snapshot(self._input.unread, time.time())

    def _wake(self) -> None:
        """Wake the watch, from any thread."""
        self._loop.call_soon_threadsafe(self._woken.set)

    def _refuse_posts(self) -> None:
        while self._posts:
            self._posts.popleft().answer.set_exception(RuntimeError("the watch has ended"))
