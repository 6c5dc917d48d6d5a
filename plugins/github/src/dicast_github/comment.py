"""Text of a pull request's comment about a run: each label against the baseline, the newly failing rows, and the cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import orjson

from dicast import DicastError, Problem, read_ledger
from dicast.reading import reader, run_document
from dicast.reporting import ALL_METRICS, code, figure, money, run_answer, table
from dicast.toolkit.atomic_file import AtomicFile
from dicast.toolkit.files import MAX_DATA_BYTES, read_bytes

Document = Mapping[str, Any]

MARK = "<!-- dicast ci: {name} -->"
"""First line of a comment, by which a later run finds the comment and replaces it."""

BEGINS = MARK.partition("{")[0].encode()
"""First bytes of a comment: no other file is replaced by it."""

MAX_NAMED = 10
"""Largest number of subjects named in a line."""

MAX_LABELS = 6
"""Largest number of labels whose subjects are named; of the others the comment has the numbers."""

LIMIT = 65_000
"""Maximum size of a comment in characters; GitHub refuses more than 65,536."""


def write_comment(
    path: Path,
    name: str,
    documents: Sequence[Document],
    *,
    baseline: str | None,
    url: str | None,
    problems: Sequence[Problem] = (),
) -> None:
    """Write the comment on the runs in *documents* to the file at *path*.

    :param name: the pipeline file, which names the comment.
    :param baseline: the run to compare with; by default the baseline of the gate, else of the section ``baseline``.
    :param url: the address of the report, for links.
    :param problems: the reasons why the pipeline was refused.
    :raises OSError: if the file cannot be written.
    :raises ConfigError: if the file has other content than a comment.
    """
    parts = [MARK.format(name=name.replace("--", "- -"))]
    for document in documents:
        parts += _run_parts(document, baseline, url)
    if not documents:
        parts.append(f"### dicast: {code(name)}: not run")
        parts.append("\n".join(f"- {code(str(problem), 1_000)}" for problem in problems[:MAX_NAMED]))
        parts.append("Nothing was judged. The job's log has all reasons.")
    text = "\n\n".join(parts) + "\n"
    if len(text) > LIMIT:
        text = f"{text[:LIMIT]}\n\nThe comment is too long and was cut here.\n"
    with AtomicFile(path, replaces=BEGINS) as file:
        file.write(text.encode("utf-8", "backslashreplace"))
        file.commit()


def _run_parts(done: Document, baseline: str | None, url: str | None) -> Iterator[str]:
    """Yield the parts of the comment on the run of the document *done*."""
    yield f"### dicast: {code(done['name'])}: {run_answer(done)}"
    gate = done["gate"]
    if reasons := done["undecided"] if gate is None else gate["reasons"]:
        yield "\n".join(f"- {code(reason)}" for reason in reasons)
    names = [baseline] if baseline else _baselines(done)
    ledger = (done.get("ledger") or {}).get("path")
    compared: Document | None = None
    note = _missing_baseline(done)
    if names and ledger is not None:
        compared, note = _compare(Path(ledger), names, str(done["run_id"]))
    labels = {**done["labels"], **done["metrics"]}
    yield "\n".join(_label_table(labels, {} if compared is None else compared["answers"]))
    if compared is None:
        yield note
    yield from _rows(done, compared, url)
    yield _cost(done, Path(ledger) if ledger else None, compared, names)


def _missing_baseline(done: Document) -> str:
    """Return the reason why the run of the document *done* is compared with no run."""
    clauses = [clause for clause in (done["gate"] or {}).get("clauses", ()) if clause["rule"] == "max_drop"]
    if not clauses:
        return "no baseline: add `baseline` to the gate to compare with one"
    if any(clause["passed"] for clause in clauses):
        return "This run is the baseline of the others."
    return "Not compared: there is no older run to compare with. A later run is compared with this run."


def _baselines(done: Document) -> list[str]:
    """Return the names of the run that the gate, or the section ``baseline``, compares with: its id, and the file that has it."""
    section = done["baseline"] or {}
    runs = [*((done["gate"] or {}).get("baselines") or {}).items(), (section.get("run"), section.get("run_id"))]
    name, run_id = next(((name, run_id) for name, run_id in runs if run_id is not None), (None, None))
    file = None if name is None else Path(done["base"], name)
    return [*([] if run_id is None else [str(run_id)]), *([str(file)] if file is not None and file.is_file() else [])]


def _compare(ledger: Path, names: Sequence[str], run_id: str) -> tuple[Document | None, str]:
    """Return the document of ``dicast compare`` with the first of *names* that the ledger can read; None with the reason if there is none."""
    note = ""
    for name in names:
        try:
            return _compare_with(ledger, name, run_id), ""
        except DicastError as error:
            note = f"Not compared with {code(name)}: {code(str(error), 1_000)}"
    return None, note


def _compare_with(ledger: Path, name: str, run_id: str) -> Document:
    compare = reader("compare")
    return read_ledger(ledger, lambda live: compare(live, a=name, b=run_id, compare=("stats/paired",)))


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
    note = f" ({answer['needed']})" if answer["needed"] else ""
    low, high = answer["ci_low"], answer["ci_high"]
    interval = "" if low is None or high is None else f"{low:+.4f} to {high:+.4f}"
    change = "" if answer["mean_difference"] is None else f"{answer['mean_difference']:+.4f}"
    return code(label), f"**{answer['answer']}**{note}", change, interval, f"{answer['n']:,}", *means


def _rows(done: Document, compared: Document | None, url: str | None) -> Iterator[str]:
    """Yield the newly failing and newly passing rows of each label, and the number of failed judgments."""
    lines = []
    flips = [] if compared is None else compared["flips"] or []
    passes = {} if compared is None else compared["passes"]
    named = {flip["label"] for flip in flips}
    named = {*[label for label in passes if label in named][:MAX_LABELS]}
    for label, counts in passes.items():
        if counts.get("reasons"):
            continue
        newly = [flip for flip in flips if flip["label"] == label]
        failing, passing = ([flip for flip in newly if flip["b"] is gained] for gained in (False, True))
        failed = counts["neither"] + counts["a"]
        if failed:
            names = _names(failing, url, is_named=label in named)
            names = f", {len(failing):,} newly failing{names}" if failing else ", as in the baseline"
            lines.append(f"- {code(label)}: {failed:,} not passed{names}")
        if passing:
            lines.append(
                f"- {code(label)}: {len(passing):,} newly passing{_names(passing, url, is_named=label in named)}"
            )
    if done["failed"]:
        kinds = ", ".join(f"{count:,} {code(kind)}" for kind, count in done["failures"].items())
        lines.append(f"- {done['failed']:,} failed: {kinds}")
    if url is not None:
        lines.append(f"- [report]({_link(url)})")
    if lines:
        yield "\n".join(lines)


def _names(flips: Sequence[Document], url: str | None, *, is_named: bool) -> str:
    """Return a colon and the names of the first subjects in *flips*, with links to their rows in the report; empty unless *is_named*."""
    names = []
    if not is_named:
        return ""
    for flip in flips[:MAX_NAMED]:
        name = code(flip["subject_id"], 60)
        row = quote(f"{flip['subject_kind']}/{flip['subject_id']}", safe="")
        names.append(name if url is None else f"[{name}]({_link(url)}#row={row})")
    rest = len(flips) - MAX_NAMED
    return ": " + ", ".join(names) + (f" and {rest:,} more" if rest > 0 else "")


def _link(url: str) -> str:
    """Return *url* without characters that end a link in Markdown."""
    return quote(url, safe="/:?&=%#@+,;~!$'*")


def _cost(done: Document, ledger: Path | None, compared: Document | None, names: Sequence[str]) -> str:
    """Return the cost of the run, next to the cost of the baseline, which has the *names*."""
    text = f"{done['scored']:,} scored, spent {money(done['cost'])}"
    if ledger is None or compared is None:
        return f"{text}; run {code(done['run_id'])}"
    baseline_id = compared["a"]["run_id"]
    before = read_ledger(ledger, lambda live: run_document(live, baseline_id)) or _file_document(names[-1])
    spent = "" if before is None else f" (baseline: {money(before['cost'])})"
    return f"{text}{spent}; run {code(done['run_id'])} against {code(compared['a']['name'])}, run {code(baseline_id)}"


def _file_document(name: str) -> Document | None:
    """Return the document of the run in the baseline file *name*; None if it is no such file, or a file of records."""
    path = Path(name)
    if not path.is_file():
        return None
    try:
        content = orjson.loads(read_bytes(path, MAX_DATA_BYTES))
    except orjson.JSONDecodeError:
        return None
    document: Document | None = content.get("document") if isinstance(content, dict) else None
    return document


def read_documents(path: Path) -> list[Document]:
    """Return the documents that the sink ``github/documents`` wrote to the file at *path*; empty without the file."""
    return [orjson.loads(line) for line in read_bytes(path, MAX_DATA_BYTES).splitlines()] if path.is_file() else []
