"""Sections of a pipeline file, and the built pipeline."""

from __future__ import annotations

import pytest

from dicast import ConfigError, Cost, PluginError, RequestError
from dicast._kernel.pipeline.build import load_pipeline
from dicast._kernel.plan.clauses import Clause, Gate
from dicast._kernel.plan.sections import Audit, Budget, Scoring

PLUGIN = """
@attrs.frozen
class Rows:
    path: InputPath | None = None
    token: Secret | None = None
    rows: int = 1
    kinds = ("session", "turn")
    def subjects(self): ...

@metric(tier="proxy")
def cheap(subject: Subject, *, words: int = 1) -> Score: ...

@metric(tier="proxy", cost="0.01 usd")
def paid(subject: Subject) -> Score: ...

@metric(tier="truth")
def gold(subject: Subject) -> Score: ...

@judge(accepts=["turn"])
def stern(subject: Subject, *, rubric: Rubric | None = None, key: Secret | None = None, path: Path | None = None): ...

@judge()
def any_kind(subject: Subject): ...

@attrs.frozen
class Null:
    def write(self, events): ...
    def close(self): ...

@hookimpl
def dicast_sources():
    return [Rows]
@hookimpl
def dicast_metrics():
    return [cheap, paid, gold]
@hookimpl
def dicast_judges():
    return [stern, any_kind]
@hookimpl
def dicast_sinks():
    return [Null]
"""


@pytest.fixture(autouse=True)
def t(plugin):
    plugin("t", "from pathlib import Path\n" + PLUGIN)


def build(text="", source="source: t/rows\n", metrics="metrics: [t/cheap]\n", **options):
    return load_pipeline(source + metrics + text, **options)


def problems(text="", error=ConfigError, **parts):
    with pytest.raises(error) as caught:
        build(text, **parts)
    assert type(caught.value) is error or error is RequestError
    return caught.value.problems


def the_problem(*arguments, **parts):
    (problem,) = problems(*arguments, **parts)
    return problem


def test_the_shortest_file_has_the_documented_defaults():
    made = build()
    assert (made.scoring, made.budget, made.gate) == (Scoring(), Budget(), Gate())
    assert made.budget.run == ()
    assert made.budget.session == (Cost("0.10"),)
    assert made.budget.day == (Cost("1.00"),)
    assert (made.gate.clauses, made.scoring.threshold, made.scoring.rollouts) == ((), 0.5, 1)
    assert (made.ledger, made.sinks, made.judges, made.disabled) == (None, (), (), False)
    assert made.executor.component.concurrency == 32


def test_the_name_defaults_to_the_files(tmp_path):
    file = tmp_path / "nightly.yaml"
    file.write_text("source: t/rows\nmetrics: [t/cheap]\n")
    made = load_pipeline(file)
    assert (made.name, made.file, made.base) == ("nightly", str(file), tmp_path)
    assert build("name: other\n").name == "other"


def test_a_pipeline_may_be_a_mapping():
    assert load_pipeline({"source": "t/rows", "metrics": ["t/cheap"]}).metrics[0].label == "t/cheap"


def test_overrides_are_laid_over_the_file():
    assert build(overrides=["scoring.threshold=0.7"]).scoring.threshold == 0.7


def test_every_section_is_read():
    made = build(
        """
scoring: {threshold: 0.6, rollouts: 3, aggregation: {trimmed_mean: 10}, audit: {rate: 0.05, seed: 7}}
budget: {run: 2.00 usd, session: [0.50 usd, 5 msat], day: 0 usd}
gate: {on: metrics, min_score: 0.8, min_coverage: 0.9}
sinks: [t/null, {t/null: {as: second}}]
executor: {dicast/async: {concurrency: 4}}
disabled: true
"""
    )
    assert (made.scoring.threshold, made.scoring.rollouts) == (0.6, 3)
    assert made.scoring.aggregation.trimmed_mean == 10
    assert made.scoring.audit == Audit(0.05, 7)
    assert made.budget.session == (Cost("0.50"), Cost(5, "msat"))
    assert made.budget.day == (Cost(0),)
    assert made.gate == Gate((Clause("metrics", min_score=0.8, min_coverage=0.9),))
    assert [sink.label for sink in made.sinks] == ["t/null", "second"]
    assert made.executor.component.concurrency == 4
    assert made.disabled


