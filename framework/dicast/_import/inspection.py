"""One file of an import: its format, and the counts of its contents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import Any

import attrs
import orjson

from .._init.draft import Wishes, drafted
from .._init.encoding import text_encoding
from .._init.formats import other_format
from .._init.sample import conversation_options, conversations_source, read_sample, source_of
from .._kernel.values import Due, Subject
from .._kernel.values.errors import ConfigError, DataError, RequestError
from ..toolkit.beginning import Beginning, read_beginning
from ..toolkit.detection import Detection, detections_by
from ..toolkit.encodings import UTF_8
from ..toolkit.files import UnreadableFile, check_regular
from ..toolkit.installing import how_to_install
from ..toolkit.scan import COUNTS, Scan, scanned
from ..toolkit.session_folders import SessionFolder
from ..toolkit.session_reading import NoSubjects
from .nearest import nearest_format

_TABLES = (".csv", ".tsv", ".jsonl", ".ndjson", ".json", ".parquet", ".pq", ".xlsx", ".xlsm")
"""Suffixes of files in a folder that may be rows."""

_JSON = (".jsonl", ".ndjson", ".json")
_LEAST_COLUMNS = 2
"""The fewest keys of the objects in a JSON file that is taken as rows."""

_CONTENTS = {
    "sessions": "sessions", "turns": "turns", "messages": "messages", "calls": "calls", "results": "results",
    "failed_results": "failed_results", "unmatched": "unmatched_results", "unmatched_calls": "unmatched_calls",
    "rows": "rows",
}  # fmt: skip
NUMBERS = tuple(_CONTENTS)


@attrs.frozen
class FileCounts:
    """Counts of the contents of a file; *numbers* has :data:`NUMBERS`, the others count by name.

    *abandoned* has the numbers of the turns that the user took back, and of their contents; *numbers* include them. *first_places* has the
    first place of each kind in *marked*. *notes* are phrases for the user, *kinds* the kinds of subjects. Without
    subjects, *reason* has the reason.
    """

    numbers: Mapping[str, int] = attrs.field(factory=lambda: dict.fromkeys(NUMBERS, 0))
    models: Mapping[str, int] = attrs.field(factory=dict)
    tools: Mapping[str, int] = attrs.field(factory=dict)
    recorded_scores: Mapping[str, int] = attrs.field(factory=dict)
    marked: Mapping[str, int] = attrs.field(factory=dict)
    unknown: Mapping[str, int] = attrs.field(factory=dict)
    secrets: Mapping[str, int] = attrs.field(factory=dict)
    failed: int = 0
    notes: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    first_places: Mapping[str, str] = attrs.field(factory=dict)
    reason: str = ""
    abandoned: Mapping[str, int] = attrs.field(factory=dict)
    failed_model_calls: int = 0


@attrs.frozen
class ImportedFile:
    """A file with its format: the source *component* with its *options*, or the *reason* why no source reads it.

    *is_broken* is True if the format is known but the file cannot be read, *is_vacant* if it can be read but has nothing to judge.
    *detected_by* has all sources that would read the file in a folder. *extra* has the source for a file that no installed source reads.
    """

    path: Path
    component: str = ""
    title: str = ""
    version: str | None = None
    options: Mapping[str, Any] = attrs.field(factory=dict)
    counts: FileCounts = attrs.field(factory=FileCounts)
    reason: str = ""
    is_broken: bool = False
    is_vacant: bool = False
    detected_by: tuple[str, ...] = ()
    extra: str | None = None

    @property
    def is_known(self) -> bool:
        """True if a source reads the file."""
        return not self.reason

    @property
    def has_sessions(self) -> bool:
        """True if the file has conversations, False for rows."""
        return "turn" in self.counts.kinds

    @property
    def is_table(self) -> bool:
        """True if the columns of the file have to be guessed."""
        return self.component.startswith("rows/")

    def document(self) -> dict[str, Any]:
        """Return the file as ``--json`` has it."""
        counts = self.counts
        return {
            "path": str(self.path),
            "format": self.component or None,
            "version": self.version,
            **counts.numbers,
            "models": dict(sorted(counts.models.items())),
            "recorded_scores": dict(sorted(counts.recorded_scores.items())),
            "marked": dict(sorted(counts.marked.items())),
            "unknown": dict(sorted(counts.unknown.items())),
            "failed": counts.failed,
            **({"failed_model_calls": counts.failed_model_calls} if counts.failed_model_calls else {}),
            **({"abandoned": dict(counts.abandoned)} if counts.abandoned else {}),
            **({"reason": self.reason} if self.reason else {}),
        }


@attrs.frozen
class FileOptions:
    """The options of the command that apply to each file. *format* is the name of a source, if the user named one.

    *sources* are the sources that detect their format.
    """

    sources: Sequence[tuple[str, Any]]
    format: str | None = None
    encoding: str | None = None
    scan: Scan = "warn"
    is_asked: bool = False
    _built: dict[tuple[str, bytes], Any] = attrs.field(factory=dict, init=False)

    def source(self, file: ImportedFile) -> Any:
        """Return the source for *file*. Files with the same options share a built source, because building takes longer than reading.

        :raises ConfigError: for a wrong option.
        """
        key = (file.component, orjson.dumps(dict(file.options), default=str, option=orjson.OPT_SORT_KEYS))
        if key not in self._built:
            self._built[key] = source_of(file.component, file.path, file.options)
        return attrs.evolve(self._built[key], path=file.path.absolute())


def inspect_file(path: Path, request: FileOptions, *, is_named: bool) -> ImportedFile:
    """Return the format and the counts of the file at *path*; *is_named* is True if the user named it.

    :raises RequestError: only for a wrong option.
    """
    try:
        check_regular(path)
        encoding = text_encoding(path, request.encoding, is_asked=request.is_asked, command="import")
        beginning = read_beginning(path, encoding)
    except (DataError, UnreadableFile, OSError) as error:
        return ImportedFile(path, reason=_message(error))
    try:
        file = _identified(path, beginning, encoding, request, is_named)
    except RequestError as error:
        return ImportedFile(path, reason=_message(error))
    return file if file.reason else _counted(file, request)


def inspect_folder(folder: SessionFolder, component: str, source: Any, request: FileOptions) -> ImportedFile:
    """Return the format and the counts of a *folder* whose files are one session, which the *source* named *component* reads."""
    try:
        detection = source.detect(read_beginning(folder.first, UTF_8))
    except (DataError, OSError) as error:
        return ImportedFile(folder.folder, reason=_message(error))
    options = {"unknown": "mark", **detection.options}
    file = ImportedFile(folder.folder, component, detection.title, detection.version, options, detected_by=(component,))
    return _counted(file, request)


def _identified(path: Path, beginning: Beginning, encoding: str, request: FileOptions, is_named: bool) -> ImportedFile:
    """Return the file with its source.

    :raises DataError: with the reason why no source reads it.
    """
    if not beginning.start.strip():
        return ImportedFile(path, reason="the file is empty")
    candidates = sorted(detections_by(request.sources, beginning), key=lambda detection: -detection.specificity)
    detection, detected_by = _chosen(candidates, request.format), tuple(item.component for item in candidates)
    if detection is not None:
        if encoding not in (UTF_8, request.encoding):
            return ImportedFile(
                path, reason=f"{detection.component} reads UTF-8, the file is {encoding}; save it as UTF-8"
            )
        options = {"unknown": "mark", **detection.options}
        title, version = detection.title, detection.version
        return ImportedFile(path, detection.component, title, version, options, detected_by=detected_by)
    forced = request.format is not None and not request.format.startswith("rows/")
    as_rows = request.format is not None and not forced
    other_form = None if forced or as_rows else other_format(path, beginning)
    if other_form is not None:
        kind = "source" if other_form.extra is None else "installed source"
        fix = "" if other_form.extra is None else f"; install its source: {how_to_install(other_form.extra)}"
        reason = f"it looks like {other_form.title}, which no {kind} reads{fix}"
        return ImportedFile(path, reason=reason, extra=other_form.extra)
    source = request.format if forced else None if as_rows else conversations_source(path, beginning, None)
    if source in ("traces/messages", "traces/events"):
        options = {} if encoding == UTF_8 else {"encoding": encoding}
        try:
            options, _ = conversation_options(source, path, options, beginning)
        except DataError as error:
            return ImportedFile(path, source, _TITLES[source], None, options, reason=_message(error), is_broken=True)
        return ImportedFile(path, source, _TITLES[source], None, options)
    if forced:
        likely = looks_like(path, beginning, candidates)
        nearest = nearest_format(path, beginning) if likely is None else f"it looks like {likely}"
        return ImportedFile(path, reason=f"it does not look like {request.format}; {nearest}")
    if not is_named and not as_rows and not _may_be_rows(path, beginning):
        return ImportedFile(path, reason=f"no known format; {nearest_format(path, beginning)}")
    rows = _rows(path, beginning, {} if encoding == UTF_8 else {"encoding": encoding})
    if as_rows and (rows.reason or rows.component != request.format):
        likely = looks_like(path, beginning, candidates) if rows.reason else f"rows: --as {rows.component}"
        if likely is not None:
            return ImportedFile(path, reason=f"it does not look like {request.format}; it looks like {likely}")
    return rows


def looks_like(path: Path, beginning: Beginning, candidates: Sequence[Detection]) -> str | None:
    """Return the format of a file by its content, with the option that names it; None for a file of no known format.

    *candidates* are the detections of the file, the most specific first.
    """
    if candidates:
        return f"{candidates[0].title}: --as {candidates[0].component}"
    source = conversations_source(path, beginning, None)
    return None if source is None else f"{_TITLES[source]}: --as {source}"


def _rows(path: Path, beginning: Beginning, reading: Mapping[str, Any]) -> ImportedFile:
    """Return the file as rows, if a column can be identified as the outputs or their inputs."""
    is_table = path.suffix.lower() not in _JSON and path.suffix.lower() in _TABLES
    try:
        drafted(path, path.with_suffix(".pipeline.yaml"), Wishes("rows", (), None, reading))
        sample = read_sample(path, "rows", reading)
    except RequestError as error:
        if is_table:
            command = f"dicast init {quote(str(path))} --fields"
            reason = (
                _message(error).replace("it with --fields", f"it with {command}").replace(": --fields", f": {command}")
            )
            return ImportedFile(path, reason=reason)
        return ImportedFile(path, reason=f"no known format; {nearest_format(path, beginning)}")
    if not is_table and len(sample.columns) < _LEAST_COLUMNS:
        return ImportedFile(path, reason=f"no known format; {nearest_format(path, beginning)}")
    return ImportedFile(path, sample.source, "rows", None, sample.options)


_TITLES = {"traces/messages": "conversations", "traces/events": "a trace of events"}


def _chosen(candidates: Sequence[Detection], named: str | None) -> Detection | None:
    """Return the detection of the source that the user *named*, else the most specific of *candidates*; None if there is none.

    :raises ConfigError: if two sources detect the file equally well.
    """
    if named is not None:
        return next((detection for detection in candidates if detection.component == named), None)
    if len(candidates) > 1 and candidates[0].specificity == candidates[1].specificity:
        names = " and ".join(f"{detection.title} ({detection.component})" for detection in candidates[:2])
        raise ConfigError(f"the file looks like {names}; name one: --as {candidates[0].component}")
    return candidates[0] if candidates else None


def _may_be_rows(path: Path, beginning: Beginning) -> bool:
    """Return whether a file of a folder may be a file of rows: by its name, and for JSON by its objects."""
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() not in (".gz", ".gzip")]
    if not suffixes or suffixes[-1] not in _TABLES:
        return False
    return suffixes[-1] not in _JSON or (beginning.layout in ("lines", "array") and bool(beginning.objects))


def _counted(file: ImportedFile, request: FileOptions) -> ImportedFile:
    """Return *file* with the counts of its contents, or with the reason why it cannot be read."""
    try:
        counts = count_contents(request.source(file), request.scan)
        return attrs.evolve(file, counts=counts, reason=counts.reason, is_vacant=bool(counts.reason))
    except RequestError as error:
        return attrs.evolve(file, reason=_message(error), is_broken=True)


def count_contents(source: Any, scan: Scan) -> FileCounts:
    """Read *source* and return the counts of its contents.

    :raises DataError: with every bad line.
    """
    models: Counter[str] = Counter()
    scores: Counter[str] = Counter()
    tools: Counter[str] = Counter()
    with source.reading() as opened:
        live = scanned(opened, scan)
        previous, kinds, reason = None, Counter[str](), ""
        try:
            live.check()
        except NoSubjects as error:
            reason = _message(error)
        for item in () if reason else live.subjects():
            subject = item.subject if isinstance(item, Due) else item
            kinds[subject.kind] += 1
            scores.update(score.name for score in (item.recorded if isinstance(item, Due) else ()))
            if subject.session_id != previous:
                previous = subject.session_id
                models.update(_models(subject))
                tools.update(_tools(subject))
        read, first_places = live.read_counts(), getattr(opened, "first_places", {})
    contents = {"turns": kinds["turn"], "rows": kinds["row"], **read.details.get("contents", {})}
    if "turn" in kinds or reason:
        contents.setdefault("sessions", read.records - read.failed)
    abandoned = read.details.get("abandoned", {})
    numbers = {
        name: int(contents.get(key, 0)) - int(contents.get(f"repeated_{key}", 0)) + int(abandoned.get(key, 0))
        for name, key in _CONTENTS.items()
    }
    recorded_models = read.details.get("models")
    return FileCounts(
        numbers, models if recorded_models is None else recorded_models, tools, scores, read.marked,
        read.details.get("unknown", {}), read.details.get(COUNTS, {}), read.failed, read.notes,
        tuple(kinds), first_places, reason, abandoned, contents.get("failed_model_calls", 0),
    )  # fmt: skip


def _models(subject: Subject) -> Iterator[str]:
    for event in subject.trail.events or subject.events:
        if event.type == "llm.call_completed" and isinstance(model := event.payload.get("model"), str):
            yield model


def _tools(subject: Subject) -> Iterator[str]:
    """Yield the tool of each call whose tool is known."""
    for event in subject.trail.events or subject.events:
        if event.type == "tool.called" and isinstance(name := event.payload.get("tool_name"), str) and name.strip():
            yield name


def _message(error: Exception) -> str:
    """Return the first problem of *error*, and the number of further problems, in one line without the name of the file."""
    problems = getattr(error, "problems", None) or ()
    texts = [f"line {problem.line}: {problem.message}" if problem.line else problem.message for problem in problems]
    suffix = f" (and {len(texts) - 1} more problems)" if len(texts) > 1 else ""
    return f"{texts[0]}{suffix}" if texts else getattr(error, "strerror", None) or str(error)
