"""One subject under one label as a test case."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import attrs
import orjson

from dicast.reporting import JudgedSubject, Outcome, exact
from dicast.toolkit.printable import first_words

_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that no XML 1.0 document can hold (https://www.w3.org/TR/xml/#charsets)."""
_MESSAGE = 300


@attrs.define
class Counts:
    """The number of cases by their result, and their seconds."""

    tests: int = 0
    failures: int = 0
    errors: int = 0
    skipped: int = 0
    time: float = 0.0

    def with_results_skipped(self) -> Counts:
        """Return the counts of the cases as :func:`skip_results` writes them."""
        return attrs.evolve(self, failures=0, errors=0, skipped=self.skipped + self.failures + self.errors)

    def add(self, other: Counts) -> None:
        """Add *other*."""
        self.tests += other.tests
        self.failures += other.failures
        self.errors += other.errors
        self.skipped += other.skipped
        self.time += other.time


def case(subject: JudgedSubject, outcome: Outcome, group: str, *, content: bool) -> tuple[bytes, Counts]:
    """Return the case of *outcome* as a line of XML, and its counts; *group* is its class."""
    from junitparser import TestCase  # here, because only a run with such a sink needs it

    seconds = (outcome.milliseconds or 0) / 1000
    element: Any = TestCase(as_xml_text(subject.id), as_xml_text(group), seconds)
    add_properties(
        element,
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
        element.result = [result]
    if content and subject.content is not None:
        element.system_out = as_xml_text(_judged(subject))
    counts = Counts(1, outcome.passed is False, outcome.failure is not None, outcome.skipped is not None, seconds)
    return element.tostring().rstrip() + b"\n", counts


def _result(outcome: Outcome) -> Any:
    """Return the element with the reason why the case did not pass; None if it passed."""
    from junitparser import Error, Failure, Skipped  # as above

    if outcome.failure is not None:
        message = ": ".join(filter(None, (outcome.failure_words, outcome.reason)))
        element: Any = Error(_message(message), as_xml_text(outcome.failure))
    elif outcome.skipped is not None:
        return Skipped(_message(outcome.skipped))
    elif outcome.passed is False:
        why = f": {outcome.reason}" if outcome.reason else ""
        element = Failure(_message(f"{outcome.shortfall}{why}"), "score")
    else:
        return None
    if outcome.reason:
        element.text = as_xml_text(outcome.reason)
    return element


def skip_results(parts: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the cases in *parts* with ``skipped`` in place of ``failure`` and ``error``.

    The message starts with ``not passed:`` or ``not judged:``. A part may end within a case.
    """
    rest = b""
    for part in parts:
        cases, begin, rest = (rest + part).rpartition(b"<testcase ")  # other text has no <
        rest = begin + rest
        yield _skipped(cases)
    yield _skipped(rest)


def _skipped(cases: bytes) -> bytes:
    for element, words in (b"failure", b"not passed"), (b"error", b"not judged"):
        cases = cases.replace(b'<%b message="' % element, b'<skipped message="%b: ' % words)
        cases = cases.replace(b"</%b>" % element, b"</skipped>")
    return cases


def add_properties(element: Any, values: dict[str, object]) -> None:
    """Add to *element* the *values* that are present."""
    from junitparser import Properties, Property  # as above

    present = {name: str(value) for name, value in values.items() if value not in (None, "")}
    if present:
        listed: Any = Properties()  # type: ignore[no-untyped-call]  # the library has types for the most part
        for name, value in present.items():
            listed.add_property(Property(name, as_xml_text(value)))
        element.append(listed)


def as_xml_text(text: str) -> str:
    r"""*text* with an escape (``\u0000``) for each character that XML cannot hold."""
    return _NOT_XML.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _message(text: str) -> str:
    """*text* for an attribute, which CI systems show in one line."""
    line = " ".join(as_xml_text(text).split())
    return line if len(line) <= _MESSAGE else f"{first_words(line, _MESSAGE)}…"


def _judged(subject: JudgedSubject) -> str:
    content = subject.content or {}
    parts = ((name, content.get(name)) for name in ("input", "output", "reference"))
    return "\n".join(
        f"{name}: {value if isinstance(value, str) else orjson.dumps(value, default=str).decode()}"
        for name, value in parts
        if value is not None
    )
