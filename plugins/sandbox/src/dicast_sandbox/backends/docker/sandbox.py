"""``sandbox/docker``: programs in containers of an engine."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from math import inf
from pathlib import Path

import attrs

from dicast import ConfigError, Execution, Failure, Program, RunContext, Within

from ..environment import check_environment
from ..pool import Pool
from ..profiles import limits
from .container import READY, START_SECONDS, Engine, filter_file, parse_usage, run_options
from .program import run_program

_ANSWER_SECONDS = 15
_OTHER = "or name another backend"
_INSTALL = (
    "apt install docker.io (Debian, Ubuntu), dnf install docker-cli (Fedora), https://docs.docker.com/engine/install"
)


@attrs.frozen
class Docker:
    """Runs programs in containers, by the ``docker`` client and an engine that it reaches (20.10 or newer).

    A container has no network and no files of the host; its image is read-only, and its workspace, home and /tmp are in memory. It ends with
    its program, or with dicast.

    :param image: the image of the containers: it needs the tools of the programs, and ``sh``, ``head`` and ``tar``; for
        ``mode: isolated`` also ``python3``. dicast never downloads it.
    :param environment: further environment variables inside, by name, in addition to the image's.
    :param host: the engine, such as ``ssh://user@machine`` or ``unix:///run/user/1000/docker.sock``; by default the client's.
    :param concurrency: the largest number of programs that run at the same time in a run; by default one for each core.
    """

    name = "docker"

    image: str
    environment: dict[str, str] = attrs.field(factory=dict, validator=check_environment)
    host: str | None = attrs.field(default=None, metadata={"counts": False})
    concurrency: int | None = attrs.field(
        default=None, validator=Within(1, inf, "1 or more"), metadata={"counts": False}
    )

    def check(self) -> None:
        """Check that the engine can start a container with limits, by starting one.

        :raises ConfigError: if there is no client, no engine, no image, or no control of memory and processes.
        """
        _check(self.image, self.host)

    def reads(self, base: Path) -> dict[str, str]:
        """Return the id of the image that the engine has under this name."""
        inspection = _run_client(
            self._engine.command("image", "inspect", "--format", "{{.Id}}", self.image), _ANSWER_SECONDS
        )
        if inspection.returncode != 0:
            raise ConfigError(f"sandbox/docker: the engine has no image {self.image!r} ({_error_text(inspection)})")
        return {"image": inspection.stdout.decode().strip()}

    async def execute(self, program: Program) -> Execution | Failure:
        """Run *program* outside any pool."""
        return await run_program(self._engine, program)

    @asynccontextmanager
    async def open(self, context: RunContext) -> AsyncIterator[Pool]:
        """Open the pool of one run's containers."""
        yield Pool(lambda program, _: run_program(self._engine, program), self.concurrency or os.cpu_count() or 1)

    @property
    def _engine(self) -> Engine:
        return Engine(self.image, self.host, self.environment)


@cache  # caches success only, as for bubblewrap: each metric checks, and a check takes a second
def _check(image: str, host: str | None) -> None:
    if os.name != "posix":
        raise ConfigError(
            f"sandbox/docker hands files to the client by /dev/fd, which this system lacks ({sys.platform}); run dicast in WSL, "
            "on Linux or on macOS"
        )
    if shutil.which("docker") is None:
        raise ConfigError(f"sandbox/docker: docker is not installed; {_INSTALL}, {_OTHER}")
    engine = Engine(image, host, {})
    answer = _run_client(engine.command("version", "--format", "{{.Server.Version}}"), _ANSWER_SECONDS)
    if answer.returncode != 0:
        raise ConfigError(
            f"sandbox/docker: no engine answers ({_error_text(answer)}): start it (systemctl start docker), set its address (host, or "
            f"the environment variable DOCKER_HOST), {_OTHER}"
        )
    answer = _run_client(
        engine.command("image", "inspect", "--format", "{{json .Config.Volumes}}", image), _ANSWER_SECONDS
    )
    if answer.returncode != 0:
        raise ConfigError(
            f"sandbox/docker: the engine has no image {image!r} ({_error_text(answer)}): docker pull {image}, {_OTHER}"
        )
    if answer.stdout.strip() not in (b"null", b"{}"):
        raise ConfigError(
            f"sandbox/docker: the image {image!r} declares volumes ({answer.stdout.decode().strip()}), which programs could fill "
            f"on the engine's disk; name another image, {_OTHER}"
        )
    _check_container(engine)


def _check_container(engine: Engine) -> None:
    """Start a container as for a program, and check that the engine counts its resources."""
    with filter_file() as file:
        words = run_options(engine, limits("small"), f"dicast-{uuid.uuid4().hex}", f"/dev/fd/{file}")
        done = _run_client(engine.command("run", *words), START_SECONDS, b"1\n", file)
    if not done.stdout.startswith(READY):
        raise ConfigError(f"sandbox/docker cannot make a container of {engine.image!r} ({_error_text(done)}); {_OTHER}")
    usage = parse_usage(done.stdout)
    if usage.memory is None or usage.processes is None:
        raise ConfigError(
            "sandbox/docker: the engine enforces no limits on memory and processes: it needs control groups (if it runs without "
            f"root, version 2, delegated to its user); {_OTHER}"
        )


def _run_client(
    command: tuple[str, ...], seconds: float, stdin: bytes = b"", *descriptors: int
) -> subprocess.CompletedProcess[bytes]:
    """Run *command* and return the completed process; exit code 124 if it takes longer than *seconds*."""
    try:
        return subprocess.run(  # noqa: S603  # fixed words, and an image and a host from the user
            command, input=stdin, capture_output=True, check=False, timeout=seconds, pass_fds=descriptors
        )
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 124, b"", b"no answer in %d s" % seconds)


def _error_text(done: subprocess.CompletedProcess[bytes]) -> str:
    return done.stderr.decode(errors="replace").strip() or f"exit code {done.returncode}"
