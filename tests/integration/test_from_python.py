"""Runs of Python data: rows, metrics made in Python, a function as the task."""

from __future__ import annotations

import math
import threading

import orjson
import pytest

import dicast
from dicast import Failure, Score, Subject, metric
from dicast.toolkit.function_task import FunctionTask

ROWS = [{"input": "one", "reference": "ONE"}, {"input": "two", "reference": "2", "topic": "numbers"}]
JUDGED = [{"input": "a", "output": "x", "reference": "x"}, {"input": "b", "output": "y", "reference": "z"}]


@metric(tier="truth")
def short(subject: Subject, *, words: int = 3) -> Score:
    """Score 1 if the output has few words."""
    return Score(1.0 if len(subject.text.split()) <= words else 0.0)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def outputs(run):
    return list(run.to_pandas()["llm_content"])


def asked(task, rows=ROWS, **pipeline):
    return dicast.evaluate(rows, ["diff/match"], task=task, **pipeline)


# rows and metrics


def test_rows_are_judged_by_names_options_and_components_made_in_python():
    run = dicast.evaluate(JUDGED, ["diff/match", {"proxy/length": {"max": 5}}, short, short(words=0)])
    means = {label: item["mean"] for label, item in run.metrics.items()}
    assert means == {"diff/match": 0.5, "proxy/length": 1.0, "short": 1.0, "short_2": 0.0}


def test_an_option_of_a_component_made_in_python_is_in_its_fingerprint():
    first, second = (dicast.evaluate(JUDGED, [short(words=words)]).verdicts[0] for words in (3, 4))
    assert first.fingerprint != second.fingerprint


def test_a_component_made_in_python_stands_in_a_pipeline():
    run = dicast.run(
        {"metrics": [{"proxy/format": {"as": "answered"}}, short]}, subjects=[Subject("row", "1", output="a")]
    )
    assert set(run.metrics) == {"answered", "short"}


def test_columns_of_other_names_are_mapped_and_what_is_no_field_is_context():
    rows = [{"q": "a", "answer": "x", "gold": "x", "n": 7}]
    names = {"id": "n", "input": "q", "output": "answer", "reference": "gold"}
    run = dicast.evaluate(rows, ["diff/match"], fields=names)
    assert [(verdict.subject_id, verdict.score) for verdict in run.verdicts] == [("7", 1.0)]


def test_a_data_frame_is_rows_and_its_missing_values_are_none():
    import pandas as pd

    run = dicast.evaluate(pd.DataFrame(JUDGED + [{"input": "c", "output": "z"}]), ["diff/match"])
    assert (run.scored, run.failures) == (2, {"missing_input": 1})


@pytest.mark.parametrize(
    ("rows", "fields", "message"),
    [
        ([3, {"input": "a"}, "b"], {}, r"row 1: not a mapping of columns: 3\nrow 3: "),
        ([{"anwser": "a"}], {"output": "answer"}, r"row 1: it has no 'answer'; it has anwser, did you mean 'anwser'"),
        (JUDGED, {"outptu": "a"}, r"unknown field 'outptu'.*did you mean 'output'"),
    ],
)
def test_rows_that_are_none_are_refused_before_anything_is_judged(rows, fields, message):
    with pytest.raises(dicast.RequestError, match=message):
        dicast.evaluate(rows, ["diff/match"], fields=fields)


def test_a_plain_function_is_no_metric_and_the_message_says_what_makes_it_one():
    def length(subject):
        return 1.0

    with pytest.raises(dicast.ConfigError, match=r"'length' is a function.*@dicast.metric"):
        dicast.evaluate(JUDGED, [length])


# a function as the task


def by_input(input):
    return input.upper()


def by_any_name(question):
    return question.upper()


def by_row(row):
    return row["input"].upper()


def by_subject(subject):
    return subject.input.upper()


def by_rest(input, **rest):
    return input.upper() if "reference" in rest and "input" not in rest else None


def by_column(input, topic="none"):
    return {"content": input.upper(), "metrics": {"topic": topic}}


async def waiting(input):
    return input.upper()


@pytest.mark.parametrize("task", [by_input, by_any_name, by_row, by_subject, by_rest, by_column, waiting])
def test_a_function_gets_the_columns_that_it_names_and_returns_the_output(task):
    run = asked(task)
    assert (outputs(run), run.score["mean"]) == (["ONE", "TWO"], 0.5)


def test_what_is_returned_beside_the_content_is_in_the_record():
    assert list(asked(by_column).to_pandas()["metric_topic"]) == ["none", "numbers"]


