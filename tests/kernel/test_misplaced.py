"""A word among the sections that is an option of one of them: the message says where it goes."""

from __future__ import annotations

import re

import pytest

from dicast._kernel.pipeline.build import load_pipeline
from dicast._kernel.values.errors import ConfigError

PIPELINE = "source: {rows/jsonl: {path: rows.jsonl}}\nmetrics: [proxy/format]\n"


def told(tmp_path, text):
    file = tmp_path / "p.yaml"
    file.write_text(PIPELINE + text)
    (tmp_path / "rows.jsonl").write_text('{"id": "1", "output": "x"}\n')
    with pytest.raises(ConfigError) as raised:
        load_pipeline(file)
    (problem,) = raised.value.problems
    assert (problem.line, problem.column) == (3, 1)
    return problem


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("concurrency: 2", "write it as executor: {dicast/async: {concurrency: 2}}"),
        (
            "concurrency: 2\nexecutor: {dicast/processes: {workers: 1}}",
            "write it as executor: {dicast/processes: {concurrency: 2}}",
        ),
        ("threshold: 0.7", "write it as scoring: {threshold: 0.7}"),
        ("num_rollouts: 3", "write it as scoring: {num_rollouts: 3}"),
        ("min_score: 0.9", "write it as gate: {min_score: 0.9}"),
        ("day: 2.00 usd", "write it as budget: {day: 2.00 usd}"),
        ("run: [2.00 usd, 100 msat]", "write it as budget: {run: …}"),
        ("corrected: true", "write it as gate: {corrected: true}"),
        ("weight: 2", "write it among the options of a metric or a judge, as in NAME: {weight: 2}"),
        ("shuffle: 3", "write it among the options of the source, as in NAME: {shuffle: 3}"),
    ],
)
def test_an_option_among_the_sections_is_told_its_place(tmp_path, text, place):
    problem = told(tmp_path, text)
    name = text.partition(":")[0]
    assert (problem.message, problem.hint) == (f"unknown section {name!r}; {place}", None)


@pytest.mark.parametrize(
    ("text", "written"),
    [
        (
            "{concurrency: 2}",
            "executor: {dicast/async: {concurrency: 2}}, or --set executor.dicast/async.concurrency=2",
        ),
        (
            "{async: {concurrency: 2}}",
            "executor: {dicast/async: {concurrency: 2}}, or --set executor.dicast/async.concur",
        ),
        ("{workers: 3}", "executor: {dicast/processes: {workers: 3}}, or --set executor.dicast/processes.workers=3"),
        ("{speed: 3}", "executor: {dicast/async: {speed: 3}}, or --set executor.dicast/async.speed=3"),
    ],
)
def test_options_in_place_of_an_executor_are_shown_below_its_name(tmp_path, text, written):
    (tmp_path / "rows.jsonl").write_text('{"id": "1", "output": "x"}\n')
    (tmp_path / "p.yaml").write_text(f"{PIPELINE}executor: {text}\n")
    with pytest.raises(ConfigError) as raised:
        load_pipeline(tmp_path / "p.yaml")
    (problem,) = raised.value.problems
    assert f"in place of a component; write {written}" in problem.message


def test_a_word_of_a_section_has_the_section(tmp_path):
    assert told(tmp_path, "stop: []").hint == "early_stop"


def test_what_is_no_option_of_any_has_the_nearest_section(tmp_path):
    problem = told(tmp_path, "sinkz: []")
    assert (problem.message, problem.hint) == ("unknown section 'sinkz'", "sinks")


def refusal(tmp_path, override):
    """Return the message for *override* of a file with the metrics *format* and *words* and the judge *helpful*."""
    file = tmp_path / "p.yaml"
    metrics = "metrics: [proxy/format: {as: format}, proxy/length: {as: words, min: 1}]\n"
    file.write_text(PIPELINE.splitlines()[0] + "\n" + metrics + "judges: [heuristic/turn: {as: helpful}]\n")
    (tmp_path / "rows.jsonl").write_text('{"id": "1", "output": "x"}\n')
    with pytest.raises(ConfigError) as raised:
        load_pipeline(file, overrides=[override])
    return str(raised.value)


@pytest.mark.parametrize(
    ("override", "option"),
    [
        ("scoring.pass_at.helpful=0.5", "pass_at is set at each metric or judge: judges.helpful.pass_at"),
        ("scoring.pass_at.format=0.5", "pass_at is set at each metric or judge: metrics.format.pass_at"),
        ("scoring.helpful.pass_at=0.5", "judges.helpful.pass_at"),
        ("scoring.weight.words=2", "metrics.words.weight"),
        ("scoring.timeout.helpful=9", "judges.helpful.timeout"),
        ("scoring.helpful.lookahead_messages=2", "judges.helpful.lookahead_messages"),
        ("gate.pass_at.helpful=0.5", "judges.helpful.pass_at"),
        ("pass_at.helpful=0.5", "judges.helpful.pass_at"),
        (
            "scoring.pass_at.other=0.5",
            "no metric or judge is called 'other'; the pipeline has metrics.format.pass_at, metrics.words.pass_at,",
        ),
    ],
)
def test_an_option_of_one_label_set_elsewhere_names_its_path(tmp_path, override, option):
    message = refusal(tmp_path, override)
    assert override.partition("=")[0] in message
    assert option in message


