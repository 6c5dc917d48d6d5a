"""``llm/jury`` that stops early, and weighs its judges by how often they were right."""

from __future__ import annotations

import asyncio
import math
import random
from fractions import Fraction

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dicast import ConfigError, Cost, Failure, Judgment, Subject, read_ledger
from dicast.testing import FakeJudge, run_pipeline
from dicast_llm.jury import Jury
from dicast_llm.measured import accuracies
from dicast_llm.settling import settled

ROW = Subject("row", "1", "q", "a")


def ask(jury):
    return asyncio.run(jury.judge(ROW, ()))


def says(score, amount="0", **fields):
    return FakeJudge(Judgment(score, 1.0, cost=Cost(amount), **fields), cost=Cost(amount))


def test_no_further_judge_is_asked_once_the_majority_stands():
    panel = [says(1.0), says(0.9), says(0.0)]
    result = ask(Jury(tuple(panel), "majority", until="settled"))
    assert (result.score, result.signals["settled"]) == (1.0, {"asked": 2, "of": 3})
    assert result.signals["votes"][2] == {"judge": "judges[2]", "asked": False}
    assert [len(judge.asked) for judge in panel] == [1, 1, 0]


def test_a_split_asks_the_last_one():
    result = ask(Jury((says(1.0), says(0.0), says(0.0)), "majority", until="settled"))
    assert (result.score, result.signals["settled"]["asked"]) == (0.0, 3)


def test_the_cheap_ones_are_asked_first_and_those_of_unknown_price_last():
    @attrs.frozen
    class Unpriced(FakeJudge):
        def estimate(self, subject):
            return Cost.unknown()

    costly, cheap, free, unknown = says(1.0, "0.10"), says(1.0, "0.01"), says(1.0), Unpriced(Judgment(1.0))
    result = ask(Jury((unknown, costly, cheap, free), "majority", until="settled"))
    assert [len(judge.asked) for judge in (free, cheap, costly, unknown)] == [1, 1, 1, 0]
    assert result.cost == Cost("0.11")


def test_a_mean_is_settled_where_its_side_of_the_line_stands():
    panel = (says(0.9), says(0.95), says(1.0), says(0.0))
    assert ask(Jury(panel, line=0.4, until="settled")).signals["settled"]["asked"] == 3
    assert ask(Jury(panel, line=0.8, until="settled")).signals["settled"]["asked"] == 4
    assert ask(Jury(panel, line=0.8)).score == pytest.approx(2.85 / 4)


def test_a_jury_that_can_give_no_verdict_asks_no_further():
    panel = [FakeJudge(Failure("timeout", "late")), FakeJudge(Failure("timeout", "late")), says(1.0), says(1.0)]
    result = ask(Jury(tuple(panel), "majority", until="settled"))
    assert isinstance(result, Failure)
    assert "2 of 4 judges failed" in result.message
    assert not panel[2].asked


scores = st.one_of(st.none(), st.integers(0, 8).map(lambda n: n / 8))


@given(
    st.lists(st.tuples(scores, st.integers(1, 5)), min_size=2, max_size=7),
    st.sampled_from(["mean", "median", "majority", "weighted"]),
    st.integers(0, 8),
)
def test_stopping_early_never_changes_the_outcome(votes, way, line):
    judges = tuple(FakeJudge(Failure("refused", "no")) if score is None else says(score) for score, _ in votes)
    weights = tuple(float(weight) for _, weight in votes) if way == "weighted" else None
    full = ask(Jury(judges, way, weights))
    early = ask(Jury(judges, way, weights, until="settled", line=line / 8))
    assert isinstance(early, Failure) == isinstance(full, Failure)
    if isinstance(full, Judgment):
        if way == "majority":
            assert early.score == full.score
        else:
            assert (Fraction(early.score) >= Fraction(line, 8)) == (Fraction(full.score) >= Fraction(line, 8))


