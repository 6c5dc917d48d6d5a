"""The elements around the cases: the suite of a label, and the root."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dicast.reporting import criteria, exact, gate_answer

from .cases import Counts, add_properties, as_xml_text

STOPPED = Counts(tests=1, errors=1)
"""Counts of the suite of a run that did not end in order."""


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


def stopped_suite(done: Mapping[str, Any]) -> bytes:
    """Return the suite of a run that did not end in order, with an error that has the reasons; empty for other runs."""
    stopped = done["stopped"]
    if not (stopped and done["undecided"]):
        return b""
    from junitparser import Error, TestCase, TestSuite  # as above

    element: Any = TestSuite("run")
    case: Any = TestCase("the run ended in order", as_xml_text(str(done["name"])), 0.0)
    reasons = as_xml_text("; ".join(done["undecided"]))
    case.result = [Error(reasons, as_xml_text(str(stopped["reason"])))]
    element.add_testcase(case)
    _count(element, STOPPED)
    text: bytes = element.tostring()
    return text.rstrip() + b"\n"


def _count(element: Any, counts: Counts) -> None:
    element.tests, element.failures, element.errors = counts.tests, counts.failures, counts.errors
    element.skipped, element.time = counts.skipped, round(counts.time, 3)


def _of_the_run(done: Mapping[str, Any]) -> dict[str, object]:
    cost = {f"run_cost_{unit}": amount for unit, amount in done["cost"].items()}
    warnings = "; ".join(str(warning["message"]) for warning in done.get("warnings", ()))
    return {
        "warnings": warnings,
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
    bases = ", ".join(f"{basis} {count}" for basis, count in (figures.get("by_basis") or {}).items())
    return {**numbers, "basis": figures.get("basis") or bases}
