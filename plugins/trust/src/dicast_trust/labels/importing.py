"""Labels in a file, matched with the subjects and outputs in the ledger."""

from __future__ import annotations

from pathlib import Path

import attrs

from dicast import DataError, Ledger, Problem, Subject, known_run, nearest
from dicast.reading import JudgedOutputs
from dicast.toolkit.gold import GoldLabel, gold_labels
from dicast.toolkit.input_file import InputCheck, InputFile

from .choosing import Judged, read_subjects
from .gold import DRAWN, WEIGHT


def read_import(ledger: Ledger, path: Path, *, any_output: bool) -> list[tuple[Subject, GoldLabel]]:
    """Return the labels in the file, each with its subject, whose output is the labeled output.

    :param any_output: accept labels without an output, also for outputs of a task.
    :raises DataError: with every bad line, and every subject or output that is not in the ledger.
    """
    subjects = read_subjects(ledger)
    by_id: dict[str, list[Judged]] = {}
    for judged in subjects.values():
        by_id.setdefault(judged.subject.id, []).append(judged)
    rows: list[tuple[Subject, GoldLabel]] = []
    with InputFile.opened(path) as file, InputCheck(file) as check:
        labels = list(gold_labels(file, check))
        finder = _OutputFinder(ledger, JudgedOutputs(ledger, {label.subject_id for _, label in labels}), any_output)
        for number, label in labels:
            candidates = [
                candidate for candidate in by_id.get(label.subject_id, ()) if label.kind in ("", candidate.subject.kind)
            ]
            output = label.output_digest or label.run
            name = label.subject_id if output is None else f"{label.subject_id} (output {output[:12]})"
            check.add_id(name, number, f"label of {label.labeller or 'nobody named'} on")
            if not candidates:
                suggestion = nearest(label.subject_id, by_id)
                hint = f", did you mean {suggestion!r}?" if suggestion else ""
                file.fault(
                    f"no run in the ledger has read a subject {label.subject_id!r}{hint}; label subjects that a run has read",
                    number,
                    check,
                )
            for judged in candidates:
                try:
                    rows.append(finder.resolve(judged, _drawn(label)))
                except DataError as error:
                    file.fault(error, number, check)
        check.finish(len(labels))
    return rows


@attrs.frozen
class _OutputFinder:
    """Finder of the output that a label is about."""

    ledger: Ledger
    outputs: JudgedOutputs
    any_output: bool

    def resolve(self, judged: Judged, label: GoldLabel) -> tuple[Subject, GoldLabel]:
        """Return the subject with the output that *label* is about, and the label with its digest.

        :raises DataError: if no run judged the output of the label, or the label names no output and a task made the output.
        """
        subject = judged.subject
        outputs = {
            run: output
            for run in self.outputs.runs(subject.kind, subject.id)
            if (output := self.outputs.of(run, subject.kind, subject.id)) is not None
        }
        if label.run is not None:
            run = known_run(self.ledger, label.run)
            if run not in outputs:
                raise DataError(
                    Problem(
                        f"run {run} has not judged {subject.id!r}; choose one of the runs {', '.join(outputs)}",
                        path="run",
                        value=label.run,
                    )
                )
            digest = outputs[run].digest
        elif label.output_digest is None:
            if outputs[judged.run_id].is_made and not self.any_output:
                message = "a task made the output, and the label does not name an output: add output_digest or run, or --any-output"
                raise DataError(Problem(message, path="output_digest"))
            return subject, label
        else:
            digest = label.output_digest
        labeled = next((output for output in outputs.values() if output.digest == digest and digest is not None), None)
        if labeled is None and label.output_digest is not None:
            raise DataError(
                Problem(
                    f"no run has judged this output of {subject.id!r}; dicast show {subject.id} --all --json lists the digests of judged outputs",
                    path="output_digest",
                    value=digest,
                )
            )
        subject = subject if labeled is None else attrs.evolve(subject, output=labeled.value)
        return subject, attrs.evolve(label, output_digest=digest, run=None)


def _drawn(label: GoldLabel) -> GoldLabel:
    """Return *label*; a weight without ``drawn`` sets ``drawn`` to ``weighted``, because the label was not drawn with equal chances."""
    is_weighted = WEIGHT in label.others and not label.others.get(DRAWN)
    return attrs.evolve(label, others={**label.others, DRAWN: "weighted"}) if is_weighted else label
