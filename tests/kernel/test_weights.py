"""Weights of subjects: means, pass rates and intervals of a sample, stored with the subject and shown with their effective number."""

from __future__ import annotations

import json
import math
import random
import statistics

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dicast
from dicast import ConfigError, DataError, Event, Score, Subject, metric
from dicast._kernel.cli import main
from dicast._kernel.report.recorded import RecordedTally
from dicast._kernel.report.spool import Passes, ScoreFile
from dicast._kernel.report.statistics import confidence_interval, pass_rate, pass_rate_bounds
from dicast.reading import refuse_weights, weighted_runs
from dicast.testing import run_pipeline
from dicast_stats.compare.command import compare as compare_command

PIPELINE = "name: w\nmetrics: [value]\nscoring: {pass_at: 0.5}\n"
ROWS = st.lists(
    st.tuples(st.sampled_from([None, "a", "b", "c"]), st.floats(0, 1), st.integers(1, 9)), min_size=2, max_size=12
)


@metric(tier="truth")
def value(subject: Subject) -> Score:
    return Score(float(subject.output))


def run(rows, text=PIPELINE):
    subjects = [
        Subject("row", f"r{number}", output=score, session_id=session, weight=weight)
        for number, (session, score, weight) in enumerate(rows)
    ]
    return run_pipeline(text, subjects=subjects, components={"value": value()})


def score_file(rows):
    scores = ScoreFile()
    scores.add([(session, score) for session, score, _ in rows], [float(weight) for _, _, weight in rows])
    return scores


def test_the_mean_is_a_ratio_of_weighted_sums_and_is_shown_with_its_effective_number():
    done = run([(None, 0.0, 1.0), (None, 1.0, 3.0), (None, 1.0, 1.0)]).document
    assert done["score"]["mean"] == pytest.approx(4 / 5)
    assert done["score"]["weight"] == 5
    assert done["score"]["effective_n"] == pytest.approx(25 / 11)
    assert done["score"]["aggregate"] == 1.0
    assert done["score"]["pass_rate"] == pytest.approx(4 / 5)
    assert done["score"]["passes"]["n"] == 3
    assert [warning["kind"] for warning in done["warnings"]].count("weights") == 1


def test_weights_are_stored_with_the_subject_and_only_where_they_differ_from_1():
    events = run([(None, 0.0, 1.0), (None, 1.0, 2.5)]).of("subject.read")
    assert [event.payload.get("weight") for event in events] == [None, 2.5]
    plain = run([(None, 0.0, 1.0), (None, 1.0, 1.0)]).document
    assert not {"weight", "effective_n"} & plain["score"].keys()
    assert "weights" not in [warning["kind"] for warning in plain["warnings"]]


@pytest.mark.parametrize("weight", [0, -1.0, math.inf, math.nan, "2"])
def test_a_weight_that_is_no_finite_number_above_0_is_refused(weight):
    with pytest.raises(DataError, match="weight"):
        run([(None, 1.0, weight)])


@given(ROWS)
def test_equal_weights_give_the_interval_without_weights(rows):
    plain, doubled = (
        score_file([(at, score, 1) for at, score, _ in rows]),
        score_file([(at, score, 2) for at, score, _ in rows]),
    )
    mean = statistics.fmean(score for _, score, _ in rows)
    first, second = confidence_interval(plain, mean), confidence_interval(doubled, mean)
    assert (first is None) == (second is None)
    if first is not None and second is not None:
        assert second[:2] == pytest.approx(first[:2])


@given(ROWS)
def test_the_interval_is_the_linearized_one_of_a_ratio(rows):
    total = sum(weight for _, _, weight in rows)
    mean = sum(score * weight for _, score, weight in rows) / total
    interval = confidence_interval(score_file(rows), mean, bounded=False)
    residuals: dict[object, float] = {}
    for number, (session, score, weight) in enumerate(rows):
        key = number if session is None else session
        residuals[key] = residuals.get(key, 0.0) + weight * (score - mean)
    groups = len(residuals)
    if interval is not None:
        half = 1.959963984540054 * math.sqrt(groups / (groups - 1) * sum(r * r for r in residuals.values())) / total
        assert (interval.low, interval.high) == pytest.approx((mean - half, mean + half), abs=1e-9)


