from __future__ import annotations

import resource
from decimal import Decimal

import pytest

from dicast import DicastError, Event
from dicast._kernel.cli.head import head_parts
from dicast.toolkit.run_table import RunTable

SUBJECT = ["subject_kind", "subject_id", "session_id", "score", "tier", "failure", "cost_usd"]


def event(type, payload, id=None, session=None, at="01") -> Event:
    return Event(at, type, "2026-01-02T03:04:05.678Z", "r1", payload, session, None, "row" if id else None, id)


def started(metrics=(), judges=(), counted=("metrics",), **options) -> Event:
    labels = {"metrics": list(metrics), "judges": list(judges), "counted": list(counted)}
    return event("run.started", labels | options)


def record(id, row=None, session=None, **options) -> Event:
    return event("record.completed", {"row": {"id": id, **(row or {})}, **options}, id, session)


def judged(id, **metrics) -> Event:
    payload = {
        "judge": "metrics",
        "score": 0.5,
        "tier": "proxy",
        "judge_cost_usd": "0",
        "signals": {"metrics": metrics},
    }
    return event("eval.completed", payload, id)


def table(folder, *events, **options) -> list[dict[str, object]]:
    """Take *events*; the rows by column."""
    built = RunTable(folder, **options)
    try:
        counted = built.take([started(), *events] if not events or events[0].type != "run.started" else events)
        counted += built.end()
        columns, rows = built.columns(), list(built.rows())
        assert rows == list(built.rows())
        assert counted == len(rows)
        assert len(set(columns)) == len(columns)
        return [dict(zip(columns, row, strict=True)) for row in rows]
    finally:
        built.close()


def test_a_records_columns_come_before_the_verdicts(tmp_path):
    metrics = {"score": 4, "scores": {"tone": 4.0}}
    [row] = table(tmp_path, started(["proxy/format"]), record("q1", {"input": "?"}, response={"content": "4"}, metrics=metrics),
                  judged("q1", **{"proxy/format": 1.0}))  # fmt: skip
    records = ["id", "input", "llm_content", "metric_score", "metric_scores_tone"]
    assert list(row) == [*records, *SUBJECT, "metric_proxy_format"]
    assert list(row.values()) == ["q1", "?", "4", 4, 4.0, "row", "q1", None, 0.5, "proxy", None, "0", 1.0]


def test_columns_that_come_late_stand_with_their_group(tmp_path):
    rows = table(
        tmp_path,
        record("1", {"a": 1}, metrics={"scores": {"x": 1}, "other": 2}),
        record("2", {"a": 1, "b": 2}, metrics={"scores": {"y": 1}}, responses={"y": {"content": "text"}}),
        record("3", {"b": 3}),
    )
    assert list(rows[0])[:7] == ["id", "a", "b", "llm_y", "metric_scores_x", "metric_scores_y", "metric_other"]
    assert [row["b"] for row in rows] == [None, 2, 3]
    assert [row["metric_other"] for row in rows] == [2, None, None]


def test_the_session_has_one_column(tmp_path):
    rows = table(tmp_path, record("1", {"session_id": "s1", "a": 1}, session="s1"), record("2", session="s2"))
    assert list(rows[0]) == ["id", "session_id", "a", *(name for name in SUBJECT if name != "session_id")]
    assert [row["session_id"] for row in rows] == ["s1", "s2"]


def test_a_rows_column_with_a_name_of_the_table_is_told_apart(tmp_path):
    [row] = table(tmp_path, record("1", {"score": "given", "row_score": "x", "failure": 0}), judged("1"))
    assert (row["row_score"], row["row_score_2"], row["row_failure"]) == ("given", "x", 0)
    assert (row["score"], row["failure"]) == (0.5, None)


def test_a_metrics_column_that_the_record_has_as_well_gets_a_number(tmp_path):
    [row] = table(tmp_path, started(["score"]), record("1", metrics={"score": 4}), judged("1", score=0.25))
    assert (row["metric_score"], row["metric_score_2"]) == (4, 0.25)


def test_a_failed_task_has_its_row_and_its_failure(tmp_path):
    payload = {"row": {"id": "2", "a": 5}, "error": "late", "timestamp": "t", "failure_mode": "timeout"}
    failed = event("record.failed", payload, "2")
    rows = table(tmp_path, record("1", {"a": 4}), failed)
    assert [(row["id"], row["a"], row["failure"]) for row in rows] == [("1", 4, None), ("2", 5, "timeout")]


def test_a_failed_tasks_row_has_the_level_that_all_rows_have(tmp_path):
    failed = event("record.failed", {"row": {"id": "2"}, "error": "late", "failure_mode": "timeout"}, "2")
    rows = table(tmp_path, started(security_level="official"), record("1", security_level="official"), failed)
    assert [row["security_level"] for row in rows] == ["official", "official"]


