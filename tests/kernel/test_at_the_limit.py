"""Figures at their limits: lines, lists of batches, documents of older versions, prices, clocks and records."""

from __future__ import annotations

import copy
from decimal import Decimal
from types import SimpleNamespace

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dicast import Event, Media, Price, Reply, Results, Secret, Token, Usage
from dicast._kernel.events import BATCH_CREATED, BATCH_EVENTS, BATCH_INTENDED
from dicast._kernel.plan.comparison import compare, distinct
from dicast._kernel.plan.secret_mask import SecretMask
from dicast._kernel.records.passes import pair_passes
from dicast._kernel.report.batches import Batches, waiting_batches
from dicast._kernel.report.endings import EndingNotes
from dicast._kernel.report.older import current_document
from dicast._kernel.report.recorded import CATEGORIES, RecordedTally
from dicast._kernel.report.tally import Rows
from dicast._kernel.report.weighted import weighted_interval
from dicast._kernel.values.aggregation import mean
from dicast._kernel.values.clock import Clock
from dicast._kernel.values.errors import ConfigError, LedgerError, Problem
from dicast._kernel.values.passes import TOLERANCE
from dicast._kernel.values.read_only import ReadOnlyDict, ReadOnlyList, read_only
from dicast._kernel.values.reply import KeptReply
from dicast.toolkit.intervals import wilson


def event(type, payload, kind="row", id="x"):
    return Event("id", type, "2026-01-01T00:00:00.000Z", "run", payload, subject_kind=kind, subject_id=id)


LINE = 0.7
WITHIN, BEYOND = LINE - TOLERANCE / 2, LINE - 2 * TOLERANCE


@pytest.mark.parametrize(
    ("ends", "must_exceed", "answer"),
    [
        ((LINE, LINE), True, True),
        ((WITHIN, 0.9), True, True),
        ((BEYOND, 0.9), True, None),
        ((0.1, BEYOND), True, False),
        ((0.1, WITHIN), True, None),
        ((0.1, LINE), False, True),
        ((0.1, 2 * LINE - WITHIN), False, True),
        ((0.1, 2 * LINE - BEYOND), False, None),
        ((2 * LINE - BEYOND, 0.9), False, False),
        ((2 * LINE - WITHIN, 0.9), False, None),
        ((None, 0.9), True, None),
        ((0.9, None), True, None),
    ],
)
@pytest.mark.parametrize("is_point", [True, False])
def test_a_figure_is_on_the_right_side_of_a_line_up_to_rounding(ends, must_exceed, answer, is_point):
    other = (None, None)
    point, interval = (ends, other) if is_point else (other, ends)
    assert compare("it", point, interval, ("rule", LINE, must_exceed), is_point=is_point)[0] is answer


@pytest.mark.parametrize(
    ("ends", "must_exceed", "reason"),
    [
        ((0.5, 0.5), True, "it is 0.5, below rule 0.7"),
        ((0.5, 0.6), True, "it is 0.5 to 0.6, below rule 0.7"),
        ((0.8, 0.9), False, "it is 0.8 to 0.9, above rule 0.7"),
        ((0.5, 0.9), False, "it is 0.5 to 0.9, with rule 0.7 in between"),
        ((None, None), False, "it is unknown, because it needs two or more sessions: rule is 0.7"),
    ],
)
def test_the_reason_names_the_ends_and_the_line(ends, must_exceed, reason):
    assert compare("it", ends, (None, None), ("rule", LINE, must_exceed), is_point=True)[1] == reason
    assert (
        compare("it", (0, 0), ends, ("rule", LINE, must_exceed), is_point=False)[1] == f"the 95 % interval of {reason}"
    )


@pytest.mark.parametrize(
    ("line", "values", "texts"),
    [
        (0.7, [0.65, 0.7], ["0.65", "0.7", "0.7"]),
        (0.123456, [0.1234], ["0.1234", "0.123456"]),
        (0.12345, [0.12346], ["0.12346", "0.12345"]),
        (0.7, [0.7000001, 0.9], ["0.7000001", "0.9", "0.7"]),
        (0.1, [0.1 + 2**-55], ["0.10000000000000003", "0.10000000000000001"]),
    ],
)
def test_values_have_the_digits_that_distinguish_them_from_the_line(line, values, texts):
    assert distinct(line, *values) == texts


