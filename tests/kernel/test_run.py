"""Running a pipeline from Python."""

from __future__ import annotations

import asyncio
import importlib
import math
from decimal import Decimal

import attrs
import pytest

import dicast
from dicast import Cost, Failure, Judgment, LedgerRefused, RequestError, Rubric, Score, Subject, Verdict
from dicast.testing import FakeJudge, run_pipeline, sample

PLUGIN = """
import asyncio

asked = []

@metric(tier="proxy")
async def slow(subject: Subject, *, name: str) -> Score:
    asked.append(name)
    await asyncio.sleep(30)

@metric(tier="proxy")
def brevity(subject: Subject, *, words: int = 4) -> Score:
    return Score(min(1.0, words / max(1, len(subject.text.split()))))

@hookimpl
def dicast_metrics():
    return [brevity, slow]
"""
SUBJECTS = [
    Subject("row", "a", output="one two"),
    Subject("row", "b", output="one two three four five six seven eight"),
]


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch, plugin):
    plugin("brevity", PLUGIN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DICAST_LEDGER", raising=False)
    monkeypatch.delenv("DICAST_DISABLED", raising=False)
    return tmp_path


@pytest.mark.parametrize("pipeline", [{"metrics": ["brevity/brevity"]}, "metrics: [brevity/brevity]\n", "file"])
def test_a_mapping_a_text_and_a_file_are_pipelines(here, pipeline):
    if pipeline == "file":
        pipeline = here / "p.yaml"
        pipeline.write_text("metrics: [brevity/brevity]\n")
    done = dicast.run(pipeline, subjects=SUBJECTS)
    assert [(verdict.subject_id, verdict.score) for verdict in done.verdicts] == [("a", 1.0), ("b", 0.5)]
    assert (done.exit_code, done.scored, done.score["mean"]) == (0, 2, 0.75)
    assert (here / ".dicast" / "ledger.db").is_file()


def test_a_run_has_the_fields_of_the_document():
    done = dicast.run("metrics: [brevity/brevity]\n", subjects=SUBJECTS)
    document = run_pipeline("metrics: [brevity/brevity]", subjects=SUBJECTS).document
    names = {field.alias: field.name for field in attrs.fields(type(done))}  # ``read`` is a method
    fields = names.keys() - {
        "exit_code",
        "open_ledger",
        "disabled",
        "experiments",
        "plan",  # there only where a run was planned
        "batches",  # there only where a batch is open
        "reserved",  # there only where amounts are reserved
        "caps",  # there only where a cap forbade a call
        "failures_by_origin",  # there only where a task or a record failed
        "recorded",  # there only where subjects have recorded scores
    }
    assert fields == set(document)
    equal = fields - {"run_id", "ledger"}
    assert {key: getattr(done, names[key]) for key in equal} == {key: document[key] for key in equal}
    assert done.ledger["head"]["seq"] == 8


def test_overrides_count():
    text = "metrics: [brevity/brevity]\n"
    for overrides in ({"metrics.0.words": 8}, ["metrics.0.words=8"]):
        assert dicast.run(text, overrides=overrides, subjects=SUBJECTS).score["mean"] == 1.0


def test_a_run_can_be_awaited_and_run_inside_a_loop():
    async def work():
        awaited = await dicast.arun("metrics: [brevity/brevity]\n", subjects=SUBJECTS)
        return (
            awaited.scored,
            dicast.run("metrics: [brevity/brevity]\n", subjects=SUBJECTS).scored,
            len(awaited.verdicts),
        )

    assert asyncio.run(work()) == (2, 2, 2)


def test_a_run_that_is_cancelled_ends_its_calls_and_makes_no_more():
    text = "metrics: [{brevity/slow: {name: first}}, {brevity/slow: {as: again, name: second}}]\n"

    async def work():
        running = asyncio.ensure_future(dicast.arun(text, subjects=SUBJECTS))
        await asyncio.sleep(0)
        requests = importlib.import_module("dicast_brevity").asked
        while not requests:  # noqa: ASYNC110  # the plugin knows nothing of this test's events
            await asyncio.sleep(0.01)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        return requests

    assert set(asyncio.run(asyncio.wait_for(work(), 10))) == {"first"}


def test_each_run_has_its_own_verdicts():
    first, second = (dicast.run("metrics: [brevity/brevity]\n", subjects=SUBJECTS[n:]) for n in range(2))
    assert [verdict.subject_id for verdict in first.verdicts] == ["a", "b"]
    assert [verdict.subject_id for verdict in second.verdicts] == ["b"]
    assert first.run_id < second.run_id


@pytest.mark.parametrize("off", ["disabled: true", "budget: {disabled: true}"])
def test_a_run_that_is_switched_off_reads_nothing(here, off):
    def never():
        raise AssertionError("a subject was read")
        yield

    done = dicast.run(f"metrics: [brevity/brevity]\n{off}\n", subjects=never())
    assert (done.disabled, done.exit_code, done.subjects, done.verdicts, done.run_id) == (True, 0, 0, [], None)
    assert not (here / ".dicast").exists()


def test_no_subjects_are_a_wrong_request():
    with pytest.raises(RequestError, match="no subjects"):
        dicast.run("metrics: [brevity/brevity]\n", subjects=[])


def test_a_ledger_that_is_none_is_refused(here):
    (here / "notes.txt").write_text("no ledger\n" * 100)
    with pytest.raises(LedgerRefused, match=r"notes\.txt"):
        dicast.run("metrics: [brevity/brevity]\nledger: {ledger/sqlite: {path: notes.txt}}\n", subjects=SUBJECTS)


def test_a_subject_that_is_no_json_is_a_wrong_request_that_names_it():
    with pytest.raises(RequestError, match="'odd'"):
        dicast.run("metrics: [brevity/brevity]\n", subjects=[Subject("row", "odd", output=object())])


def test_an_id_that_comes_twice_is_a_wrong_request_that_names_it():
    with pytest.raises(RequestError, match="'a'"):
        dicast.run("metrics: [brevity/brevity]\n", subjects=[SUBJECTS[0], SUBJECTS[0]])


# Verdicts


def test_a_judge_s_verdict_has_all_its_fields():
    judgment = Judgment(0.4, 0.9, "llm", "m-1", Cost("0.002", pricing_version="p1"), {"flags": ["a"]}, Rubric("r", "2"))
    done = run_pipeline(
        "judges: [{j: {as: stern}}]",
        subjects=[sample("x", id="7", session_id="s")],
        components={"j": FakeJudge(judgment, cost=Cost("0.01"))},
    )
    (verdict,) = done.verdicts
    started, completed = done.of("eval.started")[0], done.of("eval.completed")[0]
    assert attrs.evolve(verdict, judge_latency_ms=0, fingerprint="f") == Verdict(
        eval_id=started.payload["eval_id"],
        subject_kind="row",
        subject_id="7",
        score=0.4,
        confidence=0.9,
        judge_kind="llm",
        judge_model="m-1",
        judge_cost_usd=Decimal("0.002"),
        judge_pricing_version="p1",
        judge_latency_ms=0,
        rubric_id="r",
        rubric_version="2",
        signals={"flags": ["a"]},
        parent_eval_id=None,
        created_at=completed.time,
        run_id=done.document["run_id"],
        judge="stern",
        fingerprint="f",
        tier="truth",
    )
    assert 0 <= verdict.judge_latency_ms < 10_000
    assert len(verdict.fingerprint) == 64
    assert (started.session_id, started.sensitivity) == ("s", "pseudonymous")


def test_the_model_that_answered_is_in_the_fingerprint():
    answers = [Judgment(1.0, judge_model=model) for model in ("a", "b", "a", None)]
    done = run_pipeline(
        "judges: [j]", subjects=[sample("x", id=n) for n in "1234"], components={"j": FakeJudge(answers)}
    )
    prints = [verdict.fingerprint for verdict in done.verdicts]
    assert prints[0] == prints[2]
    assert len(set(prints)) == 3


def test_options_change_the_fingerprint_and_the_subjects_do_not():
    def prints(text, subjects=SUBJECTS):
        return {verdict.fingerprint for verdict in run_pipeline(text, subjects=subjects).verdicts}

    base = prints("metrics: [brevity/brevity]")
    assert len(base) == 1
    assert base == prints("metrics: [brevity/brevity]\nname: other\ngate: {min_score: 0}", SUBJECTS[:1])
    assert base != prints("metrics: [{brevity/brevity: {words: 5}}]")
    assert base != prints("metrics: [{brevity/brevity: {weight: 2}}]")
    assert base != prints("metrics: [brevity/brevity]\nscoring: {threshold: 0.6}")


def test_a_captured_rationale_lifts_the_event_s_sensitivity():
    judge = FakeJudge(Judgment(1.0, signals={"rationale_redacted": "so"}))
    done = run_pipeline("judges: [j]", subjects=[sample("x")], components={"j": judge})
    assert done.of("eval.completed")[0].sensitivity == "user_controlled"


@pytest.mark.parametrize("keeps", [True, False])
def test_verdicts_of_what_keeps_the_texts_of_others_are_theirs(keeps):
    @attrs.frozen
    class Keeper:
        tier = "truth"
        keeps_texts = keeps

        def score(self, subject):
            return Score(1.0) if subject.text == "x" else Failure("refused", subject.text)

    done = run_pipeline("metrics: [it]", subjects=[sample("x"), sample("y", id="2")], components={"it": Keeper()})
    ends = [*done.of("eval.completed"), *done.of("eval.failed")]
    assert [event.sensitivity for event in ends] == ["user_controlled" if keeps else "pseudonymous"] * 2


def test_no_figure_is_nan():
    done = run_pipeline("metrics: [brevity/brevity]", subjects=SUBJECTS[:1])
    assert all(not (isinstance(value, float) and math.isnan(value)) for value in done.document["score"].values())
