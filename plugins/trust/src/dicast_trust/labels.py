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

from dicast import (
    AtomicFile,
    ConfigError,
    GoldLabel,
    InputCheck,
    InputFile,
    Subject,
    TextTable,
    gold_labels,
    nearest,
    print_lines,
    read_ledger,
)
from dicast.commands import as_json, ledger_path, print_json

from .choosing import evidence, read_subjects
from .gold import ADJUDICATED, DRAWN, RANDOMLY, WEIGHT, decides, given_labels
from .human import Human, record
from .label import ledger_component
from .labellers import Labellers
from .prompt import Prompt

_COLUMNS = ("subject_id", "subject_kind", "score", "labeller", "session_id", "drawn", ADJUDICATED)


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
    found = read_ledger(ledger, lambda live: [_line(*one) for one in given_labels(live)])
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


def _line(event: Any, label: GoldLabel) -> dict[str, Any]:
    drawn = event.payload.get(DRAWN)
    line = {
        "subject_id": label.subject_id,
        "subject_kind": label.kind,
        "score": label.score,
        "labeller": label.labeller,
    }
    line |= {"session_id": label.session_id, DRAWN: drawn, ADJUDICATED: decides(label)}
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
@ledger_path
@as_json
def import_(file: Path, labeller: str | None, adjudicated: bool, ledger: Path | None, as_json: bool) -> None:
    """Take labels from FILE, JSON lines {subject_id, score | label} or CSV, into the ledger, where each subject has to have been read."""
    known: dict[tuple[str, str], Subject] = read_ledger(ledger, read_subjects)
    found = _read(file, known)
    if adjudicated:
        found = [(subject, attrs.evolve(label, others={**label.others, ADJUDICATED: True})) for subject, label in found]
    human = Human(labeller or getpass.getuser(), "imported")
    for one in sorted({label.labeller or human.labeller for _, label in found}):  # a run has one verdict on a subject
        own = [(subject, label) for subject, label in found if (label.labeller or human.labeller) == one]
        record(ledger_component(ledger), Human(one, "imported"), own)
    if as_json:
        print_json(
            {"imported": len(found), "labellers": sorted({label.labeller or human.labeller for _, label in found})}
        )
    else:
        click.echo(f"{len(found)} labels imported; dicast calibrate FILE --gold ledger reads them")


def _read(path: Path, known: dict[tuple[str, str], Subject]) -> list[tuple[Subject, GoldLabel]]:
    """The labels in the file, each with its subject.

    :raises DataError: naming every bad line, and every subject that the ledger has not read.
    """
    by_id: dict[str, list[Subject]] = {}
    for subject in known.values():
        by_id.setdefault(subject.id, []).append(subject)
    found = []
    with InputFile.opened(path) as file, InputCheck(file) as check:
        count = 0
        for number, label in gold_labels(file, check):
            count += 1
            fitting = [subject for subject in by_id.get(label.subject_id, ()) if label.kind in ("", subject.kind)]
            check.add_id(label.subject_id, number, f"label of {label.labeller or 'nobody named'} on")
            if not fitting:
                near = nearest(label.subject_id, by_id)
                file.fault(
                    f"the ledger has read no subject {label.subject_id!r}{f', but {near!r}' if near else ''}; run the file over it first",
                    number,
                    check,
                )
            found += [(subject, _drawn(label)) for subject in fitting]
        check.finish(count)
    return found


def _drawn(label: GoldLabel) -> GoldLabel:
    """*label*, which says that it was weighted where a weight is all that tells: it was not drawn with equal chances."""
    is_weighted = WEIGHT in label.others and not label.others.get(DRAWN)
    return attrs.evolve(label, others={**label.others, DRAWN: "weighted"}) if is_weighted else label


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
    known: dict[tuple[str, str], Subject] = read_ledger(ledger, read_subjects)
    subjects = [known[key] for key in differ if key in known]

    def shown(subject: Subject) -> Iterator[str]:
        yield from read_ledger(ledger, lambda live: list(evidence(live, subject).lines()))
        yield ""
        yield "  ".join(f"{who}: {score:g}" for who, score in differ[subject.kind, subject.id].items())

    human = Human(labeller or getpass.getuser(), "imported")
    decided = (
        (one, attrs.evolve(said, others={ADJUDICATED: True}))
        for one, said in Prompt(human.labeller, shown).labels(subjects)
    )
    record(ledger_component(ledger), human, decided)
    if as_json:
        print_json({"adjudicated": len(human.labels), "left": len(differ) - len(human.labels)})
    else:
        click.echo(f"{len(human.labels)} of {len(differ)} subjects decided")
