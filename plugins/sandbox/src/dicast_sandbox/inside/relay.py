"""Runner of tests in a container, which has three streams: stdin and stderr carry the socket to the tests' peer.

The arguments are the tests' command, whose output goes to stdout. ``DICAST_PEER_FD`` has the number of the socket.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from functools import partial


def carry(read: Callable[[int], bytes], write: Callable[[bytes], object], end: Callable[[], None]) -> None:
    """Copy all chunks from *read* to *write*, then call *end*."""
    while chunk := read(1 << 16):
        write(chunk)
    end()


def main(command: list[str]) -> int:
    """Run *command*, and return its exit code as a shell reports it."""
    ours, theirs = socket.socketpair()
    sink = os.fdopen(2, "wb", buffering=0)
    source = os.fdopen(0, "rb", buffering=0)
    threading.Thread(
        target=carry, args=(source.read, ours.sendall, partial(ours.shutdown, socket.SHUT_WR)), daemon=True
    ).start()
    threading.Thread(target=carry, args=(ours.recv, sink.write, sink.flush), daemon=True).start()
    environment = {**os.environ, "DICAST_PEER_FD": str(theirs.fileno())}
    try:
        done = subprocess.run(  # noqa: S603  # the command of the tests
            command,
            stdin=subprocess.DEVNULL,
            stderr=subprocess.STDOUT,
            env=environment,
            pass_fds=[theirs.fileno()],
            check=False,
        )
    except OSError as error:
        sys.stdout.write(f"{error}\n")
        return 127
    return done.returncode if done.returncode >= 0 else 128 - done.returncode


if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.stdout.flush()
    os._exit(code)
