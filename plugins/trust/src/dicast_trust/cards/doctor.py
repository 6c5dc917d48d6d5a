"""``dicast doctor``: a card of each judge of a pipeline, by labels, with the answer whether its scores may decide a gate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from dicast import ALL_METRICS, ConfigError, DataError, Ledger, PipelineJudges, Problem, nearest, pipeline_judges
from dicast.commands import as_json, ledger_path, print_json
from dicast.reading import refuse_weights
from dicast.toolkit.printable import one_line
from dicast.toolkit.terminal import print_lines

from ..labels.gold import Gold, LabeledOutputs, read_gold
from ..terminal.options import any_output, check_out, write_out
from ..verdicts.rules import Agree
from .asking_again import Asking
from .card import add_warnings, judge_card
from .history import JudgeHistory, read_labels
from .identity import card_digest
from .text import card_lines, verdict_words

VERSION = 1
_BEGINS = b'{\n  "version": %d,\n  "pipeline": ' % VERSION
"""First bytes of a card: no other file is replaced by it."""


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--gold",
    required=True,
    metavar="FILE|ledger",
    help="The labels: a file of JSON lines {subject_id, score} or CSV, or the word ledger for the ledger's labels, or recorded/NAME for scores of another tool in it.",
)
@click.option("--judge", "labels", multiple=True, metavar="LABEL", help="Only this judge or metric; repeatable.")
@click.option(
    "--repeat",
    type=click.IntRange(1, 10),
    default=2,
    show_default=True,
    help="Number of verdicts to compare on each subject, the recorded one included.",
)
@click.option(
    "--ask/--no-ask",
    default=True,
    help="Ask the judge again, under the budget of FILE, or use the recorded verdicts only.  [default: ask]",
)
@click.option(
    "--author",
    default="model",
    show_default=True,
    metavar="PATH",
    help="Column of a row with the name of the model that wrote its output.",
)
@click.option(
    "--agree",
    type=click.Choice(["pass", "winner"]),
    help="When a verdict and a label agree: the same side of pass_at, or the same winner.  [default: winner for pairwise judges, else pass]",
)
@any_output
@click.option("--seed", default=0, show_default=True, help="Seed of all random choices.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="Write the card to this file as JSON, for require_card of a gate.",
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
    ledger: Path | str | None,
    as_json: bool,
) -> None:
    """Examine the judges of FILE by labels. Report whether their scores may decide a gate.

    Reads the judges' verdicts in the ledger. Asks each judge again about 50 labeled subjects, and about canaries: texts that try to forge its verdict.
    """
    from .page import BEGINS, page

    check_out(out, file, gold, replaces=_BEGINS)
    check_out(html, file, gold, replaces=BEGINS)
    pipeline = pipeline_judges(file)
    for label in labels or ([ALL_METRICS] if pipeline.metrics and not pipeline.judges else []):
        if label in pipeline.pass_at:
            pipeline.line(label)  # refuses a label with its own scale before the ledger is read
    if ledger is not None and ask:
        raise click.UsageError(
            "--ledger cannot be combined with asking, because the budget counts in the ledger of FILE: add --no-ask"
        )
    histories, gold_labels = pipeline.read_ledger(
        lambda live: _read(live, pipeline, labels, gold, author, any_output=any_output), ledger
    )
    asking = Asking(pipeline, gold_labels, repeat, seed, ask, lambda text: click.echo(one_line(text), err=True))
    judges = [
        judge_card(history, gold_labels, pipeline.line(history.label), asking.answers(history), seed, agree)
        for history in histories
    ]
    add_warnings(judges)
    for judge in judges:
        judge["words"] = verdict_words(judge)
    card = _document(pipeline, gold_labels.gold, judges)
    if out is not None:
        write_out(out, _json(card), _BEGINS)
    if html is not None:
        write_out(html, page(card).encode(), BEGINS)
    if as_json:
        print_json(card)
    else:
        print_lines(card_lines(card))


def _read(
    ledger: Ledger, pipeline: PipelineJudges, labels: Sequence[str], gold: str, author: str, *, any_output: bool
) -> tuple[list[JudgeHistory], LabeledOutputs]:
    """Return the history of each requested judge in the ledger, and the labels.

    :raises RequestError: if the ledger has no verdicts of a judge, or the labels are invalid or about other subjects.
    """
    histories = read_labels(ledger, pipeline.fingerprints, author)
    chosen = _chosen(pipeline, labels, histories)
    labels_of_gold = read_gold(gold, ledger, draws=True)
    outputs = LabeledOutputs.of(ledger, labels_of_gold, any_output=any_output)
    for history in chosen:
        history.skips = outputs.excludes
    refuse_weights(ledger, {verdict.run_id for history in chosen for _, verdict in history.newest()} or {""}, "a card")
    gold_labels = [
        outputs.label(verdict.run_id, *subject) for history in chosen for subject, verdict in history.newest()
    ]
    outputs.check()
    if not any(label is not None for label in gold_labels):
        first_label, first_subject = (
            next(iter(labels_of_gold.subjects), ("", "")),
            next((s for history in chosen for s in history.verdicts), ("", "none")),
        )
        message = f"no label in {labels_of_gold.source} is about a judged subject: the first label is about {first_label[1]!r}, a judged subject is {first_subject[1]!r}"
        raise DataError(Problem(message, path="subject_id", value=first_label[1]))
    return chosen, outputs


def _chosen(
    pipeline: PipelineJudges, labels: Sequence[str], histories: Mapping[str, JudgeHistory]
) -> list[JudgeHistory]:
    """Return the judges to examine: the named ones, else all judges, else all metrics together.

    :raises ConfigError: for each unknown judge, and each judge without verdicts in the ledger.
    """
    every = [slot.label for slot in (*pipeline.judges, *pipeline.metrics)] + ([ALL_METRICS] if pipeline.metrics else [])
    problems = [
        Problem(f"no judge or metric {label!r} in {pipeline.file}; its labels are {', '.join(every)}", path="--judge", value=label, hint=nearest(label, every))
        for label in labels
        if label not in every
    ]  # fmt: skip
    if problems:
        raise ConfigError(problems)
    default = [slot.label for slot in pipeline.judges] or [ALL_METRICS]
    chosen = (
        list(dict.fromkeys(labels))
        or [label for label in default if label in histories and histories[label].verdicts]
        or default
    )
    unjudged = [
        _unjudged(pipeline, label, histories.get(label))
        for label in chosen
        if not (label in histories and histories[label].verdicts)
    ]
    if unjudged:
        raise ConfigError(unjudged)
    return [histories[label] for label in chosen]


def _unjudged(pipeline: PipelineJudges, label: str, history: JudgeHistory | None) -> Problem:
    run = f"make some with dicast run {pipeline.file}"
    if history is not None and history.excluded:
        message = (
            f"the ledger has {history.excluded:,} verdicts of {label}, all of another judge than the judge in {pipeline.file}: its "
            f"options, prompt, rubric or version have changed; {run}"
        )
    elif history is not None and history.failures:
        message = f"{label} has failed on all {history.failures.total():,} subjects that it was asked about; see dicast verdicts --failed"
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
        "reasons": [
            f"{judge['label']}: {reason}" if several else reason for judge in judges for reason in judge["reasons"]
        ],
        "judges": [*judges],
    }
    return {**card, "digest": card_digest(card)}


def _json(card: Mapping[str, Any]) -> bytes:
    import orjson

    return orjson.dumps(card, option=orjson.OPT_INDENT_2) + b"\n"
