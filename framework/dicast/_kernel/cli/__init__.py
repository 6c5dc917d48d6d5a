"""The command line. Commands are imported when they are called; listing them reads metadata alone."""

from __future__ import annotations

import atexit
import errno
import gc
import signal
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module
from io import StringIO
from typing import TYPE_CHECKING, Any

import click

from ...toolkit.files import UnreadableFile
from ...toolkit.printable import printable_output
from ..values import is_text
from ..values.errors import Interrupted, LedgerError, LedgerRefused, PluginError, RequestError
from .leaving import end_soon
from .output import print_error

_OF_PATHS = {
    errno.EACCES,
    errno.EISDIR,
    errno.ELOOP,
    getattr(errno, "EDQUOT", errno.ENOSPC),  # Windows has none
    errno.ENAMETOOLONG,
    errno.ENOSPC,
    errno.ENOTDIR,
    errno.EROFS,
}
"""Errors of the system about a path that the user named."""

if TYPE_CHECKING:
    from ..contract.registry import Offer

COMMANDS = {
    "init": (".._init.command:init", "Write a pipeline for your own data."),
    "run": ("runs:run", "Judge what a pipeline file says, and print what came of it."),
    "check": ("files:check", "Build everything in a pipeline file and run nothing."),
    "show": ("show:show", "Show a run, or a subject with its verdicts."),
    "runs": ("past_runs:runs", "List the runs of the ledger, the newest first."),
    "verdicts": ("records:verdicts", "List verdicts from the ledger."),
    "baseline": ("baselines:baseline", "Save a run as a baseline, under a name or in a file."),
    "ledger": ("records:ledger", "Verify or export the ledger."),
    "plugins": ("files:plugins", "List the installed plugins, or show one with its options."),
    "schema": ("files:schema", "Print the JSON Schema of the pipeline file, for editors."),
    "new": ("new:new", "Write a plugin to start from."),
}
EXTRAS = {
    "autoresearch": "autoresearch",
    "bisect": "trust",
    "bridge": "trust",
    "cache": "cache",
    "calibrate": "trust",
    "ci": "github",
    "compare": "stats",
    "conformance": "evaluator",
    "doctor": "trust",
    "evaluator": "evaluator",
    "label": "trust",
    "labels": "trust",
    "optimize": "optimize",
    "plan": "trust",
    "priority": "promotion",
    "promotion": "promotion",
    "report": "report",
    "serve": "serve",
    "workloads": "workload",
}
"""The commands that a plain install lacks, with the extra that brings each."""
_MARGINS = 4
"""What click puts before the names of commands, and between them and their help."""
UNREAD = 141
"""The exit code when the reader of standard output went away, as of any program that SIGPIPE ends: 128 + 13."""


class Commands(click.Group):
    """The kernel's commands and those of the entry-point group ``dicast.commands``."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Every command's name, the kernel's first."""
        return [*COMMANDS, *sorted(_installed().keys() - COMMANDS.keys())]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing any."""
        from .command_help import in_one_line  # nobody else needs it

        rows, offers = [(name, summary) for name, (_, summary) in COMMANDS.items()], sorted(_installed().items())
        room = formatter.width - max(map(len, [*COMMANDS, *dict(offers)])) - _MARGINS
        rows += [(name, in_one_line(offer, room)) for name, offer in offers]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one command."""
        if cmd_name in COMMANDS:
            module, _, name = COMMANDS[cmd_name][0].partition(":")
            command: click.Command = getattr(import_module(f".{module}", __name__), name)
            return command
        offer = _installed().get(cmd_name)
        return None if offer is None else _load(offer)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """Name the nearest command when there is none of this name."""
        name = args[0] if args else ""
        if (command := self.get_command(ctx, name)) is not None:
            return name, command, args[1:]
        if not name.startswith("-"):
            from ...toolkit.installing import how_to_install
            from ..values.names import nearest

            if name in EXTRAS:
                raise PluginError(f"the command {name!r} is not installed; {how_to_install(EXTRAS[name])}")
            hint = nearest(name, self.list_commands(ctx)) or nearest(name, EXTRAS)
            advice = f"; dicast --help lists what is installed, and this brings the others: {how_to_install('all')}"
            ctx.fail(f"no such command {name!r}" + (f", did you mean {hint!r}?" if hint else advice))
        return super().resolve_command(ctx, args)


