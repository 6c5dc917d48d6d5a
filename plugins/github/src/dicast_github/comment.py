"""Text of a pull request's comment about a run: each label against the baseline, the newly failing rows, and the cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import orjson

from dicast import ConfigError, Problem, read_ledger
from dicast.reading import run_document
from dicast.reporting import (
    ALL_METRICS,
    code,
    exit_note,
    figure,
    gate_reasons,
    money,
    named_labels,
    ordered_labels,
    run_answer,
    shown_label,
    table,
    unanswered_labels,
)
from dicast.toolkit.atomic_file import AtomicFile
from dicast.toolkit.files import MAX_DATA_BYTES, open_file, read_bytes

from .baselines import BaselinePair, find_baselines, places_of
from .bridge import difference_parts
from .reasons import NO_BASELINE, is_judged, loss_lines, open_labels, reason_lines, state_once
from .rows import MAX_NAMED, row_parts

Document = Mapping[str, Any]

MARK = "<!-- dicast ci: {name} -->"
"""First line of a comment, by which a later run finds the comment and replaces it."""

BEGINS = MARK.partition("{")[0].encode()
"""First bytes of a comment: no other file is replaced by it."""

EMPTY = "<!-- dicast ci: no result -->"
"""Second line of a comment without a result. It does not replace the result in an older comment."""

OLDER = "---\n\n**The result of an earlier run:**\n"
"""Lines between a comment without a result and the older result."""

FORK = "This pull request is from a fork. GitHub gives its jobs no secrets, so a key from a secret is empty. Next: a maintainer pushes the branch to this repository, whose jobs have the secrets."
"""Part of a comment without a result in a pull request from a fork."""

_OPEN = "The gate passes without this answer, so it does not stop the merge.{} `undecided: exit3` or `fail` in the clause stops it."
"""Part of a comment on a gate that passed with a clause without an answer."""

ALPHA = 0.05
"""Error rate of the answers: a label is better or worse if its adjusted p is lower."""

LIMIT = 65_000
"""Maximum size of a comment in characters; GitHub refuses more than 65,536."""


@attrs.frozen
class Comment:
    """The file at *path* with the comment.

    :param baseline: the run to compare with; by default the baselines of the gate, else of the section ``baseline``.
    :param url: the address of the report, for links.
    :param is_fork: whether the job is of a pull request from a fork.
    :param merges: whether the shards of a run are merged, which judges nothing.
    """

    path: Path
    baseline: str | None
    url: str | None
    is_fork: bool = False
    merges: bool = False

    def write(
        self, name: str, documents: Sequence[Document], reasons: Sequence[str] = (), *, is_interrupted: bool = False
    ) -> None:
        """Write the comment on the runs in *documents*.

        :param name: the pipeline file, which names the comment.
        :param reasons: the reasons why nothing was judged, without *documents*.
        :param is_interrupted: keep the state of a run that has no document.
        :raises OSError: if the file cannot be written.
        :raises ConfigError: if the file has other content than a comment.
        """
        parts = list[str]()
        parts += _suite_title(name, documents)
        for document in documents:
            parts += _run_parts(document, name, self, documents)
        state = _read_progress(self.path, documents) if is_interrupted else []
        parts += state
        if not documents and not state:
            lines = [code(reason, 1_000) for reason in reasons[:MAX_NAMED]]
            parts += _result_missing(f"{code(name)}: {'not merged' if self.merges else 'nothing was judged'}", lines)
            parts += [f"{rest:,} more reasons are in the job's log."] if (rest := len(reasons) - MAX_NAMED) > 0 else []
        parts = state_once(parts, len(documents))
        if not any(map(is_judged, documents)):
            parts = [EMPTY, *parts, *[FORK] * self.is_fork]
        _write_parts(self.path, name, parts)


def write_progress(path: Path, name: str, lines: Sequence[str]) -> None:
    """Write the comment on a run that goes on, which stays if the process is killed.

    :param name: the pipeline file, which names the comment.
    :param lines: the state of the run, as Markdown.
    """
    cause = "dicast ci was ended before it wrote the result, such as by a second signal, a kill or a lack of memory; the job's log may have the reason"
    _write_parts(path, name, [EMPTY, *_result_missing(f"{code(name)}: ended without a result", [cause, *lines])])


def _read_progress(path: Path, documents: Sequence[Document]) -> list[str]:
    """Return the state of a run in the comment at *path*, as parts of a comment; empty before the run, or if *documents* has the run."""
    parts = (
        read_bytes(path, MAX_DATA_BYTES).decode(errors="replace").strip().split("\n\n")[2:] if path.is_file() else []
    )
    text = "\n".join(parts)
    is_known = any(code(done["run_id"]) in text for done in documents)
    return parts if "--resume" in text and not is_known else []


def _suite_title(name: str, documents: Sequence[Document]) -> Iterator[str]:
    """Yield the title of the comment on a suite, with the number of experiments by their answers, the failed experiments first."""
    if len(documents) < 2:
        return
    counts, last = Counter(map(run_answer, documents)), ("passed", "no gate")
    answers = sorted(counts, key=lambda answer: (answer in last, answer != "failed", answer))
    numbers = ", ".join(
        f"{answer}: {counts[answer]:,}{'' if at else f' of {len(documents):,} experiments'}"
        for at, answer in enumerate(answers)
    )
    yield f"### dicast: {code(name)}: {numbers}"


def _result_missing(title: str, lines: Sequence[str]) -> list[str]:
    return [f"### dicast: {title}", "\n".join(f"- {line}" for line in lines)]


def _write_parts(path: Path, name: str, parts: Sequence[str]) -> None:
    """Write the *parts* of a comment below the mark with *name*, without the end if they are too long."""
    mark = MARK.format(name=name.replace("--", "- -"))
    _refuse_other_pipeline(path, mark)
    text = "\n\n".join([mark, *parts]) + "\n"
    if len(text) > LIMIT:
        text = f"{text[:LIMIT]}\n\nThe comment is too long and was cut here.\n"
    with AtomicFile(path, replaces=BEGINS) as file:
        file.write(text.encode("utf-8", "backslashreplace"))
        file.commit()


def _refuse_other_pipeline(path: Path, mark: str) -> None:
    """Raise a ConfigError if the file at *path* is a comment with another *mark*: the comment on another pipeline."""
    if not path.is_file():
        return
    with open_file(path) as file:
        line = file.readline(LIMIT).decode(errors="replace").strip()
    if line.startswith(BEGINS.decode()) and line != mark:
        message = f"cannot write {path}: it has the comment {line!r:.200}, and this comment is {mark!r:.200}; give --comment another path, or remove the file"
        raise ConfigError(Problem(message, path="--comment", value=str(path)))


def with_older_result(text: str, older: str) -> str:
    """Return the comment *text*; below it the result in the *older* comment, if *text* has no result."""
    if not _is_empty(text):
        return text
    older = older.replace("\r\n", "\n")
    result = older.partition(f"{OLDER}\n")[2] if _is_empty(older) else older.partition("\n")[2].lstrip()
    return f"{text}\n{OLDER}\n{result}"[:LIMIT] if result else text


def _is_empty(text: str) -> bool:
    """Return whether the comment *text* is about a run that judged nothing."""
    return text.partition("\n")[2].lstrip().startswith(EMPTY)


def _run_parts(done: Document, file: str, comment: Comment, documents: Sequence[Document]) -> Iterator[str]:
    """Yield the parts of the *comment* on the run of the document *done*, one of *documents*; *file* is the pipeline file."""
    baseline, url = comment.baseline, comment.url
    ledger = (done.get("ledger") or {}).get("path")
    losses = [*loss_lines(done, Path(ledger) if ledger else None)]
    answer = f"{run_answer(done)}{_open_clauses(done)}{', but a sink lost events (exit code 4)' if losses else exit_note(done)}"
    yield f"### dicast: {code(done['name'])}: {answer}"
    lines = [f"- {code(reason, 1_000)}" for reason in gate_reasons(done)] + losses
    lines += reason_lines(done, file, Path(ledger) if ledger else None, is_fork=comment.is_fork)
    if names := done.get("not_started"):
        lines.append(f"- experiments not started, as the suite ended before them: {', '.join(map(code, names))}")
    if lines:
        yield "\n".join(lines)
    baselines = [(baseline, places_of(baseline, Path(done["base"])))] if baseline else find_baselines(done)
    pairs = [] if ledger is None else [BaselinePair.of(Path(ledger), *side, str(done["run_id"])) for side in baselines]
    if _open_clauses(done):
        yield _OPEN.format(_open_advice(done, pairs))
    yield from difference_parts(done, file)
    yield from _allowed_drops(done)
    for pair in pairs:
        yield from [f"Against {code(pair.name)}:"] * (len(pairs) > 1)
        yield "\n".join(_label_table(done, pair))
        if notes := [*pair.notes(_table_labels(done, pair), done)]:
            yield "\n".join(notes)
    if not pairs:
        yield "\n".join(_label_table(done, None))
        yield _missing_baseline(done, documents)
    compared = next((pair.document for pair in pairs if pair.document is not None), None)
    yield from row_parts(done, _table_labels(done, next(iter(pairs), None)), compared, url)
    if compared is not None and (lines := [*_rule_lines(compared["passes"])]):
        yield "\n".join(lines)
    yield scores_and_cost(done, Path(ledger) if ledger else None, next((pair for pair in pairs if pair.document), None))


def _open_clauses(done: Document) -> str:
    """Return the labels of clauses without an answer in a gate that passed; empty without any."""
    labels = ", ".join(map(code, unanswered_labels(done)))
    return f", without an answer on {labels}" if labels else ""


def _open_advice(done: Document, pairs: Sequence[BaselinePair]) -> str:
    """Return the next step after a clause without an answer: the newly failing rows of its label in *pairs*, and the number of rows that is needed."""
    compared = next((pair for pair in pairs if pair.document is not None), None)
    answers = {} if compared is None else compared.answers
    labels = {label for label in open_labels(done) if not (answers.get(label) or {}).get("faults")}
    rows = {
        (flip["subject_kind"], flip["subject_id"])
        for flip in ((compared and compared.document) or {}).get("flips") or ()
        if flip["label"] in labels and flip["b"] is False and not flip.get("unchanged")
    }
    count = f"{len(rows):,} row{'s' if len(rows) != 1 else ''}"
    advice = f" Look at the {count} below that newly fail{'s' * (len(rows) == 1)}." if rows else ""
    if _needs_rows(done):
        advice += (
            f" More rows {'show whether the mean is lower' if rows else 'give an answer'}: see the number of pairs."
        )
    return advice


def _allowed_drops(done: Document) -> Iterator[str]:
    """Yield a sentence about the labels whose mean dropped by less than the gate allows, in a gate that passed."""
    gate = done["gate"] or {"passed": None}
    drops = [
        f"{code(shown_label(done, clause['on'] or ALL_METRICS))} changed by {clause['value']:+.4f}, within max_drop {clause['line']:g}"
        for clause in gate.get("clauses", ())
        if clause["rule"] == "max_drop" and clause["passed"] and (clause["value"] or 0) < 0
    ]
    if gate["passed"] and drops:
        yield f"The gate passes: {'; '.join(drops)}."


def _needs_rows(done: Document) -> bool:
    """Return whether a reason of the gate states the number of pairs that are needed for an answer."""
    return any("more pair" in reason for reason in gate_reasons(done))


def _missing_baseline(done: Document, documents: Sequence[Document]) -> str:
    """Return the reason why the run of the document *done*, one of *documents*, is compared with no run."""
    if any((document["baseline"] or {}).get("run_id") == done["run_id"] for document in documents):
        return "This run is the baseline of the others."
    if (done["stopped"] or {}).get("reason") == "ledger_failed":
        return "Not compared: the verdicts of this run cannot be read from its ledger, which failed."
    clauses = [clause for clause in (done["gate"] or {}).get("clauses", ()) if clause["rule"] == "max_drop"]
    if not clauses and not done["baseline"]:
        return NO_BASELINE
    if any(clause["passed"] for clause in clauses):
        return "This run is the baseline of the others."
    return "Not compared: there is no older run to compare with. A later run is compared with this run."


def _table_labels(done: Document, pair: BaselinePair | None) -> dict[str, Document]:
    """Return the figures of the labels in the order of their answers, then in the order of the summary."""
    answers = {} if pair is None else pair.answers
    labels = ordered_labels(done) if ALL_METRICS in answers else named_labels(done)
    names = [*[label for label in answers if label in labels], *[label for label in labels if label not in answers]]
    return {label: labels[label] for label in names}


def _label_table(done: Document, pair: BaselinePair | None) -> Iterator[str]:
    """Yield a table of the labels with their answers and figures."""
    compared = () if pair is None else ("against the baseline", "change", "95 % interval", "pairs")
    labels = open_labels(done)
    rows = [
        _label_row(label, figures, pair, is_stated=label in labels)
        for label, figures in _table_labels(done, pair).items()
    ]
    return table(("label", *compared, "mean", "pass rate"), rows, right=("change", "pairs", "mean", "pass rate"))


def _label_row(label: str, figures: Document, pair: BaselinePair | None, *, is_stated: bool) -> tuple[str, ...]:
    """Return the row of *label*; *is_stated*: a reason of the gate has the number of pairs that are needed."""
    means = figure(figures.get("mean")), figure(figures["pass_rate"]) if figures.get("pass_rate") is not None else ""
    if pair is None:
        return code(label), *means
    answer = pair.answers.get(label)
    if answer is None or answer.get("faults"):
        return code(label), "not compared", "", "", "", *means
    notes = [answer["needed"]] if answer["needed"] and not is_stated else []
    if is_stated and answer["answer"] == "no difference found" and answer["margin"] is not None:
        notes.append(f"the interval is within {answer['margin']:g}")
    p_value, adjusted = answer["p_value"], answer["adjusted_p_value"]
    if p_value is not None and adjusted is not None and p_value < ALPHA <= adjusted:
        notes.append(f"p adjusted by {answer.get('adjustment', 'holm').capitalize()} is {adjusted:.4f}")
    note = f" ({'; '.join(notes)})" if notes else ""
    low, high = answer["ci_low"], answer["ci_high"]
    interval = "" if low is None or high is None else f"{low:+.4f} to {high:+.4f}"
    ends = [answer.get(name) for name in ("mean_difference_low", "mean_difference_high")]
    ends = ends if answer["mean_difference"] is None else [answer["mean_difference"]]
    change = "" if None in ends else " to ".join(f"{end:+.4f}" for end in ends)
    return code(label), f"**{answer['answer']}**{note}", change, interval, f"{answer['n']:,}", *means


def _rule_lines(passes: Mapping[str, Document]) -> Iterator[str]:
    """Yield a line for each label that passes by another line in the baseline, with the line that counts both runs."""
    for label, counts in passes.items():
        if (lines := counts.get("pass_at")) is not None:
            run, baseline, rule = (_line_text(lines[side]) for side in ("b", "a", "counted"))
            text = f"a row passes at {run} in this run, and at {baseline} in the baseline"
            yield f"- {code(label)}: {text}; the passes of both runs are counted at {rule}, and means do not depend on it"


def _line_text(line: object) -> str:
    """Return the *line* of a label; a mapping has the lines of all metrics."""
    if isinstance(line, Mapping):
        return ", ".join(f"{_line_text(number)} of {code(metric)}" for metric, number in line.items())
    return "no line" if line is None else f"{line:g}"


def scores_and_cost(done: Document, ledger: Path | None, pair: BaselinePair | None) -> str:
    """Return the number of scores, of each label if the numbers differ, and the cost of the run, next to the cost of the baseline in *pair*."""
    counts = {
        label: f"{row['scored']:,} of {row['total']:,}" for label, row in named_labels(done).items() if "total" in row
    }
    by_label = ", ".join(f"{code(label)} {count}" for label, count in counts.items())
    scored = f"scored: {by_label}" if len(set(counts.values())) > 1 else f"{done['scored']:,} scored"
    text = f"{scored}, spent {money(done['cost'])}"
    lost = (
        [f"lost, reserved for calls without a reply: {money(done['spend_lost'])}"] if _has(done["spend_lost"]) else []
    )
    if ledger is None or pair is None or pair.document is None:
        return "; ".join([text, *lost, f"run {code(done['run_id'])}"])
    baseline = pair.document["a"]
    before = read_ledger(ledger, lambda live: run_document(live, baseline["run_id"]))
    before = before or _file_document(pair.places[-1])
    spent = "" if before is None else f" (baseline: {money(before['cost'])})"
    runs = f"run {code(done['run_id'])} against {code(baseline['name'])}, run {code(baseline['run_id'])}"
    return "; ".join([f"{text}{spent}", *lost, runs])


def _has(amounts: Mapping[str, str | None]) -> bool:
    """Return whether any of the *amounts* is not 0."""
    return any(amount != "0" for amount in amounts.values())


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
