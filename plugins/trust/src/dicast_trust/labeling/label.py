"""``dicast label``: a person labels subjects as good or bad."""

from __future__ import annotations

import getpass
import sys
from collections import Counter
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import attrs
import click

from dicast import ConfigError, Ledger, PipelineJudges, named_run, pipeline_judges, read_ledger
from dicast.commands import as_json, ledger_path, ledger_section, print_json, requires
from dicast.toolkit.gold import GoldLabel
from dicast.toolkit.random_order import in_random_order

from ..calibration.document import Calibration
from ..labels.choosing import Judged, audited, disagreements, evidence, read_subjects, stratified
from ..labels.gold import given_labels, random_labels
from ..labels.human import Human, record
from ..terminal.options import rate
from ..verdicts.rules import Agree, Rules
from ..verdicts.stages import Stage, read_stages, stages_of
from .prompt import Prompt

Drawn = Literal["random", "stratified", "disagreements", "audits"]


@click.command()
@click.argument("name", metavar="FILE|RUN")
@click.option(
    "--random",
    "count",
    type=click.IntRange(1),
    metavar="N",
    help="Label N subjects drawn at random. Only randomly drawn labels can calibrate a judge.",
)
@click.option(
    "--stratified",
    "drawn",
    flag_value="stratified",
    help="Draw equally from each fifth of the first judge's confidence.",
)
@click.option(
    "--disagreements", "drawn", flag_value="disagreements", help="Begin with subjects on which the judges disagree."
)
@click.option(
    "--audits",
    "drawn",
    flag_value="audits",
    help="Label subjects whose kept verdicts an audit has drawn (audit: {against: gold}).",
)
@click.option(
    "--until-calibrated",
    is_flag=True,
    help="Ask in random order until dicast calibrate --sequential finds a threshold for each stage.",
)
@click.option(
    "--target", default=0.9, show_default=True, callback=rate, help="With --until-calibrated: as in dicast calibrate."
)
@click.option(
    "--alpha", default=0.1, show_default=True, callback=rate, help="With --until-calibrated: as in dicast calibrate."
)
@click.option(
    "--judge",
    "labels",
    multiple=True,
    metavar="LABEL",
    help="Only this cascade or judge of the file; repeatable.",
)
@click.option(
    "--kind",
    metavar="KIND",
    help="Only subjects of this kind, such as session or turn; by default all judged kinds.",
)
@click.option("--labeller", metavar="NAME", help="Name of the labeler; by default the user name.")
@click.option("--seed", default=0, show_default=True, help="Seed of the random order.")
@ledger_path
@as_json
@requires(target="until_calibrated", alpha="until_calibrated")
def label(name: str, ledger: Path | str | None, as_json: bool, **options: Any) -> None:
    """Label subjects at the terminal. It shows the evidence that the judge of FILE or RUN saw, but no verdict.

    A label counts for verdicts on the shown output.

    Keys: y pass, n fail, t tie, = a score, s skip, u undo, q quit, ? help. Each label is recorded at once.
    """
    if options["until_calibrated"] and options["drawn"]:
        raise click.UsageError(
            "--until-calibrated needs labels drawn at random: remove --stratified, --disagreements and --audits"
        )
    work = _work(name, ledger, options["labels"], options["kind"])
    if not sys.stdin.isatty():
        raise ConfigError(
            "dicast label asks a person, but standard input is not a terminal: run it at a terminal, or import labels with dicast labels import FILE"
        )
    labeller = options["labeller"] or getpass.getuser()
    drawn: Drawn = options["drawn"] or "random"
    choice: Choice = work.read(lambda live: work.chosen(live, labeller, drawn, options["seed"]))
    subjects = choice.subjects if options["count"] is None else choice.subjects[: options["count"]]
    if not subjects and drawn == "audits":
        raise ConfigError(
            f"no kept verdict of {name} waits for a label: set audit: {{rate: .02, against: gold}} in the cascade"
        )
    if not subjects:
        raise ConfigError(
            f"every subject that {name} has judged ({choice.judged:,}) has a label of {labeller!r} on its output; use --labeller for another person"
        )
    enough = (
        work.until(Rules(options["target"], options["alpha"], sequential=True))
        if options["until_calibrated"]
        else _never
    )
    if not as_json:
        click.echo(choice.words(name, len(subjects), drawn))
    prompt = Prompt(labeller, work.show, enough=enough)
    human = Human(labeller, drawn)
    run = record(work.component, human, ((judged.subject, label) for judged, label in prompt.labels(subjects)))
    if as_json:
        print_json(
            {
                "labelled": len(human.labels),
                "offered": len(subjects),
                "judged": choice.judged,
                "labeller": labeller,
                "drawn": drawn,
                "run_id": None if run is None else run.run_id,
            }
        )
    else:
        count = f"{len(human.labels):,} of {len(subjects):,}"
        click.echo(f"{count} subjects labeled by {labeller}; use the labels with dicast calibrate FILE --gold ledger")


def _never(_: object) -> None:
    return None


def _work(name: str, ledger: Path | str | None, labels: Sequence[str], kind: str | None) -> Work:
    """Return the subjects to label: the judged subjects of *name*, which is a pipeline file or a run."""
    path = Path(name)
    if path.is_file() or path.suffix in (".yaml", ".yml"):
        return Work(ledger, pipeline_judges(path), tuple(labels), kind=kind)
    run = read_ledger(ledger, lambda live: named_run(live, name))
    return Work(ledger, None, tuple(labels), run, kind)


