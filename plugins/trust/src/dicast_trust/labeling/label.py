"""``dicast label``: a person says of subjects whether they are good."""

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
from dicast.commands import as_json, ledger_path, print_json
from dicast.toolkit.gold import GoldLabel

from ..calibration.document import Calibration
from ..labels.choosing import Judged, audited, disagreements, evidence, in_random_order, read_subjects, stratified
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
    help="N subjects drawn at random; these alone calibrate a judge.",
)
@click.option(
    "--stratified", "drawn", flag_value="stratified", help="As many from each fifth of the first judge's confidence."
)
@click.option(
    "--disagreements", "drawn", flag_value="disagreements", help="First those on which the judges are at odds."
)
@click.option(
    "--audits",
    "drawn",
    flag_value="audits",
    help="Those whose kept verdicts an audit has drawn (audit: {against: gold}).",
)
@click.option(
    "--until-calibrated",
    is_flag=True,
    help="Go on until dicast calibrate --sequential finds a threshold for each stage; in random order.",
)
@click.option(
    "--target", default=0.9, show_default=True, callback=rate, help="With --until-calibrated: as in dicast calibrate."
)
@click.option("--alpha", default=0.1, show_default=True, callback=rate, help="Likewise.")
@click.option(
    "--judge",
    "labels",
    multiple=True,
    metavar="LABEL",
    help="The cascade or the judges that are meant, where the file has others.",
)
@click.option(
    "--kind",
    metavar="KIND",
    help="Only subjects of this kind, such as session or turn; by default all kinds that were judged.",
)
@click.option("--labeller", metavar="NAME", help="Who labels; by default the user of this machine.")
@click.option("--seed", default=0, show_default=True, help="Of the random order.")
@ledger_path
@as_json
def label(name: str, ledger: Path | None, as_json: bool, **given: Any) -> None:
    """Label subjects at the terminal. The evidence is shown that the judge of FILE or RUN saw, and nothing that a judge said of it.

    A label is about the output that is shown: it counts for verdicts on that output.

    Keys: y pass, n fail, t tie, = a score, s skip, u undo, q quit, ? help. Each label is recorded at once.
    """
    if given["until_calibrated"] and given["drawn"]:
        raise click.UsageError(
            "--until-calibrated needs labels drawn at random: leave --stratified, --disagreements and --audits out"
        )
    work = _work(name, ledger, given["labels"], given["kind"])
    if not sys.stdin.isatty():
        raise ConfigError(
            "dicast label asks a person, and standard input is no terminal: call it at one, or take labels from a file with dicast labels import FILE"
        )
    labeller = given["labeller"] or getpass.getuser()
    drawn: Drawn = given["drawn"] or "random"
    left: Choice = work.read(lambda live: work.chosen(live, labeller, drawn, given["seed"]))
    subjects = left.subjects if given["count"] is None else left.subjects[: given["count"]]
    if not subjects and drawn == "audits":
        raise ConfigError(
            f"no kept verdict of {name} waits for a label: the cascade needs audit: {{rate: .02, against: gold}}"
        )
    if not subjects:
        raise ConfigError(
            f"every subject that {name} has judged ({left.judged:,}) has a label of {labeller!r} on its output; --labeller names somebody else"
        )
    enough = (
        work.until(Rules(given["target"], given["alpha"], sequential=True)) if given["until_calibrated"] else _never
    )
    if not as_json:
        click.echo(left.words(name, len(subjects), drawn))
    prompt = Prompt(labeller, work.shown, enough=enough)
    human = Human(labeller, drawn)
    done = record(work.component, human, ((judged.subject, said) for judged, said in prompt.labels(subjects)))
    if as_json:
        print_json(
            {
                "labelled": len(human.labels),
                "offered": len(subjects),
                "judged": left.judged,
                "labeller": labeller,
                "drawn": drawn,
                "run_id": None if done is None else done.run_id,
            }
        )
    else:
        count = f"{len(human.labels):,} of {len(subjects):,}"
        click.echo(f"{count} subjects labeled by {labeller}; dicast calibrate FILE --gold ledger reads them")


def _never(_: object) -> None:
    return None


def _work(name: str, ledger: Path | None, labels: Sequence[str], kind: str | None) -> Work:
    """What is labelled: what the judges of a file, or a run, have judged."""
    path = Path(name)
    if path.is_file() or path.suffix in (".yaml", ".yml"):
        return Work(ledger, pipeline_judges(path), tuple(labels), kind=kind)
    run = read_ledger(ledger, lambda live: named_run(live, name))
    return Work(ledger, None, tuple(labels), run, kind)


@attrs.frozen
class Choice:
    """The subjects that wait for a label, of so many *judged* by kind."""

    subjects: Sequence[Judged]
    kinds: Mapping[str, int]

    @property
    def judged(self) -> int:
        """The number of subjects that were judged."""
        return sum(self.kinds.values())

    def words(self, name: str, count: int, drawn: str) -> str:
        """Return how many of how many subjects are offered, and of which kinds."""
        kinds = ", ".join(f"{n:,} of kind {kind}" for kind, n in self.kinds.items())
        text = f"{count:,} of {self.judged:,} subjects that {name} has judged ({kinds}); drawn: {drawn}; {len(self.subjects):,} wait for a label"
        return f"{text}; --kind chooses one kind" if len(self.kinds) > 1 else text


