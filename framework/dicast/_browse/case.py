"""A case in full: the subject with its conversation, its output next to the reference, and each label with its reasons."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import groupby, zip_longest
from textwrap import wrap
from typing import Any

import orjson

from .._kernel.classes import evolve, frozen
from .._kernel.cli.prompts import Prompts
from .._kernel.cli.steps import Trace, policy_of, whole_steps
from .._kernel.cli.subjects import SubjectInRun
from .._kernel.cli.trees import tree
from .._kernel.report.evidence import hidden_media, listed_media
from .._kernel.report.failure_words import failure_kind, failure_label
from .._kernel.values import MAX_TOKENS, ONLY, REFUSAL, Verdict, normalize_stop_reason
from .._kernel.values.passes import SubjectKey, SubjectPasses
from .._kernel.values.rationale import RATIONALE, SCOPE
from ..toolkit.printable import column_count, first_columns, one_line, printable, short_name
from ..toolkit.terminal import has_color, terminal, width_of
from ..toolkit.text_table import WIDTH

LONGEST_DIFFERENCE = 4_000
"""Most words of an output and a reference whose difference is computed; its time grows with the square."""

MOST_RESULTS = 8
"""Most labels at the top of the screen."""

LEAST_BESIDE = 100
"""Least columns of a screen on which an output and its reference are next to each other."""

PROMPT_ROWS, INPUT_ROWS, CONTEXT_ROWS = 1, 3, 2
"""Most rows of a policy or a prompt, of an input, and of a context that are not opened."""

_BETWEEN = " | "
_INDENT = 2
_WORDS = re.compile(r"\s+|\w+|[^\w\s]")
_HIDDEN = {RATIONALE, SCOPE, "rationale_hash"}
"""Signals without a line; ``--json`` has them."""
_OF_METRICS = {"metrics", "raw", "rollouts"}
"""Signals of a combined verdict with the values of its metrics."""
_STATES = {True: "passed", False: "did not pass", None: "open"}


@frozen
class CaseSection:
    """Lines of a case with one *title*.

    *label* is the label whose result they show, *right* the section for the column next to it. *joins*: without an empty line before it.
    *folds* is the number of its rows that are shown until the user opens it; None for all rows.
    """

    title: str
    lines: Sequence[str]
    label: str | None = None
    right: CaseSection | None = None
    joins: bool = False
    folds: int | None = None

    def folded(self, width: int) -> CaseSection:
        """Return the section with at most :attr:`folds` rows of *width* columns. The last row has the number of hidden rows."""
        if self.folds is None:
            return self
        rows = [*_wrapped(self.lines, width - _INDENT)]
        omitted = len(rows) - self.folds + 1
        if omitted <= 1:
            return evolve(self, joins=True)
        note = f"+ {omitted:,} lines (e: open)"
        if self.folds == 1:  # the title has room for the number
            return evolve(self, title=f"{self.title} {note}", lines=(), joins=True)
        return evolve(self, lines=[*rows[: self.folds - 1], note], joins=True)

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


def shown_width() -> int:
    """Return the columns of the terminal on standard output; 80 for plain lines."""
    stream = terminal(sys.stdout) if has_color() else None
    return WIDTH if stream is None else width_of(stream.stream)


def case_lines(case: SubjectInRun, width: int = WIDTH) -> Iterator[str]:
    """Yield the lines of *case* for a screen of *width* columns, without cuts."""
    return (line for lines, _ in case_blocks(case, width) for line in lines)


def case_blocks(case: SubjectInRun, width: int, *, is_folded: bool = False) -> Iterator[tuple[list[str], str | None]]:
    """Yield blocks of lines, each with the label whose result it shows; an empty line is between sections that do not join.

    With *is_folded* only the start of a long prompt, input and context is shown, without empty lines between them.
    """
    sections = _sections(case, is_folded=is_folded)
    is_joined = False
    for number, section in enumerate(part.folded(width) for part in sections) if is_folded else enumerate(sections):
        if number and not (section.joins and (section.folds is None or is_joined)):
            yield [""], None
        is_joined = section.folds is not None
        yield section.text(width), section.label


def result_block(case: SubjectInRun, width: int) -> list[str]:
    """Return a title and a line of at most *width* columns for each label, with the start of its reasons: failed labels first.

    The whole reasons are below the output. Empty if no label has a result.
    """
    key = str(case.subject["kind"]), str(case.subject["id"])
    rows: list[tuple[int, str]] = []
    for verdict in case.verdicts:
        reason = str(verdict.signals.get(RATIONALE) or "")
        rows.append(
            _result(verdict.judge, _figure(verdict.score, verdict.raw), _state(case.passes, key, verdict.judge), reason)
        )
        scores: Sequence[Mapping[str, Any]] = verdict.scores
        for score in scores:
            label = str(score["metric"])
            figure, state = _figure(score["value"], score.get("raw")), _state(case.passes, key, label)
            rows.append(_result(label, figure, state, str(score["details"] or "")))
    for failure in _failures(case):
        label, kind = failure_label(failure), failure_kind(failure)
        rows.append((0, f"{label}: no verdict, {kind}: {failure.get('error_message')}"))
    texts = [f"  {one_line(text)}" for _, text in sorted(rows, key=lambda row: row[0])]
    lines = [text if column_count(text) < width else f"{first_columns(text, width - 2)}…" for text in texts]
    omitted = len(lines) - MOST_RESULTS
    lines = lines[:MOST_RESULTS] + ([f"  + {omitted:,} more label{'s' * (omitted != 1)}"] if omitted > 0 else [])
    return ["results (l: the reasons in full):", *lines] if lines else []


def _result(label: str, figure: str, state: str, reason: str) -> tuple[int, str]:
    """Return the line of a label, and its place: failed labels come first."""
    order = [_STATES[False], _STATES[None]]
    return order.index(state) if state in order else len(
        order
    ), f"{label}: {figure}, {state}{': ' * bool(reason)}{reason}"


def _sections(case: SubjectInRun, *, is_folded: bool = False) -> Iterator[CaseSection]:
    """Yield the subject, its policy, prompts, input, context and steps, its output and reference, its labels, then figures of its record.

    An input that an opened prompt has is named and not repeated.
    """
    subject = case.subject
    run = f"run {case.start.run_id} ({case.start.payload['name']})"
    facts = [f"from {subject['place']}"] if "place" in subject else []
    facts += [f"part of: {short_name(subject['parent_id'])}"] if "parent_id" in subject else []
    facts += [] if "input" in subject else ["its content is not in the ledger (content: digest, or erased)"]
    ending = subject.get("finish_reason")
    if normalize_stop_reason(ending) in (MAX_TOKENS, REFUSAL):
        facts.append(f"the output ended early: {ending}")
    yield CaseSection(one_line(f"{subject['kind']} {subject['id']}  in {run}"), [*map(one_line, facts)])
    if policy := policy_of(case.trace):
        yield CaseSection("policy:", _text_lines(policy), folds=PROMPT_ROWS)
    if case.prompts is not None:
        yield from _prompts(case.prompts)
    if (input_ := subject.get("input")) is not None:
        is_in_prompt = not is_folded and case.prompts is not None and case.prompts.has_text(input_)
        lines = ["(in the prompt above)"] if is_in_prompt else _text_lines(input_)
        yield CaseSection("input:", lines, folds=INPUT_ROWS)
    if subject.get("context"):
        yield CaseSection("context:", [*_context(subject["context"])], folds=CONTEXT_ROWS)
    yield from _steps(case)
    yield from _outputs(subject)
    yield from _labels(case)
    if metrics := (subject.get("record") or {}).get("metrics"):
        title, *lines = map(one_line, tree("record", metrics))
        yield CaseSection(title, [line.removeprefix("  ") for line in lines])


def _prompts(prompts: Prompts) -> Iterator[CaseSection]:
    """Yield the prompt of each criterion: as it was sent, or the template with the reason why it is not filled in."""
    note = [] if prompts.reason is None else _text_lines(f"not filled in: {prompts.reason}")
    for name, texts in prompts.texts.items():
        title = "prompt" if name == ONLY else f"prompt of {name}"
        lines = [line for role, text in texts.items() for line in _text_lines(f"{role}: {text}")]
        yield CaseSection(one_line(f"{title}:"), [*lines, *note], folds=PROMPT_ROWS)


def _text_lines(value: object) -> list[str]:
    """Return a text by its lines, another value as indented JSON; characters that control a terminal are escapes."""
    text = value if isinstance(value, str) else _json(value, orjson.OPT_INDENT_2)
    return printable(text).split("\n") if text else ["(empty)"]


def _json(value: object, option: int = 0) -> str:
    return orjson.dumps(value, default=str, option=option).decode()


def _context(context: object) -> Iterator[str]:
    """Yield the lines of each part of the context by its name."""
    for name, value in context.items() if isinstance(context, Mapping) else [("context", context)]:
        first, *rest = _text_lines(value)
        yield from (one_line(f"{name}: {first}"), *(f"  {line}" for line in rest))


def _steps(case: SubjectInRun) -> Iterator[CaseSection]:
    """Yield the messages and calls in order; of a session by turns, with the results of each turn.

    The first and the last message of a turn are left out: they are its input and output.
    """
    subject, trace = case.subject, case.trace
    if subject["kind"] != "session":
        yield from _steps_section("steps:", trace, subject.get("input"), subject.get("output"))
        return
    turns = [(turn, [*events]) for turn, events in groupby(trace.events, key=lambda event: event.turn_id)]
    for number, (turn, events) in enumerate(turns):
        places = {str(event.payload.get("tool_use_id")) for event in events}
        is_last = all(other != turn for other, _ in turns[number + 1 :])
        agents = [
            (place, inner)
            for place, inner in trace.agents
            if (place.call in places if place.call is not None else place.turn == turn and is_last)
        ]
        title = "conversation:" if turn is None else one_line(f"turn {turn}:{_results(case, turn)}")
        yield from _steps_section(title, Trace(events, agents))


def _results(case: SubjectInRun, turn: str) -> str:
    """Return the result of each label that judged a turn of the session."""
    return "".join(
        f"  {label} {_figure(payload.get('score'), payload.get('raw'))}, {_state(case.passes, ('turn', turn), label)}"
        for label, payload in case.turns.get(turn, {}).items()
    )


def _steps_section(title: str, trace: Trace, opening: object = None, closing: object = None) -> Iterator[CaseSection]:
    lines = [line for text in whole_steps(trace, opening, closing) for line in _text_lines(text)]
    if lines:
        yield CaseSection(title, lines)


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
        if {"", None}.isdisjoint(text for text in (output, reference) if isinstance(text, str | None)) and (
            isinstance(output, str) == isinstance(reference, str)
        ):  # an empty text has no words to compare
            texts = ("\n".join(_text_lines(value)) for value in (output, reference))
            lines = difference(*texts).split("\n")
            yield CaseSection(f"{one_line(str(name))} against the reference:", lines)


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


def _labels(case: SubjectInRun) -> Iterator[CaseSection]:
    key = str(case.subject["kind"]), str(case.subject["id"])
    for verdict in case.verdicts:
        state = _state(case.passes, key, verdict.judge)
        title = f"{verdict.judge}: {_figure(verdict.score, verdict.raw)}, {state}, confidence {verdict.confidence:.2f}, basis {verdict.basis}"
        title += ", taken back" * (verdict.eval_id in case.retracted)
        yield CaseSection(one_line(title), [*_reasons(verdict)], verdict.judge)
        yield from _metrics(verdict, key, case.passes)
    for failure in _failures(case):
        lines = _text_lines(str(failure.get("error_message")))
        lines += ["reply:", *(f"  {line}" for line in _text_lines(failure["reply"]))] if failure.get("reply") else []
        label, kind = failure_label(failure), failure_kind(failure)
        lines += _adapted_lines(failure.get("adapted") or {})
        yield CaseSection(one_line(f"{label}: no verdict, {kind}"), lines, label)


def _failures(case: SubjectInRun) -> list[Mapping[str, Any]]:
    """Return the newest failure of each label, as a resumed run tries again; a failure of the task once, although it fails every label."""
    return [*{failure_label(failure): failure for failure in case.failures}.values()]


def _state(passes: SubjectPasses, key: SubjectKey, label: str) -> str:
    """Return whether a subject passes *label*, or ``recorded`` for labels without a rule in the run."""
    return _STATES[passes.get(key, label)] if passes.is_judged(key, label) else "recorded"


def _figure(value: float | None, raw: float | None) -> str:
    """Return the value of a verdict or a metric, with its raw number if a range mapped it, or the raw number alone."""
    if value is None:
        return "no value" if raw is None else f"{raw:g} raw"
    return f"{value:.4f}" if raw in (None, value) else f"{value:.4f} (raw {raw:g})"


def _reasons(verdict: Verdict) -> Iterator[str]:
    """Yield the judge, its reasons, its signals, and the limits of its evidence."""
    made_by = " ".join(filter(None, (verdict.judge_kind, verdict.judge_model)))
    yield one_line(f"by {made_by}, {verdict.rubric_id}@{verdict.rubric_version}, {verdict.created_at}")
    if verdict.signals.get(RATIONALE):
        first, *rest = _text_lines(str(verdict.signals[RATIONALE]))
        yield from (f"reasons: {first}", *(f"  {line}" for line in rest))
    elif "rationale_hash" in verdict.signals:
        yield "its reasons were not recorded (capture_rationale: false, or a ledger with content: digest)"
    hidden = _HIDDEN | (_OF_METRICS if verdict.scores else set())
    for name, value in verdict.signals.items():
        if name not in hidden:
            signal = {key: value[key] for key in value if key != "digest"} if isinstance(value, Mapping) else value
            yield from _text_lines(f"{name}: {signal if isinstance(signal, str) else _json(signal)}")
    yield from _adapted_lines(verdict.adapted)
    yield from _media_lines(verdict.judge, verdict.signals)


def _metrics(verdict: Verdict, key: tuple[str, str], passes: SubjectPasses) -> Iterator[CaseSection]:
    """Yield each metric of a combined verdict with its details, and each metric that did not run with the reason."""
    scores: Sequence[Mapping[str, Any]] = verdict.scores
    for score in scores:
        label = str(score["metric"])
        figure = _figure(score["value"], score.get("raw"))
        state = f", {_STATES[passes.get(key, label)]}" if passes.is_judged(key, label) else ""
        basis = score.get("basis", score["tier"])
        lines = _text_lines(str(score["details"])) if score["details"] else []
        lines += _media_lines(label, score.get("signals") or {})
        yield CaseSection(one_line(f"{label}: {figure}{state}, basis {basis}"), lines, label, joins=True)
    for entry in (*verdict.skipped, *verdict.spared):
        reason = f"skipped: {entry['reason']}" if "reason" in entry else "not run because of the gate"
        yield CaseSection(one_line(f"{entry['metric']}: {reason}"), [], str(entry["metric"]), joins=True)


def _media_lines(label: str, signals: Mapping[str, Any]) -> list[str]:
    """Return the line about the media that a judge or a metric saw as markers, if there are any."""
    counts = hidden_media(signals)
    return [one_line(f"not shown to {label}: {listed_media(counts)} (it received markers)")] if counts else []


def _adapted_lines(by_label: Mapping[str, Iterable[str]]) -> list[str]:
    """Return the parameters that endpoints refused, one line for each label."""
    return [
        one_line(f"adapted: [{', '.join(names)}] (refused by the endpoint of {label})")
        for label, names in by_label.items()
    ]
