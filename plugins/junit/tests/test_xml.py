"""``junit/xml``: a suite a label, a case a subject, valid by the schema next to this file, for any texts."""

from __future__ import annotations

import errno
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
import xmlschema
from hypothesis import given
from hypothesis import strategies as st
from junitparser import JUnitXml

from dicast import AccessRefused, Cost, Failure, Judgment, Score, Subject, metric
from dicast.testing import FakeJudge, FakeMetric, SinkConformance, run_pipeline
from dicast_junit.cases import skip_results
from dicast_junit.spool import Spool

SCHEMA = xmlschema.XMLSchema(Path(__file__).with_name("junit.xsd"))
TEXT = "name: answers\nmetrics: [{cheap: {pass_at: 0.6}}, other]\n"


class TestXml(SinkConformance):
    sink = "junit/xml"
    options = {"path": "out/results.xml"}


def written(folder, text, subjects, components, **options):
    """Return the run, and the root of the written file."""
    path = folder / "results.xml"
    listed = "".join(f", {name}: {value}" for name, value in options.items())
    done = run_pipeline(
        f"{text}sinks: [junit/xml: {{path: {path}{listed}}}]\n", subjects=subjects, components=components
    )
    SCHEMA.validate(str(path))
    return done, ET.parse(path).getroot()


def rows(*outputs):
    return [Subject("row", f"r{number}", input="what?", output=text) for number, text in enumerate(outputs, 1)]


def properties(element):
    return {property_.get("name"): property_.get("value") for property_ in element.findall("properties/property")}


def results(suite):
    cases = suite.findall("testcase")
    return {case.get("name"): [child.tag for child in case if child.tag != "properties"] for case in cases}


@pytest.fixture
def report(tmp_path):
    scores = [Score(0.7), Score(0.59, details="too long"), Failure("refused", "it would not say"), Score(1.0)]
    other_scores = [Score(0.123456789012345), Score(1.0), Score(1.0), Score(0.1)]
    components = {"cheap": FakeMetric(scores), "other": FakeMetric(other_scores)}
    return written(tmp_path, TEXT, rows("a", "b", "c", "d"), components)


def test_each_label_is_a_suite_and_each_subject_a_case(report):
    _, root = report
    assert [suite.get("name") for suite in root] == ["run", "metrics", "cheap", "other"]
    labels = root[1:]
    assert all([case.get("name") for case in suite.findall("testcase")] == ["r1", "r2", "r3", "r4"] for suite in labels)
    assert {case.get("classname") for suite in labels for case in suite.findall("testcase")} == {"answers.row"}


def test_under_pass_at_is_a_failure_without_a_score_an_error_and_not_asked_skipped(report):
    _, root = report
    _, all_metrics, cheap, _ = root
    results_ = {suite.get("name"): results(suite) for suite in root}
    assert results_["cheap"] == {"r1": [], "r2": ["failure"], "r3": ["error"], "r4": []}
    assert results_["other"] == {"r1": ["failure"], "r2": [], "r3": ["skipped"], "r4": ["failure"]}
    assert results_["metrics"]["r3"] == ["error"]
    failure = cheap.find("testcase[@name='r2']/failure")
    assert (failure.get("message"), failure.text) == ("0.5900, below 0.6: too long", "too long")
    error = all_metrics.find("testcase[@name='r3']/error")
    assert error.get("type") == "refused"
    assert "it would not say" in error.get("message")


def test_the_counts_are_those_of_the_cases_and_of_a_library_that_reads_them(report, tmp_path):
    _, root = report
    read = JUnitXml.fromfile(str(tmp_path / "results.xml"))
    for suite, element in zip(read, root, strict=True):
        expected = (suite.tests, suite.failures, suite.errors, suite.skipped)
        suite.update_statistics()
        assert expected == (suite.tests, suite.failures, suite.errors, suite.skipped)
        cases = element.findall("testcase")
        assert expected == (
            len(cases),
            *(len(element.findall(f"testcase/{tag}")) for tag in ("failure", "error", "skipped")),
        )
    assert (read.tests, read.failures) == (13, sum(int(suite.get("failures")) for suite in root))


def test_numbers_stand_in_properties_with_all_their_digits(report):
    done, root = report
    document = done.document
    suite = properties(root[1])
    assert float(suite["mean"]) == document["score"]["mean"]
    assert float(suite["pass_rate"]) == document["score"]["pass_rate"]
    assert (suite["run_id"], suite["gate"], suite["run_cost_usd"]) == (document["run_id"], "none", "0")
    assert float(suite["coverage"]) == document["coverage"]
    verdicts = {verdict.subject_id: verdict for verdict in done.verdicts}
    for case in root[1].findall("testcase"):
        values, verdict = properties(case), verdicts.get(case.get("name"))
        assert values.get("score") == (None if verdict is None else repr(verdict.score))
    assert properties(root[3].find("testcase[@name='r1']"))["score"] == "0.123456789012345"


