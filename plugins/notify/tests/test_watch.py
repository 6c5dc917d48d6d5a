"""Messages during a watch: a decline is found while verdicts arrive, and reported once."""

from __future__ import annotations

import asyncio
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dicast import Entry, Event, RunContext, Secret
from dicast_notify import Webhook
from dicast_notify.channel import WebhookError
from dicast_notify.decline import BLOCK, DeclineReader, lower_tail

RUN = "01JZ0000000000000000000000"
PAYLOAD = {
    "name": "live",
    "kind": "watch",
    "live": True,
    "counted": ["turn"],
    "judges": ["turn"],
    "metrics": [],
    "pass_at": {"turn": 0.5},
}


def event(type, payload, number):
    return Event(f"{number:026d}", type, "2026-01-02T03:04:05.678Z", RUN, payload, None, None, "turn", f"t{number}")


STARTED = event("run.started", PAYLOAD, 0)


def verdicts(scores, start=1, judge="turn"):
    return [
        event("eval.completed", {"judge": judge, "score": score}, number) for number, score in enumerate(scores, start)
    ]


def watch(receiver, *batches, earlier=(), **options):
    """Write *batches* in a watch whose ledger has the events *earlier*; return the counts of sent messages."""
    rows = [Entry(number, item, "", "") for number, item in enumerate(earlier, 1)]
    run = RunContext(RUN, "live", Path(), resumed=bool(earlier), live=True, read=lambda query: iter(rows))

    async def go():
        async with Webhook(Secret(receiver.url), **options).open(run) as live:
            return [await live.write(batch) for batch in batches] + [await live.close()]

    return asyncio.run(go())


def test_a_decline_is_sent_while_the_watch_goes_on_and_once(receiver):
    good, bad = verdicts([1.0] * 40), verdicts([0.0] * 60, start=41)
    counts = watch(receiver, [STARTED], good, bad[:BLOCK], bad[BLOCK:])
    assert counts == [0, 0, 1, 0, 0]
    (message,) = receiver.messages
    assert message["trigger"] == "worse"
    assert message["kind"] == "watch"
    assert message["worse"] == ["turn: 0 of the newest 20 verdicts pass (0.0%); before, 40 of 40 passed (100.0%)"]


def test_a_second_decline_after_a_recovery_is_sent_too(receiver):
    scores = [1.0] * 40 + [0.0] * 20 + [1.0] * 40 + [0.0] * 20
    watch(receiver, [STARTED], verdicts(scores))
    assert len(receiver.messages) == 2


def test_verdicts_of_other_labels_and_failed_judgments_do_not_count(receiver):
    failed = [event("eval.failed", {"judge": "turn", "failure_mode": "timeout"}, 100 + number) for number in range(40)]
    watch(receiver, [STARTED], verdicts([1.0] * 40), verdicts([0.0] * 40, 200, judge="recorded/other"), failed)
    assert receiver.messages == []


def test_a_restarted_watch_goes_on_counting_and_repeats_no_message(receiver):
    scores = verdicts([1.0] * 40 + [0.0] * 20)
    watch(receiver, verdicts([0.0] * 20, start=41), earlier=[STARTED, *scores[:40]])
    assert len(receiver.messages) == 1
    watch(receiver, verdicts([0.0] * 20, start=61), earlier=[STARTED, *scores])
    assert len(receiver.messages) == 1


def test_a_message_that_cannot_be_sent_waits_and_holds_nothing_up(receiver):
    receiver.answers = [503]
    good, bad = verdicts([1.0] * 40), verdicts([0.0] * 20, start=41)
    assert watch(receiver, [STARTED], good, bad) == [0, 0, 0, 1]
    assert len(receiver.messages) == 1


def test_a_message_that_cannot_be_sent_at_the_end_is_reported(receiver):
    receiver.answers = [503, 503]
    with pytest.raises(WebhookError, match="HTTP 503"):
        watch(receiver, [STARTED], verdicts([1.0] * 40 + [0.0] * 20))


@given(st.integers(1, 30), st.integers(1, 30), st.data())
def test_the_probability_is_that_of_the_hypergeometric_distribution(n, before_n, data):
    passed, before = data.draw(st.integers(0, n)), data.draw(st.integers(0, before_n))
    passes, total = passed + before, n + before_n
    ways = [math.comb(passes, k) * math.comb(total - passes, n - k) for k in range(passed + 1)]
    assert lower_tail(passed, n, before, before_n) == pytest.approx(sum(ways) / math.comb(total, n))


def test_an_unchanged_rate_causes_few_messages():
    """Of 200 watches with an unchanged rate, at most 5 % may report a decline; the test's discreteness makes it fewer."""
    import random

    draw = random.Random(38)
    false = 0
    for _ in range(200):
        reader = DeclineReader()
        reader.take(STARTED)
        scores = [float(draw.random() < 0.8) for _ in range(400)]
        false += sum(reader.take(item) is not None for item in verdicts(scores)) > 0
    assert false <= 10