@attrs.frozen
class Work:
    """The subjects to be labelled, in the ledger at *path* or that of the file; with *run* only those of this run."""

    path: Path | None
    judges: PipelineJudges | None
    labels: tuple[str, ...]
    run: str | None = None
    kind: str | None = None

    @property
    def component(self) -> object:
        """The ledger, as a pipeline has it."""
        if self.path is not None or self.judges is None:
            return ledger_component(self.path)
        return self.judges.ledger

    def read(self, function: Callable[[Ledger], Any]) -> Any:
        """What *function* makes of the ledger."""
        return read_ledger(self.path, function) if self.judges is None else self.judges.read_ledger(function, self.path)

    def stages(self, live: Ledger) -> list[Stage]:
        """The stages of the file with what they have said; none where a run is labelled."""
        if self.judges is None:
            return []
        cascade, stages = stages_of(self.judges.judges, self.labels)
        read_stages(live, stages, cascade)
        return stages

    def chosen(self, live: Ledger, labeller: str, drawn: Drawn, seed: int) -> Choice:
        """Return the subjects without a label of this *labeller* on the output that was judged last, in the order in which they are asked about."""
        stages = self.stages(live)
        judged_in = {key: one.run_id for stage in reversed(stages) for key, one in stage.outcomes.items()}
        known = read_subjects(live, () if self.run is None else (self.run,), judged_in)
        judged = [key for key in known if self.kind in (None, key[0]) and (not stages or key in judged_in)]
        if self.kind is not None and not judged:
            kinds = ", ".join(sorted({kind for kind, _ in known}))
            raise ConfigError(f"no subject of kind {self.kind!r} was judged; there are subjects of kind {kinds}")
        done = {
            (one.kind, one.subject_id, one.output_digest) for _, one in given_labels(live) if one.labeller == labeller
        }
        keys = [key for key in judged if not _is_labeled(known[key], done)]
        if drawn == "audits":
            waiting = audited(live)
            keys = [key for key in keys if key in waiting]
        if drawn not in ("random", "audits") and not stages:
            raise ConfigError(f"--{drawn} goes by what judges have said: name the pipeline's file in place of a run")
        if drawn == "stratified":
            ordered = stratified(keys, stages[0], seed)
        else:
            ordered = in_random_order(keys, seed)
            ordered = disagreements(ordered, stages) if drawn == "disagreements" else ordered
        return Choice([known[key] for key in ordered], Counter(kind for kind, _ in judged))

    def shown(self, judged: Judged) -> Iterator[str]:
        """Yield the evidence of a subject, as the judge of its kind sees it."""
        lines: list[str] = self.read(
            lambda live: list(evidence(live, judged, self._judges(judged.subject.kind)).lines())
        )
        return iter(lines)

    def _judges(self, kind: str) -> list[object]:
        """Return the components that judge subjects of *kind*, with the judges inside them."""
        slots = [] if self.judges is None else self.judges.judges
        chosen = [slot for slot in slots if not self.labels or slot.label in self.labels]
        every = [one for slot in chosen for one in (slot, *slot.inside.values())]
        return [one.component for one in every if kind in (getattr(one.component, "accepts", ()) or (kind,))]

    def until(self, rules: Rules) -> Callable[[Sequence[tuple[Judged, GoldLabel]]], str | None]:
        """Says when the labels there are and those given suffice for a threshold at each stage."""
        if self.judges is None:
            raise ConfigError("--until-calibrated is about the judges of a file: name it in place of a run")
        stages: list[Stage] = self.read(self.stages)
        before: list[GoldLabel] = self.read(lambda live: [one for _, one in random_labels(live)])
        agree: Agree = "winner" if any(stage.is_pairwise for stage in stages) else "pass"
        rules = attrs.evolve(rules, pass_at=stages[0].slot.pass_at or 0.0, agree=agree, assume_random=True)

        def enough(given: Sequence[tuple[Judged, GoldLabel]]) -> str | None:
            labels = {(one.kind, one.subject_id): one for one in (*before, *(label for _, label in given))}
            known = {key: one for key, one in labels.items() if key in stages[0].outcomes}
            if len({rules.label_class(one.score) for one in known.values()}) < 2:
                return None  # dicast calibrate gives no threshold for labels of one class
            found = Calibration.of_labels(known, stages, rules)
            if any(step.climb.threshold is None for step in found.steps):
                return None
            at = ", ".join(f"{step.stage.label} >= {step.climb.threshold:.4g}" for step in found.steps)
            return f"calibrated after {len(labels)} labels: {at}"

        return enough


def _is_labeled(judged: Judged, done: Container[tuple[str, str, str | None]]) -> bool:
    """Whether a label of *done* is about the output; one without a digest is about every output."""
    subject = judged.subject
    digests = (None, judged.output_digest)
    return any((kind, subject.id, digest) in done for kind in (subject.kind, "") for digest in digests)


def ledger_component(path: Path | None) -> object:
    """The component of the ledger at *path*, by default of the usual one."""
    import os

    where = path or Path(os.environ.get("DICAST_LEDGER") or Path(".dicast") / "ledger.db")
    return {"ledger/sqlite": {"path": str(where)}}
