"""Text of ``dicast compare``: a sentence for each label, the changed subjects, and in full a table for each comparison."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from dicast import Results
from dicast.reporting import MAX_UNPAIRED
from dicast.toolkit.comparison_text import comparison_lines
from dicast.toolkit.printable import short_name
from dicast.toolkit.terminal import Line

from ..changes.faults import end_faults, pair_faults
from ..changes.label_changes import ANSWERS
from ..scores.table import Table
from ..text.sentences import ALPHA

Figures = Mapping[str, Any]

MAX_SHOWN = 20
"""Largest number of subjects listed for each direction, over all labels."""
MIN_SHOWN = 3
"""Number of subjects listed for each label and direction, however many labels there are."""
MAX_NAMED = 5
"""Largest number of subjects named in a line, without the full text."""
MAX_LABELS = 6
"""Largest number of lines of answers without the full text; a line may be about several labels."""
MAX_CHANGED = 2
"""Largest number of labels whose changed subjects are named, without the full text."""

_FLIPS = ("newly failing", "newly passing", "with equal outputs and judges pass in one run alone (the judge varies)")
"""Words for subjects whose pass has changed; the last words are for pairs that count as unchanged."""


def lines(
    a: Results, b: Results, document: Figures, *, is_full: bool = True, details: str = "", ledger: str = ""
) -> Iterator[Any]:
    """Yield the *document* as lines and tables for ``dicast.toolkit.terminal.print_lines``: the answers first.

    :param is_full: with the tables of the comparisons, and with the changed subjects under each label.
    :param details: the command that prints the full text; empty for none.
    :param ledger: the option that names the ledger, for other commands.
    """
    if document["sentences"]:
        answers = [*_join_labels(document["sentences"] if is_full else _short_answers(document))]
        shown = len(answers) if is_full or len(answers) <= MAX_LABELS + 1 else MAX_LABELS
        yield from map(Line, answers[:shown])
        if rest := len(answers) - shown:
            yield Line(f"+ {rest:,} more answers: {_count_answers(answers[shown:])}")
        yield from _tested_alone(document["answers"], is_full=is_full)
    else:
        yield from _without_label(a, b, ledger)
    flips = document["flips"] or ()
    if not is_full and document["sentences"]:
        yield from _named_flips(document["passes"], flips)
    yield f"A: {a.run_id} ({a.name})"
    yield f"B: {b.run_id} ({b.name})"
    differs = f"; they differ in {', '.join(document['differs'])}" if document["differs"] else ""
    yield Line(f"differences are B minus A, with 95 % intervals{differs}")
    if not document["comparable"]:
        yield Line(f"NOT COMPARABLE: {', '.join(document['faults'])}")
    yield from map(Line, end_faults(a, b, ("A", "B")))
    yield from _unpaired_lines(a, b, document["answers"], is_full=is_full)
    if weighted := document.get("unweighted"):
        yield Line(
            f"subjects of {' and '.join(weighted)} have weights; here each counts once, so the differences are about the sample"
        )
    if not is_full:
        if document["sentences"] and details:
            yield f"details: {details}"
        return
    for name, comparison in document["comparisons"].items():
        yield ""
        yield from comparison_lines(name, comparison)
        yield from _other_answers(comparison, document["answers"])
    yield ""
    yield from _pass_lines(document["passes"], flips)
    yield from _row_commands(a, b, flips, ledger)


def _short_answers(document: Figures) -> Iterator[str]:
    """Yield the sentence of each label with the numbers of passing subjects first, and the way to let one label decide."""
    for label, answer in document["answers"].items():
        start = f"{answer['answer']}: {answer['winner']} is ahead, " if answer["winner"] else f"{answer['answer']}: "
        figures = answer["words"].removeprefix(start)
        mean = "mean score " if figures.startswith(("+", "-", "between")) and answer.get("scale") != "raw" else ""
        yield f"{label}: {start}{_passing(document['passes'].get(label))}{mean}{figures}"


def _tested_alone(answers: Mapping[str, Figures], *, is_full: bool) -> Iterator[Line]:
    """Yield the rule of adjusted p-values for the full text, and the way to let one label decide if the adjustment changed an answer."""
    if is_full and len(answers) > 1:
        yield Line(
            "adjusted p: the gate's labels are tested alone; the others are adjusted together (by Holm, unless an option says otherwise)"
        )
    if adjusted := next((label for label, answer in answers.items() if _is_adjusted_away(answer)), None):
        clause = f"gate: {{on: {adjusted}, min_pass_rate: 0.8}}"
        yield Line(
            f"the label of the gate is tested alone: if {adjusted} decides, name it in the pipeline, such as {clause}"
        )


def _count_answers(lines: Iterable[str]) -> str:
    """Return the number of each answer in *lines*, ``LABEL: ANSWER: ...``."""
    counts = Counter(next((word for word in ANSWERS if f": {word}" in line), "other") for line in lines)
    return ", ".join(f"{count:,} {word}" for word, count in counts.items())


def _join_labels(lines: Iterable[str]) -> Iterator[str]:
    """Yield each of *lines*, ``LABEL: TEXT``, once for all labels with an equal text: ``metrics, correct: TEXT``. No label is left out."""
    labels: dict[str, list[str]] = {}
    for line in lines:
        label, _, text = line.partition(": ")
        labels.setdefault(text or line, []).append(label)
    yield from (text if names == [text] else f"{', '.join(names)}: {text}" for text, names in labels.items())


def _passing(counts: Figures | None) -> str:
    """Return the numbers of subjects that pass in both runs, among the subjects with an answer in both; empty if they are not known."""
    if counts is None or not counts["known"] or counts.get("reasons"):
        return ""
    before, after = (counts[side] + counts["both"] for side in ("a", "b"))
    return f"{before:,} to {after:,} of {counts['known']:,} pass; "


def _is_adjusted_away(answer: Figures) -> bool:
    """Return whether the label alone would have an answer, but not among all labels."""
    p_value, adjusted = answer["p_value"], answer["adjusted_p_value"]
    return p_value is not None and adjusted is not None and p_value < ALPHA <= adjusted


def _unpaired_lines(a: Results, b: Results, answers: Mapping[str, Figures], *, is_full: bool) -> Iterator[Line]:
    """Yield the labels that have too many scores in one run alone; in the full text with the causes, each once for all its labels."""
    labels = dict[str, list[str]]()
    for label, answer in answers.items():
        unpaired = answer["unpaired_a"], answer["unpaired_b"]
        for fault in pair_faults(answer["n"], unpaired, (a, b), label, ("A", "B")) if answer["n"] else ():
            labels.setdefault(fault, []).append(label)
    if labels and not is_full:
        places = dict.fromkeys(label for names in labels.values() for label in names)
        yield Line(
            f"more than {MAX_UNPAIRED:.0%} are scored in one run only: {_first_names([*places])} (causes: --full)"
        )
        return
    for fault, names in labels.items():
        yield Line(fault if len(names) == len(answers) else f"{_first_names(names)}: {fault}")


def _first_names(names: Sequence[str]) -> str:
    rest = f" and {len(names) - MAX_NAMED:,} more" if len(names) > MAX_NAMED else ""
    return f"{', '.join(names[:MAX_NAMED])}{rest}"


def _without_label(a: Results, b: Results, ledger: str) -> Iterator[str]:
    """Yield the labels of both runs, which share none, and the next step."""
    labels = {"A": sorted(Table.of(a).criteria), "B": sorted(Table.of(b).criteria)}
    sides = (f"{side} has {', '.join(names[:MAX_NAMED]) or 'no scores'}" for side, names in labels.items())
    yield f"no label is in both runs: {', '.join(sides)}"
    empty = next((run for run, names in zip((a, b), labels.values(), strict=True) if not names), None)
    if empty is None:
        yield "next: give equal metrics and judges the same label (as: LABEL), and run again"
    elif empty.started_at is not None:
        yield f"next: dicast show {empty.run_id}{ledger}"


def _other_answers(comparison: Figures, answers: Mapping[str, Figures]) -> Iterator[Line]:
    """Yield the labels for which a test that ignores pairs has another answer than the first lines, and the test that decides."""
    tests = {
        name: str(test.get("words")).partition(":")[0]
        for name, test in (comparison.get("criteria") or {}).items()
        if name in answers and isinstance(test, Mapping) and "n_baseline" in test
    }
    others = [name for name, word in tests.items() if word in ANSWERS and word != answers[name]["answer"]]
    if others:
        yield Line(
            f"  {', '.join(others)}: the answer of the first lines decides, because they compare each subject with itself. "
            "This test ignores the pairs; it is for runs over different subjects."
        )


def _named_flips(passes: Mapping[str, Figures], flips: Sequence[Figures]) -> Iterator[str]:
    """Yield the subjects that pass in one run alone, in a line for each kind of change and each of the first labels that have any; equal labels share their lines."""
    changes: dict[str, dict[str, list[str]]] = {}
    for flip in flips:
        kind = _flip_kind(flip)
        changes.setdefault(flip["label"], {}).setdefault(kind, []).append(short_name(flip["subject_id"]))
    groups: list[tuple[list[str], Mapping[str, Sequence[str]]]] = []
    for label in (label for label in passes if label in changes):
        equal = next((labels for labels, names in groups if names == changes[label]), None)
        if equal is None:
            groups.append(([label], changes[label]))
        else:
            equal.append(label)
    for labels, names in groups[:MAX_CHANGED]:
        for text in _FLIPS:
            if subjects := names.get(text, ()):
                note = f" and {len(subjects) - MAX_NAMED:,} more" if len(subjects) > MAX_NAMED else ""
                yield f"{', '.join(labels)}: {len(subjects):,} {text}: {', '.join(subjects[:MAX_NAMED])}{note}"
    if (rest := sum(len(labels) for labels, _ in groups[MAX_CHANGED:])) > 0:
        yield f"+ {rest:,} more label{'s' * (rest != 1)} with changed subjects"


def _flip_kind(flip: Figures) -> str:
    """Return the words for the change in *flip*."""
    return _FLIPS[2 if flip.get("unchanged") else flip["b"]]


def _pass_lines(passes: Mapping[str, Figures], flips: Sequence[Figures]) -> Iterator[str]:
    """Yield the counts of each label, and the first subjects that pass in one run alone."""
    if not passes:
        yield "no subject has a flag or a score in both runs: passes cannot be compared"
    max_listed = max(MIN_SHOWN, MAX_SHOWN // max(1, len(passes)))
    for label, counts in passes.items():
        if counts.get("reasons") == ["raw_scale"]:
            yield f"{label}: raw scale without pass_at: which subjects pass is not known"
            continue
        yield counts["words"]
        for side, gained in (("A", False), ("B", True)):
            changed = [change for change in flips if change["label"] == label and change["b"] is gained]
            yield from (f"  in {side} alone: {_flip(change)}" for change in changed[:max_listed])
            if len(changed) > max_listed:
                yield f"  … and {len(changed) - max_listed:,} more in {side} alone (--json lists them all)"


def _row_commands(a: Results, b: Results, flips: Sequence[Figures], ledger: str) -> Iterator[str]:
    """Yield the commands that show the first changed subject as each run judged it; none for a file of records."""
    if not flips:
        return
    for side, run in (("A", a), ("B", b)):
        if run.started_at is not None:
            words = ["dicast", "show", str(flips[0]["subject_id"]), "--run", run.run_id]
            yield f"in {side} ({run.name}): {shlex.join(words)}{ledger}"


def _flip(change: Figures) -> str:
    kind = "" if change["subject_kind"] == "row" else f"{change['subject_kind']} "
    return f"{kind}{change['subject_id']}  {_side(change, 'a')} -> {_side(change, 'b')}"


def _side(change: Figures, side: str) -> str:
    """Return the score of one run, else whether the subject passes."""
    score = change[f"score_{side}"]
    if score is not None:
        return f"{score:.4f}"
    return "passes" if change[side] else "fails"
