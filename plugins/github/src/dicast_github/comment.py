"""Text of a pull request's comment about a run: each label against the baseline, the newly failing rows, and the cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from dicast import DicastError, Ledger, read_ledger
from dicast.reading import reader, run_document
from dicast.reporting import ALL_METRICS, code, figure, money, run_answer, table
from dicast.toolkit.atomic_file import AtomicFile
from dicast.toolkit.files import MAX_DATA_BYTES, read_bytes

Document = Mapping[str, Any]

MARK = "<!-- dicast ci: {name} -->"
"""First line of a comment, by which a later run finds the comment and replaces it."""

MAX_NAMED = 10
"""Largest number of subjects named in a line."""

LIMIT = 65_000
"""Maximum size of a comment in characters; GitHub refuses more than 65,536."""


def write_comment(
    path: Path, name: str, documents: Sequence[Document], *, baseline: str | None, url: str | None
) -> None:
    """Write the comment on the runs in *documents* to the file at *path*.

    :param name: the pipeline file, which names the comment.
    :param baseline: the run to compare with; by default the baseline of the gate, else of the section ``baseline``.
    :param url: the address of the report, for links.
    :raises OSError: if the file cannot be written.
    """
    parts = [MARK.format(name=name.replace("--", "- -"))]
    for document in documents:
        parts += _run_parts(document, baseline, url)
    if not documents:
        parts.append(f"### dicast: {code(name)}\n\nNothing was judged; the job's log has the reason.")
    text = "\n\n".join(parts) + "\n"
    if len(text) > LIMIT:
        text = f"{text[:LIMIT]}\n\nThe comment is too long and was cut here.\n"
    with AtomicFile(path) as file:
        file.write(text.encode("utf-8", "backslashreplace"))
        file.commit()


def _run_parts(done: Document, baseline: str | None, url: str | None) -> Iterator[str]:
    """Yield the parts of the comment on the run of the document *done*."""
    yield f"### dicast: {code(done['name'])}: {run_answer(done)}"
    gate = done["gate"]
    if reasons := done["undecided"] if gate is None else gate["reasons"]:
        yield "\n".join(f"- {code(reason)}" for reason in reasons)
    name = baseline or _baseline(done)
    ledger = (done.get("ledger") or {}).get("path")
    compared: Document | None = None
    note = "no baseline: add `baseline` to the gate to compare with one"
    if name is not None and ledger is not None:
        compared, note = _compare(Path(ledger), name, str(done["run_id"]))
    labels = {**done["labels"], **done["metrics"]}
    yield "\n".join(_label_table(labels, {} if compared is None else compared["answers"]))
    if compared is None:
        yield note
    yield from _rows(done, compared, url)
    yield _cost(done, Path(ledger) if ledger else None, compared)


def _baseline(done: Document) -> str | None:
    """Return the id of the run that the gate, or the section ``baseline``, compares with."""
    ids = [run_id for run_id in ((done["gate"] or {}).get("baselines") or {}).values() if run_id is not None]
    return next(iter(ids), None) or (done["baseline"] or {}).get("run_id")


def _compare(ledger: Path, baseline: str, run_id: str) -> tuple[Document | None, str]:
    """Return the document of ``dicast compare``; None with the reason if the runs cannot be compared."""
    try:
        compare = reader("compare")
        return read_ledger(ledger, lambda live: compare(live, a=baseline, b=run_id, compare=("stats/paired",))), ""
    except DicastError as error:
        return None, f"Not compared with {code(baseline)}: {code(str(error), 1_000)}"


def _label_table(labels: Mapping[str, Document], answers: Mapping[str, Document]) -> Iterator[str]:
    heads = ("label", "against the baseline", "change", "95 % interval", "pairs", "mean", "pass rate")
    is_shadowed = bool(answers) and ALL_METRICS not in answers  # the only metric has the same scores under its name
    names = [label for label in labels if not (is_shadowed and label == ALL_METRICS)]
    rows = [_label_row(label, labels[label], answers.get(label)) for label in names]
    return table(heads, rows, right=("change", "pairs", "mean", "pass rate"))


def _label_row(label: str, figures: Document, answer: Document | None) -> tuple[str, ...]:
    means = figure(figures.get("mean")), figure(figures["pass_rate"]) if figures.get("pass_rate") is not None else ""
    if answer is None:
        return code(label), "", "", "", "", *means
    note = "" if answer["more"] is None else f" ({answer['more']:,} more rows would tell)"
    low, high = answer["ci_low"], answer["ci_high"]
    interval = "" if low is None or high is None else f"{low:+.4f} to {high:+.4f}"
    change = "" if answer["mean_difference"] is None else f"{answer['mean_difference']:+.4f}"
    return code(label), f"**{answer['answer']}**{note}", change, interval, f"{answer['n']:,}", *means


def _rows(done: Document, compared: Document | None, url: str | None) -> Iterator[str]:
    """Yield the newly failing and newly passing rows of each label, and the number of failed judgments."""
    lines = []
    flips = [] if compared is None else compared["flips"] or []
    for label in dict.fromkeys(flip["label"] for flip in flips):
        for text, passes in (("newly failing", False), ("newly passing", True)):
            ids = [flip["subject_id"] for flip in flips if flip["label"] == label and flip["b"] is passes]
            if ids:
                note = f" and {len(ids) - MAX_NAMED:,} more" if len(ids) > MAX_NAMED else ""
                names = ", ".join(code(name, 60) for name in ids[:MAX_NAMED])
                lines.append(f"- {code(label)}: {len(ids):,} {text}: {names}{note}")
    if done["failed"]:
        kinds = ", ".join(f"{count:,} {code(kind)}" for kind, count in done["failures"].items())
        lines.append(f"- {done['failed']:,} failed: {kinds}")
    if url is not None:
        lines.append(f"- [report]({url})")
    if lines:
        yield "\n".join(lines)


def _cost(done: Document, ledger: Path | None, compared: Document | None) -> str:
    """Return the cost of the run, next to the cost of the baseline."""
    text = f"{done['scored']:,} scored, spent {money(done['cost'])}"
    if ledger is None or compared is None:
        return f"{text}; run {code(done['run_id'])}"
    baseline_id = compared["a"]["run_id"]

    def read(live: Ledger) -> Document | None:
        return run_document(live, baseline_id)

    before = read_ledger(ledger, read)
    spent = "" if before is None else f" (baseline: {money(before['cost'])})"
    return f"{text}{spent}; run {code(done['run_id'])} against {code(compared['a']['name'])}, run {code(baseline_id)}"


def read_documents(path: Path) -> list[Document]:
    """Return the documents that the sink ``github/documents`` wrote to the file at *path*; empty without the file."""
    return [orjson.loads(line) for line in read_bytes(path, MAX_DATA_BYTES).splitlines()] if path.is_file() else []
