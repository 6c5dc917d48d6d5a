"""Pipeline files as test files: each subject is an item, and the gate is one."""

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

from .sharing import Told, shared, told_of

GATE = "gate"
"""The name of the item of a whole run, where the file has a gate."""
COVERAGE = "coverage"
"""Its name without a gate: then the coverage alone can leave a run undecided."""
_LONGEST = 80
_FOLDER = "dicast_folder"


class Failed(Exception):
    """An item did not pass, and why."""


class Collection:
    """The plugin that ``--dicast`` brings: it collects pipeline files, and has one run of each shared by the workers of xdist."""

    def __init__(self, config: pytest.Config) -> None:
        self._patterns: list[str] = config.getini("dicast_files")
        self._folder: Path | None = None

    def pytest_collect_file(self, file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
        """Collect a pipeline file that is named on the command line, or fits a pattern of ``dicast_files``."""
        named = parent.session.isinitpath(file_path) and file_path.suffix in (".yaml", ".yml")
        if named or any(file_path.match(pattern) for pattern in self._patterns):
            return cast("pytest.Collector", PipelineFile.from_parent(parent, path=file_path))
        return None

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Tell a worker of xdist where the workers share what runs came to."""
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="dicast-pytest-"))
        node.workerinput[_FOLDER] = str(self._folder)

    def pytest_unconfigure(self) -> None:
        """Let go of that folder."""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)


class PipelineFile(pytest.File):
    """A pipeline file, which is run once for those of its subjects that were selected."""

    _told: Told | RequestError | None = None

    def collect(self) -> Iterator[pytest.Item]:
        """An item a subject, in the order of the source, and the gate. Nothing is judged."""
        if os.environ.get("DICAST_DISABLED", "") in ("", "0"):
            try:
                listed = subjects(self.path)
            except RequestError as error:
                raise self.CollectError("\n".join(one_line(str(problem)) for problem in error.problems)) from error
            for subject in listed:
                yield SubjectItem.from_parent(self, name=item_name(subject), subject=subject)
        yield GateItem.from_parent(self, name=GATE if _has_gate(self.path) else COVERAGE)

    def selected(self) -> list[Subject]:
        """The subjects whose items are going to be run, and the parts that they are judged by."""
        items = [item for item in self.session.items if isinstance(item, SubjectItem) and item.path == self.path]
        return [item.subject for item in items]

    def told(self) -> Told:
        """What the run came to: in one process, or for all workers of xdist, it is made when it is first asked for.

        :raises RequestError: when the request is wrong, which is found once.
        """
        if self._told is None:
            try:
                self._told = self._run()
            except RequestError as error:
                self._told = error
        if isinstance(self._told, RequestError):
            raise self._told
        return self._told

    def _run(self) -> Told:
        chosen = self.selected()
        worker: Any = getattr(self.config, "workerinput", None)
        return told_of(self.path, chosen) if worker is None else shared(Path(worker[_FOLDER]), self.path, chosen)


class _PipelineItem(pytest.Item):
    """An item whose failure is told in words."""

    parent: PipelineFile

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Why it did not pass, without a trace of the code that says so."""
        if isinstance(excinfo.value, Failed):
            return "\n".join(one_line(line) for line in str(excinfo.value).split("\n"))
        if isinstance(excinfo.value, RequestError):
            return "\n".join(one_line(str(problem)) for problem in excinfo.value.problems)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """The file and the item's name."""
        return self.path, None, f"{self.path.name}: {self.name}"


class SubjectItem(_PipelineItem):
    """One subject; it fails where a label that counts has a failure for it, or a score under its ``pass_at``."""

    def __init__(self, *, subject: Subject, **more: Any) -> None:
        super().__init__(**more)
        self.subject = subject

    def runtest(self) -> None:
        """Say what became of the subject.

        :raises Failed: when it did not pass.
        """
        told = self.parent.told()
        found = told.of(self.subject.kind, self.subject.id)
        if found is None:
            if told.is_refused:
                raise Failed(f"not judged: {told.stopped}")
            pytest.skip(f"not judged: {told.stopped or 'no metric or judge takes it'}")
        self.user_properties += [(one_line(f"dicast_{label}"), score) for label, score in found["scores"].items()]
        if found["skipped"]:
            pytest.skip(one_line(found["skipped"]))
        if found["why"]:
            raise Failed(f"{found['why']}\n\ndicast show {one_line(self.subject.id)} --run {told.run_id}")


class GateItem(_PipelineItem):
    """The gate of the whole run, or its coverage where the file has no gate; it passes where ``dicast run`` ends with 0."""

    def runtest(self) -> None:
        """Fail where the run did.

        :raises Failed: when the gate failed, the run is undecided, or a sink lost data.
        """
        told = self.parent.told()
        if told.is_disabled:
            pytest.skip("disabled: nothing was judged")
        if told.is_part:
            pytest.skip(
                f"the {self.name} is about all subjects, and {len(self.parent.selected()):,} of them were judged"
            )
        if told.gate:
            raise Failed(f"{told.gate}\n\ndicast show {told.run_id}")


def _has_gate(file: Path) -> bool:
    """Return whether the pipeline in *file* has a gate, of its own or in an experiment; True where that cannot be read."""
    try:
        sections = pipeline_text(file)
    except RequestError:
        return True
    experiments = sections.get("experiments")
    each = [sections, *(experiments.values() if isinstance(experiments, Mapping) else ())]
    return any(isinstance(one, Mapping) and one.get("gate") is not None for one in each)


def item_name(subject: Subject) -> str:
    """The name of the subject's item, ``row:capital-4``: the same in each run, in one line.

    A long id is cut; it has no ``::`` and no ``[``, by which pytest takes names apart. One that was changed for it has a digest.
    """
    shown = one_line(subject.id).replace("::", ":.").replace("[", "(")[:_LONGEST]
    shown = f".{shown[1:]}" if shown.startswith(":") else shown  # behind the kind's colon
    if shown != subject.id:
        digest = hashlib.sha256(subject.id.encode("utf-8", "surrogatepass")).hexdigest()[:8]
        shown = f"{shown}…{digest}"
    return f"{subject.kind}:{shown}"
