"""A run under ``on_budget: skip_subject`` that was interrupted and resumed: nothing is paid twice, and skipped subjects stay skipped."""

from __future__ import annotations

import pytest

from .conftest import settled

TEXT = """
name: nightly
metrics: [fake/paid]
scoring: {on_budget: skip_subject}
budget: {run: 0.05 usd, day: 9 usd}
gate: {min_coverage: 0}
"""


@pytest.mark.parametrize("after", [0, 1, 3, 7])
def test_a_resumed_run_comes_to_what_an_undisturbed_one_comes_to(shop, monkeypatch, after):
    from dicast._kernel.run.direct import DirectWindow

    take, count = DirectWindow._take, 0

    async def break_off(self, due):
        nonlocal count
        count += 1
        if count > after:
            raise RuntimeError("the lights went out")
        await take(self, due)

    shop.rows(*[n / 10 for n in range(10)])
    with monkeypatch.context() as patch:
        patch.setattr(DirectWindow, "_take", break_off)
        shop.run(TEXT)
    resumed = shop.run(TEXT, "--resume").json
    whole = shop.run(TEXT).json
    figures = ("subjects", "scored", "failed", "skipped", "unaffordable", "coverage", "failures")
    assert [whole[name] for name in figures] == [10, 5, 0, 5, 5, 0.5, {}]
    assert whole["cost"]["usd"] == "0.05"
    lost = float(resumed["spend_lost"]["usd"])  # calls under way when it broke off were paid for, and not heard
    assert resumed["scored"] + round(lost / 0.01) == 5
    assert resumed["scored"] + resumed["unaffordable"] == 10
    if not lost:
        assert settled(resumed)["score"] == settled(whole)["score"]
    else:
        assert resumed["cost"]["usd"] == f"{0.05 - lost:.2f}"
    assert shop.verified()
