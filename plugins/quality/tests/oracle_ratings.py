"""Who said what of which subject: ratings from a ledger and from a file of labels, put together by subject."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import attrs

from dicast import DataError, Entry, Event, InputCheck, InputFile, Ledger, Problem, Query, identifier, nearest

Between = Literal["judges", "runs", "rubrics"]
BETWEEN: tuple[str, ...] = get_args(Between)

GOLD = "gold"
KEYS = ("subject_id", "subject_kind", "score")
"""What a line of labels may say; other keys are the writer's own."""

Subject = tuple[str, str]
"""A subject's kind and id."""

READ = -1
"""Stands for a rater where a subject was read."""

Row = tuple[int | None, str, str, int, float | None, int, int]
"""Place in the ledger, subject id, subject kind ("" in a file that does not say it), number of the rater, score (None for a
failure), number of the run, and a mark: the digest where a subject was read, else the number of the :class:`Maker`."""


Maker = tuple[str, str, str | None]
"""Who made a verdict: the label, the run, and the fingerprint of the judge. Equal fingerprints are equal judges."""

Rating = tuple[float | None, int, int | None, int]
"""A score, or None for a failure; its place in the ledger, the digest of what was judged, and the number of its maker."""


class Unit(NamedTuple):  # made by the million, and quicker than a class of attrs
    """A subject with its *scores* by number of the rater, in the order of these; None for one that failed.

    The scores are about one content; *apart* are those about others. *ratings* has what they come from, *contents* counts what
    was read under this id, *label* is what a file says of the subject.
    """

    subject: Subject
    scores: Mapping[int, float | None]
    apart: Mapping[int, float | None]
    ratings: Mapping[int, Rating]
    contents: int
    label: float | None = None


@attrs.frozen
class Wanted:
    """Which verdicts are compared: of *labels* in *runs* about subjects of *kind*, each of them all when it is empty.

    *between* says what makes two raters out of them.
    """

    labels: Sequence[str] = ()
    runs: Sequence[str] = ()
    kind: str | None = None
    between: Between = "judges"

    def entries(self, ledger: Ledger) -> Iterator[Entry]:
        """The events that are read, those of one run in their order."""
        started = ("eval.started",) if self.between == "rubrics" else ()  # a failure does not name its rubric
        read = ("subject.read",) if self._may_differ(ledger) else ()
        types = ("eval.completed", "eval.failed", *started, *read)
        for run_id in self.runs or (None,):
            yield from ledger.read(Query(run_id=run_id, types=types, subject_kind=self.kind))

    def _may_differ(self, ledger: Ledger) -> bool:
        """Whether verdicts may be about different contents of one subject: a run reads it once, unless it is live."""
        queries = (Query(run_id=run_id, types=("run.started",)) for run_id in self.runs or (None,))
        runs = [bool(entry.event.payload.get("live")) for query in queries for entry in ledger.read(query)]
        return len(runs) > 1 or any(runs)


