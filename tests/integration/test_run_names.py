"""One rule for names of runs: every command takes the newest run over all subjects, and names a run over some of them."""

from __future__ import annotations

import pytest

TEXT = "name: nightly\nmetrics: [proxy/format]\n"
SUITE = "name: prompts\nmetrics: [proxy/format]\nexperiments: {long: {}, short: {}}\n"


def started(shop, name, number):
    return [event["run_id"] for event in shop.events("run.started") if event["payload"]["name"] == name][number]


def shown(shop, name):
    return shop.dicast("show", name, "--json").json["run_id"]


def verdicts(shop, name):
    (run_id,) = {verdict["run_id"] for verdict in shop.dicast("verdicts", "--run", name, "--json").json["verdicts"]}
    return run_id


def page(shop, name):
    (run,) = shop.dicast("report", name, "--out", "page.html", "--json").json["runs"]
    return run["run_id"]


def baseline(shop, name):
    return shop.dicast("baseline", "save", "kept", name, "--json").json["run_id"]


def compared(shop, name):
    return shop.dicast("compare", name, other(shop), "--json").json["a"]["run_id"]


def other(shop):
    return started(shop, "other", 0)


READERS = (shown, verdicts, page, baseline, compared)


@pytest.mark.parametrize(
    "options",
    [["--filter", "id=r0"], ["--limit", "1"], ["--head", "1"], ["--shard", "1/2"], ["--only", "proxy/format"]],
)
@pytest.mark.parametrize("name", ["nightly", "last"])
def test_every_command_takes_the_newest_run_over_all_subjects(shop, name, options):
    shop.rows("a", "b")
    assert shop.run(TEXT.replace("nightly", "other")).code == 0
    whole = shop.run(TEXT).json["run_id"]
    limited = shop.run(TEXT, *options).json["run_id"]
    assert {reads.__name__: reads(shop, name) for reads in READERS} == {reads.__name__: whole for reads in READERS}
    for command in (("show", name), ("verdicts", "--run", name), ("report", name, "--out", "page.html")):
        note = shop.dicast(*command).err
        assert f"note: {name} is run {whole}; the newer run {limited} judged only a part" in note
        assert options[0] in note
    assert shown(shop, limited) == limited


def test_an_experiment_is_named_by_the_same_rule(shop):
    shop.rows("a", "b")
    assert shop.run(TEXT.replace("nightly", "other")).code == 0
    assert shop.run(SUITE).code == 0
    assert shop.run(SUITE, "--experiment", "short", "--filter", "id=r0").code == 0
    whole = started(shop, "prompts/short", 0)
    for reads in READERS:
        assert reads(shop, "prompts/short") == whole, reads.__name__
    runs = shop.dicast("report", "prompts", "--out", "page.html", "--json").json["runs"]
    assert [run["run_id"] for run in runs] == [started(shop, "prompts/long", 0), whole]


def test_a_run_over_some_subjects_is_taken_and_named_if_there_is_no_other(shop):
    shop.rows("a", "b")
    limited = shop.run(TEXT, "--filter", "id=r0").json["run_id"]
    for name in ("nightly", "last"):
        done = shop.dicast("show", name)
        assert limited in done.out
        assert f"note: {name} is run {limited}, which judged only a part (--filter id=r0)" in done.err
    refusal = shop.dicast("compare", "nightly", limited)
    assert refusal.code == 2
    assert limited in refusal.err


def test_a_saved_baseline_names_its_run_in_every_command(shop):
    shop.rows("a", "b")
    assert shop.run(TEXT.replace("nightly", "other")).code == 0
    first = shop.run(TEXT).json["run_id"]
    assert shop.dicast("baseline", "save", "main", "nightly").code == 0
    newer = shop.run(TEXT).json["run_id"]
    for reads in READERS:
        assert reads(shop, "main") == first, reads.__name__
    done = shop.dicast("report", "main", "--baseline", newer, "--out", "page.html", "--json")
    assert done.json["runs"][0]["run_id"] == first
    assert shop.dicast("report", newer, "--baseline", "main", "--out", "page.html").code == 0
