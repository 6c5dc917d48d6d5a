"""``dicast labels``: labels in and out of a ledger, how far labellers agree, and who decides where they do not."""

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
from dicast.commands import as_json, ledger_path, print_json
from dicast.reading import JudgedOutputs
from dicast.toolkit.atomic_file import AtomicFile
from dicast.toolkit.gold import GoldLabel
from dicast.toolkit.overwriting import refuse_overwrite
from dicast.toolkit.terminal import print_lines
from dicast.toolkit.text_table import TextTable

from ..labels.agreement import Labellers, OutputKey
from ..labels.choosing import Judged, evidence, read_subjects
from ..labels.gold import ADJUDICATED, DRAWN, RANDOMLY, WEIGHT, decides, given_labels
from ..labels.human import Human, record
from ..labels.importing import read_import
from ..terminal.options import any_output
from .label import ledger_component
from .prompt import Prompt

_COLUMNS = ("subject_id", "subject_kind", "score", "labeller", "session_id", "drawn", ADJUDICATED, "output_digest")


@click.group()
def labels() -> None:
    """Export, import and compare labels. Say how far labellers agree, and decide where they differ."""


@labels.command("export")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="The file: CSV where it ends in .csv, else JSON lines; standard output without it.",
)
@click.option("--labeller", metavar="NAME", help="Only the labels of this one.")
@ledger_path
def export(out: Path | None, labeller: str | None, ledger: Path | None) -> None:
    """Write the labels of the ledger: the newest of each labeller on each subject, in the order in which they were given."""
    found, read = read_ledger(ledger, lambda live: ([_line(*one) for one in given_labels(live)], pipeline_files(live)))
    refuse_overwrite(out, read)
    lines = [line for line in found if labeller in (None, line["labeller"])]
    text = (
        _as_csv(lines)
        if out is not None and out.suffix == ".csv"
        else "".join(f"{orjson.dumps(line).decode()}\n" for line in lines)
    )
    if out is None:
        click.echo(text, nl=False)
        return
    with AtomicFile(out) as file:
        file.write(text.encode())
        file.commit()
    click.echo(f"{len(lines)} labels in {out}")


def pipeline_files(ledger: Ledger) -> list[str]:
    """Return the pipeline files that the runs in *ledger* read."""
    runs = ledger.read(Query(types=("run.started",)))
    named = {str(entry.event.payload.get("file", "")).partition("#")[0] for entry in runs}
    return [file for file in sorted(named) if file and not file.startswith("<")]


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
    # not drawn with equal chances: the column keeps dicast calibrate from taking them as if they were
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
@click.option("--labeller", metavar="NAME", help="Whose labels they are, where a line does not say.")
@click.option("--adjudicated", is_flag=True, help="They decide where labels of a subject differ.")
@any_output
@ledger_path
@as_json
def import_(
    file: Path, labeller: str | None, adjudicated: bool, any_output: bool, ledger: Path | None, as_json: bool
) -> None:
    """Take labels from FILE, JSON lines {subject_id, score | label} or CSV, into the ledger, where each subject has to have been read.

    A line may say which output it is about, by output_digest or run; where a task made the outputs it has to.
    """
    found = read_ledger(ledger, lambda live: read_import(live, file, any_output=any_output))
    if adjudicated:
        found = [(subject, attrs.evolve(label, others={**label.others, ADJUDICATED: True})) for subject, label in found]
    human = Human(labeller or getpass.getuser(), "imported")
    for one, own in _runs(found, human.labeller):
        record(ledger_component(ledger), Human(one, "imported"), own)
    if as_json:
        print_json(
            {"imported": len(found), "labellers": sorted({label.labeller or human.labeller for _, label in found})}
        )
    else:
        click.echo(f"{len(found)} labels imported; dicast calibrate FILE --gold ledger reads them")


def _runs(
    labels: Sequence[tuple[Subject, GoldLabel]], labeller: str
) -> Iterator[tuple[str, list[tuple[Subject, GoldLabel]]]]:
    """Yield the labels of each run that records them, with their labeller: a run has one verdict on a subject."""
    for name in sorted({label.labeller or labeller for _, label in labels}):
        rounds: list[dict[tuple[str, str], tuple[Subject, GoldLabel]]] = []
        for subject, label in labels:
            if (label.labeller or labeller) == name:
                key = subject.kind, subject.id
                free = next((one for one in rounds if key not in one), None)
                if free is None:
                    rounds.append(free := {})
                free[key] = subject, label
        yield from ((name, list(one.values())) for one in rounds)