def test_num_rollouts_is_another_name_for_rollouts():
    assert build("scoring: {num_rollouts: 3}\n").scoring.rollouts == 3
    problem = the_problem("scoring: {num_rollouts: 3, rollouts: 2}\n")
    assert problem.message == "rollouts and num_rollouts are one option, but both are set; remove one of them"


def test_a_budget_may_disable_the_pipeline():
    assert build("budget: {disabled: true}\n").disabled


def test_slot_options_stand_among_a_components_own():
    options = "{words: 3, as: w, weight: 2, timeout: 1.5, retries: 1, on: turn, range: [0, 10], on_failure: zero}"
    (slot,) = build(metrics=f"metrics: [{{t/cheap: {options}}}]\n").metrics
    assert slot.component.words == 3
    assert slot.options == {"words": 3}
    assert (slot.label, slot.name, slot.kind, slot.tier, slot.path) == ("w", "t/cheap", "metric", "proxy", "metrics[0]")
    assert (slot.weight, slot.timeout, slot.retries, slot.on) == (2.0, 1.5, 1, ("turn",))
    assert (slot.range, slot.on_failure, slot.version, slot.distribution) == ((0.0, 10.0), "zero", "0.1.0", "dicast-t")


@pytest.mark.parametrize(
    "options",
    [
        "weight: -1",
        "timeout: 0",
        "retries: -1",
        "range: [1, 1]",
        "range: [1]",
        "on_failure: ignore",
        "as: 3",
        "weight: a",
    ],
)
def test_slot_options_are_checked(options):
    name = options.partition(":")[0]
    assert the_problem(metrics=f"metrics: [{{t/cheap: {{{options}}}}}]\n").path == f"metrics[0].{name}"


def test_a_timeout_is_more_than_0_seconds():
    message = the_problem(metrics="metrics: [{t/cheap: {timeout: 0}}]\n").message
    assert message == "invalid value for timeout, expected more than 0 and less than 1e9 seconds, got 0.0"


@pytest.mark.parametrize(
    ("section", "text"),
    [
        ("source", {"source": "source: {t/rows: {weight: 1}}\n"}),
        ("sinks[0]", {"text": "sinks: [{t/null: {weight: 1}}]\n"}),
        ("define.d", {"text": "define: {d: {t/cheap: {weight: 1}}}\n"}),
    ],
)
def test_slot_options_are_refused_elsewhere(section, text):
    problem = the_problem(**text)
    assert problem.path == section
    assert problem.message.startswith("unknown option 'weight' of t/")


def test_a_slot_may_refer_to_define():
    text = "define: {short: {t/cheap: {words: 9}}}\n"
    (slot,) = build(text, metrics="metrics: [{short: {as: s, weight: 3}}]\n").metrics
    assert (slot.label, slot.name, slot.weight, slot.options) == ("s", "t/cheap", 3.0, {"words": 9})
    assert "belong under 'define'" in the_problem(text, metrics="metrics: [{short: {words: 1}}]\n").message


def test_the_tier_is_the_classes_own_unless_the_list_says_otherwise():
    made = build(metrics="metrics: [t/cheap, t/gold, t/any_kind]\n").metrics
    assert [slot.tier for slot in made] == ["proxy", "truth", "truth"]
    made = build(metrics="metrics: {proxy: [t/gold, t/any_kind], truth: [t/cheap]}\n").metrics
    assert [(slot.tier, slot.path) for slot in made] == [
        ("proxy", "metrics.proxy[0]"),
        ("proxy", "metrics.proxy[1]"),
        ("truth", "metrics.truth[0]"),
    ]


@pytest.mark.parametrize("metrics", ["metrics: {proxy: [t/paid]}\n", "metrics: [t/paid]\n"])
def test_a_metric_that_costs_money_is_no_proxy(metrics):
    assert "t/paid costs money" in the_problem(metrics=metrics).message
    assert build(metrics="metrics: {truth: [t/paid]}\n").metrics[0].tier == "truth"


