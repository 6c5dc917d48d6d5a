"""The pipelines of an import: one for all sessions, and one for each file of rows."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from .._init.choice import for_turns
from .._init.draft import Wishes, drafted
from .._init.written import FileSection, escaped, file_text, one_comment, refuse_existing
from .._kernel.api.subjects import subjects
from .._kernel.values.errors import DataError
from .inspection import FileOptions, ImportedFile

_LIMITS = "trajectory/limits"
JOINED, SAMPLED = "traces/joined", "traces/sample"
_MOST_NAMES = 6
"""The number of tools, and of recorded scores, that the written pipeline names."""


@attrs.frozen
class Sampling:
    """A sample of the sessions: its *size*, None for all sessions, and the stratum *by* which it is drawn."""

    size: int | None = None
    by: str | None = None


def pipelines(
    paths: Sequence[Path], files: Sequence[ImportedFile], out: Path, request: FileOptions, sampling: Sampling
) -> Mapping[Path, str]:
    """Return the texts of the pipelines by their paths, the pipeline of the sessions first.

    :raises ConfigError: if a file would be overwritten, or a column of rows has to be named.
    """
    sessions, scored = _judged(files)
    rows = [file for file in files if file.is_known and file.is_table]
    drafts: dict[Path, str] = {}
    if sessions:
        drafts[out] = _of_sessions(paths, sessions, files, out, request, sampling)
    if scored:
        drafts[_free(out, "results", drafts)] = _of_results(paths, scored, files, out, request, sampling)
    for file in rows:
        target = _free(out, file.path.name.partition(".")[0], drafts)
        reading = {} if request.encoding is None else {"encoding": request.encoding}
        drafts |= drafted(file.path, target, Wishes("rows", (), None, reading)).files
    refuse_existing(drafts)
    return drafts


def check_sample(
    paths: Sequence[Path], files: Sequence[ImportedFile], out: Path, request: FileOptions, sampling: Sampling
) -> None:
    """Draw the sample once, as a run of each written pipeline does.

    :raises DataError: if the sample cannot be drawn, with the reason of the run.
    """
    for chosen in filter(None, _judged(files)):
        source = _source(paths, chosen, files, Path.cwd() / out.name, request, sampling)
        try:
            subjects({"source": escaped(source), "metrics": ["proxy/format"]})
        except DataError as error:
            options = f"--sample {sampling.size}" + ("" if sampling.by is None else f" --by {sampling.by}")
            raise DataError(
                attrs.evolve(problem, path=None, file=problem.file or options) for problem in error.problems
            ) from error


def _judged(files: Sequence[ImportedFile]) -> tuple[list[ImportedFile], list[ImportedFile]]:
    """Return the files of sessions, and the files of results of other tools."""
    readable = [file for file in files if file.is_known]
    sessions = [file for file in readable if file.has_sessions]
    return sessions, [file for file in readable if not file.has_sessions and not file.is_table]


def _free(out: Path, name: str, drafts: Mapping[Path, str]) -> Path:
    """Return *out* for the first pipeline, and for other pipelines a path with *name* that is not in *drafts*."""
    if not drafts:
        return out
    path, times = out.with_stem(f"{out.stem}-{name}"), 1
    while path in drafts:
        times += 1
        path = out.with_stem(f"{out.stem}-{name}-{times}")
    return path


def _of_sessions(
    paths: Sequence[Path], chosen: Sequence[ImportedFile], files: Sequence[ImportedFile], out: Path, request: FileOptions,
    sampling: Sampling,
) -> str:  # fmt: skip
    source = _source(paths, chosen, files, out, request, sampling)
    choice = for_turns(next(iter(source)))
    about = [f"Files: {_formats(chosen)}"]
    *judging, gate = choice.sections
    comments = [*gate.comments, *_about_recorded(chosen)]
    gate = attrs.evolve(gate, data={"gate": [gate.data["gate"]]}, comments=comments)  # the limits add a clause
    sections = [FileSection({"name": _name(paths)}), FileSection({"source": source}, about), *judging, gate]
    tools = sum((Counter(file.counts.tools) for file in chosen), Counter[str]())
    forbidden = {"forbidden": [min(tools, key=lambda tool: (tools[tool], tool))]} if tools else {}
    example = {
        "gate": [{"on": _LIMITS, "min_pass_rate": 1}],
        "metrics": [{_LIMITS: {"max_errors": 3, "max_repeats": 2, **forbidden}}],
    }
    comments = [
        "Limits of the tool calls, without a model (extra trajectory). Remove the marks of the lines after these comments:",
        "a turn that breaks a limit then fails the gate.",
    ]
    if tools:
        names = ", ".join(one_comment(tool, 40) for tool, _ in tools.most_common(_MOST_NAMES))
        ellipsis = ", …" * (len(tools) > _MOST_NAMES)
        comments.append(f"forbidden has names of tools. The files call {names}{ellipsis}.")
    return file_text(_head(out), [*sections, FileSection(example, comments, active=False, continues=True)])


def _about_recorded(files: Sequence[ImportedFile]) -> list[str]:
    """Return the comments about the scores that other tools recorded in *files*; empty without such scores."""
    scores = sum((Counter(file.counts.recorded_scores) for file in files), Counter[str]())
    names = [one_comment(f"recorded/{name}", 60) for name, _ in scores.most_common(_MOST_NAMES)]
    if not names:
        return []
    ellipsis = ", …" * (len(scores) > _MOST_NAMES)
    return [
        f"The files have scores of other tools: {', '.join(names)}{ellipsis}.",
        f"They enter the gate only by name, in a clause of their own: on: {names[0]}.",
    ]


def _of_results(
    paths: Sequence[Path], chosen: Sequence[ImportedFile], files: Sequence[ImportedFile], out: Path, request: FileOptions,
    sampling: Sampling,
) -> str:  # fmt: skip
    source = _source(paths, chosen, files, out, request, sampling)
    about = [f"Files: {_formats(chosen)}"]
    comments = ["The form of the outputs. The scores that the tool recorded are verdicts of their own: recorded/NAME."]
    sections = [
        FileSection({"name": f"{_name(paths)}-results"}),
        FileSection({"source": source}, about),
        FileSection({"metrics": ["proxy/format"]}, comments),
    ]
    return file_text(_head(out), sections)


def _head(out: Path) -> list[str]:
    return [
        "Written by dicast import. Paths are relative to this file; the recorded files are read and never changed.",
        f"dicast check {out.name} checks this file, dicast run {out.name} runs it.",
    ]


def _name(paths: Sequence[Path]) -> str:
    return one_comment(paths[0].resolve().name.partition(".")[0] or "import", 40)


def _formats(files: Sequence[ImportedFile]) -> str:
    counts: dict[str, int] = {}
    for file in files:
        counts[file.component] = counts.get(file.component, 0) + 1
    return ", ".join(f"{count:,} {name}" for name, count in counts.items())


def _source(
    paths: Sequence[Path], chosen: Sequence[ImportedFile], files: Sequence[ImportedFile], out: Path, request: FileOptions,
    sampling: Sampling,
) -> dict[str, Any]:  # fmt: skip
    """Return the source of all *chosen* files. It reads a folder if all files of a format in the folder are chosen, else each file."""
    sources: list[dict[str, Any]] = []
    for path in paths:
        inside = [file for file in chosen if file.path == path or path in file.path.parents]
        for component, options in _groups(inside):
            group = [file for file in inside if (file.component, file.options) == (component, options)]
            reads_folders = component in dict(request.sources) and not component.startswith("traces/")
            is_folder = path.is_dir() and reads_folders and _reads_folder(component, path, group, files)
            targets = [path] if is_folder else [file.path for file in group]
            sources += [
                {component: {"path": _relative(target, out), **options, **_scan(request)}} for target in targets
            ]
    unique = [source for place, source in enumerate(sources) if source not in sources[:place]]
    source = unique[0] if len(unique) == 1 else {JOINED: {"sources": unique}}
    if sampling.size is None:
        return source
    by = {} if sampling.by is None else {"by": sampling.by}
    return {SAMPLED: {"source": source, "size": sampling.size, **by}}


def _groups(files: Sequence[ImportedFile]) -> list[tuple[str, Mapping[str, Any]]]:
    groups: list[tuple[str, Mapping[str, Any]]] = []
    for file in files:
        if (file.component, file.options) not in groups:
            groups.append((file.component, file.options))
    return groups


def _reads_folder(component: str, folder: Path, group: Sequence[ImportedFile], files: Sequence[ImportedFile]) -> bool:
    """Return whether the source reads exactly the files of *group*, and files with nothing to judge, if it gets the *folder*."""
    members = {file.path for file in group}
    outsiders = [
        file for file in files if folder in file.path.parents and file.path not in members and not file.is_vacant
    ]
    return not any(component in file.detected_by for file in outsiders)


def _relative(path: Path, out: Path) -> str:
    return os.path.relpath(path.absolute(), out.absolute().parent)


def _scan(request: FileOptions) -> dict[str, str]:
    return {} if request.scan == "warn" else {"scan": request.scan}
