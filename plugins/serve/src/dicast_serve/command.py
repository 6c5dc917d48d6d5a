"""``dicast serve``: the API over ledgers, on this machine unless ``--host`` names another address."""

from __future__ import annotations

import secrets
from functools import partial
from pathlib import Path

import click

from dicast import ConfigError, nearest, read_ledger
from dicast.commands import ledger_paths
from dicast.toolkit.connections import listening_socket
from dicast.toolkit.files import read_text

LEAST_TOKEN = 16


@click.command()
@ledger_paths
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8600, show_default=True, help="The port; 0 takes a free one."
)
@click.option(
    "--allow-host", "names", multiple=True, metavar="NAME", help="A further name that requests may have in Host."
)
@click.option(
    "--token-file", type=click.Path(path_type=Path), help="A file with the token; by default a new token is printed."
)
@click.option(
    "--label-token-file", type=click.Path(path_type=Path), help="A file with the token that allows giving verdicts."
)
@click.option(
    "--guidelines",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Markdown with the guidelines for people who label.",
)
@click.option(
    "--judges",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="A pipeline file: people who label see the evidence and the objectives of its judges.",
)
@click.option("--open", "shows", is_flag=True, help="Open the first page in the browser.")
@click.option("--once-json", "once", metavar="PATH", help="Print the answer to GET PATH, and exit.")
def serve(
    ledgers: tuple[Path | str, ...],
    host: str,
    port: int,
    names: tuple[str, ...],
    token_file: Path | None,
    label_token_file: Path | None,
    guidelines: Path | None,
    judges: Path | None,
    shows: bool,
    once: str | None,
) -> None:
    """Serve ledgers over HTTP, read-only. The answers are figures and rows. Every request needs the token."""
    from .application import application
    from .application import once as answered

    missing_files = [place for place in ledgers if once is None and isinstance(place, Path) and not place.exists()]
    for place in ledgers:
        if place not in missing_files:
            read_ledger(place, lambda live: live.head())  # another file is refused before the server listens
    if label_token_file is not None and not all(isinstance(place, Path) for place in ledgers):
        raise ConfigError(
            "--label-token-file: verdicts of people are recorded in files; serve a URL or a component without it"
        )
    if once is not None:
        click.echo(answered(ledgers, once))
        return
    from .guard import Tokens
    from .guide import Guide
    from .listening import hosts_of, listen
    from .next_run import run_command
    from .pages import pages

    labelling = None if label_token_file is None else _token(label_token_file, "--label-token-file")
    reading = secrets.token_urlsafe(24) if token_file is None else _token(token_file, "--token-file")
    if labelling == reading:
        raise ConfigError(
            "--token-file and --label-token-file hold the same token: every reader could give verdicts, too. Use two tokens"
        )
    guide, next_run = Guide.of(guidelines, judges), partial(run_command, Path.cwd(), judges)
    with listening_socket(host, port) as socket:
        port = socket.getsockname()[1]
        allowed, hosts = Tokens(reading, labelling), hosts_of(host, port, names)
        cookie = f"dicast_{port}"
        app = application(ledgers, allowed, hosts, cookie, pages(), prepare=True, guide=guide, next_run=next_run)
        bracketed_host = f"[{host}]" if ":" in host else host
        address = f"http://{bracketed_host}:{port}/"
        click.echo(f"serving {', '.join(map(_shown, ledgers))} at {address}")
        for file in missing_files:
            click.echo(_note_on_missing(file))
        if token_file is None:
            click.echo(f"open {address}?token={reading}")
            click.echo(f"or send the header Authorization: Bearer {reading}")
        if shows:
            _open(f"{address}?token={reading}")
        listen(app, socket)


def _open(address: str) -> None:
    """Open *address* in the browser. The socket listens, so the page waits for the server."""
    import webbrowser  # only --open needs it

    if not webbrowser.open(address):
        click.echo("no browser could be opened; open the address yourself", err=True)


def _note_on_missing(file: Path) -> str:
    """Return a note on a ledger that no run has written yet, with the name of a similar file in its folder."""
    siblings = [path.name for path in file.parent.iterdir()] if file.parent.is_dir() else []
    near = nearest(file.name, siblings)
    question = f" Did you mean {file.parent / near}?" if near else ""
    return f"{file} does not exist yet; the dashboard is empty until a run writes it.{question}"


def _shown(place: Path | str) -> str:
    """Return the path, or the scheme of a URL or the name of a component: the rest may have a password."""
    return str(place) if isinstance(place, Path) else place.partition(":")[0].strip("{ ")


def _token(path: Path, option: str) -> str:
    try:
        token = read_text(path).strip()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not UTF-8"
        raise ConfigError(f"{option}: {path} cannot be read ({why})") from error
    if len(token) < LEAST_TOKEN or not token.isascii() or not token.isprintable() or " " in token:
        raise ConfigError(
            f"{option}: a token has {LEAST_TOKEN} printable ASCII characters at least and no blank; make one with openssl rand -hex 24"
        )
    return token