def test_metrics_judge_the_sources_finest_kind_and_judges_what_they_accept():
    made = build("judges: [t/stern, t/any_kind]\n")
    assert made.metrics[0].on == ("turn",)
    assert [slot.on for slot in made.judges] == [("turn",), ()]
    assert made.metrics[0].accepts("turn")
    assert not made.metrics[0].accepts("session")
    assert made.judges[1].accepts("session")


def test_a_judge_is_not_put_on_subjects_that_it_does_not_judge():
    problem = the_problem("judges: [{t/stern: {on: session}}]\n")
    assert (problem.path, problem.message) == ("judges[0].on", "t/stern judges turn, not session")


def test_a_repeated_label_names_both_places():
    problem = the_problem(metrics="metrics:\n  - t/cheap\n  - {t/gold: {as: t/cheap}}\n")
    assert (problem.line, problem.path) == (4, "metrics[1].as")
    assert "<text>:3:5 (metrics[0])" in problem.message


def test_a_metric_and_a_judge_do_not_share_a_label():
    problem = the_problem("judges: [{t/any_kind: {as: shared}}]\n", metrics="metrics: [{t/cheap: {as: shared}}]\n")
    assert (problem.path, problem.message) == (
        "judges[0].as",
        "the label 'shared' is used already at <text>:2:26 (metrics[0]); rename one of them with 'as'",
    )


def test_the_label_metrics_belongs_to_the_combined_verdict():
    assert "'metrics'" in the_problem("judges: [{t/any_kind: {as: metrics}}]\n").message
    assert "'metrics'" in the_problem(metrics="metrics: [{t/cheap: {as: metrics}}]\n").message


SESSIONS = """\
judges:
  - heuristic/turn: {as: first}
  - heuristic/tool_cycle
  - heuristic/session: {as: early}
  - heuristic/turn: {as: second}
  - heuristic/session: {as: late}
  - heuristic/session: {as: told, children: CHILDREN}
"""


def test_a_judge_of_sessions_reads_by_default_the_judge_of_turns_before_it():
    judges = build(SESSIONS.replace("CHILDREN", "first"), metrics="").judges
    reads = {slot.label: slot.component.children for slot in judges if hasattr(slot.component, "children")}
    assert reads == {"early": "first", "late": "second", "told": "first"}
    alone = build("judges: [heuristic/session: {children: from_elsewhere}, heuristic/tool_cycle]\n", metrics="")
    assert alone.judges[0].component.children == "from_elsewhere"


def test_a_judge_of_sessions_reads_a_judge_of_turns_that_exists():
    problem = the_problem(SESSIONS.replace("CHILDREN", "secnod"), metrics="")
    assert (problem.line, problem.path, problem.hint) == (8, "judges[5].children", "second")
    assert problem.message == "heuristic/session reads the verdicts of one of first, second, not 'secnod'"


def test_the_gate_is_on_a_label_that_exists():
    problem = the_problem("judges: [{t/any_kind: {as: helpful}}]\ngate: {on: helpfull}\n")
    assert (problem.path, problem.hint) == ("gate.on", "helpful")
    assert build("judges: [{t/any_kind: {as: helpful}}]\ngate: {on: helpful}\n").gate.clauses[0].on == "helpful"


def test_every_clause_of_the_gate_is_on_a_label_that_exists():
    text = "metrics: [{t/cheap: {as: tidy}}]\njudges: [{t/any_kind: {as: helpful}}]\n"
    gate = "gate:\n  - {on: tidy, min_score: 0.5}\n  - {on: helpfull, min_pass_rate: 0.5}\n"
    problem = the_problem(text + gate, metrics="")
    assert (problem.line, problem.path, problem.value, problem.hint) == (6, "gate[1].on", "helpfull", "helpful")
    assert problem.message.endswith("'helpfull' is none of these (labels: metrics, tidy, helpful)")
    made = build(text + gate.replace("full", "ful"), metrics="").gate
    assert [clause.on for clause in made.clauses] == ["tidy", "helpful"]


