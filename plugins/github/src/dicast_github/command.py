"""The command ``dicast ci``: ``dicast run`` or ``dicast merge`` with the reports of the CI system."""

from __future__ import annotations

import os
import secrets
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import attrs
import click
import orjson

from dicast import LedgerError, RequestError
from dicast.commands import CallingCommand, merge_shards, requires, run, sigterm_as_ctrl_c, unrecorded_words
from dicast.reporting import code
from dicast.toolkit.atomic_file import output_path
from dicast.toolkit.files import error_reason
from dicast.toolkit.printable import one_line

from .annotations import data, of_problems
from .comment import FORK, Comment, read_documents, write_progress
from .junit import mark_of, merge_reports, refuse_other_pipeline, write_skipped
from .summary import append

JUNIT = "dicast-junit.xml"
"""Default path of the test report under GitLab."""

_INTERRUPTED = "the run was interrupted before its first result"
_INTERRUPT_CODE, _REFUSAL_CODE = 130, 2


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
    "--against",
    metavar="RUN",
    help="Run to compare with in the comment: a run, a saved baseline's name, or a file in the current folder or the pipeline's folder. By default the gate's baseline.",
)
@click.option(
    "--report-url",
    metavar="URL",
    help="The address of the report, for links in the comment: to the page, and to each row that changed.",
)
@click.option(
    "--merge",
    "merges",
    is_flag=True,
    help="Merge the shards of FILE as dicast merge does: LEDGER... and the options of dicast merge follow.",
)
@click.argument("options", nargs=-1, type=click.UNPROCESSED, metavar="[OPTIONS OF dicast run]")
@requires(against="comment", report_url="comment")
def ci(
    file: Path,
    junit: str | None,
    comment: Path | None,
    against: str | None,
    report_url: str | None,
    merges: bool,
    options: tuple[str, ...],
) -> int:
    """Run a pipeline and report it to the CI system.

    Options and exit codes are the same as in dicast run. Under GitHub Actions the job's summary shows the run, and annotations show the gate and the subjects that did not pass. Under GitLab
    the log has a section, and artifacts:reports:junit gets a JUnit report. Elsewhere the output is the output of dicast run. The JUnit report of a
    suite has the suites of all experiments; with ${experiment} in the path each experiment has a report. A shard has no reports: with --merge
    the merged run has them.
    """
    flags = _flags(junit=junit, comment=comment, against=against, report_url=report_url)
    request = _Options(options, flags, merges=merges)
    if request.has("--shard") and (comment is not None or junit is not None):
        raise click.UsageError(
            "--shard judges a part of the subjects, which has no comment and no test report; remove --comment and --junit, "
            "and give them to dicast ci FILE --merge LEDGER..."
        )
    with sigterm_as_ctrl_c():
        if comment is None:
            return _on_system(file, junit, request)
        if request.has("--head"):
            raise click.UsageError("--head N tries rows without a comment; remove --head or --comment")
        with tempfile.TemporaryDirectory() as folder:
            target = Comment(comment, against, report_url, is_fork=_is_of_fork(), merges=merges)
            return _with_comment(file, junit, request, target, folder)


def _is_of_fork() -> bool:
    """Return whether the job is of a pull request from a fork on GitHub; False if the job's event is not known."""
    if os.environ.get("GITHUB_ACTIONS") != "true":
        return False
    from .posting import read_pull_request  # importing the client of endpoints is slow

    try:
        pull_request = read_pull_request(os.environ, None)
    except RequestError as error:  # the comment has no note about forks then
        click.echo(f"the event of the job is not known: {error}", err=True)
        return False
    return pull_request is not None and pull_request.is_fork


def _flags(**values: str | Path | None) -> list[str]:
    """Return the options of ``dicast ci`` that have values, for a command that resumes the run."""
    texts = {name.replace("_", "-"): str(value) for name, value in values.items() if value is not None}
    return [word for name, text in texts.items() for word in (f"--{name}", text)]


