"""Every figure against another source, on 200 random data sets, to 1e-9.

If the plugin calls scipy, the other source is statsmodels or the published formula in plain Python; if the plugin computes itself, likewise.
"""

from __future__ import annotations

import gc
import random
import statistics
from itertools import combinations, product
from math import comb, erfc, fsum, sqrt

import pytest

from dicast_stats import (
    Agreement,
    CliffsDelta,
    CostSummary,
    LatencySummary,
    Paired,
    ScoreDelta,
    ScoreStats,
    Significance,
    VariantRanking,
)
from dicast_stats.numbers.adjustment import ADJUSTMENTS, adjust_p_values

SETS = 200
seeds = pytest.mark.parametrize("block", range(10))
"""The data sets in blocks, so that a failure names a few."""


def close(value):
    return pytest.approx(value, abs=1e-9, rel=1e-9)


def draws(block):
    return [random.Random(seed) for seed in range(block * SETS // 10, (block + 1) * SETS // 10)]


def column(draw, least=3, most=60, missing=0.0):
    """Return scores with many or few different values, on scales of several sizes."""
    size = draw.choice((1, 1, 5, 100))
    levels = draw.choice((0, 0, 2, 4, 10))
    values = [draw.random() for _ in range(draw.randint(least, most))]
    values = [round(value * levels) / levels if levels else value for value in values]
    return [None if draw.random() < missing else value * size for value in values]


def pair(draw, missing=0.0):
    before = column(draw, 4, missing=missing)
    shift, size = draw.choice((0, 0.1, 0.4)), max((value for value in before if value), default=1)
    levels = draw.choice((0, 4))
    after = [None if value is None else value + size * (draw.random() * 0.3 + shift) for value in before]
    return before, [value if value is None or not levels else round(value * levels) / levels for value in after]


def differs(values):
    return max(values) - min(values) > 1e-9


@seeds
def test_score_stats(aggregated, block):
    for draw in draws(block):
        values, ddof = column(draw, 2, missing=0.2), draw.choice((0, 1))
        known_values = [value for value in values if value is not None]
        if len(known_values) < 2:
            continue
        records = [{"metrics": {"scores": {"a": value}}} for value in values]
        figures = aggregated(ScoreStats(ddof=ddof), records)["criteria"]["a"]
        spread = statistics.stdev(known_values) if ddof else statistics.pstdev(known_values)
        assert (figures["count"], figures["missing"]) == (len(known_values), len(values) - len(known_values))
        assert figures["mean"] == close(statistics.fmean(known_values))
        assert (figures["median"], figures["std"]) == (close(statistics.median(known_values)), close(spread))
        assert (figures["min"], figures["max"]) == (min(known_values), max(known_values))


@seeds
def test_summaries_and_ranking(aggregated, block):
    for draw in draws(block):
        values, threshold = column(draw, 2), draw.random()
        records = [
            {"metrics": {"score": score}, "response": {"metrics": {"cost": score, "latency_seconds": score}}}
            for score in values
        ]
        costs = aggregated(CostSummary(), records)["cost"]
        assert (costs["total"], costs["median"]) == (close(fsum(values)), close(statistics.median(values)))
        latency = aggregated(LatencySummary(), records)["latency_seconds"]
        shares = statistics.quantiles(values, n=100, method="inclusive")
        assert (latency["p50"], latency["p95"], latency["p99"]) == tuple(close(shares[n - 1]) for n in (50, 95, 99))
        assert latency["std"] == close(statistics.stdev(values))
        ranking = aggregated(VariantRanking(threshold=threshold), records)
        passes = sum(value >= threshold for value in values) / len(values)
        assert ranking["composite"] == close(statistics.fmean(values) + passes)


@seeds
def test_agreement(aggregated, block):
    for draw in draws(block):
        truth = column(draw, 5, 25)
        columns = [[t + draw.gauss(0, 0.2) for t in truth] for _ in range(draw.randint(2, 4))]
        missing = draw.choice((0, 0.2))
        columns = [[None if draw.random() < missing else value for value in ratings] for ratings in columns]
        rows = [dict(zip("abcd", row, strict=False)) for row in zip(*columns, strict=True)]
        document = aggregated(Agreement(), [{"metrics": {"scores": row}} for row in rows])
        assert document["average_correlation"] == close(mean_correlation(columns))
        assert document["krippendorff_alpha"] == close(alpha(rows))
        complete = [list(row.values()) for row in rows if None not in row.values()]
        if len(complete) > 1:
            assert document["cronbach_alpha"] == close(cronbach(complete))


def mean_correlation(columns):
    pairs = ([two for two in zip(*columns, strict=True) if None not in two] for columns in combinations(columns, 2))
    return statistics.fmean(statistics.correlation(*zip(*two, strict=True)) for two in pairs if len(two) > 1)


def cronbach(rows):
    count = len(rows[0])
    items = fsum(statistics.variance(item) for item in zip(*rows, strict=True))
    return count / (count - 1) * (1 - items / statistics.variance([fsum(row) for row in rows]))


def alpha(rows):
    """Return one minus the observed over the expected disagreement, each summed pair by pair."""
    units = [[value for value in row.values() if value is not None] for row in rows]
    units = [unit for unit in units if len(unit) > 1]
    pooled = [value for unit in units for value in unit]
    n = len(pooled)
    disagreement = fsum(fsum((x - y) ** 2 for x, y in product(unit, unit)) / (len(unit) - 1) for unit in units) / n
    return 1 - disagreement / (fsum((x - y) ** 2 for x, y in product(pooled, pooled)) / (n * (n - 1)))


@seeds
@pytest.mark.parametrize("equal_var", [False, True])
def test_significance(results, block, equal_var):
    from statsmodels.stats.weightstats import CompareMeans, DescrStatsW

    usevar = "pooled" if equal_var else "unequal"
    for draw in draws(block):
        before, after = column(draw), column(draw)
        if not differs(before) or not differs(after):
            continue
        figures = compared(Significance(equal_var=equal_var), results, before, after)
        means = CompareMeans(DescrStatsW(after), DescrStatsW(before))
        t, p, df = means.ttest_ind(usevar=usevar)
        assert (figures["t"], figures["p_value"], figures["df"]) == (close(t), close(p), close(df))
        assert (figures["ci_low"], figures["ci_high"]) == tuple(map(close, means.tconfint_diff(usevar=usevar)))
        assert (figures["n_baseline"], figures["n_variant"]) == (len(before), len(after))
        assert figures["mean_difference"] == close(statistics.fmean(after) - statistics.fmean(before))
        assert figures["effect_size"] == close(cohens_d(before, after))


def compared(component, results, before, after, **flags):
    baseline, variant = results({"a": before}, flags.get("was")), results({"a": after}, flags.get("now"))
    return component.compare(baseline, variant)["criteria"]["a"]


def cohens_d(before, after):
    squares = fsum(statistics.variance(side) * (len(side) - 1) for side in (before, after))
    pooled = sqrt(squares / (len(before) + len(after) - 2))
    return (statistics.fmean(after) - statistics.fmean(before)) / pooled


@pytest.mark.parametrize(("adjustment", "theirs"), [("bonferroni", "bonferroni"), ("holm", "holm"), ("fdr", "fdr_bh")])
def test_adjustments(adjustment, theirs, monkeypatch):
    from statsmodels.stats.multitest import multipletests

    monkeypatch.setattr(
        gc, "collect", lambda: 0
    )  # statsmodels collects in each of its calls, for a quarter of a second
    for seed in range(SETS):
        draw = random.Random(seed)
        p_values = [draw.random() ** draw.choice((1, 4)) for _ in range(draw.randint(1, 12))]
        assert adjust_p_values(p_values, adjustment) == close(list(multipletests(p_values, method=theirs)[1]))
        family = len(p_values) + draw.randint(0, 5)
        padded = [*p_values, *[1.0] * (family - len(p_values))]
        expected = multipletests(padded, method=theirs)[1][: len(p_values)]
        assert adjust_p_values(p_values, adjustment, family) == close(list(expected))


def test_adjustments_have_the_settled_figures():
    assert adjust_p_values([0.01, 0.04, 0.03, 0.005], "fdr") == close([0.02, 0.04, 0.04, 0.02])
    assert adjust_p_values([0.01, 0.04], "none") == [0.01, 0.04]
    assert [adjust_p_values([], adjustment) for adjustment in ADJUSTMENTS] == [[]] * 4


@seeds
def test_cliffs_delta(results, block):
    for draw in draws(block):
        before, after = column(draw, 1), column(draw, 1)
        delta = sum((y > x) - (y < x) for x, y in product(before, after)) / (len(before) * len(after))
        assert compared(CliffsDelta(), results, before, after)["delta"] == close(delta)
        swapped = compared(CliffsDelta(), results, after, before)["delta"]
        assert swapped == close(-delta)


@seeds
def test_score_delta(results, block):
    for draw in draws(block):
        before, after = column(draw), column(draw)
        for metric, figure in (("mean", statistics.fmean), ("median", statistics.median), ("std", statistics.pstdev)):
            figures = compared(ScoreDelta(metric=metric), results, before, after)
            assert figures == close(figure(after) - figure(before))


@pytest.fixture(scope="module", autouse=True)
def imported():
    """Import the libraries of the second opinion; it takes seconds, which no test's own time should include."""
    import statsmodels.stats.descriptivestats
    import statsmodels.stats.weightstats  # noqa: F401


@pytest.mark.slow
@seeds
def test_paired(results, block):
    from statsmodels.stats.descriptivestats import sign_test
    from statsmodels.stats.weightstats import DescrStatsW

    for draw in draws(block):
        before, after = pair(draw, missing=draw.choice((0, 0.2)))
        differences = [y - x for x, y in zip(before, after, strict=True) if x is not None]
        if len(differences) < 2 or not differs(differences):
            continue
        figures, sample = compared(Paired(), results, before, after), DescrStatsW(differences)
        t, p, _ = sample.ttest_mean()
        assert (figures["n_pairs"], figures["t"], figures["p_value"]) == (len(differences), close(t), close(p))
        assert (figures["ci_low"], figures["ci_high"]) == tuple(map(close, sample.tconfint_mean()))
        assert figures["mean_difference"] == close(statistics.fmean(differences))
        assert figures["effect_size"] == close(statistics.fmean(differences) / statistics.stdev(differences))
        assert figures["sign_p"] == close(sign_test(differences)[1])
        exact = [
            round(difference, 9) for difference in differences
        ]  # of equal differences binary floats make unequal ones
        assert figures["wilcoxon_p"] == close(signed_rank(exact))


def signed_rank(differences):
    """Return the p of F. Wilcoxon's test (Biometrics Bulletin 1(6), 1945): exact for few or no ties, else normal, with ties corrected."""
    left = [value for value in differences if value]
    size = [abs(value) for value in left]
    ranks = [
        (sum(other < magnitude for other in size) + sum(other <= magnitude for other in size) + 1) / 2
        for magnitude in size
    ]
    n, total = len(left), fsum(ranks)
    higher = fsum(rank for rank, value in zip(ranks, left, strict=True) if value > 0)
    least = min(higher, total - higher)
    distinct = len(set(size)) == n and n == len(differences)
    if (distinct and n <= 50) or len(differences) <= 13:
        sums = {0.0: 1}
        for rank in ranks:
            new_sums = dict(sums)
            for value, ways in sums.items():
                new_sums[value + rank] = new_sums.get(value + rank, 0) + ways
            sums = new_sums
        return min(1.0, 2 * sum(ways for value, ways in sums.items() if value <= least + 1e-9) / 2**n)
    groups = [size.count(magnitude) for magnitude in set(size)]
    variance = n * (n + 1) * (2 * n + 1) / 24 - sum(group**3 - group for group in groups) / 48
    return erfc((total / 2 - least) / sqrt(variance) / sqrt(2))


@seeds
def test_mcnemar(results, block):
    from statsmodels.stats.contingency_tables import mcnemar

    for draw in draws(block):
        count, rate = draw.randint(2, 80), draw.random()
        was = [draw.random() < 0.5 for _ in range(count)]
        now = [flag if draw.random() < rate else draw.random() < 0.7 for flag in was]
        table = [
            [sum(w == x and n == y for w, n in zip(was, now, strict=True)) for y in (True, False)]
            for x in (True, False)
        ]
        scores = [draw.random() for _ in range(count)]
        figures = compared(Paired(), results, scores, scores, was={"a": was}, now={"a": now})
        assert figures["mcnemar_p"] == close(mcnemar(table, exact=True).pvalue)
        assert figures["mcnemar_p"] == close(binomial(table[0][1], table[1][0]))
        assert (figures["passes_lost"], figures["passes_gained"], figures["n_pass_pairs"]) == (
            table[0][1],
            table[1][0],
            count,
        )


@seeds
def test_difference_of_pass_rates(results, block):
    for draw in draws(block):
        count, rate = draw.randint(2, 80), draw.random()
        was = [draw.random() < 0.5 for _ in range(count)]
        now = [flag if draw.random() < rate else draw.random() < 0.7 for flag in was]
        figures = compared(Paired(), results, [0] * count, [0] * count, was={"a": was}, now={"a": now})
        assert figures["pass_rate_difference"] == close((sum(now) - sum(was)) / count)
        assert (figures["pass_rate_ci_low"], figures["pass_rate_ci_high"]) == tuple(map(close, newcombe(was, now)))


def newcombe(was, now):
    """Return the interval of Newcombe's method 10, in the letters of his paper: *a* pass both times, *b* the second time alone, *c* the first, *d* never."""
    from statsmodels.stats.proportion import proportion_confint

    pairs, n = list(zip(now, was, strict=True)), len(was)
    a, b, c, d = (pairs.count(pair) for pair in ((True, True), (True, False), (False, True), (False, False)))
    (l2, u2), (l3, u3) = (proportion_confint(passed, n, method="wilson") for passed in (a + b, a + c))
    p2, p3, over, under = (a + b) / n, (a + c) / n, a * d - b * c, (a + b) * (c + d) * (a + c) * (b + d)
    over = over - n / 2 if over > n / 2 else min(over, 0)
    phi = over / sqrt(under) if under else 0
    delta = sqrt((p2 - l2) ** 2 - 2 * phi * (p2 - l2) * (u3 - p3) + (u3 - p3) ** 2)
    epsilon = sqrt((u2 - p2) ** 2 - 2 * phi * (u2 - p2) * (p3 - l3) + (p3 - l3) ** 2)
    return p2 - p3 - delta, p2 - p3 + epsilon


def binomial(first, second):
    n, least = first + second, min(first, second)
    return min(1.0, 2 * sum(comb(n, k) for k in range(least + 1)) / 2**n)


@pytest.mark.slow
def test_bootstrap_interval_holds_the_mean_as_often_as_it_says(results):
    """For 200 samples of a skewed distribution, about 95 % of the intervals hold its mean."""
    covered = 0
    for seed in range(SETS):
        draw = random.Random(seed)
        after = [draw.expovariate(1) for _ in range(40)]
        figures = compared(Paired(), results, [0] * 40, after)
        covered += figures["bootstrap_ci_low"] <= 1 <= figures["bootstrap_ci_high"]
    assert 0.9 <= covered / SETS <= 0.99
