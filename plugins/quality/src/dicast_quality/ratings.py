"""Who said what of which subject: ratings from a ledger and from a file of labels, put together by subject."""

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

Between = Literal["judges", "runs", "rubrics"]
BETWEEN: tuple[str, ...] = get_args(Between)

GOLD = "gold"

Subject = tuple[str, str]
"""A subject's kind and id."""

Maker = tuple[str, str, str | None]
"""Who made a verdict: the label, the run, and the fingerprint of the judge. Equal fingerprints are equal judges."""


class Unit(NamedTuple):  # made by the million, and quicker than a class of attrs
    """A subject with its *scores* by number of the rater, in the order of these; None for one that failed.

    The scores are about one content; *apart* are those about others. *rows* are the verdicts that they come from, *contents*
    counts what was read under this id, *label* is what a file says of the subject.
    """

    subject: Subject
    scores: Mapping[int, float | None]
    apart: Mapping[int, float | None]
    rows: Mapping[int, int]
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

    @property
    def only(self) -> str | None:
        """The one run that is compared; None where there are several, or all are."""
        return self.runs[0] if len(self.runs) == 1 else None

    def chooses(self, maker: VerdictOrigin) -> bool:
        """Whether verdicts of *maker* are about what is compared, by whichever judge."""
        return (not self.runs or maker.run_id in self.runs) and self.kind in (None, maker.kind)

    def chooses_event(self, event: Event) -> bool:
        """Likewise for an event."""
        return (not self.runs or event.run_id in self.runs) and self.kind in (None, event.subject_kind)

    def may_differ(self, ledger: Ledger) -> bool:
        """Whether verdicts may be about different contents of one subject: a run reads it once, unless it is live."""
        queries = (Query(run_id=run_id, types=("run.started",)) for run_id in self.runs or (None,))
        runs = [bool(entry.event.payload.get("live")) for query in queries for entry in ledger.read(query)]
        return len(runs) > 1 or any(runs)


