"""Files of labels by people about subjects, as JSON lines or CSV."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping
from typing import Any

from .._kernel.classes import field, frozen
from .._kernel.values.errors import DataError, Problem
from .._kernel.values.names import identifier, nearest
from .input_file import InputCheck, InputFile

KEYS = ("subject_id", "subject_kind", "score", "label", "labeller", "session_id", "output_digest", "run")
"""Keys of a label; other keys are custom keys of its author."""

_WORDS = {
    **dict.fromkeys(("pass", "passed", "good", "yes", "true", "win", "1"), 1.0),
    **dict.fromkeys(("fail", "failed", "bad", "no", "false", "loss", "lose", "0"), 0.0),
    "tie": 0.5,
}
"""Scores of the words in ``label``."""


@frozen
class GoldLabel:
    """A labeller's label for one subject.

    *kind* is "" if the label has no kind of subject; *session_id* and *labeller* are None if it has none. *others* are further keys of the
    label's author. *output_digest* and *run* identify the labeled output: the digest of the output, or the run that judged it. Without
    either, the label is about every output that the source brings.
    """

    subject_id: str
    score: float
    kind: str = ""
    labeller: str | None = None
    session_id: str | None = None
    others: Mapping[str, object] = field(factory=dict)
    output_digest: str | None = None
    run: str | None = None


def gold_labels(file: InputFile, check: InputCheck) -> Iterator[tuple[int, GoldLabel]]:
    """Yield each label in *file* with the number of its line: JSON lines ``{subject_id, score | label}``, or CSV with these columns.

    ``score`` is a number from 0 to 1. ``label`` is such a number, a truth value, or one of the words pass, good, yes, win (1), fail, bad,
    no, loss (0) and tie (0.5). ``subject_kind``, ``labeller``, ``session_id``, ``output_digest`` and ``run`` are optional. Faults go to *check*.
    """
    is_json = _begins_as_json(file)
    for number, record in file.objects(check=check, unique=True) if is_json else _rows(file, check):
        try:
            yield number, _label(record, is_json=is_json)
        except DataError as error:
            file.fault(error, number, check)


def _begins_as_json(file: InputFile) -> bool:
    """Return True if the first line that is not blank is JSON; a header of columns begins with a letter or a quote."""
    for _, line in file.lines():
        if line.strip():
            return line.lstrip()[:1] in b"{["
    return True


def _rows(file: InputFile, check: InputCheck) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the records of a CSV file, by the names in its first line; an empty value is a missing value."""
    numbers: list[int] = []
    reader = csv.reader(_texts(file, check, numbers), strict=True)
    header: list[str] | None = None
    line = 0
    while True:
        try:
            record = next(reader, None)
        except csv.Error as error:
            file.fault(f"the line is not CSV: {error}", numbers[-1], check)
            return
        if record is None:
            return
        line, numbers[:] = numbers[0], []
        if header is None:
            header = [name.strip() for name in record]
        elif len(record) != len(header):
            file.fault(f"the record has {len(record)} values, the header has {len(header)} columns", line, check)
        else:
            yield line, {name: value for name, value in zip(header, record, strict=True) if value != ""}


def _texts(file: InputFile, check: InputCheck, numbers: list[int]) -> Iterator[str]:
    """Yield the lines that are not blank as text; *numbers* receives the number of each."""
    for number, line in file.lines(check=check):
        if not line.strip():
            continue
        try:
            text = line.decode()
        except UnicodeDecodeError as error:
            wrong = f"byte 0x{line[error.start]:02x} is not UTF-8; save the file as UTF-8"
            file.undecodable(Problem(wrong), number, check)
            continue
        numbers.append(number)
        yield text


def _label(record: Mapping[str, Any], *, is_json: bool) -> GoldLabel:
    """Return the label in one line.

    :raises DataError: (without a place) with the problem.
    """
    problems = [_missing("subject_id", record)] if "subject_id" not in record else []
    if not {"score", "label"} & record.keys():
        problems.append(_missing("score", record))
    if problems:
        raise DataError(problems)
    kind = record.get("subject_kind")
    if kind is not None and (not isinstance(kind, str) or not kind):
        raise DataError(Problem(f"{kind!r} is no kind of subject; write a word like turn", path="subject_kind"))
    session, labeller, run = record.get("session_id"), record.get("labeller"), record.get("run")
    return GoldLabel(
        identifier(record["subject_id"], "subject_id"),
        _score(record, is_json=is_json),
        kind or "",
        None if labeller is None else identifier(labeller, "labeller"),
        None if session is None else identifier(session, "session_id"),
        {key: value for key, value in record.items() if key not in KEYS},
        _digest(record.get("output_digest")),
        None if run is None else identifier(run, "run"),
    )


def _digest(value: object) -> str | None:
    """Return a digest of an output.

    :raises DataError: when it is none.
    """
    if value is None:
        return None
    if not isinstance(value, str) or not re.fullmatch("[0-9a-f]{64}", value.lower()):
        message = (
            f"{value!r:.80} is no digest of an output: 64 hexadecimal digits, as dicast show SUBJECT --json has them"
        )
        raise DataError(Problem(message, path="output_digest", value=value))
    return value.lower()


def _score(record: Mapping[str, Any], *, is_json: bool) -> float:
    """Return the score of a line, given as a number or a word.

    :raises DataError: when it gives two that differ, or none from 0 to 1.
    """
    scores = [
        _as_score(name, record[name], is_json=is_json) for name in ("score", "label") if record.get(name) is not None
    ]
    if not scores:
        raise DataError(Problem("the label is null; give a score from 0 to 1, or leave the line out", path="score"))
    if len(set(scores)) > 1:
        message = f"score {record['score']!r} and label {record['label']!r} differ; keep one of them"
        raise DataError(Problem(message, path="label", value=record["label"]))
    return scores[0]


def _as_score(name: str, raw: object, *, is_json: bool) -> float:
    value = raw
    if name == "label" and isinstance(raw, bool):
        return float(raw)
    if isinstance(raw, str) and name == "label" and (score := _WORDS.get(raw.strip().lower())) is not None:
        return score
    if isinstance(raw, str) and (name == "label" or not is_json):
        value = _number(raw)
    if type(value) in (int, float) and 0 <= value <= 1:  # type: ignore[operator]  # it is a number
        return float(value)  # type: ignore[arg-type]  # likewise
    if name == "label":
        words = "a score from 0 to 1, true or false, pass, fail or tie"
        hint = nearest(raw.lower(), _WORDS) if isinstance(raw, str) else None
        raise DataError(Problem(f"{raw!r} is no label; write {words}", path=name, value=raw, hint=hint))
    raise DataError(Problem(f"{raw!r} is not a score from 0 to 1", path=name, value=raw))


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _missing(name: str, record: Mapping[str, Any]) -> Problem:
    """Return the problem of a line without the key *name*, with the similar key that was written in its place, if any."""
    written = nearest(name, (key for key in record if key not in KEYS))
    if written is None:
        also = " (or 'label')" if name == "score" else ""
        return Problem(f"the line has no {name!r}{also}", path=name)
    return Problem(f"{written!r} is not known", path=written, value=written, hint=name)
