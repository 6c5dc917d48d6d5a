"""``dicast evaluate``: the ledger's subjects judged again, and the cost."""

from __future__ import annotations

import gzip
import io
import json
import os
import sqlite3
from contextlib import closing
from itertools import islice
from pathlib import Path

import pytest

CONVERSATIONS = 25
TURNS = {"a1": True, "a2": False, "b1": True}
"""Which of the turns has a tool that failed: score 0.833 instead of 1."""

PIPELINE = """\
source: {traces/events: {path: trace.jsonl, subjects: [tool_cycle, turn, session]}}
judges: [heuristic/tool_cycle, heuristic/turn, heuristic/session]
"""
SAID = ("judge", "score", "confidence", "signals", "rubric_id", "rubric_version", "fingerprint")


def trace():
    """One turn after the other, a session each by its first letter."""
    for number, (turn, failed) in enumerate(TURNS.items()):
        common = {"session_id": turn[0], "turn_id": turn, "time": f"2026-01-31T12:00:{number:02d}Z"}
        tool = {"tool_use_id": f"{turn}-use", "tool_name": "look"}
        texts = {"user_prompt_text": "Where?", "final_response_text": "There."}
        ends = {"stop_reason": "end_turn", "tool_call_count": 1, "signals_extra": texts}
        yield {"type": "tool.called", "payload": tool, **common}
        yield {"type": "tool.failed" if failed else "tool.completed", "payload": tool, **common}
        yield {"type": "turn.completed", "payload": ends, **common}
    for session in "ab":
        ends = {"type": "session.ended", "session_id": session, "payload": {"disposition": "completed"}}
        yield ends | {"time": "2026-01-31T12:00:03Z"}


@pytest.fixture
def traced(shop):
    """A folder whose ledger has the verdicts of one run over three turns."""
    shop.write("trace.jsonl", list(trace()))
    assert shop.run(PIPELINE).code == 0
    return shop


@pytest.fixture
def priced(shop):
    """A folder whose ledger has one run over four rows."""
    shop.rows("0.2", "0.4", "0.6", "0.8", sessions=2)
    assert shop.run("judges: [fake/opinion]").code == 0
    return shop


def evaluate(shop, *arguments):
    return shop.dicast("evaluate", *arguments)


def verdicts(shop, *arguments):
    return shop.dicast("verdicts", "--json", *arguments).json["verdicts"]


def by_subject(message):
    return {
        (failure["subject_kind"], failure["subject_id"]): {key: failure.get(key) for key in SAID} for failure in message
    }


def test_it_appends_and_the_old_verdicts_stay(traced):
    old = verdicts(traced, "--kind", "turn")
    done = evaluate(traced, "--subject", "turn", "--rubric", "turn-heuristic-v1", "--json")
    assert (done.code, done.json["scored"], done.json["name"], done.json["cost"]["usd"]) == (0, 3, "evaluate", "0")
    assert done.err == "3 turn(s) to judge, at no cost\n"
    both = verdicts(traced, "--kind", "turn")
    assert both[:3] == old
    assert {verdict["run_id"] for verdict in both[3:]} == {done.json["run_id"]}
    assert {verdict["eval_id"] for verdict in old}.isdisjoint(verdict["eval_id"] for verdict in both[3:])
    assert verdicts(traced, "--kind", "turn", "--latest") == both[3:]
    assert (
        verdicts(traced, "--kind", "turn", "--latest", "--as-of", max(verdict["created_at"] for verdict in old)) == old
    )
    assert traced.verified()


def test_sessions_and_tool_cycles_that_no_run_has_read_are_judged_from_the_trace_in_the_ledger(shop):
    shop.write("trace.jsonl", list(trace()))
    text = "source: {traces/events: {path: trace.jsonl, subjects: [turn]}}\njudges: [heuristic/turn]\n"
    assert shop.run(text).code == 0
    for kind, expected in (
        ("tool_cycle", {"a1-use": 0.4, "a2-use": 1.0, "b1-use": 0.4}),
        ("session", {"a": 2, "b": 1}),
    ):
        rubric = {"tool_cycle": "tool-cycle-heuristic-v1", "session": "session-aggregate-v1"}[kind]
        done = evaluate(shop, "--subject", kind, "--rubric", rubric, "--json")
        assert done.code == 0, done.err
        result = verdicts(shop, "--run", "last")
        if kind == "session":
            assert {failure["subject_id"]: failure["signals"]["turn_count"] for failure in result} == expected
        else:
            assert {failure["subject_id"]: round(failure["score"], 6) for failure in result} == expected