def test_a_sink_names_labels_that_exist():
    text = "sinks:\n  - junit/xml: {path: out.xml, labels: [tidy, helpfull]}\n  - report/badge: {path: out.svg, on: tidyy}\n"
    judged = "metrics: [{t/cheap: {as: tidy}}]\njudges: [{t/any_kind: {as: helpful}}]\n"
    with pytest.raises(ConfigError) as refused:
        build(judged + text, metrics="")
    result = [(problem.line, problem.path, problem.value, problem.hint) for problem in refused.value.problems]
    assert result == [(5, "sinks[0].labels", "helpfull", "helpful"), (6, "sinks[1].on", "tidyy", "tidy")]
    build(judged + text.replace("full", "ful").replace("tidyy", "gate"), metrics="")
    build("extractors: [extract/json_path: {into: scores, path: $.a}]\n" + judged + text, metrics="")  # may make others
    build("task: {task/command: {command: [cat]}}\n" + text.replace("tidy", "record"), metrics="")  # so may a task


@pytest.mark.parametrize(
    ("gate", "path", "words"),
    [
        ("{min_score: 0.8, max_score: 0.7}", "gate.max_score", "max_score 0.7 is below min_score 0.8: no score is in"),
        ("{min_score: 2}", "gate.min_score", "invalid value for min_score, expected a number from 0 to 1, got 2"),
        ("{on: metrics, max_score: -1}", "gate.max_score", "expected a number from 0 to 1, got -1"),
        ("{min_pass_rate: 1.5}", "gate.min_pass_rate", "expected a number from 0 to 1, got 1.5"),
        ("{min_basis: truht}", "gate.min_basis", "'truth', 'model', 'heuristic' or 'proxy', got 'truht'"),
        (
            "{bound: interval}",
            "gate.bound",
            "bound needs one of min_score, max_score, min_pass_rate, but this clause has",
        ),
        ("[]", "gate", "this list is empty; remove it"),
        ("[{min_score: 0.5}, {on: metrics}]", "gate[1]", "this clause of the gate has no rule; add one of min_score,"),
        ("[{min_score: 0.5}, {min_scor: 1}]", "gate[1]", "unknown option 'min_scor'"),
    ],
)
def test_a_clause_that_asks_for_nothing_or_for_what_cannot_be_is_refused(gate, path, words):
    problem = the_problem(f"gate: {gate}\n")
    assert problem.path == path
    assert words in problem.message


def test_pass_at_is_a_slot_key_and_changes_no_fingerprint():
    made = build("judges: [{t/any_kind: {pass_at: 0.8}}]\nscoring: {pass_at: 0.7}\n")
    assert (made.judges[0].pass_at, made.scoring.pass_at) == (0.8, 0.7)
    assert made.fingerprints == build("judges: [t/any_kind]\n").fingerprints
    assert the_problem("judges: [{t/any_kind: {pass_at: 2}}]\n").path == "judges[0].pass_at"
    assert the_problem("scoring: {pass_at: -1}\n").path == "scoring.pass_at"