def intended(key, until="2026-01-02", calls=2):
    about = {"key": key, "model": "m", "endpoint": "e", "until": until, "calls": ["a"] * calls}
    return event("batch.intended", about)


def test_batches_are_open_until_they_end():
    batches = Batches()
    assert batches.figures() == {}
    (ended,) = [type for type in BATCH_EVENTS if type not in (BATCH_CREATED, BATCH_INTENDED)][:1]
    first, second = (attrs.evolve(intended(key), type=BATCH_INTENDED) for key in "ab")
    events = [
        first,
        second,
        event(BATCH_CREATED, {"key": "a", "batch_id": "b-1"}),
        event(BATCH_CREATED, {"key": "c", "batch_id": "b-2"}),
    ]
    for each in events:
        batches.observe(each)
    document = {"key": "a", "model": "m", "endpoint": "e", "until": "2026-01-02", "batch_id": "b-1", "calls": 2}
    assert batches.figures() == {"batches": [document, document | {"key": "b", "batch_id": None}]}
    read = [SimpleNamespace(event=each) for each in events]
    for now, keys in (("2026-01-01", ["a", "b"]), ("2026-01-02", ["a", "b"]), ("2026-01-03", [])):
        assert [batch["key"] for batch in waiting_batches(lambda _: iter(read), "run", now)] == keys
    for key, batch_id in (("a", "b-1"), ("b", None), ("a", "b-1")):
        batches.observe(event(ended, {"key": key, "batch_id": batch_id}))
    assert (batches.open, batches.ended_count) == ({}, 1)


OLD = {"scored": 3, "failed": 1, "unaffordable": 2, "score": None, "judges": {}}


def gate(*rules, passed=True, **more):
    return {
        "passed": passed,
        "reasons": ["r"],
        "clauses": [{"rule": rule, "line": line} for rule, line in rules],
        **more,
    }


@pytest.mark.parametrize(
    ("old", "is_explicit", "undecided"),
    [
        (None, False, []),
        (gate(), False, []),
        (gate(("min_coverage", 0.95)), False, []),
        (gate(("min_coverage", 0.8)), True, []),
        (gate(("min_coverage", 0.95), ("min_score", 0.9)), True, []),
        (gate(("min_score", 0.9), passed=None), True, ["r"]),
        (gate(("min_coverage", 0.95), passed=None, given=True), True, ["r"]),
        (gate(("min_score", 0.9), given=False), False, []),
    ],
)
def test_the_gate_of_an_older_document_is_kept_if_the_file_had_one(old, is_explicit, undecided):
    done = current_document(OLD | {"gate": old})
    assert done["gate"] == (old if is_explicit else None)
    assert done["undecided"] == undecided


def test_the_labels_of_an_older_document_are_its_score_and_its_judges():
    score = {"label": "metrics", "mean": 0.5, "by_tier": {"truth": 2, "proxy": 1, "human": 0}}
    judges = {"metrics": {"mean": 0.1}, "pair": {"mean": 0.25, "total": 5, "scored": 3}, "odd": {"scored": 3}}
    labels = current_document(OLD | {"gate": None, "score": score, "judges": judges})["labels"]
    assert labels["metrics"] == score | {"basis": "proxy", "scored": 3, "failed": 1, "total": 6}
    assert (labels["pair"]["failed"], labels["pair"]["mean"], labels["pair"]["pass_rate"]) == (2, 0.25, None)
    assert "failed" not in labels["odd"]
    assert [*labels] == ["metrics", "pair", "odd"]
    assert current_document({"undecided": ["x"]}) == {"undecided": ["x"]}
    without = current_document({"scored": 3, "failed": 1, "gate": None, "score": {"mean": 0.5}, "judges": None})
    assert without["labels"] == {}


def number(score, basis="model", raw=None, category=None):
    payload = {"score": score, "basis": basis, "signals": {} if category is None else {"category": category}}
    return event("eval.completed", payload | ({} if raw is None else {"raw": raw}))


