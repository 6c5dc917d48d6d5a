"""``github/summary``: the job's summary and annotations, in GitHub's own formats."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dicast import Failure, Score, Subject
from dicast.testing import FakeMetric, SinkConformance, run_pipeline
from dicast_github.annotations import MOST, Annotation, Place
from dicast_github.summary import LIMIT, append

TEXT = "name: answers\nmetrics: [cheap]\ngate: {min_score: 0.9, min_coverage: 0.5}\n"
COMMAND = re.compile(r"::(?P<level>\w+)(?: (?P<properties>[^:]*))?::(?P<message>.*)")


class TestSummary(SinkConformance):
    sink = "github/summary"
    options = {"path": "out/summary.md"}


def parsed(line):
    """A workflow command as GitHub's runner reads it."""
    match = COMMAND.fullmatch(line)
    pairs = [pair.split("=", 1) for pair in (match["properties"] or "").split(",") if pair]
    codes = {"%3A": ":", "%2C": ",", "%0D": "\r", "%0A": "\n"}

    def plain(text, signs):
        for sign in signs:
            text = text.replace(sign, codes[sign])
        return text.replace("%25", "%")

    properties = {name: plain(value, codes) for name, value in pairs}
    return match["level"], properties, plain(match["message"], ("%0D", "%0A"))


texts = st.one_of(st.text(), st.sampled_from(["100%", "%0A", "a,b:c", "::error::x", "##[error]x", "a\r\nb\rc", "\x1b[31m", "\n::set-output name=a::b"]))  # fmt: skip


@given(texts, texts, texts)
def test_an_annotation_is_one_line_that_reads_back(message, title, file):
    line = Annotation("error", message, title, file, 3, 4).command()
    assert len(line.splitlines()) == 1
    level, properties, text = parsed(line)
    assert level == "error"
    assert set(properties) == {"file", "line", "col", "title"}
    assert (properties["line"], properties["col"]) == ("3", "4")
    if message.isascii() and message.isprintable():
        assert text == message
    if title.isascii() and title.isprintable():
        assert properties["title"] == title


def test_percent_signs_line_ends_commas_and_colons_are_escaped():
    line = Annotation("warning", "50% of:\na, b\r\nc", "t: 1, 2%", "a,b.yaml", 1).command()
    assert line == "::warning file=a%2Cb.yaml,line=1,title=t%3A 1%2C 2%25::50%25 of:%0Aa, b%0Ac"


@pytest.fixture
def github(tmp_path, monkeypatch):
    """The environment of a step, in whose workspace the run is."""
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path))
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "step.md"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(scores, outputs, options="", text=TEXT):
    subjects = [Subject("row", f"r{number}", output=output) for number, output in enumerate(outputs, 1)]
    sink = f"sinks: [github/summary: {{{options}}}]\n"
    return run_pipeline(text + sink, subjects=subjects, components={"cheap": FakeMetric(scores)})


def test_the_run_is_added_to_the_steps_summary(github):
    (github / "step.md").write_text("# mine, without an end of line")
    run(Score(0.5), "ab")
    run(Score(1.0), "ab")
    text = (github / "step.md").read_text()
    assert text.startswith("# mine, without an end of line\n\n## `answers`: failed\n")
    assert text.count("## `answers`: passed\n") == 1


def test_what_did_not_pass_is_annotated_at_its_section(github, capsys):
    (github / "answers.yaml").write_text(TEXT)
    import dicast

    rows = '{"id": "1", "output": "no, 50%: no"}\n{"id": "2", "output": ""}\n'
    (github / "rows.jsonl").write_text(rows)
    (github / "evals").mkdir()
    (github / "evals" / "a.yaml").write_text(
        "name: answers\nsource: {rows/jsonl: {path: ../rows.jsonl}}\n\nmetrics: [check/contains: {value: yes}]\n"
        "gate: {min_score: 0.9}\nsinks: [github/summary]\n"
    )
    dicast.run(github / "evals" / "a.yaml")
    commands = [parsed(line) for line in capsys.readouterr().out.splitlines()]
    assert [(level, properties_["file"], properties_["line"]) for level, properties_, _ in commands] == [
        ("error", "evals/a.yaml", "5"),
        ("warning", "evals/a.yaml", "4"),
        ("warning", "evals/a.yaml", "4"),
    ]
    assert commands[0][2].startswith("gate failed: the mean of check/contains is 0")
    assert commands[1][2].startswith("row 1, check/contains: 0.0000, below 0.5: the output ")


