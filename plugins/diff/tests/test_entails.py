"""``diff/entails``: directions, labels, long texts, lists of references, and models that are no such model."""

from __future__ import annotations

import asyncio
import csv
import itertools
import os
import runpy
import tempfile
from pathlib import Path
from types import SimpleNamespace

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto

from dicast import ConfigError, Failure, Score, Subject
from dicast.testing import GOLDEN, MetricConformance, run_pipeline
from dicast_diff import Entails
from dicast_diff.nli_model import Described

tiny_nli = SimpleNamespace(**runpy.run_path(str(Path(__file__).with_name("tiny_nli.py"))))
HIGH, LOW = 0.9993, 0.0003
"""The probability of the right label, and of another: the softmax of 8, 0, 0."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny_nli.write(tmp_path_factory.mktemp("nli"))


def scored(folder, output, reference, **options):
    return asyncio.run(
        Entails(model=folder, threshold=0.9, **options).score(Subject("row", "1", "", output, reference))
    )


def near(value):
    return pytest.approx(value, abs=2e-4)


@pytest.mark.parametrize(
    ("output", "reference", "forward", "backward"),
    [
        ("a cat sits", "cat sits a", "entailment", "entailment"),
        ("cat sits", "the big cat sits on the mat", "entailment", "neutral"),
        ("the big cat sits", "the cat sits", "neutral", "entailment"),
        ("a cat sits", "a dog runs", "neutral", "neutral"),
        ("a cat not sits", "a cat sits", "contradiction", "contradiction"),
    ],
)
def test_the_score_is_the_lower_probability_of_both_directions(folder, output, reference, forward, backward):
    score = scored(folder, output, reference)
    assert score.signals["from_reference"][forward] == near(HIGH)
    assert score.signals["to_reference"][backward] == near(HIGH)
    values = {"entailment": HIGH, "neutral": LOW, "contradiction": LOW}
    assert score.value == near(min(values[forward], values[backward]))
    assert score.basis == "model"
    assert scored(folder, output, reference, direction="from_reference").value == near(values[forward])
    assert scored(folder, output, reference, direction="to_reference").value == near(values[backward])
    assert set(scored(folder, output, reference, direction="to_reference").signals) == {"to_reference"}


@pytest.mark.parametrize("labels", list(itertools.permutations(tiny_nli.LABELS)))
def test_the_order_of_labels_is_that_of_the_configuration(tmp_path, labels):
    folder = tiny_nli.write(tmp_path / "m", labels)
    assert scored(folder, "a cat", "a cat").value == near(HIGH)
    assert scored(folder, "a cat", "a dog").signals["from_reference"]["neutral"] == near(HIGH)


def test_labels_of_the_file_are_used_where_the_configuration_has_none(tmp_path):
    folder = tiny_nli.write(tmp_path / "m", config={"id2label": {"0": "LABEL_0", "1": "LABEL_1", "2": "LABEL_2"}})
    with pytest.raises(ConfigError, match=r"LABEL_0, LABEL_1, LABEL_2, and none is 'entailment'.*labels: \["):
        scored(folder, "a cat", "a cat")
    assert scored(folder, "a cat", "a cat", labels=tiny_nli.LABELS).value == near(HIGH)


@pytest.mark.parametrize(
    "options",
    [
        {"type_ids": False},
        {"integer": TensorProto.INT32},
        {"shape": (1, "length")},
        {"shape": ("batch", 24)},
        {"shape": (2, 24)},
    ],
)
def test_models_without_token_types_with_short_integers_and_of_fixed_shape_are_read(tmp_path, options):
    folder = tiny_nli.write(tmp_path / "m", **options)
    assert scored(folder, "the big cat sits", "the cat sits", direction="to_reference").value == near(HIGH)
    assert scored(folder, "the big cat sits", "the cat sits", direction="from_reference").value == near(LOW)


@pytest.mark.parametrize("source", ["config", "tokenizer_config", "option", "fixed"])
def test_a_pair_that_is_too_long_is_cut_counted_and_shown(tmp_path, source):
    options = {"length": 12} if source == "config" else {"shape": ("batch", 12)} if source == "fixed" else {}
    folder = tiny_nli.write(tmp_path / "m", **options)
    if source == "tokenizer_config":
        (folder / "tokenizer_config.json").write_text('{"model_max_length": 12}')
    options_ = {"max_tokens": 12} if source == "option" else {}
    score = scored(folder, "a cat", "a cat " + "is it " * 10, direction="from_reference", **options_)
    assert score.signals["evidence"] == {"cut": 15, "unit": "tokens", "limit": "the model reads 12 tokens of a pair"}
    assert "15 tokens were cut" in score.details
    assert "evidence" not in scored(folder, "a cat", "a cat", **options_).signals


def test_a_cut_pair_is_a_warning_of_the_run_and_a_column(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tiny_nli.write(tmp_path / "m", length=12)
    subjects = [Subject("row", str(number), "", "a cat", "a cat " * number) for number in (1, 9)]
    text = "metrics: [diff/entails: {model: m, threshold: 0.9995}]\nsinks: [csv/rows: {path: o.csv}]\n"
    done = run_pipeline(text, subjects=subjects).document
    (warning,) = done["warnings"]
    assert warning == {
        "kind": "cut_evidence",
        "label": "diff/entails",
        "message": "diff/entails saw cut evidence in 1 verdict; the model reads 12 tokens of a pair",
        "verdicts": 1,
    }
    assert done["metrics"]["diff/entails"]["basis"] == "model"
    assert (done["metrics"]["diff/entails"]["mean"], done["score"]["pass_rate"]) == (near(HIGH), 0.0)
    with (tmp_path / "o.csv").open(newline="") as file:
        assert [row["cut_evidence_diff_entails"] for row in csv.DictReader(file)] == ["", "11"]


def test_the_threshold_is_the_line_and_pass_at_overrides_it(folder):
    assert Entails(model=folder, threshold=0.97).default_pass_at == 0.97
    with pytest.raises(ConfigError, match=r"needs 'threshold'.*\.5 has no meaning"):
        Entails(model=folder)


@pytest.mark.parametrize(("references", "expected"), [("any", HIGH), ("all", (HIGH + LOW) / 2), ("whole", LOW)])
def test_lists_of_references_are_compared_as_in_other_text_metrics(folder, references, expected):
    score = scored(folder, "a cat", ["a dog", "a cat", " "], references=references)
    assert score.value == near(expected)
    if references == "any":
        assert score.signals["references"]["best"] == 2


@pytest.mark.parametrize("reference", [None, " ", []])
def test_a_missing_reference_is_a_failure(folder, reference):
    answer = scored(folder, "a cat", reference)
    assert isinstance(answer, Failure)
    assert answer.kind == "missing_input"


def test_a_blank_output_scores_0_without_the_model(folder):
    assert scored(folder, " ", "a cat") == Score(0.0, details="the output is blank")


words = st.lists(st.sampled_from(tiny_nli.WORDS[4:]), min_size=1, max_size=12).map(" ".join)


@given(st.lists(st.tuples(words, words), min_size=1, max_size=40))
@settings(max_examples=20)
def test_pairs_of_a_batch_are_inferred_as_each_alone(folder, pairs):
    model = Described.of(folder, (), None).load()
    together = model.infer(pairs)
    for pair, inference_ in zip(pairs, together, strict=True):
        (alone,) = model.infer([pair])
        assert inference_.probabilities == pytest.approx(alone.probabilities, abs=1e-6)
        premise, hypothesis = (set(text.split()) for text in pair)
        right = (
            "contradiction"
            if ("not" in premise) != ("not" in hypothesis)
            else "neutral"
            if hypothesis - premise
            else "entailment"
        )
        assert inference_.probabilities[right] == near(HIGH)


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json", "config.json"])
def test_a_missing_file_is_named(tmp_path, name):
    folder = tiny_nli.write(tmp_path / "m")
    (folder / name).unlink()
    with pytest.raises(
        ConfigError, match=f"has no {name}. The option 'model' is a folder with model.onnx, tokenizer.json, config.json"
    ):
        scored(folder, "a", "a")


def test_a_folder_that_is_not_there_is_refused_with_its_place_and_what_it_needs():
    with pytest.raises(ConfigError) as caught:
        run_pipeline("metrics:\n  - diff/entails: {model: nowhere, threshold: 0.9}\n")
    assert "is not a folder with model.onnx, tokenizer.json, config.json" in str(caught.value)
    assert caught.value.problems[0].line == 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: (m / "model.onnx").write_bytes(b"no model"), "model.onnx' cannot be loaded"),
        (lambda m: (m / "tokenizer.json").write_text("{}"), "tokenizer.json' cannot be loaded"),
        (lambda m: (m / "config.json").write_text("{"), "config.json' is not readable JSON"),
        (lambda m: (m / "config.json").write_text("[" * 100_000), "config.json' is not readable JSON"),
        (lambda m: (m / "config.json").write_text("[]"), "is not a JSON object"),
        (lambda m: (m / "config.json").write_text("{}"), "has no id2label.*in the order of the model's card"),
        (lambda m: (m / "config.json").write_text('{"id2label": {"1": "entailment"}}'), "has no id2label"),
        (lambda m: tiny_nli.write(m, extra=("pixel_values",)), r"has the input pixel_values \(tensor\(int64\)\)"),
        (lambda m: tiny_nli.write(m, integer=TensorProto.FLOAT), r"has the input input_ids \(tensor\(float\)\)"),
        (lambda m: tiny_nli.write(m, columns=2), r"has the shape \[1, 2\] for one pair.*\[1, 3\] is needed"),
    ],
)
def test_what_is_wrong_in_a_model_is_named(tmp_path, change, message):
    folder = tiny_nli.write(tmp_path / "m")
    change(folder)
    with pytest.raises(ConfigError, match=message):
        scored(folder, "a", "a")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_in_place_of_a_file_is_refused_at_once(tmp_path):
    folder = tiny_nli.write(tmp_path / "m")
    (folder / "config.json").unlink()
    os.mkfifo(folder / "config.json")
    with pytest.raises(ConfigError, match=r"has no config\.json"):
        scored(folder, "a", "a")


def test_a_limit_beyond_the_models_is_refused(folder):
    with pytest.raises(ConfigError, match="max_tokens is 100, and the model reads 64 tokens at most"):
        scored(folder, "a", "a", max_tokens=100)


def test_another_model_file_is_another_metric(folder):
    assert set(Entails(model=folder, threshold=0.9).reads(folder)) == {"model.onnx", "tokenizer.json", "config.json"}


_FOLDER = tempfile.TemporaryDirectory()


@pytest.mark.slow  # some texts of the kit are long, and tokenized in each test
class TestEntails(MetricConformance):
    metric = "diff/entails"
    options = {"model": str(tiny_nli.write(Path(_FOLDER.name))), "threshold": 0.9}
    # A mebibyte has thousands of windows, which differ in nothing from the first hundreds.
    subjects = [
        attrs.evolve(subject, output=subject.output[:50_000]) if subject.id == "very-long" else subject
        for subject in GOLDEN
    ]
