"""``dicast agreement``: how far judges, runs, versions of a rubric or a file of labels agree."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import click
import orjson

from dicast import ConfigError, DataError, Ledger, Problem, named_run, nearest, read_ledger
from dicast.reading import LabeledOutputs, read_gold
from dicast.toolkit.printable import one_line

from .comparison import Comparison
from .many_ratings import ratings_of
from .options import as_json, check_labels, ledger_path, share
from .ratings import BETWEEN, Between, Ratings, Wanted
from .text import lines

if TYPE_CHECKING:
    from .prevalence import Prevalences


@click.command()
@click.option("--judge", "labels", multiple=True, metavar="LABEL", help="Of this judge; give it for each of them.")
@click.option(
    "--gold",
    type=click.Path(path_type=Path),
    help="With labels: JSON lines {subject_id, score}, or CSV; - is stdin, ledger the ledger's own.",
)
@click.option(
    "--any-output",
    is_flag=True,
    help="Compare labels with verdicts on every output of a subject, also where a task made it.",
)
@click.option("--run", "runs", multiple=True, metavar="RUN", help="Only verdicts of this run; may be repeated.")
@click.option(
    "--between",
    type=click.Choice(BETWEEN),
    help="What is compared; by default judges, and of a single one its runs.",
)
@click.option("--subject-kind", metavar="KIND", help="Only subjects of this kind.")
@click.option(
    "--window", callback=share, default=0.15, show_default=True, help="How far apart scores may be and agree."
)
@click.option("--worst", type=click.IntRange(min=0), default=10, show_default=True, help="How many of these to list.")
@click.option(
    "--prevalence",
    is_flag=True,
    help="Also correct each judge's rate by the labels, which are of some subjects drawn at random.",
)
@click.option("--of", metavar="RUN", help="With --prevalence: the rate in this run, which the labels are not about.")
@ledger_path
@as_json
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
    ledger: Path | None,
    as_json: bool,
) -> None:
    """Say how far judges agree. Subjects that each of them has judged count; with --gold those that have labels.

    Alpha and kappa are 1 where they agree always and 0 where they agree as often as by chance.
    """
    names, ids = tuple(dict.fromkeys(labels)), tuple(dict.fromkeys(runs))
    asked = Asked(names, ids, subject_kind, between, gold, prevalence, of, any_output)
    found = read_ledger(ledger, lambda live: asked.document(live, window, worst))
    if as_json:
        click.echo(orjson.dumps(found, option=orjson.OPT_INDENT_2))
        return
    for line in lines(found):
        click.echo(one_line(line))
    if "prevalence" in found:
        from .prevalence import prevalence_lines

        for line in prevalence_lines(found["prevalence"]):
            click.echo(one_line(line))


def read_agreement(
    ledger: Ledger,
    *,
    judge: Sequence[str] = (),
    run: Sequence[str] = (),
    between: Between | None = None,
    subject_kind: str | None = None,
    window: float = 0.15,
    worst: int = 10,
) -> dict[str, Any]:
    """What ``dicast agreement --json`` prints of *ledger*.

    :raises ConfigError: when it does not have what was asked for, or that is not two raters.
    """
    asked = Asked(tuple(dict.fromkeys(judge)), tuple(dict.fromkeys(run)), subject_kind, between, None)
    return asked.compare(ledger, window, worst)[0].document()


@attrs.frozen
class Asked:
    """What is to be compared, as the command was told."""

    labels: Sequence[str]
    runs: Sequence[str]
    kind: str | None
    between: Between | None
    gold: Path | None
    prevalence: bool = False
    of: str | None = None
    any_output: bool = False

    def document(self, ledger: Ledger, window: float, worst: int) -> dict[str, Any]:
        """Compare what *ledger* has, and say what comes of it; :meth:`compare` says what it raises."""
        if self.prevalence and self.gold is None:
            raise ConfigError("--prevalence corrects by labels: add --gold FILE")
        if self.of is not None and (not self.prevalence or (self.between or "judges") != "judges"):
            raise ConfigError("--of is for --prevalence, of judges: leave --between out")
        comparison, rates = self.compare(ledger, window, worst)
        return comparison.document() | ({} if rates is None else {"prevalence": rates.document()})

    def compare(self, ledger: Ledger, window: float, worst: int) -> tuple[Comparison, Prevalences | None]:
        """Compare what *ledger* has, with what labels make of the judges' rates where that is asked for.

        :raises ConfigError: when it does not have what was asked for, or that is not two raters.
        :raises DataError: when the labels are wrong, or about other subjects.
        """
        labels = self._labels(ledger)
        ratings, between = self.ratings(ledger, labels)
        gold = None if labels is None or self.gold is None else ratings.add_gold(labels, self.gold.name)
        comparison = Comparison(between, ratings.raters, window, worst, gold)
        comparison.read(ratings)
        if labels is not None:
            labels.check()
        if gold is not None and not comparison.matched:
            raise DataError(self._no_match(comparison, ratings))
        return comparison, self._prevalences(ledger, ratings, gold) if self.prevalence else None

    def _labels(self, ledger: Ledger) -> LabeledOutputs | None:
        """Return the labels, with the outputs that they are about."""
        if self.gold is None:
            return None
        gold = read_gold(self.gold, ledger, draws=self.prevalence)
        return LabeledOutputs.of(ledger, gold, any_output=self.any_output)

    def ratings(self, ledger: Ledger, labels: LabeledOutputs | None = None) -> tuple[Ratings, Between]:
        """What the wanted raters have said, and what makes two raters of them.

        :raises ConfigError: when the ledger does not have what was asked for, or that is not two raters.
        """
        runs = list(dict.fromkeys(named_run(ledger, run) for run in self.runs))
        between = self.between or self._usual(runs)
        ratings = ratings_of(ledger, Wanted(self.labels, runs, self.kind, between), labels)
        self._check(ratings, between)
        return ratings, between

    def _prevalences(self, ledger: Ledger, ratings: Ratings, gold: str | None) -> Prevalences:
        from .prevalence import Prevalences  # it brings what builds components, half a tenth of a second

        of = None if self.of is None else named_run(ledger, self.of)
        found = Prevalences({number: name for name, number in ratings.raters.items() if name != gold}, of)
        found.read(ledger)
        for place in ratings.places():
            found.add(ratings.unit(place))
        return found

    def _usual(self, runs: Sequence[str]) -> Between:
        """What a single judge is compared with: itself in another run, unless there are labels to compare it with."""
        alone = len(self.labels) == 1 and (self.gold is None or len(runs) > 1)
        return "runs" if alone else "judges"

    def _check(self, ratings: Ratings, between: Between) -> None:
        """See that there are raters to compare.

        :raises ConfigError: when there are not, naming what there is.
        """
        if not ratings.labels:
            raise ConfigError(f"nothing has been judged{self._where()}; dicast verdicts lists what has")
        check_labels(self.labels, ratings.labels, self._where())
        names = ", ".join(sorted(ratings.labels))
        needed = 1 if self.gold else 2
        if between != "judges":
            if len(self.labels or ratings.labels) != 1:
                raise ConfigError(f"--between {between} is about one judge; choose it with --judge, from {names}")
            if len(ratings.raters) < needed:
                raise ConfigError(self._too_few(between, ratings))
        elif not self.labels and len(ratings.labels) != needed:
            many = "one judge" if self.gold else "two or more judges"
            raise ConfigError(f"choose {many} with --judge, from {names}")

    def _too_few(self, between: Between, ratings: Ratings) -> str:
        (label,), (rater,) = self.labels or ratings.labels, ratings.raters
        others = ", ".join(sorted(ratings.labels - {label})) or "there is none"
        return (
            f"{label!r} has been asked{self._where()} in one {between.removesuffix('s')} only, {rater}: judge the same "
            f"subjects again, compare with --gold FILE, or with another --judge ({others})"
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
                f"no label in {self.gold} is about a subject that was judged{self._where()}: the labels are about subjects of "
                f"kind {', '.join(kinds)}, judged were those of kind {', '.join(judged)}; fix subject_kind, or leave it out"
            )
            return Problem(message, path="subject_kind", value=kinds[0], hint=nearest(kinds[0], judged))
        return Problem(
            f"no label in {self.gold} is about a subject that was judged{self._where()}: the subject_id of the first is "
            f"{labeled[0][1]!r}, that of a judged subject {comparison.example!r}"
        )
