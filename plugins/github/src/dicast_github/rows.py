"""Rows in a comment: the newly failing and newly passing rows of each label, and the failed rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from dicast.reporting import code, failure_numbers, failure_words

from .reasons import call_fault

Document = Mapping[str, Any]

MAX_NAMED = 10
"""Largest number of subjects named in a line."""

MAX_LABELS = 6
"""Largest number of labels whose subjects are named; of the others the comment has the numbers."""


def row_parts(
    done: Document, labels: Mapping[str, Document], compared: Document | None, url: str | None
) -> Iterator[str]:
    """Yield the rows that did not pass, the newly failing and the newly passing rows of each label, and the failed rows.

    :param labels: the figures of the labels in the run of the document *done*.
    :param compared: the document of the comparison with a baseline; None without one.
    :param url: the address of the report, for links.
    """
    lines = []
    flips = [] if compared is None else compared["flips"] or []
    answers = {} if compared is None else compared["answers"]
    passes = {} if compared is None else compared["passes"]
    passes = {label: counts for label, counts in passes.items() if not (answers.get(label) or {}).get("faults")}
    changed = [label for label in passes if any(flip["label"] == label for flip in flips)]
    failing = [label for label in labels if _missed(labels[label])]
    named = {*[*dict.fromkeys([*changed, *failing])][:MAX_LABELS]}
    for label in dict.fromkeys([*passes, *failing]):
        counts = passes.get(label, {})
        label_flips = [] if counts.get("reasons") else [flip for flip in flips if flip["label"] == label]
        newly, same_pairs = (
            [flip for flip in label_flips if bool(flip.get("unchanged")) is is_equal] for is_equal in (False, True)
        )
        lost, gained = ([flip for flip in newly if flip["b"] is passes_now] for passes_now in (False, True))
        is_named = label in named
        if missed := _missed(labels.get(label, {})):
            rows = (done.get("not_passed") or {}).get(label, ())
            lines.append(f"- {code(label)}: {_missed_text(missed, counts, lost, rows, url, is_named=is_named)}")
        if gained:
            lines.append(f"- {code(label)}: {len(gained):,} newly passing{_names(gained, url, is_named=is_named)}")
        lines += _varied_lines(label, same_pairs, compared, url)
    lines += _failures(done, url)
    if url is not None:
        lines.append(f"- [report]({_link(url)})")
    if lines:
        yield "\n".join(lines)


def _missed(figures: Document) -> int:
    """Return the number of subjects that have a verdict and did not pass, among the *figures* of a label."""
    passes = figures.get("passes") or {}
    return int(passes["n"] - passes["passed"]) if passes else 0


def _missed_text(
    missed: int,
    counts: Document,
    lost: Sequence[Document],
    rows: Sequence[Document],
    url: str | None,
    *,
    is_named: bool,
) -> str:
    """Return the number of rows that did not pass, the number of them that have a partner in the baseline, and the first names.

    :param counts: the numbers of pairs by their passes; empty without a comparison.
    :param lost: the pairs that pass in the baseline alone.
    :param rows: the first rows that did not pass.
    """
    names = _names(rows, url, is_named=is_named and bool(rows), total=missed)
    if not counts or counts.get("reasons"):
        return f"{missed:,} not passed{names}"
    paired = counts["neither"] + counts["a"]
    new = f", {missed - paired:,} of them without a partner in the baseline" if missed > paired else ""
    if lost:
        return f"{missed:,} not passed{new}, {len(lost):,} newly failing{_names(lost, url, is_named=is_named)}"
    if counts["neither"] and not counts["a"]:
        new += f"; {f'the other {paired:,}' if new else 'they'} did not pass in the baseline either"
    return f"{missed:,} not passed{new}{names}"


def _varied_lines(
    label: str, same_pairs: Sequence[Document], compared: Document | None, url: str | None
) -> Iterator[str]:
    """Yield a line on the pairs of *label* that count as unchanged although their scores differ; *same_pairs* are the pairs that pass in one run alone."""
    answer = {} if compared is None else compared["answers"].get(label) or {}
    if varied := answer.get("varied"):
        text = f"{varied:,} of {answer['n']:,} pairs have equal outputs and judges and count as unchanged, although their scores differ: the judge varies"
        sides = ((False, "do not pass in this run alone"), (True, "pass in this run alone"))
        for passes, words in sides:
            if rows := [flip for flip in same_pairs if flip["b"] is passes]:
                text += f"; {len(rows):,} of them {words}{_names(rows, url, is_named=True)}"
        yield f"- {code(label)}: {text}"


def _failures(done: Document, url: str | None) -> Iterator[str]:
    """Yield a line for each kind of failure, with the first failed rows."""
    for kind, origin, count in failure_numbers(done):
        same_kind = [failure for failure in done["failed_subjects"] if failure["failure_mode"] == kind]
        failures = [failure for failure in same_kind if (failure.get("origin") == "task") is (origin == "task")]
        subjects = {(failure["subject_kind"], failure["subject_id"]): failure for failure in failures}
        names = _names([*subjects.values()], url, is_named=bool(subjects), total=count)
        fault = next((fault for failure in failures if (fault := call_fault(failure.get("error_message") or ""))), None)
        words = "" if failure_words(kind) == kind else f" ({failure_words(kind, origin and 'record')})"
        cause = f"; the first: {code(fault, 500)}" if fault else ""
        if kind == "timeout" and fault and any(amount not in ("0", None) for amount in done["cost"].values()):
            cause += "; a call without a reply is counted with the most that it may cost"
        yield f"- {count:,} failed: {code(kind)}{' of the task' * (origin == 'task')}{words}{names}{cause}"


def _names(flips: Sequence[Document], url: str | None, *, is_named: bool, total: int | None = None) -> str:
    """Return a colon and the names of the first subjects in *flips*, of *total* subjects; empty unless *is_named*.

    With a *url* the names are links to the rows in the report.
    """
    names = []
    if not is_named:
        return ""
    for flip in flips[:MAX_NAMED]:
        name = code(flip["subject_id"], 60)
        row = quote(f"{flip['subject_kind']}/{flip['subject_id']}", safe="")
        names.append(name if url is None else f"[{name}]({_link(url)}#row={row})")
    rest = (len(flips) if total is None else total) - len(names)
    return ": " + ", ".join(names) + (f" and {rest:,} more" if rest > 0 else "")


def _link(url: str) -> str:
    """Return *url* without characters that end a link in Markdown."""
    return quote(url, safe="/:?&=%#@+,;~!$'*")