def _with_comment(file: Path, junit: str | None, options: _Options, comment: Comment, folder: str) -> int:
    """Run the pipeline, collect the documents of its runs in *folder*, and write the *comment*, with the reason if nothing was judged.

    Before the run the comment is written without a result, so that a process that ends early leaves no older comment.
    """
    documents, reasons, name = Path(folder, "documents.jsonl"), list[str](), _from_here(one_line(file.as_posix()))
    write_progress(
        comment.path,
        name,
        ["no shard was merged" if options.merges else "no subject was judged", _again(name, merges=options.merges)],
    )
    is_interrupted = False
    path, target = str(documents), str(comment.path.absolute())
    texts = {"documents_path": path, "comment_path": target, "pipeline": name, "against": comment.baseline}
    settings = {
        **texts,
        "flags": [flag.replace("${", "$${") for flag in options.printed_flags()],
    }  # "${" as the user wrote it
    sink = {"github/documents": {"as": "ci-documents", **settings}}
    try:
        code = _on_system(file, junit, options.with_sinks(sink))
        reasons = [_unjudged(code)]
        return code
    except RequestError as error:
        reasons = [str(problem) for problem in error.problems]
        raise
    except (KeyboardInterrupt, click.Abort):  # a second signal: the run has no document
        reasons, is_interrupted = [_INTERRUPTED], True
        raise
    except Exception as error:
        reasons = [_fault(error)]
        raise
    finally:
        try:
            lines = [_from_here(one_line(reason)) for reason in reasons]
            comment.write(name, read_documents(documents), lines, is_interrupted=is_interrupted)
        except KeyboardInterrupt:
            click.echo(f"{comment.path}: the comment has no result, because the command was interrupted", err=True)
            raise


def _again(name: str, *, merges: bool) -> str:
    """Return the next step after the end of a command that judged nothing; *name* is the pipeline file."""
    return f"next: {code(f'dicast ci {name}' + ' --merge' * merges)} with the same options"


def _fault(error: Exception) -> str:
    """Return the reason why *error* ended the command: its message if dicast wrote it, else its type, because a message may quote data."""
    if isinstance(error, LedgerError):
        return f"the ledger cannot be used: {error}"
    if isinstance(error, click.ClickException):
        return f"the command is wrong: {error.format_message()}"
    if isinstance(error, OSError):
        name = f"{error.filename}: " if error.filename else ""
        return f"{name}{error_reason(error)}; free space, or correct the path and its permissions"
    return f"dicast failed with {type(error).__name__}; the job's log has the message and the next step"


def _from_here(text: str) -> str:
    """Return *text* with paths below the working directory relative to it: a comment has no paths of the runner."""
    return text.replace(f"{Path.cwd().as_posix()}/", "")


def _unjudged(code: int) -> str:
    """Return the reason why a run with the exit *code* has no document."""
    if code == _INTERRUPT_CODE:
        return _INTERRUPTED
    if code:
        return f"the run ended with exit code {code} before its first result; the job's log has the reason"
    if os.environ.get("DICAST_DISABLED", "") not in ("", "0"):
        return "DICAST_DISABLED is set: nothing was read, and the gate has no answer"
    return "the pipeline has disabled: true, or no experiment was left to judge; the gate has no answer"


@attrs.frozen
class _Options:
    """Options of ``dicast run``, or of ``dicast merge`` if *merges*: *words* by the user, *settings* by ``dicast ci``.

    A printed command has the *flags* of ``dicast ci``, too.
    """

    words: Sequence[str]
    flags: Sequence[str] = ()
    settings: Sequence[str] = ()
    merges: bool = False

    @property
    def title(self) -> str:
        """The command that is called."""
        return "dicast merge" if self.merges else "dicast run"

    def has(self, *names: str) -> bool:
        """Return whether any of the *words* is an option in *names*."""
        return any(word.partition("=")[0] in names for word in self.words)

    def printed_flags(self) -> list[str]:
        """Return the options that a command for the next run needs, next to the options that ``run.started`` records."""
        return [*unrecorded_words(self.words, merges=self.merges), *self.flags]

    def with_sinks(self, *sinks: Mapping[str, object]) -> _Options:
        """Return the options with *sinks*."""
        return attrs.evolve(self, settings=[*self.settings, *map(_added, sinks)])


def _on_system(file: Path, junit: str | None, options: _Options) -> int:
    """Run the pipeline with the reports of the CI system that the environment names; return the exit code."""
    if os.environ.get("GITHUB_ACTIONS") == "true":
        return _on_github(file, junit, options)
    if os.environ.get("GITLAB_CI"):
        return _on_gitlab(file, junit, options)
    return _run(file, junit, options)


def _added(sink: Mapping[str, object]) -> str:
    """Return the setting that adds *sink* to the pipeline."""
    return f"sinks.+={orjson.dumps(sink).decode()}"