@attrs.frozen
class Choice:
    """Subjects that wait for a label, and the number of judged subjects by kind."""

    subjects: Sequence[Judged]
    kinds: Mapping[str, int]

    @property
    def judged(self) -> int:
        """Number of judged subjects."""
        return sum(self.kinds.values())

    def words(self, name: str, count: int, drawn: str) -> str:
        """Return a line with the number of offered subjects, of judged subjects, and their kinds."""
        kinds = ", ".join(f"{n:,} of kind {kind}" for kind, n in self.kinds.items())
        text = f"{count:,} of {self.judged:,} subjects that {name} has judged ({kinds}); drawn: {drawn}; {len(self.subjects):,} without a label"
        return f"{text}; --kind selects one kind" if len(self.kinds) > 1 else text


@attrs.frozen
class Work:
    """Subjects to label, from the ledger at *path* or the ledger of the file; with *run* only subjects of this run."""

    path: Path | str | None
    judges: PipelineJudges | None
    labels: tuple[str, ...]
    run: str | None = None
    kind: str | None = None

    @property
    def component(self) -> object:
        """Ledger as a component of a pipeline."""
        if self.path is not None or self.judges is None:
            return ledger_section(self.path)
        return self.judges.ledger

    def read(self, function: Callable[[Ledger], Any]) -> Any:
        """Return the result of *function* on the ledger."""
        return read_ledger(self.path, function) if self.judges is None else self.judges.read_ledger(function, self.path)

    def stages(self, live: Ledger) -> list[Stage]:
        """Return the stages of the file with their outcomes; empty if a run is labeled."""
        if self.judges is None:
            return []
        cascade, stages = stages_of(self.judges.judges, self.labels)
        read_stages(live, stages, cascade)
        return stages

    def chosen(self, live: Ledger, labeller: str, drawn: Drawn, seed: int) -> Choice:
        """Return the subjects whose last judged output has no label of *labeller*, in the order of asking."""
        stages = self.stages(live)
        judged_in = {key: item.run_id for stage in reversed(stages) for key, item in stage.outcomes.items()}
        subjects = read_subjects(live, () if self.run is None else (self.run,), judged_in)
        judged = [key for key in subjects if self.kind in (None, key[0]) and (not stages or key in judged_in)]
        if self.kind is not None and not judged:
            kinds = ", ".join(sorted({kind for kind, _ in subjects}))
            raise ConfigError(f"no subject of kind {self.kind!r} was judged; the judged kinds are {kinds}")
        labeled_outputs = {
            (item.kind, item.subject_id, item.output_digest)
            for _, item in given_labels(live)
            if item.labeller == labeller
        }
        keys = [key for key in judged if not _is_labeled(subjects[key], labeled_outputs)]
        if drawn == "audits":
            waiting = audited(live)
            keys = [key for key in keys if key in waiting]
        if drawn not in ("random", "audits") and not stages:
            raise ConfigError(f"--{drawn} needs the verdicts of judges: name a pipeline file in place of a run")
        if drawn == "stratified":
            ordered = stratified(keys, stages[0], seed)
        else:
            ordered = in_random_order(keys, seed)
            ordered = disagreements(ordered, stages) if drawn == "disagreements" else ordered
        return Choice([subjects[key] for key in ordered], Counter(kind for kind, _ in judged))

    def show(self, judged: Judged) -> Iterator[str]:
        """Yield the evidence of a subject, as the judge of its kind sees it."""
        lines: list[str] = self.read(
            lambda live: list(evidence(live, judged, self._judges(judged.subject.kind)).lines())
        )
        return iter(lines)

    def _judges(self, kind: str) -> list[object]:
        """Return the components that judge subjects of *kind*, nested judges included."""
        slots = [] if self.judges is None else self.judges.judges
        chosen = [slot for slot in slots if not self.labels or slot.label in self.labels]
        every = [nested for slot in chosen for nested in (slot, *slot.inside.values())]
        return [nested.component for nested in every if kind in (getattr(nested.component, "accepts", ()) or (kind,))]

    def until(self, rules: Rules) -> Callable[[Sequence[tuple[Judged, GoldLabel]]], str | None]:
        """Return a function that reports when the recorded and the new labels suffice for a threshold at each stage."""
        if self.judges is None:
            raise ConfigError("--until-calibrated needs the judges of a file: name a pipeline file in place of a run")
        stages: list[Stage] = self.read(self.stages)
        recorded_labels: list[GoldLabel] = self.read(lambda live: [label for _, label in random_labels(live)])
        agree: Agree = "winner" if any(stage.is_pairwise for stage in stages) else "pass"
        rules = attrs.evolve(rules, pass_at=stages[0].slot.pass_at or 0.0, agree=agree, assume_random=True)

        def enough(answers: Sequence[tuple[Judged, GoldLabel]]) -> str | None:
            labels = {
                (gold.kind, gold.subject_id): gold for gold in (*recorded_labels, *(label for _, label in answers))
            }
            usable = {key: gold for key, gold in labels.items() if key in stages[0].outcomes}
            if len({rules.label_class(gold.score) for gold in usable.values()}) < 2:
                return None  # dicast calibrate gives no threshold for labels of one class
            calibration = Calibration.of_labels(usable, stages, rules)
            if any(step.climb.threshold is None for step in calibration.steps):
                return None
            at = ", ".join(f"{step.stage.label} >= {step.climb.threshold:.4g}" for step in calibration.steps)
            return f"calibrated after {len(labels)} labels: {at}"

        return enough


def _is_labeled(judged: Judged, labeled_outputs: Container[tuple[str, str, str | None]]) -> bool:
    """Return whether one of *labeled_outputs* is the output; an entry without a digest matches every output."""
    subject = judged.subject
    digests = (None, judged.output_digest)
    return any((kind, subject.id, digest) in labeled_outputs for kind in (subject.kind, "") for digest in digests)
