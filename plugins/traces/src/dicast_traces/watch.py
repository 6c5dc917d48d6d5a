"""``dicast watch``: judge a trace while it is being written."""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from dicast import ConfigError, Problem
from dicast.commands import as_json as json_option
from dicast.commands import overrides as set_option
from dicast.commands import requires, run_command
from dicast.toolkit.listening import ListenAddress
from dicast.toolkit.session_following import SessionFollower
from dicast.toolkit.session_source import SessionSource

from .events import Events
from .joined import Joined
from .live.source import Watching
from .live.status import Console
from .messages import Messages

TOKEN_ENV = "DICAST_WATCH_TOKEN"  # noqa: S105 - the name of a variable


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--listen",
    metavar="[HOST:]PORT",
    help="Also receive events over HTTP from this machine: POST /events, GET /status.",
)
@click.option(
    "--otlp",
    metavar="[HOST:]PORT",
    help="Receive spans of OpenTelemetry over HTTP: POST /v1/traces. The source is otel/receiver.",
)
@click.option(
    "--token-env",
    metavar="NAME",
    help=f"The environment variable with the token for requests. Default: {TOKEN_ENV}, else a new token.",
)
@click.option(
    "--once",
    is_flag=True,
    help="Read the present events, judge the subjects that are due, and end; the next watch continues.",
)
@click.option("--new", is_flag=True, help="Start a new watch instead of continuing the unfinished watch of this file.")
@click.option(
    "--poll",
    type=click.FloatRange(0.01),
    default=0.1,
    show_default=True,
    help="Seconds between two checks of the files.",
)
@set_option
@json_option
@requires(token_env=("listen", "otlp"))
def watch(
    file: Path,
    listen: str | None,
    otlp: str | None,
    token_env: str | None,
    once: bool,
    new: bool,
    poll: float,
    overrides: tuple[str, ...],
    as_json: bool,
) -> int:
    """Judge a trace or conversations as they grow.

    The pipeline FILE names the trace; each subject is judged when it is due. The watch goes on until Ctrl-C or SIGTERM, and a watch that was killed or stopped is continued. Exit codes: the codes
    of dicast run, and 3 if lines were no events.
    """
    console = Console()
    address = None if listen is None else ListenAddress.parse(listen)
    otlp_address = None if otlp is None else ListenAddress.parse(otlp, "--otlp", is_local=False)
    token = "" if address is None else _token(token_env, console)

    def follow(component: Any) -> Watching:
        if hasattr(component, "receiving"):
            _check_receiver(file, otlp_address, address, once=once)
            return Watching(Path(), component.kinds, 0, once, poll, otlp_address, console=console, receiver=component)
        if otlp_address is not None:
            raise ConfigError(f"--otlp receives spans: the source of {file} has to be otel/receiver")
        if (sources := _session_sources(component)) is not None:
            if address is not None:
                raise ConfigError(f"--listen receives events of traces; the source of {file} reads files of sessions")
            follower, scan = SessionFollower(*sources), sources[0].scan
            return Watching(Path(), component.kinds, 0, once, poll, console=console, receiver=follower, scan=scan)
        if not isinstance(component, Events | Messages):
            expected = "traces/events or traces/messages, or a reader of recorded sessions"
            raise ConfigError(f"dicast watch follows a trace: the source of {file} has to be {expected}")
        layout = None
        if isinstance(component, Messages):
            _check_conversations(component)
            layout = component.layout
        if component.path.is_fifo():
            raise ConfigError(
                f"a named pipe cannot be followed; let path be '-' and give it as input: … < {component.path}"
            )
        kinds, most = component.kinds, component.max_line_bytes
        return Watching(component.path, kinds, most, once, poll, address, token, console, layout, scan=component.scan)

    code = run_command(file, follow, overrides=overrides, live=True, new=new, as_json=as_json)
    return 3 if console.bad and code in (0, 1) else code


def _session_sources(component: Any) -> Sequence[SessionSource] | None:
    """Return the sources of *component* that read files of sessions; None for another component.

    :raises ConfigError: if one of the joined sources reads no files of sessions, or if they scan differently.
    """
    if isinstance(component, SessionSource):
        return (component,)
    if not isinstance(component, Joined):
        return None
    sources = [source for source in component.sources if isinstance(source, SessionSource)]
    if len(sources) < len(component.sources):
        other = next(source for source in component.sources if not isinstance(source, SessionSource))
        message = (
            f"dicast watch follows several readers of session files at once, and {type(other).__name__} is not one"
        )
        raise ConfigError(Problem(f"{message}; watch it by a file of its own", path="source"))
    if len({source.scan for source in sources}) > 1:
        raise ConfigError(Problem("the sources have different options scan; give all the same", path="source"))
    return sources


def _check_receiver(file: Path, otlp: ListenAddress | None, listen: ListenAddress | None, *, once: bool) -> None:
    """Refuse options that do not fit a source that receives.

    :raises ConfigError: with the option.
    """
    if listen is not None:
        raise ConfigError(f"--listen receives events of traces; the source of {file} receives spans: --otlp PORT")
    if otlp is None and not once:
        raise ConfigError(f"the source of {file} receives spans: dicast watch {file} --otlp 4318")


def _check_conversations(source: Messages) -> None:
    """Refuse options that only a finished file of conversations can have.

    :raises ConfigError: with the name of the option.
    """
    if source.history:
        raise ConfigError(
            "dicast watch cannot provide execution_history: remove history, or judge the file with dicast run"
        )
    if source.path.is_dir() and source.id is None:
        what = (
            "line numbers of several files are not unique ids; name each conversation by a field of its record, as in"
        )
        raise ConfigError(Problem(f"{what} id: '{{{{ task_id }}}}'", path="id"))


LEAST_TOKEN = 8
"""Least number of characters of a token: a shorter token could be guessed."""


def _token(name: str | None, console: Console) -> str:
    """Return the token that requests must bear.

    :raises ConfigError: if the named variable is empty.
    """
    text = os.environ.get(name or TOKEN_ENV)
    if text:
        if len(text) < LEAST_TOKEN or not text.isascii() or not text.isprintable():
            message = (
                f"a token has at least {LEAST_TOKEN} printable ASCII characters; make one with openssl rand -hex 24"
            )
            raise ConfigError(f"{name or TOKEN_ENV}: {message}")
        return text
    if name is not None:
        raise ConfigError(f"--token-env {name}: the environment variable {name} is not set, or empty")
    token = secrets.token_urlsafe(24)
    console.say(f"requests must bear the token {token} (Authorization: Bearer …); {TOKEN_ENV} sets another")
    return token
