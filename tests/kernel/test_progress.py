"""The line that says how far a run is."""

from __future__ import annotations

import io
import re
from contextlib import redirect_stderr

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dicast._kernel.cli.progress import EVERY_SECONDS, Pace, Progress
from dicast._kernel.report.batches import Batches
from dicast._kernel.report.fold import Report
from dicast._kernel.values import Cost
from dicast.toolkit.printable import Printable


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def shown(monkeypatch):
    """The lines that are written over each other, without colours, when a run has judged so many at such seconds."""
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.delenv("NO_COLOR", raising=False)

    def show(looks, expected=None, stream=None, plain=False, **fields):
        report, now = Report(), [0.0]
        report.expected = expected
        for name, value in fields.items():
            setattr(report, name, value)
        stream = Terminal() if stream is None else stream
        with redirect_stderr(Printable(stream, plain=plain)), Progress(lambda: now[0]) as progress:
            for seconds, judged in looks:
                now[0], report.judged = seconds, judged
                progress.update(report)
        return [re.sub(r"\x1b\[\d+(;\d+)*m|━| (?=\d+ of)", "", line) for line in stream.getvalue().split("\r\x1b[K")]

    return show


def test_it_shows_total_failures_rate_time_left_and_spend(shown):
    looks = [(second, 10 * second) for second in range(7)]
    spent = {"usd": Cost.parse("0.02 usd"), "msat": Cost.zero("msat")}
    first, *lines, last = shown(looks, expected=600, failed=1200, spent=spent)
    assert (first, last) == ("", "")  # it is gone when the run ends
    assert lines[0] == "10 of 600 judged · 1,200 failed · 10/s · spent 0.02 usd"
    assert lines[-1] == "60 of 600 judged · 1,200 failed · 10/s · 54 s left · spent 0.02 usd"


def test_without_a_total_it_shows_what_is_known(shown):
    assert shown([(0, 0), (5, 25)])[-2] == "25 judged · 5.0/s · spent nothing"


def test_it_shows_the_calls_that_wait_for_a_batch(shown):
    batches = Batches({"k": {"calls": 1200}})
    assert (
        shown([(0, 0), (5, 25)], batches=batches)[-2]
        == "25 judged · 5.0/s · 1,200 calls wait for a batch · spent nothing"
    )


def test_it_is_no_longer_than_the_terminal_is_wide(shown, monkeypatch):
    monkeypatch.setenv("COLUMNS", "30")
    assert shown([(0, 0), (5, 25)], expected=100)[-2] == "25 of 100 judged · 5.0/s · 1…"


def test_it_is_silent_where_it_cannot_be_written_over_or_is_not_wanted(shown, monkeypatch):
    assert shown([(0, 0), (5, 25)], stream=io.StringIO()) == [""]
    assert shown([(0, 0), (5, 25)], plain=True) == [""]
    monkeypatch.setenv("TERM", "dumb")
    assert shown([(0, 0), (5, 25)]) == [""]


def test_what_is_written_meanwhile_takes_its_place_and_stays_escaped(shown):
    stream = Terminal()
    with redirect_stderr(Printable(stream)) as err, Progress(iter([0, 9]).__next__) as progress:
        progress.update(Report())
        err.write("\x1b[2Jfrom a plugin\n")
    assert stream.getvalue() == "\r\x1b[K0 judged · 0.0/s · spent nothing\r\x1b[K\\u001b[2Jfrom a plugin\n"


def test_what_an_earlier_process_has_judged_counts_for_no_rate(shown):
    assert "· 10/s · 49 s left ·" in shown([(0, 500), (5, 550)], expected=1040)[-2]


def test_the_next_experiment_of_a_suite_begins_anew(shown):
    *_, last, _ = shown([(0, 0), (5, 500), (6, 0), (11, 50)], expected=100)
    assert last == "50 of 100 judged · 10/s · 5 s left · spent nothing"


@given(st.integers(1, 64), st.floats(0.01, 20), st.floats(0, 5), st.integers(1, 5000))
def test_the_time_left_never_rises_under_a_steady_rate(together, apart, late, total):
    """Many are judged at once, at the same distances, and looked at twice a second."""
    pace, told, now, end = Pace(), [], 0.0, late + apart * (total / together + 1)
    step = max(EVERY_SECONDS, end / 500)
    while now < end:
        pace.look(min(total, together * int(max(0.0, now - late) / apart)), now)
        told.append(pace.left(total, now))
        now += step
    left = [item for item in told if item is not None]
    assert left == sorted(left, reverse=True)


def test_the_time_left_rises_where_the_rate_falls_for_good():
    pace = Pace()
    for second in range(200):
        pace.look(10 * second if second < 20 else 200 + (second - 20), second)
        if second == 19:
            early = pace.left(1000, second)
    assert pace.left(1000, 199) > early
    assert pace.left(1000, 10_000) is None  # nothing comes any more


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (59, "59 s"),
        (60, "1 min 00 s"),
        (61, "1 min 01 s"),
        (3599, "59 min 59 s"),
        (3600, "1 h 00 min"),
        (7265, "2 h 01 min"),
    ],
)
def test_the_time_left_is_in_two_units(shown, seconds, words):
    assert f"· 10/s · {words} left ·" in shown([(0, 0), (5, 50)], expected=50 + 10 * seconds)[-2]


def test_the_line_is_drawn_every_half_second(shown):
    lines = shown([(0.49, 1), (0.5, 2), (0.99, 3), (1.0, 4)])
    assert [line.partition(" ")[0] for line in lines] == ["", "2", "4", ""]


@pytest.mark.parametrize(
    ("judged", "at", "now", "left"),
    [(10, 3.0, 3.0, 27.0), (10, 3.0, 6.0, 27.0), (10, 3.0, 6.01, None), (10, 2.99, 2.99, None), (9, 3.0, 3.0, None)],
)
def test_the_time_left_is_known_after_3_seconds_and_10_subjects_until_a_run_stalls(judged, at, now, left):
    pace = Pace()
    pace.look(0, 0.0)
    pace.look(judged, at)
    assert pace.left(100, now) == left
    assert pace.left(None, now) is None


def test_a_larger_time_left_is_shown_when_it_is_more_than_a_quarter_larger():
    pace = Pace()
    pace.look(0, 0.0)
    pace.look(10, 10.0)
    assert pace.left(20, 10.0) == 10.0
    pace.look(11, 13.75)
    assert pace.left(21, 13.75) == 10.0  # exactly 12.5
    assert pace.left(22, 13.75) == 13.75
    assert pace.left(5, 13.75) == 0
    assert Pace().rate(0.0) == 0.0