def test_a_least_score_needs_one_label_that_it_is_about():
    several = "judges: [{t/any_kind: {as: a}}, {t/any_kind: {as: b}}]\n"
    problem = the_problem(f"{several}gate: {{min_score: 0.5}}\n", metrics="")
    assert (problem.line, problem.path, problem.value) == (3, "gate.min_score", 0.5)
    assert problem.message == "min_score needs one label, but the file has several; set on to a or b"
    for enough in ("gate: {min_score: 0.5, on: b}\n", "gate: {min_coverage: 0.5}\n"):
        assert len(build(several + enough, metrics="").gate.clauses) == 1
    problem = the_problem("judges: [t/any_kind]\ngate: [{on: metrics, min_score: 0.5}, {min_pass_rate: 0.5}]\n")
    assert (problem.line, problem.path) == (4, "gate[1].min_pass_rate")
    assert problem.message.endswith("set on to metrics (t/cheap alone), t/any_kind, or a single metric: t/cheap")
    assert build("judges: [t/any_kind]\ngate: {min_score: 0.5}\n", metrics="").gate.clauses[0].min_score == 0.5
    metrics = "metrics: [proxy/format, {proxy/length: {as: short}}]\n"
    problem = the_problem("judges: [t/any_kind]\ngate: {min_score: 0.5}\n", metrics=metrics)
    together = "metrics (proxy/format and short together), t/any_kind, or a single metric: proxy/format, short"
    assert problem.message.endswith(f"set on to {together}")


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("scoring: {threshold: 1.1}\n", "scoring.threshold"),
        ("scoring: {rollouts: 0}\n", "scoring.rollouts"),
        ("scoring: {aggregation: mode}\n", "scoring.aggregation"),
        ("scoring: {aggregation: {trimmed_mean: 51}}\n", "scoring.aggregation.trimmed_mean"),
        ("scoring: {audit: {rate: 2}}\n", "scoring.audit.rate"),
        ("scoring: 0.5\n", "scoring"),
        ("budget: {run: 2.00}\n", "budget.run"),
        ("budget: {run: 2.00 eur}\n", "budget.run"),
        ("budget: {run: -1 usd}\n", "budget.run"),
        ("budget: {run: [1 usd, 2 usd]}\n", "budget.run"),
        ("gate: {min_score: 2}\n", "gate.min_score"),
        ("gate: {given: true}\n", "gate"),
        ("sinks: t/null\n", "sinks"),
        ("disabled: 1\n", "disabled"),
        ("name: 3\n", "name"),
        ("plugins: {block: t}\n", "plugins.block"),
        ("executor: {dicast/async: {concurrency: 0}}\n", "executor.concurrency"),
    ],
)
def test_a_wrong_value_in_a_section_is_refused_at_its_place(text, path):
    assert the_problem(text).path == path


def test_an_unknown_section_points_at_its_key_and_names_the_nearest():
    problem = the_problem("scorring: {}\n")
    assert (problem.line, problem.column, problem.value, problem.hint) == (3, 1, "scorring", "scoring")


def test_a_pipeline_needs_a_source_and_something_that_judges():
    messages = [problem.message for problem in problems("name: a\n", source="", metrics="")]
    assert ["source" in messages[0], "metrics, judges or a task" in messages[1]] == [True, True]


def test_what_is_wrong_in_all_sections_is_found_at_once():
    reports = problems(
        "scoring: {threshold: 2, treshold: 1}\ndefine: {unused: {t/cheap: {wrds: 1}}}\nsinks: [t/nul]\n",
        metrics="metrics: [tt/cheap, {t/cheap: {words: a}}]\n",
    )
    assert [(problem.line, problem.path) for problem in reports] == [
        (2, "metrics[0]"),
        (2, "metrics[1].words"),
        (3, "scoring.threshold"),
        (3, "scoring"),
        (4, "define.unused"),
        (5, "sinks[0]"),
    ]


UNSET = '"a ${NO_SUCH}"'


def test_an_unset_variable_is_one_problem_among_the_others():
    reports = problems(
        "scoring: {threshold: 2}\nnowhere: ${NO_SUCH}\nsinks: [t/nul]\n",
        metrics=f"metrics: [{{t/cheap: {{words: {UNSET}, as: {UNSET}, weight: -1}}}}, tt/cheap]\n",
        environ={},
    )
    unset = [problem.line for problem in reports if "NO_SUCH is not set" in problem.message]
    rest = [(problem.line, problem.path) for problem in reports if "NO_SUCH is not set" not in problem.message]
    assert unset == [2, 2, 4]
    assert rest == [(2, "metrics[0].weight"), (2, "metrics[1]"), (3, "scoring.threshold"), (4, None), (5, "sinks[0]")]
    assert the_problem(f"name: {UNSET}\n", environ={}).path == "name"


