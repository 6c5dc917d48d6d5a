"""``dicast labels``: export and import of labels, agreement between labelers, and decisions where labels differ."""

from __future__ import annotations

import csv
import getpass
import io
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import attrs
import click
import orjson

from dicast import ConfigError, Ledger, Query, Subject, read_ledger
from dicast.commands import as_json, ledger_path, ledger_section, print_json
from dicast.reading import JudgedOutputs
from dicast.toolkit.atomic_file import AtomicFile
from dicast.toolkit.gold import GoldLabel
from dicast.toolkit.overwriting import refuse_overwrite
from dicast.toolkit.terminal import print_lines
from dicast.toolkit.text_table import TextTable

from ..labels.agreement import LabelerAgreement, OutputKey
from ..labels.choosing import Judged, evidence, read_subjects
from ..labels.gold import ADJUDICATED, DRAWN, RANDOMLY, WEIGHT, decides, given_labels
from ..labels.human import Human, record
from ..labels.importing import read_import
from ..terminal.options import any_output
from .prompt import Prompt

_BEGINS = (b"subject_id,subject_kind,score,labeller,", b'{"subject_id":"')
"""First bytes of a file of labels: CSV, JSON lines. No other file is replaced."""

_COLUMNS = ("subject_id", "subject_kind", "score", "labeller", "session_id", "drawn", ADJUDICATED, "output_digest")


@click.group()
def labels() -> None:
    """Export, import and compare labels. Report how far labelers agree, and decide where they differ."""


@labels.command("export")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="Output file: CSV if the name ends in .csv, else JSON lines; by default standard output.",
)
@click.option("--labeller", metavar="NAME", help="Only labels of this person.")
@ledger_path
def export(out: Path | None, labeller: str | None, ledger: Path | str | None) -> None:
    """Write the labels of the ledger: the newest of each labeler on each subject, in the order of recording."""
    rows, inputs = read_ledger(
        ledger, lambda live: ([_line(*item) for item in given_labels(live)], pipeline_files(live))
    )
    refuse_overwrite(out, inputs)
    lines = [line for line in rows if labeller in (None, line["labeller"])]
    is_csv = out is not None and out.suffix == ".csv"
    text = _as_csv(lines) if is_csv else "".join(f"{orjson.dumps(line).decode()}\n" for line in lines)
    if out is None:
        click.echo(text, nl=False)
        return
    with AtomicFile(out, replaces=_BEGINS[not is_csv]) as file:
        file.write(text.encode())
        file.commit()
    click.echo(f"{len(lines)} labels in {out}")


def pipeline_files(ledger: Ledger) -> list[str]:
    """Return the pipeline files that the runs in *ledger* read."""
    runs = ledger.read(Query(types=("run.started",)))
    names = {str(entry.event.payload.get("file", "")).partition("#")[0] for entry in runs}
    return [file for file in sorted(names) if file and not file.startswith("<")]


def _line(event: Any, label: GoldLabel) -> dict[str, Any]:
    drawn = event.payload.get(DRAWN)
    line = {
        "subject_id": label.subject_id,
        "subject_kind": label.kind,
        "score": label.score,
        "labeller": label.labeller,
    }
    line |= {"session_id": label.session_id, DRAWN: drawn, ADJUDICATED: decides(label)}
    line["output_digest"] = label.output_digest
    # not drawn with equal chances: because of this column dicast calibrate refuses the labels
    return line if drawn in RANDOMLY else line | {WEIGHT: None}


def _as_csv(lines: Sequence[dict[str, Any]]) -> str:
    columns = (*_COLUMNS, *([WEIGHT] if any(WEIGHT in line for line in lines) else []))
    file = io.StringIO()
    writer = csv.DictWriter(file, columns, lineterminator="\n", restval="")
    writer.writeheader()
    writer.writerows({key: _cell(value) for key, value in line.items()} for line in lines)
    return file.getvalue()


def _cell(value: object) -> object:
    return str(value).lower() if isinstance(value, bool) else value


@labels.command("import")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--labeller", metavar="NAME", help="Labeler of lines that name none; by default the user name.")
@click.option("--adjudicated", is_flag=True, help="Import decisions: they settle subjects whose labels differ.")
@any_output
@ledger_path
@as_json
def import_(
    file: Path, labeller: str | None, adjudicated: bool, any_output: bool, ledger: Path | str | None, as_json: bool
) -> None:
    """Import labels from FILE, JSON lines {subject_id, score | label} or CSV. A run in the ledger must have read each subject.

    A line may name its output by output_digest or run; for outputs of a task it has to.
    """
    rows = read_ledger(ledger, lambda live: read_import(live, file, any_output=any_output))
    if adjudicated:
        rows = [(subject, attrs.evolve(label, others={**label.others, ADJUDICATED: True})) for subject, label in rows]
    human = Human(labeller or getpass.getuser(), "imported")
    for name, run_labels in _runs(rows, human.labeller):
        record(ledger_section(ledger), Human(name, "imported"), run_labels)
    if as_json:
        print_json(
            {"imported": len(rows), "labellers": sorted({label.labeller or human.labeller for _, label in rows})}
        )
    else:
        click.echo(f"{len(rows)} labels imported; use them with dicast calibrate FILE --gold ledger")