@pytest.mark.parametrize(("line", "element", "code"), [(0.2, "skipped", 0), (0.9, "error", 1)])
def test_a_failed_judgment_is_skipped_if_the_gate_passed(tmp_path, line, element, code):
    hostile = Failure("refused", '</error> <error message="no"> it would not say')
    scores = [Score(0.7), hostile, Score(0.1), hostile, Score(0.9)]
    text = f"name: answers\nmetrics: [cheap]\ngate: {{min_pass_rate: {line}, min_coverage: 0.5}}\n"
    done, root = written(tmp_path, text, rows(*"abcde"), {"cheap": FakeMetric(scores)}, content="true")
    assert done.exit_code == code
    cases = results(root.find("testsuite[@name='cheap']"))
    assert [[tag for tag in tags if tag != "system-out"] for tags in cases.values()] == [
        [],
        [element],
        ["skipped" if element == "skipped" else "failure"],
        [element],
        [],
    ]
    counts = [root.get(name) for name in ("failures", "errors", "skipped")]
    assert counts == (["0", "0", "3"] if element == "skipped" else ["2", "2", "0"])  # the gate's own failure is one
    if element == "skipped":
        (below,) = [case for case in root.iter("skipped") if case.get("type") == "score"]
        assert below.get("message").startswith("not passed: 0.1000, below 0.5")
    result = root.find(f"testsuite/testcase/{element}")
    assert result.get("type") == "refused"
    assert result.get("message").startswith("not judged: ") is (element == "skipped")
    assert '</error> <error message="no"> it would not say' in result.get("message")


@given(st.lists(st.integers(1, 40), max_size=20))
def test_parts_that_end_within_a_case_skip_its_errors_too(sizes):
    fault = b'<error message="m" type="t">why</error>'
    case_ = b'<testcase name="a">' + fault + b'</testcase>\n<testcase name="b"><failure message="n" /></testcase>\n'
    text, parts = case_ * 3, []
    for size in (*sizes, len(text)):
        parts.append(text[:size])
        text = text[size:]
    whole = b"".join(skip_results(parts))
    messages = case_.replace(b'"m"', b'"not judged: m"').replace(b'"n"', b'"not passed: n"')
    assert whole == messages.replace(b"error", b"skipped").replace(b"failure", b"skipped") * 3


def test_a_run_that_did_not_end_in_order_has_an_error(tmp_path, report):
    @metric(tier="truth")
    def asks(subject):
        raise AccessRefused("the key is wrong")

    _, root = written(tmp_path, "metrics: [asks]\n", rows("a"), {"asks": asks()})
    assert (root.get("tests"), root.get("errors")) == ("1", "1")
    suite = root.find("testsuite[@name='run']")
    (error,) = suite.findall("testcase/error")
    assert error.get("type") == "refused_by_provider"
    assert "the run was not completed: refused_by_provider" in error.get("message")
    assert [case.get("name") for case in report[1].findall("testsuite[@name='run']/testcase")] == ["gate"]


def test_the_only_metric_has_one_suite_with_the_results_of_all_metrics(tmp_path):
    scores = [Score(0.7), Score(0.2, details="too long"), Failure("refused", "it would not say")]

    def read(text, **options):
        return written(tmp_path, text, rows("a", "b", "c"), {"cheap": FakeMetric(scores)}, **options)[1]

    text = "name: n\nmetrics: [cheap]\ngate: {min_score: 0.1, min_coverage: 0.1}\n"
    root = read(text)
    _, suite = root
    assert (suite.get("name"), root.get("failures"), root.get("skipped")) == ("cheap", "0", "2")
    assert results(suite) == {"r1": [], "r2": ["skipped"], "r3": ["skipped"]}
    assert suite.find("testcase/skipped").get("message") == "not passed: 0.2000, below 0.5: too long"
    assert properties(suite[1]) == {"score": "0.7", "pass_at": "0.5", "basis": "proxy", "cost_usd": "0"}
    root = read(text, labels="[metrics]")
    assert [suite.get("name") for suite in root] == ["run", "metrics"]
    combined = text + "scoring: {pass_at: 0.9}\n"
    root = read(combined)
    assert [(suite.get("name"), suite.get("skipped")) for suite in root] == [("run", "0"), ("cheap", "3")]