def test_scores_of_other_tools_have_a_mean_a_basis_and_categories():
    tally = RecordedTally()
    assert (tally.basis(), tally.share({"row": 3}, 0)) == (None, None)
    assert tally.add([number(0.5, "human"), number(1.0, "truth"), number(None, "human", category="late")]) == [
        0.5,
        1.0,
        None,
    ]
    assert (tally.basis(), tally.by_basis()) == ("truth", {"human": 2, "truth": 1})
    assert (tally.mean(), tally.scored, tally.total, tally.is_raw) == (0.75, 2, 3, False)
    assert tally.share({"row": 3, "turn": 9}, 1) == 0.5
    assert tally.share({"row": 1}, 0) == 1.0
    tally.add([number(None, "model", raw=7.0)])
    assert (tally.basis(), tally.is_raw, tally.document()["scale"]) == ("proxy", True, "raw")
    assert tally.document()["categories"] == {"late": 1}


def test_categories_beyond_the_limit_are_counted_together():
    tally = RecordedTally()
    tally.add([number(None, category=f"c{at}") for at in range(CATEGORIES + 2)] + [number(None, category="c0")])
    assert len(tally.categories) == CATEGORIES + 1
    assert (tally.categories["c0"], tally.categories["(other categories)"]) == (2, 2)


def retried(attempts, most=3):
    return event("record", {"retry": {"attempts": attempts, "max_attempts": most}, "failure_mode": "timeout"})


def test_retries_of_rows_are_counted_and_exhausted_ones_apart():
    rows = Rows()
    rows.add(event("record", {}))
    rows.fail(event("record", {"failure_mode": "timeout"}))
    assert rows.retry_summary() is None
    for each in (retried(3), retried(0), retried("many")):
        rows.add(each)
    for each in (retried(2), retried(3), retried(4), retried(2, None), retried("x")):
        rows.fail(each)
    assert rows.retry_summary() == {"total_requests": 10, "total_retries": 2 + 1 + 2 + 3 + 1, "exhausted": 3}
    for _ in range(9):
        rows.fail(event("record", {"failure_mode": "crashed"}, id="y"))
    assert len(rows.failures) == 10
    assert rows.failures[0] == {"subject_kind": "row", "subject_id": "x", "failure_mode": "timeout"}


def verdict(cut=None, reason=None):
    return {"signals": {"cut_replies": cut, "finish_reason": reason}}


def test_cut_replies_and_unknown_reasons_are_warnings_by_label():
    notes = EndingNotes()
    for payload in (verdict(1), verdict(0), verdict(True), verdict("x"), {"signals": None}):
        notes.note_verdict("one", payload)
    (warning,) = notes.warnings(None)
    assert warning["message"] == (
        "the token limit cut replies of one in 1 judgment, 0 of them without a verdict; raise max_output_tokens or max_reasoning_tokens"
    )
    notes.note_verdict("one", verdict(3))
    notes.note_failure("one", event("eval.failed", {"finish_reason": "length"}))
    notes.note_failure("one", event("eval.failed", {"finish_reason": "stop"}))
    (warning,) = notes.warnings(None)
    assert (warning["judgments"], warning["failed"]) == (3, 1)
    assert "in 3 judgments, 1 of them" in warning["message"]


def test_at_most_three_unknown_reasons_are_named():
    notes = EndingNotes()
    for reason, times in (("a", 4), ("b", 3), ("c", 2), ("d", 1)):
        for _ in range(times):
            notes.note_verdict("one", verdict(reason=reason))
    (warning,) = notes.warnings(None)
    assert (
        warning["message"] == "verdicts of one have replies that ended for unknown reasons: 'a' (4), 'b' (3), 'c' (2)"
    )
    assert warning["verdicts"] == 10


def test_a_failed_task_is_counted_once_for_each_subject():
    notes = EndingNotes()
    for id, label in (("x", "one"), ("x", "two"), ("y", "one")):
        notes.note_failure(label, event("eval.failed", {"finish_reason": "length", "origin": "task"}, id=id))
    (warning,) = notes.warnings("the task")
    assert (warning["label"], warning["judgments"], warning["failed"]) == ("task", 2, 2)
    assert "no output of 2 rows; raise max_output_tokens of the task" in warning["message"]


def test_outputs_that_ended_early_are_warnings_by_kind():
    notes = EndingNotes()
    for kind, ending in (
        ("row", "length"),
        ("row", "length"),
        ("turn", "length"),
        ("row", "content_filter"),
        ("row", "stop"),
    ):
        notes.note_output(event("record", {}, kind), ending)
    cut, *refused = notes.warnings("the task")
    assert cut["subjects"] == {"row": 2, "turn": 1}
    assert "2 rows and 1 turn" in cut["message"]
    assert cut["message"].endswith("; raise max_output_tokens of the task, or max_reasoning_tokens of its model")
    assert [warning["subjects"] for warning in refused] == [{"row": 1}]
    assert "max_output_tokens" not in refused[0]["message"]
    assert "max_output_tokens" not in notes.warnings(None)[0]["message"]