def _runs(
    labels: Sequence[tuple[Subject, GoldLabel]], labeller: str
) -> Iterator[tuple[str, list[tuple[Subject, GoldLabel]]]]:
    """Yield the labels of each run to record, with their labeler: a run has at most one verdict on a subject."""
    for name in sorted({label.labeller or labeller for _, label in labels}):
        batches: list[dict[tuple[str, str], tuple[Subject, GoldLabel]]] = []
        for subject, label in labels:
            if (label.labeller or labeller) == name:
                key = subject.kind, subject.id
                free = next((batch for batch in batches if key not in batch), None)
                if free is None:
                    batches.append(free := {})
                free[key] = subject, label
        yield from ((name, list(batch.values())) for batch in batches)


@labels.command("agreement")
@ledger_path
@as_json
def agreement(ledger: Path | str | None, as_json: bool) -> None:
    """Report how far labelers agree: Cohen's kappa of pairs, Krippendorff's alpha of all, and the subjects on which they differ."""
    document = read_ledger(
        ledger, lambda live: LabelerAgreement.of([label for _, label in given_labels(live)])
    ).document()
    if as_json:
        print_json(document)
        return
    print_lines(_parts(document))


def _parts(document: dict[str, Any]) -> Iterator[str | TextTable]:
    counts = ", ".join(f"{name} {n}" for name, n in document["labellers"].items()) or "none"
    yield f"labels: {counts}"
    if document["alpha"] is not None:
        interval = document["alpha_ci"]
        ends = "" if interval is None else "; 95 % interval {:.3f} to {:.3f}".format(*interval)
        yield f"alpha {document['alpha']:.3f} (1 is agreement, 0 is chance{ends})"
    if document["pairs"]:
        yield TextTable(
            ("labelers", "subjects", "agree", "kappa"),
            [
                [
                    f"{row['a']} and {row['b']}",
                    row["n"],
                    f"{row['agree']:.3f}",
                    None if row["kappa"] is None else f"{row['kappa']:.3f}",
                ]
                for row in document["pairs"]
            ],
            right=("agree", "kappa"),
        )
    yield from document["reasons"]
    if document["differ"]:
        yield f"{len(document['differ'])} subjects with different labels; decide them with dicast labels adjudicate:"
        yield from (
            f"  {row['subject_id']}: {', '.join(f'{labeler} {score:g}' for labeler, score in row['labels'].items())}"
            for row in document["differ"][:20]
        )


def _outputs_of(ledger: Ledger, keys: Sequence[OutputKey]) -> dict[OutputKey, Judged]:
    """Return the judged subjects, with the outputs that the labels are about."""
    outputs = JudgedOutputs(ledger, {id for _, id, _ in keys})
    judged: dict[OutputKey, Judged] = {}
    for key in keys:
        kind, id, digest = key
        runs = [
            run
            for run in outputs.runs(kind, id)
            if digest in (None, getattr(outputs.of(run, kind, id), "digest", None))
        ]
        subjects = read_subjects(ledger, runs[-1:]) if runs else {}
        if (kind, id) in subjects:
            judged[key] = subjects[kind, id]
    return judged


@labels.command("adjudicate")
@click.option("--labeller", metavar="NAME", help="Name of the person who decides; by default the user name.")
@ledger_path
@as_json
def adjudicate(labeller: str | None, ledger: Path | str | None, as_json: bool) -> None:
    """Decide between different labels at the terminal. It shows the judged output and the label of each labeler."""
    differ = read_ledger(ledger, lambda live: LabelerAgreement.of([item for _, item in given_labels(live)])).differing()
    if not differ:
        click.echo("no labels differ", err=True)
        return
    if not sys.stdin.isatty():
        raise ConfigError(
            f"subjects with different labels: {len(differ)}; a person has to decide, but standard input is not a terminal: run it at a terminal, or import "
            "the decisions with dicast labels import FILE --adjudicated"
        )
    judged: dict[Any, Judged] = read_ledger(ledger, lambda live: _outputs_of(live, list(differ)))

    def show(subject: Judged) -> Iterator[str]:
        yield from read_ledger(ledger, lambda live: list(evidence(live, subject).lines()))
        yield ""
        yield "  ".join(f"{labeler}: {score:g}" for labeler, score in scores[id(subject)].items())

    scores = {id(item): differ[key] for key, item in judged.items()}
    digests = {id(item): key[2] for key, item in judged.items()}
    subjects = list(judged.values())
    human = Human(labeller or getpass.getuser(), "imported")
    decisions = (
        (item.subject, attrs.evolve(label, output_digest=digests[id(item)], others={ADJUDICATED: True}))
        for item, label in Prompt(human.labeller, show).labels(subjects)
    )
    record(ledger_section(ledger), human, decisions)
    if as_json:
        print_json({"adjudicated": len(human.labels), "left": len(differ) - len(human.labels)})
    else:
        click.echo(f"{len(human.labels)} of {len(differ)} subjects decided")
