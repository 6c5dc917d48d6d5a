"""The figures on the pages about heuristic judges are equal to the rubrics, and to the output of the measuring script."""

from __future__ import annotations

import os
import re
import runpy
from pathlib import Path

import pytest

import dicast
from dicast_heuristic.turn import UNFINISHED

ROOT = Path(__file__).resolve().parents[1]
SEPARATION = runpy.run_path(str(ROOT / "benchmarks" / "separation.py"))


def text(page):
    """The page in one line, without its code blocks."""
    (path,) = (ROOT / "docs").rglob(page)
    written = path.read_text(encoding="utf-8")
    prose = re.sub(r"^```.*?^```$", "", written, flags=re.MULTILINE | re.DOTALL)
    return prose, " ".join(prose.split())


def table(page):
    """The numbers in second cells, by the names in first ones."""
    prose, _ = text(page)
    return {name: float(number) for name, number in re.findall(r"^\| `(\w+)` \| ([0-9.]+) \|", prose, re.MULTILINE)}


def says(page, *sentences):
    _, prose = text(page)
    return [sentence for sentence in sentences if sentence not in prose]


def test_turns_have_the_figures_of_their_rubric():
    data = dicast.rubric("turn-heuristic-v1").data
    figures = {**data["weights"], **data["penalties"], **data["feedback"]["weights"]}
    figures |= {f"ended_by_{name}": factor for name, factor in UNFINISHED.items()}
    lookahead = {"lookahead_messages": 5, "lookahead_hours": 24}
    assert table("turns.md") == figures | lookahead
    bounds, cycles = data["feedback"]["bounds"], data["tool_cycles"]
    assert data["clean_stop_reasons"] == ["end_turn"]
    certain, few, unsure, doubtful = (line["value"] for line in data["confidence"])
    assert not says(
        "turns.md",
        f"at most {data['max_tool_calls']} calls of tools",
        f"the first {data['refusal']['window']} characters",
        f"With a thumb up a turn has at least {bounds['explicit_thumbs_up']}",
        f"with a thumb down at most {bounds['explicit_thumbs_down']}",
        f"a turn has at most {bounds['implicit']} after a retry",
        f"a score below {cycles['threshold']}.",
        f"which is {cycles['weight']}.",
        f"is {certain} with at least four good signs and no bad one, {few} with fewer good ones, {unsure} with one bad sign and {doubtful}",
    )


def test_tool_cycles_have_the_figures_of_their_rubric():
    data = dicast.rubric("tool-cycle-heuristic-v1").data
    assert table("tool-cycles.md") == data["weights"]
    none, unsure, doubtful = (line["value"] for line in data["confidence"])
    assert not says(
        "tool-cycles.md",
        f"the next {data['thrash']['window']} calls",
        f"at most {data['thrash']['distance']} of the longer one",
        f"is {none} without a bad sign, {unsure} with one and {doubtful} with more",
    )


def test_sessions_have_the_figures_of_their_rubric():
    data = dicast.rubric("session-aggregate-v1").data
    assert table("sessions.md") == data["weights"]
    thumbs = data["thumbs"]
    assert not says(
        "sessions.md",
        f"times {data['model_swap_factor']} for each distinct model",
        f"the mean and the minimum are {data['no_turns']}",
        f"{data['confidence']['with_turns']} with turns and {data['confidence']['without_turns']} without",
        f"has the weight {thumbs['weight']}, equal to the total of the others",
        f"at least {thumbs['bounds']['explicit_thumbs_up']} with a thumb up",
        f"at most {thumbs['bounds']['explicit_thumbs_down']} with a thumb down",
    )


@pytest.mark.parametrize(
    ("good", "bad", "expected"),
    [([2, 3], [0, 1], 1.0), ([0], [1, 2], 0.0), ([1], [1], 0.5), ([1, 2, 3], [2, 2], 0.5), ([0.5, 2], [1, 2], 0.375)],
)
def test_auc_is_the_share_of_pairs_in_which_the_good_one_is_above(good, bad, expected):
    assert SEPARATION["auc"](good, bad) == expected


def test_copies_of_conversations_do_not_make_the_interval_narrower():
    rows = [{"task": str(n % 20), "reward": int(n * n % 7 < 3), "x": n * n % 7 // 3 + n % 5} for n in range(40)]
    ((_, auc, low, high, *_),) = SEPARATION["separation"](rows, 300)
    assert low < auc < high
    assert list(SEPARATION["separation"](rows * 3, 300)) == list(SEPARATION["separation"](rows, 300))
    alone = [{**row, "task": f"{row['task']} {copy}"} for copy in range(3) for row in rows]
    ((_, single_auc, above, below, *_),) = SEPARATION["separation"](alone, 300)
    assert (single_auc, above > low, below < high) == (auc, True, True)


def test_pairs_within_a_task_exclude_the_effect_of_the_task():
    rows = [{"task": task, "reward": reward, "x": ord(task) + reward} for task in "abc" for reward in (0, 1)]
    rows += [{"task": "z", "reward": 0, "x": 999}]
    assert SEPARATION["within"](rows, "x") == (1.0, 3)
    good, bad = ([row["x"] for row in rows if row["reward"] == reward] for reward in (1, 0))
    assert SEPARATION["auc"](good, bad) < 0.7


@pytest.mark.slow
@pytest.mark.outside_data
def test_separation_has_the_table_of_the_script():
    folder = Path(os.environ.get("DICAST_OUTSIDE_DATA", ROOT.parent / "shared" / "data"))
    path = folder / SEPARATION["DATA"]
    if not path.exists():
        pytest.skip(f"{path.name} is not in {folder}; DICAST_OUTSIDE_DATA names the folder that has it")
    prose, _ = text("separation.md")
    assert SEPARATION["table"](SEPARATION["rows"](path)) in prose