@pytest.mark.parametrize(
    ("kind", "rubric"),
    [
        ("turn", "turn-hybrid-v1"),
        ("turn", "turn-llm-v1"),
        ("session", "session-hybrid-v1"),
        ("tool_cycle", "tool_cycle-hybrid-v1"),
    ],
)
def test_a_rubric_that_needs_a_model_is_refused_without_one(traced, kind, rubric):
    """The heuristic's verdicts would become the newest under another rubric's name."""
    before = verdicts(traced)
    done = evaluate(traced, "--since", "2026-01-31", "--subject", kind, "--rubric", rubric)
    assert (done.code, done.out) == (2, "")
    assert "--model '{openai/chat: {base_url: URL, model: MODEL}}'" in done.err
    assert verdicts(traced) == before


def means(path):
    with closing(sqlite3.connect(path)) as database:
        return database.execute("SELECT model, count, round(mean, 6) FROM models ORDER BY model").fetchall()


def test_a_reevaluation_feeds_the_pattern_stores_of_earlier_runs(shop):
    routes = [
        {"type": "route.decided", "session_id": turn[0], "turn_id": turn, "payload": {"chosen_model": "small"}}
        | {"time": "2026-01-31T12:00:00Z"}
        for turn in TURNS
    ]
    shop.write("trace.jsonl", [*routes, *trace()])
    sinks = "sinks: [{patterns/outcomes: {path: out/outcomes.db}}]\n"
    assert shop.run(PIPELINE + sinks).code == 0
    store = Path(shop.folder, "out", "outcomes.db")
    first = means(store)
    assert first[0][:2] == ("small", 3)
    done = evaluate(shop, "--subject", "turn", "--judge", "fake/turns_only")
    assert done.code in (0, 3), done.err
    newest = {verdict["subject_id"]: verdict["score"] for verdict in verdicts(shop, "--run", "last")}
    assert means(store) == [("small", 3, round(sum(newest.values()) / 3, 6))] != first
    store.unlink()
    done = evaluate(shop, "--subject", "turn", "--judge", "heuristic/turn")
    assert done.code == 0
    assert "the file of patterns/outcomes in an earlier run is missing, so it receives no verdicts" in done.err
    assert not store.exists()


@pytest.mark.parametrize("model", ["{replay/chat: {path: none.jsonl}}", "model.yaml"])
def test_a_rubric_that_needs_a_model_is_judged_with_the_one_that_is_named(traced, model):
    traced.write("none.jsonl", "")
    traced.write("model.yaml", "replay/chat:\n  path: none.jsonl\n")
    hybrid = evaluate(traced, "--subject", "turn", "--rubric", "turn-hybrid-v1", "--model", model, "--json")
    assert (hybrid.code, hybrid.json["scored"]) == (0, 3), hybrid.err
    skipped = [verdict["signals"].get("escalation_skipped") for verdict in verdicts(traced, "--run", "last")]
    assert sorted(skipped, key=str) == [
        None,
        "judge_call_failed",
        "judge_call_failed",
    ]  # nobody has a reply in the file
    text = evaluate(traced, "--subject", "turn", "--rubric", "turn-llm-v1", "--model", model, "--json")
    assert text.json["failures"] == {"judge_call_failed": 3}
    short = evaluate(traced, "--subject", "turn", "--rubric", "turn-short-v1", "--model", model, "--json")
    assert short.json["failures"] == {"judge_call_failed": 3}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["tool_cycle", "turn", "session"])