def test_the_basis_of_the_gates_label_is_the_documents(tmp_path):
    text = "name: n\nmetrics: [cheap]\njudges: [{heuristic/turn: {as: turn}}]\ngate: {on: cheap, min_score: 0.1}\n"
    done, root = written(tmp_path, text, rows("a", "b"), {"cheap": FakeMetric([Score(0.7), Score(0.2)])})
    assert done.document["score"]["label"] == "cheap"
    for label, figures in (done.document["metrics"] | done.document["judges"]).items():
        assert properties(root.find(f"testsuite[@name='{label}']")).get("basis") == figures.get("basis")


@pytest.mark.parametrize(
    ("gate", "result"),
    [
        ("gate: {min_score: 0.1}", []),
        ("gate: {min_score: 0.9}", [("failure", "gate", "the mean of cheap is 0.5, below min_score 0.9")]),
        ("gate: {min_score: 0.5, bound: interval}", [("error", "undecided", "the mean of cheap")]),
        ("gate: {baseline: last, max_drop: 0.1}", [("skipped", None, "older run")]),
    ],
)
def test_the_answer_of_the_gate_is_a_case(tmp_path, gate, result):
    components = {"cheap": FakeMetric([Score(0.7), Score(0.3)])}
    _, root = written(tmp_path, f"name: n\nmetrics: [cheap]\n{gate}\n", rows("a", "b"), components)
    (case,) = root.findall("testsuite[@name='run']/testcase")
    assert (case.get("name"), case.get("classname")) == ("gate", "n")
    assert len(case) == len(result)
    for element, (tag, kind, message) in zip(case, result, strict=True):
        assert (element.tag, element.get("type")) == (tag, kind)
        assert message in element.get("message")


def test_an_undecided_run_without_a_gate_is_an_error(report):
    (error,) = report[1].findall("testsuite[@name='run']/testcase/error")
    assert (error.get("type"), error.get("message").partition(" ")[0]) == ("undecided", "coverage")


def test_a_judge_has_a_suite_and_its_cost(tmp_path):
    judge = FakeJudge(Judgment(0.25, 0.8, "llm", "a-model", Cost("0.0001")), cost=Cost("0.0002"))
    _, root = written(tmp_path, "name: n\njudges: [costly]\n", rows("a"), {"costly": judge})
    (suite,) = root
    values = properties(suite[1])
    assert (suite.get("name"), values["score"], values["cost_usd"], values["basis"]) == (
        "costly",
        "0.25",
        "0.0001",
        "model",
    )
    assert properties(suite)["run_cost_usd"] == "0.0001"


def test_only_the_labels_that_are_named_have_suites(tmp_path):
    components = {"cheap": FakeMetric([Score(1.0)]), "other": FakeMetric([Score(1.0)])}
    _, root = written(tmp_path, "name: n\nmetrics: [cheap, other]\n", rows("a"), components, labels="[other]")
    assert [suite.get("name") for suite in root] == ["other"]


def test_what_was_judged_is_written_where_that_is_asked_for(tmp_path):
    components = {"cheap": FakeMetric([Score(1.0)])}
    _, root = written(tmp_path, "name: n\nmetrics: [cheap]\n", rows("an answer"), components)
    assert root.find(".//system-out") is None
    _, root = written(tmp_path, "name: n\nmetrics: [cheap]\n", rows("an answer"), components, content="true")
    assert root.find(".//system-out").text == "input: what?\noutput: an answer"


@given(
    st.text(st.characters(codec=None), min_size=1, max_size=20),
    st.text(st.characters(codec="utf-8"), min_size=1, max_size=20),
)
def test_any_text_is_valid_xml(tmp_path_factory, text_, id_):
    """Control characters, half a character, the ends of sections and of elements."""
    folder = tmp_path_factory.mktemp("any")
    text_ = text_.encode("utf-8", "replace").decode()
    metric = FakeMetric([Score(0.0, details=f"{text_}\x00]]></failure>&")])
    _, root = written(folder, "name: n\nmetrics: [cheap]\n", [Subject("row", id_, output=text_)], {"cheap": metric})
    (case,) = root[0].findall("testcase")
    assert "]]></failure>&" in case.find("failure").text
    assert "\\u0000" in case.find("failure").text


def test_a_full_disk_is_said_at_the_end_and_loses_nothing_that_can_be_written_later(tmp_path):
    class Full:
        def __init__(self, file):
            self.file, self.full = file, True

        def __getattr__(self, name):
            return getattr(self.file, name)

        def write(self, data):
            if self.full:
                raise OSError(errno.ENOSPC, "no space")
            return self.file.write(data)

    with Spool(tmp_path) as spool:
        spool._file = Full(spool._file)
        spool.add(b"x" * (1 << 19))
        spool.add(b"y")
        with pytest.raises(OSError, match="no space"):
            list(spool.parts())
        spool._file.full = False
        assert b"".join(spool.parts()) == b"".join(spool.parts()) == b"x" * (1 << 19) + b"y"
