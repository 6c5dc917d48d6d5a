"""``dicast calibrate``: from which confidence on a judge's verdicts may stand, so that they are wrong at most so often."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

import attrs
import click
import orjson

from dicast import Ledger, LedgerRefused, PipelineJudges, Slot, named_run, pipeline_judges
from dicast.commands import as_json, ledger_path, overrides, print_json
from dicast.toolkit.atomic_file import AtomicFile
from dicast.toolkit.terminal import print_lines

from ..labels.gold import Gold, read_gold
from ..labels.matching import check_count, check_kinds
from ..terminal.options import any_output, check_out, names, rate, share
from ..verdicts.rules import Agree, Rules, Signals
from ..verdicts.stages import Stage, read_stages, stages_of
from .document import Calibration
from .document import calibrate as calibrated
from .judge_missing import judge_missing, missing
from .text import parts

UNDECIDED = 3
"""The exit code where a stage has no threshold."""


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--gold",
    required=True,
    type=click.Path(path_type=Path),
    help="The labels: JSON lines {subject_id, score | label} or CSV; ledger means those that it has.",
)
@click.option(
    "--target",
    default=0.9,
    show_default=True,
    callback=rate,
    help="The share of what is kept that has to agree with people.",
)
@click.option(
    "--alpha",
    default=0.1,
    show_default=True,
    callback=rate,
    help="How probable it may be that a threshold does not keep to it.",
)
@click.option(
    "--agree",
    type=click.Choice(get_args(Agree)),
    help="When a verdict and a label agree: the same side of pass_at, scores within --window, the same winner.  [default: winner for pairwise judges, else pass]",
)
@click.option(
    "--window",
    default=0.15,
    show_default=True,
    callback=share,
    help="With --agree within: how far apart scores may be.",
)
@click.option(
    "--signals",
    default="auto",
    show_default=True,
    type=click.Choice(get_args(Signals)),
    help="By what to keep: the judge's confidence, or a model of several signals (150 labels).",
)
@click.option(
    "--features",
    multiple=True,
    callback=names,
    metavar="NAME",
    help="A number among the verdicts' signals for the model; repeatable.",
)
@click.option(
    "--sequential",
    is_flag=True,
    help="A test that may be looked at after every label; the labels have to be in random order.",
)
@click.option("--seed", default=0, show_default=True, help="Of all random choices.")
@any_output
@click.option(
    "--assume-random",
    is_flag=True,
    help="Take the labels for a random draw where they are of one class, or their confidences differ from the ledger's.",
)
@click.option(
    "--judge",
    "labels",
    multiple=True,
    metavar="LABEL",
    help="The cascade, or the judges from cheap to dear, where the file has others.",
)
@click.option("--run", "runs", multiple=True, metavar="RUN", help="Only verdicts of this run; repeatable.")
@click.option(
    "--judge-missing",
    "judges_missing",
    is_flag=True,
    help="Ask the judges about labelled subjects that they have no verdict on, under the file's budget.",
)
@click.option(
    "--out",
    default="calibration.json",
    show_default=True,
    type=click.Path(path_type=Path),
    help="Where the calibration is written.",
)
@overrides
@ledger_path
@as_json
def calibrate(
    file: Path,
    gold: Path,
    out: Path,
    ledger: Path | None,
    as_json: bool,
    judges_missing: bool,
    any_output: bool,
    **given: Any,
) -> int:
    """Find the confidence from which to trust judges. Labels say from where on verdicts of FILE's judges agree with people, and what that guarantees.

    Reads the ledger and judges nothing. Exit codes: 0 each stage has a threshold, 2 wrong request, 3 a stage has none.
    """
    check_out(out, file, gold)
    judges = pipeline_judges(file, given["overrides"])
    wanted = Wanted(judges, given["labels"], given["runs"], _rules(given), ledger, given["agree"], any_output)
    labels = wanted.gold(gold)
    check_count(labels, wanted.rules)
    if judges_missing and (unasked := wanted.missing(labels)):
        judge_missing(file, judges, wanted.cascade, unasked, wanted.rules, given["overrides"])
    document = wanted.calibrate(labels).document()
    _write(out, document)
    if as_json:
        print_json(document)
    else:
        print_lines(parts(document, str(out)))
    return UNDECIDED if any(stage["threshold"] is None for stage in document["stages"]) else 0


def _rules(given: dict[str, Any]) -> Rules:
    fields = [field.name for field in attrs.fields(Rules) if field.name in given and field.name != "agree"]
    return Rules(**{name: given[name] for name in fields})


@attrs.frozen
class Wanted:
    """What is to be calibrated, as the command was told; *path* is the ledger's, None for the one that the file names."""

    judges: PipelineJudges
    labels: Sequence[str]
    runs: Sequence[str]
    given: Rules
    path: Path | None
    agree: Agree | None = None
    any_output: bool = False

    @property
    def cascade(self) -> Slot | None:
        """The cascade among the judges."""
        return stages_of(self.judges.judges, self.labels)[0]

    @property
    def rules(self) -> Rules:
        """Return the rules with the score from which a verdict passes, and the default of ``agree``."""
        cascade, stages = stages_of(self.judges.judges, self.labels)
        usual: Agree = "winner" if any(stage.is_pairwise for stage in stages) else "pass"
        line = (cascade or stages[0].slot).pass_at or 0.0  # a judge has a line
        return attrs.evolve(self.given, pass_at=line, agree=self.agree or usual)

    def gold(self, source: Path) -> Gold:
        """The labels; of the word ``ledger`` those in it."""
        if str(source) == "ledger" and not source.exists():
            return self.judges.read_ledger(lambda live: read_gold(source, live, draws=True), self.path)
        return read_gold(source, draws=True)

    def missing(self, gold: Gold) -> frozenset[tuple[str, str]]:
        """The labelled subjects that a stage was not asked about; all of them where there is no ledger yet."""

        def look(live: Ledger) -> frozenset[tuple[str, str]]:
            stages = self._read(live)
            check_kinds(gold, stages)
            return missing(gold, stages)

        try:
            return self.judges.read_ledger(look, self.path)
        except LedgerRefused:
            return frozenset(gold.subjects)

    def calibrate(self, gold: Gold) -> Calibration:
        """Calibrate by what the ledger has."""

        def go(live: Ledger) -> Calibration:
            cascade, stages = stages_of(self.judges.judges, self.labels)
            return calibrated(live, gold, cascade, stages, self.rules, self._run_ids(live), any_output=self.any_output)

        return self.judges.read_ledger(go, self.path)

    def _read(self, live: Ledger) -> list[Stage]:
        cascade, stages = stages_of(self.judges.judges, self.labels)
        read_stages(live, stages, cascade, self._run_ids(live))
        return stages

    def _run_ids(self, live: Ledger) -> list[str]:
        return [named_run(live, run) for run in dict.fromkeys(self.runs)]


def _write(path: Path, document: dict[str, Any]) -> None:
    """Write the calibration, whole or not at all."""
    with AtomicFile(path) as file:
        file.write(orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
        file.commit()
