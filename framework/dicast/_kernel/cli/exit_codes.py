"""Exit codes of commands that end with an error. The table for users is ``docs/reference/exit-codes.md``."""

from __future__ import annotations

import errno

import click

from ...toolkit.files import UnreadableFile
from ..contract.plugin_errors import is_interruption
from ..values.errors import Interrupted, LedgerError, LedgerRefused, RequestError

UNREAD = 141
"""Exit code if the reader of standard output went away: 128 + 13, as for any program that SIGPIPE ends."""
UNWRITABLE = 4
"""Exit code if standard output or the ledger cannot be written."""
_PATH_ERRNOS = {
    errno.EACCES,
    errno.EISDIR,
    errno.ELOOP,
    getattr(errno, "EDQUOT", errno.ENOSPC),  # missing on Windows
    errno.ENAMETOOLONG,
    errno.ENOSPC,
    errno.ENOTDIR,
    errno.EROFS,
}
"""System errors about a path that the user passed."""


def error_code(error: BaseException) -> int | None:
    """Return the exit code for an error; None for an exception that is not handled here (``SystemExit``)."""
    codes: list[tuple[type[BaseException] | tuple[type[BaseException], ...], int]] = [
        ((Interrupted, click.Abort), 130),
        ((RequestError, LedgerRefused, UnreadableFile, click.ClickException), 2),
        (LedgerError, UNWRITABLE),
        (Exception, 70),
    ]
    if is_interruption(error):
        return 130
    if isinstance(error, OSError) and error.filename is not None and error.errno in _PATH_ERRNOS:
        return 2
    return next((code for kind, code in codes if isinstance(error, kind)), None)
