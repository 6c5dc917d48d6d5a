"""Answers about the table of a run: a page of its rows, and the neighbors of a subject in it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from math import inf
from typing import Any

from dicast import ConfigError, Ledger
from dicast.toolkit.expressions import compiled, pattern_fault

from .parameters import BadRequest
from .reading import reader
from .runs import Document, full_run_id
from .tables import FLIPS, Key, Table, Tables, counts_of

PREVIEW = 240
"""Characters of a text in a page of rows."""

Values = Mapping[str, Any]

_NO_TEXTS: Values = dict.fromkeys(("input", "output", "reference", "reason"))
_ORDER = ("none", "fail", "pass", "open")


def subjects(ledger: Ledger, values: Values) -> Document:
    """Return a page of the subjects of a run, one row each, with the numbers of rows that each further filter would leave."""
    table = _table(ledger, values)
    label = _label(table, values)
    matching = _matching(ledger, table, values, label)
    rows = _sorted(table, _narrowed(table, matching, values, label), values, label)
    page = rows[values["cursor"] : values["cursor"] + values["limit"]]
    end = values["cursor"] + len(page)
    return {
        "run_id": table.document["run_id"],
        "baseline": None if table.baseline is None else table.baseline["run_id"],
        "label": label,
        "score_label": values["label"] or table.document["score_label"],
        "labels": table.document["labels"],
        "kinds": _counts(table.column("kinds")),
        "bases": _counts(table.bases(values["label"])),
        "total": len(table.ids),
        "counts": {"all": len(matching), **counts_of(table, matching, label, values["label"])},
        "matched": len(rows),
        "data": _documents(ledger, table, page, label, values),
        "next_cursor": end if end < len(rows) else None,
    }


def neighbors(ledger: Ledger, values: Values) -> Document:
    """Return the place of a subject in the list of :func:`subjects`, and the subjects before and after it.

    ``outcome`` is the outcome of the subject in the run, and ``labels`` are the labels that judged it, each with its outcome, its ``pass_at``, and
    in ``decides`` whether it is a label of the score or of the gate.
    """
    table = _table(ledger, values)
    label = _label(table, values)
    rows = _sorted(table, _narrowed(table, _matching(ledger, table, values, label), values, label), values, label)
    row = table.numbers.get((values["kind"], values["subject"]))
    place = rows.index(row) if row in rows else None
    around = (None, None) if place is None else (place - 1, place + 1)
    previous, following = (
        None if at is None or not 0 <= at < len(rows) else _subject(table.keys[rows[at]]) for at in around
    )
    return {
        "run_id": table.document["run_id"],
        "matched": len(rows),
        "place": None if place is None else place + 1,
        "previous": previous,
        "next": following,
        "outcome": None if row is None else table.outcomes(None)[row],
        "labels": [] if row is None else _outcomes_by_label(table, row),
    }


def _outcomes_by_label(table: Table, row: int) -> list[Document]:
    """Return the labels with an outcome of a row. A label without a line has no ``pass_at``."""
    columns = table.document["label_outcomes"]
    labels = [item for item in table.document["labels"] if item["label"] in columns]
    marking = table.document["reading"].marking
    scoring = (marking.label,) if marking.label is not None else marking.counted or columns
    documents = [
        {
            "label": item["label"],
            "pass_at": item["pass_at"],
            "outcome": columns[item["label"]][row],
            "decides": item["label"] in scoring or item["in_gate"],
        }
        for item in labels
    ]
    return [document for document in documents if document["outcome"] is not None]


def _table(ledger: Ledger, values: Values) -> Table:
    run_id = full_run_id(ledger, values["run_id"])
    baseline_id = None if values["baseline"] is None else full_run_id(ledger, values["baseline"])
    tables: Tables = getattr(ledger, "tables", None) or Tables()
    return tables.get(ledger, run_id, baseline_id)


def _label(table: Table, values: Values) -> str | None:
    """Return the label that values, changes and flips are about."""
    label: str | None = values["label"] or table.document["label"]
    if label is not None and values["label"] is not None and label not in table.labels:
        raise ConfigError(f"label: the run has no values of {label!r:.100}; it has {', '.join(table.labels)}")
    return label


def _matching(ledger: Ledger, table: Table, values: Values, label: str | None) -> list[int]:
    """Return the rows that match the search and the filters that are not counted: kind, basis, and value of the label."""
    rows: Sequence[int] = range(len(table.ids))
    if values["q"] is not None:
        found = _search(ledger, table, values["q"], is_expression=values["regex"])
        rows = [row for row in rows if row in found]
    columns = table.column("kinds"), table.bases(values["label"])
    for cells, value in zip(columns, (values["subject_kind"], values["basis"]), strict=True):
        if value is not None:
            rows = [row for row in rows if cells[row] == value]
    low, high = values["min_value"], values["max_value"]
    if low is not None or high is not None:
        numbers = table.values(label)
        rows = [row for row in rows if _is_between(numbers[row], low, high)]
    return list(rows)


def _is_between(value: float | None, low: float | None, high: float | None) -> bool:
    return value is not None and (low is None or value >= low) and (high is None or value <= high)


def _search(ledger: Ledger, table: Table, text: str, *, is_expression: bool) -> set[int]:
    if not is_expression:
        words = text.lower().split()
        return table.texts(ledger).rows_with_words(words) if words else set(range(len(table.ids)))
    if (fault := pattern_fault(text)) is not None:
        raise BadRequest(f"q: {fault}")
    return table.texts(ledger).rows_matching(compiled(f"(?i){text}"))


def _narrowed(table: Table, rows: Sequence[int], values: Values, label: str | None) -> list[int]:
    """Return the rows of an outcome, of a change, and with labels that disagree."""
    outcomes, flips, odds = table.outcomes(values["label"]), table.flips(label), table.column("odds")
    outcome, changes = values["outcome"], FLIPS.get(values["change"])
    return [
        row
        for row in rows
        if outcome in (None, outcomes[row])
        and (changes is None or flips[row] in changes)
        and (not values["odds"] or odds[row])
    ]


def _sorted(table: Table, rows: list[int], values: Values, label: str | None) -> list[int]:
    """Return *rows* in the requested order. Missing values come last in both directions."""
    sort, is_down = values["sort"], values["down"]
    if sort == "seq":
        return rows[::-1] if is_down else rows
    keys = dict(zip(rows, _keys(table, rows, sort, values, label), strict=True))
    known = [row for row in rows if keys[row] is not None]
    return [*sorted(known, key=keys.__getitem__, reverse=is_down), *(row for row in rows if keys[row] is None)]


def _keys(table: Table, rows: Sequence[int], sort: str, values: Values, label: str | None) -> list[Any]:
    """Return the sort key of each row in *rows*; None if the row has none."""
    if sort == "change":
        return [table.change(label, row) for row in rows]
    if sort == "subject":
        return [_natural(table.ids[row]) for row in rows]
    if sort == "outcome":
        outcomes = table.outcomes(values["label"])
        return [_ORDER.index(outcomes[row]) for row in rows]
    if sort == "worst":
        return _badness(table, rows, values["label"])
    numbers = table.values(values["label"] if sort == "score" else values["by"] or label)
    return [numbers[row] for row in rows]


def _badness(table: Table, rows: Sequence[int], chosen: str | None) -> list[Any]:
    """Return keys of *rows*, the worst lowest; under a chosen label: no score, then failed, then the others, each by value."""
    if chosen is None:
        return [table.column("worst")[row] for row in rows]
    outcomes, numbers = table.outcomes(chosen), table.values(chosen)
    keys: list[Any] = []
    for row in rows:
        number = numbers[row]
        rank = {"none": 0, "fail": 1}.get(outcomes[row], 2 if number is not None else 3)
        keys.append((rank, inf if number is None else number))
    return keys


def _natural(id: str) -> list[tuple[int, int, str]]:
    """Return a key that sorts numbers in *id* by their size."""
    return [
        (0, int(part), "") if part.isascii() and part.isdecimal() else (1, 0, part.lower())
        for part in re.split(r"([0-9]{1,300})", id)
    ]


def _counts(column: Sequence[str | None]) -> dict[str, int]:
    """Return how often each text is in *column*, the most frequent first."""
    return dict(Counter(text for text in column if text is not None).most_common())


def _documents(ledger: Ledger, table: Table, rows: Sequence[int], label: str | None, values: Values) -> list[Document]:
    """Return *rows* as documents, with their texts."""
    if not rows:
        return []
    most, chosen = None if values["texts"] == "whole" else PREVIEW, values["label"]
    texts = _texts(ledger, table.document["run_id"], table, rows, table.column("places"), (most, chosen))
    older: Sequence[Values] = [_NO_TEXTS] * len(rows)
    if table.baseline is not None:
        older = _texts(ledger, table.baseline["run_id"], table, rows, table.baseline["places"], (most, chosen))
    columns = {
        "session_id": table.column("sessions"),
        "outcome": table.outcomes(chosen),
        "basis": table.bases(chosen),
        "score": table.values(chosen),
        "odds": table.column("odds"),
    }
    flips = table.flips(label)
    return [
        {
            **_subject(table.keys[row]),
            **{name: column[row] for name, column in columns.items()},
            "values": {name: value for name in table.labels if (value := table.values(name)[row]) is not None},
            **({} if table.baseline is None else _compared(table, row, label, flips[row], old)),
            **{name: text[name] for name in ("input", "output", "reference", "reason")},
        }
        for row, text, old in zip(rows, texts, older, strict=True)
    ]


def _texts(
    ledger: Ledger,
    run_id: str,
    table: Table,
    rows: Sequence[int],
    places: Sequence[Any],
    form: tuple[int | None, str | None],
) -> Sequence[Values]:
    present = [row for row in rows if places[row] is not None]
    subjects = [(*table.keys[row], places[row]) for row in present]
    most, label = form
    data = reader("run_rows")(ledger, run_id=run_id, subjects=subjects, most=most, label=label)["data"]
    texts: dict[int, Values] = dict(zip(present, data, strict=True))
    return [texts.get(row, _NO_TEXTS) for row in rows]


def _compared(table: Table, row: int, label: str | None, flip: str, old: Values) -> Document:
    return {
        "was": table.old_values(label)[row],
        "change": table.change(label, row),
        "flip": {"gained": "fixed", "lost": "regressed"}.get(flip, ""),
        "baseline_output": old["output"],
        "baseline_reason": old["reason"],
    }


def _subject(key: Key) -> Document:
    return {"subject_kind": key[0], "subject_id": key[1]}
