"""``dicast init --model local``: a GGUF file or package is asked for, and the short form is written."""

from __future__ import annotations

import io
import json

import pytest
import yaml

from dicast._kernel.cli import main

FACTS = "question,answer,expected\n" + "".join(
    f"Where is the spare key number {n}?,Look in the blue box below the staircase,It is in the blue box under the stairs\n"
    for n in range(1, 5)
)


@pytest.fixture
def init(tmp_path, monkeypatch, capsys):
    """Write data and a file that begins as a model does, and run ``dicast init``: the exit code, stderr and the pipeline."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.gguf").write_bytes(b"GGUF and more")

    def run(text, *options, stdin="", json_output=True):
        (tmp_path / "rows.csv").write_text(text)
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        extra = ["--json"] if json_output else []
        code = main(["init", "rows.csv", "--model", "local", *options, *extra, "--no-try"])
        written = tmp_path / "pipeline.yaml"
        out, err = capsys.readouterr()
        return code, out, err, yaml.safe_load(written.read_text()) if written.exists() else None

    return run


def judge_of(pipeline):
    return next(
        metric["llm/judge"] for metric in pipeline["metrics"] if isinstance(metric, dict) and "llm/judge" in metric
    )


def test_the_file_is_asked_for_and_the_short_form_is_written(init):
    code, out, err, pipeline = init(FACTS, stdin="model.gguf\n")
    assert code == 0, err
    assert "GGUF file, or installed package that has one" in err
    assert json.loads(out)["judged"] == "the output against column 'expected', by a model"
    assert pipeline["define"] == {"asked": {"llamacpp/chat": {"path": "model.gguf"}}}
    judge = judge_of(pipeline)
    assert (judge["model"], judge["form"], judge["max_evidence_chars"]) == ("asked", "yes_no", 8000)
    assert [example["answer"] for example in judge["examples"]] == ["yes", "no", "yes", "no"]
    assert judge["rubric"] == "reference-short-v1"
    assert pipeline["scoring"]["pass_at"] == 0.5


def test_what_is_written_is_a_pipeline_that_check_accepts(init, capsys):
    init(FACTS, "--gguf", "model.gguf")
    assert main(["check", "pipeline.yaml"]) == 0, capsys.readouterr().err


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Install the distribution ``tiny-model``, which has a GGUF file."""
    about = tmp_path / "site" / "tiny_model-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: tiny-model\nVersion: 1.0\n")
    (about / "RECORD").write_text("tiny_model/weights.gguf,,\n")
    (tmp_path / "site" / "tiny_model").mkdir()
    (tmp_path / "site" / "tiny_model" / "weights.gguf").write_bytes(b"GGUF and more")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    return "tiny-model"


def test_a_package_may_be_named(init, package):
    code, _, err, pipeline = init(FACTS, "--gguf", package)
    assert code == 0, err
    assert pipeline["define"] == {"asked": {"llamacpp/chat": {"package": package}}}


def test_off_a_terminal_the_error_has_its_own_line_and_names_installed_packages(init, package):
    code, _, err, _ = init(FACTS, json_output=False)
    assert code == 2
    error = next(line for line in err.splitlines() if "--model local needs a model" in line)
    assert "GGUF file, or installed package" not in error
    assert f"{package}" in error.partition("installed packages with a GGUF file: ")[2]


def test_the_file_says_how_far_to_trust_a_base_model(init, tmp_path):
    init(FACTS, "--gguf", "model.gguf")
    assert (
        "may decide by chance and fail an output that equals its reference" in (tmp_path / "pipeline.yaml").read_text()
    )


def test_the_path_is_relative_to_the_pipeline(init, tmp_path):
    (tmp_path / "evals").mkdir()
    code, _, err, _ = init(FACTS, "--gguf", "model.gguf", "--out", "evals/pipeline.yaml")
    assert code == 0, err
    written = yaml.safe_load((tmp_path / "evals" / "pipeline.yaml").read_text())
    assert written["define"]["asked"]["llamacpp/chat"]["path"] == "../model.gguf"


def test_without_a_reference_the_output_alone_is_judged(init):
    rows = "question,answer\n" + "What is new?,Nothing that we know of today\n" * 3
    _, _, err, pipeline = init(rows, "--gguf", "model.gguf")
    judge = judge_of(pipeline)
    assert (judge["form"], "examples" in judge, "criteria" in judge) == ("yes_no", False, True), err


def test_two_outputs_are_compared_by_letter(init):
    rows = "prompt,chosen,rejected\n" + "".join(f"Say {n} nicely,It is {n} indeed,No way {n}\n" for n in range(4))
    _, _, err, pipeline = init(rows, "--gguf", "model.gguf")
    assert {"llm/pairwise": {"model": "asked", "form": "letter", "max_evidence_chars": 8000}} in pipeline["metrics"], (
        err
    )


@pytest.mark.parametrize(
    ("options", "stdin", "words"),
    [
        ((), "", "name it with --gguf FILE.gguf or --gguf PACKAGE"),
        (("--gguf", "none.gguf"), "", "there is no such file"),
        (("--gguf", "rows.csv"), "", "is no GGUF file: it begins with b'ques'"),
        (("--gguf", "no-such-package"), "", "is neither a file nor an installed package"),
        (("--gguf", "pluggy"), "", "--gguf 'pluggy': the package 'pluggy' has no GGUF file"),
        (("--gguf", ""), "", "is neither a file nor an installed package"),
    ],
)
def test_a_model_that_is_none_is_refused_and_nothing_is_written(init, options, stdin, words):
    code, out, err, pipeline = init(FACTS, *options, stdin=stdin, json_output=False)
    assert (code, pipeline) == (2, None)
    assert words in err


def test_a_file_is_only_for_a_local_model(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.csv").write_text(FACTS)
    assert main(["init", "rows.csv", "--model", "gpt-x", "--gguf", "m.gguf"]) == 2
    assert "--gguf is for --model local" in capsys.readouterr().err
