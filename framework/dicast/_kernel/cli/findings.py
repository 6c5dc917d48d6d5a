"""Lines of a run's summary about its aggregates and its baseline."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ...toolkit.comparison_text import comparison_lines
from ...toolkit.terminal import Drawing
from .trees import tree

Document = Mapping[str, Any]


def findings_lines(done: Document) -> Iterator[str | Drawing]:
    """Yield the aggregates of the records and their comparison with the baseline."""
    for name, result in aggregates(done).items():
        yield from tree(name, result)
    yield from baseline_lines(done)
    if done["baseline"] is not None and done["comparison"] is not None:
        yield from sentences(done["comparison"])
        passes = done["baseline"].get("passes", {})  # documents of older versions have none
        yield from (counts["words"] for counts in passes.values())
        yield from _comparisons(done["comparison"])
    yield from (f"BROKEN: {message}" for message in done["broken"].values())


def aggregates(done: Document) -> dict[str, Any]:
    """Return the aggregates without the failures of their rows, which the summary lists anyway."""
    return {
        name: result and {key: value for key, value in result.items() if key != "failures" or not _is_of_rows(value)}
        for name, result in done["aggregates"].items()
    }


def baseline_lines(done: Document, run_name: Callable[[str], str] = str) -> Iterator[str]:
    """Yield the baseline of the run, and the differences that make a comparison with it doubtful.

    :param run_name: returns the text for a run's id.
    """
    baseline = done["baseline"]
    if baseline is not None and baseline["run_id"] is None:
        yield f"not compared: {done['name']} has no earlier completed run (baseline: {baseline['run']})"
    elif baseline is not None and done["comparison"] is not None:
        run = f"{run_name(baseline['run_id'])} ({baseline['name']})"
        yield f"compared with run {run}, A; differences are B (this run) minus A"
        older = [section for section in baseline["differs"] if section != "task"]  # of a document without faults
        faults = ", ".join(baseline.get("faults", older))
        if faults == "fingerprints":
            yield "  unknown whether the runs are comparable: a file of records does not state how it was made"
        elif faults:
            yield f"  NOT COMPARABLE: the runs differ in {faults}"


def _comparisons(comparisons: Document) -> Iterator[str | Drawing]:
    """Yield each comparison as ``dicast compare --full`` prints it."""
    for label, comparison in comparisons.items():
        is_by_criterion = isinstance(comparison, Mapping) and isinstance(comparison.get("criteria"), Mapping)
        yield from comparison_lines(label, comparison) if is_by_criterion else tree(label, comparison)


def sentences(comparisons: Document) -> Iterator[str]:
    """Yield the sentences of all *comparisons*, each sentence once."""
    with_words = [comparison for comparison in comparisons.values() if comparison and comparison.get("words")]
    yield from dict.fromkeys(
        str(words) for comparison in with_words for words in comparison.get("sentences") or [comparison["words"]]
    )


def _is_of_rows(failures: object) -> bool:
    """Return True if *failures* lists the rows without a record, which the run adds to the result of an aggregate."""
    row = {"subject_kind", "subject_id", "failure_mode"}
    return isinstance(failures, list | tuple) and all(
        isinstance(failure, Mapping) and failure.keys() == row for failure in failures
    )
