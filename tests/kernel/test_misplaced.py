"""A word among the sections that is an option of one of them: the message says where it goes."""

from __future__ import annotations

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
        ("scoring.helpful.evidence=plain", "judges.helpful.evidence"),
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
