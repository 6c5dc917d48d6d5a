"""``dicast quality`` and ``dicast agreement`` after whole runs. tests/test_spec_001.py lists the required tests."""

from __future__ import annotations

import json
import re
from importlib.resources import files
from pathlib import Path

import pytest

PIPELINE = "source: {traces/events: {path: trace.jsonl, subjects: [turn, session]}}\njudges: [heuristic/turn, heuristic/session]\n"
TURNS = (
    ("t-1", "small", "end_turn", "In Canberra."),
    ("t-2", "small", "max_tokens", ""),
    ("t-3", "large", "end_turn", "Here."),
)
"""Turns with the model they were routed to, how they stopped, and what was answered: scores 1, below .5, and 1."""


def trace(*extra):
    lines = []
    for number, (turn, model, stop, text) in enumerate(TURNS):
        of = {"session_id": f"s-{number}", "turn_id": turn, "time": "2026-03-01T12:00:00Z"}
        texts = {"user_prompt_text": "Where is it?", "final_response_text": text}
        ends = {"stop_reason": stop, "tool_call_count": 0, "signals_extra": texts}
        lines.append({"type": "route.decided", "payload": {"chosen_model": model}, **of})
        lines.append({"type": "turn.completed", "payload": ends, **of})
        lines.append({"type": "session.ended", "payload": {"disposition": "completed"}, **of})
    return [*lines, *extra]


@pytest.fixture
def judged(shop):
    """A folder whose ledger has one run over three turns; one turn got a thumb down."""
    message = {"scope": "turn", "subject_turn_id": "t-3", "rating": "thumbs_down"}
    thumb = {
        "type": "feedback.explicit",
        "session_id": "s-2",
        "turn_id": "t-3",
        "payload": message,
        "time": "2026-03-01T12:01:00Z",
    }
    shop.write("trace.jsonl", trace(thumb))
    shop.write("data.jsonl", [])
    assert shop.run(PIPELINE).code == 0
    return shop


def rows(shop, *arguments):
    return shop.dicast("quality", *arguments, "--json").json["data"]


def verdicts(shop, kind="turn"):
    return {
        verdict["subject_id"]: verdict for verdict in shop.dicast("verdicts", "--kind", kind, "--json").json["verdicts"]
    }


def test_min_confidence_leaves_unsure_verdicts_out_of_the_mean_alone(judged):
    result = verdicts(judged)
    sure = [item["score"] for item in result.values() if item["confidence"] >= 0.6]
    assert 0 < len(sure) < len(result) == 3
    (row,) = rows(judged, "--group-by", "none", "--min-confidence", "0.6")
    assert (row["verdict_count"], row["scored_count"]) == (3, len(sure))
    assert row["mean_score"] == pytest.approx(sum(sure) / len(sure))
    assert row["mean_confidence"] == pytest.approx(sum(item["confidence"] for item in result.values()) / 3)


def test_versions_of_a_rubric_stand_apart_and_both_are_kept(judged):
    changed = judged.folder / "stricter.yaml"
    text = files("dicast_rubrics").joinpath("turn-heuristic-v1.yaml").read_text(encoding="utf-8")
    (version,) = {verdict["rubric_version"] for verdict in verdicts(judged).values()}
    changed.write_text(text.replace(version, "9.0.0"), encoding="utf-8")
    assert judged.run(PIPELINE.replace("[heuristic/turn,", "[heuristic/turn: {rubric: stricter.yaml},")).code == 0
    result = {(row["rubric_id"], row["rubric_version"]): row for row in rows(judged, "--group-by", "rubric_id")}
    assert {key: row["verdict_count"] for key, row in result.items()} == {
        ("turn-heuristic-v1", version): 3,
        ("turn-heuristic-v1", "9.0.0"): 3,
    }
    both = judged.dicast("agreement", "--judge", "heuristic/turn", "--between", "rubrics", "--json").json
    assert (both["n"], both["within"], both["alpha"]) == (3, 1, 1)


def test_turns_have_the_model_that_was_chosen_and_their_thumbs(judged):
    result = {row["chosen_model"]: row for row in rows(judged)}
    assert {model: row["verdict_count"] for model, row in result.items()} == {"small": 2, "large": 1}
    assert {model: row["thumbs_down_count"] for model, row in result.items()} == {"small": 0, "large": 1}
    assert result["large"]["below_floor"]
    assert rows(judged, "--subject-kind", "session")[0]["verdict_count"] == 3


