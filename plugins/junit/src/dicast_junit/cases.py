"""One subject under one label as a test case."""

from __future__ import annotations

import re
from typing import Any

import attrs
import orjson

from dicast.reporting import JudgedSubject, Outcome, exact

_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What no XML 1.0 document can hold (https://www.w3.org/TR/xml/#charsets)."""
_MESSAGE = 300


@attrs.define
class Counts:
    """How many cases there are, what came of them, and the seconds they took."""

    tests: int = 0
    failures: int = 0
    errors: int = 0
    skipped: int = 0
    time: float = 0.0

    def add(self, other: Counts) -> None:
        """Add *other*."""
        self.tests += other.tests
        self.failures += other.failures
        self.errors += other.errors
        self.skipped += other.skipped
        self.time += other.time


def case(subject: JudgedSubject, outcome: Outcome, group: str, *, content: bool) -> tuple[bytes, Counts]:
    """The case of *outcome*, in a line of XML, and how it counts; *group* is the class that it is of."""
    from junitparser import TestCase  # here, because only a run with such a sink needs it

    seconds = (outcome.milliseconds or 0) / 1000
    made: Any = TestCase(as_xml_text(subject.id), as_xml_text(group), seconds)
    add_properties(
        made,
        {
            "score": exact(outcome.score),
            "raw": exact(outcome.raw),
            "pass_at": exact(outcome.pass_at),
            "basis": outcome.basis,
            "cost_usd": outcome.cost_usd,
            "session_id": subject.session_id,
            "finish_reason": subject.finish_reason,
            "reply_finish_reason": outcome.finish_reason,
        },
    )
    result = _result(outcome)
    if result is not None:
        made.result = [result]
    if content and subject.content is not None:
        made.system_out = as_xml_text(_judged(subject))
    counts = Counts(1, outcome.passed is False, outcome.failure is not None, outcome.skipped is not None, seconds)
    return made.tostring().rstrip() + b"\n", counts


def _result(outcome: Outcome) -> Any:
    """The element that says why the case did not pass; None where it did."""
    from junitparser import Error, Failure, Skipped  # as above

    if outcome.failure is not None:
        made: Any = Error(_message(f"{outcome.failure}: {outcome.reason or ''}"), as_xml_text(outcome.failure))
    elif outcome.skipped is not None:
        return Skipped(_message(outcome.skipped))
    elif outcome.passed is False:
        why = f": {outcome.reason}" if outcome.reason else ""
        made = Failure(_message(f"{outcome.shortfall}{why}"), "score")
    else:
        return None
    if outcome.reason:
        made.text = as_xml_text(outcome.reason)
    return made


def add_properties(element: Any, values: dict[str, object]) -> None:
    """Give *element* those of *values* that are there."""
    from junitparser import Properties, Property  # as above

    there = {name: str(value) for name, value in values.items() if value not in (None, "")}
    if there:
        listed: Any = Properties()  # type: ignore[no-untyped-call]  # the library has types for the most part
        for name, value in there.items():
            listed.add_property(Property(name, as_xml_text(value)))
        element.append(listed)


def as_xml_text(text: str) -> str:
    r"""*text* with an escape (``\u0000``) for each character that XML cannot hold."""
    return _NOT_XML.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _message(text: str) -> str:
    """*text* for an attribute, which CI systems show in one line."""
    shown = " ".join(as_xml_text(text).split())
    return shown if len(shown) <= _MESSAGE else f"{shown[:_MESSAGE]}…"


def _judged(subject: JudgedSubject) -> str:
    told = subject.content or {}
    parts = ((name, told.get(name)) for name in ("input", "output", "reference"))
    return "\n".join(
        f"{name}: {value if isinstance(value, str) else orjson.dumps(value, default=str).decode()}"
        for name, value in parts
        if value is not None
    )
