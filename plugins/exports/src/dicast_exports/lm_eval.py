"""The source ``exports/lm_eval``: samples of the Language Model Evaluation Harness."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import attrs

from dicast import RecordedScore
from dicast.toolkit.beginning import Beginning
from dicast.toolkit.detection import Detection
from dicast.toolkit.session_reading import SessionReading

from .export import ExportSource, Row
from .values import Value, mapping

_KEYS = {"doc_id", "doc", "target", "arguments", "resps", "filtered_resps"}
_OTHER_KEYS = {*_KEYS, "filter", "metrics", "doc_hash", "prompt_hash", "target_hash", "task", "task_name"}
"""Keys of a sample that are not metrics. They find the metrics in a file without the list ``metrics``."""

_NAME = re.compile(r"samples_(.+?)(?:_\d{4}-\d{2}-\d{2}T[\d.\-:]+)?")


@attrs.frozen
class LmEval(ExportSource):
    """Samples of the Language Model Evaluation Harness (``samples_*.jsonl``, from ``--log_samples``).

    The output is the answer that the harness scored: the filtered response, or the most likely choice in a task with choices. With
    several filters, there is a row for each filter, with score names such as ``exact_match,strict-match``.
    """

    title = "samples of lm-evaluation-harness"
    name = "lm_eval"

    @classmethod
    def detect(cls, beginning: Beginning) -> Detection | None:
        """Return the detection of samples."""
        records = beginning.objects
        return Detection(cls.title) if records and all(record.keys() >= _KEYS for record in records) else None

    def rows(self, reading: SessionReading, companions: object) -> Iterator[Row]:
        """Yield the samples of a file."""
        task = _task(reading.stem)
        for _, record in reading.objects():
            filter_ = record.get("filter")
            label = filter_ if isinstance(filter_, str) and filter_ != "none" else None
            id_ = "/".join(
                str(part) for part in (reading.name and task, record.get("doc_id"), label) if part not in (None, "")
            )
            prompt, choices = _arguments(record.get("arguments"))
            output, chosen = _output(record.get("filtered_resps"), choices)
            context = {
                "task": task,
                "doc": record.get("doc"),
                "target": record.get("target"),
                "filter": label,
                "choices": choices or None,
                "resps": record.get("resps") if chosen is not None else None,
            }
            failure = None if output is not None else "the sample has no response"
            scores = _scores(record, label, reading)
            yield Row(id_, prompt, output, _reference(record.get("target"), choices), context, scores, failure=failure)


def _task(stem: str) -> str:
    match = _NAME.fullmatch(stem)
    return stem if match is None else match[1]


def _arguments(value: object) -> tuple[object, list[str]]:
    """Return the prompt, and the continuations of the requests as choices, if each request has one."""
    requests: list[Any] = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    pairs = [list(request.values()) if isinstance(request, dict) else request for request in requests]
    pairs = [pair for pair in pairs if isinstance(pair, list) and pair]
    if not pairs:
        return None, []
    continuations = [pair[1] for pair in pairs if len(pair) > 1 and isinstance(pair[1], str)]
    return pairs[0][0], continuations if len(continuations) == len(pairs) else []


def _output(value: object, choices: list[str]) -> tuple[object, int | None]:
    """Return the output of a sample, and the index of the most likely choice if the task has choices."""
    responses = value if isinstance(value, list) else [] if value is None else [value]
    likelihoods = [_likelihood(response) for response in responses]
    numbers = [number for number in likelihoods if number is not None]
    if choices and len(numbers) == len(choices) > 1:
        index = numbers.index(max(numbers))
        return choices[index].strip(), index
    if len(responses) == 1:
        return responses[0], None
    return (responses or None), None


def _likelihood(response: object) -> float | None:
    """Return the log likelihood in ``[number, is_greedy]``; newer files write both as texts."""
    number = response[0] if isinstance(response, list) and len(response) == 2 else response
    try:
        return float(number) if isinstance(number, int | float | str) and not isinstance(number, bool) else None
    except ValueError:
        return None


def _reference(target: object, choices: list[str]) -> object:
    """Return the reference; in a task with choices, it is the text of the right choice."""
    number = int(target) if isinstance(target, str) and target.isdecimal() else target
    if choices and len(choices) > 1 and type(number) is int and 0 <= number < len(choices):
        return choices[number].strip()
    return None if target == "" else target


def _scores(record: Value, filter_: str | None, reading: SessionReading) -> Iterator[RecordedScore | None]:
    names = record.get("metrics")
    if not isinstance(names, list):
        names = [key for key in record if key not in _OTHER_KEYS]
    for name in names:
        answer = record.get(str(name))
        label = str(name) if filter_ is None else f"{name},{filter_}"
        if isinstance(answer, list) and len(answer) == 2 and all(type(part) in (int, float) for part in answer):
            yield reading.scales.score(label, answer[0])  # the second number is a weight, such as a number of bytes
        else:
            yield reading.scales.score(label, mapping(answer) or answer)