@pytest.mark.parametrize(
    "text",
    [
        f"source: {UNSET}\nmetrics: [t/cheap]\n",
        f"source: {{t/rows: {{path: {UNSET}}}}}\nmetrics: [t/cheap]\n",
        f"source: {{t/rows: {{token: {UNSET}}}}}\nmetrics: [t/cheap]\n",
        f"source: {{t/rows: {UNSET}}}\nmetrics: [t/cheap]\n",
        f"source: t/rows\nmetrics: {UNSET}\n",
        f"source: t/rows\nmetrics: [{UNSET}]\n",
        f"source: t/rows\nmetrics: {{proxy: {UNSET}}}\n",
        f"source: t/rows\nmetrics: [t/gold: {{range: [0, {UNSET}]}}]\n",
        f"source: t/rows\nmetrics: [t/gold: {{on_failure: {UNSET}}}]\n",
        f"source: t/rows\njudges: [t/stern: {{rubric: {UNSET}}}]\n",
        f"source: t/rows\njudges: [t/any_kind]\ngate: {{on: {UNSET}}}\n",
        f"define: {{gold: {UNSET}}}\nsource: t/rows\nmetrics: [gold: {{as: a}}, gold: {{as: b}}]\n",
        f"source: t/rows\nmetrics: [t/gold]\nbudget: {{run: [{UNSET}]}}\n",
        f"source: t/rows\nmetrics: [t/gold]\nscoring: {{aggregation: {UNSET}}}\n",
        f"source: t/rows\nmetrics: [t/gold]\nbaseline: {{run: last, compare: {UNSET}}}\n",
        f"source: t/rows\nmetrics: [t/gold]\ninclude: {UNSET}\n",
    ],
)
def test_an_unset_variable_is_told_once_and_nothing_that_follows_from_it(text):
    problem = the_problem(source="", metrics=text, environ={})
    assert "the environment variable NO_SUCH is not set" in problem.message


def test_an_unset_variable_inside_an_option_of_any_value_is_told_once(plugin):
    plugin(
        "loose",
        """
def check(component, attribute, value):
    if not isinstance(value["a"]["b"], str):
        raise ConfigError("b is a text")

@attrs.frozen
class Loose:
    deep: dict[str, object] = attrs.field(validator=check)
    tier = "truth"
    def score(self, subject): ...

@hookimpl
def dicast_metrics():
    return [Loose]
""",
    )
    assert "b is a text" in the_problem(metrics="metrics: [loose/loose: {deep: {a: {b: 1}}}]\n").message
    problem = the_problem(metrics=f"metrics: [loose/loose: {{deep: {{a: {{b: {UNSET}}}}}}}]\n", environ={})
    assert "NO_SUCH is not set" in problem.message


def test_what_is_wrong_with_a_definition_has_no_consequences_where_it_is_used_again(plugin):
    plugin(
        "many",
        """
def check(component, attribute, judges):
    if len(judges) < 2:
        raise ConfigError("two judges are needed")

@attrs.frozen
class Many:
    judges: tuple[Judge, ...] = attrs.field(validator=check)
    def judge(self, subject, children): ...

@hookimpl
def dicast_judges():
    return [Many]
""",
    )
    text = (
        "define: {j: {t/stern: {rubrik: x}}}\njudges: [many/many: {as: a, judges: [j]}, many/many: {judges: [j, j]}]\n"
    )
    assert "rubrik" in the_problem(text, metrics="").message


def test_only_plugins_at_fault_are_a_plugin_error(broken):
    broken("boom")
    problem = the_problem(metrics="metrics: [boom/x]\n", error=PluginError)
    assert (problem.line, problem.column, problem.path) == (2, 11, "metrics[0]")
    assert "ModuleNotFoundError: No module named 'nope_missing'" in problem.message


def test_a_plugin_that_the_file_blocks_is_not_used():
    reports = problems("plugins: {block: [t]}\n", error=PluginError)
    assert all("is blocked" in problem.message for problem in reports)


