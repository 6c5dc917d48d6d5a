"""``report/markdown``: its contents, in the terminal's numbers, and the harmlessness of foreign text in it."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

import dicast
from dicast import Failure, Score, Subject
from dicast.reporting import code, fenced, run_markdown, table
from dicast.testing import FakeMetric, SinkConformance, run_pipeline

READER = MarkdownIt("gfm-like", {"html": True, "linkify": False})
HOSTILE = (
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "[a link](https://evil.example)",
    "![a picture](https://evil.example/x.png)",
    "https://evil.example www.evil.example a@evil.example",
    "@octocat closes #12 and owner/repo#3",
    "``` ~~~ ```` `````",
    "`",
    "`` ` ``",
    "a | b \\| c \\\\| d",
    "# heading\n\n- item\n\n> quote\n\n---",
    "\r\n\r\n<b>",
    "\u202eright to left\u202c \u200b \x1b[31m",
    "$`math`$ $$x$$ :smile:",
    " ",
    "\\",
    "-->",
    "| --- |",
)
ANY = st.one_of(st.sampled_from(HOSTILE), st.text(max_size=40), st.lists(st.sampled_from(HOSTILE)).map("".join))


class TestMarkdown(SinkConformance):
    sink = "report/markdown"
    options = {"path": "out/run.md"}


def tokens(text):
    """Return all tokens of *text* in GitHub's flavor, including nested ones."""
    all_tokens = []
    for token in READER.parse(text):
        all_tokens += [token, *(token.children or ())]
    return all_tokens


def types(text):
    return {token.type for token in tokens(text)}


HARMLESS = {"paragraph_open", "paragraph_close", "inline", "text", "code_inline", "em_open", "em_close", "fence"}


@given(ANY)
def test_text_in_code_is_code_and_nothing_else(text):
    all_tokens = tokens(f"before {code(text)} after")
    assert {token.type for token in all_tokens} <= HARMLESS
    inside = [token.content for token in all_tokens if token.type == "code_inline"]
    if text.strip():
        assert len(inside) == 1
        assert not re.search(r"[\n\r\x1b\u202e]", inside[0])


@given(st.text(st.characters(min_codepoint=32, max_codepoint=126), min_size=1, max_size=60))
def test_text_in_code_is_read_back(text):
    if text.strip():
        (inside,) = (token.content for token in tokens(code(text)) if token.type == "code_inline")
        assert inside == text


@given(ANY)
def test_text_in_a_fence_stays_in_it(text):
    parsed = READER.parse(f"before\n\n{fenced(text)}\n\nafter\n")
    assert [token.type for token in parsed if token.level == 0] == [
        "paragraph_open", "paragraph_close", "fence", "paragraph_open", "paragraph_close",
    ]  # fmt: skip


@given(st.lists(ANY, min_size=1, max_size=4))
def test_text_in_a_table_makes_no_column_and_no_row(texts):
    heads = [f"h{number}" for number in range(len(texts))]
    parsed = READER.parse("\n".join(table(heads, [[code(text) for text in texts]])))
    assert sum(token.type == "td_open" for token in parsed) == len(texts)
    assert sum(token.type == "tr_open" for token in parsed) == 2


@pytest.fixture
def write_markdown(tmp_path):
    def write_markdown(text, scores, subjects, **options):
        listed = "".join(f", {name}: {value}" for name, value in options.items())
        sinks = f"sinks: [report/markdown: {{path: {tmp_path / 'run.md'}{listed}}}]\n"
        done = run_pipeline(f"{text}{sinks}", subjects=subjects, components={"cheap": FakeMetric(scores)})
        return done, (tmp_path / "run.md").read_text(encoding="utf-8")

    return write_markdown


def rows(*outputs):
    return [Subject("row", f"r{number}", input="what?", output=text) for number, text in enumerate(outputs, 1)]


TEXT = "name: answers\nmetrics: [cheap]\ngate: {min_score: 0.9, min_coverage: 0.5}\n"


def test_it_says_what_the_gate_and_the_score_are(write_markdown):
    done, text = write_markdown(TEXT, [Score(0.123456), Score(2 / 3), Score(1.0)], rows("a", "b", "c"))
    score = done.document["score"]
    assert text.startswith("## `answers`: failed\n")
    for number in (score["mean"], score["ci_low"], score["ci_high"]):
        assert f"{number:.4f}" in text
    assert f"coverage {done.document['coverage']:.1%}" in text
    assert done.document["gate"]["reasons"][0] in text
    assert done.document["run_id"] in text