class Ratings:
    """Ratings of any number of subjects.

    *raters* are numbers by name, *makers* those of who made the verdicts; *labels* are those of all judges that were met, also
    of others than the wanted ones, *kinds* those of the subjects that were judged. *gold* are people's labels.
    """

    def __init__(self, judged: VerdictColumns, gold: LabeledOutputs | None = None) -> None:
        self.raters: dict[str, int] = {}
        self.makers: list[Maker] = []
        self.labels: set[str] = set()
        self.kinds: set[str] = set()
        self.gold = gold
        self._of_code: dict[int, int] = {}
        self.judged = judged
        self.newest: Mapping[int, Mapping[Place, int]] = {}
        self.contents = Contents({})

    def read(self, ledger: Ledger, wanted: Wanted) -> None:
        """Take what *ledger* has of *wanted*. Of several verdicts by one rater on one subject the newest counts."""
        found = self.judged
        met = _met(found, self._first_rows(), wanted)
        begun_ = [
            entry.event for entry in read_open_judgments(ledger, wanted.only) if wanted.chooses_event(entry.event)
        ]
        self.labels = {found.origins[code].judge for code in met}
        if wanted.between == "rubrics":
            self.labels |= {str(event.payload["judge"]) for event in begun_}
        chosen = [code for code in met if not wanted.labels or found.origins[code].judge in wanted.labels]
        self.kinds = {found.origins[code].kind for code in chosen}
        numbers: dict[Maker, int] = {}
        for code in chosen:
            maker = found.origins[code]
            self._of_code[code] = numbers.setdefault((maker.judge, maker.run_id, maker.fingerprint), len(numbers))
        self.makers = list(numbers)
        self._rate(ledger, wanted, chosen)
        if wanted.may_differ(ledger):
            reads = [read_activity(ledger, run_id, (READ,)) for run_id in wanted.runs or (None,)]
            self.contents = self._contents(with_made_outputs(ledger, reads), wanted.kind)

    def _contents(self, reads: Sequence[ActivityColumns], kind: str | None) -> Contents:
        return Contents.of(reads, kind)

    def _first_rows(self) -> Mapping[int, int]:
        """The first row of each code."""
        codes = self.judged.codes
        return dict(zip(reversed(codes), range(len(codes) - 1, -1, -1), strict=True))

    def maker(self, row: int) -> int:
        """The number of who made the verdict of *row*."""
        return self._of_code[self.judged.codes[row]]

    def maker_of(self, code: int) -> int:
        """Likewise of the verdicts with a code."""
        return self._of_code[code]

    def _rate(self, ledger: Ledger, wanted: Wanted, chosen: Sequence[int]) -> None:
        rows = {code: list[int]() for code in chosen}
        for row, code in enumerate(self.judged.codes):
            if code in rows and not self._is_about_another_output(row):
                rows[code].append(row)
        named = self._named(ledger, wanted, rows)
        self.newest = {self._number(name): self._newest(sorted(found)) for name, found in named.items()}

    def _named(self, ledger: Ledger, wanted: Wanted, rows: Mapping[int, Sequence[int]]) -> Mapping[str, Sequence[int]]:
        """*rows*, which go by codes, by the names of raters."""
        planned = _planned(ledger, self.judged, rows) if wanted.between == "rubrics" else {}
        named: dict[str, list[int]] = {}
        for code, found in rows.items():
            maker = self.judged.origins[code]
            if planned and maker.rubric_id is None:
                for row in found:
                    named.setdefault(planned[self.judged.seqs[row]], []).append(row)
            else:
                named.setdefault(rater_name(maker, wanted.between), []).extend(found)
        return named

    def _newest(self, rows: Sequence[int]) -> dict[Place, int]:
        """Of *rows* of one rater the newest about each subject; a failure does not take a verdict back."""
        judged, flags = self.judged, self.judged.flags
        ids, kinds = judged.ids, [maker.kind for maker in judged.origins]
        failed = [row for row in rows if flags[row] & FAILED]
        scored = [row for row in rows if not flags[row] & FAILED] if failed else rows
        failed.reverse()  # the first of them counts
        codes = judged.codes

        def places(rows: Sequence[int]) -> Iterator[Place]:
            return zip(map(ids.__getitem__, rows), map(kinds.__getitem__, map(codes.__getitem__, rows)), strict=True)

        return dict(zip(places(failed), failed, strict=True)) | dict(zip(places(scored), scored, strict=True))

    def add_gold(self, labels: LabeledOutputs, name: str) -> str:
        """Add the rater that *labels* are; return its name, in which *name* is that of the file."""
        self.gold = labels
        rater = GOLD if GOLD not in self.raters else f"{GOLD} ({name})"
        self._number(rater)
        return rater

    def _is_about_another_output(self, row: int) -> bool:
        """Whether the subject has labels, and none about the output that the verdict of *row* is about."""
        if self.gold is None or not self.gold.is_selective:
            return False
        maker = self.judged.origins[self.judged.codes[row]]
        return self.gold.excludes(maker.run_id, maker.kind, str(self.judged.ids[row]))

    def label(self, place: Place) -> float | None:
        """Return the label of a subject; of several the label of the output that was judged last."""
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
        """Every subject that was judged, in the order of ids."""
        return sorted(set().union(*self.newest.values()))

    def unit(self, place: Place) -> Unit:
        """The ratings of one subject that was judged."""
        id, kind = place
        rows = {rater: newest[place] for rater, newest in self.newest.items() if place in newest}
        return self._unit((kind, id), dict(sorted(rows.items())), self.contents.count(place), self.label(place))

    def score(self, row: int) -> float | None:
        """The score of a verdict; None of a failure."""
        return None if self.judged.flags[row] & FAILED else self.judged.scores[row]

    def _unit(self, subject: Subject, rows: Mapping[int, int], contents: int, label: float | None) -> Unit:
        """The unit of a subject. With a label the newest verdict counts, and those on the same content; else the content that
        most raters have scored, of several such the newest.
        """
        found = {rater: self.score(row) for rater, row in rows.items()}
        if contents < 2:
            return Unit(subject, found, {}, rows, contents, label)
        about = {rater: self._content(subject, row) for rater, row in rows.items()}
        scored = [(about[rater], rows[rater]) for rater, score in found.items() if score is not None]
        count = Counter(content for content, _ in scored if label is None)
        chosen, _ = max(scored, key=lambda one: (count[one[0]], one[1]), default=(None, 0))
        scores, apart = dict[int, float | None](), dict[int, float | None]()
        for rater, score in found.items():
            (scores if score is None or about[rater] == chosen else apart)[rater] = score
        return Unit(subject, scores, apart, rows, contents, label)

    def _content(self, subject: Subject, row: int) -> int | None:
        """The content that the verdict of *row* is about: the one that its run had read last before it."""
        kind, id = subject
        run_id = self.judged.origins[self.judged.codes[row]].run_id
        return self.contents.before((id, kind), run_id, self.judged.seqs[row])

    def _number(self, name: str) -> int:
        return self.raters.setdefault(name, len(self.raters))


def _met(found: VerdictColumns, first: Mapping[int, int], wanted: Wanted) -> list[int]:
    """The codes of who judged what is compared, in the order in which their *first* verdicts stand in the runs, one run after the other."""
    runs = {run_id: number for number, run_id in enumerate(wanted.runs)}
    met = [code for code in first if wanted.chooses(found.origins[code])]
    return sorted(met, key=lambda code: (runs.get(found.origins[code].run_id, 0), first[code]))


def _planned(ledger: Ledger, found: VerdictColumns, rows: Mapping[int, Sequence[int]]) -> dict[int, str]:
    """The rubric that each failure among *rows* was begun with, by its row of the chain: a failure does not name it."""
    failed = {found.seqs[row] for code, each in rows.items() if found.origins[code].rubric_id is None for row in each}
    planned: dict[int, str] = {}
    begun: dict[object, Mapping[str, Any]] = {}
    for entry in ledger.read(Query(types=("eval.started", "eval.failed"))) if failed else ():
        payload: Mapping[str, Any] = entry.event.payload
        if entry.event.type == "eval.started":
            begun[payload["eval_id"]] = payload
        elif entry.seq in failed:
            planned[entry.seq] = _rubric(begun.pop(payload["eval_id"], payload))
    return planned


def _rubric(payload: Mapping[str, Any]) -> str:
    return f"{payload.get('rubric_id')} {payload.get('rubric_version')}"


def rater_name(maker: VerdictOrigin, between: Between) -> str:
    """The name of the rater."""
    if between == "judges":
        return maker.judge
    return maker.run_id if between == "runs" else f"{maker.rubric_id} {maker.rubric_version}"