LISTED = "gate: [{on: metrics, min_score: 0.5}, {on: helpful, min_score: 0.5}, {on: metrics, min_pass_rate: 0.5}]\n"


def loaded(tmp_path, override, gate=LISTED):
    """Return the pipeline with *override*, or the message against it."""
    file = tmp_path / "p.yaml"
    metrics = "metrics: [proxy/format: {as: format}, proxy/length: {as: words, min: 1}]\n"
    file.write_text(PIPELINE.splitlines()[0] + "\n" + metrics + "judges: [heuristic/turn: {as: helpful}]\n" + gate)
    (tmp_path / "rows.jsonl").write_text('{"id": "1", "output": "x"}\n')
    try:
        return load_pipeline(file, overrides=[override])
    except ConfigError as error:
        return str(error)


@pytest.mark.parametrize(
    ("path", "index"),
    [
        ("gate.helpful.min_score", 1),
        ("gate.metrics.min_score", 0),
        ("gate.metrics.min_pass_rate", 2),
        ("gate.1.min_score", 1),
    ],
)
def test_a_clause_is_addressed_by_its_label(tmp_path, path, index):
    clauses = loaded(tmp_path, f"{path}=0.25").gate.clauses
    option = path.rpartition(".")[2]
    assert [at for at, clause in enumerate(clauses) if getattr(clause, option) == 0.25] == [index]
    single = f"gate: {{on: helpful, {option}: 0.5}}\n"
    assert getattr(loaded(tmp_path, f"gate.helpful.{option}=0.25", single).gate.clauses[0], option) == 0.25


@pytest.mark.parametrize(
    "path",
    [
        *(
            f"{section}.{label}.{option}"
            for section in ("scoring", "gate")
            for label in ("format", "helpful")
            for option in ("weight", "pass_at", "min_score", "lookahead_messages", "evidence", "min")
        ),
        *("gate.min_score", "gate.min_pass_rate", "gate.min_coverage", "gate.metrics.min_coverage"),
    ],
)
@pytest.mark.parametrize("gate", [LISTED, "gate: {on: metrics, min_score: 0.5}\n"], ids=["list", "clause"])
def test_every_path_that_a_message_names_is_accepted(tmp_path, path, gate):
    values = {"lookahead_messages": "2", "min": "1"}
    refused = loaded(tmp_path, f"{path}={values.get(path.rpartition('.')[2], '0.5')}", gate)
    message = refused.rpartition(" (")[0] if isinstance(refused, str) else ""  # the path that was written follows
    for named in re.findall(r"(?:judges|metrics|gate)[.\[][^ ,;:]*", message.replace(f"{path} does not exist", "")):
        option = named.rpartition(".")[2] if not named.endswith("]") else None
        assert option is None or not isinstance(loaded(tmp_path, f"{named}={values.get(option, '0.5')}", gate), str), (
            message
        )


def test_an_option_of_a_list_of_clauses_names_the_path_of_each_clause_that_has_it(tmp_path):
    message = loaded(tmp_path, "gate.min_score=0.5")
    assert "because the gate has 3 clauses; write gate[0].min_score or gate.helpful.min_score" in message.replace(
        "gate.metrics", "gate[0]"
    )
    assert "write gate[2].min_pass_rate" in loaded(tmp_path, "gate.min_pass_rate=0.5").replace(
        "gate.metrics", "gate[2]"
    )


@pytest.mark.parametrize(("own", "expected"), [("", 1.0), (": {pass_at: 1.0}", 1.0)])
def test_the_only_metric_passes_at_the_line_of_the_score(tmp_path, own, expected):
    (tmp_path / "rows.jsonl").write_text('{"id": "1", "output": "x", "reference": "x"}\n')
    file = tmp_path / "p.yaml"
    file.write_text(f"{PIPELINE.splitlines()[0]}\nmetrics:\n- diff/match{own}\nscoring: {{pass_at: 1.0}}\n")
    assert load_pipeline(file).metrics[0].pass_at == expected
    with pytest.raises(
        ConfigError, match=r"diff/match, the only metric, passes at 0.7, but scoring.pass_at is 1; write the number"
    ):
        load_pipeline(file, overrides=["metrics.0.pass_at=0.7"])
