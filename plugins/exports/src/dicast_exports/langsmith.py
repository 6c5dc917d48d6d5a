"""The source ``exports/langsmith``: runs of LangSmith."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs

from dicast import Basis, RecordedScore
from dicast.toolkit.beginning import Beginning
from dicast.toolkit.detection import Detection
from dicast.toolkit.document_parts import document_parts
from dicast.toolkit.session_reading import SessionReading

from .export import ExportSource, Row
from .values import Value, decoded, first, mapping, message_of, objects, single, text

_KEYS = {"id", "run_type", "inputs"}
_BASES: dict[str, Basis] = {"model": "model", "app": "human", "api": "recorded"}
"""Basis of feedback by the type of its source; ``app`` is feedback that a person gave in LangSmith."""


@attrs.frozen
class LangSmith(ExportSource):
    """Runs of LangSmith in JSON or JSON lines, as its API and bulk exports have them.

    Runs without a parent are rows. Their feedback is recorded scores: ``feedback``, or the means in ``feedback_stats``.

    :param runs: ``root`` reads runs without a parent, ``all`` reads all runs, a type such as ``llm`` reads the runs of this type.
    """

    title = "runs of LangSmith"
    name = "langsmith"

    runs: str = attrs.field(default="root", kw_only=True, metadata={"later": True})

    @classmethod
    def detect(cls, beginning: Beginning) -> Detection | None:
        """Return the detection of runs."""
        records: Sequence[Value] = beginning.objects
        if len(records) == 1 and isinstance(records[0].get("runs"), list):
            records = objects(records[0]["runs"])
        return Detection(cls.title) if records and all(record.keys() >= _KEYS for record in records) else None

    def rows(self, reading: SessionReading, companions: object) -> Iterator[Row]:
        """Yield the chosen runs of a file."""
        for line, run in _runs(reading):
            is_chosen = {"root": run.get("parent_run_id") is None, "all": True}.get(
                self.runs, run.get("run_type") == self.runs
            )
            if is_chosen:
                yield _row(run, reading)
            else:
                reading.totals.left_out[f"{run.get('run_type')} runs with a parent"] += 1
            reading.settle(line)


def _runs(reading: SessionReading) -> Iterator[tuple[int, Value]]:
    with reading.file.binary() as stream:
        line = stream.readline(reading.max_bytes)
    if line.lstrip()[:1] == b"{" and line.rstrip().endswith(b"}") and b'"runs"' not in line[:20]:
        yield from reading.objects()
        return
    for number, path, value in document_parts(reading, [("runs",)]):
        if path in (("runs",), ()) and isinstance(value, dict):
            yield number, value


def _row(run: Value, reading: SessionReading) -> Row:
    inputs, outputs = decoded(run.get("inputs")), decoded(run.get("outputs"))
    extra = mapping(decoded(run.get("extra")))
    metadata = mapping(extra.get("metadata"))
    model = text(metadata.get("ls_model_name")) or text(mapping(extra.get("invocation_params")).get("model"))
    error = text(run.get("error"))
    output = single(outputs) if outputs not in (None, {}) else None
    context = {
        "name": run.get("name"),
        "run_type": run.get("run_type"),
        "model": model,
        "usage": {
            key: run[key] for key in ("prompt_tokens", "completion_tokens", "total_tokens") if run.get(key) is not None
        }
        or None,
        "cost": run.get("total_cost"),
        "start_time": run.get("start_time"),
        "end_time": run.get("end_time"),
        "tags": run.get("tags") or None,
        "metadata": metadata or None,
    }
    reference = first(run, "reference_outputs", "reference_output")
    session = (
        text(metadata.get("session_id")) or text(metadata.get("thread_id")) or text(metadata.get("conversation_id"))
    )
    failure = f"the run failed: {message_of(error)}" if error else None
    if failure is None and output is None:
        failure = "the run has no outputs"
    models = (model,) if model else ()
    return Row(
        str(run.get("id")), single(inputs), output, single(decoded(reference)), context, _scores(run, reading), session,
        failure=failure, models=models,
    )  # fmt: skip


def _scores(run: Value, reading: SessionReading) -> Iterator[RecordedScore | None]:
    items = objects(decoded(first(run, "feedback", "feedbacks")))
    for item in items:
        source = mapping(item.get("feedback_source"))
        answer = item.get("score") if item.get("score") is not None else item.get("value")
        basis = _BASES.get(str(source.get("type")), "recorded")
        by = first(source, "user_name", "user_id")
        yield reading.scales.score(str(item.get("key")), answer, basis=basis, reason=item.get("comment"), by=by)
    for key, stats in mapping(decoded(run.get("feedback_stats"))).items() if not items else ():
        fields = mapping(stats)
        answer = fields.get("avg")
        if answer is None and (values := mapping(fields.get("values"))):
            answer = max(values, key=lambda name: (isinstance(values[name], int | float), values[name]))
        yield reading.scales.score(key, answer)