def test_the_interval_of_a_weighted_rate_is_that_of_its_linearized_variance():
    clusters = [(2.0, 1.0), (1.0, 0.0), (3.0, 3.0), (1.5, 0.5)]
    total = sum(weight for weight, _ in clusters)
    rate = sum(passed for _, passed in clusters) / total
    variance = 4 / 3 * sum((passed - rate * weight) ** 2 for weight, passed in clusters) / total**2
    effective = rate * (1 - rate) / variance
    assert weighted_interval(clusters, 100)[:2] == pytest.approx(wilson(rate, effective))
    assert weighted_interval([*clusters, (0.0, 0.0)], 100) == weighted_interval(clusters, 100)
    assert weighted_interval(clusters, 2)[:2] == pytest.approx(wilson(rate, 2))
    assert weighted_interval(clusters[:1], 100) is None
    kish = total**2 / sum(weight**2 for weight, _ in clusters)
    for share in (0.0, 1.0):
        alike = [(weight, share * weight) for weight, _ in clusters]
        assert weighted_interval(alike, 100)[:2] == pytest.approx(wilson(share, kish))
    equal = [(1.0, 0.5)] * 4
    assert weighted_interval(equal, 8)[:2] == pytest.approx(wilson(0.5, 8))


PRICE = Price(Decimal(10), Decimal(40), Decimal(1), Decimal(15))


def test_cached_and_written_input_have_prices_of_their_own():
    usage = Usage(1000, 100, cached_input_tokens=300, cache_written_tokens=200)
    assert PRICE.cost(usage).amount == Decimal(500 * 10 + 300 * 1 + 200 * 15 + 100 * 40) / 1_000_000
    full = attrs.evolve(PRICE, cached_input_per_mtok=None, cache_write_per_mtok=None)
    assert full.cost(usage).amount == Decimal(1000 * 10 + 100 * 40) / 1_000_000
    assert PRICE.cost(Usage(0, 0)).is_zero
    assert PRICE.cost(usage).pricing_version == "10/40 usd per Mtok"
    assert PRICE.most(Usage(1000, 0)).amount == Decimal(15_000) / 1_000_000
    cheaper = attrs.evolve(PRICE, cache_write_per_mtok=Decimal(10))
    assert cheaper.most(Usage(1000, 0)).amount == Decimal(10_000) / 1_000_000


@pytest.mark.parametrize(
    ("kind", "data", "size", "tokens"),
    [
        ("image", "A" * 400, 300, 16_384),
        ("audio", "A" * 404, 303, 16),
        ("audio", "A" * 400, 300, 15),
        ("file", "A" * 400, 300, 16_684),
        ("file", None, 20_000_000, 2_000_000),
        ("audio", None, 20_000_000, 1_000_000),
    ],
)
def test_media_have_a_size_and_a_bound_of_tokens(kind, data, size, tokens):
    media = Media(kind, "x/y", "[m]", data=data, url=None if data else "https://example.org/x")
    assert (media.size, media.most_tokens) == (size, tokens)


@pytest.mark.parametrize("left", [1, 2, 3, 10])
def test_ids_that_are_made_together_go_up_beyond_the_last_of_a_millisecond(left):
    clock = Clock(lambda: 1_700_000_000_000_000_000)
    clock.id()
    clock._count = (1 << 20) - left  # noqa: SLF001  # as after a million ids
    ids, time = clock.stamps(4)
    following = clock.id()
    assert (len(ids), len({*ids, following})) == (4, 5)
    assert [*ids, following] == sorted([*ids, following])
    assert time.startswith("2023-11-14T22:13:20.00")
    first, *_ = clock.stamps(1)[0]
    assert first > following


