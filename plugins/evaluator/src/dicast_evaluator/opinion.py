"""Code shared by the judges of this plugin: sections of prompts, and signals for a model's reasons."""

from __future__ import annotations

import math

import orjson

from dicast.judging import BadReply, Capture, ReplyObject, Section, rationale_signals

_GAP = "\n[...]\n"
REASONS = ("rationale", "reasoning")


def section(title: str, value: object, most: int) -> Section:
    """Return a section with any JSON value. A text of more than *most* characters loses its middle."""
    text = value if isinstance(value, str) else orjson.dumps(value).decode()
    if len(text) <= most:
        return Section(title, text)
    first = (most + 1) // 2
    excerpt = text[:first] + _GAP + text[len(text) - most // 2 :]
    return Section(title, excerpt, (f"{most} of {len(text)} characters, without the middle",))


def value_of(verdict: ReplyObject, key: str) -> object:
    """Return the value of *key*; None if it is missing."""
    return next((member.value for member in verdict.members if member.key == key), None)


def confidence_of(verdict: ReplyObject) -> float:
    """Return the model's stated confidence; 1 if it states none."""
    return 1.0 if value_of(verdict, "confidence") is None else verdict.number("confidence")


def reasons_of(verdict: ReplyObject, capture: Capture) -> dict[str, object]:
    """Return the signals of the model's reasons: their hash, and by *capture* the text; empty if the model gave no reasons.

    :raises BadReply: when their place allows a quotation in them to become the verdict.
    """
    keys = [member.key for member in verdict.members]
    keys_given = [key for key in REASONS if key in keys]
    if not keys_given:
        return {}
    # A quotation of judged text may end the reasons early. As the last key they cannot reach a number, and find_verdict handles a rationale.
    if len(keys_given) > 1 or (keys_given == ["reasoning"] and keys[-1] != "reasoning"):
        raise BadReply("the verdict's reasons do not come last")
    return rationale_signals(verdict.text(keys_given[0]).strip(), capture)


def number_of(verdict: ReplyObject, key: str) -> tuple[float, bool]:
    """Return the finite number at *key*, and whether it was written as text or as a boolean.

    :raises BadReply: when there is none.
    """
    value = value_of(verdict, key)
    if value is None:
        raise BadReply(f"LLM {key!r} field is missing")
    if not isinstance(value, float | bool | str):
        raise BadReply(f"LLM {key!r} field is not numeric")
    try:
        number = float(value)
    except ValueError as error:
        raise BadReply(f"LLM {key!r} field is not numeric") from error
    if not math.isfinite(number):
        raise BadReply(f"LLM {key} is not finite")
    return number, not isinstance(value, float)
