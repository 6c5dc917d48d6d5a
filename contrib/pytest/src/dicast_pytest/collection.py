"""Pipeline files as test files, with an item for each subject and one for the gate."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import pytest

from dicast import RequestError, Subject, subjects
from dicast.commands import pipeline_text
from dicast.toolkit.printable import one_line

from .sharing import RunResult, run_pipeline, shared

GATE = "gate"
"""Name of the item for the result of the whole run, if the pipeline has a gate."""
COVERAGE = "coverage"
"""Name of this item if the pipeline has no gate; it passes if the run judged enough of its subjects."""
_LONGEST = 80
_FOLDER = "dicast_folder"


class Failed(Exception):
    """An item that did not pass, with the reason."""


class Collection:
    """The plugin behind ``--dicast``, which collects pipeline files. The workers of xdist share one run of each file."""

    def __init__(self, config: pytest.Config) -> None:
        self._patterns: list[str] = config.getini("dicast_files")
        self._folder: Path | None = None

    def pytest_collect_file(self, file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
        """Collect a pipeline file that is named on the command line or fits a pattern of ``dicast_files``."""
        named = parent.session.isinitpath(file_path) and file_path.suffix in (".yaml", ".yml")
        if named or any(file_path.match(pattern) for pattern in self._patterns):
            return cast("pytest.Collector", PipelineFile.from_parent(parent, path=file_path))
        return None

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Pass the folder with shared results of runs to a worker of xdist."""
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="dicast-pytest-"))
        node.workerinput[_FOLDER] = str(self._folder)

    def pytest_unconfigure(self) -> None:
        """Delete the folder with shared results."""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)


class PipelineFile(pytest.File):
    """A pipeline file, which runs once for its selected subjects."""

    _run_result: RunResult | RequestError | None = None

    def collect(self) -> Iterator[pytest.Item]:
        """Yield an item for each subject, in the order of the source, and one for the gate, without judging anything."""
        if os.environ.get("DICAST_DISABLED", "") in ("", "0"):
            try:
                listed = subjects(self.path)
            except RequestError as error:
                raise self.CollectError("\n".join(one_line(str(problem)) for problem in error.problems)) from error
            for subject in listed:
                yield SubjectItem.from_parent(self, name=item_name(subject), subject=subject)
        yield GateItem.from_parent(self, name=GATE if _has_gate(self.path) else COVERAGE)

    def selected(self) -> list[Subject]:
        """Return the subjects of the selected items."""
        items = [item for item in self.session.items if isinstance(item, SubjectItem) and item.path == self.path]
        return [item.subject for item in items]

    def result_of_run(self) -> RunResult:
        """Return the result of the run, which the first call starts, once for all workers of xdist.

        :raises RequestError: on every call, if the request is wrong.
        """
        if self._run_result is None:
            try:
                self._run_result = self._run()
            except RequestError as error:
                self._run_result = error
        if isinstance(self._run_result, RequestError):
            raise self._run_result
        return self._run_result

    def _run(self) -> RunResult:
        chosen = self.selected()
        worker: Any = getattr(self.config, "workerinput", None)
        return run_pipeline(self.path, chosen) if worker is None else shared(Path(worker[_FOLDER]), self.path, chosen)


class _PipelineItem(pytest.Item):
    """An item that shows its failure as a message, without a traceback."""

    parent: PipelineFile

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Return the message of a failure."""
        if isinstance(excinfo.value, Failed):
            return "\n".join(one_line(line) for line in str(excinfo.value).split("\n"))
        if isinstance(excinfo.value, RequestError):
            return "\n".join(one_line(str(problem)) for problem in excinfo.value.problems)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Return the file and the item's name."""
        return self.path, None, f"{self.path.name}: {self.name}"


class SubjectItem(_PipelineItem):
    """One subject. It fails if a counted label has a failure for it, or a score below its ``pass_at``."""

    def __init__(self, *, subject: Subject, **options: Any) -> None:
        super().__init__(**options)
        self.subject = subject

    def runtest(self) -> None:
        """Report the result of the subject.

        :raises Failed: if it did not pass.
        """
        run_result = self.parent.result_of_run()
        result = run_result.of(self.subject.kind, self.subject.id)
        if result is None:
            if run_result.is_refused:
                raise Failed(f"not judged: {run_result.stopped}")
            pytest.skip(f"not judged: {run_result.stopped or 'no metric or judge takes it'}")
        self.user_properties += [(one_line(f"dicast_{label}"), score) for label, score in result["scores"].items()]
        if result["skipped"]:
            pytest.skip(one_line(result["skipped"]))
        if result["why"]:
            raise Failed(f"{result['why']}\n\ndicast show {one_line(self.subject.id)} --run {run_result.run_id}")


class GateItem(_PipelineItem):
    """The gate of the whole run, or its coverage for a pipeline without a gate. It passes if ``dicast run`` exits with 0."""

    def runtest(self) -> None:
        """Report the result of the run.

        :raises Failed: if the gate failed, the run is undecided, or a sink lost data.
        """
        run_result = self.parent.result_of_run()
        if run_result.is_disabled:
            pytest.skip("disabled: nothing was judged")
        if run_result.is_part:
            pytest.skip(
                f"the {self.name} is about all subjects, and {len(self.parent.selected()):,} of them were judged"
            )
        if run_result.gate:
            raise Failed(f"{run_result.gate}\n\ndicast show {run_result.run_id}")


def _has_gate(file: Path) -> bool:
    """Return whether the pipeline in *file* or one of its experiments has a gate; True for an unreadable file."""
    try:
        sections = pipeline_text(file)
    except RequestError:
        return True
    experiments = sections.get("experiments")
    all_sections = [sections, *(experiments.values() if isinstance(experiments, Mapping) else ())]
    return any(isinstance(section, Mapping) and section.get("gate") is not None for section in all_sections)


def item_name(subject: Subject) -> str:
    """Return the name of the subject's item, such as ``row:capital-4``: one line, and the same in each run.

    A long id is cut, and ``::`` and ``[``, which separate parts of names in pytest, are replaced. A changed id gets a digest.
    """
    text = one_line(subject.id).replace("::", ":.").replace("[", "(")[:_LONGEST]
    text = f".{text[1:]}" if text.startswith(":") else text  # after the kind's colon
    if text != subject.id:
        digest = hashlib.sha256(subject.id.encode("utf-8", "surrogatepass")).hexdigest()[:8]
        text = f"{text}…{digest}"
    return f"{subject.kind}:{text}"
