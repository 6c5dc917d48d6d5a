"""Timer of calls: no tick leaves a time limit behind."""

from __future__ import annotations

import sys

import pytest

from dicast._kernel.timing.timer import Overtime, Timer


def tick_at(timer, number):
    """Return a profile function that ticks at the event *number* of a call; the system delivers signals at these places."""
    events = iter(range(1000))

    def profile(frame, event, argument):
        if event != "call" and next(events) == number:
            timer.look()

    return profile


@pytest.mark.parametrize("number", range(12))
def test_a_tick_at_any_place_of_an_aborted_call_leaves_no_limit(number):
    timer = Timer()
    result = None
    with timer.ticking(lambda: True):  # the run has to stop
        sys.setprofile(tick_at(timer, number))
        try:
            result = timer.patiently(abs, -1, 60, patience=0)
        except Overtime:
            result = Overtime
        finally:
            sys.setprofile(None)
    assert timer.deadline == 0
    assert result in (1, Overtime)
