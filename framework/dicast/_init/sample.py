"""The first rows of the data, read with the same sources as a pipeline."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from shlex import quote
from typing import Any

import attrs
import orjson

from .._kernel.pipeline.build import load_pipeline
from .._kernel.values import Due, Subject
from .._kernel.values.errors import ConfigError, DataError, Problem
from ..toolkit.beginning import Beginning, read_beginning
from ..toolkit.detection import Detection, detected
from ..toolkit.encodings import UTF_8
from ..toolkit.files import UnreadableFile, check_regular
from ..toolkit.input_file import InputFile
from .conversations import are_conversations, id_templates, is_conversation
from .encoding import text_encoding
from .formats import refuse_other_formats
from .written import escaped

MOST = 1000
"""The most rows of a sample."""

KEPT = ("input", "output", "reference", "session_id")
"""Columns that are fields of a row by their names; a sample has them before the other columns."""

_BY_SUFFIX = {
    ".csv": "rows/csv", ".tsv": "rows/csv", ".tab": "rows/csv", ".psv": "rows/csv",
    ".jsonl": "rows/jsonl", ".ndjson": "rows/jsonl", ".yaml": "rows/yaml", ".yml": "rows/yaml",
    ".parquet": "rows/parquet", ".pq": "rows/parquet", ".xlsx": "rows/xlsx", ".xlsm": "rows/xlsx",
}  # fmt: skip
_DELIMITERS = "\t;|"
_LISTS = ("data", "rows", "examples", "items", "records", "results", "tests", "instances", "samples")
_TOOL_ERROR = "^(?i:error|traceback)"
_MOST_DOCUMENT = 64 * 2**20


@attrs.frozen
class Sample:
    """The first rows of a file, at most :data:`MOST`, read by *source* with *options*; *is_complete* is True if they are all rows.

    *says* has a line for each option that was guessed from conversations. *is_result* is True for results of another tool, whose source knows
    the fields.
    """

    source: str
    options: Mapping[str, Any]
    rows: tuple[Mapping[str, Any], ...]
    is_complete: bool
    says: tuple[str, ...] = ()
    is_result: bool = False

    @property
    def turns(self) -> bool:
        """True for conversations: each row is a turn."""
        return not self.has_columns and not self.is_result

    @property
    def has_columns(self) -> bool:
        """True if the pipeline names the columns of the fields."""
        return self.source.startswith("rows/")

    @property
    def columns(self) -> list[str]:
        """The names of all columns."""
        return list(dict.fromkeys(name for row in self.rows for name in row))


def read_sample(path: Path, kind: str | None, reading: Mapping[str, Any], *, is_asked: bool = False) -> Sample:
    """Return the first rows of *path*; the user may have named the *kind* (``rows`` or ``turns``) and options of the source (*reading*).

    With *is_asked* the user of a terminal is asked about a file that is not UTF-8.

    :raises DataError: if it cannot be read, has no rows, or is a file of another tool that no source reads.
    """
    if str(path) == "-":
        raise ConfigError("init looks at a file, not at standard input; write the data to a file first")
    if path.is_dir():
        advice = f"this is a folder; dicast import {quote(str(path))} reads its files, or name a file in it"
        raise DataError(Problem(advice, str(path)))
    try:
        check_regular(path)
    except UnreadableFile as error:
        raise DataError(Problem(str(error.strerror), str(path))) from error
    encoding = text_encoding(path, reading.get("encoding"), is_asked=is_asked)
    beginning = read_beginning(path, encoding)
    detection = None if kind == "rows" else detected(beginning)
    options = {name: value for name, value in reading.items() if name != "encoding"}
    if detection is not None:
        return _of_detected(detection, path, {**detection.options, **options}, beginning)
    if kind != "rows":
        refuse_other_formats(path, beginning)
    chosen = None if kind == "rows" else conversations_source(path, beginning, kind)
    if chosen is not None:
        if encoding != UTF_8:
            options["encoding"] = encoding
        return _of_turns(chosen, path, options, beginning)
    source, format_options = _source(path, beginning)
    if encoding != UTF_8:
        format_options["encoding"] = encoding
    return _of_rows(source, path, format_options | options, kind)


def _of_detected(detection: Detection, path: Path, options: Mapping[str, Any], beginning: Beginning) -> Sample:
    """Return the turns of recorded sessions, or the rows of another tool's results, whose fields the source knows."""
    source = detection.component
    if "row" not in source_of(source, path, options).kinds:
        return _of_turns(source, path, options, beginning)
    source_of(source, path, options).check()
    rows = list(_rows(source, path, options, named=True))
    return Sample(source, options, tuple(rows[:MOST]), len(rows) <= MOST, is_result=True)


