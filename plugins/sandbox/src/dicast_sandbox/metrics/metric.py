"""Base of all metrics of this plugin: the options, and the program that tests an output."""

from __future__ import annotations

import inspect
from abc import abstractmethod
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import ClassVar, Literal

import attrs

from dicast import ConfigError, Cost, Failure, Limits, Program, RunContext, Sandbox, Score, Subject, Within
from dicast.toolkit.json_values import check_field

from ..backends.bubblewrap.sandbox import Bubblewrap
from ..backends.profiles import Profile, limits
from ..commands.words import command_words, executed_words
from ..workspace.archive import Archive
from ..workspace.repository import resolve_commit
from ..workspace.workspace import TEMPLATE, Workspace, check_names
from .bench import COST, Bench, Trial

HEAD = "HEAD"


@attrs.frozen(kw_only=True)
class SandboxMetric:
    """The options of every metric that runs a command on an output.

    :param output_as: ``file``: the output is written to ``output_file``. ``patch``: it is a unified diff, and changes the files of
        ``template`` or ``repository``, before ``files`` are written over them. A patch that does not apply scores 0.
    :param output_file: the file in the workspace with the judged output.
    :param files: further files: texts by name, with ``{{ context.tests }}`` and the like for values of the subject (``id``,
        ``input``, ``output``, ``reference``, ``context``, and the keys of the context by themselves); or the place of a mapping
        of names to texts in the subject (``context.files``).
    :param template: a folder with the initial content of every workspace.
    :param repository: the folder of a git repository; its files at ``ref`` are the initial content of every workspace, without its history.
        It may have ``{{ context.repo }}`` and the like in it.
    :param ref: a commit, branch or tag of the repository. It may have ``{{ context.base_commit }}`` and the like in it.
    :param field: judge only this place in the output, a dotted path or a JSON pointer. A missing field scores 0.
    :param profile: the limits on CPUs, memory, time, processes, files and output; the README has the table.
    :param timeout: seconds of wall time, in place of the profile's.
    :param backend: the sandbox.
    :param unsafe: allows ``sandbox/none``.
    """

    name: ClassVar[str]
    tier = "truth"

    command: str | tuple[str, ...] | None
    output_as: Literal["file", "patch"] = "file"
    output_file: str = "output.txt"
    files: dict[str, str] | str | None = None
    template: Path | None = attrs.field(default=None, metadata={"counts": False})
    repository: Path | None = None
    ref: str = HEAD
    field: str | None = attrs.field(default=None, validator=check_field)
    profile: Profile = "medium"
    timeout: float | None = attrs.field(
        default=None, validator=Within(0, 1e9, "more than 0 and less than 1e9 seconds", open=True)
    )
    backend: Sandbox = attrs.field(factory=Bubblewrap)
    unsafe: bool = attrs.field(default=False, metadata={"counts": False})

    @classmethod
    def __attrs_init_subclass__(cls) -> None:
        """Append the inherited options to the docstring of a subclass, after its own."""
        docstring = inspect.cleandoc(cls.__doc__ or "")
        inherited = inspect.cleandoc(cls.__base__.__doc__ or "").partition(":param ")
        gap = "\n" if ":param " in docstring else "\n\n"
        cls.__doc__ = f"{docstring}{gap}{inherited[1]}{inherited[2]}"

    def __attrs_post_init__(self) -> None:
        if self.command is not None and not self.command:
            raise ConfigError("command is empty")
        for option in ("command", "candidate"):
            if any("\0" in word for word in executed_words(getattr(self, option, None) or ())):
                raise ConfigError(f"{option} has a NUL character in it, which no command can have")
        check_names([self.output_file, *(self.files if isinstance(self.files, Mapping) else ())])
        self._check_source()
        self._check_backend()

    def _check_source(self) -> None:
        if self.template is not None and self.repository is not None:
            raise ConfigError("template and repository exclude each other; remove one of them")
        if self.template is not None and not self.template.is_dir():
            raise ConfigError(f"the template {self.template} is not a folder")
        if self.output_as == "patch" and self.template is None and self.repository is None:
            raise ConfigError("output_as: patch needs files to patch; set 'template' or 'repository'")
        if self.repository is None and self.ref != HEAD:
            raise ConfigError("ref needs a repository; set 'repository'")
        if self.repository is not None and not TEMPLATE.search(str(self.repository)):
            resolve_commit(self.repository, HEAD if TEMPLATE.search(self.ref) else self.ref)

    def _check_backend(self) -> None:
        if getattr(self.backend, "unsafe", False) and not self.unsafe:
            raise ConfigError(
                "sandbox/none runs untrusted output with all your rights; name another backend, or set unsafe: true "
                "yourself, say so with unsafe: true"
            )
        check = getattr(self.backend, "check", None)
        if check is not None:
            check()

    @property
    def limits(self) -> Limits:
        """Return the resource limits of a program."""
        return limits(self.profile, self.timeout)

    @property
    def commands(self) -> tuple[str | tuple[str, ...], ...]:
        """Return all commands that have to start."""
        return () if self.command is None else (self.command,)

    def reads(self, base: Path) -> dict[str, Path | str]:
        """Return the template, the commit if all subjects share one, and the files of the host in the command."""
        inputs: dict[str, Path | str] = {} if self.template is None else {"template": self.template}
        if self.repository is not None and not TEMPLATE.search(f"{self.repository} {self.ref}"):
            inputs["commit"] = resolve_commit(self.repository, self.ref)
        visible = (Path("/"),) if self.unsafe else getattr(self.backend, "mounts", ())
        named = [Path(word) for command in self.commands for word in command_words(command) if word.startswith("/")]
        return inputs | {str(path): path for path in named if path.is_file() and any(map(path.is_relative_to, visible))}

    def estimate(self, subject: Subject) -> Cost:
        """Return the estimated cost of one run."""
        return COST

    @asynccontextmanager
    async def open(self, run: RunContext) -> AsyncIterator[Bench]:
        """Open a bench for one run."""
        yield Bench(self)

    async def score(self, subject: Subject) -> Score | Failure:
        """Run the command on *subject*, outside of any run."""
        return await Bench(self).score(subject)

    def refusal(self, subject: Subject) -> Failure | None:
        """Return the reason for not judging *subject*, or None."""
        return None

    def program(self, workspace: Workspace, archive: Archive, written: Mapping[str, bytes]) -> Program:
        """Return the program for a *workspace* whose files have become *archive*, with the output *written* into it."""
        return Program(
            executed_words(self.command or ()), self.limits, {**workspace.files, **written}, archive.content or None
        )

    @abstractmethod
    async def judge(self, trial: Trial) -> Score | Failure:
        """Return the score of a program's result."""


def without_guess(trial: Trial) -> Trial:
    """Return *trial* without a guessed limit: a guess explains a failure, and this trial has not failed."""
    execution = trial.execution
    return attrs.evolve(trial, execution=attrs.evolve(execution, limit=execution.struck, guessed=False))