@given(ROWS)
def test_a_weighted_pass_rate_lies_in_its_interval_whatever_the_scale_of_the_weights(rows):
    def figures(scale):
        passes = Passes()
        sessions, answers = [at for at, _, _ in rows], [score >= 0.5 for _, score, _ in rows]
        half = len(rows) // 2
        passes.add(sessions[:half], answers[:half])  # these count once
        passes.add(sessions[half:], answers[half:], [float(weight * scale) for _, _, weight in rows[half:]])
        return passes

    passes = figures(1)
    rate = pass_rate(passes)
    half = len(rows) // 2
    weights = [1] * half + [weight for _, _, weight in rows[half:]]
    expected = sum(w for w, (_, score, _) in zip(weights, rows, strict=True) if score >= 0.5) / sum(weights)
    assert rate["value"] == pytest.approx(expected)
    assert rate["n"] == len(rows)
    if rate["ci_low"] is not None:
        assert 0 <= rate["ci_low"] <= rate["value"] + 1e-9
        assert rate["value"] - 1e-9 <= rate["ci_high"] <= 1
    (least, _), (most, _) = pass_rate_bounds(passes)
    assert least == pytest.approx(expected) == most


def test_open_subjects_bound_a_weighted_rate():
    passes = Passes()
    passes.add([None, None, "s"], [True, False, None], [2.0, 1.0, 3.0])
    assert pass_rate(passes)["value"] == pytest.approx(2 / 3)
    (least, _), (most, _) = pass_rate_bounds(passes)
    assert (least, most) == (pytest.approx(2 / 6), pytest.approx(5 / 6))


@given(ROWS)
def test_the_mean_of_recorded_scores_is_that_of_repeated_subjects(rows):
    def tally(values, weights=None):
        events = [
            Event("1", "eval.completed", "2026-01-01T00:00:00Z", "r", {"score": score, "basis": "proxy", "signals": {}})
            for score in values
        ]
        result = RecordedTally()
        result.add(events, weights)
        return result

    weighted = tally([score for _, score, _ in rows], [float(weight) for *_, weight in rows])
    repeated = tally([score for _, score, weight in rows for _ in range(weight)])
    assert weighted.mean() == pytest.approx(repeated.mean())
    document = weighted.document()
    assert document["scored"] == len(rows)
    if any(weight != 1 for *_, weight in rows):
        total, squares = sum(weight for *_, weight in rows), sum(weight**2 for *_, weight in rows)
        assert (document["weight"], document["effective_n"]) == (total, pytest.approx(total**2 / squares))


ROWS_OF_TWO_WEIGHTS = [(None, 0.0, 1.0), (None, 1.0, 3.0), (None, 1.0, 1.0), (None, 0.4, 2.0)]


@attrs.frozen
class Seen:
    """Aggregate and early stop that keep the weights of the records."""

    name = "seen"
    weights: list[float] = attrs.field(factory=list, eq=False)

    def add(self, record):
        self.weights.append(record.get("weight", 1.0))

    def finish(self):
        return {"weights": self.weights}

    def observe(self, record):
        self.weights.append(record.get("weight", 1.0))


@attrs.frozen
class Weighing(Seen):
    takes_weights = True


@pytest.mark.parametrize("section", ["aggregates", "early_stop"])
def test_a_component_that_counts_each_subject_once_is_refused_by_name(section):
    text = f"{PIPELINE}{section}: [counting, {{weighing: {{as: w}}}}]\n"
    components = {"value": value(), "counting": (plain := Seen()), "weighing": (weighing := Weighing())}

    def judged(rows):
        subjects = [Subject("row", f"r{n}", output=score, weight=weight) for n, (_, score, weight) in enumerate(rows)]
        return run_pipeline(text, subjects=subjects, components=components).document

    (message,) = judged(ROWS_OF_TWO_WEIGHTS)["broken"].values()
    assert message.startswith(
        "counting: it counts each subject once, and the subjects of this run have weights; remove it"
    )
    assert weighing.weights == [1.0, 3.0, 1.0, 2.0]
    assert 3.0 not in plain.weights
    assert judged([(None, 0.5, 1.0)])["broken"] == {}


