"""The source ``exports/helm``: scenario states of HELM with the statistics of their instances."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import attrs
import orjson

from dicast import RecordedScore
from dicast.toolkit.beginning import Beginning
from dicast.toolkit.detection import Detection
from dicast.toolkit.document_parts import document_parts
from dicast.toolkit.input_file import InputCheck, InputFile
from dicast.toolkit.session_reading import SessionReading
from dicast.toolkit.temporary import temporary_database

from .export import ExportSource, Row
from .values import Value, mapping, message_of, objects, text

_STATES = ("request_states",)
_STATISTICS = "per_instance_stats.json"
_CORRECT = "correct"


@attrs.frozen
class Helm(ExportSource):
    """Scenario states of HELM (``scenario_state.json``), with the scores in ``per_instance_stats.json`` of the same folder.

    Each request is a row. Its references are the outputs with the tag ``correct``; each statistic is a recorded score.
    """

    title = "a scenario state of HELM"
    name = "helm"

    @classmethod
    def detect(cls, beginning: Beginning) -> Detection | None:
        """Return the detection of a scenario state."""
        first_record = beginning.objects[0] if len(beginning.objects) == 1 else {}
        start = b"".join(beginning.lines[:5]) or beginning.start
        if {"adapter_spec", "request_states"} <= first_record.keys() or start.startswith(
            (b'{"adapter_spec"', b'{ "adapter_spec"', b'{  "adapter_spec"')
        ):
            return Detection(cls.title)
        return None

    def rows(self, reading: SessionReading, companions: object) -> Iterator[Row]:
        """Yield the requests of a scenario state."""
        statistics = _Statistics(reading, Path(reading.file.path).with_name(_STATISTICS))
        adapter: Value = {}
        for line, path, value in document_parts(reading, [_STATES]):
            if path == ("adapter_spec",):
                adapter = mapping(value)
            elif path == _STATES:
                yield _row(value, adapter, statistics, reading)
            reading.settle(line)


class _Statistics:
    """The statistics of instances, by instance, trial and perturbation, in a temporary file."""

    def __init__(self, reading: SessionReading, path: Path) -> None:
        self._database: sqlite3.Connection | None = None
        if not path.is_file():
            reading.mark(f"scenario state without {_STATISTICS} (it has no scores)")
            return
        self._database = temporary_database(
            self, "CREATE TABLE stats(id TEXT, trial TEXT, perturbation TEXT, stats BLOB)"
        )
        self._database.execute("BEGIN")
        with InputFile.opened(path) as file, InputCheck(file) as check:
            other = attrs.evolve(reading, file=file, check=check)
            for _, _, item in document_parts(other, [()]):
                row = (str(item.get("instance_id")), str(item.get("train_trial_index") or 0), _perturbation(item))
                self._database.execute("INSERT INTO stats VALUES (?, ?, ?, ?)", (*row, orjson.dumps(item.get("stats"))))
            digest = check.finish(1)
        self._database.execute("COMMIT")
        self._database.execute("CREATE INDEX places ON stats(id, trial, perturbation)")
        if reading.check is not None:
            reading.check.digest.update(digest.encode())

    def of(self, instance: Value, trial: object) -> Iterator[Value]:
        """Yield the statistics of an instance."""
        if self._database is None:
            return
        query = "SELECT stats FROM stats WHERE id = ? AND trial = ? AND perturbation = ? ORDER BY rowid"
        key = (str(instance.get("id")), str(trial or 0), _perturbation(instance))
        for (data,) in self._database.execute(query, key).fetchall():
            yield from objects(orjson.loads(data))


def _perturbation(item: Value) -> str:
    return str(mapping(item.get("perturbation")).get("name") or "")


def _row(state: Value, adapter: Value, statistics: _Statistics, reading: SessionReading) -> Row:
    instance, request, result = (mapping(state.get(key)) for key in ("instance", "request", "result"))
    completions = objects(result.get("completions"))
    output = completions[0].get("text") if completions else None
    right = [
        mapping(item.get("output")).get("text")
        for item in objects(instance.get("references"))
        if _CORRECT in (item.get("tags") or ())
    ]
    model = text(request.get("model")) or text(adapter.get("model"))
    trial = state.get("train_trial_index")
    names = [instance.get("id"), _perturbation(instance) or None, f"trial{trial}" if trial else None]
    names += [f"reference{state['reference_index']}"] if state.get("reference_index") is not None else []
    mapped = state.get("output_mapping")
    context = {
        "model": model,
        "method": adapter.get("method"),
        "instance": mapping(instance.get("input")).get("text", instance.get("input")),
        "split": instance.get("split"),
        "output_mapping": mapped,
        "mapped_output": mapping(mapped).get(output.strip()) if isinstance(output, str) else None,
        "request_seconds": result.get("request_time"),
        "completions": [item.get("text") for item in completions] if len(completions) > 1 else None,
    }
    failure = None
    if result.get("success") is False:
        failure = f"the request failed: {message_of(result.get('error') or 'without a message')}"
    elif output is None:
        failure = "the request has no completion"
    finish = completions[0].get("finish_reason") if completions else None
    reason = finish if isinstance(finish, str) else mapping(finish).get("reason")
    return Row(
        "/".join(str(name) for name in names if name is not None),
        request.get("prompt") or request.get("messages"),
        output,
        right[0] if len(right) == 1 else right or None,
        context,
        _scores(statistics.of(instance, trial), reading),
        finish_reason=text(reason),
        failure=failure,
        models=(model,) if model else (),
    )


def _scores(statistics: Iterator[Value], reading: SessionReading) -> Iterator[RecordedScore | None]:
    for item in statistics:
        name = mapping(item.get("name")).get("name")
        if item.get("count") and isinstance(name, str):
            total, count = item.get("sum"), item["count"]
            answer = item.get("mean")
            if answer is None and isinstance(total, int | float):
                answer = total / count
            yield reading.scales.score(name, answer)
