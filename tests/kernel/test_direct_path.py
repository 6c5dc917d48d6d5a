"""The direct way of judging rows: its events, report, deliveries, calls and exit code are equal to the general way's."""

from __future__ import annotations

from contextlib import asynccontextmanager
from math import inf

import attrs
import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dicast import Due, Failure, JudgedRow, LedgerError, RecordedScore, Score, Subject
from dicast._kernel.report.fold import Report
from dicast.testing import run_pipeline
from dicast.testing.ledger import Live
from dicast.testing.pipeline import JudgedLedger

from .direct_runs import ACTS, ENDS, FORMS, SIGNALS, Case, Late, Plain, Slow, failing_at

shares = st.one_of(
    st.sampled_from((0.0, 1.0, -0.0, 0.5, 0.7, 1e-300)), st.floats(0, 1, allow_nan=False, allow_subnormal=True)
)
scores = st.builds(
    Score,
    shares,
    st.one_of(st.just(1.0), shares),
    details=st.sampled_from(("", "", "too long", "naïve")),
    signals=st.sampled_from(SIGNALS),
    basis=st.sampled_from((None, None, "proxy", "model", "human")),
)
plain_scores = st.builds(Score, st.sampled_from((0.0, 1.0, 0.5)))
odd = st.sampled_from(sorted(ACTS))


def scripts(acts=odd):
    """Return a strategy of scripts: mostly plain scores, and some odd answers."""
    return st.lists(st.one_of(plain_scores, scores, scores, acts), min_size=1, max_size=7).map(tuple)


values = st.one_of(
    st.none(),
    st.text(max_size=8),
    st.integers(-3, 3),
    st.booleans(),
    st.floats(allow_nan=False, width=32),
    st.dictionaries(st.sampled_from("ab"), st.one_of(st.none(), st.text(max_size=3)), max_size=2),
    st.lists(st.integers(0, 3), max_size=2),
    st.sampled_from((b"bytes", "\ud800", float("nan"))),
)
common_values = st.one_of(st.text(max_size=8), st.none())


@st.composite
def subjects(draw, wild=False):
    """Draw the subjects of a run, with numbers in their ids."""
    items = []
    for number in range(draw(st.integers(0, 9))):
        kind = draw(st.sampled_from(("row", "row", "row", "row", "candidate", "turn", "session")))
        part = values if wild else common_values
        context = draw(st.dictionaries(st.sampled_from(("topic", "level")), part, max_size=2))
        subject = Subject(
            kind,
            f"r{number}",
            draw(part),
            draw(st.one_of(part, st.just("text"))),
            draw(part),
            context,
            session_id=draw(st.sampled_from((None, None, "s1", "s2"))),
            parent_id=draw(st.sampled_from((None, None, None, "s1"))),
            weight=draw(st.sampled_from((1.0, 1.0, 1.0, 1, 2.5))),
            columns=draw(st.sampled_from(({}, {}, {"answer": "text"}))),
        )
        items.append(draw(st.sampled_from((subject, subject, subject, _due(draw, subject)))))
    return tuple(items)


def _due(draw, subject):
    return draw(
        st.sampled_from(
            (
                Due(subject, trigger="benchmark"),
                Due(subject, failure=Failure("source_error", "the agent crashed")),
                Due(subject, finish_reason="length"),
                Due(subject, recorded=(RecordedScore("human", 0.5),)),
            )
        )
    )


