"""Ratings by subject, from a ledger and from a file of labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, get_args

import attrs

from dicast import Event, Ledger, Query
from dicast.reading import (
    FAILED,
    READ,
    ActivityColumns,
    LabeledOutputs,
    VerdictColumns,
    VerdictOrigin,
    read_activity,
    read_open_judgments,
)

from .contents import Contents, Place
from .made_outputs import with_made_outputs
from .people import PEOPLE

Between = Literal["judges", "runs", "rubrics"]
BETWEEN: tuple[str, ...] = get_args(Between)

GOLD = "gold"

Subject = tuple[str, str]
"""A subject's kind and id."""

Maker = tuple[str, str, str | None]
"""Maker of a verdict: label, run, and fingerprint of the judge. Equal fingerprints mean equal judges."""


class Unit(NamedTuple):  # created by the million, and faster than an attrs class
    """A subject with its *scores* by number of the rater, in the order of the numbers; None for a failure.

    The scores are about one content, scores in *other_scores* about others. *rows* are their verdicts. *contents* counts the contents read under this id.
    *label* is the subject's score in the file of labels.
    """

    subject: Subject
    scores: Mapping[int, float | None]
    other_scores: Mapping[int, float | None]
    rows: Mapping[int, int]
    contents: int
    label: float | None = None


@attrs.frozen
class VerdictFilter:
    """Filter of compared verdicts: by *labels*, in *runs*, about subjects of *kind*; an empty filter accepts all.

    *between* is the property that distinguishes two raters.
    """

    labels: Sequence[str] = ()
    runs: Sequence[str] = ()
    kind: str | None = None
    between: Between = "judges"

    @property
    def only(self) -> str | None:
        """The single run that is compared; None for several or all runs."""
        return self.runs[0] if len(self.runs) == 1 else None

    def chooses(self, maker: VerdictOrigin) -> bool:
        """Return whether verdicts of *maker* pass the filter of runs and kinds, by any judge."""
        return (not self.runs or maker.run_id in self.runs) and self.kind in (None, maker.kind)

    def chooses_event(self, event: Event) -> bool:
        """Return whether *event* passes the filter of runs and kinds."""
        return (not self.runs or event.run_id in self.runs) and self.kind in (None, event.subject_kind)

    def may_differ(self, ledger: Ledger) -> bool:
        """Return whether verdicts may be about different contents of one subject. A run reads a subject once, unless the run is live."""
        queries = (Query(run_id=run_id, types=("run.started",)) for run_id in self.runs or (None,))
        runs = [bool(entry.event.payload.get("live")) for query in queries for entry in ledger.read(query)]
        return len(runs) > 1 or any(runs)


RECORDED = "recorded/"
"""Start of the labels of scores that other tools recorded."""