class Ratings:
    """Ratings of any number of subjects, in a file without a name that is gone with the process.

    *raters* are numbers by name, *makers* those of who made the verdicts; *labels* are those of all judges that were met, also
    of others than the wanted ones, *kinds* those of the subjects that were judged. *first_gold* is the first id in a file of
    labels, *gold_kinds* are the kinds it names.
    """

    def __init__(self) -> None:
        self.raters: dict[str, int] = {}
        self.makers: dict[Maker, int] = {}
        self.labels: set[str] = set()
        self.kinds: set[str] = set()
        self.first_gold: str | None = None
        self.gold_kinds: set[str] = set()
        self._gold = READ
        self._runs: dict[str, int] = {}
        self._database = sqlite3.connect("", isolation_level=None)
        self._database.execute("PRAGMA journal_mode = OFF")
        self._database.execute(
            "CREATE TABLE ratings (seq INTEGER PRIMARY KEY, id, kind, rater INTEGER, score REAL, run INTEGER, mark INTEGER)"
        )

    def close(self) -> None:
        """Forget them."""
        self._database.close()

    def read(self, ledger: Ledger, wanted: Wanted) -> None:
        """Add what *ledger* has of *wanted*. Of several verdicts by one rater on one subject the newest counts."""
        self._add(self._rows(wanted.entries(ledger), wanted))

    def read_gold(self, path: Path) -> str:
        """Add the labels in the file at *path*, JSON lines ``{subject_id, score}``; return the name of their rater.

        A line may also have ``subject_kind``; without it the label is about every subject with this id.

        :raises DataError: naming every bad line.
        """
        name = GOLD if GOLD not in self.raters else f"{GOLD} ({path.name})"
        rater = self._gold = self._number(name)
        with InputFile.opened(path) as file, InputCheck(file) as check:
            self._add(self._gold_rows(file, check, rater))
            check.finish(self.first_gold is not None)
        return name

    def units(self) -> Iterator[Unit]:
        """Every subject that was judged or has a label, in the order of ids."""
        labelled: tuple[str, float | None] = ("", None)
        for (id, kind), found, contents in self._grouped():
            label = labelled[1] if labelled[0] == id else None
            if self._gold in found:
                label = found.pop(self._gold)[0]
            if not kind:  # it sorts before all kinds
                labelled = id, label
            elif found or label is not None:
                yield _unit((kind, id), found, contents, label)

    def _grouped(self) -> Iterator[tuple[Subject, dict[int, Rating], int]]:
        """Each subject with the newest rating of each rater, and how many contents were read under its id."""
        query = "SELECT id, kind, rater, score, run, mark, seq FROM ratings ORDER BY id, kind, seq"
        last: Subject | None = None
        found: dict[int, Rating] = {}
        read: dict[int, int] = {}
        contents: set[int] = set()
        for id, kind, rater, score, run, mark, seq in self._database.execute(query):
            if (id, kind) != last:
                if last is not None:
                    yield last, found, len(contents)
                last, found, read, contents = (id, kind), {}, {}, set()
            if rater == READ:
                read[run] = mark
                contents.add(mark)
            elif score is not None or rater not in found:  # a failure does not take a verdict back
                found[rater] = score, seq, read.get(run), mark
        if last is not None:
            yield last, found, len(contents)

    def _rows(self, entries: Iterator[Entry], wanted: Wanted) -> Iterator[Row]:
        begun: dict[object, Mapping[str, Any]] = {}
        for entry in entries:
            event = entry.event
            payload: Mapping[str, Any] = event.payload
            run = self._runs.setdefault(event.run_id, len(self._runs))
            if event.type == "subject.read":
                mark = int(payload["digest"][:16], 16) - 2**63  # 8 bytes of it are enough to tell contents apart
                yield entry.seq, str(event.subject_id), str(event.subject_kind), READ, None, run, mark
                continue
            label = payload["judge"]
            self.labels.add(label)
            if wanted.labels and label not in wanted.labels:
                continue
            if event.type == "eval.started":
                begun[payload["eval_id"]] = payload
                continue
            planned = begun.pop(payload["eval_id"], payload)
            name = _name(event, {**planned, **payload} if event.type == "eval.completed" else planned, wanted.between)
            maker = label, event.run_id, payload.get("fingerprint")
            mark = self.makers.setdefault(maker, len(self.makers))
            id, kind = payload["subject_id"], payload["subject_kind"]
            self.kinds.add(kind)
            yield entry.seq, id, kind, self._number(name), payload.get("score"), run, mark

    def _gold_rows(self, file: InputFile, check: InputCheck, rater: int) -> Iterator[Row]:
        for number, record in file.objects(check=check):
            try:
                id, kind, score = _label(record)
            except DataError as error:
                file.fault(error, number, check)
                continue
            check.add_id(id, number, kind or "subject_id")
            self.first_gold = self.first_gold or id
            if kind:
                self.gold_kinds.add(kind)
            yield None, id, kind, rater, score, READ, READ

    def _number(self, name: str) -> int:
        return self.raters.setdefault(name, len(self.raters))

    def _add(self, rows: Iterator[Row]) -> None:
        self._database.execute("BEGIN")  # else each row is a transaction of its own
        self._database.executemany("INSERT INTO ratings VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
        self._database.execute("COMMIT")


def _unit(subject: Subject, found: Mapping[int, Rating], contents: int, label: float | None) -> Unit:
    """The unit of a subject. With a label the newest verdict counts, and those on the same content; else the content that
    most raters have scored, of several such the newest.
    """
    if contents < 2:
        return Unit(subject, {rater: found[rater][0] for rater in sorted(found)}, {}, found, contents, label)
    scored = [(content, seq) for score, seq, content, _ in found.values() if score is not None]
    count = Counter(content for content, _ in scored if label is None)
    chosen, _ = max(scored, key=lambda one: (count[one[0]], one[1]), default=(None, 0))
    scores, apart = dict[int, float | None](), dict[int, float | None]()
    for rater, (score, _, content, _) in sorted(found.items()):
        (scores if score is None or content == chosen else apart)[rater] = score
    return Unit(subject, scores, apart, found, contents, label)


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
    problems = [_missing(name, record) for name in ("subject_id", "score") if name not in record]
    if problems:
        raise DataError(problems)
    id, score, kind = identifier(record["subject_id"], "subject_id"), record["score"], record.get("subject_kind")
    if type(score) not in (int, float) or not 0 <= score <= 1:
        raise DataError(Problem(f"{score!r} is not a score from 0 to 1", path="score", value=score))
    if kind is not None and (not isinstance(kind, str) or not kind):
        raise DataError(Problem(f"{kind!r} is no kind of subject; write a word like turn", path="subject_kind"))
    return id, kind or "", float(score)


def _missing(name: str, record: Mapping[str, Any]) -> Problem:
    """What to say of a line without the key *name*: which key was written in its place, if there is one like it."""
    written = nearest(name, (key for key in record if key not in KEYS))
    if written is None:
        return Problem(f"the line has no {name!r}", path=name)
    return Problem(f"{written!r} is not known", path=written, value=written, hint=name)