def _of_rows(source: str, path: Path, options: Mapping[str, Any], kind: str | None) -> Sample:
    first = _first(source, path, options)
    if kind == "turns" or (kind is None and source != "rows/jsonl" and is_conversation(first)):
        description = f"{source} reads rows, and has columns {', '.join(first) or 'none'}"
        advice = "conversations are JSON: one a line, or an array of them, each with messages; or one event a line"
        raise DataError(Problem(f"{description}: {advice}; --kind rows takes them as rows", str(path)))
    try:
        rows = list(_rows(source, path, {**options, "fields": {"id": "id"}}, named=True))
    except DataError:  # no such column, or a repeated id; another fault is raised again by the next line
        rows = list(_rows(source, path, options, named=False))
    return Sample(source, options, tuple(rows[:MOST]), len(rows) <= MOST)


def conversations_source(path: Path, beginning: Beginning, kind: str | None) -> str | None:
    """Return the source of conversations that fits the file, None for a file of rows."""
    suffixes = {suffix.lower() for suffix in path.suffixes}
    if beginning.layout == "other" or suffixes & {".csv", ".tsv", ".yaml", ".yml"}:
        return None
    if are_conversations(beginning):
        return "traces/messages"
    first = beginning.objects[0] if beginning.objects else {}
    if isinstance(first.get("type"), str) and isinstance(first.get("payload"), dict):
        return "traces/events"
    if kind == "turns" and not _spans_lines(beginning) and beginning.layout != "array":
        return "traces/messages" if "messages" in first else "traces/events"
    return None


def _of_turns(source: str, path: Path, options_given: Mapping[str, Any], beginning: Beginning) -> Sample:
    """Return the turns of conversations, with guessed options: the key of ids, and the pattern of tool errors."""
    options, says = conversation_options(source, path, options_given, beginning)
    source_of(source, path, options).check()
    subjects = list(islice(_subjects(source_of(source, path, options)), MOST + 1))
    if source == "traces/messages" and (failed := sum(map(_tool_errors, subjects))):
        options["tool_error"] = _TOOL_ERROR
        does = "1 result does" if failed == 1 else f"{failed} results do"
        says.append(f"tool_error: a tool's result that begins with Error or Traceback is a failure (guessed: {does})")
    return Sample(
        source, options, tuple({"id": subject.id} for subject in subjects[:MOST]), len(subjects) <= MOST, tuple(says)
    )


def conversation_options(
    source: str, path: Path, given: Mapping[str, Any], beginning: Beginning
) -> tuple[dict[str, Any], list[str]]:
    """Return the options of a source of conversations, with the key of their ids, and a line about each guess.

    :raises DataError: with the bad lines, or if there are no turns.
    """
    options, says = dict(given), list[str]()
    if source == "traces/messages":
        options["unknown"] = "mark"
        says.append("unknown: undocumented roles and parts become markers, and are counted")
        template, why = _id_of(source, path, options, beginning)
        options |= {} if template is None else {"id": template}
        says += [f"id: {why}"] if why else []
    return options, says


def _id_of(source: str, path: Path, options: Mapping[str, Any], beginning: Beginning) -> tuple[str | None, str | None]:
    """Return the template that names each conversation of the file, None if no key does, and the reason."""
    templates = id_templates(beginning.records[0] if beginning.records else None)
    for template, why in templates:
        if _reads(source, path, {**options, "id": template}):
            return template, why
    if not templates:
        return None, None
    name = templates[0][0].strip("{} ")
    return None, (
        f"key {name!r} is not in all conversations, or occurs twice: conversations are named by their numbers. To use keys as names: "
        f'id: "{{{{ {name} }}}}-{{{{ KEY }}}}"'
    )


def _reads(source: str, path: Path, options: Mapping[str, Any]) -> bool:
    """Return whether the whole file can be read with *options*: each conversation has the key of ids, and no id occurs twice."""
    try:
        source_of(source, path, options).check()
    except DataError:
        return False
    return True


def _tool_errors(subject: Subject) -> int:
    """Return the number of a turn's tool results that begin like an error."""
    results = (event.payload.get("output") for event in subject.events if event.type == "tool.completed")
    return sum(isinstance(result, str) and re.search(_TOOL_ERROR, result) is not None for result in results)


