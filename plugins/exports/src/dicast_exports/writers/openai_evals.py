"""Judged subjects as items of a data source of OpenAI evals: JSON lines of ``{item, sample}``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import orjson

from dicast import Event
from dicast.toolkit.atomic_file import AtomicFile
from dicast.toolkit.exporting import ExportCounts, ExportedRun
from dicast.toolkit.media import without_content

from ..values import as_text


def write_items(run: ExportedRun, file: AtomicFile) -> ExportCounts:
    """Write a line for each subject whose content the ledger has.

    ``item`` has the id, the input, the reference and the scores by label. ``sample.output_text`` is the output: the recorded one, or that of the
    task.
    """
    scores: dict[tuple[str, str], dict[str, object]] = {}
    outputs: dict[tuple[str, str], object] = {}
    left_out: Counter[str] = Counter()
    for event in run.results():
        key = str(event.subject_kind), str(event.subject_id)
        payload: Mapping[str, Any] = event.payload
        if event.type == "eval.completed":
            values = payload.get("score"), payload.get("raw"), (payload.get("signals") or {}).get("category")
            value = next((value for value in values if value is not None), None)
            scores.setdefault(key, {})[str(payload["judge"])] = value
        elif event.type == "record.completed":
            outputs[key] = (payload.get("response") or {}).get("content")
        else:
            left_out["failed judgments or records"] += 1
    count, keys = 0, set[tuple[str, str]]()
    for event in run.events("subject.read"):
        key = str(event.subject_kind), str(event.subject_id)
        if key in keys:
            continue
        keys.add(key)
        line = _line(event, scores.get(key, {}), outputs.get(key), has_content=run.has_content)
        if line is None:
            left_out["subjects without content in the ledger"] += 1
            continue
        file.write(line)
        count += 1
    return ExportCounts(count, "items", left_out)


def _line(read: Event, scores: Mapping[str, object], output: object, *, has_content: bool) -> bytes | None:
    content = read.payload.get("content")
    if not isinstance(content, Mapping):
        return None
    item: dict[str, object] = {"id": read.subject_id, "kind": read.subject_kind, "scores": scores}
    sample: dict[str, object] = {}
    if has_content:
        item |= {name: without_content(content.get(name)) for name in ("input", "reference")}
        text = output if output is not None else content.get("output")
        sample = {} if text is None else {"sample": {"output_text": as_text(text)}}
    return orjson.dumps({"item": item, **sample}, default=str, option=orjson.OPT_APPEND_NEWLINE)
