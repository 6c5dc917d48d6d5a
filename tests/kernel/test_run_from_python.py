"""A finished run in Python: its text, its table, its score, and the types of options of components made in Python."""

from __future__ import annotations

from html.parser import HTMLParser
from math import inf
from pathlib import Path
from typing import Any, Literal

import attrs
import pytest

import dicast
from dicast import ChatModel, ConfigError, Judge, Judgment, Metric, Score, Secret, judge, metric
from dicast._kernel.report.document import stopped_document
from dicast.testing import FakeChatModel, FakeJudge

ROWS = [{"output": "yes"}, {"output": "no"}]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@metric(tier="proxy")
def short(
    subject,
    *,
    n: int = 3,
    share: float = 0.5,
    words: tuple[str, ...] = (),
    weights: dict[str, float] | None = None,
    mode: Literal["all", "any"] = "all",
    key: Secret | None = None,
    path: Path | None = None,
    free: Any = None,
):
    return Score(float(len(subject.text) < n))


@judge()
def strict(subject, *, least: float = inf):
    return Judgment(0.25)


@attrs.frozen
class Asks:
    """Asks other components."""

    tier = "truth"
    first: Judge
    others: tuple[Judge, ...] = ()
    model: ChatModel | None = None
    metric: Metric | None = None

    async def judge(self, subject, children=()):
        return await self.first.judge(subject)


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.texts = set(), []

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)

    def handle_data(self, data):
        self.texts.append(data)


def parsed(run):
    tags = Tags()
    tags.feed(run._repr_html_())
    return tags


def test_a_run_is_shown_in_one_line():
    run = dicast.evaluate(ROWS, [short()], gate={"min_score": 0.4, "bound": "point"}, name="two\nlines")
    assert repr(run) == "<Run 'two\\nlines': gate passed, 'metrics' 0.5000, 2 of 2 scored, spent nothing>"


def test_a_table_has_each_label_and_no_markup_of_users():
    run = dicast.evaluate(ROWS, [short()], name="<script>alert(1)</script>")
    shown = parsed(run)
    assert shown.tags <= {"table", "caption", "thead", "tbody", "tr", "th", "td", "bdi"}
    assert "<script>alert(1)</script>: no gate; spent nothing" in shown.texts
    assert shown.texts[-5:-3] == ["metrics", "0.5000"]


def test_a_run_without_scores_is_shown():
    @metric(tier="proxy")
    def fails(subject):
        raise ValueError("no")

    run = dicast.evaluate(ROWS, [fails()])
    assert repr(run) == "<Run 'evaluate': undecided, no gate, 'metrics' -, 0 of 2 scored, spent nothing>"
    assert parsed(run).texts[-5:] == ["metrics", "-", "-", "0 of 2", "2"]


def test_a_suite_is_shown_with_a_row_for_each_experiment(tmp_path):
    (tmp_path / "rows.jsonl").write_text('{"id": "1", "output": "yes"}\n')
    text = "source: {rows/jsonl: {path: rows.jsonl}}\nmetrics: [proxy/format]\nexperiments: {first: {}, second: {}}\n"
    (tmp_path / "suite.yaml").write_text(text)
    run = dicast.run(tmp_path / "suite.yaml")
    assert repr(run) == "<Run 'suite': no gate, 2 experiments, 2 of 2 scored, spent nothing>"
    assert {"first: no gate", "second: no gate"} <= {*parsed(run).texts}
    with pytest.raises(ConfigError, match=r"a suite has no score\. Read run\.experiments\['first'\]\.score"):
        run.score  # noqa: B018


def test_a_disabled_run_is_shown_as_disabled(monkeypatch):
    monkeypatch.setenv("DICAST_DISABLED", "1")
    run = dicast.evaluate(ROWS, [short()])
    assert repr(run).startswith("<Run 'pipeline': disabled, ")
    with pytest.raises(ConfigError, match="the run has no label"):
        run.score  # noqa: B018