class Ratings:
    """Ratings of any number of subjects.

    *raters* are numbers by name. *makers* are the makers of verdicts by number. *labels* are all judges in the chosen runs, including those not
    chosen; *own_labels* are the labels without scores of other tools, which count only by name. *kinds* are the kinds of the judged subjects. *gold* are people's labels.
    """

    def __init__(self, judged: VerdictColumns, gold: LabeledOutputs | None = None) -> None:
        self.raters: dict[str, int] = {}
        self.makers: list[Maker] = []
        self.labels: set[str] = set()
        self.own_labels: set[str] = set()
        self.kinds: set[str] = set()
        self.gold = gold
        self._of_code: dict[int, int] = {}
        self.judged = judged
        self.newest: Mapping[int, Mapping[Place, int]] = {}
        self.contents = Contents({})

    def read(self, ledger: Ledger, filter: VerdictFilter) -> None:
        """Read the chosen verdicts of *ledger*. Of several verdicts by one rater on one subject, the newest counts."""
        columns = self.judged
        codes = _compared_codes(columns, self._first_rows(), filter)
        self.labels = {columns.origins[code].judge for code in codes}
        if filter.between == "rubrics":
            started = [entry.event for entry in read_open_judgments(ledger, filter.only)]
            self.labels |= {str(event.payload["judge"]) for event in started if filter.chooses_event(event)}
        self.own_labels = {label for label in self.labels if not label.startswith(RECORDED)}
        chosen = [code for code in codes if columns.origins[code].judge in (filter.labels or self.own_labels)]
        self.kinds = {columns.origins[code].kind for code in chosen}
        numbers: dict[Maker, int] = {}
        for code in chosen:
            maker = columns.origins[code]
            self._of_code[code] = numbers.setdefault((maker.judge, maker.run_id, maker.fingerprint), len(numbers))
        self.makers = list(numbers)
        self._rate(ledger, filter, chosen)
        if filter.may_differ(ledger):
            reads = [read_activity(ledger, run_id, (READ,)) for run_id in filter.runs or (None,)]
            self.contents = self._contents(with_made_outputs(ledger, reads), filter.kind)

    def _contents(self, reads: Sequence[ActivityColumns], kind: str | None) -> Contents:
        return Contents.of(reads, kind)

    def _first_rows(self) -> Mapping[int, int]:
        """Return the first row of each code."""
        codes = self.judged.codes
        return dict(zip(reversed(codes), range(len(codes) - 1, -1, -1), strict=True))

    def maker(self, row: int) -> int:
        """Return the number of the maker of the verdict in *row*."""
        return self._of_code[self.judged.codes[row]]

    def maker_of(self, code: int) -> int:
        """Return the number of the maker of the verdicts with a code."""
        return self._of_code[code]

    def _rate(self, ledger: Ledger, filter: VerdictFilter, chosen: Sequence[int]) -> None:
        rows = {code: list[int]() for code in chosen}
        for row, code in enumerate(self.judged.codes):
            if code in rows and not self._is_about_another_output(row):
                rows[code].append(row)
        named = self._named(ledger, filter, rows)
        self.newest = {self._number(name): self._newest(sorted(rater_rows)) for name, rater_rows in named.items()}

    def _named(
        self, ledger: Ledger, filter: VerdictFilter, rows: Mapping[int, Sequence[int]]
    ) -> Mapping[str, Sequence[int]]:
        """Return *rows*, grouped by codes, grouped by the names of raters."""
        planned = _planned(ledger, self.judged, rows) if filter.between == "rubrics" else {}
        named: dict[str, list[int]] = {}
        for code, code_rows in rows.items():
            maker = self.judged.origins[code]
            if planned and maker.rubric_id is None:
                for row in code_rows:
                    named.setdefault(planned[self.judged.seqs[row]], []).append(row)
            else:
                named.setdefault(rater_name(maker, filter.between), []).extend(code_rows)
        return named

    def _newest(self, rows: Sequence[int]) -> dict[Place, int]:
        """Return the newest of one rater's *rows* by subject. A failure does not replace a verdict."""
        judged, flags = self.judged, self.judged.flags
        ids, kinds = judged.ids, [maker.kind for maker in judged.origins]
        failed = [row for row in rows if flags[row] & FAILED]
        scored = [row for row in rows if not flags[row] & FAILED] if failed else rows
        failed.reverse()  # the first failure counts
        codes = judged.codes

        def places(rows: Sequence[int]) -> Iterator[Place]:
            return zip(map(ids.__getitem__, rows), map(kinds.__getitem__, map(codes.__getitem__, rows)), strict=True)

        return dict(zip(places(failed), failed, strict=True)) | dict(zip(places(scored), scored, strict=True))

    def add_gold(self, labels: LabeledOutputs, name: str) -> str:
        """Add *labels* as a rater; return its name: *name* for scores of another tool and for people, else a name that may contain *name*, the file's."""
        self.gold = labels
        rater = name if name.startswith(RECORDED) or name == PEOPLE else GOLD
        rater = rater if rater not in self.raters else f"{GOLD} ({name})"
        self._number(rater)
        return rater

    def _is_about_another_output(self, row: int) -> bool:
        """Return whether the subject of *row* has labels, but none about the judged output."""
        if self.gold is None or not self.gold.is_selective:
            return False
        maker = self.judged.origins[self.judged.codes[row]]
        return self.gold.excludes(maker.run_id, maker.kind, str(self.judged.ids[row]))

    def label(self, place: Place) -> float | None:
        """Return the label of a subject; with several labels, the label of the last judged output."""
        if self.gold is None:
            return None
        id, kind = place
        if not self.gold.gold.labels_of(kind, id):
            return None
        row = max((newest[place] for newest in self.newest.values() if place in newest), default=None)
        if row is None:
            return None
        label = self.gold.label(self.judged.origins[self.judged.codes[row]].run_id, kind, id)
        return None if label is None else label.score

    def places(self) -> list[Place]:
        """Return every judged subject, in the order of ids."""
        return sorted(set().union(*self.newest.values()))

    def unit(self, place: Place) -> Unit:
        """Return the ratings of one judged subject."""
        id, kind = place
        rows = {rater: newest[place] for rater, newest in self.newest.items() if place in newest}
        return self._unit((kind, id), dict(sorted(rows.items())), self.contents.count(place), self.label(place))

    def score(self, row: int) -> float | None:
        """Return the score of a verdict; None for a failure."""
        return None if self.judged.flags[row] & FAILED else self.judged.scores[row]

    def _unit(self, subject: Subject, rows: Mapping[int, int], contents: int, label: float | None) -> Unit:
        """Return the unit of a subject.

        With a label, the newest verdict and verdicts on the same content count. Without one, verdicts on the content that most raters scored count;
        of equal contents the newest.
        """
        scores_by_rater = {rater: self.score(row) for rater, row in rows.items()}
        if contents < 2:
            return Unit(subject, scores_by_rater, {}, rows, contents, label)
        about = {rater: self._content(subject, row) for rater, row in rows.items()}
        scored = [(about[rater], rows[rater]) for rater, score in scores_by_rater.items() if score is not None]
        count = Counter(content for content, _ in scored if label is None)
        chosen, _ = max(scored, key=lambda item: (count[item[0]], item[1]), default=(None, 0))
        scores, other_scores = dict[int, float | None](), dict[int, float | None]()
        for rater, score in scores_by_rater.items():
            (scores if score is None or about[rater] == chosen else other_scores)[rater] = score
        return Unit(subject, scores, other_scores, rows, contents, label)

    def _content(self, subject: Subject, row: int) -> int | None:
        """Return the content that the verdict of *row* is about: the last content that its run had read before it."""
        kind, id = subject
        run_id = self.judged.origins[self.judged.codes[row]].run_id
        return self.contents.before((id, kind), run_id, self.judged.seqs[row])

    def _number(self, name: str) -> int:
        return self.raters.setdefault(name, len(self.raters))


