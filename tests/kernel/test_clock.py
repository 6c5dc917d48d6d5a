"""Ids that sort as they were made, and times."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dicast._kernel.values.clock import Clock, iso

ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
START = 1_790_000_000_000


def at(*milliseconds):
    """A clock that shows these times, one a look, and then the last of them."""
    left = list(milliseconds)
    return Clock(lambda: (left.pop(0) if len(left) > 1 else left[0]) * 1_000_000)


def milliseconds_of(ulid):
    number = 0
    for letter in ulid[:10]:
        number = number * 32 + ALPHABET.index(letter)
    return number


@given(st.lists(st.integers(0, 2**40), min_size=1, max_size=200))
def test_ids_only_rise_whatever_the_system_s_clock_does(times):
    clock = at(*times)
    ids = [clock.id() for _ in range(len(times) + 5)]
    assert ids == sorted(set(ids))


@given(st.lists(st.integers(0, 2**40), min_size=1, max_size=50))
def test_an_id_is_a_ulid_of_the_latest_time_that_was_seen(times):
    clock, newest = at(*times), 0
    for time in times:
        newest = max(newest, time)
        id_, stamped = clock.stamp()
        assert len(id_) == 26
        assert set(id_) <= set(ALPHABET)
        assert milliseconds_of(id_) == newest
        assert datetime.fromisoformat(stamped) == datetime.fromtimestamp(newest // 1000, UTC) + timedelta(
            milliseconds=newest % 1000
        )


def test_a_clock_that_goes_back_keeps_the_time_of_the_ids():
    clock = at(START + 5, START - 3_600_000, START + 4, START + 6)
    ids, times = zip(*(clock.stamp() for _ in range(4)), strict=True)
    assert [milliseconds_of(id_) - START for id_ in ids] == [5, 5, 5, 6]
    assert times[0] == times[1] == times[2] < times[3]


def test_more_ids_than_a_millisecond_holds_go_on_in_the_next():
    clock = at(START)
    first = clock.id()
    last = first
    for _ in range(2**20):
        id_ = clock.id()
        assert id_ > last
        last = id_
    assert 1 <= milliseconds_of(last) - milliseconds_of(first) <= 2


@given(st.lists(st.integers(1, 700), min_size=1, max_size=20))
def test_many_ids_follow_each_other_as_single_ids_do(counts):
    clock, ids, after = at(START), [], []
    for count in counts:
        many, time = clock.stamps(count)
        ids += many
        after.append(clock.stamp())
        assert (len(many), time) == (count, after[-1][1])
        assert many[-1] < after[-1][0]
    assert ids == sorted(set(ids))
    assert {len(id_) for id_ in ids} == {26}


@given(st.lists(st.integers(0, 3), min_size=1, max_size=400))
def test_three_ids_follow_each_other_as_single_ids_do(steps):
    clock, ids, newest = at(*(START + sum(steps[:place]) for place in range(len(steps)))), [], ""
    for _ in range(400):
        *three, time = clock.three_stamps()
        ids += three
        assert datetime.fromisoformat(time) >= datetime.fromtimestamp(milliseconds_of(three[0]) / 1000, UTC)
        assert time >= newest
        newest = time
    assert ids == sorted(set(ids))
    assert {len(id_) for id_ in ids} == {26}


def test_many_ids_go_on_in_the_next_millisecond():
    clock, last = at(START), ""
    for _ in range(1_500):
        ids, _ = clock.stamps(700)
        assert [last, *ids] == sorted({last, *ids})
        last = ids[-1]
    assert milliseconds_of(last) > START


def test_two_clocks_do_not_make_the_same_ids():
    assert len({at(START).id() for _ in range(200)}) == 200


def test_times_are_iso_8601_in_utc_with_milliseconds():
    assert iso(datetime(2026, 1, 31, 23, 30, 0, 1999, timezone(timedelta(hours=-2)))) == "2026-02-01T01:30:00.001Z"
    clock = at(START)
    assert clock.time() == clock.stamp()[1] == "2026-09-21T14:13:20.000Z"
    assert clock.day() == "2026-09-21"
    assert clock.after(86_400.5) == "2026-09-22T14:13:20.500Z"


@pytest.mark.parametrize(("milliseconds", "day"), [(-1, "2026-09-20"), (0, "2026-09-21")])
def test_a_day_begins_at_midnight_utc(milliseconds, day):
    midnight = int(datetime(2026, 9, 21, tzinfo=UTC).timestamp() * 1000)
    assert at(midnight + milliseconds).day() == day
