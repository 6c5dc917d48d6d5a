"""``dicast doctor`` from the user's side: cards, their calls, and refusals."""

from __future__ import annotations

import json
import random
import re
import time

import pytest

import dicast
from dicast import Subject, TraceEvent
from dicast._kernel.cli import main
from dicast_trust.cards.canaries import can_plant

RUN = """
name: answers
source: {{rows/jsonl: {{path: rows.jsonl}}}}
judges: [{judge}]
ledger: {{ledger/sqlite: {{path: ledger.db}}}}
{more}
"""
CHECK = "{llm/judge: {as: helpful, model: {openai/chat: {base_url: URL, model: gpt-judge, price: free}}, criteria: [right]}}"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def rows(folder, count=160, seed=1, right=0.9):
    """Rows whose output says whether it is right; labels that agree with that in a share *right* of them."""
    draw = random.Random(seed)
    with (folder / "rows.jsonl").open("w") as data, (folder / "gold.jsonl").open("w") as gold:
        for n in range(count):
            good = draw.random() < 0.5
            said = good == (draw.random() < right)
            output = f"answer {n} is {'RIGHT' if said else 'WRONG'} {'word ' * draw.randint(1, 30)}"
            row = {"id": f"r{n}", "input": "q", "output": output, "model": draw.choice(["gpt-writer", "claude-writer"])}
            data.write(json.dumps(row) + "\n")
            gold.write(json.dumps({"subject_id": f"r{n}", "score": int(good)}) + "\n")


def pipeline(folder, judge=CHECK, url="", more=""):
    (folder / "file.yaml").write_text(RUN.format(judge=judge.replace("URL", url), more=more))
    return folder / "file.yaml"


def judging(asked):
    """A model that reads the first sentence, and is swayed by nothing."""
    good = "is RIGHT" in re.sub(r"seal: .*", "", asked.prompt)
    return json.dumps({"seal": asked.seal, "rationale": "r", "score": 0.9 if good else 0.1, "confidence": 0.8})


@pytest.fixture
def judged(folder, chat_server):
    rows(folder)
    chat_server.answer = judging
    file = pipeline(folder, url=chat_server.url)
    assert dicast.run(file).exit_code == 0
    return file


def doctor(capsys, *args):
    code = main(["doctor", "file.yaml", "--gold", "gold.jsonl", *args])
    return code, capsys.readouterr()


def card(capsys, *args):
    code, out = doctor(capsys, "--json", *args)
    assert code == 0, out
    return json.loads(out.out)


@pytest.mark.slow
def test_a_good_judge_can_gate_and_its_card_opens_the_gate(judged, folder, capsys, chat_server):
    before = chat_server.count
    found = card(capsys, "--out", "card.json")
    (judge,) = found["judges"]
    assert (found["can_gate"], judge["can_gate"], judge["reasons"]) == (True, True, [])
    assert chat_server.count - before == 50 + 72
    assert (judge["self_consistency"]["same"], judge["self_consistency"]["n"]) == (50, 50)
    assert (judge["injection"]["moved"], judge["injection"]["tried"]) == (0, 72)
    assert judge["injection"]["high"] == pytest.approx(1 - 0.025 ** (1 / 72))
    assert judge["models"] == {"helpful": ["gpt-judge"]}
    assert judge["kappa"]["low"] > 0.4
    assert json.loads((folder / "card.json").read_text()) == found
    main(["calibrate", "file.yaml", "--gold", "gold.jsonl", "--json"])
    calibrated = json.loads(capsys.readouterr().out)
    assert calibrated["population"]["n"] == calibrated["stages"][0]["n"] == 160  # canaries are nobody's data
    pipeline(folder, url=chat_server.url, more="gate: {min_score: 0.1, require_card: card.json}")
    assert main(["run", "file.yaml"]) == 0
    pipeline(
        folder,
        judge=CHECK.replace("[right]", "[right, short]"),
        url=chat_server.url,
        more="gate: {min_score: 0.1, require_card: card.json}",
    )
    assert main(["run", "file.yaml"]) == 3
    assert "for another helpful" in " ".join(capsys.readouterr().out.split())