def test_nothing_is_settled_before_anybody_was_asked():
    assert not settled("majority", [], [Fraction(1)] * 3, 0, Fraction(1, 2))


@pytest.mark.parametrize("line", [-0.1, 1.1])
def test_a_line_is_from_0_to_1(line):
    with pytest.raises(ConfigError, match="from 0 to 1"):
        Jury((says(1.0), says(0.0)), line=line)


def ballots(count, rights, seed=3):
    draw, ballots_ = random.Random(seed), []
    for _ in range(count):
        truth = draw.random() < 0.4
        ballots_.append({judge: truth == (draw.random() < right) for judge, right in enumerate(rights)})
    return ballots_


def test_accuracies_are_found_without_truths():
    rights = (0.95, 0.85, 0.8, 0.7, 0.6)
    assert accuracies(ballots(4_000, rights), 5) == pytest.approx(rights, abs=0.02)


def test_accuracies_are_those_of_crowd_kit():
    aggregation = pytest.importorskip("crowdkit.aggregation", reason="crowd-kit is not installed: it weighs 700 MB")
    import pandas as pd

    votes = ballots(300, (0.9, 0.8, 0.7, 0.6))
    rows = [(task, judge, int(vote)) for task, votes_ in enumerate(votes) for judge, vote in votes_.items()]
    fitted = aggregation.DawidSkene(n_iter=200, tol=1e-12).fit(pd.DataFrame(rows, columns=["task", "worker", "label"]))
    rates, prior = fitted.errors_, fitted.priors_
    theirs = [prior[0] * rates.loc[(judge, 0), 0] + prior[1] * rates.loc[(judge, 1), 1] for judge in range(4)]
    assert accuracies(votes, 4) == pytest.approx(theirs, abs=1e-5)


PANEL = "judges: [{llm/jury: {as: panel, judges: [good, fair, poor], combine: %s}}]"


@attrs.frozen
class Knows:
    votes: tuple[bool, ...]

    def judge(self, subject, children):
        return Judgment(float(self.votes[int(subject.id)]))


def panel(count, rights, seed=5):
    """Subjects, and judges that are right as often as *rights* say."""
    votes = ballots(count, rights, seed)
    subjects = [Subject("row", str(n), "q", "a", session_id=f"s{n // 2}") for n in range(count)]
    names = ("good", "fair", "poor")
    return subjects, {name: Knows(tuple(vote[judge] for vote in votes)) for judge, name in enumerate(names)}


def test_weights_are_measured_by_earlier_votes_of_other_sessions(tmp_path):
    subjects, judges = panel(400, (0.95, 0.85, 0.65))
    ledger = f"\nledger: {{ledger/sqlite: {{path: {tmp_path / 'ledger.db'}}}}}"
    run_pipeline(PANEL % "majority" + ledger, subjects=subjects, components=judges)
    done = run_pipeline(PANEL % "weighted, weights: measured" + ledger, subjects=subjects, components=judges)
    verdict_ = done.verdicts[0]
    good, fair, poor = verdict_.signals["weights"]
    assert good > fair > poor > 0
    assert good == pytest.approx(math.log(0.95 / 0.05), abs=1.0)
    assert verdict_.rubric_version.startswith("1.0.0+")


def test_weights_without_earlier_votes_are_refused_before_anything_is_judged(tmp_path):
    subjects, judges = panel(10, (0.9, 0.8, 0.7))
    ledger = f"\nledger: {{ledger/sqlite: {{path: {tmp_path / 'ledger.db'}}}}}"
    with pytest.raises(
        ConfigError, match="needs votes of these 3 judges on 50 subjects.*run the jury with combine: majority first"
    ):
        run_pipeline(PANEL % "weighted, weights: measured" + ledger, subjects=subjects, components=judges)
    assert (
        not (tmp_path / "ledger.db").exists() or read_ledger(tmp_path / "ledger.db", lambda live: live.head()) is None
    )
