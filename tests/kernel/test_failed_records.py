"""A record that failed where it was recorded is a failed subject: it is counted, and nothing is asked about it."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Iterator
from contextlib import asynccontextmanager

import attrs
import pytest

import dicast
from dicast import DataError, Due, Failure, Judgment, PluginError, ReadCounts, Score, Subject, judge, metric
from dicast._kernel.cli import main
from dicast._kernel.resume.queries import document
from dicast.testing import MemoryLedger, run_pipeline

BROKEN = Due(Subject("row", "2", "asked"), failure=Failure("source_error", "batch_expired: too late"))
GOOD = Subject("row", "1", "asked", "answered", "answered")
OTHER = Subject("row", "3", "asked", "answered", "answered")


@attrs.frozen
class Rows:
    """Source of three records, one of them failed; *counts* are its counts, None for a source that does not count."""

    counts: object = ReadCounts(4, {"image/png": 2}, {"trailing": 1}, 1)

    @asynccontextmanager
    async def open(self, run):
        yield Counting(self.counts) if self.counts is not None else Plain()


class Plain:
    """A live source without the member."""

    def subjects(self) -> Iterator[Subject | Due]:
        return iter((GOOD, BROKEN, OTHER))


class Counting(Plain):
    """A live source with the member."""

    def __init__(self, counts: object) -> None:
        self.counts = counts

    def read_counts(self) -> object:
        if isinstance(self.counts, Exception):
            raise self.counts
        return self.counts


@attrs.define
class Asked:
    """Components that note the subjects that they were asked about."""

    ids: list[str] = attrs.field(factory=list)

    def components(self) -> dict[str, object]:
        @metric(tier="truth", needs_output=False)
        def truth(subject: Subject) -> Score:
            self.ids.append(subject.id)
            return Score(1.0)

        @judge(needs_output=False, accepts=("row",))
        def rows(subject: Subject) -> Judgment:
            self.ids.append(subject.id)
            return Judgment(1.0)

        @judge(needs_output=False, accepts=("turn",))
        def turns(subject: Subject) -> Judgment:
            raise AssertionError("it accepts turns alone")

        return {"truth": truth(), "rows": rows(), "turns": turns()}


def test_a_failed_record_fails_each_label_that_accepts_it_and_nothing_is_asked():
    metric_ = Asked()
    pipeline = "metrics: [{truth: {on_failure: zero}}]\njudges: [rows, turns]"
    done = run_pipeline(pipeline, subjects=[GOOD, BROKEN], components=metric_.components())
    assert {*metric_.ids} == {"1"}
    types = [event.type for event in done.events if event.subject_id == "2"]
    assert types == ["subject.read", "eval.started", "eval.started", "eval.failed", "eval.failed"]
    failed = [event.payload for event in done.of("eval.failed")]
    assert [(failure["judge"], failure["failure_mode"], failure["error_message"]) for failure in failed] == [
        ("metrics", "source_error", "batch_expired: too late"),
        ("rows", "source_error", "batch_expired: too late"),
    ]
    assert (done.document["scored"], done.document["failed"], done.document["coverage"]) == (1, 1, 0.5)
    assert done.document["failures"] == {"source_error": 1}
    assert done.exit_code == 3  # coverage is below the default


def test_a_failed_session_fails_the_labels_of_its_turns_too():
    @judge(needs_output=False, accepts=("turn",))
    def turns(subject: Subject) -> Judgment:
        return Judgment(1.0)

    @judge(needs_output=False, accepts=("row",))
    def rows(subject: Subject) -> Judgment:
        raise AssertionError("a session has no rows")

    failed = Due(Subject("session", "b", session_id="b"), failure=Failure("source_error", "half of a character"))
    subjects = [
        Subject("turn", "a/1", "asked", "answered", session_id="a"),
        Subject("session", "a", session_id="a"),
        failed,
    ]
    done = run_pipeline("judges: [turns, rows]", subjects=subjects, components={"turns": turns(), "rows": rows()})
    payloads = [event.payload for event in done.of("eval.failed")]
    assert [(failure["judge"], failure["subject_id"], failure["failure_mode"]) for failure in payloads] == [
        ("turns", "b", "source_error")
    ]
    assert (done.document["scored"], done.document["failed"], done.document["coverage"]) == (1, 1, 0.5)
    assert done.document["labels"]["turns"]["failed"] == 1
    assert done.document["read"]["failed"] == 1
    assert done.exit_code == 3


def test_the_subject_is_recorded_with_its_failure():
    done = run_pipeline("metrics: [proxy/format]", subjects=[GOOD, BROKEN])
    good, failed = (event.payload for event in done.of("subject.read"))
    assert failed["failure"] == {"kind": "source_error", "message": "batch_expired: too late"}
    assert failed["content"]["input"] == "asked"
    assert "failure" not in good


def test_a_failed_record_asks_no_task_and_has_a_failed_record_of_the_run(tmp_path):
    requests = []

    def answer(row):
        requests.append(row["id"])
        return "answered"

    pipeline = {
        "metrics": ["diff/match"],
        "scoring": {"rollouts": 3},
        "ledger": {"ledger/sqlite": {"path": str(tmp_path / "runs.db")}},
    }
    run = dicast.run(pipeline, subjects=[GOOD, BROKEN], task=answer)
    assert requests == ["1"] * 3
    assert run.failures == {"source_error": 1}
    records = run.read(("record.completed", "record.failed"), lambda events: [event.payload for event in events])
    assert [failure.get("failure_mode") for failure in records] == [None, "source_error"]
    assert run.read_counts == {"records": 2, "subjects": {"row": 1}, "marked": {}, "dropped": {}, "failed": 1}


def test_a_task_whose_failures_count_as_zero_excuses_no_failed_record():
    pipeline = {"metrics": ["diff/match"], "task": {"answer": {"on_failure": "zero"}}}

    @attrs.frozen
    class Answer:
        async def produce(self, subject: Subject) -> Subject:
            return attrs.evolve(subject, output="answered")

    done = run_pipeline(json.dumps(pipeline), subjects=[GOOD, BROKEN], components={"answer": Answer()})
    assert done.document["failures"] == {"source_error": 1}


def test_the_document_has_what_a_source_counted():
    done = run_pipeline("metrics: [proxy/format]", source=Rows()).document
    assert done["read"] == {
        "records": 4,
        "subjects": {"row": 2},
        "marked": {"image/png": 2},
        "dropped": {"trailing": 1},
        "failed": 1,
    }


def test_the_document_warns_of_what_is_not_judged_as_it_was_recorded():
    done = run_pipeline("metrics: [proxy/format]", source=Rows()).document
    assert {entry["kind"]: entry["message"] for entry in done["warnings"]} == {
        "failed_records": "1 record was recorded as failed and not judged",
        "dropped_records": "input records without a subject: 1 trailing",
        "marked_parts": "input parts replaced by markers: 2 image/png",
    }
    assert run_pipeline("metrics: [proxy/format]", subjects=[GOOD]).document["warnings"] == []


def test_the_summary_has_one_line_about_the_input():
    done = run_pipeline("metrics: [proxy/format]", source=Rows()).document
    from dicast._kernel.cli.summary import run_parts

    lines = [str(getattr(part, "text", part)) for part in run_parts({**done, "name": "rows"})]
    assert [line for line in lines if "trailing" in line] == [
        "read: 4 records; marked: 2 image/png; dropped: 1 trailing; failed: 1 (source_error)"
    ]


def test_of_a_source_that_does_not_count_the_kernel_counts_subjects_and_failures():
    done = run_pipeline("metrics: [proxy/format]", source=Rows(None)).document
    assert done["read"] == {"records": None, "subjects": {"row": 2}, "marked": {}, "dropped": {}, "failed": 1}


@pytest.mark.parametrize("counts", [ValueError("no"), {"records": 3}])
def test_a_source_that_cannot_count_is_broken_and_costs_the_run_nothing_else(counts):
    done = run_pipeline("metrics: [proxy/format]", source=Rows(counts)).document
    assert done["scored"] == 2
    assert "read_counts" in done["broken"]["source"]


@pytest.mark.parametrize("wrong", [{"records": -1}, {"records": 1.0}, {"records": 1, "failed": 2}, {"records": True}])
def test_counts_that_cannot_be_are_refused(wrong):
    with pytest.raises(PluginError):
        ReadCounts(**wrong)


@pytest.mark.parametrize("failure", [Failure("crashed", "it broke"), "broken"])
def test_the_failure_of_a_record_is_a_source_error(failure):
    with pytest.raises(DataError, match="source_error"):
        run_pipeline("metrics: [proxy/format]", subjects=[attrs.evolve(BROKEN, failure=failure)])


def test_a_run_whose_records_all_failed_is_undecided():
    done = run_pipeline("metrics: [proxy/format]", subjects=[BROKEN])
    document = done.document
    assert (document["coverage"], document["gate"], done.exit_code) == (0.0, None, 3)
    words = "1 source_error (the record failed where it was recorded)"
    assert document["undecided"] == [f"nothing was scored; failed: {words}"]


def test_a_source_in_random_order_keeps_its_failures():
    from dicast._kernel.source.shuffle import shuffled_source

    done = run_pipeline(
        "metrics: [proxy/format]", source=shuffled_source(Counting(ReadCounts(3, failed=1)), 3, live=False)
    )
    assert [event.subject_id for event in done.of("eval.failed")] == ["2"]
    assert done.document["read"]["records"] == 3


def test_a_live_source_may_yield_failed_records():
    class Live(Plain):
        live = True

        async def subjects(self):
            for due in (GOOD, BROKEN, OTHER, BROKEN):
                yield due

    done = run_pipeline("metrics: [proxy/format]", source=Live(), components={"ledger": MemoryLedger()})
    assert [event.payload["failure_mode"] for event in done.of("eval.failed")] == ["source_error"] * 2
    assert done.document["read"]["failed"] == 1  # it came twice
    assert Counter(done.document["failures"]) == {"source_error": 1}


@pytest.mark.parametrize("content", ["store", "digest"])
def test_a_resumed_run_counts_as_if_it_had_never_stopped(tmp_path, monkeypatch, content):
    monkeypatch.chdir(tmp_path)
    rows = [{"custom_id": f"{number}", "output": "x"} for number in range(6)]
    rows[0] |= {"output": None, "error": "too late"}
    rows[4] |= {"output": None, "error": "too late"}
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (tmp_path / "p.yaml").write_text(
        "source: {rows/jsonl: {path: rows.jsonl, fields: {id: custom_id}}}\nmetrics: [proxy/format]\n"
        f"ledger: {{ledger/sqlite: {{path: runs.db, content: {content}}}}}\n"
    )
    paused = dicast.prospect(tmp_path / "p.yaml").pilot(2).document
    assert paused["read"] == {"records": 2, "subjects": {"row": 1}, "marked": {}, "dropped": {}, "failed": 1}
    assert main(["run", "p.yaml", "--resume", paused["run_id"]]) == 3
    done = dicast.read_ledger(tmp_path / "runs.db", lambda ledger: document(ledger, paused["run_id"]))
    assert done["read"] == {"records": 6, "subjects": {"row": 4}, "marked": {}, "dropped": {}, "failed": 2}
    assert done["failures"] == {"source_error": 2}
    assert main(["run", "p.yaml", "--resume", paused["run_id"], "--retry-failed"]) == 3
    again = dicast.read_ledger(tmp_path / "runs.db", lambda ledger: document(ledger, paused["run_id"]))
    assert (again["read"], again["failures"]) == (done["read"], done["failures"])


def test_failed_records_keep_their_place_among_subjects_that_wait():
    @judge(needs_output=False)
    async def slow(subject: Subject) -> Judgment:
        await asyncio.sleep(0.001)
        return Judgment(1.0)

    dues = [
        attrs.evolve(BROKEN, subject=Subject("row", str(n))) if n % 3 else Subject("row", str(n)) for n in range(40)
    ]
    done = run_pipeline(
        "judges: [slow]\nexecutor: {dicast/async: {concurrency: 8}}", subjects=dues, components={"slow": slow()}
    )
    ends = [event for event in done.events if event.type in ("eval.completed", "eval.failed")]
    assert [event.subject_id for event in ends] == [str(n) for n in range(40)]
    assert [event.type == "eval.failed" for event in ends] == [bool(n % 3) for n in range(40)]