@pytest.mark.parametrize(
    ("answer", "kind", "message"),
    [
        (lambda input: None, "judge_output_invalid", "the answer is empty"),
        (lambda input: " ", "judge_output_invalid", "the answer is empty"),
        (lambda input: object(), "judge_output_invalid", "neither text nor JSON"),
        (lambda input: math.nan, "judge_output_invalid", "the answer is nan, which JSON does not have"),
        (lambda input: {"a": [1, -math.inf]}, "judge_output_invalid", "the answer.a.1 is -inf"),
        (lambda input: {"content": "x", "metrics": {"cost": math.nan}}, "judge_output_invalid", "metrics.cost is nan"),
        (lambda input: 1 / 0, "crashed", "ZeroDivisionError"),
        (lambda input: next(iter(())), "crashed", "StopIteration"),
        (lambda input: Failure("refused", "not today"), "refused", "not today"),
        (lambda colour, input: colour, "missing_input", "the row has no column colour; it has id, input, reference"),
    ],
)
def test_a_function_that_gives_no_output_fails_its_row(answer, kind, message):
    run = asked(answer, ROWS[:1])
    assert run.failures == {kind: 1}
    assert message in run.failed_subjects[0]["error_message"]


@pytest.mark.parametrize(
    ("column", "value", "place"),
    [("output", math.nan, "output is nan"), ("reference", [math.inf], "reference.0 is inf"), ("n", {"a": math.nan}, "context.n.a is nan")],
)  # fmt: skip
def test_a_number_that_json_does_not_have_is_an_error_and_no_null(column, value, place):
    row = {"id": "a", "input": None, "output": "x", "note": None, column: value}
    with pytest.raises(dicast.DataError, match=f"subject 'a': {place}, which JSON does not have"):
        dicast.evaluate([row], ["proxy/format"])


def test_json_and_subjects_are_outputs_too():
    assert outputs(asked(lambda input: {"n": [1]}, ROWS[:1])) == ['{"n":[1]}']
    run = asked(lambda subject: Subject("row", subject.id, subject.input, "ONE", subject.reference), ROWS[:1])
    assert run.score["mean"] == 1.0


@pytest.mark.slow
def test_functions_that_wait_do_so_side_by_side():
    together = threading.Barrier(8, timeout=30)

    def answer(input):
        together.wait()
        return input

    rows = [{"input": str(number), "reference": str(number)} for number in range(8)]
    assert asked(answer, rows).score["mean"] == 1.0


def test_a_function_that_does_not_end_fails_its_row_and_holds_up_nothing():
    forever = threading.Event()

    def answer(input):
        forever.wait()

    subjects = [Subject("row", "1", "a", reference="A")]
    run = dicast.run({"metrics": ["diff/match"]}, subjects=subjects, task=Hurried(answer))
    assert run.failures == {"timeout": 1}
    forever.set()


class Hurried(FunctionTask):
    """A function that has a moment."""

    default_timeout = 0.1


def test_a_task_in_a_suite_is_refused():
    suite = {"source": {"rows/jsonl": {"path": "a"}}, "metrics": ["diff/match"], "experiments": {"a": {}, "b": {}}}
    with pytest.raises(dicast.ConfigError, match="use task/python in the file"):
        dicast.run(suite, task=by_input)


def test_a_changed_function_is_another_task():
    runs = [asked(task).run_id for task in (by_input, by_input, by_row)]
    started = {}

    def read(ledger):
        started.update(
            (entry.event.run_id, entry.event.payload) for entry in ledger.read(dicast.Query(types=("run.started",)))
        )

    dicast.read_ledger(None, read)
    first, equal, other = (started[run]["fingerprints"]["task"] for run in runs)
    assert first == equal != other


# a data frame


def test_the_frame_has_the_columns_of_the_csv_file(folder):
    import pandas as pd

    run = dicast.evaluate(JUDGED, ["diff/match"], sinks=[{"csv/rows": {"path": "rows.csv"}}])
    frame = run.to_pandas()
    assert list(frame.columns) == list(pd.read_csv(folder / "rows.csv").columns)
    assert list(frame["score"]) == [1.0, 0.0]


def test_of_a_suite_the_frame_names_the_experiment(folder):
    (folder / "rows.jsonl").write_bytes(b"\n".join(map(orjson.dumps, JUDGED)))
    suite = {
        "source": {"rows/jsonl": {"path": "rows.jsonl"}},
        "metrics": ["diff/match"],
        "experiments": {"a": {}, "b": {}},
    }
    frame = dicast.run(suite).to_pandas()
    assert list(frame["experiment"]) == ["a", "a", "b", "b"]


def test_a_run_that_judged_nothing_is_an_empty_frame(monkeypatch):
    monkeypatch.setenv("DICAST_DISABLED", "1")
    assert dicast.evaluate(JUDGED, ["diff/match"]).to_pandas().empty


def test_without_pandas_it_says_what_to_install(monkeypatch):
    run = dicast.evaluate(JUDGED, ["diff/match"])
    monkeypatch.setattr("dicast.toolkit.run_frame.find_spec", lambda name: None)
    with pytest.raises(dicast.ConfigError, match="pip install pandas"):
        run.to_pandas()
