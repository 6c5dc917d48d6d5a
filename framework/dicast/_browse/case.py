"""A case in full: the subject with its conversation, its output next to the reference, and each label with its reasons."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import groupby, zip_longest
from textwrap import wrap
from typing import Any

import orjson

from .._kernel.classes import frozen
from .._kernel.cli.steps import Trace, policy_of, whole_steps
from .._kernel.cli.subjects import SubjectInRun
from .._kernel.values import Verdict
from .._kernel.values.passes import SubjectPasses
from .._kernel.values.rationale import RATIONALE, SCOPE
from ..toolkit.printable import one_line, printable, short_name
from ..toolkit.text_table import WIDTH

LONGEST_DIFFERENCE = 4_000
"""Most words of an output and a reference whose difference is computed; its time grows with the square."""

LEAST_BESIDE = 100
"""Least columns of a screen on which an output and its reference are next to each other."""

_BETWEEN = " | "
_WORDS = re.compile(r"\s+|\w+|[^\w\s]")
_STATES = {True: "passed", False: "failed", None: "open"}


@frozen
class CaseSection:
    """Lines of a case with one *title*; *label* is the label whose result they show, *right* the section for the column next to it."""

    title: str
    lines: Sequence[str]
    label: str | None = None
    right: CaseSection | None = None

    def text(self, width: int = WIDTH) -> list[str]:
        """Return the title and the lines, indented; the section *right* is next to them in at least 100 columns, else below them."""
        text = [self.title, *(f"  {line}" for line in self.lines)]
        if self.right is None:
            return text
        if width < LEAST_BESIDE:
            return [*text, "", *self.right.text()]
        half = (width - len(_BETWEEN)) // 2
        rows = zip_longest(_wrapped(text, half), _wrapped(self.right.text(), half), fillvalue="")
        return [f"{left}{' ' * (half - _cells(left))}{_BETWEEN}{right}".rstrip() for left, right in rows]


def case_sections(case: SubjectInRun, passes: SubjectPasses) -> Iterator[CaseSection]:
    """Yield the sections of *case*, without cuts: the subject, its conversation, its output and reference, then its labels.

    *passes* states under which labels the subject passes.
    """
    subject = case.subject
    run = f"run {case.start.run_id} ({case.start.payload['name']})"
    facts = [f"from {subject['place']}"] if "place" in subject else []
    facts += [f"part of {short_name(subject['parent_id'])}"] if "parent_id" in subject else []
    facts += [f"the output ended: {subject['finish_reason']}"] if subject.get("finish_reason") else []
    yield CaseSection(one_line(f"{subject['kind']} {subject['id']}  in {run}"), facts)
    if policy := policy_of(case.trace):
        yield CaseSection("policy:", _text_lines(policy))
    if subject.get("input") is not None:
        yield CaseSection("input:", _text_lines(subject["input"]))
    yield from _conversation(case.trace)
    yield from _outputs(subject)
    if subject.get("context"):
        yield CaseSection("context:", _text_lines(subject["context"]))
    yield from _labels(case, passes)


def case_lines(case: SubjectInRun, passes: SubjectPasses) -> Iterator[str]:
    """Yield the lines of *case*, sections apart by an empty line."""
    for number, section in enumerate(case_sections(case, passes)):
        yield from ["", *section.text()] if number else section.text()


def _text_lines(value: object) -> list[str]:
    """Return a text by its lines, another value as indented JSON; characters that control a terminal are escapes."""
    text = value if isinstance(value, str) else orjson.dumps(value, default=str, option=orjson.OPT_INDENT_2).decode()
    return printable(text).split("\n") if text else ["(empty)"]


def _conversation(trace: Trace) -> Iterator[CaseSection]:
    """Yield the messages and calls of each turn, in order."""
    turns = [(turn, [*events]) for turn, events in groupby(trace.events, key=lambda event: event.turn_id)]
    for number, (turn, events) in enumerate(turns):
        places = {str(event.payload.get("tool_use_id")) for event in events}
        last = all(other != turn for other, _ in turns[number + 1 :])
        agents = [
            (place, inner)
            for place, inner in trace.agents
            if (place.call in places if place.call is not None else place.turn == turn and last)
        ]
        lines = [line for text in whole_steps(Trace(events, agents)) for line in _text_lines(text)]
        if lines:
            yield CaseSection("conversation:" if turn is None else one_line(f"turn {turn}:"), lines)


def _outputs(subject: Mapping[str, Any]) -> Iterator[CaseSection]:
    record = subject.get("record") or {}
    responses = record.get("responses") or {"output": record.get("response")}
    outputs = {name: response["content"] for name, response in responses.items() if isinstance(response, Mapping)}
    if not outputs and subject.get("output") is not None:
        outputs = {"output": subject["output"]}
    elif subject.get("output") is not None:
        yield CaseSection("output of the data, not judged:", _text_lines(subject["output"]))
    reference = subject.get("reference")
    right = None if reference is None else CaseSection("reference:", _text_lines(reference))
    for number, (name, output) in enumerate(outputs.items(), 1):
        last = right if number == len(outputs) else None
        yield CaseSection(f"{one_line(str(name))}:", _text_lines(output), right=last)
    if right is not None and not outputs:
        yield right
    for name, output in outputs.items():
        if isinstance(output, str) and isinstance(reference, str):
            yield CaseSection(
                f"{one_line(str(name))} against the reference:", _text_lines(difference(output, reference))
            )


def _wrapped(lines: Iterable[str], width: int) -> Iterator[str]:
    """Yield *lines*, each over as many rows of *width* columns as it needs."""
    from rich.cells import chop_cells  # only a wide terminal needs it

    for line in lines:
        margin = " " * (len(line) - len(line.lstrip()))
        pieces = wrap(line, width, subsequent_indent=margin, replace_whitespace=False) or [""]
        yield from (row for piece in pieces for row in chop_cells(piece, width))


def _cells(text: str) -> int:
    from rich.cells import cell_len

    return cell_len(text)


def difference(output: str, reference: str) -> str:
    """Return *reference* with marks: ``[-…-]`` around words that only the reference has, ``{+…+}`` around words of *output* alone."""
    if output == reference:
        return "equal"
    a, b = _WORDS.findall(reference), _WORDS.findall(output)
    if len(a) + len(b) > LONGEST_DIFFERENCE:
        return f"not compared: {len(a) + len(b):,} words, and at most {LONGEST_DIFFERENCE:,} are compared"
    parts = []
    for kind, a_start, a_stop, b_start, b_stop in SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        removed, added = "".join(a[a_start:a_stop]), "".join(b[b_start:b_stop])
        if kind == "equal":
            parts.append(removed)
        else:
            parts += [f"[-{removed}-]"] if removed else []
            parts += [f"{{+{added}+}}"] if added else []
    return "".join(parts)


def _labels(case: SubjectInRun, passes: SubjectPasses) -> Iterator[CaseSection]:
    key = str(case.subject["kind"]), str(case.subject["id"])
    for verdict in case.verdicts:
        state = _STATES[passes.get(key, verdict.judge)] if passes.code(key, verdict.judge) is not None else "recorded"
        value = verdict.raw if verdict.score is None else verdict.score
        figure = "no value" if value is None else f"{value:.4f}" if verdict.score is not None else f"{value:g} raw"
        title = f"{verdict.judge}: {figure}, {state}, confidence {verdict.confidence:.2f}, basis {verdict.basis}"
        yield CaseSection(one_line(title), [*_reasons(verdict)], verdict.judge)
        yield from _metrics(verdict, key, passes)
    for failure in case.failures:
        lines = _text_lines(str(failure.get("error_message")))
        lines += ["reply:", *(f"  {line}" for line in _text_lines(failure["reply"]))] if failure.get("reply") else []
        yield CaseSection(one_line(f"{failure['judge']}: {failure['failure_mode']}"), lines, str(failure["judge"]))


def _reasons(verdict: Verdict) -> Iterator[str]:
    made_by = " ".join(filter(None, (verdict.judge_kind, verdict.judge_model)))
    yield one_line(f"by {made_by}, {verdict.rubric_id}@{verdict.rubric_version}")
    if verdict.signals.get(RATIONALE):
        yield from _text_lines(str(verdict.signals[RATIONALE]))
    hidden = {RATIONALE, SCOPE} | ({"metrics", "raw"} if verdict.scores else set())
    for name, value in verdict.signals.items():
        if name not in hidden:
            text = value if isinstance(value, str) else orjson.dumps(value, default=str).decode()
            yield from _text_lines(f"{name}: {text}")


def _metrics(verdict: Verdict, key: tuple[str, str], passes: SubjectPasses) -> Iterator[CaseSection]:
    """Yield each metric of a combined verdict with its details, and each metric that did not run with the reason."""
    scores: Sequence[Mapping[str, Any]] = verdict.scores
    for score in scores:
        value, raw, label = score["value"], score.get("raw"), str(score["metric"])
        figure = f"{raw:g} raw" if value is None else f"{value:.4f}"
        state = "" if passes.code(key, label) is None else f", {_STATES[passes.get(key, label)]}"
        basis = score.get("basis", score["tier"])
        lines = _text_lines(str(score["details"])) if score["details"] else []
        yield CaseSection(one_line(f"{label}: {figure}{state}, basis {basis}"), lines, label)
    for entry in (*verdict.skipped, *verdict.spared):
        reason = f"skipped: {entry['reason']}" if "reason" in entry else "not run because of the gate"
        yield CaseSection(one_line(f"{entry['metric']}: {reason}"), [], str(entry["metric"]))