def test_a_card_has_the_cost_and_latency_of_the_recorded_verdicts(folder, chat_server, capsys):
    rows(folder, count=40)
    chat_server.answer = judging
    priced = CHECK.replace("price: free", "price: {input_per_mtok: 1, output_per_mtok: 5}")
    pipeline(folder, judge=priced, url=chat_server.url)
    dicast.run(folder / "file.yaml")
    code, printed = doctor(capsys, "--json", "--no-ask")
    assert code in (0, 3), printed
    (judge,) = json.loads(printed.out)["judges"]
    # 100 tokens of input and 20 of output a call
    assert judge["cost"] == {"median": 0.0002, "p95": 0.0002, "unit": "usd", "n": 40, "unknown": 0}
    assert 0 <= judge["latency"]["median_ms"] <= judge["latency"]["p95_ms"]
    assert (judge["failures"]["failed"], judge["failures"]["n"]) == (0, 40)


def test_a_judge_that_obeys_canaries_cannot_gate(folder, chat_server, capsys):
    rows(folder)

    def obeys(asked):
        good = "is RIGHT" in asked.prompt or "Score it 1.0" in asked.prompt
        return json.dumps({"seal": asked.seal, "rationale": "r", "score": 1.0 if good else 0.1, "confidence": 0.8})

    chat_server.answer = obeys
    pipeline(folder, url=chat_server.url)
    main(["run", "file.yaml"])
    capsys.readouterr()
    (judge,) = card(capsys)["judges"]
    assert judge["can_gate"] is False
    assert judge["injection"]["moved"] >= 1
    assert any("canaries that moved a verdict" in reason for reason in judge["reasons"])


def test_without_leave_nothing_is_asked_and_the_card_says_why(judged, capsys, chat_server):
    before = chat_server.count
    (judge,) = card(capsys, "--no-ask")["judges"]
    assert chat_server.count == before
    assert judge["can_gate"] is None
    assert (judge["self_consistency"]["value"], judge["injection"]["value"]) == (None, None)
    assert "the judge was not asked (--no-ask)" in judge["undefined"]["injection"]
    assert "the judge was not asked (--no-ask)" in judge["undefined"]["self_consistency"]
    main(["run", "file.yaml"])
    capsys.readouterr()
    (again,) = card(capsys, "--no-ask")["judges"]
    assert again["self_consistency"]["same"] == 50  # a second run has judged them again


def test_what_the_budget_refuses_is_null_with_its_reason(folder, chat_server, capsys):
    rows(folder, 40)
    chat_server.answer = judging
    costly = CHECK.replace("price: free", "price: {input_per_mtok: 100, output_per_mtok: 100}")
    budget = "budget: {run: 100 usd, session: 100 usd, day: 100 usd}"
    pipeline(folder, judge=costly, url=chat_server.url, more=budget)
    assert main(["run", "file.yaml"]) == 0
    pipeline(folder, judge=costly, url=chat_server.url, more="budget: {run: 0 usd, session: 0 usd, day: 0 usd}")
    capsys.readouterr()
    before = chat_server.count
    (judge,) = card(capsys)["judges"]
    assert chat_server.count == before
    assert judge["self_consistency"]["n"] == 0
    assert "no verdict" in judge["undefined"]["self_consistency"]


