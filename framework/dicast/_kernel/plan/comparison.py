"""Comparison of a figure, or of its interval, with the line of a rule."""

from __future__ import annotations

from ..values.passes import TOLERANCE

Ends = tuple[float | None, float | None]
"""The low and the high end of an interval; None if they are not known."""


def compare(
    name: str, point: Ends, interval: Ends, rule: tuple[str, float, bool], *, is_point: bool
) -> tuple[bool | None, str]:
    """Return whether a figure is on the right side of a line, and the reason if it is not.

    The answer is None if the line is between the ends, or if an end is not known.

    :param name: the name of the figure in the reason.
    :param point: the figure, as the ends of its possible values.
    :param interval: its 95 % interval.
    :param rule: the name of the rule, its line, and whether the figure has to be above the line.
    :param is_point: compare *point*, else *interval*.
    """
    key, line, must_exceed = rule
    low, high = point if is_point else interval
    name = name if is_point else f"the 95 % interval of {name}"
    if low is None or high is None:
        return None, f"{name} is unknown, because it needs two or more sessions: {key} is {line:g}"
    *ends, line_text = distinct(line, low, high)
    range_text = " to ".join(dict.fromkeys(ends))
    is_met = low >= line - TOLERANCE if must_exceed else high <= line + TOLERANCE
    is_missed = high < line - TOLERANCE if must_exceed else low > line + TOLERANCE
    if is_met or is_missed:
        return is_met, f"{name} is {range_text}, {'below' if must_exceed else 'above'} {key} {line_text}"
    return None, f"{name} is {range_text}, with {key} {line_text} in between"


def distinct(line: float, *values: float) -> list[str]:
    """Return *values* with 4 digits and *line* with up to 6, or all with the digits that distinguish them from *line*."""
    digits = 4
    while digits < 17 and any(f"{value:.{digits}g}" == f"{line:.{digits}g}" for value in values if value != line):
        digits += 1
    return [*(f"{value:.{digits}g}" for value in values), f"{line:.{max(digits, 6)}g}"]