options = st.fixed_dictionaries(
    {},
    optional={
        "weight": st.sampled_from((0, 1, 2.5)),
        "on_failure": st.sampled_from(("fail", "exclude", "zero")),
        "on": st.sampled_from((["row"], ["row", "candidate"], ["turn"])),
        "pass_at": st.sampled_from((0.0, 0.6, 1.0)),
        "retries": st.sampled_from((0, 0, 0, 1)),
    },
)
scorings = st.fixed_dictionaries(
    {},
    optional={
        "threshold": st.sampled_from((0, 0.5, 1)),
        "combine": st.sampled_from(("all", "truth")),
        "pass_at": st.sampled_from(("all", 0.4)),
        "aggregation": st.sampled_from(("mean", "median")),
        "on_budget": st.sampled_from(("skip_metric", "skip_subject")),
        "rollouts": st.sampled_from((1, 1, 1, 2)),
        "audit": st.sampled_from(({"share": 0.5, "seed": 1},)),
    },
)
gates = st.sampled_from(
    (
        {},
        {"min_score": 0.4},
        {"on": "m0", "min_score": 0.5, "bound": "interval"},
        [{"on": "metrics", "min_pass_rate": 0.5}, {"on": "m0", "max_score": 0.9, "min_coverage": 0.2}],
        {"min_basis": "heuristic", "min_coverage": 0.9},
    )
)
sinks = st.lists(
    st.tuples(
        st.sampled_from(
            ((), ("eval.completed",), ("subject.read", "eval.failed"), ("run.completed",), ("eval.started",))
        ),
        st.sampled_from(("", "", "", "full", "once", "changes")),
    ),
    max_size=2,
).map(tuple)


any_form = st.sampled_from(FORMS)


@st.composite
def cases(draw, *, forms=any_form, acts=odd, wild=False, scoring=scorings):
    """Draw a pipeline with its subjects."""
    count = draw(st.integers(1, 3))
    sections = {"scoring": draw(scoring), "gate": draw(gates)}
    if draw(st.booleans()):
        sections["budget"] = {"run": draw(st.sampled_from(("0.0015 usd", "1 usd")))}
    if not sections["gate"]:
        del sections["gate"]
    if draw(st.booleans()):
        sections["judges"] = [{"judge": {"on": ["turn", "candidate"]}}]
    return Case(
        draw(subjects(wild)),
        tuple(draw(forms) for _ in range(count)),
        tuple(draw(scripts(acts)) for _ in range(count)),
        tuple(draw(options) for _ in range(count)),
        sections,
        draw(sinks),
        truths=draw(st.integers(0, count)),
        seconds=draw(st.sampled_from((inf, 0.0))),
    )


quietly = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


def assert_equal_ways(case):
    """Fail unless both ways have equal results; return the number of direct rows."""
    direct, general = case.both()
    assert general.direct == 0
    assert direct.calls == general.calls
    assert direct.document == general.document
    assert direct.exit_code == general.exit_code
    assert direct.delivered == general.delivered
    for ours, theirs in zip(direct.events, general.events, strict=True):
        assert ours == theirs
    return direct.direct


@pytest.mark.slow
@given(case=cases())
@settings(quietly, max_examples=30)
def test_any_pipeline_has_the_same_result_by_both_ways(case):
    assert_equal_ways(case)


@pytest.mark.slow
@given(
    case=cases(
        forms=st.just(Plain),
        scoring=st.fixed_dictionaries(
            {}, optional={"threshold": st.sampled_from((0, 0.5)), "combine": st.just("truth")}
        ),
    )
)
@settings(quietly, max_examples=60)
def test_free_quick_metrics_with_odd_answers_have_the_same_result_by_both_ways(case):
    assert_equal_ways(case)


@pytest.mark.slow
@given(case=cases(forms=st.just(Plain), wild=True))
@settings(quietly, max_examples=25)
def test_subjects_with_any_values_have_the_same_result_by_both_ways(case):
    assert_equal_ways(case)


def rows(count, **fields):
    return tuple(Subject("row", f"r{number}", output=f"text {number}", **fields) for number in range(count))


def plain_case(answers, count=8, **sections):
    return Case(rows(count), (Plain,) * len(answers), answers, ({},) * len(answers), sections)


def ends(lines):
    """Return the type and the subject of the events about subjects in *lines*; a verdict and a failure are the same."""
    events = map(orjson.loads, lines)
    return [
        (event["type"].replace("eval.failed", "eval.completed"), event["subject_id"])
        for event in events
        if event["type"] in ("subject.read", "eval.started", "eval.completed", "eval.failed")
    ]


