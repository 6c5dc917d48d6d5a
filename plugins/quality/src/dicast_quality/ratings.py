"""Who said what of which subject: ratings from a ledger and from a file of labels, put together by subject."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, get_args

import attrs

from dicast import DataError, Event, InputCheck, InputFile, Ledger, Problem, Query, identifier, nearest

Between = Literal["judges", "runs", "rubrics"]
BETWEEN: tuple[str, ...] = get_args(Between)

GOLD = "gold"

Subject = tuple[str, str]
"""A subject's kind and id."""

Unit = tuple[Subject, Mapping[int, float | None]]
"""A subject with its scores by number of the rater; None for one that failed."""

Row = tuple[str, str, int, float | None]
"""Subject id, subject kind ("" in a file that does not say it), number of the rater, score; None for a failure."""


@attrs.frozen
class Wanted:
    """Which verdicts are compared: of *labels* in *runs* about subjects of *kind*, each of them all when it is empty.

    *between* says what makes two raters out of them.
    """

    labels: Sequence[str] = ()
    runs: Sequence[str] = ()
    kind: str | None = None
    between: Between = "judges"

    def events(self, ledger: Ledger) -> Iterator[Event]:
        """The events that are read, those of one run in their order."""
        started = ("eval.started",) if self.between == "rubrics" else ()  # a failure does not name its rubric
        types = ("eval.completed", "eval.failed", *started)
        for run_id in self.runs or (None,):
            for entry in ledger.read(Query(run_id=run_id, types=types, subject_kind=self.kind)):
                yield entry.event


class Ratings:
    """Ratings of any number of subjects, in a file without a name that is gone with the process.

    *raters* are numbers by name; *labels* are those of all judges that were met, also of others than the wanted ones;
    *first_gold* is the first id in a file of labels.
    """

    def __init__(self) -> None:
        self.raters: dict[str, int] = {}
        self.labels: set[str] = set()
        self.first_gold: str | None = None
        self._database = sqlite3.connect("", isolation_level=None)
        self._database.execute("PRAGMA journal_mode = OFF")
        self._database.execute("CREATE TABLE ratings (id, kind, rater INTEGER, score REAL)")

    def close(self) -> None:
        """Forget them."""
        self._database.close()

    def read(self, ledger: Ledger, wanted: Wanted) -> None:
        """Add what *ledger* has of *wanted*. Of several verdicts by one rater on one subject the newest counts."""
        self._add(self._rows(wanted.events(ledger), wanted))

    def read_gold(self, path: Path) -> str:
        """Add the labels in the file at *path*, JSON lines ``{subject_id, score}``; return the name of their rater.

        A line may also have ``subject_kind``; without it the label is about every subject with this id.

        :raises DataError: naming every bad line.
        """
        name = GOLD if GOLD not in self.raters else f"{GOLD} ({path.name})"
        rater = self._number(name)
        with InputFile.opened(path) as file, InputCheck(file) as check:
            self._add(self._gold_rows(file, check, rater))
            check.finish(self.first_gold is not None)
        return name

    def units(self) -> Iterator[Unit]:
        """Every subject with its scores by rater, in the order of ids."""
        gold: tuple[str, dict[int, float | None]] = ("", {})
        for (id, kind), ratings in self._grouped():
            if not kind:  # it sorts before all kinds
                gold = id, ratings
            else:
                yield (kind, id), ratings | gold[1] | ratings if gold[0] == id else ratings

    def _grouped(self) -> Iterator[tuple[Subject, dict[int, float | None]]]:
        query = "SELECT id, kind, rater, score FROM ratings ORDER BY id, kind, rater, rowid"
        last: Subject | None = None
        found: dict[int, float | None] = {}
        for id, kind, rater, score in self._database.execute(query):
            if (id, kind) != last:
                if last is not None:
                    yield last, found
                last, found = (id, kind), {}
            if score is not None or rater not in found:  # a failure does not take a verdict back
                found[rater] = score
        if last is not None:
            yield last, found

    def _rows(self, events: Iterator[Event], wanted: Wanted) -> Iterator[Row]:
        begun: dict[object, Mapping[str, Any]] = {}
        for event in events:
            payload: Mapping[str, Any] = event.payload
            label = payload["judge"]
            self.labels.add(label)
            if wanted.labels and label not in wanted.labels:
                continue
            if event.type == "eval.started":
                begun[payload["eval_id"]] = payload
                continue
            planned = begun.pop(payload["eval_id"], payload)
            name = _name(event, {**planned, **payload} if event.type == "eval.completed" else planned, wanted.between)
            yield payload["subject_id"], payload["subject_kind"], self._number(name), payload.get("score")

    def _gold_rows(self, file: InputFile, check: InputCheck, rater: int) -> Iterator[Row]:
        for number, record in file.objects(check=check):
            try:
                id, kind, score = _label(record)
            except DataError as error:
                file.fault(error, number, check)
                continue
            check.add_id(id, number, kind or "subject_id")
            self.first_gold = self.first_gold or id
            yield id, kind, rater, score

    def _number(self, name: str) -> int:
        return self.raters.setdefault(name, len(self.raters))

    def _add(self, rows: Iterator[Row]) -> None:
        self._database.execute("BEGIN")  # else each row is a transaction of its own
        self._database.executemany("INSERT INTO ratings VALUES (?, ?, ?, ?)", rows)
        self._database.execute("COMMIT")


def _name(event: Event, payload: Mapping[str, Any], between: Between) -> str:
    """The name of the rater."""
    if between == "judges":
        return str(payload["judge"])
    if between == "runs":
        return event.run_id
    return f"{payload.get('rubric_id')} {payload.get('rubric_version')}"


def _label(record: Mapping[str, Any]) -> tuple[str, str, float]:
    """Id, kind and score of a line; the kind is "" where the line does not say it.

    :raises DataError: (without a place) saying what is wrong with it.
    """
    problems = [
        Problem(f"the line has no {name!r}", path=name, hint=nearest(name, record))
        for name in ("subject_id", "score")
        if name not in record
    ]
    if problems:
        raise DataError(problems)
    id, score, kind = identifier(record["subject_id"], "subject_id"), record["score"], record.get("subject_kind")
    if type(score) not in (int, float) or not 0 <= score <= 1:
        raise DataError(Problem(f"{score!r} is not a score from 0 to 1", path="score", value=score))
    if kind is not None and (not isinstance(kind, str) or not kind):
        raise DataError(Problem(f"{kind!r} is no kind of subject; write a word like turn", path="subject_kind"))
    return id, kind or "", float(score)