def _run(file: Path, junit: str | None, options: _Options, *sinks: Mapping[str, object]) -> int:
    """Run ``dicast run`` with additional sinks and the test report *junit*; return its exit code.

    :raises ConfigError: if the test report cannot be written, or if its file has the report on another pipeline.
    """
    if junit is None:
        return _run_with(file, options, *sinks)
    if "$" in junit or options.has("--watch"):  # a watched run has no end
        return _run_with(file, options, *sinks, _report(junit))
    path, mark = output_path(Path.cwd(), Path(junit), None), mark_of(_from_here(one_line(file.as_posix())))
    refuse_other_pipeline(path, mark)
    with tempfile.TemporaryDirectory() as folder:
        try:
            exit_code = _run_with(file, options, *sinks, _report(str(Path(folder, "${experiment:-run}.xml"))))
        finally:
            reports = sorted(Path(folder).rglob("*.xml"), key=lambda report: report.stat().st_mtime_ns)
            if reports:
                merge_reports(reports, path, mark)
        if not exit_code and not reports:  # a later step of the job may need the file
            write_skipped(path, file.stem, _unjudged(exit_code), mark)
        return exit_code


def _report(path: str) -> Mapping[str, object]:
    """Return the sink that writes a test report to *path*."""
    return {"junit/xml": {"as": "ci-junit", "path": path}}


def _run_with(file: Path, options: _Options, *sinks: Mapping[str, object]) -> int:
    options = options.with_sinks(*sinks)
    settings = [part for setting in options.settings for part in ("--set", setting)]
    caller = CallingCommand(("dicast", "ci"), options.settings, options.flags, file)
    if options.merges:
        code = merge_shards.main(
            [*options.words], prog_name="dicast ci FILE --merge", standalone_mode=False, obj=caller
        )
        return int(code or 0)
    try:
        code = run.main(
            [str(file), *options.words, *settings], prog_name="dicast ci", standalone_mode=False, obj=caller
        )
    except RequestError as error:
        raise _with_flags(error, options) from error
    return int(code or 0)


def _with_flags(error: RequestError, options: _Options) -> RequestError:
    """Return *error* with the option ``--junit`` in place of ``--set`` for its sink, which the user has not set."""
    if any("sinks" in word for word in options.words):
        return error
    problems = [
        attrs.evolve(problem, file="--junit", path=None)
        if problem.file == "--set" and str(problem.path).startswith("sinks") and "junit" in problem.message
        else problem
        for problem in error.problems
    ]
    return error if problems == [*error.problems] else type(error)(problems)


def _on_github(file: Path, junit: str | None, options: _Options) -> int:
    with tempfile.TemporaryDirectory() as folder:
        annotations = Path(folder, "annotations")
        sink = {"github/summary": {"as": "ci-summary", "annotations_path": str(annotations)}}
        try:
            with _group(f"{options.title} {file}", quiet="--json" in options.words):
                exit_code = _run(file, junit, options, sink)
            if exit_code == _REFUSAL_CODE and _is_of_fork():
                click.echo(FORK, err=True)
            return exit_code
        except RequestError as error:
            commands = [problem.command() for problem in of_problems(error.problems)]
            _print_bytes(*commands, quiet="--json" in options.words)
            _report_refusal(file, error, is_fork=_is_of_fork())
            raise
        finally:
            if annotations.is_file():
                _print_bytes(annotations.read_text(encoding="utf-8").rstrip("\n"), quiet="--json" in options.words)


def _report_refusal(file: Path, error: RequestError, *, is_fork: bool) -> None:
    """Append the problems of a refused *file* to the job's summary. For a fork's job, print that it has no secrets and cannot post a comment."""
    notes = [FORK] if is_fork else []
    for note in notes:
        click.echo(note, err=True)
    if path := os.environ.get("GITHUB_STEP_SUMMARY"):
        problems = [f"- {code(_from_here(one_line(str(problem))), 1_000)}" for problem in error.problems]
        title = f"## {code(one_line(file.as_posix()))}: nothing was judged"
        text = "\n\n".join([title, "\n".join(problems), *notes])
        append(Path(path), lambda size: f"{text}\n" if len(text.encode(errors="backslashreplace")) < size else "")


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


def _on_gitlab(file: Path, junit: str | None, options: _Options) -> int:
    quiet, name = "--json" in options.words, f"dicast_{secrets.token_hex(4)}"
    _print_bytes(
        f"\x1b[0Ksection_start:{int(time.time())}:{name}\r\x1b[0K{options.title} {one_line(str(file))}", quiet=quiet
    )
    path = junit or (None if options.has("--shard") else JUNIT)
    try:
        code = _run(file, path, options)
    finally:
        sys.stdout.flush()
        _print_bytes(f"\x1b[0Ksection_end:{int(time.time())}:{name}\r\x1b[0K", quiet=quiet)
    if path is not None:
        click.echo(f"test report: {path} (artifacts:reports:junit)", err=quiet)
    return code


def _print_bytes(*lines: str, quiet: bool = False) -> None:
    """Print *lines* with their control codes; to standard error if *quiet*, as standard output has a document."""
    for line in lines:
        click.echo(line.encode("utf-8", "backslashreplace"), err=quiet)