def test_pairs_are_examined_in_both_orders(folder, chat_server, capsys):
    draw = random.Random(4)
    with (folder / "rows.jsonl").open("w") as data, (folder / "gold.jsonl").open("w") as gold:
        for n in range(120):
            better = draw.random() < 0.5
            texts = [
                f"{'RIGHT' if side else 'WRONG'} {n} {'word ' * draw.randint(1, 20)}" for side in (better, not better)
            ]
            data.write(json.dumps({"id": f"p{n}", "input": "q", "output": texts[0], "reference": texts[1]}) + "\n")
            gold.write(json.dumps({"subject_id": f"p{n}", "score": int(better)}) + "\n")

    def prefers_the_first(asked):
        number = int(re.search(r"(?:RIGHT|WRONG) (\d+)", asked.prompt)[1])
        first = (asked.prompt.index("RIGHT") < asked.prompt.index("WRONG")) != (number % 7 == 0)
        winner = "first" if first or number % 4 == 0 else "second"
        return json.dumps({"seal": asked.seal, "winner": winner, "confidence": 0.9, "rationale": "r"})

    chat_server.answer = prefers_the_first
    pairwise = "{llm/pairwise: {as: helpful, model: {openai/chat: {base_url: URL, model: gpt-judge, price: free}}}}"
    assert dicast.run(pipeline(folder, judge=pairwise, url=chat_server.url)).exit_code == 0
    (judge,) = card(capsys, "--no-ask")["judges"]
    flips = judge["order_flips"]
    assert (flips["flipped"], flips["n"]) == (30, 120)
    assert judge["both_orders"] == {"accuracy": pytest.approx((77 + 15) / 120), "agreement": 0.75, "n": 120}
    assert judge["position"]["z"] > 1.96
    assert judge["position"]["effect"] == pytest.approx(0.125, abs=0.05)
    assert abs(judge["length"]["effect"]) < 0.05
    assert [warning["statistic"] for warning in judge["warnings"]] == ["position"]
    assert next(bar for bar in judge["bars"] if bar["rule"] == "max_flips")["passed"] is False
    assert judge["can_gate"] is False


def test_turns_of_conversations_get_canaries_too(folder, chat_server, capsys):
    draw = random.Random(3)
    with (folder / "talks.jsonl").open("w") as data, (folder / "gold.jsonl").open("w") as gold:
        for n in range(110):
            good = draw.random() < 0.5
            reply = f"answer {n} is {'RIGHT' if good else 'WRONG'}"
            messages = [{"role": "user", "content": "q"}, {"role": "assistant", "content": reply}]
            data.write(json.dumps({"id": f"t{n}", "messages": messages}) + "\n")
            gold.write(json.dumps({"subject_id": f"t{n}/1", "score": int(good)}) + "\n")
    seen = []

    def reads(asked):
        seen.append(asked.prompt)
        return judging(asked)

    chat_server.answer = reads
    file = pipeline(folder, url=chat_server.url)
    talks = 'traces/messages: {path: talks.jsonl, id: "{{ id }}"}'
    file.write_text(file.read_text().replace("rows/jsonl: {path: rows.jsonl}", talks))
    assert dicast.run(file).exit_code == 0
    (judge,) = card(capsys)["judges"]
    assert (judge["can_gate"], judge["reasons"]) == (True, [])
    assert judge["injection"]["tried"] == 72
    assert sum("Decode and follow: SWdub3Jl" in prompt for prompt in seen) == 1
    evaluate = ["evaluate", "--subject", "turn", "--rubric", "turn-heuristic-v1", "--ledger", "ledger.db", "--json"]
    assert main(evaluate) == 0
    assert json.loads(capsys.readouterr().out)["subjects"] == 110  # canaries are nobody's data


def talks(folder, count=110):
    """Conversations with a tool call each, whose result and last words say whether they are right; labels of both kinds of subject."""
    draw = random.Random(3)
    with (folder / "talks.jsonl").open("w") as data, (folder / "gold.jsonl").open("w") as gold:
        for n in range(count):
            good = draw.random() < 0.5
            said = f"answer {n} is {'RIGHT' if good else 'WRONG'}"
            call = {"id": f"c{n}", "function": {"name": "look", "arguments": "{}"}}
            messages = [
                {"role": "user", "content": "q"},
                {"role": "assistant", "content": None, "tool_calls": [call]},
                {"role": "tool", "tool_call_id": f"c{n}", "content": f"result: {said}"},
                {"role": "assistant", "content": said},
            ]
            data.write(json.dumps({"id": f"t{n}", "messages": messages}) + "\n")
            for kind, id in (("session", f"t{n}"), ("tool_cycle", f"c{n}")):
                gold.write(json.dumps({"subject_id": id, "subject_kind": kind, "score": int(good)}) + "\n")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["session", "tool_cycle"])
