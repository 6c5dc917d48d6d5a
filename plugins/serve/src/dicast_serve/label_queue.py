"""Answers about the subjects of a run that wait for labels: a queue, and the progress of the people who label."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import islice
from math import inf
from typing import Any

from dicast import ConfigError, DicastError, Ledger
from dicast.reading import decides
from dicast.toolkit.random_order import in_random_order

from .guide import Guide
from .judge_kinds import JudgeKinds
from .label_case import case
from .reading import reader
from .run_labels import NOBODY, RunLabels
from .runs import Document, full_run_id
from .tables import Key, Table, Tables

DRAWN = {
    "random": "random",
    "unlabeled": "order",
    "odds": "disagreements",
    "failed": "failed",
    "label": "label",
}
"""How the subjects of a queue are drawn, as labels record it. Only ``random`` gives labels that represent all subjects."""

QUEUES = (*DRAWN, "differ")
"""The queues. In ``differ`` people decide between labels: a decision is drawn as they are."""

Values = Mapping[str, Any]


def queue(ledger: Ledger, values: Values, guide: Guide) -> Document:
    """Return the next subjects to label, and the number of labels in the queue.

    ``n`` subjects are in the queue: ``own`` have a label of the labeller, ``labeled`` a label of anybody, ``decided`` a decision. ``data`` are the next
    subjects from ``cursor`` on that the labeller has not labeled (in the queue ``unlabeled``: that nobody has; in ``differ``: that nobody has decided),
    each with its ``place`` in the queue. ``cases`` are the cases of the first of them, at most as many as the value ``cases``. ``last`` is the newest label of the labeller in this run, which can be retracted.
    """
    check_person(ledger, values["labeller"])
    tables: Tables = getattr(ledger, "tables", None) or Tables()
    table = tables.get(ledger, full_run_id(ledger, values["run"]), None)
    case_values = values
    if values["queue"] == "label" and values["label"] is None:
        values = {**values, "label": table.document["label"]}
    labels = RunLabels.of(ledger, table)
    order = _differing(ledger, table, labels) if values["queue"] == "differ" else _order(table, values)
    by_person, labeled, decided = labels.labeled_by(values["labeller"]), labels.labeled(), labels.decided()
    done = {"unlabeled": labeled, "differ": decided}.get(values["queue"], by_person)
    start = values["cursor"]
    waiting = ((place, key) for place, key in enumerate(order[start:], start + 1) if key not in done)
    page = list(islice(waiting, values["limit"]))
    keys, kinds = set(order), Counter(kind for kind, _ in table.keys)
    return {
        "run_id": table.document["run_id"],
        "queue": values["queue"],
        "seed": values["seed"],
        "label": values["label"],
        "drawn": DRAWN.get(values["queue"]),
        "labels": [item["label"] for item in table.document["labels"]],
        "kinds": dict(kinds.most_common()),
        "n": len(order),
        "own": len(by_person & keys),
        "labeled": len(labeled & keys),
        "decided": len(decided & keys),
        "left": sum(key not in done for key in order),
        "labellers": _counts(labels, keys),
        "last": _last(labels, values["labeller"]),
        "data": [{"subject_kind": kind, "subject_id": id, "place": place} for place, (kind, id) in page],
        "cases": [_case(ledger, case_values, key, guide) for _, key in page[: values["cases"]]],
        "next_cursor": page[-1][0] if len(page) == values["limit"] else None,
        "guidelines": list(guide.guidelines(values["label"], tuple(kinds))),
    }


def _case(ledger: Ledger, values: Values, key: Key, guide: Guide) -> Document | None:
    """Return the case of a subject; None if it cannot be read: a request for this case alone gets the error."""
    kind, id = key
    people = values["queue"] == "differ"
    try:
        return case(ledger, {**values, "kind": kind, "subject": id, "people": people}, guide)
    except DicastError:
        return None


def check_person(ledger: Ledger, name: str | None, judges: JudgeKinds | None = None) -> None:
    """Check that no judge other than a person has judged under *name*. With *judges* only rows are read that they have not read.

    :raises ConfigError: if one has.
    """
    kinds = (judges or JudgeKinds()).of(ledger, name) - {"human", None}
    if name is not None and kinds:
        from dicast import Problem

        message = f"judge {name!r} is not a person, but {' and '.join(sorted(map(str, kinds)))}; use another name"
        raise ConfigError(Problem(message, path="judge", value=name))


def _order(table: Table, values: Values) -> Sequence[Key]:
    """Return the subjects of a queue in their order, kept with the table."""
    name, seed, label, kind = (values[key] for key in ("queue", "seed", "label", "subject_kind"))
    if label is not None and label not in table.labels:
        raise ConfigError(f"label: the run has no values of {label!r:.100}; it has {', '.join(table.labels) or 'none'}")
    memo = ("queue", name, seed, label, kind)
    if memo not in table.results:
        keys = [key for key in table.keys if kind in (None, key[0])]
        table.results[memo] = _ordered(table, keys, name, seed, label)
    order: Sequence[Key] = table.results[memo]
    return order


def _ordered(table: Table, keys: list[Key], name: str, seed: int, label: str | None) -> Sequence[Key]:
    rows = table.numbers
    if name == "unlabeled":
        return keys
    if name == "failed":
        ranks = table.column("worst") if label is None else table.values(label)
        return _lowest_first([key for key in keys if _is_failed(table, rows[key], label)], table, ranks)
    if name == "label":
        values = table.values(label)
        return _lowest_first([key for key in keys if values[rows[key]] is not None], table, values)
    odds = table.column("odds")
    return in_random_order([key for key in keys if name == "random" or odds[rows[key]]], seed)


def _lowest_first(keys: list[Key], table: Table, values: Sequence[float | None]) -> list[Key]:
    def rank(key: Key) -> float:
        value = values[table.numbers[key]]
        return -inf if value is None else value

    return sorted(keys, key=rank)


def _is_failed(table: Table, row: int, label: str | None) -> bool:
    """Return whether a subject fails, or has no score; with *label* whether its value is below the label's line, .5 without one."""
    if label is None:
        return table.column("outcomes")[row] in ("fail", "none")
    value = table.values(label)[row]
    line = next((item["pass_at"] for item in table.document["labels"] if item["label"] == label), None)
    return value is not None and value < (0.5 if line is None else line)


def _differing(ledger: Ledger, table: Table, labels: RunLabels) -> Sequence[Key]:
    """Return the subjects whose labels differ on the run's output, and the subjects with a decision."""
    differ = {(row["subject_kind"], row["subject_id"]) for row in reader("label_agreement")(ledger)["differ"]}
    about_output = {key for key, entries in labels.by_subject.items() if len({label.score for _, label in entries}) > 1}
    chosen = differ & about_output | labels.decided()
    return [key for key in table.keys if key in chosen]


def _counts(labels: RunLabels, keys: set[Key]) -> dict[str, int]:
    """Return the number of subjects in *keys* that each person has labeled."""
    people = [
        {label.labeller or NOBODY for _, label in entries if not decides(label)}
        for key, entries in labels.by_subject.items()
        if key in keys
    ]
    return dict(Counter(person for several in people for person in several).most_common())


def _last(labels: RunLabels, person: str | None) -> Document | None:
    newest = None if person is None else labels.newest(person)
    if newest is None:
        return None
    (kind, id), (event, label) = newest
    return {"run_id": event.run_id, "subject_kind": kind, "subject_id": id, "score": label.score}
