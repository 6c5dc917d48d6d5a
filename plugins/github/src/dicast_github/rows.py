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


def row_parts(done: Document, compared: Document | None, url: str | None) -> Iterator[str]:
    """Yield the newly failing and newly passing rows of each label, and the failed rows."""
    lines = []
    flips = [] if compared is None else compared["flips"] or []
    passes = {} if compared is None else compared["passes"]
    changed = {flip["label"] for flip in flips}
    named = {*[label for label in passes if label in changed][:MAX_LABELS]}
    for label, counts in passes.items():
        if counts.get("reasons"):
            continue
        label_flips = [flip for flip in flips if flip["label"] == label]
        newly, same_pairs = (
            [flip for flip in label_flips if bool(flip.get("unchanged")) is is_equal] for is_equal in (False, True)
        )
        failing, passing = ([flip for flip in newly if flip["b"] is gained] for gained in (False, True))
        failed = counts["neither"] + counts["a"]
        if failed:
            names = _names(failing, url, is_named=label in named)
            note = "" if any(not flip["b"] for flip in same_pairs) else ", as in the baseline"
            names = f", {len(failing):,} newly failing{names}" if failing else note
            lines.append(f"- {code(label)}: {failed:,} not passed{names}")
        if passing:
            lines.append(
                f"- {code(label)}: {len(passing):,} newly passing{_names(passing, url, is_named=label in named)}"
            )
        lines += _varied_lines(label, same_pairs, compared, url)
    lines += _failures(done, url)
    if url is not None:
        lines.append(f"- [report]({_link(url)})")
    if lines:
        yield "\n".join(lines)


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
        shown = [failure for failure in same_kind if (failure.get("origin") == "task") is (origin == "task")]
        subjects = {(failure["subject_kind"], failure["subject_id"]): failure for failure in shown}
        names = _names([*subjects.values()], url, is_named=bool(subjects), total=count)
        fault = next((fault for failure in shown if (fault := call_fault(failure.get("error_message") or ""))), None)
        words = "" if failure_words(kind) == kind else f" ({failure_words(kind, origin and 'record')})"
        cause = f"; the first: {code(fault, 500)}" if fault else ""
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