def test_the_score_of_a_run_with_several_labels_is_refused_with_the_labels():
    run = dicast.evaluate(ROWS, [short()], judges=[strict()])
    assert run.score_label is None
    with pytest.raises(ConfigError, match=r"2 labels: metrics, strict\. Read run\.labels\['metrics'\], or set 'on'"):
        run.score  # noqa: B018
    assert run.labels["strict"]["mean"] == 0.25
    chosen = dicast.evaluate(ROWS, [short()], judges=[strict()], gate={"on": "strict", "min_score": 0.1})
    assert (chosen.score_label, chosen.score["mean"]) == ("strict", 0.25)


@pytest.mark.parametrize(
    ("component", "message"),
    [
        (short(n="x"), "short: invalid value for n, expected int, got 'x'"),
        (short(n=True), "short: invalid value for n, expected int, got True"),
        (short(n=2.0), "short: invalid value for n, expected int, got 2.0"),
        (short(n=None), "short: invalid value for n, expected int, got None"),
        (short(share="0.5"), "short: invalid value for share, expected float, got '0.5'"),
        (short(words="please"), "short: invalid value for words, expected list of str, got 'please'"),
        (short(words=(1,)), r"short: invalid value for words, expected list of str, got \(1,\)"),
        (short(weights={"a": "b"}), "short: invalid value for weights, expected mapping of float, got {'a': 'b'}"),
        (short(mode="some"), "short: invalid value for mode, expected 'all' or 'any', got 'some'"),
        (short(path="file.txt"), "short: invalid value for path, expected path, got 'file.txt'"),
        (strict(least="x"), "strict: invalid value for least, expected float, got 'x'"),
        (Asks(short()), "Asks: invalid value for first, expected judge"),
        (Asks(strict(least="x")), "Asks: strict: invalid value for least, expected float, got 'x'"),
        (Asks(strict(), (strict(least="x"),)), "Asks: strict: invalid value for least"),
        (Asks(Asks(strict(), model=strict())), "Asks: Asks: invalid value for model, expected model"),
    ],
)
def test_a_wrong_type_of_an_option_is_refused_before_a_subject_is_judged(component, message):
    with pytest.raises(ConfigError, match=message):
        dicast.evaluate(ROWS, [component])


def test_a_component_without_its_needed_options_is_refused_with_their_names():
    @metric(tier="truth")
    def slow(subject, *, seconds: float, words: int, n: int = 1):
        return Score(1.0)

    with pytest.raises(
        ConfigError, match=r"slow needs the option 'seconds' and 'words'; write slow\(seconds=…, words=…\)"
    ):
        dicast.evaluate(ROWS, [slow])


def test_all_wrong_options_are_reported_at_once_and_no_secret_is_shown():
    with pytest.raises(ConfigError) as error:
        dicast.evaluate(ROWS, [short(n="x", key="sk-hidden"), strict(least="y")])
    text = str(error.value)
    assert all(words in text for words in ("for n,", "for key, expected str", "for least,"))
    assert "sk-hidden" not in text


@pytest.mark.parametrize(
    "component",
    [
        short(n=4, share=1, words=["a"], weights={"a": 1}, mode="any", key=Secret("k"), path=Path("x"), free=object()),
        strict(),
        Asks(FakeJudge(), (strict(),), FakeChatModel(), short()),
        Asks(FakeJudge(), metric=strict()),
    ],
)
def test_right_types_of_options_are_accepted(component):
    assert dicast.evaluate(ROWS, [component]).scored == 2


def test_every_other_kind_of_component_from_python_is_checked():
    @attrs.frozen
    class Numbers:
        """Numbers as rows."""

        count: int = 1

        def subjects(self):
            yield dicast.Subject("row", "1", output="1")

    with pytest.raises(ConfigError, match="Numbers: invalid value for count, expected int, got 'x'"):
        dicast.run({"source": Numbers("x"), "metrics": [short()]})


def test_a_run_with_open_batches_has_the_amounts_that_stay_reserved():
    document = stopped_document("p", "endpoint_unreachable") | {
        "batches": [{"batch_id": "b"}],
        "reserved": {"usd": "1"},
    }
    assert dicast.Run(**document, exit_code=3).reserved == {"usd": "1"}
