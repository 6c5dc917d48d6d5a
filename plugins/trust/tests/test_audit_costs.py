"""Cost and rates of audits, and forecasts of labels in words, against formulas that are written out again."""

from __future__ import annotations

import math
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dicast_trust.audits.costs import AuditCosts, Audited, best_rate, ratio_at_equal_width
from dicast_trust.audits.rates import audit_rates, least_rate, rate_for_width, rates_for_width
from dicast_trust.calibration.labels_needed import Needed

Z = 1.959963984540054


@pytest.mark.parametrize(
    ("needed", "words"),
    [
        (Needed(130, 200, 300, 0.0), "between 30 and 200 more labels"),
        (Needed(90, 95, 99, 0.0), "between 0 and 0 more labels"),
        (Needed(1300, 2000, None, 0.25), "between 1,200 and 1,900 more labels; or no number is enough (25 %)"),
        (Needed(1300, None, None, 0.5), "at least 1,200 more labels; or no number is enough (50 %)"),
        (Needed(None, None, None, 1.0), "no number is enough (100 %)"),
    ],
)
def test_the_forecast_of_labels_is_a_range_of_further_labels(needed, words):
    assert needed.words(100) == words
    if needed.low is not None:
        of_sessions = words.replace("more labels", "more labels, each of a different session")
        assert needed.words(100, sessions=True) == of_sessions


def costs(*states):
    """Return the sums of subjects, each a state with the costs of a proxy and of a truth."""
    sums = AuditCosts()
    for state, proxy, truth in states:
        amounts = [("proxy", "usd", proxy), ("truth", "usd", truth)]
        sums.add(state, [(tier, unit, Decimal(amount)) for tier, unit, amount in amounts if amount is not None])
    return sums


SUBJECTS = [("passed", "1", "10")] * 6 + [("audited", "1", "20")] * 2 + [("held", "1", None)] * 2


def test_the_cost_of_judging_everything_is_that_of_truths_of_passed_and_audited_subjects():
    figures = costs(*SUBJECTS).document(10, 4, 0.5, 0.2, {"": Audited(0.4, 0.1, 0.5)})
    assert figures["cost"]["if_all_judged"] == "140"  # 6 x 10 + 4 x 20
    ratio = (0.2 + 0.4 * 0.1 * (1 / 0.5 - 1)) * (1 + 0.6 * 14 + 0.4 * 0.5 * 14) / (0.2 * 14)
    assert figures["cost"]["ratio_at_equal_width"] == pytest.approx(ratio)
    audit = figures["audit"]
    assert (audit["cost_proxy"], audit["cost_truth"], audit["rate"], audit["share_held"]) == ("1", "14", 0.5, 0.4)
    assert (audit["variance"], audit["tau2"]) == (0.2, 0.1)
    assert audit["best_rate"] == pytest.approx(math.sqrt(0.1 * (1 + 0.6 * 14) / (0.16 * 14)))
    assert "strata" not in audit


def test_groups_of_audits_have_rates_of_their_own():
    parts = {"hard": Audited(0.3, 0.12, 0.5), "easy": Audited(0.1, 0.02, 1.0)}
    audit = costs(*SUBJECTS).document(10, 4, 0.6, 0.2, parts)["audit"]
    residual = 0.3 * 0.12 + 0.1 * 0.02
    assert audit["tau2"] == pytest.approx(residual / 0.4)
    assert [*audit["strata"]] == ["easy", "hard"]
    for name, part in parts.items():
        best = best_rate(0.2 - residual, part.tau2, 0.4, 1.0, 14.0)
        assert audit["strata"][name] == {
            "share_held": part.share,
            "tau2": part.tau2,
            "rate": part.rate,
            "best_rate": pytest.approx(best),
        }


def test_costs_without_a_price_or_in_two_units_are_unknown():
    sums = costs(*SUBJECTS)
    sums.add("passed", [("truth", "usd", None)])
    assert sums.document(11, 4, 0.5, 0.2, None)["cost"] == {"if_all_judged": None, "ratio_at_equal_width": None}
    mixed = costs(*SUBJECTS)
    mixed.add("passed", [("truth", "msat", Decimal(3))])
    assert mixed.document(11, 4, 0.5, 0.2, None)["audit"]["cost_truth"] is None
    proxies = costs(*SUBJECTS)
    proxies.add("passed", [("proxy", "msat", Decimal(3))])
    assert proxies.document(11, 4, 0.5, 0.2, None)["audit"]["cost_truth"] is not None
    assert costs().document(0, 0, 0.5, None, None) == {
        "cost": {"if_all_judged": None, "ratio_at_equal_width": None},
        "audit": {
            "rate": 0.5,
            "best_rate": None,
            "share_held": 0.0,
            "variance": None,
            "tau2": None,
            "cost_proxy": None,
            "cost_truth": None,
        },
    }
    held = costs(("held", "1", None)).document(1, 1, 0.5, 0.2, {})
    assert held["cost"]["if_all_judged"] is None
    audited = costs(("audited", "1", "20")).document(1, 1, 0.5, 0.2, {})
    assert (audited["cost"]["if_all_judged"], audited["audit"]["tau2"]) == ("20", 0.0)