def test_subjects_that_nobody_judges_have_a_row(tmp_path):
    rows = table(tmp_path, started(), *(event("subject.read", {}, id) for id in "123"), judged("2"))
    assert [(row["subject_id"], row["score"]) for row in rows] == [("1", None), ("2", 0.5), ("3", None)]


@pytest.mark.parametrize("makes", [{}, {"task": "prompt/chat"}, {"extractors": ["extract/label"]}])
def test_subjects_that_were_about_to_be_judged_when_the_run_stopped_have_none(tmp_path, makes):
    eval_ids = [] if makes else [event("eval.started", {"judge": "metrics"}, id) for id in "123"]
    rows = table(tmp_path, started(**makes), *(event("subject.read", {}, id) for id in "123"), *eval_ids, judged("1"))
    assert [row["subject_id"] for row in rows] == ["1"]


def test_subjects_that_are_judged_again_stand_where_they_were_read(tmp_path):
    """As after --retry-failed: 1 and 4 had failed and follow the others, and 6 is read for the first time."""
    again = [
        reports
        for id in "14"
        for reports in (event("subject.read", {}, id, at=f"0{id}"), record(id), *([judged(id)] if id == "1" else []))
    ]
    new = [event("subject.read", {}, "6", at="06"), judged("6")]
    replayed = [reports for id in "235" for reports in (event("subject.read", {}, id, at=f"0{id}"), judged(id))]
    rows = table(tmp_path, started(), *replayed, *again, *new)
    assert [row["subject_id"] for row in rows] == ["1", "2", "3", "4", "5", "6"]
    assert [row["id"] for row in rows] == ["1", None, None, "4", None, None]


def test_metrics_may_be_left_out(tmp_path):
    response = {"content": "x", "metrics": {"tokens": 3}}
    [row] = table(
        tmp_path, started(["m"]), record("1", response=response, metrics={"score": 4}), judged("1", m=1), metrics=False
    )
    assert list(row) == ["id", "llm_content", "llm_content_metric_tokens", *SUBJECT]


def test_a_value_that_is_no_plain_one_is_kept_as_json_has_it(tmp_path):
    [row] = table(tmp_path, record("1", {"cost": Decimal("0.10"), "big": 2**70, "tags": ["a", {"b": 1}]}))
    assert (row["cost"], row["big"], row["tags"]) == ("0.10", 2**70, ["a", {"b": 1}])


def test_many_rows_come_back_in_their_order(tmp_path):
    rows = table(tmp_path, *(record(str(number), {f"c{number % 3}": number}) for number in range(1000)))
    assert [row[f"c{number % 3}"] for number, row in enumerate(rows)] == list(range(1000))


def test_what_a_full_disk_did_not_take_is_taken_when_told_again(tmp_path):
    built = RunTable(tmp_path)
    built.take([started(), record("0", {"text": "a" * 100}), record("1")])
    batch = [record(str(number), {"text": str(number) * 1000}) for number in range(2, 50)]
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4000, limits[1]))
    try:
        with pytest.raises(OSError, match="too large"):
            built.take(batch)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    built.take(batch)
    built.end()
    assert [row[0] for row in built.rows()] == [str(number) for number in range(50)]
    built.close()


def test_a_subject_before_the_columns_are_known_is_an_error(tmp_path):
    built = RunTable(tmp_path)
    with pytest.raises(DicastError, match=r"run\.started"):
        built.take([record("1"), record("2")])
    built.close()


def test_the_rows_file_has_no_name(tmp_path):
    table(tmp_path, record("1"))
    assert list(tmp_path.iterdir()) == []


def test_a_judge_that_was_not_asked_has_the_failure_of_the_task(tmp_path):
    mode = {"failure_mode": "judge_output_invalid"}
    task = event("record.failed", {"row": {"id": "1"}, "error": "no content", **mode}, "1")
    unasked = event("eval.failed", {"judge": "j", "error_message": "no content", "origin": "task", **mode}, "1")
    asked = event("eval.failed", {"judge": "j", "error_message": "no verdict", **mode}, "2")
    start = started(judges=["j"], counted=["j"], task="prompt/chat")
    first, second = table(tmp_path, start, task, unasked, record("2", response={"content": "4"}), asked, content=True)
    names = ("failure", "judge_j_failure", "reason_j", "reason_record")
    assert [first[name] for name in names] == ["judge_output_invalid", "task: judge_output_invalid", None, "no content"]
    assert [second[name] for name in names] == ["judge_output_invalid", "judge_output_invalid", "no verdict", None]


def test_the_table_of_head_says_that_the_task_failed_and_not_the_judge():
    row = {"subject_kind": "row", "subject_id": "1", "failure": "judge_output_invalid", "cost_usd": "0"}
    row |= {"judge_j_failure": "task: judge_output_invalid", "reason_record": "no content"}
    _, drawing, *_ = head_parts({"head": [row], "score": None}, None)
    assert "\n".join(drawing.lines).count("task: reply is invalid") == 2
    assert "judge_output_invalid" not in "\n".join(drawing.lines)
