"""``dicast calibrate``: find the confidence above which a judge's verdicts have a bounded error rate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

import attrs
import click
import orjson

from dicast import ConfigError, Ledger, LedgerRefused, PipelineJudges, Problem, Slot, named_run, pipeline_judges
from dicast.commands import as_json, ledger_path, overrides, print_json, requires
from dicast.reading import refuse_weights
from dicast.toolkit.terminal import print_lines

from ..labels.gold import Gold, is_in_ledger, read_gold
from ..labels.matching import check_count, check_kinds
from ..terminal.options import any_output, check_out, names, rate, share, write_out
from ..verdicts.rules import Agree, Rules, Signals
from ..verdicts.stages import Stage, read_stages, stages_of
from .document import VERSION, Calibration
from .document import calibrate as calibrated
from .judge_missing import judge_missing, missing
from .metric import calibrate_metric, metric_slot
from .text import parts

_BEGINS = b'{\n  "version": %d,\n  "target": ' % VERSION
"""First bytes of a calibration: no other file is replaced by it."""

UNDECIDED = 3
"""Exit code if a stage has no threshold."""


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--gold",
    required=True,
    type=click.Path(path_type=Path),
    help="The labels: a file of JSON lines {subject_id, score | label} or CSV, or the word ledger for the ledger's labels, or recorded/NAME for scores of another tool in it.",
)
@click.option(
    "--target",
    default=0.9,
    show_default=True,
    callback=rate,
    help="Share of kept verdicts that has to agree with people.",
)
@click.option(
    "--alpha",
    default=0.1,
    show_default=True,
    callback=rate,
    help="Accepted probability that a threshold misses the target.",
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
    help="With --agree within: greatest difference of the scores.",
)
@click.option(
    "--signals",
    default="auto",
    show_default=True,
    type=click.Choice(get_args(Signals)),
    help="Signal for the threshold: the judge's confidence, or a model of several signals (needs 150 labels).",
)
@click.option(
    "--features",
    multiple=True,
    callback=names,
    metavar="NAME",
    help="Numeric signal of the verdicts to add to the model; repeatable.",
)
@click.option(
    "--sequential",
    is_flag=True,
    help="Use a test that stays valid after every label; the labels have to be in random order.",
)
@click.option("--seed", default=0, show_default=True, help="Seed of all random choices.")
@any_output
@click.option(
    "--assume-random",
    is_flag=True,
    help="Accept the labels as a random draw, even if they are of one class or their confidences differ from the ledger's.",
)
@click.option(
    "--judge",
    "labels",
    multiple=True,
    metavar="LABEL",
    help="The cascade, or the judges from cheap to expensive, if the file has others.",
)
@click.option("--metric", metavar="LABEL", help="Find the score above which a pass of this metric agrees with people.")
@click.option("--run", "runs", multiple=True, metavar="RUN", help="Only verdicts of this run; repeatable.")
@click.option(
    "--judge-missing",
    "judges_missing",
    is_flag=True,
    help="Ask the judges about labeled subjects without a verdict, under the file's budget.",
)
@click.option(
    "--out",
    default="calibration.json",
    show_default=True,
    type=click.Path(path_type=Path),
    help="File for the calibration.",
)
@overrides
@ledger_path
@as_json
@requires(window="agree", features="signals")
def calibrate(
    file: Path,
    gold: Path,
    out: Path,
    ledger: Path | str | None,
    as_json: bool,
    judges_missing: bool,
    any_output: bool,
    metric: str | None,
    **options: Any,
) -> int:
    """Calibrate the judges of FILE by labels. Find the confidence above which they agree with people, with a bounded error rate.

    Reads the ledger and judges nothing. Exit codes: 0 each stage has a threshold, 2 wrong request, 3 a stage has no threshold.
    """
    check_out(out, file, gold, replaces=_BEGINS)
    judges = pipeline_judges(file, options["overrides"])
    request = Request(judges, options["labels"], options["runs"], _rules(options), ledger, options["agree"], any_output)
    labels = request.gold(gold)
    if metric is not None:
        _check_metric_options({**options, "judge_missing": judges_missing})
        check_count(labels, request.options)
        document = request.calibrate_metric(labels, metric_slot(judges, metric))
    else:
        check_count(labels, request.rules)
        if judges_missing and (missing_subjects := request.unjudged(labels)):
            judge_missing(file, judges, request.cascade, missing_subjects, request.rules, options["overrides"])
        document = request.calibrate(labels).document()
    write_out(out, orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE), _BEGINS)
    if as_json:
        print_json(document)
    else:
        print_lines(parts(document, str(out)))
    return UNDECIDED if any(stage["threshold"] is None for stage in document["stages"]) else 0


def _check_metric_options(options: Mapping[str, Any]) -> None:
    """Refuse the options of judges next to ``--metric``.

    :raises ConfigError: with each such option.
    """
    of_judges = {
        "--judge": options["labels"],
        "--judge-missing": options["judge_missing"],
        "--agree": options["agree"],
        "--signals": options["signals"] == "model",
        "--features": options["features"],
    }
    names = [name for name, value in of_judges.items() if value]
    if names:
        raise ConfigError([Problem(f"{name} is for judges; remove it or --metric", path=name) for name in names])


def _rules(options: dict[str, Any]) -> Rules:
    fields = [field.name for field in attrs.fields(Rules) if field.name in options and field.name != "agree"]
    return Rules(**{name: options[name] for name in fields})


@attrs.frozen
class Request:
    """Request of the command; *path* is the ledger's, None for the ledger of the file."""

    judges: PipelineJudges
    labels: Sequence[str]
    runs: Sequence[str]
    options: Rules
    path: Path | str | None
    agree: Agree | None = None
    any_output: bool = False

    @property
    def cascade(self) -> Slot | None:
        """Cascade among the judges, or None."""
        return stages_of(self.judges.judges, self.labels)[0]

    @property
    def rules(self) -> Rules:
        """Rules with the judge's ``pass_at`` and the default of ``agree``."""
        cascade, stages = stages_of(self.judges.judges, self.labels)
        usual: Agree = "winner" if any(stage.is_pairwise for stage in stages) else "pass"
        line = (cascade or stages[0].slot).pass_at or 0.0  # every judge has pass_at
        return attrs.evolve(self.options, pass_at=line, agree=self.agree or usual)

    def gold(self, source: Path) -> Gold:
        """Return the labels in the file, or in the ledger if *source* is the word ``ledger`` or ``recorded/NAME``."""
        if is_in_ledger(source):
            return self.judges.read_ledger(lambda live: read_gold(source, live, draws=True), self.path)
        return read_gold(source, draws=True)

    def unjudged(self, gold: Gold) -> frozenset[tuple[str, str]]:
        """Return the labeled subjects that a stage was not asked about; all of them without a ledger."""

        def look(live: Ledger) -> frozenset[tuple[str, str]]:
            stages = self._read(live)
            check_kinds(gold, stages)
            return missing(gold, stages)

        try:
            return self.judges.read_ledger(look, self.path)
        except LedgerRefused:
            return frozenset(gold.subjects)

    def calibrate(self, gold: Gold) -> Calibration:
        """Calibrate from the ledger."""

        def go(live: Ledger) -> Calibration:
            cascade, stages = stages_of(self.judges.judges, self.labels)
            run_ids = self._run_ids(live)
            calibration = calibrated(live, gold, cascade, stages, self.rules, run_ids, any_output=self.any_output)
            judged_in = {outcome.run_id for stage in stages for outcome in stage.outcomes.values()}
            refuse_weights(live, run_ids or judged_in or ("",), "calibration")
            return calibration

        return self.judges.read_ledger(go, self.path)

    def calibrate_metric(self, gold: Gold, slot: Slot) -> dict[str, Any]:
        """Return the document of the threshold of a metric, by the scores in the ledger."""

        def read(live: Ledger) -> dict[str, Any]:
            run_ids = self._run_ids(live)
            refuse_weights(live, run_ids, "calibration")
            return calibrate_metric(live, gold, slot, self.options, run_ids, any_output=self.any_output)

        return self.judges.read_ledger(read, self.path)

    def _read(self, live: Ledger) -> list[Stage]:
        cascade, stages = stages_of(self.judges.judges, self.labels)
        read_stages(live, stages, cascade, self._run_ids(live))
        return stages

    def _run_ids(self, live: Ledger) -> list[str]:
        return [named_run(live, run) for run in dict.fromkeys(self.runs)]
