"""Files of other tools, recognized by their contents.

They are formats that no installed source reads. Each has advice for the user, or the extra whose source reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import attrs

from .._kernel.values.errors import ConfigError, DataError, Problem
from ..toolkit.beginning import Beginning
from ..toolkit.input_file import InputFile
from ..toolkit.installing import how_to_install
from ..toolkit.yaml import read_yaml

Record = Mapping[str, Any]

_ADVICE = (
    "no source of dicast reads it yet; write its answers as rows (JSON lines with input, output, reference), or its messages as "
    'conversations ({"messages": […]} a line); --kind rows takes its objects as rows'
)
_MOST_YAML = 2**20


@attrs.frozen
class FileFormat:
    """A format of another tool: its *title*, the test *fits* that recognizes it, and the *advice* for a file of it.

    *extra* has the source that reads it, if that may not be installed.
    """

    title: str
    fits: Callable[[Beginning], bool]
    advice: str = _ADVICE
    extra: str | None = None


def other_format(path: Path, beginning: Beginning) -> FileFormat | None:
    """Return the format of a file of another tool that no installed source reads, None for any other file."""
    return next((candidate for candidate in FORMATS if candidate.fits(beginning)), None) or _of_yaml(path)


def refuse_other_formats(path: Path, beginning: Beginning) -> None:
    """Refuse a file of another tool that no source reads.

    :raises DataError: with the format and the fix.
    """
    form = other_format(path, beginning)
    if form is not None:
        advice = form.advice if form.extra is None else f"install its source: {how_to_install(form.extra)}"
        raise DataError(Problem(f"this looks like {form.title}; {advice}", str(path)))


def _any(test: Callable[[Record], bool]) -> Callable[[Beginning], bool]:
    """Return a test for files: True if *test* is True for one of the first objects."""
    return lambda beginning: any(test(record) for record in beginning.objects)


def _has(record: Record, *keys: str) -> bool:
    return all(key in record for key in keys)


def _objects(value: object) -> list[Record]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _is_otlp(record: Record) -> bool:
    return any(isinstance(record.get(key), list) for key in ("resourceSpans", "scopeSpans"))


def _is_otlp_of_others(record: Record) -> bool:
    return any(isinstance(record.get(key), list) for key in ("resourceLogs", "resourceMetrics"))


def _is_tempo(record: Record) -> bool:
    keys = ("scopeSpans", "instrumentationLibrarySpans", "resource")
    return any(key in batch for batch in _objects(record.get("batches")) for key in keys)


def _is_jaeger(record: Record) -> bool:
    return any(_has(trace, "traceID", "spans") for trace in _objects(record.get("data")))


def _is_span(record: Record) -> bool:
    context = record.get("spanContext", record.get("context"))
    if isinstance(context, dict) and (
        {"traceId", "spanId"} <= context.keys() or {"trace_id", "span_id"} <= context.keys()
    ):
        return True
    if _has(record, "traceId", "spanId") or _has(record, "trace_id", "span_id") or _has(record, "traceID", "spanID"):
        return True
    return any(key.startswith(("gen_ai.", "openinference.", "llm.input_messages", "traceloop.")) for key in record)


def _has_spans(record: Record) -> bool:
    return any(items and all(map(_is_span, items)) for items in map(_objects, record.values()))


def _is_inspect(record: Record) -> bool:
    samples = _objects(record.get("samples"))
    is_log = isinstance(record.get("eval"), dict) and "status" in record and "version" in record
    return is_log or ("version" in record and any(_has(sample, "input", "target") for sample in samples))


def _is_promptfoo_results(record: Record) -> bool:
    results = record.get("results")
    return isinstance(results, dict) and isinstance(results.get("results"), list) and "stats" in results


def _is_promptfoo(record: Record) -> bool:
    return "prompts" in record and bool({"providers", "targets", "tests", "scenarios"} & record.keys())


def _is_lm_eval(record: Record) -> bool:
    return "doc_id" in record and bool({"resps", "filtered_resps"} & record.keys())


def _is_langsmith(record: Record) -> bool:
    return _has(record, "run_type", "inputs")


def _is_langfuse(record: Record) -> bool:
    return _has(record, "traceId", "type") and ("startTime" in record or "observations" in record)


def _is_mlflow(record: Record) -> bool:
    info, data = record.get("info"), record.get("data")
    return isinstance(info, dict) and isinstance(data, dict) and "spans" in data


def _is_batch_input(record: Record) -> bool:
    return _has(record, "custom_id", "method", "url", "body")


def _is_pipeline(record: Record) -> bool:
    return "source" in record and bool({"metrics", "judges", "gate"} & record.keys())


def _begins(*starts: bytes) -> Callable[[Beginning], bool]:
    return lambda beginning: beginning.start.startswith(starts)


def _member(*names: str) -> Callable[[Beginning], bool]:
    return lambda beginning: any(member.startswith(names) for member in beginning.members)


def _is_archive(beginning: Beginning) -> bool:
    return bool(beginning.start.startswith(b"PK\x03\x04")) and "xl/workbook.xml" not in beginning.members


def _is_binary(beginning: Beginning) -> bool:
    return b"\0" in beginning.start and not beginning.start.startswith((b"PAR1", b"PK\x03\x04"))


_PROMPTFOO = "dicast init --from promptfoo FILE takes it over"
_AS_XLSX = "save the file as .xlsx or .csv"

FORMATS = (
    FileFormat("an Inspect log (.eval)", _member("header.json", "_journal/start.json"), extra="inspect"),
    FileFormat("a document of an office program", _member("word/", "ppt/", "content.xml"), _AS_XLSX),
    FileFormat("a zip archive", _is_archive, "unpack it, and name a file in it"),
    FileFormat("an old Excel workbook (.xls), or an encrypted one", _begins(b"\xd0\xcf\x11\xe0"), _AS_XLSX),
    FileFormat(
        "a SQLite database", _begins(b"SQLite format 3\0"), "write the rows of a table as .csv, or name a file of rows"
    ),
    FileFormat("a PDF", _begins(b"%PDF"), "write its rows as .csv"),
    FileFormat(
        "a binary file", _is_binary, "text in UTF-16 without a mark is read with --encoding utf-16-le or utf-16-be"
    ),
    FileFormat("OpenTelemetry traces (OTLP JSON)", _any(_is_otlp), extra="otel"),
    FileFormat("OpenTelemetry traces (Tempo export)", _any(_is_tempo), extra="otel"),
    FileFormat("Jaeger traces", _any(_is_jaeger), extra="otel"),
    FileFormat("OpenTelemetry logs or metrics (OTLP JSON)", _any(_is_otlp_of_others)),
    FileFormat("an Inspect log", _any(_is_inspect), extra="inspect"),
    FileFormat("results of promptfoo", _any(_is_promptfoo_results), extra="exports"),
    FileFormat("a promptfoo configuration", _any(_is_promptfoo), _PROMPTFOO),
    FileFormat("samples of lm-evaluation-harness", _any(_is_lm_eval), extra="exports"),
    FileFormat("LangSmith runs", _any(_is_langsmith), extra="exports"),
    FileFormat("Langfuse observations", _any(_is_langfuse), extra="exports"),
    FileFormat("MLflow traces", _any(_is_mlflow), extra="exports"),
    FileFormat("spans of traces", _any(lambda record: _is_span(record) or _has_spans(record)), extra="otel"),
    FileFormat(
        "requests of a batch, without answers", _any(_is_batch_input), "name the file with the results of the batch"
    ),
    FileFormat(
        "a Jupyter notebook", _any(lambda record: _has(record, "cells", "nbformat")), "write its rows as a file"
    ),
)
"""The formats; the first that fits a file counts."""


def _of_yaml(path: Path) -> FileFormat | None:
    """Return the format of a YAML file that is a configuration."""
    if not {".yaml", ".yml"} & {suffix.lower() for suffix in path.suffixes}:
        return None
    with InputFile.opened(path) as file, file.binary() as stream:
        text = stream.read(_MOST_YAML)
    try:
        data = read_yaml(text, path.name, []).plain()
    except ConfigError:  # rows/yaml reports its faults
        return None
    if isinstance(data, dict) and _is_promptfoo(data):
        return FileFormat("a promptfoo configuration", lambda _: True, _PROMPTFOO)
    if isinstance(data, dict) and _is_pipeline(data):
        return FileFormat("a pipeline of dicast", lambda _: True, "dicast run FILE runs it; init takes a file of rows")
    return None
