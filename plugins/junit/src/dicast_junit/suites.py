"""The elements around the cases: the suite of a label, and the root."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dicast.reporting import cap_lines, criteria, exact, gate_answer, raise_caps_text, reached_caps

from .cases import Counts, add_properties, as_xml_text

RUN = "run"
"""Name of the suite with the cases about the whole run."""

GATE = "gate"
"""Name of the case with the gate's answer."""


def root(done: Mapping[str, Any], total: Counts) -> tuple[bytes, bytes]:
    """Return the beginning and the end of the file."""
    from junitparser import JUnitXml, TestSuite  # here, because only a run with such a sink needs it

    document: Any = JUnitXml(as_xml_text(str(done["name"])))
    _count(document, total)
    document.append(TestSuite("within"))  # so that it has an end of its own
    begin, _, end = document.tostring().partition(b"<testsuite ")
    return b'<?xml version="1.0" encoding="utf-8"?>\n' + begin + b"\n", end[end.index(b"</") :] + b"\n"


def suite(label: str, done: Mapping[str, Any], counts: Counts, start_time: str) -> tuple[bytes, bytes]:
    """Return the beginning of the suite of *label*, with its properties, and its end."""
    from junitparser import TestSuite  # as above

    element: Any = TestSuite(as_xml_text(label))
    element.timestamp = start_time.removesuffix("Z")
    _count(element, counts)
    add_properties(element, {**_of_the_run(done), **_of_the_label(label, done)})
    text = element.tostring().rstrip()
    end = b"</testsuite>"
    return text.removesuffix(end) + b"\n", end + b"\n"


def run_suite(done: Mapping[str, Any], not_started: Sequence[str] = ()) -> tuple[bytes, Counts]:
    """Return the suite with the cases about the whole run, and its counts; empty for a run that ended in order, without a gate.

    A run that did not end in order is an error. So is an undecided run, and a gate that failed is a failure. The experiments
    *not_started* because of the run are skipped cases.
    """
    from junitparser import Skipped, TestCase, TestSuite  # as above

    element: Any = TestSuite(RUN)
    group = as_xml_text(str(done["name"]))
    for name, result in _run_results(done):
        case: Any = TestCase(name, group, 0.0)
        case.result = [] if result is None else [result]
        element.add_testcase(case)
    for experiment in not_started:
        case = TestCase(as_xml_text(f"experiment {experiment}"), group, 0.0)
        case.result = [Skipped(as_xml_text(f"not started, as the suite ended at {done['name']}"))]
        element.add_testcase(case)
    element.update_statistics()
    counts = Counts(element.tests, element.failures, element.errors, element.skipped)
    text: bytes = element.tostring()
    return (text.rstrip() + b"\n" if counts.tests else b""), counts


def _run_results(done: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the name of each case about the whole run, and the element with its reasons; None if the case passes."""
    from junitparser import Error, Failure, Skipped  # as above

    gate, stopped = done["gate"], done["stopped"]
    causes = [*((gate or {}).get("reasons") or done["undecided"]), *(cap_lines(done) if done["undecided"] else ())]
    reasons = as_xml_text("; ".join(causes))
    if stopped and done["undecided"]:
        error = as_xml_text(str(stopped.get("error") or ""))
        message = "; ".join(filter(None, (reasons, error)))
        yield "the run ended in order", Error(message, as_xml_text(str(stopped["reason"])))
        if gate is not None:  # undecided for the same reasons
            yield GATE, Skipped(reasons)
    elif done["undecided"]:
        yield GATE, Error(reasons, "undecided")
    elif gate is not None:
        is_open = any(clause["passed"] is None for clause in gate["clauses"])
        yield GATE, Failure(reasons, GATE) if not gate["passed"] else Skipped(reasons) if is_open else None


def _count(element: Any, counts: Counts) -> None:
    element.tests, element.failures, element.errors = counts.tests, counts.failures, counts.errors
    element.skipped, element.time = counts.skipped, round(counts.time, 3)


def _of_the_run(done: Mapping[str, Any]) -> dict[str, object]:
    cost = {f"run_cost_{unit}": amount for unit, amount in done["cost"].items()}
    caps = reached_caps(done)
    warnings = "; ".join(str(warning["message"]) for warning in done.get("warnings", ()))
    return {
        "warnings": warnings,
        "budget": "; ".join((*cap_lines(done), *([raise_caps_text(caps)] if caps else []))),
        "run_id": done["run_id"],
        "gate": gate_answer(done["gate"]),
        "coverage": exact(done["coverage"]),
        **cost,
    }


def _of_the_label(label: str, done: Mapping[str, Any]) -> dict[str, object]:
    """Return the figures of *label* in the document: the run's score for all metrics together or the only judge."""
    score = done["score"] or {}
    figures = (
        score if score.get("label") == label else {**done["metrics"], **criteria(done), **done["labels"]}.get(label, {})
    )
    numbers = {name: exact(figures.get(name)) for name in ("mean", "pass_rate", "ci_low", "ci_high")}
    places = (figures, *(done[section].get(label, {}) for section in ("labels", "metrics", "judges")))
    return {**numbers, "basis": next((basis for place in places if (basis := place.get("basis"))), None)}