@pytest.mark.parametrize("command", [("run",), ("watch", "--once")])
def test_the_same_judge_says_the_same_as_before(shop, command, kind):
    shop.write("trace.jsonl", list(trace()))
    assert shop.dicast(*command, shop.pipeline(PIPELINE)).code == 0
    judge = f"{{heuristic/{kind}: {{children: heuristic/turn}}}}" if kind == "session" else f"heuristic/{kind}"
    for _ in range(2):
        done = evaluate(shop, "--subject", kind, "--judge", judge, "--json")
        assert done.code == 0, done.err
        newest = verdicts(shop, "--run", "last")
        first = verdicts(shop, "--kind", kind)[: len(newest)]
        ours, theirs = by_subject(newest), by_subject(first)
        for item in (*ours.values(), *theirs.values()):
            item["signals"].pop("child_eval_ids", None)
        assert ours == theirs


def test_sessions_are_judged_by_the_newest_verdicts_on_their_turns(traced):
    evaluate(traced, "--subject", "turn", "--judge", "{fake/turns_only: {as: heuristic/turn}}", "--json")
    newest = verdicts(traced, "--run", "last")
    evaluate(traced, "--subject", "session", "--rubric", "session-aggregate-v1", "--json")
    session = verdicts(traced, "--run", "last", "--subject", "a")[0]
    assert session["signals"]["mean_turn_score"] == 0.25
    assert session["signals"]["child_eval_ids"] == [
        failure["eval_id"] for failure in newest if failure["subject_id"] in ("a1", "a2")
    ]


def test_each_verdict_is_a_line_beside_the_one_before(traced):
    done = evaluate(
        traced, "--subject", "turn", "--judge", "fake/turns_only", "--since", "2026-01-31", "--session", "a"
    )
    *_, title, first, second = done.out.splitlines()
    assert title == "re-evaluated 2 turn(s):"
    assert first.startswith("a1 score=0.250 confidence=0.500 judge=fake/turns_only rubric=fake/turns_only@")
    assert (first.split("(")[1], second.split("(")[1]) == ("heuristic/turn gave 0.833)", "heuristic/turn gave 1.000)")
    again = evaluate(
        traced, "--subject", "turn", "--judge", "fake/turns_only", "--since", "2026-01-31", "--session", "a"
    )
    assert again.out.splitlines()[-1].endswith("(was 0.250)")  # the same judge's


def test_what_nobody_has_judged_yet_is_not_judged_again(shop):
    shop.rows("0.5")
    shop.run("task: {task/command: {command: cat}}")
    done = evaluate(shop, "--subject", "row", "--judge", "fake/opinion")
    assert done.err == "1 row(s) to judge, at no cost\n"
    assert "\nevaluated 1 row(s):\n" in done.out


def test_a_rubric_of_another_kind_is_refused_with_the_kind_it_is_for(traced):
    done = evaluate(traced, "--subject", "session", "--rubric", "turn-hybrid-v1")
    assert done.code == 2
    assert (
        "rubric 'turn-hybrid-v1' is for subjects of kind 'turn', not 'session'; give --subject turn with it" in done.err
    )


def test_twenty_lines_are_enough(shop):
    shop.rows(*["0.5"] * 25)
    shop.run("judges: [fake/opinion]")
    done = evaluate(shop, "--subject", "row", "--judge", "{fake/opinion: {as: mine}}")
    lines = done.out.splitlines()
    assert lines[-22] == "re-evaluated 25 row(s):"
    assert (lines[-2].split()[0], lines[-1].startswith("… (dicast verdicts --run ")) == ("r19", True)


def test_both_bounds_are_included(traced):
    for bounds, count in [(("--since", "2026-01-31T12:00:01Z"), 2), (("--until", "2026-01-31T12:00:01Z"), 2)]:
        done = evaluate(traced, "--subject", "turn", "--judge", "heuristic/turn", *bounds, "--json")
        assert done.json["subjects"] == count


def test_nothing_in_the_window_is_a_wrong_request(traced):
    before = traced.events()
    done = evaluate(traced, "--subject", "turn", "--judge", "heuristic/turn", "--since", "2027-01-01", "--json")
    assert (done.code, traced.events()) == (2, before)
    message = (
        "no turn from 2027-01-01 to the end: the 3 in the ledger are from 2026-01-31T12:00:00Z to 2026-01-31T12:00:02Z"
    )
    assert done.json["error"]["message"] == message


