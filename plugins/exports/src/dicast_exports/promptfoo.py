"""The source ``exports/promptfoo``: results of promptfoo."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import attrs

from dicast import Basis, ConfigError, Problem, RecordedScore
from dicast.toolkit.beginning import Beginning
from dicast.toolkit.detection import Detection
from dicast.toolkit.document_parts import document_parts
from dicast.toolkit.session_reading import SessionReading
from dicast.toolkit.yaml import MAX_DATA_NODES, read_yaml

from .export import ExportSource, Row
from .values import Value, first, mapping, message_of, objects, text

_RESULT = {"prompt", "vars", "success"}
"""Keys that every result has."""

_PLACES = (("results", "results"), ("results", "outputs"), ("results",))
_ERROR = 2
"""``failureReason`` of a result that failed with an error, not by an assertion."""

_MODELS = (
    "llm-rubric", "model-graded-", "factuality", "answer-relevance", "context-", "g-eval", "select-best", "search-rubric", "agent-rubric",
    "trajectory:goal-success", "conversation-relevance", "pi", "moderation", "promptfoo:redteam",
)  # fmt: skip
"""Starts of the types of assertions that a model decides."""

_HUMAN = "human"
"""Type of the rating of a person in the viewer."""

_UNCLEAR = ("similar", "classifier", "webhook", "max-score", "assert-set")
"""Starts of the types whose evidence is neither a model's opinion nor a comparison with the expected text."""


@attrs.frozen
class Promptfoo(ExportSource):
    """Results of promptfoo: its output in JSON, JSON lines or YAML (``promptfoo eval -o results.json``).

    Each result is a row with the rendered prompt as input and the variables in the context. Its scores are ``recorded/promptfoo`` (the score of
    the result), each named score, and each assertion by its metric or type.
    """

    title = "results of promptfoo"
    name = "promptfoo"

    @classmethod
    def detect(cls, beginning: Beginning) -> Detection | None:
        """Return the detection of results, with the version of the format if it has one."""
        records = beginning.objects
        first_record = records[0] if records else {}
        if beginning.layout == "document" or len(records) == 1:
            summary = mapping(first_record.get("results"))
            if isinstance(summary.get("results"), list) and ("stats" in summary or "table" in summary):
                return Detection(cls.title, None if "version" not in summary else str(summary["version"]))
        if records and all(record.keys() >= _RESULT and "score" in record for record in records):
            return Detection(cls.title, specificity=1)
        start = b"\n".join(beginning.lines[:10]) or beginning.start
        if start.startswith(b"evalId:") or (b"evalId" in start and b"results" in start and start.startswith(b"{")):
            return Detection(cls.title)
        return None

    def rows(self, reading: SessionReading, companions: object) -> Iterator[Row]:
        """Yield the results of a file."""
        number = 0
        for line, result in _results(reading):
            number += 1
            yield _row(result, number, reading)
            reading.settle(line)
        if not number:
            reading.refuse("the file has no results; write them with promptfoo eval -o FILE", 1)


def _results(reading: SessionReading) -> Iterator[tuple[int, Value]]:
    with reading.file.binary() as stream:
        start = stream.read(64).lstrip()[:1]
    if start not in (b"{", b"["):
        yield from _of_yaml(reading)
        return
    with reading.file.binary() as stream:
        line = stream.readline(reading.max_bytes)
    if b'"results"' not in line[:100_000] and line.rstrip().endswith(b"}") and b'"score"' in line:
        yield from reading.objects()
        return
    for line_number, path, value in document_parts(reading, _PLACES):
        if path in (*_PLACES, ()) and isinstance(value, dict):
            yield line_number, value


def _of_yaml(reading: SessionReading) -> Iterator[tuple[int, Value]]:
    with reading.file.binary() as stream:
        data = stream.read(reading.max_bytes + 1)
    if len(data) > reading.max_bytes:
        reading.refuse(f"the file is longer than max_line_bytes ({reading.max_bytes:,}); write JSON lines", 1)
        return
    if reading.check is not None:
        reading.check.digest.update(data)
    try:
        document: Any = read_yaml(data, reading.file.label, [], MAX_DATA_NODES).plain()
    except (ValueError, ConfigError) as error:
        reading.refuse(Problem(f"the file is no YAML: {error}"), 1)
        return
    results = mapping(mapping(document).get("results")).get("results")
    yield from enumerate(objects(results), 1)


def _row(result: Value, number: int, reading: SessionReading) -> Row:
    prompt, response = result.get("prompt"), mapping(result.get("response"))
    provider = result.get("provider")
    model = text(mapping(provider).get("label")) or text(mapping(provider).get("id")) or text(provider)
    output = response.get("output")
    test = mapping(result.get("testCase"))
    context = {
        "vars": result.get("vars"),
        "provider": model,
        "prompt_label": mapping(prompt).get("label"),
        "description": first(result, "description") or test.get("description"),
        "latency_ms": first(result, "latencyMs", "latency_ms"),
        "cost": first(result, "cost") if result.get("cost") is not None else response.get("cost"),
        "usage": first(response, "tokenUsage") or first(result, "tokenUsage"),
        "metadata": result.get("metadata") or None,
        "success": result.get("success"),
    }
    places = (result.get("testIdx"), result.get("promptIdx"))
    id_ = text(result.get("id")) or ("/".join(str(place) for place in places) if None not in places else str(number))
    error = response.get("error") or result.get("error")
    is_error = result.get("failureReason") == _ERROR or output is None
    failure = (message_of(error) if error else "the result has no output") if is_error else None
    models = (model,) if model else ()
    prompt_text = mapping(prompt).get("raw", prompt if isinstance(prompt, str) else None)
    return Row(id_, prompt_text, output, None, context, _scores(result, reading), failure=failure, models=models)


def _scores(result: Value, reading: SessionReading) -> Iterator[RecordedScore | None]:
    if result.get("failureReason") == _ERROR:  # no assertion was checked
        return
    scales, grading = reading.scales, mapping(result.get("gradingResult"))
    yield scales.score("promptfoo", result.get("score"), reason=grading.get("reason"))
    components = objects(grading.get("componentResults"))
    named = {**mapping(grading.get("namedScores")), **mapping(result.get("namedScores"))}
    metrics = [text(mapping(item.get("assertion")).get("metric")) for item in components]
    for name, answer in named.items():
        if metrics.count(name) != 1:  # a metric of one assertion is yielded below, as that assertion
            yield scales.score(name, answer)
    for component, metric in zip(components, metrics, strict=True):
        assertion = mapping(component.get("assertion"))
        type_ = text(assertion.get("type")) or "assertion"
        answer = component.get("score") if component.get("score") is not None else component.get("pass")
        by = assertion.get("provider")
        author = by if isinstance(by, str) else mapping(by).get("id")
        yield scales.score(metric or type_, answer, basis=_basis(type_), reason=component.get("reason"), by=author)


@cache
def _basis(type_: str) -> Basis:
    """Return the basis of an assertion: code and comparisons decide most types."""
    plain = type_.removeprefix("not-")
    if plain == _HUMAN:
        return "human"
    if any(plain == name or (plain.startswith(name) and len(name) > 2) for name in _MODELS):
        return "model"
    return "recorded" if plain == "assertion" or plain.startswith(_UNCLEAR) else "truth"