def test_copies_of_read_only_values_can_be_changed():
    value = read_only({"a": [1, {"b": 2}], "c": (1, [2])})
    assert type(value) is ReadOnlyDict
    assert type(value["a"]) is ReadOnlyList
    shallow, deep = copy.copy(value), copy.deepcopy(value)
    assert (type(shallow), type(deep), type(deep["a"]), type(deep["a"][1])) == (dict, dict, list, dict)
    assert shallow == deep == value
    items = copy.copy(value["a"])
    items.append(3)
    assert (len(items), len(value["a"]), type(copy.deepcopy(value["a"]))) == (3, 2, list)
    cycle = []
    cycle.append(cycle)
    assert read_only(cycle) is cycle


def results(**members):
    return Results("run", "name", lambda: iter(()), **members)


def test_runs_differ_in_fingerprints_models_and_refused_parameters():
    digests = {"judges[a]": "1", "source": "2"}
    plain = results(fingerprints=digests)
    assert plain.differs(results()) == results().differs(plain) == ["fingerprints"]
    assert plain.differs(results(fingerprints=digests | {"task": "3", "source": "x"})) == ["source", "task"]
    first = results(
        fingerprints=digests, models={"a": ["m2", "m1"], "b": ["x"]}, adapted={"a": ["seed", "n"], "c": ["n"]}
    )
    other = results(fingerprints=digests, models={"a": ["m3"], "c": ["y"]}, adapted={"b": ["top_p"], "c": ["n"]})
    assert first.differs(other) == [
        "the model that answered a (m1, m2, not m3)",
        "the parameters that the endpoint of a refused (n, seed, not none)",
        "the parameters that the endpoint of b refused (none, not top_p)",
    ]
    assert first.differs(first) == []


def test_a_kept_reply_quotes_the_new_nonces():
    reply = Reply("seal a1 and b2", logprobs=(Token("seal a1", -1.0), Token(" and b2", -2.0)))
    kept = KeptReply(reply, ("a1", "b2", ""))
    assert kept.renew(("a1", "b2", "x")) is reply
    renewed = kept.renew(("c3", "b2"))
    assert renewed.text == "seal c3 and b2"
    assert "".join(token.text for token in renewed.logprobs) == renewed.text
    assert KeptReply(attrs.evolve(reply, logprobs=None), ("a1",)).renew(("b",)).logprobs is None


def test_an_error_without_a_secret_is_the_error_itself():
    mask = SecretMask([{"key": Secret("hunter22secret")}])
    plain, with_secret = LedgerError("no"), LedgerError("with hunter22secret")
    assert mask.error(plain) is plain
    assert "hunter22secret" not in str(mask.error(with_secret))
    assert type(mask.error(with_secret)) is LedgerError
    problem = Problem("bad hunter22secret", value=["hunter22secret", 3])
    masked = mask.error(ConfigError([problem]))
    assert "hunter22secret" not in f"{masked}{masked.problems[0].value}"
    harmless = ConfigError([Problem("bad", value=object())])
    assert mask.error(harmless) is harmless
    assert SecretMask([]).error(with_secret) is with_secret


@given(st.lists(st.tuples(st.floats(-1e6, 1e6), st.sampled_from([0.0, 0.5, 1.0, 3.0])), min_size=1, max_size=9))
def test_a_weighted_mean_is_within_the_values_that_have_a_weight(pairs):
    values, weights = [value for value, _ in pairs], [weight for _, weight in pairs]
    if not any(weights):
        return
    counted = [value for value, weight in pairs if weight]
    result = mean(values, weights)
    assert min(counted) <= result <= max(counted) or len(set(values)) == 1
    expected = sum(value * weight for value, weight in pairs) / sum(weights)
    assert result == pytest.approx(expected, rel=1e-9, abs=1e-6)
    assert min(values) <= mean(values) <= max(values)


@pytest.mark.parametrize(
    ("first", "second", "gained"), [(1, None, 1), (2, 1, 1), (1, 2, 0), (None, 1, 0), (None, None, 0)]
)
def test_two_runs_are_paired_by_the_rule_of_the_run_that_started_last(first, second, gained):
    def run(id, score, line, started_at):
        record = {"row": {"id": "1"}, "metrics": {"scores": {"x": score}}}
        return Results(id, "name", lambda: iter([("1", record)]), pass_at={"x": line}, started_at=started_at)

    pairs = pair_passes(run("a", 0.5, 0.9, first), run("b", 0.95, 0.1, second))
    assert [(change.label, change.a, change.b) for change in pairs.changes()] == [("x", False, True)] * gained
