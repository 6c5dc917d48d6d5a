"""A run whose metric has a raw scale, in the page, in JUnit and as Markdown."""

from __future__ import annotations

import attrs

from dicast import RawScore, Score
from dicast.testing import run_pipeline, sample


@attrs.frozen
class Number:
    name = "number"
    tier = "truth"
    needs_range = True

    def score(self, subject):
        return RawScore(subject.output, details="as told")


@attrs.frozen
class Even:
    name = "even"
    tier = "proxy"

    def score(self, subject):
        return Score(float(subject.output % 2 == 0))


def test_every_report_shows_raw_values(tmp_path):
    page, suites = tmp_path / "page.html", tmp_path / "suites.xml"
    subjects = [sample(output, id=str(output)) for output in (80, 91, 120)]
    done = run_pipeline(
        f"metrics: [even, it]\nsinks: [{{report/html: {{path: {page}}}}}, {{junit/xml: {{path: {suites}}}}}]",
        subjects=subjects,
        components={"it": Number(), "even": Even()},
    )
    assert all(not sink["lost"] for sink in done.document["sinks"].values()), done.document["sinks"]
    assert b"120" in page.read_bytes()
    text = suites.read_text()
    assert '<property name="raw" value="80.0"' in text
    assert '<property name="score" value="80.0"' not in text
