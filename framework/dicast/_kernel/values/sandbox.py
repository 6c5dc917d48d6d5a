"""What is run in a sandbox, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping

from ..classes import field, frozen


@frozen
class Limits:
    """How much a sandboxed program may take.

    *wall* and *cpu* are seconds, *cpu* those of all its processes together; *cpus* is how many it may use at once; *memory*,
    *file_size*, *disk* and *output* are bytes: of all its processes together, of one file, of all files, and of what it writes
    to stdout and stderr; *processes* counts threads, too.
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

    *archive* is a tar that is unpacked there first; *files* are written over it, their names relative; *environment* comes
    beside PATH, HOME and the like; *collect* names a file that the program leaves behind and that is wanted back. *peer* is a
    second program in a sandbox of its own: its stdin and stdout are the socket whose file descriptor the command finds in the
    environment, as ``DICAST_PEER_FD``.
    """

    command: tuple[str, ...]
    limits: Limits
    files: Mapping[str, bytes] = field(factory=dict)
    archive: bytes | None = None
    environment: Mapping[str, str] = field(factory=dict)
    collect: str | None = None
    peer: Program | None = None


@frozen
class Execution:
    """What came of a :class:`Program`.

    *exit* is the command's exit code, 128 + n after signal n; *limit* the first of its limits that it struck, by the field's name
    in :class:`Limits`, else None; *output* the end of what it wrote to stdout and stderr; *seconds* how long it took; *collected*
    the file that was wanted back, None where there is none. *guessed* says that nothing shows the *limit* but the program's own
    words: it may explain a result that is bad without it, and makes none bad. *beside* is the end of what its peer wrote to stderr,
    where the peer has ended before it, and badly: to be shown, and believed in nothing.
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
        """The limit that it struck for sure."""
        return None if self.guessed else self.limit