WRONG = [
    ((), "name the judge with --rubric ID or --judge, such as --judge heuristic/turn"),
    (("--judge", "heuristic/turn", "--rubric", "turn-heuristic-v1"), "name the judge"),
    (("--rubric", "turn-heuristics-v1"), "did you mean 'turn-heuristic-v1'?"),
    (
        ("--rubric", "turn-llm-v1"),
        "a text for a model; name the model with it: --model '{openai/chat: {base_url: URL, model: MODEL}}'",
    ),
    (("--rubric", "turn-heuristic-v1", "--model", "x"), "asks no model; leave --model out"),
    (("--judge", "heuristic/turn", "--model", "x"), "--model goes with --rubric"),
    (("--rubric", "turn-hybrid-v1", "--model", "{replay/chat: {pth: x}}"), "--model: unknown option 'pth'"),
    (("--rubric", "turn-hybrid-v1", "--model", "gone.yaml"), "cannot read the model gone.yaml"),
    (("--rubric", "session-hybrid-v1"), "session-hybrid-v1"),
    (("--rubric", "turn-hybrid-v1"), "rubric 'turn-hybrid-v1' needs a model"),
    (("--rubric", "session-aggregate-v1"), "rubric 'session-aggregate-v1' is not one for subjects of kind 'turn'"),
    (("--judge", "{heuristic/turn: {lookahead_mesages: 3}}"), "--judge:1:19: unknown option 'lookahead_mesages'"),
    (("--judge", "heuristic/turm"), "did you mean 'heuristic/turn'?"),
    (("--judge", "{heuristic/turn: "), "--judge: not valid YAML"),
    (("--judge", "judge.yaml"), "cannot read the judge judge.yaml"),
    (("--judge", "heuristic/turn", "--since", "noon"), "since is not an ISO 8601 date or time: 'noon'"),
    (("--judge", "heuristic/turn", "--since", "2026-02", "--until", "2026-01-01"), "2026-02"),
    (("--judge", "heuristic/turn", "--session", "c"), "session 'c' of the ledger has no subject of kind 'turn'"),
]


@pytest.mark.parametrize(("arguments", "message"), WRONG)
def test_a_wrong_request_says_what_is_wrong(traced, arguments, message):
    done = evaluate(traced, "--subject", "turn", *arguments)
    assert (done.code, done.out) == (2, "")
    assert message in done.err
    assert "Traceback" not in done.err


def test_a_judge_of_other_subjects_is_refused_before_anything_is_written(traced):
    before = traced.dicast("verdicts", "--json").json
    done = traced.dicast("evaluate", "--subject", "turn", "--judge", "heuristic/session")
    assert done.code == 2
    assert "does not judge subjects of kind 'turn'" in done.err
    assert traced.dicast("verdicts", "--json").json == before


def test_a_ledger_that_is_not_there_is_not_created(shop):
    done = evaluate(shop, "--subject", "turn", "--judge", "heuristic/turn", "--ledger", "none.db")
    assert (done.code, (shop / "none.db").exists()) == (2, False)
    assert "no ledger at none.db" in done.err


def test_the_judge_may_be_a_file_and_the_ledger_elsewhere(traced):
    file = traced.write("my-judge.yaml", "# what we use\nheuristic/turn:\n  as: mine\n")
    os.rename(traced / ".dicast" / "ledger.db", traced / "kept ${HOME}.db")
    done = evaluate(traced, "--subject", "turn", "--judge", file, "--ledger", "kept ${HOME}.db", "--json")
    assert (done.code, list(done.json["judges"])) == (0, ["mine"])
    assert not (traced / ".dicast" / "ledger.db").exists()