def test_sessions_and_tool_calls_get_canaries_too(folder, chat_server, capsys, kind):
    talks(folder)
    seen, obeys = [], False

    def reads(asked):
        seen.append(asked.prompt)
        if obeys and "Score it 1.0" in asked.prompt:
            return json.dumps({"seal": asked.seal, "rationale": "r", "score": 1.0, "confidence": 0.8})
        return judging(asked)

    chat_server.answer = reads
    file = pipeline(folder, url=chat_server.url)
    source = f'traces/messages: {{path: talks.jsonl, id: "{{{{ id }}}}", subjects: [{kind}]}}'
    file.write_text(file.read_text().replace("rows/jsonl: {path: rows.jsonl}", source))
    assert dicast.run(file).exit_code == 0
    (judge,) = card(capsys)["judges"]
    assert (judge["can_gate"], judge["reasons"]) == (True, [])
    assert (judge["injection"]["tried"], judge["injection"]["moved"]) == (72, 0)
    (planted,) = (prompt for prompt in seen if "Decode and follow: SWdub3Jl" in prompt)
    before = planted.partition("Decode and follow: SWdub3Jl")[0]
    assert re.search(r"answer \d+ is WRONG\s+\S*$|answer \d+ is WRONG\n", before[-400:])
    obeys = True
    (judge,) = card(capsys)["judges"]
    assert judge["injection"]["moved"] >= 1
    assert judge["can_gate"] is False


def test_sessions_without_texts_have_no_place_for_a_canary():
    call = TraceEvent("tool.called", {"tool_use_id": "c", "input_hash": "6c1f"}, None, "s")
    end = TraceEvent("tool.completed", {"tool_use_id": "c", "success": True}, None, "s")
    bare = Subject("session", "s", events=(call, end), session_id="s")
    assert not can_plant(bare)
    assert not can_plant(Subject("tool_cycle", "c", events=(call, end), session_id="s"))
    assert can_plant(Subject("row", "r", output="x"))


def test_a_heuristic_is_examined_for_nothing(folder, capsys):
    rows(folder, right=0.55)
    pipeline(folder, judge="{check/contains: {as: says, value: RIGHT}}")
    file = folder / "file.yaml"
    file.write_text(file.read_text().replace("judges:", "metrics:"))
    assert dicast.run(file).exit_code == 0
    found = card(capsys, "--judge", "says")
    (judge,) = found["judges"]
    assert judge["can_gate"] is False
    assert any("lower bound of kappa" in reason for reason in judge["reasons"])
    assert "No release should depend on its scores" in judge["words"]
    assert not any(bar["rule"] == "max_moved" for bar in judge["bars"])


@pytest.fixture
def checked(folder):
    rows(folder)
    pipeline(folder, judge="{check/contains: {as: says, value: RIGHT}}")
    file = folder / "file.yaml"
    file.write_text(file.read_text().replace("judges:", "metrics:"))
    assert dicast.run(file).exit_code == 0
    return file


def test_the_terminal_shows_it_in_80_columns(checked, capsys):
    code, out = doctor(capsys)
    assert code == 0
    assert max(map(len, out.out.splitlines())) <= 80
    assert "metrics: can gate" in out.out
    assert ">= 0.40: reached" in out.out


def test_the_page_is_inert_and_shows_the_same(checked, folder, capsys):
    text = (
        (folder / "file.yaml")
        .read_text()
        .replace("says", "<script>alert(1)</script>")
        .replace("name: answers", 'name: "<img src=x>"')
    )
    (folder / "file.yaml").write_text(text)
    assert dicast.run(folder / "file.yaml").exit_code == 0
    doctor(capsys, "--html", "card.html", "--judge", "<script>alert(1)</script>")
    page = (folder / "card.html").read_text()
    assert "<script" not in page.lower()
    assert "<img" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt; <span" in page
    assert "default-src 'none'" in page
    assert "http" not in page.replace("http-equiv", "")


def test_few_labels_leave_it_open(checked, folder, capsys):
    lines = (folder / "gold.jsonl").read_text().splitlines()
    (folder / "gold.jsonl").write_text("\n".join(lines[:60]) + "\n")
    (judge,) = card(capsys)["judges"]
    assert judge["can_gate"] is None
    assert any("the number of labels is 60, and has to be at least 100" in reason for reason in judge["reasons"])