def test_it_shows_the_subjects_that_did_not_pass_with_their_reasons(write_markdown):
    scores = [Score(1.0), Score(0.25, details="too long"), Failure("refused", "it would not say")]
    _, text = write_markdown(TEXT, scores, rows("a", "b", "c"))
    assert "### 1 did not pass, 1 without a verdict" in text
    lines = [line for line in text.splitlines() if line.startswith("| `row`")]
    assert lines[0] == "| `row` `r2` | `cheap` | 0.2500 | 0.5 | `too long` |"
    assert lines[1].startswith("| `row` `r3` | `cheap` | - | 0.5 | a model's policy refused the content: ")
    assert "```text\nb\n```" in text
    assert not re.search(r"\|  \| ", text.partition("| label |")[2]), "an empty cell"


def test_more_than_rows_subjects_are_counted(write_markdown):
    _, text = write_markdown(TEXT, Score(0.0), rows(*"abcde"), rows=2)
    assert "### 5 did not pass" in text
    assert "The first 2 of 5 are shown." in text
    assert sum(line.startswith("| `row`") for line in text.splitlines()) == 2


def test_texts_are_left_out_where_that_is_asked_for(write_markdown):
    _, text = write_markdown(TEXT, Score(0.0), rows("an answer"), content="false")
    assert "an answer" not in text


def test_hostile_rows_do_nothing(write_markdown):
    subjects = [Subject("row", text, input=text, output=text) for text in dict.fromkeys(HOSTILE)]
    _, text = write_markdown(TEXT, Score(0.0, details="".join(HOSTILE)), subjects)
    token_types = types(text)
    assert not token_types & {"html_inline", "html_block", "link_open", "image", "blockquote_open", "hr"}
    bare = "".join(token.content for token in tokens(text) if token.type == "text")
    for sign in ("@", "http", "www", "#1", "<", "octocat"):
        assert sign not in bare, sign


def test_a_comparison_is_shown_as_on_a_terminal(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.jsonl").write_text("\n".join(json.dumps({"id": str(n), "output": "x" * n}) for n in range(1, 6)))
    pipeline = {
        "name": "sizes",
        "source": {"rows/jsonl": {"path": "rows.jsonl"}},
        "metrics": [{"proxy/length": {"max": 3}}],
        "aggregates": ["stats/pass_rate"],
    }
    dicast.run(pipeline)
    changed = {
        "baseline": {"run": "last", "compare": ["stats/paired"]},
        "sinks": [{"report/markdown": {"path": "run.md"}}],
    }
    done = dicast.run({**pipeline, **changed})
    text = (tmp_path / "run.md").read_text()
    assert f"### Compared with `sizes`, run `{done.baseline['run_id']}`" in text
    assert "```text\nstats/paired" in text
    (sentence,) = done.comparison["stats/paired"]["sentences"]
    assert f"```\n\n- `{sentence}`\n" in text
    (counts,) = done.baseline["passes"].values()
    assert f"- `{counts['words']}`\n" in text
    assert "### `stats/pass_rate`" in text


def test_a_run_that_was_not_begun_says_so():
    assert run_markdown({"disabled": True, "run_id": None, "name": "n"}).startswith("## `n`: disabled")


def test_a_judge_without_flags_says_what_it_went_by(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    turns = [("Where is it?", "I'm sorry, I can't help with that."), ("And this?", "It left on Monday.")]
    messages = [
        {"role": role, "content": text}
        for turn in turns
        for role, text in zip(("user", "assistant"), turn, strict=True)
    ]
    (tmp_path / "chats.jsonl").write_text(json.dumps({"id": "one", "messages": messages}))
    source = {"traces/messages": {"path": "chats.jsonl", "id": "{{ id }}", "subjects": ["turn", "session"]}}
    done = dicast.run(
        {
            "source": source,
            "judges": ["heuristic/turn", {"heuristic/session": {"pass_at": 1.0}}],
            "gate": {"on": "heuristic/session", "min_score": 0.5},
            "sinks": [{"report/markdown": {"path": "run.md"}}],
        }
    )
    (session,) = [verdict for verdict in done.verdicts if verdict.subject_kind == "session"]
    assert session.signals["flags_negative"] == []
    why = f"mean turn score {session.signals['mean_turn_score']:.4g}, min turn score {session.signals['min_turn_score']:.4g}"
    assert why in (tmp_path / "run.md").read_text()
