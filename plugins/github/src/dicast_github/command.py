"""The command ``dicast ci``: ``dicast run`` with the reports of the CI system."""

from __future__ import annotations

import os
import secrets
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import click
import orjson

from dicast import Problem, RequestError
from dicast.commands import run
from dicast.toolkit.atomic_file import AtomicFile, output_path
from dicast.toolkit.printable import one_line

from .annotations import data, of_problems
from .comment import BEGINS, read_documents, write_comment
from .junit import BEGINS as JUNIT_BEGINS
from .junit import merge_reports

JUNIT = "dicast-junit.xml"
"""Default path of the test report under GitLab."""

_APPENDED = ("--resume", "--watch")
"""Options of runs that leave out an experiment that is complete, or that have no end; their reports are written to the path itself."""


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--junit", metavar="PATH", help=f"Write a JUnit test report to PATH (junit/xml); {JUNIT} under GitLab by default."
)
@click.option(
    "--comment",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the comment for the pull request to this file: each label against the baseline, newly failing rows, cost.",
)
@click.option(
    "--against", metavar="RUN", help="The run that the comment compares with; by default the gate's baseline."
)
@click.option(
    "--report-url",
    metavar="URL",
    help="The address of the report, for links in the comment: to the page, and to each row that changed.",
)
@click.argument("options", nargs=-1, type=click.UNPROCESSED, metavar="[OPTIONS OF dicast run]")
def ci(
    file: Path,
    junit: str | None,
    comment: Path | None,
    against: str | None,
    report_url: str | None,
    options: tuple[str, ...],
) -> int:
    """Run a pipeline and report it to the CI system.

    Options and exit codes are the same as in dicast run. Under GitHub Actions the job's summary shows the run, and annotations show the gate and the subjects that did not pass. Under GitLab
    the log has a section, and artifacts:reports:junit gets a JUnit report. Elsewhere the output is the output of dicast run. The JUnit report of a
    suite has the suites of all experiments; with ${experiment} in the path each experiment has a report.
    """
    if comment is None:
        return _on_system(file, junit, options)
    AtomicFile(comment, replaces=BEGINS).discard()
    with tempfile.TemporaryDirectory() as folder:
        documents = Path(folder, "documents.jsonl")
        sink = {"github/documents": {"as": "ci-documents", "documents_path": str(documents)}}
        problems: Sequence[Problem] = ()
        try:
            return _on_system(file, junit, (*options, "--set", _added(sink)))
        except RequestError as error:
            problems = error.problems
            raise
        finally:
            name, experiments = one_line(file.as_posix()), read_documents(documents)
            write_comment(comment, name, experiments, baseline=against, url=report_url, problems=problems)


def _on_system(file: Path, junit: str | None, options: Sequence[str]) -> int:
    """Run the pipeline with the reports of the CI system that the environment names; return the exit code."""
    if os.environ.get("GITHUB_ACTIONS") == "true":
        return _on_github(file, junit, options)
    if os.environ.get("GITLAB_CI"):
        return _on_gitlab(file, junit, options)
    return _run(file, junit, options)


def _added(sink: Mapping[str, object]) -> str:
    """Return the setting that adds *sink* to the pipeline."""
    return f"sinks.+={orjson.dumps(sink).decode()}"


def _run(file: Path, junit: str | None, options: Sequence[str], *sinks: Mapping[str, object]) -> int:
    """Run ``dicast run`` with additional sinks and the test report *junit*; return its exit code.

    :raises ConfigError: if the test report cannot be written.
    """
    if junit is None:
        return _run_with(file, options, *sinks)
    if "$" in junit or any(option.partition("=")[0] in _APPENDED for option in options):
        return _run_with(file, options, *sinks, _report(junit))
    path = output_path(Path.cwd(), Path(junit), None)
    AtomicFile(path, replaces=JUNIT_BEGINS).discard()
    with tempfile.TemporaryDirectory() as folder:
        try:
            return _run_with(file, options, *sinks, _report(str(Path(folder, "${experiment:-run}.xml"))))
        finally:
            reports = sorted(Path(folder).rglob("*.xml"), key=lambda report: report.stat().st_mtime_ns)
            if reports:
                merge_reports(reports, path)


def _report(path: str) -> Mapping[str, object]:
    """Return the sink that writes a test report to *path*."""
    return {"junit/xml": {"as": "ci-junit", "path": path}}


def _run_with(file: Path, options: Sequence[str], *sinks: Mapping[str, object]) -> int:
    settings = [part for sink in sinks for part in ("--set", _added(sink))]
    code = run.main([str(file), *options, *settings], prog_name="dicast ci", standalone_mode=False)
    return int(code or 0)


def _on_github(file: Path, junit: str | None, options: Sequence[str]) -> int:
    with tempfile.TemporaryDirectory() as folder:
        annotations = Path(folder, "annotations")
        sink = {"github/summary": {"as": "ci-summary", "annotations_path": str(annotations)}}
        try:
            with _group(f"dicast run {file}", quiet="--json" in options):
                return _run(file, junit, options, sink)
        except RequestError as error:
            commands = [problem.command() for problem in of_problems(error.problems)]
            _print_bytes(*commands, quiet="--json" in options)
            raise
        finally:
            if annotations.is_file():
                _print_bytes(annotations.read_text(encoding="utf-8").rstrip("\n"), quiet="--json" in options)


@contextmanager
def _group(title: str, *, quiet: bool) -> Iterator[None]:
    """Fold the output of the block in GitHub's log. GitHub runs no workflow command of this output."""
    word = secrets.token_hex(16)
    _print_bytes(f"::group::{data(title)}", f"::stop-commands::{word}", quiet=quiet)
    try:
        yield
    finally:
        sys.stdout.flush()
        _print_bytes(f"::{word}::", "::endgroup::", quiet=quiet)


def _on_gitlab(file: Path, junit: str | None, options: Sequence[str]) -> int:
    quiet, name = "--json" in options, f"dicast_{secrets.token_hex(4)}"
    _print_bytes(
        f"\x1b[0Ksection_start:{int(time.time())}:{name}\r\x1b[0Kdicast run {one_line(str(file))}", quiet=quiet
    )
    path = junit or JUNIT
    try:
        code = _run(file, path, options)
    finally:
        sys.stdout.flush()
        _print_bytes(f"\x1b[0Ksection_end:{int(time.time())}:{name}\r\x1b[0K", quiet=quiet)
    click.echo(f"test report: {path} (artifacts:reports:junit)", err=quiet)
    return code


def _print_bytes(*lines: str, quiet: bool = False) -> None:
    """Print *lines* with their control codes; to standard error if *quiet*, as standard output has a document."""
    for line in lines:
        click.echo(line.encode("utf-8", "backslashreplace"), err=quiet)
