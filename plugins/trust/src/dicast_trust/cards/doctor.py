"""``dicast doctor``: a card on each judge of a pipeline, by labels: may its scores decide a gate?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from dicast import ConfigError, DataError, Ledger, PipelineJudges, Problem, nearest, pipeline_judges
from dicast.commands import as_json, ledger_path, print_json
from dicast.toolkit.atomic_file import AtomicFile
from dicast.toolkit.printable import one_line
from dicast.toolkit.terminal import print_lines

from ..labels.gold import Gold, LabeledOutputs, read_gold
from ..terminal.options import any_output, check_out
from ..verdicts.rules import Agree
from .asking_again import Asking
from .card import add_warnings, judge_card
from .identity import METRICS, card_digest
from .recorded import Recorded, read_labels
from .text import card_lines, verdict_words

VERSION = 1


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--gold",
    required=True,
    metavar="FILE|ledger",
    help="Labels: JSON lines {subject_id, score}, CSV, or the ledger's own.",
)
@click.option("--judge", "labels", multiple=True, metavar="LABEL", help="Only this judge or metric; may be repeated.")
@click.option(
    "--repeat",
    type=click.IntRange(1, 10),
    default=2,
    show_default=True,
    help="How many verdicts on a subject are compared, the recorded one among them.",
)
@click.option(
    "--ask/--no-ask",
    default=True,
    help="Whether the judge may be asked again, under the budget of FILE.  [default: ask]",
)
@click.option(
    "--author",
    default="model",
    show_default=True,
    metavar="PATH",
    help="The column of a row that names the model that wrote its output.",
)
@click.option(
    "--agree",
    type=click.Choice(["pass", "winner"]),
    help="When a verdict and a label agree: the same side of pass_at, or the same winner.  [default: winner for pairwise judges, else pass]",
)
@any_output
@click.option("--seed", default=0, show_default=True, help="Of all that is drawn.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="Write the card, as JSON, to this file: the one that a gate requires.",
)
@click.option("--html", type=click.Path(path_type=Path), help="Write the card as a page to this file.")
@ledger_path
@as_json
def doctor(
    file: Path,
    gold: str,
    labels: tuple[str, ...],
    repeat: int,
    ask: bool,
    author: str,
    agree: Agree | None,
    any_output: bool,
    seed: int,
    out: Path | None,
    html: Path | None,
    ledger: Path | None,
    as_json: bool,
) -> None:
    """Say whether judges may decide a gate. Labels examine the judges of FILE.

    Reads the verdicts that the ledger has of them, and asks each one again about 50 labeled subjects, and about canaries: texts that try to make its verdict.
    """
    for written in (out, html):
        check_out(written, file, gold)
    pipeline = pipeline_judges(file)
    for label in labels or (["metrics"] if pipeline.metrics and not pipeline.judges else []):
        if label in pipeline.pass_at:
            pipeline.line(label)  # a label on a scale of its own is refused before anything is read
    if ledger is not None and ask:
        raise click.UsageError(
            "with --ledger nothing can be asked, since the budget counts in FILE's own ledger: add --no-ask"
        )
    found, gold_labels = pipeline.read_ledger(
        lambda live: _read(live, pipeline, labels, gold, author, any_output=any_output), ledger
    )
    asking = Asking(pipeline, gold_labels, repeat, seed, ask, lambda text: click.echo(one_line(text), err=True))
    judges = [judge_card(one, gold_labels, pipeline.line(one.label), asking.answers(one), seed, agree) for one in found]
    add_warnings(judges)
    for judge in judges:
        judge["words"] = verdict_words(judge)
    card = _document(pipeline, gold_labels.gold, judges)
    if out is not None:
        _write(out, _json(card))
    if html is not None:
        from .page import page

        _write(html, page(card).encode())
    if as_json:
        print_json(card)
    else:
        print_lines(card_lines(card))


def _read(
    ledger: Ledger, pipeline: PipelineJudges, labels: Sequence[str], gold: str, author: str, *, any_output: bool
) -> tuple[list[Recorded], LabeledOutputs]:
    """What the ledger has of each judge that is asked for, and the labels.

    :raises RequestError: when it has nothing of them, or the labels are wrong or about other subjects.
    """
    found = read_labels(ledger, pipeline.fingerprints, author)
    chosen = _chosen(pipeline, labels, found)
    known = read_gold(gold, ledger, draws=True)
    outputs = LabeledOutputs.of(ledger, known, any_output=any_output)
    for recorded in chosen:
        recorded.skips = outputs.excludes
    met = [outputs.label(said.run_id, *subject) for one in chosen for subject, said in one.newest()]
    outputs.check()
    if not any(label is not None for label in met):
        given, judged = (
            next(iter(known.subjects), ("", "")),
            next((s for one in chosen for s in one.said), ("", "none")),
        )
        message = f"no label in {known.source} is about a subject that was judged: the first is of {given[1]!r}, a judged one is {judged[1]!r}"
        raise DataError(Problem(message, path="subject_id", value=given[1]))
    return chosen, outputs


def _chosen(pipeline: PipelineJudges, labels: Sequence[str], found: Mapping[str, Recorded]) -> list[Recorded]:
    """The judges that are examined: those named, else all judges, else all metrics together.

    :raises ConfigError: naming each that there is not, or that the ledger has no verdicts of.
    """
    every = [slot.label for slot in (*pipeline.judges, *pipeline.metrics)] + ([METRICS] if pipeline.metrics else [])
    wrong = [
        Problem(f"no judge or metric {label!r} in {pipeline.file}; there are {', '.join(every)}", path="--judge", value=label, hint=nearest(label, every))
        for label in labels
        if label not in every
    ]  # fmt: skip
    if wrong:
        raise ConfigError(wrong)
    usual = [slot.label for slot in pipeline.judges] or [METRICS]
    wanted = list(dict.fromkeys(labels)) or [label for label in usual if label in found and found[label].said] or usual
    unjudged = [
        _unjudged(pipeline, label, found.get(label)) for label in wanted if not (label in found and found[label].said)
    ]
    if unjudged:
        raise ConfigError(unjudged)
    return [found[label] for label in wanted]


def _unjudged(pipeline: PipelineJudges, label: str, recorded: Recorded | None) -> Problem:
    run = f"dicast run {pipeline.file} makes some"
    if recorded is not None and recorded.others:
        message = (
            f"the ledger has {recorded.others:,} verdicts of {label}, all of another judge than {pipeline.file} has now: its "
            f"options, prompt, rubric or version have changed since; {run}"
        )
    elif recorded is not None and recorded.failures:
        message = f"{label} has failed on all {recorded.failures.total():,} subjects that it was asked about; dicast verdicts --failed says why"
    else:
        message = f"the ledger has no verdicts of {label}; {run}"
    return Problem(message, path="--judge", value=label)


def _document(pipeline: PipelineJudges, gold: Gold, judges: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    answers = [judge["can_gate"] for judge in judges]
    several = len(judges) > 1
    card = {
        "version": VERSION,
        "pipeline": pipeline.name,
        "gold": {"n": len(gold.by_subject), "digest": gold.digest, "source": gold.source},
        "can_gate": False if False in answers else None if None in answers else True,
        "reasons": [f"{judge['label']}: {why}" if several else why for judge in judges for why in judge["reasons"]],
        "judges": [*judges],
    }
    return {**card, "digest": card_digest(card)}


def _json(card: Mapping[str, Any]) -> bytes:
    import orjson

    return orjson.dumps(card, option=orjson.OPT_INDENT_2) + b"\n"


def _write(path: Path, content: bytes) -> None:
    with AtomicFile(path) as file:
        file.write(content)
        file.commit()