def test_a_corrected_mean_of_weighted_subjects_is_refused():
    text = "name: w\nmetrics: {proxy: [{value: {as: cheap}}], truth: [{value: {as: dear, weight: 2}}]}\nscoring: {audit: {rate: 0.9, seed: 1}}\n"
    done = run(ROWS_OF_TWO_WEIGHTS, text).document
    assert done["score"]["corrected"] is None
    assert done["score"]["reasons"]["corrected"]["reason"] == "weights"


def test_a_comparison_with_a_weighted_run_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def judged(name, rows, **sections):
        subjects = [Subject("row", f"r{n}", output=score, weight=weight) for n, (_, score, weight) in enumerate(rows)]
        define = {"define": {"value": value()}, "metrics": ["value"], "name": name, **sections}
        return dicast.run(define, subjects=subjects)

    drawn = judged("drawn", ROWS_OF_TWO_WEIGHTS)
    whole = [(session, score, 1.0) for session, score, _ in ROWS_OF_TWO_WEIGHTS]
    later = judged("later", whole, baseline={"run": drawn.run_id, "compare": ["stats/paired"]})
    (message,) = later.broken.values()
    assert f"stats/paired: it counts each subject once, and the subjects of run {drawn.run_id} have weights" in message
    assert later.comparison == {"stats/paired": None}
    names = [drawn.run_id, later.run_id, "--allow-incomparable"]
    with pytest.raises(ConfigError, match=f"run {drawn.run_id} have weights.*--unweighted"):
        compare_command.main(names, standalone_mode=False)
    compare_command.main([*names, "--unweighted"], standalone_mode=False)
    assert main(["baseline", "save", "kept", drawn.run_id, "--file", "kept.json"]) == 0
    with pytest.raises(ConfigError, match="have weights"):
        compare_command.main(["kept.json", later.run_id, "--allow-incomparable"], standalone_mode=False)


def test_figures_over_many_runs_name_the_weighted_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    subjects = [
        Subject("row", f"r{n}", output=score, weight=weight) for n, (_, score, weight) in enumerate(ROWS_OF_TWO_WEIGHTS)
    ]
    drawn = dicast.run({"define": {"value": value()}, "metrics": ["value"], "name": "d"}, subjects=subjects)
    assert dicast.read_ledger(None, weighted_runs) == [drawn.run_id]
    assert main(["quality", "--subject-kind", "row", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["weighted_runs"] == [drawn.run_id]
    assert main(["quality", "--subject-kind", "row"]) == 0
    assert f"each subject counts once, although subjects of run {drawn.run_id} have weights" in capsys.readouterr().out
    with pytest.raises(ConfigError, match=f"run {drawn.run_id} have weights.* a plan counts each subject once"):
        dicast.read_ledger(None, lambda live: refuse_weights(live, (drawn.run_id,), "a plan"))


@pytest.mark.parametrize("command", [["promotion"], ["bridge"]])
def test_a_command_that_compares_runs_refuses_weights(tmp_path, monkeypatch, capsys, command):
    monkeypatch.chdir(tmp_path)
    runs = []
    for weight in (1.0, 2.0):
        subjects = [Subject("row", f"r{n}", output=0.5, weight=weight if n else 1.0) for n in range(3)]
        runs.append(
            dicast.run({"define": {"value": value()}, "metrics": ["value"], "name": "d"}, subjects=subjects).run_id
        )
    assert main([*command, *runs]) == 2
    assert f"the subjects of run {runs[1]} have weights" in capsys.readouterr().err


@pytest.mark.slow
def test_the_intervals_of_stratified_samples_cover_the_mean_of_the_population():
    """A rare stratum of bad sessions is drawn as often as the common one; without weights the mean would be far off."""
    generator, covered, times = random.Random(5), 0, 300
    strata = [
        [min(1.0, max(0.0, generator.gauss(0.8, 0.15))) for _ in range(3600)],
        [min(1.0, max(0.0, generator.gauss(0.3, 0.15))) for _ in range(400)],
    ]
    mean = statistics.fmean([*strata[0], *strata[1]])
    for _ in range(times):
        rows = [(None, score, len(stratum) / 60) for stratum in strata for score in generator.sample(stratum, 60)]
        drawn = sum(score * weight for _, score, weight in rows) / sum(weight for _, _, weight in rows)
        interval = confidence_interval(score_file(rows), drawn)
        covered += interval.low <= mean <= interval.high
    assert covered / times >= 0.93
