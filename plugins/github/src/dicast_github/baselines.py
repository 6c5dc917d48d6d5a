"""Baselines of a comment: the runs that a run is compared with, and the comparison with each."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import attrs

from dicast import ConfigError, DicastError, Ledger, Problem, RunContext, read_ledger, results
from dicast.reading import reader
from dicast.reporting import code, gate_reasons

from .reasons import open_labels

Document = Mapping[str, Any]

_COMMANDS = re.compile(r"; (?:causes|to judge them again): dicast [^;]*?(?=;|\)(?:[;,]|$))", re.MULTILINE)
"""Commands in a reason; the comment's next step has the command that judges the failed subjects again."""


def find_baselines(done: Document) -> list[tuple[str, list[str]]]:
    """Return the runs that the gate, and the section ``baseline``, compare with: the name of each, with its id and the file that has it."""
    section = done["baseline"] or {}
    name = section.get("name") if section.get("run") == section.get("run_id") else section.get("run")
    runs = [*((done["gate"] or {}).get("baselines") or {}).items(), (name, section.get("run_id"))]
    baselines: dict[str, tuple[str, list[str]]] = {}
    for name, run_id in runs:
        if run_id is not None:
            file = Path(done["base"], name)
            baselines.setdefault(run_id, (str(name), [str(run_id), *([str(file)] if file.is_file() else [])]))
    return [*baselines.values()]


def places_of(name: str, base: Path) -> list[str]:
    """Return the places of the run *name*: the ledger or the current folder, then a file in *base*, the pipeline's folder."""
    return [name, *([str(base / name)] if (base / name).is_file() else [])]


def refuse_unknown_run(name: str, run: RunContext) -> None:
    """Raise an error if *name* is no run, baseline or file to compare the *run* with. ``last`` and runs of its own suite may come later.

    :raises ConfigError: if there is none, with near names.
    :raises DataError: if the file is invalid.
    """
    suite, slash, _ = run.name.rpartition("/")
    if name == "last" or (slash and name.startswith(f"{suite}/")):
        return
    try:
        results(cast("Ledger", run), name)  # only reads
    except ConfigError as error:
        file = run.base / name
        if file.is_file():
            results(None, str(file))
            return
        folder = os.path.relpath(run.base)
        place = "" if folder == "." else f"the pipeline's folder {folder} has no file {name!r}, and "
        raise ConfigError(Problem(f"{place}{error}", file="--against", value=name)) from error


@attrs.frozen
class BaselinePair:
    """The run of the comment and a baseline, which has the *name*.

    :param places: the run's id, and the file that has the run.
    :param document: the document of ``dicast compare``; None if the runs are not compared.
    :param refusal: the reason why the runs are not compared.
    """

    name: str
    places: Sequence[str]
    document: Document | None
    refusal: str = ""

    @classmethod
    def of(cls, ledger: Path, name: str, places: Sequence[str], run_id: str) -> BaselinePair:
        """Return the comparison with the first of *places* that the ledger can read."""
        refusal = ""
        for place in places:
            try:
                document = _compare(ledger, place, run_id)
            except DicastError as error:
                refusal = str(error).removeprefix(f"{place}: ")
                if f"run {run_id} is not completed" in refusal:
                    refusal = "the run was not completed"  # the ledger of a job is gone after the job
                continue
            is_partial = any(not answer.get("faults") for answer in document["answers"].values())
            if document["comparable"] or is_partial:
                return cls(name, places, document)
            refusal = f"the runs differ in {', '.join(document['faults'])}; judge the baseline again, in the same way"
        return cls(name, places, None, refusal)

    @property
    def answers(self) -> Mapping[str, Document]:
        """The answers of the labels."""
        return {} if self.document is None else self.document["answers"]

    def notes(self, figures: Mapping[str, Document], done: Document) -> Iterator[str]:
        """Yield the reasons why labels are not compared, as lines of a list, without the reasons of the gate in the document *done*.

        :param figures: the figures of the labels in the table.
        """
        reasons = [reason for reason in gate_reasons(done) if f"compared with {self.name} " in reason]
        text = _COMMANDS.sub("", "\n".join(reasons))
        if self.document is None:
            if self.refusal not in text:
                yield f"- Not compared with {code(self.name)}: {code(self.refusal, 1_000)}"
            elif others := figures.keys() - open_labels(done):
                yield f"- Not compared {', '.join(map(code, sorted(others)))}: for the same reason"
            return
        labels: dict[str, list[str]] = {}
        for label in figures.keys() - self.answers.keys():
            side = "the run" if figures[label].get("mean") is None else "the baseline"
            labels.setdefault(f"{side} has no score of the label", []).append(label)
        for label, answer in self.answers.items():
            for fault in answer.get("faults", ()):
                labels.setdefault(_COMMANDS.sub("", fault), []).append(label)
        yield from _unpaired_lines(self.answers)
        causes: dict[str, set[str]] = {}
        for fault, names in labels.items():
            cause = "for the same reason" if fault in text else code(fault, 1_000)
            causes.setdefault(cause, set()).update({*names} - (open_labels(done) if fault in text else set()))
        for cause, remainder in causes.items():
            scope = "" if len(remainder) == len(figures) else f" {', '.join(map(code, sorted(remainder)))}"
            yield from [f"- Not compared{scope}: {cause}"] * bool(remainder)


def _unpaired_lines(answers: Mapping[str, Document]) -> Iterator[str]:
    """Yield a line for labels with rows of one run alone, which are left out of the change."""
    labels: dict[tuple[int, int], list[str]] = {}
    for label, answer in answers.items():
        if answer.get("faults"):
            continue  # the label has no change
        labels.setdefault((answer["unpaired_a"], answer["unpaired_b"]), []).append(code(label))
    for (before, after), names in labels.items():
        sides = [(before, "the baseline"), (after, "this run")]
        text = " and ".join(f"{count:,} row{'s' * (count != 1)} of {side}" for count, side in sides if count)
        yield from [
            f"- {', '.join(names)}: without a partner in the other run, and left out of the change: {text}"
        ] * bool(text)


def _compare(ledger: Path, name: str, run_id: str) -> Document:
    compare = reader("compare")
    options = {"compare": ("stats/paired",), "allow_incomparable": True}
    return read_ledger(ledger, lambda live: compare(live, a=name, b=run_id, **options))