@labels.command("agreement")
@ledger_path
@as_json
def agreement(ledger: Path | None, as_json: bool) -> None:
    """Say how far labellers agree: in pairs with Cohen's kappa, all together with Krippendorff's alpha, and on which subjects they differ."""
    found = read_ledger(ledger, lambda live: Labellers.of([one for _, one in given_labels(live)])).document()
    if as_json:
        print_json(found)
        return
    print_lines(_parts(found))


def _parts(found: dict[str, Any]) -> Iterator[str | TextTable]:
    said = ", ".join(f"{name} {n}" for name, n in found["labellers"].items()) or "none"
    yield f"labels: {said}"
    if found["alpha"] is not None:
        yield f"alpha {found['alpha']:.3f} (1 is agreement, 0 is chance)"
    if found["pairs"]:
        yield TextTable(
            ("labellers", "subjects", "agree", "kappa"),
            [
                [
                    f"{one['a']} and {one['b']}",
                    one["n"],
                    f"{one['agree']:.3f}",
                    None if one["kappa"] is None else f"{one['kappa']:.3f}",
                ]
                for one in found["pairs"]
            ],
            right=("agree", "kappa"),
        )
    yield from found["reasons"]
    if found["differ"]:
        yield f"{len(found['differ'])} subjects with labels that differ; dicast labels adjudicate decides between them:"
        yield from (
            f"  {one['subject_id']}: {', '.join(f'{who} {score:g}' for who, score in one['labels'].items())}"
            for one in found["differ"][:20]
        )


def _outputs_of(ledger: Ledger, keys: Sequence[OutputKey]) -> dict[OutputKey, Judged]:
    """Return the subjects as the runs judged them whose outputs the labels are about."""
    outputs = JudgedOutputs(ledger, {id for _, id, _ in keys})
    found: dict[OutputKey, Judged] = {}
    for key in keys:
        kind, id, digest = key
        runs = [
            run
            for run in outputs.runs(kind, id)
            if digest in (None, getattr(outputs.of(run, kind, id), "digest", None))
        ]
        known = read_subjects(ledger, runs[-1:]) if runs else {}
        if (kind, id) in known:
            found[key] = known[kind, id]
    return found


@labels.command("adjudicate")
@click.option("--labeller", metavar="NAME", help="Who decides; by default the user of this machine.")
@ledger_path
@as_json
def adjudicate(labeller: str | None, ledger: Path | None, as_json: bool) -> None:
    """Decide at the terminal between labels that differ: what was judged is shown with what each labeller has said."""
    differ = read_ledger(ledger, lambda live: Labellers.of([one for _, one in given_labels(live)])).differing()
    if not differ:
        click.echo("no labels differ", err=True)
        return
    if not sys.stdin.isatty():
        raise ConfigError(
            f"{len(differ)} subjects have labels that differ; deciding asks a person, and standard input is no terminal: call it at one, or import "
            "the decisions with dicast labels import FILE --adjudicated"
        )
    judged: dict[Any, Judged] = read_ledger(ledger, lambda live: _outputs_of(live, list(differ)))

    def shown(one: Judged) -> Iterator[str]:
        yield from read_ledger(ledger, lambda live: list(evidence(live, one).lines()))
        yield ""
        yield "  ".join(f"{who}: {score:g}" for who, score in scores[id(one)].items())

    scores = {id(one): differ[key] for key, one in judged.items()}
    digests = {id(one): key[2] for key, one in judged.items()}
    subjects = list(judged.values())
    human = Human(labeller or getpass.getuser(), "imported")
    decided = (
        (one.subject, attrs.evolve(said, output_digest=digests[id(one)], others={ADJUDICATED: True}))
        for one, said in Prompt(human.labeller, shown).labels(subjects)
    )
    record(ledger_component(ledger), human, decided)
    if as_json:
        print_json({"adjudicated": len(human.labels), "left": len(differ) - len(human.labels)})
    else:
        click.echo(f"{len(human.labels)} of {len(differ)} subjects decided")