def _compared_codes(columns: VerdictColumns, first: Mapping[int, int], filter: VerdictFilter) -> list[int]:
    """Return the codes of compared verdicts, by run and then by the row of their *first* verdict."""
    runs = {run_id: number for number, run_id in enumerate(filter.runs)}
    codes = [code for code in first if filter.chooses(columns.origins[code])]
    return sorted(codes, key=lambda code: (runs.get(columns.origins[code].run_id, 0), first[code]))


def _planned(ledger: Ledger, columns: VerdictColumns, rows: Mapping[int, Sequence[int]]) -> dict[int, str]:
    """Return the rubric with which each failure in *rows* was started, by its row of the chain. A failure does not name its rubric."""
    failed = {
        columns.seqs[row]
        for code, code_rows in rows.items()
        if columns.origins[code].rubric_id is None
        for row in code_rows
    }
    planned: dict[int, str] = {}
    started: dict[object, Mapping[str, Any]] = {}
    for entry in ledger.read(Query(types=("eval.started", "eval.failed"))) if failed else ():
        payload: Mapping[str, Any] = entry.event.payload
        if entry.event.type == "eval.started":
            started[payload["eval_id"]] = payload
        elif entry.seq in failed:
            planned[entry.seq] = _rubric(started.pop(payload["eval_id"], payload))
    return planned


def _rubric(payload: Mapping[str, Any]) -> str:
    return f"{payload.get('rubric_id')} {payload.get('rubric_version')}"


def rater_name(maker: VerdictOrigin, between: Between) -> str:
    """Return the name of the rater that made verdicts of *maker*."""
    if between == "judges":
        return maker.judge
    return maker.run_id if between == "runs" else f"{maker.rubric_id} {maker.rubric_version}"