@pytest.mark.slow
@given(case=cases(acts=st.sampled_from(sorted(ACTS.keys() - {"endpoint lost"}))))  # subjects start until a stop
@settings(quietly, max_examples=15)
def test_sinks_get_events_in_the_order_of_the_ledger_at_any_time(case):
    outcomes = [attrs.evolve(case, seconds=seconds).run(general=False) for seconds in (0.0, inf)]
    for outcome in outcomes:
        recorded = [event["id"] for event in map(orjson.loads, outcome.events)]
        for lines in outcome.delivered:
            delivered = [event["id"] for event in map(orjson.loads, lines)]
            assert delivered == [id_ for id_ in recorded if id_ in {*delivered}]
    early, late = outcomes
    assert ends(early.events) == ends(late.events)


@pytest.mark.parametrize("act", sorted(ACTS))
def test_an_odd_answer_at_any_place_is_recorded_in_order_and_asked_for_once(act):
    case = plain_case(((Score(1.0),) * 3, (Score(0.5), act, Score(1.0)), (Score(0.0), Score(1.0), act)))
    assert_equal_ways(case)


@pytest.mark.parametrize("seconds", [0.0, inf])
@pytest.mark.parametrize("act", sorted(ENDS))
def test_a_run_that_ends_in_a_call_has_the_same_result_by_both_ways(act, seconds):
    plain = (Score(1.0),) * 4
    case = plain_case((plain, (*plain[:2], act, *plain[:1])))
    assert assert_equal_ways(attrs.evolve(case, seconds=seconds)) >= 2


@pytest.mark.parametrize("error", [LedgerError, OSError])
@pytest.mark.parametrize("faults", [range(1, 99), range(3, 99), {1}, {3}, {9}])
def test_a_ledger_that_fails_has_the_same_events_by_both_ways(faults, error):
    case = plain_case(((Score(1.0), Score(0.5), "failure"),))
    assert assert_equal_ways(attrs.evolve(case, seconds=0.0, faults=faults, error=error))


def test_a_sink_that_ends_the_run_gets_the_same_events_by_both_ways():
    case = plain_case(((Score(1.0), "failure", Score(0.5)),))
    case = attrs.evolve(case, seconds=0.0, sinks=(((), "interrupt"), (("eval.completed",), "")))
    assert assert_equal_ways(case) == 1


@pytest.mark.parametrize("number", [1, 2, 5])
def test_a_defect_in_the_report_keeps_the_same_events_by_both_ways(number):
    case = attrs.evolve(plain_case(((Score(1.0), "failure", Score(0.5)),)), seconds=0.0)
    outcomes = []
    for general in (False, True):
        with failing_at(number, Report, "observe_all"):
            outcomes.append(case.run(general=general))
    assert outcomes[0] == outcomes[1]
    assert "ZeroDivisionError" in outcomes[0].document


@pytest.mark.parametrize(
    ("options", "sections"),
    [
        ({}, {"scoring": {"rollouts": 2}}),
        ({}, {"scoring": {"audit": {"share": 0.5, "seed": 1}}}),
        ({"retries": 1}, {}),
        ({"range": [0, 2]}, {}),
        ({}, {"judges": ["judge"]}),
    ],
)
def test_other_plans_have_no_direct_row(options, sections):
    case = Case(rows(4), (Plain, Plain), ((Score(1.0),), (Score(0.5),)), ({}, options), sections, truths=1)
    assert assert_equal_ways(case) == 0


def test_the_time_of_an_odd_answer_is_in_its_verdict():
    components = {"m0": Late("m0", ("failure",), [])}
    done = run_pipeline("name: case\nmetrics: [m0]\n", subjects=rows(1), components=components)
    read, started, failed = (done.of(type_)[0] for type_ in ("subject.read", "eval.started", "eval.failed"))
    assert failed.payload["judge_latency_ms"] >= 30
    assert read.time == started.time < failed.time
    assert [event.id for event in done.events] == sorted(event.id for event in done.events)


@pytest.mark.slow
def test_a_def_that_takes_too_long_fails_in_time_by_both_ways():
    case = Case(rows(4), (Plain, Slow, Plain), ((Score(1.0),),) * 3, ({}, {"timeout": 0.05}, {}), {}, truths=1)
    assert_equal_ways(case)
    assert '"failure_mode":"timeout"' in "".join(case.run(general=False).events)


def test_free_quick_rows_are_judged_directly():
    case = plain_case(((Score(1.0), Score(0.5, details="half")), (Score(0.0, signals={"n": 1}),)))
    assert assert_equal_ways(case) == 8