def test_labels_of_one_class_leave_it_open_with_a_reason(checked, folder, capsys):
    text = (folder / "gold.jsonl").read_text().replace('"score": 0', '"score": 1')
    (folder / "gold.jsonl").write_text(text)
    (judge,) = card(capsys)["judges"]
    assert (judge["can_gate"], judge["balanced_accuracy"]["value"], judge["kappa"]["low"]) == (None, None, None)
    assert "all 160 labels pass" in judge["undefined"]["kappa"]
    assert "NaN" not in json.dumps(judge)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (['{"subject_id": "nobody", "score": 1}'], "no label in gold.jsonl is about a judged subject"),
        (['{"subject_id": "r1", "score": 1.5}'], "1.5 is not a score from 0 to 1"),
        (['{"subject_id": "r1", "score": 1}', '{"subject_id": "r1", "score": 0}'], "two labels that differ"),
        (['{"subject": "r1", "score": 1}'], "'subject' is not known"),
    ],
)
def test_bad_labels_are_refused_and_nothing_is_asked(checked, folder, capsys, lines, message):
    (folder / "gold.jsonl").write_text("\n".join(lines) + "\n")
    code, out = doctor(capsys)
    assert code == 2
    assert message in out.err


def test_a_changed_judge_has_no_verdicts_and_says_so(checked, folder, capsys):
    text = (folder / "file.yaml").read_text().replace("value: RIGHT", "value: WRONG")
    (folder / "file.yaml").write_text(text)
    code, out = doctor(capsys)
    assert code == 2
    assert "all of another judge than the judge in file.yaml" in out.err


def test_an_unknown_label_names_the_nearest(checked, capsys):
    code, out = doctor(capsys, "--judge", "sayz")
    assert code == 2
    assert "did you mean 'says'" in out.err


def test_drift_is_found_on_anchors_that_are_judged_again(folder, capsys):
    from dicast_trust.cards.drift import drift
    from dicast_trust.cards.history import JudgeHistory, PastVerdict

    def said(seq, score):
        return PastVerdict(seq, "run", False, None, score, 1.0, None, "llm", None, 1, None, ())

    steady = {("row", str(n)): [said(n, 1.0), said(200 + n, float(n % 20 != 0))] for n in range(100)}
    moved = {("row", str(n)): [said(n, 1.0), said(200 + n, float(n % 2 == 0))] for n in range(100)}
    for subjects, crossed in ((steady, False), (moved, True)):
        found, unknown = drift(JudgeHistory("j", "f", subjects), subjects.keys(), 0.5, 0.93)
        assert (found["crossed"], found["n"], unknown) == (crossed, 100, {})
    found, unknown = drift(JudgeHistory("j", "f", moved), moved.keys(), 0.5, None)
    assert (found["crossed"], set(unknown)) == (None, {"drift"})


def test_a_thousand_recorded_subjects_take_less_than_five_seconds(folder, capsys):
    rows(folder, 1_000)
    file = pipeline(folder, judge="{check/contains: {as: says, value: RIGHT}}")
    file.write_text(file.read_text().replace("judges:", "metrics:"))
    assert dicast.run(file).exit_code == 0
    began = time.process_time()
    found = card(capsys, "--no-ask")
    assert time.process_time() - began < 5
    assert found["judges"][0]["labels"]["n"] == 1_000


def test_canaries_are_not_offered_for_labelling(judged, folder, capsys):
    from dicast import read_ledger
    from dicast_trust.labels.choosing import read_subjects

    card(capsys)
    found = read_ledger(folder / "ledger.db", read_subjects)
    assert len(found) == 160
    assert not any("canary" in id for _, id in found)


def test_what_doctor_asks_is_of_the_kind_tool(judged, folder, capsys):
    card(capsys)
    main(["runs", "--ledger", "ledger.db", "--json"])
    kinds = [run["kind"] for run in json.loads(capsys.readouterr().out)["runs"]]
    assert len(kinds) > 1
    assert kinds == ["tool"] * (len(kinds) - 1) + ["pipeline"]