@given(st.floats(0.01, 0.2), st.floats(0.0, 0.2), st.floats(0.05, 0.95), st.floats(0.01, 5), st.floats(0.5, 50))
def test_the_best_rate_has_the_least_cost_of_a_width(rest, tau2, share, proxies, truths):
    def cost(rate):
        return (rest + share * tau2 / rate) * (proxies + (1 - share) * truths + share * rate * truths)

    best = best_rate(rest, tau2, share, proxies, truths)
    assert 0.01 <= best <= 1.0
    assert cost(best) <= min(cost(rate) for rate in (0.01, best * 1.02, best / 1.02, 1.0) if 0.01 <= rate <= 1) * (
        1 + 1e-9
    )


@pytest.mark.parametrize(("rest", "truths"), [(0.0, 1.0), (-0.1, 1.0), (0.1, 0.0)])
def test_without_a_reducible_variance_or_a_price_everything_is_audited(rest, truths):
    assert best_rate(rest, 0.1, 0.5, 1.0, truths) == 1.0


def test_the_ratio_is_unknown_for_free_truths_or_without_audits():
    part = Audited(0.5, 0.1, 0.5)
    assert ratio_at_equal_width(0.2, 0.5, [part], 1.0, 0.0) is None
    assert ratio_at_equal_width(0.0, 0.5, [part], 1.0, 1.0) is None
    assert ratio_at_equal_width(0.2, 0.5, [part, Audited(0.5, 0.1, 0.0)], 1.0, 1.0) is None
    assert ratio_at_equal_width(0.2, 0.5, [Audited(0.5, 0.1, 1.0)], 1.0, 2.0) == pytest.approx(1.5)  # proxies cost half


def test_the_rate_for_a_width_gives_it():
    rate = rate_for_width(0.05, 400, 0.2, 0.1, 0.6)
    assert Z * math.sqrt((0.2 - 0.06 + 0.06 / rate) / 400) == pytest.approx(0.05)
    exact = 0.2 * (Z / 0.05) ** 2
    assert rate_for_width(0.05, math.ceil(exact), 0.2, 0.1, 0.6) <= 1.0
    with pytest.raises(ValueError, match=r"plus or minus 0.05 from 300 subjects: 30\d or more are needed"):
        rate_for_width(0.05, 300, 0.1999, 0.0, 0.6)
    with pytest.raises(ValueError, match="from 100 subjects: 308 or more are needed"):
        rate_for_width(0.05, 100, 0.2, 0.1, 0.6)


@pytest.mark.parametrize(
    ("subjects", "share", "rate"),
    [(1000, 0.5, 0.02), (100, 0.05, 1.0), (10_000, 0.5, 0.01), (None, 0.5, 0.01), (100, 0.0, 0.01), (20, 1.0, 0.5)],
)
def test_the_least_rate_of_a_group_gives_10_audits(subjects, share, rate):
    assert least_rate(subjects, share) == pytest.approx(rate)


def test_rates_of_groups_are_in_proportion_unless_one_is_audited_whole():
    parts = {"hard": (0.3, 0.16), "easy": (0.3, 0.04)}
    rates = rates_for_width(0.05, 500, 0.25, parts)
    assert rates["hard"] == pytest.approx(2 * rates["easy"])
    variance = 0.25 - 0.06 + sum(share * tau2 / rates[name] for name, (share, tau2) in parts.items())
    assert Z * math.sqrt(variance / 500) == pytest.approx(0.05)
    whole = rates_for_width(0.05, 350, 0.22, parts)
    assert whole["hard"] == 1.0
    variance = 0.22 - 0.06 + sum(share * tau2 / whole[name] for name, (share, tau2) in parts.items())
    assert Z * math.sqrt(variance / 350) == pytest.approx(0.05)


HISTORY = {
    "best_rate": 0.3,
    "variance": 0.25,
    "tau2": 0.1,
    "share_held": 0.6,
    "strata": {
        "hard": {"best_rate": 0.5, "share_held": 0.3, "tau2": 0.16},
        "easy": {"best_rate": 0.001, "share_held": 0.3, "tau2": 0.04},
    },
}


def test_rates_without_a_width_are_the_cheapest_ones_and_have_10_audits():
    assert audit_rates(HISTORY, 100, None, groups=True) == (0.3, {"hard": 0.5, "easy": pytest.approx(1 / 3)})
    assert audit_rates(HISTORY, None, None, groups=True) == (0.3, {"hard": 0.5, "easy": 0.01})
    assert audit_rates(HISTORY, 100, None, groups=False) == (0.3, {})
    assert audit_rates(HISTORY | {"strata": None}, 100, None, groups=True) == (0.3, {})
    rate, rates = audit_rates(HISTORY, 500, 0.05, groups=True)
    assert rate == rate_for_width(0.05, 500, 0.25, 0.1, 0.6)
    assert rates == rates_for_width(0.05, 500, 0.25, {"hard": (0.3, 0.16), "easy": (0.3, 0.04)})