def test_fingerprints_name_what_may_not_change_between_a_run_and_its_resume():
    assert set(build("judges: [{t/stern: {as: s}}]\nsinks: [t/null]\n").fingerprints) == {
        "source",
        "scoring",
        "metrics[t/cheap]",
        "judges[s]",
    }


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        ({"source": "source: {t/rows: {rows: 2}}\n"}, {"source"}),
        ({"text": "scoring: {threshold: 0.6}\n"}, {"scoring"}),
        ({"metrics": "metrics: [{t/cheap: {words: 2}}]\n"}, {"metrics[t/cheap]"}),
        ({"metrics": "metrics: [{t/cheap: {weight: 2}}]\n"}, {"metrics[t/cheap]"}),
        ({"metrics": "metrics: [{t/cheap: {range: [0, 5]}}]\n"}, {"metrics[t/cheap]"}),
        ({"metrics": "metrics: {truth: [t/cheap]}\n"}, {"metrics[t/cheap]"}),
        ({"metrics": "metrics: [{t/cheap: {words: 1, timeout: 3, retries: 2}}]\n"}, set()),
        ({"text": "name: b\ngate: {min_score: 1}\nbudget: {run: 1 usd}\nsinks: [t/null]\n"}, set()),
        ({"text": "executor: {dicast/async: {concurrency: 1}}\n"}, set()),
    ],
)
def test_a_fingerprint_changes_with_what_could_change_the_number_and_nothing_else(changed, what):
    before, after = build().fingerprints, build(**changed).fingerprints
    assert {name for name in before if before[name] != after[name]} == what


def test_a_secret_is_neither_in_the_options_nor_in_the_fingerprint():
    def made(value):
        return build(source="source: {t/rows: {token: '${TOKEN}'}}\n", environ={"TOKEN": value}).source

    assert made("one").component.token.value == "one"
    assert made("one").options["token"] == "***"
    assert made("one").fingerprint == made("two").fingerprint


def test_a_moved_project_keeps_its_fingerprints(tmp_path):
    made = []
    for name in ("here", "there"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "in.csv").write_text("a\n")
        file = folder / "p.yaml"
        file.write_text("source: {t/rows: {path: in.csv}}\njudges: [{t/stern: {path: out/x}}]\n")
        made.append(load_pipeline(file))
    assert made[0].source.component.path != made[1].source.component.path
    assert made[0].source.options["path"] == "in.csv"
    assert made[0].fingerprints == made[1].fingerprints


def test_a_changed_rubric_changes_the_fingerprint(tmp_path):
    def made(text):
        (tmp_path / "r.yaml").write_text(f"id: r\nversion: '1'\ntext: {text}\n")
        file = tmp_path / "p.yaml"
        file.write_text("source: t/rows\njudges: [{t/stern: {rubric: r.yaml}}]\n")
        return load_pipeline(file).judges[0]

    first, second = made("kind"), made("strict")
    assert (first.options["rubric"]["id"], first.options["rubric"]["version"]) == ("r", "1")
    assert first.fingerprint != second.fingerprint


def test_an_option_written_out_with_its_default_changes_nothing():
    assert build(metrics="metrics: [{t/cheap: {words: 1}}]\n").fingerprints == build().fingerprints


def test_metrics_know_two_tiers_and_no_other():
    problem = the_problem(metrics="metrics: {proxy: [t/cheap], thruth: [t/gold]}\n")
    assert (problem.path, problem.value, problem.hint) == ("metrics", "thruth", "truth")


@pytest.mark.parametrize("define", ["define: [t/cheap]\n", "define: {a/b: t/cheap}\n"])
def test_define_is_a_mapping_of_names_without_a_slash(define):
    assert problems(define)[0].path == "define"


def test_an_estimate_that_needs_a_real_subject_does_not_stop_the_build(plugin):
    body = "@attrs.frozen\nclass Odd:\n    tier = 'proxy'\n    def score(self, subject): ...\n"
    estimate = "    def estimate(self, subject): return subject.output['price']\n"
    plugin("odd", f"{body}{estimate}@hookimpl\ndef dicast_metrics():\n    return [Odd]\n")
    assert build(metrics="metrics: [odd/odd]\n").metrics[0].tier == "proxy"


def test_an_option_that_takes_a_judge_or_nothing_takes_null(plugin):
    body = "@judge()\ndef careful(subject: Subject, *, other: Judge | None = None): ...\n"
    plugin("careful", f"from dicast import Judge\n{body}@hookimpl\ndef dicast_judges():\n    return [careful]\n")

    def other(written):
        return build(f"judges: [{{careful/careful: {{other: {written}}}}}]\n").judges[0].component.other

    assert other("null") is None
    assert other("t/any_kind") is not None
    for wrong in ("3", "[t/any_kind]", "t/any_kin"):
        with pytest.raises(RequestError):
            other(wrong)
