"""``dicast agreement``: agreement of judges, runs, versions of a rubric or a file of labels."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import attrs
import click
import orjson

from dicast import ConfigError, DataError, Ledger, Problem, named_run, nearest, read_ledger
from dicast.commands import as_json, ledger_path, requires
from dicast.reading import LabeledOutputs, is_in_ledger, read_gold, weighted_runs
from dicast.toolkit.printable import one_line
from dicast.toolkit.terminal import Line, print_lines

from .comparison import Comparison
from .many_ratings import ratings_of
from .options import check_labels, share
from .people import PooledLabels, is_people, people_lines, read_people
from .ratings import BETWEEN, RECORDED, Between, Ratings, VerdictFilter
from .text import lines

if TYPE_CHECKING:
    from .prevalence import Prevalences


@click.command()
@click.option("--judge", "labels", multiple=True, metavar="LABEL", help="A judge; repeat it for each judge.")
@click.option(
    "--gold",
    type=click.Path(path_type=Path),
    help="Labels to compare with: JSON lines {subject_id, score}, or CSV; - is stdin, ledger the ledger's own labels, "
    "people the ledger's labels of all people together, recorded/NAME the scores of another tool.",
)
@click.option(
    "--any-output",
    is_flag=True,
    help="Compare labels with verdicts on every output of a subject, including outputs of a task.",
)
@click.option("--run", "runs", multiple=True, metavar="RUN", help="Only verdicts of this run; may be repeated.")
@click.option(
    "--between",
    type=click.Choice(BETWEEN),
    help="The raters to compare; by default judges, or the runs of a single judge.",
)
@click.option("--subject-kind", metavar="KIND", help="Only subjects of this kind.")
@click.option(
    "--window", callback=share, default=0.15, show_default=True, help="The largest difference of agreeing scores."
)
@click.option(
    "--worst",
    type=click.IntRange(min=0),
    default=10,
    show_default=True,
    help="How many of the largest disagreements to list.",
)
@click.option(
    "--prevalence",
    is_flag=True,
    help="Also correct each judge's rate by the labels, which must be of randomly drawn subjects.",
)
@click.option(
    "--of", metavar="RUN", help="With --prevalence: correct the rate in this run, about other subjects than the labels."
)
@ledger_path
@as_json
@requires(any_output="gold")
def agreement(
    labels: tuple[str, ...],
    gold: Path | None,
    any_output: bool,
    runs: tuple[str, ...],
    between: Between | None,
    subject_kind: str | None,
    window: float,
    worst: int,
    prevalence: bool,
    of: str | None,
    ledger: Path | str | None,
    as_json: bool,
) -> None:
    """Report how far judges agree. Only subjects that every judge judged count; with --gold, only labeled subjects.

    Alpha and kappa are 1 for perfect agreement and 0 for agreement by chance.
    """
    names, ids = tuple(dict.fromkeys(labels)), tuple(dict.fromkeys(runs))
    options = ComparisonOptions(names, ids, subject_kind, between, gold, prevalence, of, any_output)
    document = read_ledger(ledger, lambda live: options.document(live, window, worst))
    if as_json:
        click.echo(orjson.dumps(document, option=orjson.OPT_INDENT_2))
        return
    text = [*lines(document)]
    if "people" in document:
        text += people_lines(document["people"])
    if "prevalence" in document:
        from .prevalence import prevalence_lines

        text += prevalence_lines(document["prevalence"])
    print_lines(Line(one_line(line)) for line in text)


def read_agreement(
    ledger: Ledger,
    *,
    judge: Sequence[str] = (),
    run: Sequence[str] = (),
    between: Between | None = None,
    subject_kind: str | None = None,
    window: float = 0.15,
    worst: int = 10,
    gold: Literal["people"] | None = None,
) -> dict[str, Any]:
    """Return the document that ``dicast agreement --json`` prints for *ledger*. With *gold* it compares judges with the labels of all people together.

    :raises ConfigError: when the ledger lacks a requested item, or there are not two raters.
    """
    labels = None if gold is None else Path(gold)
    options = ComparisonOptions(tuple(dict.fromkeys(judge)), tuple(dict.fromkeys(run)), subject_kind, between, labels)
    return options.document(ledger, window, worst)


@attrs.frozen
class ComparisonOptions:
    """Options of the comparison."""

    labels: Sequence[str]
    runs: Sequence[str]
    kind: str | None
    between: Between | None
    gold: Path | None
    prevalence: bool = False
    of: str | None = None
    any_output: bool = False

    def document(self, ledger: Ledger, window: float, worst: int) -> dict[str, Any]:
        """Compare raters in *ledger* and return the document; raises the errors of :meth:`compare`."""
        if self.prevalence and self.gold is None:
            raise ConfigError("--prevalence corrects by labels: add --gold FILE")
        if self.of is not None and (not self.prevalence or (self.between or "judges") != "judges"):
            raise ConfigError("--of needs --prevalence and compares judges: leave --between out")
        people = self._people(ledger)
        comparison, rates = self.compare(ledger, window, worst, people)
        members = {} if rates is None else {"prevalence": rates.document()}
        members |= {} if people is None else {"people": people.document()}
        return comparison.document() | self.weighted(ledger) | members

    def _people(self, ledger: Ledger) -> PooledLabels | None:
        """Return the labels of all people together, if they are chosen."""
        if self.gold is None or not is_people(self.gold):
            return None
        if self.prevalence:
            raise ConfigError("--prevalence needs labels of randomly drawn subjects: use --gold ledger, or a file")
        return read_people(ledger)

    def weighted(self, ledger: Ledger) -> dict[str, Any]:
        """Return the member with the runs whose subjects have weights, which the agreement does not use; empty without such runs."""
        runs = weighted_runs(ledger, [named_run(ledger, run) for run in self.runs])
        return {"weighted_runs": runs} if runs else {}

    def compare(
        self, ledger: Ledger, window: float, worst: int, people: PooledLabels | None = None
    ) -> tuple[Comparison, Prevalences | None]:
        """Return the comparison of raters in *ledger*, and with *prevalence* the rates of judges corrected by labels.

        :raises ConfigError: when the ledger lacks a requested item, or there are not two raters.
        :raises DataError: when the labels are invalid, or about other subjects.
        """
        labels = self._labels(ledger, people)
        ratings, between = self.ratings(ledger, labels)
        gold = None if labels is None or self.gold is None else ratings.add_gold(labels, self._gold_name(self.gold))
        comparison = Comparison(between, ratings.raters, window, worst, gold)
        comparison.read(ratings)
        if labels is not None:
            labels.check()
        if gold is not None and people is None and not comparison.matched:
            raise DataError(self._no_match(comparison, ratings))
        return comparison, self._prevalences(ledger, ratings, gold) if self.prevalence else None

    @staticmethod
    def _gold_name(gold: Path) -> str:
        """Return the name of the labels: of scores of another tool their label, else the name of the file."""
        label = gold.as_posix()
        return label if label.startswith(RECORDED) and is_in_ledger(gold) else gold.name

    def _labels(self, ledger: Ledger, people: PooledLabels | None) -> LabeledOutputs | None:
        """Return the labels with their outputs."""
        if self.gold is None:
            return None
        gold = read_gold(self.gold, ledger, draws=self.prevalence) if people is None else people.gold
        return LabeledOutputs.of(ledger, gold, any_output=self.any_output)

    def ratings(self, ledger: Ledger, labels: LabeledOutputs | None = None) -> tuple[Ratings, Between]:
        """Return the ratings of the chosen raters, and the property that distinguishes the raters.

        :raises ConfigError: when the ledger lacks a requested item, or there are not two raters.
        """
        runs = list(dict.fromkeys(named_run(ledger, run) for run in self.runs))
        between = self.between or self._usual(runs)
        ratings = ratings_of(ledger, VerdictFilter(self.labels, runs, self.kind, between), labels)
        self._check(ratings, between)
        return ratings, between

    def _prevalences(self, ledger: Ledger, ratings: Ratings, gold: str | None) -> Prevalences:
        from .prevalence import Prevalences  # imports the component loader, about 50 ms

        of = None if self.of is None else named_run(ledger, self.of)
        prevalences = Prevalences({number: name for name, number in ratings.raters.items() if name != gold}, of)
        prevalences.read(ledger)
        for place in ratings.places():
            prevalences.add(ratings.unit(place))
        return prevalences

    def _usual(self, runs: Sequence[str]) -> Between:
        """Return the default of ``--between``: a single judge without labels is compared with itself in another run."""
        alone = len(self.labels) == 1 and (self.gold is None or len(runs) > 1)
        return "runs" if alone else "judges"

    def _check(self, ratings: Ratings, between: Between) -> None:
        """Check that there are raters to compare.

        :raises ConfigError: when there are too few, naming the judges in the ledger.
        """
        if not ratings.labels:
            raise ConfigError(f"nothing has been judged{self._where()}; dicast verdicts lists the verdicts")
        check_labels(self.labels, ratings.labels, self._where())
        names = ", ".join(sorted(ratings.labels))
        needed = 1 if self.gold else 2
        if between != "judges":
            if len(self.labels or ratings.own_labels) != 1:
                raise ConfigError(f"--between {between} is about one judge; choose it with --judge, from {names}")
            if len(ratings.raters) < needed:
                raise ConfigError(self._too_few(between, ratings))
        elif not self.labels and len(ratings.own_labels) != needed:
            choice = "one judge" if self.gold else "two or more judges"
            raise ConfigError(f"choose {choice} with --judge, from {names}")

    def _too_few(self, between: Between, ratings: Ratings) -> str:
        (label,), (rater,) = self.labels or ratings.own_labels, ratings.raters
        other_judges = ", ".join(sorted(ratings.labels - {label})) or "no other judge"
        return (
            f"{label!r} has been asked{self._where()} in one {between.removesuffix('s')} only, {rater}: judge the same "
            f"subjects again, compare with --gold FILE, or with another --judge ({other_judges})"
        )

    def _where(self) -> str:
        kind = f" about subjects of kind {self.kind!r}" if self.kind else ""
        runs = f" with --run {' --run '.join(self.runs)}" if self.runs else ""
        return f"{kind}{runs}"

    def _no_match(self, comparison: Comparison, ratings: Ratings) -> Problem:
        labeled = [] if ratings.gold is None else ratings.gold.gold.subjects
        kinds, judged = sorted({kind for kind, _ in labeled if kind}), sorted(ratings.kinds)
        if kinds and not set(kinds) & set(judged):
            message = (
                f"no label in {self.gold} is about a judged subject{self._where()}: the labels are about subjects of "
                f"kind {', '.join(kinds)}, the judged subjects are of kind {', '.join(judged)}; "
            )
            is_recorded = self.gold is not None and self._gold_name(self.gold).startswith(RECORDED)
            message += (
                f"judge subjects of kind {kinds[0]}, such as by on: [{kinds[0]}]"
                if is_recorded
                else "fix subject_kind, or leave it out"
            )
            return Problem(message, path="subject_kind", value=kinds[0], hint=nearest(kinds[0], judged))
        return Problem(
            f"no label in {self.gold} is about a judged subject{self._where()}: the subject_id of the first is "
            f"{labeled[0][1]!r}, that of a judged subject {comparison.example!r}"
        )
