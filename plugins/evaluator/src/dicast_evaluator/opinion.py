"""What the judges of this plugin share: what they show, and what they record of a model's reasons."""

from __future__ import annotations

import math

import orjson

from dicast.judging import BadReply, Capture, ReplyObject, Section, rationale_signals

_GAP = "\n[...]\n"
REASONS = ("rationale", "reasoning")


def section(title: str, value: object, most: int) -> Section:
    """A section of any JSON value; of a text that has more than *most* characters the middle is left out."""
    text = value if isinstance(value, str) else orjson.dumps(value).decode()
    if len(text) <= most:
        return Section(title, text)
    first = (most + 1) // 2
    shown = text[:first] + _GAP + text[len(text) - most // 2 :]
    return Section(title, shown, (f"{most} of {len(text)} characters, without the middle",))


def value_of(found: ReplyObject, key: str) -> object:
    """The value of *key*; None where there is none."""
    return next((member.value for member in found.members if member.key == key), None)


def confidence_of(found: ReplyObject) -> float:
    """How sure the model says that it is; 1 where it does not say."""
    return 1.0 if value_of(found, "confidence") is None else found.number("confidence")


def reasons_of(found: ReplyObject, capture: Capture) -> dict[str, object]:
    """Return the signals of the model's reasons: their hash, and by *capture* the text; none where the model gave no reasons.

    :raises BadReply: when they stand where what they quote could have become the verdict.
    """
    keys = [member.key for member in found.members]
    given = [key for key in REASONS if key in keys]
    if not given:
        return {}
    # What quotes the judged text may be ended by it: as the last key it reaches no number, and find_verdict looks after a rationale.
    if len(given) > 1 or (given == ["reasoning"] and keys[-1] != "reasoning"):
        raise BadReply("the verdict's reasons do not come last")
    return rationale_signals(found.text(given[0]).strip(), capture)


def number_of(found: ReplyObject, key: str) -> tuple[float, bool]:
    """The finite number at *key*, and whether it was written as text or as a boolean.

    :raises BadReply: when there is none.
    """
    value = value_of(found, key)
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