def _load(offer: Offer) -> click.Command:
    if offer.error:
        raise PluginError(offer.error)
    module, _, name = offer.target.partition(":")
    try:
        command: click.Command = getattr(import_module(module), name)
    except Exception as error:  # the border to other people's code
        why = f"({offer.distribution} {offer.version}) failed to import: {type(error).__name__}: {error}"
        raise PluginError(f"command {offer.name!r} {why}") from error
    return command


def _installed() -> dict[str, Offer]:
    from ..contract.registry import commands  # metadata is read only where commands of others may matter

    return dict(commands())


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="dicast-kernel", prog_name="dicast")
def dicast() -> None:
    """Judge the output of language models and agents: cheap checks first, an expensive judge only where it matters.

    An error is one line a problem; --traceback, anywhere, shows where it was raised. On a terminal the output is drawn;
    --plain, anywhere, or NO_COLOR in the environment, prints lines as into a file.
    """


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    if arguments is None:  # the process is its own, and what it imports stays: looking there for garbage takes 0.1 s
        gc.set_threshold(100_000, 10, 10)
        atexit.register(gc.freeze)
        atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)  # all is done: the code stays what it was
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        with printable_output(plain="--plain" in given):
            code = _run([argument for argument in given if argument != "--plain"])
        if code == UNREAD:
            sys.stdout = StringIO()  # as below
        if arguments is None:
            end_soon(code)
        return code
    except OSError as error:  # of printing; any other has become a message
        sys.stdout = StringIO()  # the interpreter would flush the other, and fail, once more at its end
        if isinstance(error, BrokenPipeError):
            return UNREAD
        click.echo(f"cannot write to standard output: {error}", err=True)
        return 4


def _run(given: list[str]) -> int:
    """Run a command; turn every error into a message and an exit code.

    :raises OSError: when standard output cannot be written to.
    """
    shown = "--traceback" in given
    given = [argument for argument in given if argument != "--traceback"]
    try:
        _refuse_other_than_text(given)
        return int(dicast.main(given, prog_name="dicast", standalone_mode=False) or 0)
    except BaseException as error:  # the border of the process
        if shown:
            traceback.print_exc()
        if _is_unread(error):
            return UNREAD
        if isinstance(error, OSError) and _is_of_printing(error):
            raise
        code = _code(error)
        if code is None:
            raise
        print_error(error, code, as_json="--json" in given)
        return code


def _refuse_other_than_text(given: Sequence[str]) -> None:
    """Refuse a file name that is not UTF-8: events and documents have to name it."""
    for argument in given:
        if not is_text(argument):
            raise click.UsageError(
                f"{argument!r} is not UTF-8, and what is recorded has to be; give the file another name"
            )


def _is_unread(error: BaseException) -> bool:
    """Whether click itself ended the program: told not to, it still does where a pipe is closed, with the code 1 of a failed gate."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    return isinstance(error, SystemExit) and frames[-1].f_code is click.Command.main.__code__


def _is_of_printing(error: OSError) -> bool:
    """Whether *error* comes from standard output, which may be a file on a full disk."""
    return any(frame.f_code is click.echo.__code__ for frame, _ in traceback.walk_tb(error.__traceback__))


def _code(error: BaseException) -> int | None:
    """The exit code of an error; None for what is none of ours (``SystemExit``)."""
    codes: list[tuple[type[BaseException] | tuple[type[BaseException], ...], int]] = [
        ((KeyboardInterrupt, Interrupted, click.Abort), 130),
        ((RequestError, LedgerRefused, UnreadableFile, click.ClickException), 2),
        (LedgerError, 4),
        (Exception, 70),
    ]
    if isinstance(error, OSError) and error.filename is not None and error.errno in _OF_PATHS:
        return 2
    return next((code for kind, code in codes if isinstance(error, kind)), None)