@pytest.mark.parametrize("gate", ["", "gate: {min_score: 0.9}\n", "gate: {on: check/contains, min_score: 0.9}\n"])
def test_the_only_metric_has_one_line_and_one_name_in_the_summary_and_the_annotations(github, capsys, gate):
    import dicast

    (github / "rows.jsonl").write_text('{"id": "1", "output": "no"}\n{"id": "2", "output": "yes"}\n')
    (github / "a.yaml").write_text(
        "name: a\nsource: {rows/jsonl: {path: rows.jsonl}}\nmetrics: [check/contains: {value: yes}]\n"
        + gate
        + "sinks: [github/summary]\n"
    )
    dicast.run(github / "a.yaml")
    text = (github / "step.md").read_text()
    rows = [line for line in text.splitlines() if line.startswith("| `check/contains` | 0.5000 (0.")]
    assert len(rows) == 1
    assert "`metrics`" not in text
    assert "metrics: " not in capsys.readouterr().out.partition("::warning")[2]


def test_at_most_as_many_annotations_of_a_level_as_github_shows(github, capsys):
    done = run(Score(0.0), ["x"] * 30)
    commands = [parsed(line) for line in capsys.readouterr().out.splitlines()]
    assert done.document["gate"]["passed"] is False
    assert sum(level == "warning" for level, *_ in commands) == MOST
    assert sum(level == "error" for level, *_ in commands) == 1
    assert commands[-1][2].startswith("21 more subjects did not pass")


def test_an_undecided_gate_is_an_error_because_the_job_fails(github, capsys):
    run([Score(1.0), Failure("refused", "no")], "ab", text=TEXT.replace("0.5", "0.9"))
    level, _, message = parsed(capsys.readouterr().out.splitlines()[0])
    assert (level, message.partition(":")[0]) == ("error", "gate undecided")


def test_nothing_is_annotated_where_all_passed(github, capsys):
    run(Score(1.0), "ab")
    assert capsys.readouterr().out == ""


def test_outside_github_nothing_is_printed_or_written(tmp_path, monkeypatch, capsys):
    for name in ("GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    done = run(Score(0.0), "ab")
    assert (capsys.readouterr().out, [*tmp_path.iterdir()], done.exit_code) == ("", [], 1)


def test_annotations_go_to_a_file_where_one_is_named(tmp_path, monkeypatch, capsys):
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    run(Score(0.0), "ab", f"path: {tmp_path / 's.md'}, annotations_path: {tmp_path / 'a.txt'}")
    assert capsys.readouterr().out == ""
    assert [parsed(line)[0] for line in (tmp_path / "a.txt").read_text().splitlines()] == [
        "error",
        "warning",
        "warning",
    ]


def test_what_was_judged_is_shown_only_where_that_is_asked_for(tmp_path):
    run(Score(0.0), ["an answer"], f"path: {tmp_path / 'a.md'}")
    run(Score(0.0), ["an answer"], f"path: {tmp_path / 'b.md'}, content: true")
    assert "an answer" not in (tmp_path / "a.md").read_text()
    assert "an answer" in (tmp_path / "b.md").read_text()


def test_a_summary_is_never_larger_than_github_takes(tmp_path):
    path = tmp_path / "s.md"
    path.write_bytes(b"x" * (LIMIT - 3_000))
    run(Score(0.0, details="why " * 50), ["y" * 2_000] * 20, f"path: {path}, content: true")
    text = path.read_text()
    assert len(text) <= LIMIT
    assert "did not pass" not in text
    assert "## `answers`: failed" in text
    path.write_bytes(b"x" * (LIMIT - 100))
    run(Score(0.0), "ab", f"path: {path}")
    assert path.read_text().endswith("The summary of this step is full.\n")
    path.write_bytes(b"x" * LIMIT)
    run(Score(0.0), "ab", f"path: {path}")
    assert path.stat().st_size == LIMIT


def test_a_section_that_is_not_there_is_the_first_line(tmp_path):
    (tmp_path / "a.yaml").write_text("name: a\n\nmetrics: []\n")
    place = Place.of_file(tmp_path / "a.yaml", tmp_path)
    assert (place.of("metrics"), place.of("gate")) == (("a.yaml", 3), ("a.yaml", 1))
    assert Place.of_file(tmp_path / "none.yaml", tmp_path).of("gate") == (None, None)


def test_a_section_of_an_included_file_is_at_its_place(tmp_path):
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "base.yaml").write_text("include: [../top.yaml]\n\nmetrics: []\n")
    (tmp_path / "top.yaml").write_text("include: parts/base.yaml\ngate: {}\n")
    place = Place.of_file(tmp_path / "top.yaml", tmp_path)
    assert place.of("metrics") == ("parts/base.yaml", 3)
    assert place.of("gate") == ("top.yaml", 2)
    assert place.of("judges") == ("top.yaml", 1)


def test_adding_nothing_makes_no_file(tmp_path):
    append(tmp_path / "none", lambda _: "")
    assert not (tmp_path / "none").exists()
