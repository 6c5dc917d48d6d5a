"""Programs that run in a sandbox, their limits and results."""

from __future__ import annotations

from collections.abc import Mapping

from ..classes import field, frozen
from .answer import ReadyAnswer


@frozen
class Limits:
    """Limits of a sandboxed program.

    *wall* and *cpu* are seconds, *cpu* for all its processes together. *cpus* is the number of CPUs that it may use at once. *memory*,
    *file_size*, *disk* and *output* are bytes: of all its processes together, of one file, of all files, and of its stdout and stderr.
    *processes* counts threads too.
    """

    wall: float
    cpu: float
    cpus: int
    memory: int
    processes: int
    file_size: int
    disk: int
    output: int


@frozen
class Program:
    """A *command* to run in an empty workspace, its current directory, under *limits*.

    *archive* is a tar that is unpacked there first. *files* are written over it; their names are relative. *environment* is added
    to PATH, HOME and similar variables. *collect* names an output file of the program to return. *peer* is a
    second program in a sandbox of its own: its stdin and stdout are the socket whose file descriptor the command has in the
    environment variable ``DICAST_PEER_FD``.
    """

    command: tuple[str, ...]
    limits: Limits
    files: Mapping[str, bytes] = field(factory=dict)
    archive: bytes | None = None
    environment: Mapping[str, str] = field(factory=dict)
    collect: str | None = None
    peer: Program | None = None


@frozen
class Execution(ReadyAnswer):
    """Result of a :class:`Program`.

    *exit* is the command's exit code, 128 + n after signal n. *limit* is the first limit that it reached, by the field's name
    in :class:`Limits`, else None. *output* is the end of its stdout and stderr. *seconds* is its duration. *collected* is
    the file to return, None if there is none. *guessed* is True if only the program's output indicates the *limit*: such a limit may explain
    a failed result, but does not make a result fail. ``beside`` is the end of its peer's stderr,
    if the peer ended earlier and with an error: show it, but do not trust it.
    """

    exit: int
    output: str
    seconds: float
    limit: str | None = None
    collected: bytes | None = None
    guessed: bool = False
    beside: str = ""

    @property
    def struck(self) -> str | None:
        """The limit that it certainly reached."""
        return None if self.guessed else self.limit