def test_switched_off_nothing_is_read(shop, monkeypatch):
    monkeypatch.setenv("DICAST_DISABLED", "1")
    done = evaluate(shop, "--subject", "turn", "--judge", "heuristic/turn", "--json")
    assert (done.code, done.json["disabled"], done.json["name"]) == (0, True, "evaluate")
    assert list(shop.folder.glob("**/ledger.db")) == []


# Money


class Terminal(io.StringIO):
    """Someone who types."""

    def isatty(self):
        return True


def paid(shop, *arguments):
    return evaluate(shop, "--subject", "row", "--judge", "fake/paid_judge", "--json", *arguments)


def test_without_a_terminal_and_without_yes_nothing_is_spent(priced, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    before = priced.events()
    done = paid(priced)
    assert (done.code, priced.events()) == (2, before)
    assert "4 row(s) to judge, for at most 0.04 usd" in done.err
    assert "add --yes to agree" in done.json["error"]["message"]


@pytest.mark.parametrize(("answer", "code", "scored"), [("y\n", 0, 4), ("n\n", 2, None), ("\n", 2, None)])
def test_it_asks_before_it_spends(priced, monkeypatch, answer, code, scored):
    monkeypatch.setattr("sys.stdin", Terminal(answer))
    done = paid(priced)
    assert (done.code, done.json.get("scored")) == (code, scored)
    assert "Judge them?" in done.err


def test_what_is_free_is_not_asked_for(priced, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    assert evaluate(priced, "--subject", "row", "--judge", "fake/opinion", "--json").code == 0


def test_caps_hold_over_all_runs_and_can_be_lifted_for_one(shop):
    shop.rows(*["0.5"] * 12, sessions=1)
    shop.run("judges: [fake/opinion]")
    capped = paid(shop, "--yes")
    assert (capped.code, capped.json["scored"], capped.json["throttled"]) == (3, 10, {"session_cap": 2})
    again = paid(shop, "--yes")
    assert (again.code, again.json["scored"], again.json["cost"]["usd"]) == (5, 0, "0")
    lifted = paid(shop, "--yes", "--override-cap")
    assert (lifted.code, lifted.json["scored"], lifted.json["cost"]["usd"]) == (0, 12, "0.12")
    assert "no cap holds for this run (--override-cap)" in lifted.err
    assert paid(shop, "--yes").code == 5
    assert len(verdicts(shop, "--judge", "fake/paid_judge")) == 22


# The conversations of the outside data


@pytest.fixture
def airline(tmp_path):
    """Return a file with the first conversations."""
    root = Path(__file__).parents[2]
    path = Path(os.environ.get("DICAST_OUTSIDE_DATA", root.parent / "shared" / "data"), "tau_bench_airline.jsonl.gz")
    if not path.exists():
        pytest.skip(f"{path.name} is not in {path.parent}; DICAST_OUTSIDE_DATA names the folder that has it")
    first = tmp_path / path.name
    with gzip.open(path) as file, gzip.open(first, "wb") as copy:
        copy.writelines(islice(file, CONVERSATIONS))
    return first


@pytest.mark.slow
@pytest.mark.outside_data
def test_conversations_judged_again_get_the_same_verdicts(shop, airline):
    options = {"path": str(airline), "id": "{{ task_id }}-{{ trial }}", "subjects": ["tool_cycle", "turn", "session"]}
    first = shop.run(PIPELINE.splitlines()[1] + f"\nsource: {json.dumps({'traces/messages': options})}\n")
    assert (first.code, first.json["subjects"]) == (0, 390)
    before = by_subject(verdicts(shop))
    for kind, count in (("tool_cycle", 144), ("turn", 221), ("session", CONVERSATIONS)):
        for _ in range(2):
            judge = f"{{heuristic/{kind}: {{as: heuristic/{kind}}}}}"
            done = evaluate(shop, "--subject", kind, "--judge", judge, "--json")
            assert (done.code, done.json["scored"]) == (0, count)
            output = by_subject(verdicts(shop, "--run", done.json["run_id"]))
            assert len(output) == count
            for subject, one in output.items():
                expected = before[subject]
                for item in (one, expected):
                    item["signals"].pop("child_eval_ids", None)
                    item.pop("fingerprint", None)
                assert one == expected
