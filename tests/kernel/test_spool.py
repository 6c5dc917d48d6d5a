"""Data outside of memory: scores for the statistics, units for a resumed run."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dicast._kernel.asking.earlier_units import EarlierUnits
from dicast._kernel.report.spool import BATCH, ScoreFile

SCORED = st.lists(st.tuples(st.none() | st.sampled_from("abc") | st.just(""), st.floats(0, 1)), min_size=1, max_size=40)


def spooled(pairs):
    spool = ScoreFile()
    spool.add(pairs)
    return spool


@given(SCORED, st.integers(0, 45), st.integers(0, 45))
def test_scores_come_back_by_rank(pairs, start, stop):
    spool = spooled(pairs)
    assert spool.count == len(pairs)
    assert spool.ascending(start, stop) == sorted(score for _, score in pairs)[start:stop]


@given(SCORED, st.data())
def test_the_trimmed_mean_is_exact(pairs, data):
    cut = data.draw(st.integers(0, (len(pairs) - 1) // 2))
    replies = sorted(score for _, score in pairs)[cut : len(pairs) - cut]
    assert spooled(pairs).trimmed(cut) == float(sum(map(Fraction, replies)) / len(replies))


@given(SCORED, st.floats(0, 1))
def test_residuals_are_summed_by_session_and_a_lone_score_is_its_own_cluster(pairs, mean):
    clusters = defaultdict(float)
    for number, (session, score) in enumerate(pairs):
        clusters[number if session is None else session] += score - mean
    count, squares = spooled(pairs).cluster_residuals(mean)
    assert count == len(clusters)
    assert squares == pytest.approx(sum(residual**2 for residual in clusters.values()), abs=1e-12)


def test_scores_are_all_there_beyond_a_batch():
    spool = spooled([("s", n / (2 * BATCH)) for n in range(2 * BATCH + 1)])
    assert spool.count == 2 * BATCH + 1
    assert spool.ascending(2 * BATCH, 2 * BATCH + 1) == [1.0]
    assert spool.trimmed(0) == 0.5
    spool.add([(None, 0.0)])
    assert spool.ascending(0, 3) == [0.0, 0.0, 1 / (2 * BATCH)]


@given(SCORED, SCORED, st.floats(0, 1))
def test_subtracted_scores_leave_the_others(pairs, others, mean):
    spool = spooled([*pairs, *others])
    spool.subtract(spooled(others))
    assert spool.count == len(pairs)
    assert spool.ascending(0, len(pairs)) == sorted(score for _, score in pairs)
    assert spool.ends() == (min(score for _, score in pairs), max(score for _, score in pairs))
    assert spool.cluster_residuals(mean) == pytest.approx(spooled(pairs).cluster_residuals(mean), abs=1e-12)


def test_equal_scores_of_many_subjects_count_each():
    spool = spooled([(None, 0.25)] * 3 * BATCH + [("s", 0.25)] * BATCH + [(None, 1.0)] * BATCH)
    assert spool.ascending(4 * BATCH - 1, 4 * BATCH + 1) == [0.25, 1.0]
    assert spool.trimmed(BATCH) == 0.25
    assert spool.cluster_residuals(0.5) == (4 * BATCH + 1, 3 * BATCH / 16 + (BATCH / 4) ** 2 + BATCH / 4)
    count = spool._database.execute("SELECT count(*) FROM scores").fetchone()[0]
    assert count <= 5  # rows of the temporary file, not one for each subject


UNIT = ("row", "7", "metrics")


def test_a_unit_is_as_its_newest_event_says():
    spool = EarlierUnits()
    assert spool.states("row", "7") == {}
    spool.note(UNIT, "E1", "open", 3)
    spool.note(("row", "7", "other"), "E2", "open", 4)
    spool.note(UNIT, "E1", "scored", 5)
    states = spool.states("row", "7")
    assert {label: (item.eval_id, item.state, item.seq, item.late) for label, item in states.items()} == {
        "metrics": ("E1", "scored", 5, False),
        "other": ("E2", "open", 4, False),
    }
    assert spool.states("turn", "7") == {}


@pytest.mark.parametrize(
    ("history", "late"),
    [(["open", "failed"], False), (["open", "failed", "open"], True), (["failed", "open", "scored"], True)],
)
def test_what_follows_a_failure_is_late(history, late):
    spool = EarlierUnits()
    for seq, state in enumerate(history):
        spool.note(UNIT, f"E{seq}", state, seq)
    assert spool.states("row", "7")["metrics"].late is late


def test_a_failure_stands_until_what_was_begun_after_it_ends():
    spool = EarlierUnits()
    for seq, state in enumerate(["open", "failed", "open"]):
        spool.note(UNIT, "E", state, seq)
    assert spool.states("row", "7")["metrics"].seq == 1
    spool.note(UNIT, "E", "scored", 3)
    assert spool.states("row", "7")["metrics"].seq == 3


def test_what_failed_and_what_was_retried_has_moved_in_the_order_of_reading():
    spool = EarlierUnits()
    for place, (id_, states) in enumerate({"d": "f", "a": "s", "c": "fs", "b": "o"}.items()):
        spool.note_read("row", id_, place)
        for state in states:
            for label in ("one", "other"):
                spool.note(("row", id_, label), "E", {"f": "failed", "s": "scored", "o": "open"}[state], 9 - place)
    assert list(spool.moved(retry=False)) == [("row", "c")]
    one_by_one = spool.moved(retry=True)
    assert next(one_by_one) == ("row", "d")
    for id_ in "dc":
        spool.forget("row", id_)
    assert list(one_by_one) == [("row", "c")]


def test_a_subject_is_read_where_it_was_read_first():
    spool = EarlierUnits()
    assert spool.read_at("row", "7") is None
    spool.note_read("row", "7", 4)
    spool.note_read("row", "7", 9)
    assert spool.read_at("row", "7") == 4
    assert spool.read_at("turn", "7") is None


def test_a_paid_answer_is_found_by_all_of_its_key():
    spool = EarlierUnits()
    key = ("row", "1", "metrics", "m", 0)
    spool.note_reply(key, b"old")
    spool.note_reply(key, b"new")
    assert spool.reply(key) == b"new"
    for place, other in enumerate(("turn", "2", "judge", "n", 1)):
        assert spool.reply((*key[:place], other, *key[place + 1 :])) is None


@settings(max_examples=3 * settings.default.max_examples // 10)
@given(st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("xy"), st.integers(0, 99)), max_size=12))
def test_reads_and_units_do_not_mix(notes):
    spool, reads, units = EarlierUnits(), {}, {}
    for kind, id_, seq in notes:
        spool.note_read(kind, id_, seq)
        reads.setdefault((kind, id_), seq)
        spool.note((kind, id_, "l"), "E", "scored", seq)
        units[kind, id_] = seq
    for key, seq in reads.items():
        assert spool.read_at(*key) == seq
        assert spool.states(*key)["l"].seq == units[key]
