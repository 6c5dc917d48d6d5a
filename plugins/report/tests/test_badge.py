"""``report/badge``: the gate's answer, or a mean, as a picture with the same words for screen readers."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dicast import ConfigError, Score, Subject
from dicast.testing import FakeMetric, SinkConformance, run_pipeline
from dicast_report.badge import badge, badge_text

SVG = "{http://www.w3.org/2000/svg}"


class TestBadge(SinkConformance):
    sink = "report/badge"
    options = {"path": "out/badge.svg"}


def drawn(folder, gate="{}", scores=None, **options):
    listed = "".join(f", {name}: {value}" for name, value in options.items())
    text = (
        f"name: answers\nmetrics: [cheap]\ngate: {gate}\nsinks: [report/badge: {{path: {folder / 'b.svg'}{listed}}}]\n"
    )
    subjects = [Subject("row", "1", output="a"), Subject("row", "2", output="b")]
    done = run_pipeline(text, subjects=subjects, components={"cheap": FakeMetric(scores or Score(0.7))})
    path = folder / "b.svg"
    return done, ET.parse(path).getroot() if path.is_file() else None


@pytest.mark.parametrize(
    ("gate", "word"),
    [
        ("{min_score: 0.5}", "passed"),
        ("{min_score: 0.9}", "failed"),
        ("{min_score: 0.9, bound: interval}", "undecided"),
    ],
)
def test_it_says_what_the_gate_says(tmp_path, gate, word):
    done, root = drawn(tmp_path, gate)
    assert root.find(f"{SVG}title").text == f"answers: {word}"
    assert [text.text for text in root.iter(f"{SVG}text")] == ["answers", word]


def test_undecided_is_a_third_answer(tmp_path):
    _, root = drawn(tmp_path, scores=[Score(1.0), ValueError("broken")])
    assert root.find(f"{SVG}title").text == "answers: undecided"


def test_it_has_a_title_a_label_and_a_role(tmp_path):
    _, root = drawn(tmp_path)
    assert (root.get("role"), root.get("aria-label")) == ("img", root.find(f"{SVG}title").text)


@pytest.mark.parametrize("on", ["score", "metrics", "cheap"])
def test_it_shows_a_mean_as_the_terminal_does(tmp_path, on):
    done, root = drawn(tmp_path, scores=[Score(2 / 3), Score(1.0)], on=on, text="helpful")
    assert root.get("aria-label") == f"helpful: {done.document['score']['mean']:.4f}" == "helpful: 0.8333"


def test_a_mean_on_a_scale_of_its_own_is_marked():
    figures = {"label": "metrics", "mean": 0.5, "scale": "raw"}
    done = {
        "score": figures,
        "labels": {"metrics": figures},
        "metrics": {"words": figures},
        "judges": {},
        "gate": None,
        "aggregates": {},
    }
    assert [badge_text(done, on) for on in ("score", "metrics", "words")] == ["0.5000 (raw scale)"] * 3


@attrs.frozen
class Rating:
    name = "rating"
    writes = ("scores",)

    def extract(self, record):
        return {"scores": {"tone": float(record["row"]["output"])}}


def test_it_shows_the_mean_of_a_criterion_that_the_gate_is_about(tmp_path):
    text = "extractors: [rating]\ngate: {on: tone, min_score: 3}\n"
    sink = f"sinks: [report/badge: {{path: {tmp_path / 'b.svg'}, on: tone, text: tone}}]\n"
    subjects = [Subject("row", "1", output="2"), Subject("row", "2", output="5")]
    run_pipeline(text + sink, subjects=subjects, components={"rating": Rating()})
    assert ET.parse(tmp_path / "b.svg").getroot().get("aria-label") == "tone: 3.5000"


def test_a_label_that_is_not_there_is_said_with_the_nearest(tmp_path):
    with pytest.raises(ConfigError, match=r"'chaep' is none .*did you mean 'cheap'\? \(sinks\[0\]\.on\)"):
        drawn(tmp_path, on="chaep")


def test_wide_letters_have_room():
    (narrow, _), (wide, _) = (re.findall(r'textLength="(\d+)"', badge(text, "ok", "#000")) for text in ("ab", "日本"))
    assert int(wide) == 2 * int(narrow)


@given(st.text(max_size=80), st.text(max_size=20))
def test_any_text_is_text(left, right):
    picture = badge(left, right, "#000000")
    root = ET.fromstring(picture)
    assert {element.tag.removeprefix(SVG) for element in root.iter()} <= {"svg", "title", "rect", "path", "g", "text"}
    assert all(not name.startswith("on") and "href" not in name for element in root.iter() for name in element.attrib)
