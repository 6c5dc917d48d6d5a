"""Base of the metrics that run tests: the isolation of the candidate, and the runner's report."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import attrs

from dicast import ConfigError, Execution, Program
from dicast.toolkit.files import read_bytes

from ..commands.discovery import find_test_command
from ..commands.words import executed_words
from ..inside import CALLED, CALLING, read_source
from ..suites.reports import Counts, Report, detect_runner, read_report, with_report
from ..workspace.archive import Archive
from ..workspace.workspace import Workspace, takes_output
from .bench import NO_COMMAND, TAIL_CHARACTERS, Trial
from .metric import SandboxMetric

FORGEABLE_CONFIDENCE = 0.5
"""Largest confidence of a score that the candidate could have forged, because it ran in one process with its tests."""

_STARRED = r"^[ \t]*(from[ \t]+(?:[\w.]*\.)?{}[ \t]+import[ \t]+\*)"
_SERVER = ".dicast/candidate.py"
_VALUES = ".dicast/candidate_values.py"


@attrs.frozen(kw_only=True)
class SuiteMetric(SandboxMetric):
    """The options of every metric that runs tests.

    :param command: a text for the shell, or a list of words. It starts in the workspace. Without it, the workspace without
        the candidate determines the command, by the first match: a Python project, or tests of one (``python3 -m pytest``), ``package.json``
        with a script ``test`` (``npm test``), ``Cargo.toml`` (``cargo test``), ``go.mod`` (``go test ./...``), a Makefile with a target
        ``test`` (``make test``). Without a match it is an error.
    :param mode: ``shared``: the candidate's code is part of the tests' process, and could forge any result: the score has
        ``forgeable: true`` in its signals and a confidence of .5 at most. ``isolated``: the code runs in a sandbox of its own; in the
        tests' sandbox a module of the same name calls its functions there, with plain values.
    :param candidate_files: under ``isolated``, the files and folders of ``template`` or ``repository`` that the candidate's sandbox has
        too, such as modules that it imports. By default there are none, because the tests may be among them; under ``output_as: patch`` all.
    :param candidate: under ``isolated``, the command that runs a candidate that is not a Python module: the tests talk to its
        stdin and stdout by the socket in the environment variable ``DICAST_PEER_FD``.
    :param report: the kind of report of the command: ``pytest``, ``unittest``, ``junit``, ``tap``, ``cargo``, ``go``, ``jest``,
        ``vitest``, ``node``, or ``none``: the exit code alone counts. By default it is detected by the command's name.
    :param report_file: the file in the workspace to which the command writes JUnit XML.
    """

    command: str | tuple[str, ...] | None = None
    mode: Literal["shared", "isolated"] = "shared"
    candidate: str | tuple[str, ...] | None = None
    candidate_files: tuple[str, ...] | None = None
    report: Report | None = None
    report_file: str | None = None

    def __attrs_post_init__(self) -> None:
        if (self.report_kind == "junit") != (self.report_file is not None):
            raise ConfigError("report: junit and report_file need each other; set both")
        for name in ("candidate", "candidate_files"):
            if self.mode == "shared" and getattr(self, name) is not None:
                raise ConfigError(f"{name} needs mode: isolated")
        if self.mode == "isolated":
            self._check_isolated()
        super().__attrs_post_init__()
        if self.command is None:
            self._check_test_command()

    def _check_test_command(self) -> None:
        """Check that the test command can be detected, if the workspace is the same for all subjects."""
        if self.repository is not None or isinstance(self.files, str):
            return
        files = {name: file_text.encode(errors="surrogatepass") for name, file_text in (self.files or {}).items()}
        places = (
            {} if self.template is None else {str(p.relative_to(self.template)): p for p in self.template.rglob("*")}
        )
        read_file = lambda name: files[name] if name in files else read_bytes(places[name])  # noqa: E731
        if find_test_command({*files, *places}, read_file) is None:
            raise ConfigError(NO_COMMAND)

    def _check_isolated(self) -> None:
        if takes_output(self.files):
            raise ConfigError("mode: isolated keeps the output out of the tests' sandbox, but one of the files uses it")
        for name, content in self.files.items() if isinstance(self.files, Mapping) else ():
            if starred := re.search(_STARRED.format(re.escape(Path(self.output_file).stem)), content, re.MULTILINE):
                raise ConfigError(
                    f"mode: isolated: the file {name!r} has {starred[1]!r}, which imports no names of the candidate; "
                    "name what it imports"
                )
        for name in self.candidate_files or ():
            if self.template is None and self.repository is None:
                raise ConfigError("candidate_files needs a template or a repository; set one of them")
            if self.template is not None and not (self.template / name).exists():
                raise ConfigError(f"candidate_files: the template {self.template} has no {name!r}")
        if self.candidate is None and Path(self.output_file).suffix != ".py":
            raise ConfigError(
                f"mode: isolated calls Python functions in output_file, and {self.output_file!r} is not a Python file: "
                "set the command that runs the candidate as 'candidate'"
            )

    @property
    def commands(self) -> tuple[str | tuple[str, ...], ...]:
        """Return the command of the tests, and under ``isolated`` that of the candidate."""
        return (*super().commands, *([self.candidate or ("python3",)] if self.mode == "isolated" else []))

    @property
    def report_kind(self) -> Report:
        """Return the kind of report of the command."""
        return detect_runner(self.command or ()) if self.report is None else self.report

    @property
    def forgeable(self) -> bool:
        """Return whether the candidate could have forged its score."""
        return self.mode == "shared"

    def read_counts(self, execution: Execution) -> Counts | None:
        """Return the numbers of tests that passed and failed; None if there is no readable report."""
        return read_report(self.report_kind, execution)

    def details(self, trial: Trial, suffix: str) -> str:
        """Return the details of *trial*, with the end of the output of a candidate that failed."""
        messages = trial.execution.beside.strip()[-TAIL_CHARACTERS:]
        return trial.details(suffix) + (f"\nThe candidate wrote:\n{messages}" if messages else "")

    def program(self, workspace: Workspace, archive: Archive, written: Mapping[str, bytes]) -> Program:
        """Return the program of the tests; under ``isolated`` the candidate is in the workspace of its peer."""
        if self.mode == "shared":
            return self._with_report(super().program(workspace, archive, written))
        content = self._candidate_archive(archive)
        if self.candidate is not None:
            proxy_files, peer = {}, Program(executed_words(self.candidate), self.limits, written, content)
        else:
            proxy_files = {self.output_file: read_source(CALLING), _VALUES: read_source(CALLED)}
            server = ("python3", _SERVER, self.output_file)
            peer = Program(server, self.limits, {**written, _SERVER: read_source(CALLED)}, content)
        return attrs.evolve(self._with_report(super().program(workspace, workspace.archive, proxy_files)), peer=peer)

    def _with_report(self, program: Program) -> Program:
        return with_report(self.report_kind, program, self.command or (), self.report_file)

    def _candidate_archive(self, archive: Archive) -> bytes | None:
        """Return the part of *archive* for the candidate's own sandbox."""
        if self.candidate_files is None:
            return (archive.content or None) if self.output_as == "patch" else None
        folders = tuple(f"{name.rstrip('/')}/" for name in self.candidate_files)
        hidden = {name: None for name in archive.members if not f"{name}/".startswith(folders)}
        return archive.with_files(hidden).content or None
