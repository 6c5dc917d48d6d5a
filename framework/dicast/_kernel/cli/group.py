"""The command line. A command is imported when it is called; listing the commands reads package metadata only."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence
from importlib import import_module
from io import StringIO
from typing import TYPE_CHECKING, Any

import click

from ...toolkit.files import error_reason
from ...toolkit.printable import printable_output
from ..values import is_text
from ..values.errors import PluginError
from .exit_codes import UNREAD, UNWRITABLE, error_code
from .leaving import end_soon
from .output import print_error

if TYPE_CHECKING:
    from ..contract.registry import Offer

COMMANDS = {
    "init": (".._init.command:init", "Write a pipeline for your own data."),
    "import": (
        ".._import.command:import_files",
        "Report files of other tools, and write a pipeline for them.",
    ),
    "export": (".._export.command:export_run", "Write a run as a file that other tools read."),
    "run": ("runs:run", "Judge the subjects of a pipeline file and print the results."),
    "merge": ("merge:merge_shards", "Merge the runs of all shards into one, and decide its gate."),
    "check": ("files:check", "Build everything in a pipeline file and run nothing."),
    "show": ("show:show", "Show a run, or a subject with its verdicts."),
    "view": (".._browse.view:view_report", "Open the newest report, or the dashboard, in the browser."),
    "runs": ("past_runs:runs", "List the runs of the ledger, newest first."),
    "verdicts": ("records:verdicts", "List verdicts from the ledger."),
    "baseline": ("baselines:baseline", "Save a run as a baseline, under a name or in a file."),
    "ledger": ("records:ledger", "Verify, export or convert the ledger."),
    "plugins": ("plugins:plugins", "List the installed plugins, or show one with its options."),
    "schema": ("files:schema", "Print the JSON Schema of the pipeline file, for editors."),
    "new": ("new:new", "Write a new plugin to start from."),
}
EXTRAS = {
    "autoresearch": "autoresearch",
    "bisect": "trust",
    "bridge": "trust",
    "cache": "cache",
    "calibrate": "trust",
    "ci": "github",
    "comment": "github",
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
    "sql": "sql",
    "workloads": "workload",
}
"""Commands missing from a plain install, each with the extra that brings it."""
_MARGINS = 4
"""Width of the blanks that click writes before the names of commands and before their help."""


class Commands(click.Group):
    """Commands of the kernel and of the entry-point group ``dicast.commands``."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the name of every command, the kernel's first."""
        return [*COMMANDS, *sorted(_installed().keys() - COMMANDS.keys())]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing any of them."""
        from .command_help import in_one_line  # needed for this list alone

        rows, offers = [(name, summary) for name, (_, summary) in COMMANDS.items()], sorted(_installed().items())
        width = formatter.width - max(map(len, [*COMMANDS, *dict(offers)])) - _MARGINS
        rows += [(name, in_one_line(offer, width)) for name, offer in offers]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one command."""
        if cmd_name in COMMANDS:
            module, _, name = COMMANDS[cmd_name][0].partition(":")
            command: click.Command = getattr(import_module(f".{module}", __package__), name)
            return command
        offer = _installed().get(cmd_name)
        return None if offer is None else _load(offer)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """Return the command; if there is no such command, name the extra that brings it or the most similar name."""
        name = args[0] if args else ""
        if (command := self.get_command(ctx, name)) is not None:
            return name, command, args[1:]
        if not name.startswith("-"):
            from ...toolkit.installing import how_to_install
            from ..values.names import nearest

            if name in EXTRAS:
                raise PluginError(f"the command {name!r} is not installed; {how_to_install(EXTRAS[name])}")
            hint = nearest(name, self.list_commands(ctx)) or nearest(name, EXTRAS)
            advice = f"; dicast --help lists the installed commands; for all others: {how_to_install('all')}"
            ctx.fail(f"no such command {name!r}" + (f", did you mean {hint!r}?" if hint else advice))
        return super().resolve_command(ctx, args)


def _load(offer: Offer) -> click.Command:
    from ..contract.registry import load_offer  # imported late: reading metadata takes time

    command = load_offer("dicast.commands", offer)
    if not isinstance(command, click.Command):
        owner = f"command {offer.name!r} ({offer.distribution} {offer.version})"
        raise PluginError(f"{owner}: {offer.target} is {command!r:.100}, not a command; add @click.command() to it")
    return command


def _installed() -> dict[str, Offer]:
    from ..contract.registry import commands  # imported late: reading metadata takes time

    return {name: offer for name, offer in commands().items() if "." not in name}  # a name with a dot is in a group


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="dicast-kernel", prog_name="dicast")
def dicast() -> None:
    """Judge the output of language models and agents: cheap checks first, an expensive judge only where it matters.

    Each problem is one line; --traceback shows where an error was raised. On a terminal the output has colors and tables;
    --plain or NO_COLOR=1 in the environment prints plain lines, as for a file. Both options may be placed anywhere.
    """


def run_arguments(arguments: Sequence[str] | None) -> int:
    """Run the command line; return the exit code. Without *arguments*, run the process's own arguments and end the process soon after."""
    argv = list(sys.argv[1:] if arguments is None else arguments)
    try:
        with printable_output(plain="--plain" in argv):
            code = _run([argument for argument in argv if argument != "--plain"])
        if code == UNREAD:
            sys.stdout = StringIO()  # the interpreter would flush it again at its end, and fail
        if arguments is None:
            end_soon(code)
        return code
    except OSError as error:  # raised by printing; any other error is a message by now
        sys.stdout = StringIO()  # the interpreter would flush the old stream again at its end, and fail
        if isinstance(error, BrokenPipeError):
            return UNREAD
        click.echo(f"cannot write to standard output: {error_reason(error)}", err=True)
        return UNWRITABLE


def _run(argv: list[str]) -> int:
    """Run a command; turn every error into a message and an exit code.

    :raises OSError: when standard output cannot be written to.
    """
    show_traceback = "--traceback" in argv
    argv = [argument for argument in argv if argument != "--traceback"]
    try:
        _refuse_undecodable(argv)
        return int(dicast.main(argv, prog_name="dicast", standalone_mode=False, obj=show_traceback) or 0)
    except BaseException as error:  # last handler of the process
        if show_traceback:
            traceback.print_exc()
        if _is_closed_pipe(error):
            return UNREAD
        if isinstance(error, OSError) and _is_print_error(error):
            raise
        code = error_code(error)
        if code is None:
            raise
        print_error(error, code, as_json="--json" in argv)
        return code


def _refuse_undecodable(argv: Sequence[str]) -> None:
    """Refuse a file name that is not UTF-8, because events and documents contain the name."""
    for argument in argv:
        if not is_text(argument):
            raise click.UsageError(f"{argument!r} is not UTF-8, but recorded names must be; rename the file")


def _is_closed_pipe(error: BaseException) -> bool:
    """Return True if click itself ended the program because a pipe was closed.

    Click does so even without standalone mode, with exit code 1, which is the code of a failed gate.
    """
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    return isinstance(error, SystemExit) and frames[-1].f_code is click.Command.main.__code__


def _is_print_error(error: OSError) -> bool:
    """Return True if *error* comes from writing standard output, which may be a file on a full disk."""
    return any(frame.f_code is click.echo.__code__ for frame, _ in traceback.walk_tb(error.__traceback__))