def test_judging_twice_agrees_with_itself(judged):
    for _ in range(2):
        assert judged.dicast("evaluate", "--subject", "turn", "--rubric", "turn-heuristic-v1", "--json").code == 0
    labels = {verdict["judge"] for verdict in judged.dicast("verdicts", "--kind", "turn", "--json").json["verdicts"]}
    output = judged.dicast("agreement", *(f"--judge={label}" for label in labels), "--between", "runs", "--json").json
    assert [output[name] for name in ("n", "within", "kappa", "alpha")] == [3, 1, 1, 1]
    assert (output["alpha_ci"], output["different_content"]) == ([1, 1], 0)
    assert {row["chosen_model"]: row["verdict_count"] for row in rows(judged)} == {"small": 6, "large": 3}
    assert {row["chosen_model"]: row["verdict_count"] for row in rows(judged, "--latest")} == {"small": 2, "large": 1}


def test_rows_of_two_files_that_share_line_numbers_are_not_compared(shop):
    shop.write("data.jsonl", [])
    for name, texts in (("one.jsonl", ("yes", "no", "yes")), ("two.jsonl", ("yes", "yes", "no"))):
        shop.write(name, [{"output": text} for text in texts])
        source = f"source: {{rows/jsonl: {{path: {name}}}}}\n"
        assert shop.run(f"{source}metrics: [proxy/keywords: {{required: ['yes']}}]\n").code == 0
    output = shop.dicast("agreement", "--judge", "metrics", "--json").json
    assert (output["n"], output["within"], output["different_content"]) == (1, 1, 2)
    assert [failure["subject_id"] for failure in output["different_content_subjects"]] == ["2", "3"]
    assert len(output["fingerprints"]["metrics"]) == 1


def test_labels_of_people_are_compared_with_a_judge(judged):
    judged.write(
        "gold.jsonl", [{"subject_id": turn, "score": score} for turn, score in (("t-1", 1), ("t-2", 0), ("t-3", 1))]
    )
    output = judged.dicast("agreement", "--judge", "heuristic/turn", "--gold", "gold.jsonl", "--json").json
    assert (output["n"], output["worst"][0]["subject_id"]) == (3, "t-3")
    assert output["worst"][0]["scores"]["gold"] == 1
    done = judged.dicast("agreement", "--judge", "heuristic/turn", "--gold", "none.jsonl", "--json")
    assert (done.code, "no such file" in done.json["error"]["message"]) == (2, True)


def test_what_there_is_not_is_refused_by_name(judged):
    for arguments, hint in (
        (("quality", "--judge", "heuristic/tur"), "heuristic/turn"),
        (("agreement", "--judge", "heuristic/tur"), "heuristic/turn"),
        (("quality", "--subject-kind", "trun"), "turn"),
    ):
        done = judged.dicast(*arguments, "--json")
        assert (done.code, done.json["error"]["errors"][0]["hint"]) == (2, hint)
    assert judged.dicast("quality", "--ledger", "none.db").code == 2


def test_ledger_without_texts_has_no_models_but_the_verdicts_thumbs(shop):
    message = {"scope": "turn", "subject_turn_id": "t-3", "rating": "thumbs_down"}
    thumb = {
        "type": "feedback.explicit",
        "session_id": "s-2",
        "turn_id": "t-3",
        "payload": message,
        "time": "2026-03-01T12:01:00Z",
    }
    shop.write("trace.jsonl", trace(thumb))
    shop.write("data.jsonl", [])
    assert shop.run(PIPELINE + "ledger: {ledger/sqlite: {path: .dicast/ledger.db, content: digest}}\n").code == 0
    (row,) = rows(shop)
    assert (row["chosen_model"], row["verdict_count"], row["thumbs_down_count"]) == (None, 3, 1)
    json.dumps(row, allow_nan=False)
    assert shop.dicast("ledger", "verify").code == 0  # the columns say no more than the chain


PAGES = Path(__file__).resolve().parents[2] / "docs" / "how-to"
WINDOW = re.compile(r"from \S+ to \S+Z")
BLOCK = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", ["quality", "agreement"])
def test_page_shows_what_is_printed(page, shop, install):
    blocks = [match.groups() for match in BLOCK.finditer((PAGES / f"{page}.md").read_text(encoding="utf-8"))]
    for _, info, text in blocks:
        if title := re.search(r'title="(.+)"', info):
            shop.write(title[1], text)
    plugin = "".join(text for language, _, text in blocks if language == "python")
    install("dicast-promises", "1.0", {"dicast": {"promises": "dicast_promises"}}, dicast_promises=plugin)
    printed, compared = "", 0
    for language, _, text in blocks:
        if language == "console":
            for line in text.splitlines():
                printed = shop.dicast(*line.removeprefix("$ dicast ").split()).out
        elif language == "text":
            compared += 1
            assert WINDOW.sub("", printed) == WINDOW.sub("", text)
    assert compared