def test_a_ledger_may_take_judged_subjects_in_place_of_their_events():
    components = {f"m{n}": Plain(f"m{n}", (Score(1.0), "failure", Score(0.5, details="half")), []) for n in range(2)}
    text = "name: case\nmetrics: [m0, m1]\nledger: own\n"
    ledger = JudgedLedger()
    done = run_pipeline(text, subjects=rows(6), components={**components, "own": ledger})
    judged = [record for record in ledger.records if isinstance(record, JudgedRow)]
    assert [record.subject.id for record in judged] == ["r0", "r2", "r3", "r5"]
    assert [event.subject_id for event in done.of("subject.read")] == [f"r{n}" for n in range(6)]
    ends = [event.type for event in done.events if event.type in ("eval.completed", "eval.failed")]
    assert ends == ["eval.completed", "eval.failed", "eval.completed"] * 2
    assert judged[0].maker.metrics == ("m0", "m1")
    assert [event.id for event in judged[0].events()] == list(judged[0].ids)


class Mirror(Live):
    """A live ledger of a subclass that counts the events of ``append``."""

    def append(self, events):
        self.mirrored.extend(event.subject_id for event in events)
        return super().append(events)


class PassedOn:
    """A live ledger that appends itself, and passes the other members on."""

    def __init__(self, live, mirrored):
        self._live, self._mirrored = live, mirrored

    def append(self, events):
        self._mirrored.extend(event.subject_id for event in events)
        return self._live.append(events)

    def __getattr__(self, name):
        return getattr(self._live, name)


@attrs.frozen
class Mirrored:
    """A ledger that takes judged subjects, behind an ``append`` of its own: of a subclass, or of a wrapper."""

    is_wrapper: bool
    mirrored: list = attrs.field(factory=list, eq=False, repr=False)
    inside: JudgedLedger = attrs.field(init=False, factory=JudgedLedger, eq=False, repr=False)

    @asynccontextmanager
    async def open(self, run=None, create=True):
        async with self.inside.open(run, create) as live:
            if self.is_wrapper:
                yield PassedOn(live, self.mirrored)
            else:
                live.__class__ = type("Mirror", (Mirror, type(live)), {"mirrored": self.mirrored})
                yield live


@pytest.mark.parametrize("is_wrapper", [False, True])
def test_an_append_of_a_wrapper_or_subclass_gets_the_events_of_judged_subjects(is_wrapper):
    ledger = Mirrored(is_wrapper)
    components = {"m0": Plain("m0", (Score(1.0),), []), "own": ledger}
    run_pipeline("name: case\nmetrics: [m0]\nledger: own\n", subjects=rows(3), components=components)
    assert [name for name in ledger.mirrored if name] == [f"r{n}" for n in range(3) for _ in range(3)]
    assert ledger.inside.records == []


def test_warnings_have_the_order_of_the_subjects_by_both_ways():
    evidence = {"evidence": {"cut": 1}}
    noted, plain = Score(0.5, signals=evidence), Score(0.5)
    subjects = (Subject("row", "r0", output="a"), Subject("turn", "r1", output="b"))
    case = Case(subjects, (Plain, Plain), ((noted, plain), (plain, noted)), ({}, {}), {})
    assert assert_equal_ways(case) == 1


@attrs.frozen
class Scribbler:
    """A sink that changes its events."""

    wants = ("eval.completed",)

    def write(self, events):
        for event in events:
            event.payload["signals"]["metrics"]["m0"] = 7
            event.payload["scores"][0]["value"] = 7
            event.payload["skipped"].append({"metric": "m0"})

    def close(self):
        pass


def test_a_sink_that_changes_its_events_changes_no_other_row():
    components = {"m0": Plain("m0", (Score(1.0),), []), "own": Scribbler()}
    done = run_pipeline("name: case\nmetrics: [m0]\nsinks: [own]\n", subjects=rows(2_500), components=components)
    assert done.document["metrics"]["m0"]["mean"] == 1.0
    assert all(verdict.scores[0]["value"] == 1.0 and not verdict.skipped for verdict in done.verdicts)
