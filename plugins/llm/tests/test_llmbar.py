"""The recorded replies of LLMBar's judges, read by ``llm/pairwise`` from their text alone.

``winner`` is the reading of a reply by the authors of the data set, by a regular expression of each judge: the first output won if the
pattern with its label matched anywhere, else the second if its pattern did. The readings differ if a reply names both:
"Output (b) is better.

Output (a) is too short." is a win of the first for the judges whose pattern is a label at the start of
a line. For 18 texts ``winner`` differs between judges that gave the same reply, so no reading of the text alone can agree with
it everywhere. The tests have the numbers of disagreements.
"""

from __future__ import annotations

import asyncio
import copy
import gzip
import json
import os
from collections import defaultdict
from pathlib import Path

import attrs
import pytest

from dicast import Failure, Subject
from dicast.testing import FakeChatModel
from dicast_llm.pairwise import Pairwise

pytestmark = [pytest.mark.outside_data, pytest.mark.slow]  # reading all replies takes seconds

ROOT = Path(__file__).parents[3]
SWAPS = ("swap=False", "swap=True")

CONCLUDED_OTHERWISE = {
    "PaLM2/CoT": 21,
    "ChatGPT/Swap_CoT": 8,
    "LLaMA2/Vanilla_2shot": 6,
    "LLaMA2/Vanilla_1shot": 4,
    "LLaMA2/Swap_CoT": 3,
    "Falcon/CoT": 2,
    "Falcon/Metrics": 1,
    "Falcon/Swap_CoT": 1,
}
"""How many replies of a judge, of 200, are read otherwise than ``winner`` has it; none of any other judge."""


@pytest.fixture(scope="module")
def pairs():
    path = Path(os.environ.get("DICAST_OUTSIDE_DATA", ROOT.parent / "shared" / "data"), "llmbar_natural.jsonl.gz")
    if not path.is_file():
        pytest.skip(f"{path.name} is not in {path.parent}; DICAST_OUTSIDE_DATA names the folder that has it")
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


@pytest.fixture(scope="module")
def read(pairs):
    """Return our judge's reading by judge and pair: the winner in each order, as output 1 or 2, or None for a failure."""
    readings = defaultdict(dict)
    for pair in blind(pairs):
        for judge, orders in pair["judgments"].items():
            completions = [orders[swap]["completion"] for swap in SWAPS]
            if None not in completions:
                readings[judge][pair["id"]] = [winner(pair, place, completions) for place in (0, 1)]
    return readings


def blind(pairs):
    """The pairs without anything that says who won."""
    pairs = copy.deepcopy(pairs)
    for pair in pairs:
        del pair["label"]
        for orders in pair["judgments"].values():
            for swap in SWAPS:
                del orders[swap]["winner"], orders[swap]["rating"]
    return pairs


def winner(pair, place, completions):
    """Return the winner of the order with output 1 in *place*. The reply in the other order is replaced by a plain label."""
    replies = ["Output (a)", "Output (a)"]
    replies[place] = completions[place]
    result = ask(pair, replies)
    if isinstance(result, Failure):
        assert result.kind == "judge_output_invalid"
        return None
    return {"output": "1", "opponent": "2"}[result.signals["winners"][place]]


def ask(pair, replies):
    subject = Subject("row", pair["id"], pair["input"], pair["output_1"], pair["output_2"])
    judge = Pairwise(FakeChatModel(replies), labels=("Output (a)", "Output (b)"), retries=0)
    return asyncio.run(judge.judge(subject, ()))


def recorded(pairs, judge):
    return {pair["id"]: [pair["judgments"][judge][swap]["winner"] for swap in SWAPS] for pair in pairs}


def figures(winners, labels):
    """Accuracy over both orders, order consistency, and the number of replies without a winner."""
    answers = [(winner_, labels[id]) for id, both in winners.items() for winner_ in both]
    right = sum(winner_ == label for winner_, label in answers) / len(answers)
    consistency = sum(both[0] is not None and both[0] == both[1] for both in winners.values()) / len(winners)
    return right, consistency, sum(winner_ is None for winner_, _ in answers)


def test_every_judge_with_replies_is_read(read):
    assert len(read) == 58
    assert {len(pairs) for pairs in read.values()} == {100}


def test_replies_are_read_as_the_data_set_reads_them_but_for_the_known_ones(pairs, read):
    different = {
        judge: sum(
            ours != other
            for id, both in recorded(pairs, judge).items()
            for ours, other in zip(both, winners[id], strict=True)
        )
        for judge, winners in read.items()
    }
    assert {judge: number for judge, number in different.items() if number} == CONCLUDED_OTHERWISE


def test_accuracy_consistency_and_unparseable_replies_are_those_of_the_data_set(pairs, read):
    labels = {pair["id"]: str(pair["label"]) for pair in pairs}
    for judge, winners in read.items():
        ours, theirs = figures(winners, labels), figures(recorded(pairs, judge), labels)
        if judge not in CONCLUDED_OTHERWISE:
            assert ours == theirs, judge
        else:
            assert ours[0] == pytest.approx(theirs[0], abs=CONCLUDED_OTHERWISE[judge] / 199), judge


def test_no_reading_of_the_text_alone_could_equal_the_data_set(pairs):
    winners = defaultdict(set)
    for pair in pairs:
        for orders in pair["judgments"].values():
            for swap in SWAPS:
                completion = orders[swap]["completion"]
                if completion:
                    # the winner by its place in the prompt
                    winners[pair["id"], completion].add((orders[swap]["winner"] == "1") != (swap == "swap=True"))
    assert sum(len(both) > 1 for both in winners.values()) >= 18


def test_a_whole_judgment_agrees_with_both_orders(pairs, read):
    for pair in blind(pairs):
        orders = pair["judgments"]["GPT-4/Swap_CoT"]
        result = ask(pair, [orders[swap]["completion"] for swap in SWAPS])
        first, other = read["GPT-4/Swap_CoT"][pair["id"]]
        assert result.score == (0.5 if first != other else {"1": 1.0, "2": 0.0}[first])
        assert result.signals["flipped"] == (first != other)


def test_empty_replies_are_failures(pairs):
    palm = attrs.evolve(FakeChatModel(), replies="")
    judge = Pairwise(palm, labels=("Output (a)", "Output (b)"))
    result = asyncio.run(judge.judge(Subject("row", "1", "q", "a", "b"), ()))
    assert (result.kind, len(palm.asked)) == ("judge_output_invalid", 4)