def source_of(source: str, path: Path, options: Mapping[str, Any]) -> Any:
    """Return the source component of a pipeline with these options."""
    section = {source: {"path": escaped(str(path)), **escaped(options)}}
    try:
        built = load_pipeline({"source": section, "metrics": ["proxy/format"]}).source
    except ConfigError as error:  # of an option that the user gave
        file = str(path)
        raise ConfigError(
            attrs.evolve(problem, file=None if file in problem.message else file, path=None)
            for problem in error.problems
        ) from error
    return built and built.component


def _subjects(source: Any) -> Iterator[Subject]:
    """Yield the subjects of *source*, including failed records."""
    return (item.subject if isinstance(item, Due) else item for item in source.subjects())


def _first(source: str, path: Path, options: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the first row.

    :raises DataError: with the faults of the whole file if there is no first row.
    """
    live_source = source_of(source, path, options)
    try:
        subject = next(_subjects(live_source), None)
    except DataError:
        subject = None
    if subject is None:
        live_source.check()  # raises all faults of the file
        raise DataError(Problem("there are no rows", str(path)))
    return _row(subject, named=False)


def _rows(source: str, path: Path, options: Mapping[str, Any], *, named: bool) -> Iterator[dict[str, Any]]:
    for subject in islice(_subjects(source_of(source, path, options)), MOST + 1):
        yield _row(subject, named=named)


def _row(subject: Subject, *, named: bool) -> dict[str, Any]:
    """Return the columns of the row that became *subject*."""
    values = {name: getattr(subject, name) for name in KEPT}
    present = {name: value for name, value in values.items() if value is not None}
    return ({"id": subject.id} if named else {}) | present | dict(subject.context)


def _source(path: Path, beginning: Beginning) -> tuple[str, dict[str, Any]]:
    """Return the source for *path* and its options, by the contents if they show it, else by the name."""
    suffix = next((ending.lower() for ending in reversed(path.suffixes) if ending.lower() not in (".gz", ".gzip")), "")
    source = _BY_SUFFIX.get(suffix)
    if "xl/workbook.xml" in beginning.members:
        return "rows/xlsx", {}
    if source is None and beginning.start.startswith(b"PAR1"):
        return "rows/parquet", {}
    if source == "rows/jsonl" and _spans_lines(beginning):
        return _of_json(path, beginning)
    if source is not None and source != "rows/csv":
        return source, {}
    first = beginning.lines[0] if beginning.lines else b""
    if source is None and (suffix == ".json" or first[:1] in (b"[", b"{")):
        return _of_json(path, beginning)
    return "rows/csv", _delimiter(suffix, first)


def _delimiter(suffix: str, header: bytes) -> dict[str, Any]:
    """Return the delimiter of the columns, unless it is the comma or the tab of a ``.tsv`` file."""
    text = header.decode(errors="replace")
    best = max(_DELIMITERS, key=text.count)
    if suffix == ".tsv" or text.count(best) <= text.count(","):
        return {}
    return {"delimiter": best}


def _spans_lines(beginning: Beginning) -> bool:
    """Return whether the file is one JSON value over several lines, and not a value on each line."""
    return beginning.layout in ("array", "document") and len(beginning.lines) > 1


def _of_json(path: Path, beginning: Beginning) -> tuple[str, dict[str, Any]]:
    """Return the source and its options for JSON lines, an array, or a document with a list in it."""
    if beginning.layout in ("lines", "document") and len(beginning.lines) >= 1 and beginning.lines[0][:1] == b"{":
        if beginning.layout == "lines":
            return "rows/jsonl", {}
        if (lists := _list_in(path)) or len(beginning.lines) > 1:
            return "rows/json", lists
        return "rows/jsonl", {}
    return "rows/json", {}


def _list_in(path: Path) -> dict[str, Any]:
    """Return the option ``at`` with the place of the list of objects in the document at *path*; empty without such a list, or if several fit."""
    with InputFile.opened(path) as file:
        text = b"".join(line for _, line in file.lines())
    try:
        document = orjson.loads(text) if len(text) <= _MOST_DOCUMENT else {}
    except orjson.JSONDecodeError:
        return {}
    paths = [at for at, value in _lists(document, "") if value and all(isinstance(item, dict) for item in value)]
    preferred = [at for at in paths if at.rpartition(".")[2] in _LISTS]
    chosen = paths if len(paths) == 1 else preferred[:1]
    return {"at": chosen[0]} if chosen else {}


def _lists(value: object, path: str) -> Iterator[tuple[str, list[Any]]]:
    """Yield the lists below *value* with their dotted paths, without lists inside lists."""
    for name, child in value.items() if isinstance(value, dict) else ():
        place = f"{path}.{name}" if path else str(name)
        if isinstance(child, list):
            yield place, child
        else:
            yield from _lists(child, place)
