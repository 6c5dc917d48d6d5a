"""A run's document in Markdown, for a pull request, a job's page or a file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import orjson

from .._kernel.report.caps import cap_lines
from .._kernel.report.failure_words import failures_text, open_text
from .._kernel.report.label_order import named_labels
from .._kernel.values import ALL_METRICS, BASES
from .._kernel.values.passes import shown_label
from ..toolkit.comparison_text import comparison_lines
from ..toolkit.media import without_content
from ..toolkit.terminal import plain_lines
from .criteria import criteria
from .figures import answer, figure, money, run_answer, share
from .markdown import code, fenced, table
from .outcomes import JudgedSubject, Outcome

_REASON = 1_000
"""The most characters of a reason of the gate."""

Document = Mapping[str, Any]

_TEXT = 2_000
"""The most characters that are shown of an input, an output or a reference."""


def run_markdown(
    done: Document,
    failing: Sequence[JudgedSubject] = (),
    of_failing: int | None = None,
    *,
    of_open: int = 0,
    counted: Sequence[str] = (),
    content: bool = False,
) -> str:
    """Return the run of the document *done* as Markdown, with a line end at its end.

    :param failing: subjects that did not pass or have no verdict, which are shown with their reasons.
    :param of_failing: the number of such subjects, if *failing* has only the first of them.
    :param of_open: the number of such subjects without a verdict, for example after a failed judgment.
    :param counted: the labels that decide whether a subject passes.
    :param content: whether to show inputs, outputs and references.
    """
    parts = [*_parts(done)]
    if failing:
        of = len(failing) if of_failing is None else of_failing
        parts += _failing(failing, (of, of_open), counted, content=content)
    return "\n\n".join(parts) + "\n"


def _parts(done: Document) -> Iterator[str]:
    if done.get("disabled") or done["run_id"] is None:
        why = "disabled; nothing was read and nothing judged" if done.get("disabled") else "nothing was judged"
        yield f"## {code(done['name'])}: {why}"
        return
    gate = done["gate"]
    yield f"## {code(done['name'])}: {run_answer(done)}"
    if reasons := done["undecided"] if gate is None else gate["reasons"]:
        yield "\n".join(f"- {code(reason, _REASON)}" for reason in reasons)
    yield _lines(table(("", ""), [*_figures(done)]))
    if clauses := (gate or {}).get("clauses"):
        rows = [_clause(clause, _shown_name(done, clause["on"])) for clause in clauses]  # two may share min_coverage
        heads = ("gate on", "clause", "value", "95 % interval", "answer")
        yield _lines(table(heads, [*dict.fromkeys(rows)], right=("value",)))
    recorded = done.get("recorded") or {}  # documents of older versions have none
    labels = {name: row for name, row in named_labels(done).items() if name not in recorded}
    if labels := labels | criteria(done):
        columns = ("label", "mean (95 % interval)", "pass rate (95 % interval)", "scored", "basis")
        rows = [_label(name, row) for name, row in labels.items()]
        yield _lines(table(columns, rows, right=columns[1:4]))
    if recorded:
        lines = [_recorded(name, tally) for name, tally in recorded.items()]
        yield _lines(table(("recorded by other tools", "mean", "scored", "basis"), lines, right=("mean", "scored")))
    yield from _warnings(done)
    yield from _findings(done)


def _figures(done: Document) -> Iterator[tuple[str, str]]:
    score, due = done["score"], done["scored"] + done["failed"] + done["unaffordable"]
    if score is not None and score["mean"] is not None:
        yield (
            f"mean score of {code(_shown_name(done, score['label']))}",
            figure(score["mean"]) + _scale(score) + _interval(score),
        )
        if (passes := score.get("passes")) is not None and score.get("pass_rate") is not None:
            counts = f" ({passes['passed']:,} of {passes['n']:,})"
            yield "pass rate", figure(score["pass_rate"]) + counts + _interval(passes)
        bases = score.get("by_basis") or {}
        yield "basis", ", ".join(f"{basis}: {bases[basis]:,}" for basis in BASES if bases.get(basis)) or "-"
    yield (
        "scored",
        f"{done['scored']:,} of {due:,} (coverage {share(done['coverage'])})"
        if due
        else f"none of {done['subjects']:,} subjects",
    )
    if due and done["skipped"]:
        yield "not judged", f"{done['skipped']:,} of {done['subjects']:,} subjects"
    if done["failures"]:
        yield "failed", failures_text(done)
    yield "spent", money(done["cost"])
    if any(value != "0" for value in done["spend_lost"].values()):
        yield "lost, reserved for calls without a reply", money(done["spend_lost"])
    if (stopped := done["stopped"]) is not None:
        yield "stopped", code(stopped["reason"])
    yield "run", code(done["run_id"])
    if (ledger := done.get("ledger")) and ledger["head"]:
        yield "ledger head", f"row {ledger['head']['seq']:,}, {code(ledger['head']['digest'])}"
        if root := ledger.get("root"):
            yield "root of the shards", code(root)


def _scale(figures: Document) -> str:
    return " (raw scale)" if figures.get("scale") == "raw" else ""


def _interval(figures: Document) -> str:
    if figures.get("ci_low") is None:
        return ""
    return f", 95 % interval {figure(figures['ci_low'])} to {figure(figures['ci_high'])}"


def _shown_name(done: Document, label: str | None) -> str:
    """Return the name of *label* in the tables; `-` without a label."""
    return "-" if label is None else shown_label(done, label)


def _clause(clause: Document, name: str) -> tuple[str, ...]:
    sign = "+" if clause["rule"] == "max_drop" else ""  # a difference from another run: a drop is negative
    value, line = (
        f"{number:{style}.4g}" if isinstance(number, float) else number
        for number, style in ((clause["value"], sign), (clause["line"], ""))
    )
    interval = "-" if clause["low"] is None else f"{clause['low']:{sign}.4f} to {clause['high']:{sign}.4f}"
    interval += open_text(clause)
    value_text = "-" if value is None else str(value)
    return code(name), f"{clause['rule']} {line}", value_text, interval, answer(clause["passed"])


def _label(name: str, tally: Document) -> tuple[str, ...]:
    scored = f"{tally['scored']:,} of {tally['total']:,}" if "scored" in tally else "-"
    is_open = (tally.get("passes") or {}).get("open", 0)
    failed = f", {tally['failed']:,} failed" if tally.get("failed") else f", {is_open:,} open" if is_open else ""
    mean = figure(tally.get("mean")) + _scale(tally) + _ends(tally)
    rate = figure(tally["pass_rate"]) + _ends(tally.get("passes") or {}) if "pass_rate" in tally else "-"
    return code(name), mean, rate, scored + failed, tally.get("basis") or "-"


def _ends(figures: Document) -> str:
    return "" if figures.get("ci_low") is None else f" ({figure(figures['ci_low'])} to {figure(figures['ci_high'])})"


def _recorded(name: str, tally: Document) -> tuple[str, ...]:
    bases = ", ".join(f"{basis}: {count:,}" for basis, count in tally["by_basis"].items())
    scored = f"{tally['scored']:,} of {tally['total']:,}"
    return code(name), figure(tally["mean"]) + _scale(tally), scored, bases


def _warnings(done: Document) -> Iterator[str]:
    lines = [f"- {line}" for line in (done.get("shard", {}).get("notice"), *cap_lines(done)) if line]
    lines += [f"- warning: {code(warning['message'])}" for warning in done.get("warnings", ())]
    lines += [f"- broken: {code(message)}" for message in done["broken"].values()]
    lines += [
        f"- sink {code(label)} lost {sink['lost']:,} events: {code(sink.get('error'))}"
        for label, sink in done["sinks"].items()
        if sink["lost"]
    ]
    if lines:
        yield "\n".join(lines)


def _findings(done: Document) -> Iterator[str]:
    """Yield the results of comparison and aggregates, as on a terminal."""
    baseline = done["baseline"]
    if done["comparison"] is not None and baseline is not None:
        yield f"### Compared with {code(baseline['name'])}, run {code(baseline['run_id'])}"
        for label, result in done["comparison"].items():
            yield fenced(plain_lines(comparison_lines(label, result or {})), 20_000)
            if result and "criteria" in result and "words" in result:
                yield "\n".join(f"- {code(words)}" for words in result.get("sentences") or [result["words"]])
        if counts := baseline.get("passes"):  # older documents have no counts
            yield "\n".join(f"- {code(count['words'])}" for count in counts.values())
    for label, result in done["aggregates"].items():
        yield f"### {code(label)}"
        yield fenced(orjson.dumps(result, option=orjson.OPT_INDENT_2).decode(), 20_000)


def _failing(
    subjects: Sequence[JudgedSubject],
    counts: tuple[int, int],
    counted: Sequence[str],
    *,
    content: bool,
) -> Iterator[str]:
    of, is_open = counts
    parts = [
        f"{of - is_open:,} did not pass" if of > is_open else "",
        f"{is_open:,} without a verdict" if is_open else "",
    ]
    yield f"### {', '.join(filter(None, parts))}"
    heads = ("subject", "label", "score", "passes at", "why")
    rows = [
        (f"{code(subject.kind)} {code(subject.id, 60)}", code(outcome.label), *_score(outcome), _why(outcome))
        for subject in subjects
        for outcome in _open_or_failed(subject, counted)
    ]
    yield _lines(table(heads, rows, right=("score", "passes at")))
    if of > len(subjects):
        yield f"The first {len(subjects):,} of {of:,} are shown."
    for subject in subjects if content else ():
        yield from _content(subject)


def _open_or_failed(subject: JudgedSubject, counted: Sequence[str]) -> list[Outcome]:
    """Return the outcomes of the *counted* labels that explain why a subject did not pass."""
    outcomes = [subject.outcomes[label] for label in counted if label in subject.outcomes]
    return [outcome for outcome in outcomes if outcome.did_not_pass]


def _score(outcome: Outcome) -> tuple[str, str]:
    value = "-" if outcome.value is None else figure(outcome.value)
    line = "each metric" if outcome.label == ALL_METRICS else "-"
    return value, line if outcome.pass_at is None else f"{outcome.pass_at:g}"


def _why(outcome: Outcome) -> str:
    kind = outcome.failure_words or ("skipped" if outcome.skipped else "")
    text = outcome.skipped or outcome.reason
    return f"{kind}{': ' if kind and text else ''}{code(text) if text else ''}" or "-"


def _content(subject: JudgedSubject) -> Iterator[str]:
    if subject.content is None:
        return
    yield f"#### {code(subject.kind)} {code(subject.id)}"
    for name in ("input", "output", "reference"):
        if (value := subject.content.get(name)) is not None:
            plain = without_content(value)
            text = plain if isinstance(plain, str) else orjson.dumps(plain, default=str).decode()
            yield f"{name}\n\n{fenced(text, _TEXT)}"


def _lines(lines: Iterator[str]) -> str:
    return "\n".join(lines)
