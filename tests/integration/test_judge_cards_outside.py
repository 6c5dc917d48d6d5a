"""Judge cards of recorded judges: LLMBar's GPT-4, and the heuristic session score over the airline conversations."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import pytest

import dicast
from dicast._kernel.cli import main
from dicast_trust.cards.order_bias import Pair, both_orders, order_flips, preferences

pytestmark = pytest.mark.outside_data

ROOT = Path(__file__).parents[2]


def outside(name):
    path = Path(os.environ.get("DICAST_OUTSIDE_DATA", ROOT.parent / "shared" / "data"), name)
    if not path.is_file():
        pytest.skip(f"{path.name} is not in {path.parent}; DICAST_OUTSIDE_DATA names the folder that has it")
    return path


def pairs(judge):
    found = []
    with gzip.open(outside("llmbar_natural.jsonl.gz"), "rt", encoding="utf-8") as lines:
        for one in map(json.loads, lines):
            orders = one["judgments"][judge]
            winners = tuple(
                "output" if str(orders[f"swap={swap}"]["winner"]) == "1" else "opponent" for swap in (False, True)
            )
            gold = 1.0 if one["label"] == 1 else 0.0
            found.append(Pair(winners, gold, len(one["output_1"]), len(one["output_2"])))
    return found


def test_gpt_4_on_llmbar_natural_has_the_published_figures():
    found = pairs("GPT-4/Metrics_Reference")
    assert both_orders(found) == {"accuracy": pytest.approx(0.96), "agreement": pytest.approx(0.96), "n": 100}
    flips = order_flips(found)
    assert (flips["flipped"], flips["n"]) == (4, 100)
    assert flips["high"] < 0.30


def test_a_weak_judge_on_llmbar_shows_its_preference_for_a_place():
    found, unknown = preferences(pairs("Falcon/Vanilla"))
    assert not unknown
    assert abs(found["position"]["z"]) > 1.96
    assert abs(found["position"]["effect"]) > 0.05


AIRLINE = """
source: {{traces/messages: {{path: {path}, id: "{{{{ task_id }}}}-{{{{ trial }}}}", subjects: [turn, session], tool_error: "^Error"}}}}
judges: [heuristic/turn, heuristic/session]
gate: {{on: heuristic/session}}
ledger: {{ledger/sqlite: {{path: ledger.db}}}}
"""


def test_the_heuristic_session_score_cannot_gate_airline_conversations(tmp_path, monkeypatch, capsys):
    path = outside("tau_bench_airline.jsonl.gz")
    monkeypatch.chdir(tmp_path)
    Path("airline.yaml").write_text(AIRLINE.format(path=path))
    with gzip.open(path, "rt", encoding="utf-8") as lines, Path("gold.jsonl").open("w") as gold:
        for one in map(json.loads, lines):
            label = {
                "subject_id": f"{one['task_id']}-{one['trial']}",
                "subject_kind": "session",
                "score": one["reward"],
            }
            gold.write(json.dumps(label) + "\n")
    assert dicast.run(Path("airline.yaml")).exit_code == 0
    capsys.readouterr()
    asked = ["doctor", "airline.yaml", "--gold", "gold.jsonl", "--judge", "heuristic/session"]
    assert main([*asked, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    (judge,) = found["judges"]
    assert (found["can_gate"], judge["can_gate"]) == (False, False)
    assert judge["auc"]["value"] == pytest.approx(0.44, abs=0.005)
    assert judge["labels"]["n"] == 100
    assert judge["self_consistency"]["value"] == 1.0
    words = judge["words"]
    assert "it scores the good case higher 44% of the time, worse than a coin" in words
    assert "No release should depend on its scores" in words
    assert main(asked) == 0
    shown = capsys.readouterr().out
    assert "heuristic/session: cannot gate" in shown
    assert max(map(len, shown.splitlines())) <= 80
