"""Discovery of installed plugins, and loading of one plugin at a time."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from dicast import PluginError
from dicast._kernel.contract.hooks import KIND_OF_HOOK
from dicast._kernel.contract.kinds import KINDS, member_faults, snake_case
from dicast._kernel.contract.registry import Registry, commands, rubrics

GOOD = """
@metric(tier="proxy")
def brevity(subject: Subject, *, words: int = 120) -> Score:
    \"\"\"1.0 up to *words* words, then falling off.\"\"\"
    return Score(1.0)

@hookimpl
def dicast_metrics():
    return [brevity]
"""


def registry(block=(), environ=None):
    return Registry(block, environ or {})


def refusal(call, *arguments):
    with pytest.raises(PluginError) as caught:
        call(*arguments)
    (problem,) = caught.value.problems
    return problem


def offering(hook, body):
    return f"{body}\n@hookimpl\ndef {hook}():\n    return [Thing]\n"


def test_scanning_imports_nothing(plugin):
    plugin("brevity", GOOD)
    found = registry().scan()["brevity"]
    assert (found.distribution, found.version, found.target) == ("dicast-brevity", "0.1.0", "dicast_brevity")
    assert (found.status, found.components) == ("not_loaded", None)
    assert "dicast_brevity" not in sys.modules


def test_finding_loads_that_plugin_and_no_other(plugin):
    plugin("brevity", GOOD)
    plugin("other", GOOD)
    component = registry().find("brevity/brevity", ("metric",))
    assert (component.kind, component.tier) == ("metric", "proxy")
    assert component.summary == "1.0 up to *words* words, then falling off."
    assert (component.distribution, component.version) == ("dicast-brevity", "0.1.0")
    assert "dicast_other" not in sys.modules


def test_a_plugin_that_moved_keeps_the_name_of_its_distribution_in_fingerprints(plugin):
    plugin("brevity", f'{GOOD}\nformer_distribution = "acme-judges"\n')
    plugin_registry = registry()
    assert plugin_registry.find("brevity/brevity", ("metric",)).distribution == "acme-judges"
    assert plugin_registry.scan()["brevity"].distribution == "dicast-brevity"


def test_a_plugin_is_imported_once(plugin):
    plugin("brevity", GOOD)
    plugin_registry = registry()
    assert plugin_registry.load("brevity") is plugin_registry.load("brevity")
    assert plugin_registry.scan()["brevity"].status == "ok"


def test_the_kernel_offers_its_executor_through_the_same_door():
    assert registry().find("dicast/async", ("executor",)).cls(concurrency=3).concurrency == 3


def test_few_installed_plugins_are_listed(plugin):
    plugin("brevity", GOOD)
    plugin_registry = registry()
    for name in [name for name in plugin_registry.scan() if name not in {"brevity", "proxy", "dicast"}]:
        plugin_registry.scan().pop(name)
    problem = refusal(plugin_registry.find, "zzz/fine", ("metric",))
    assert problem.message.startswith("unknown plugin 'zzz' (installed: brevity, proxy); ")


def test_a_misspelt_plugin_names_the_nearest_and_the_installed_and_nothing_to_install(plugin):
    plugin("brevity", GOOD)
    problem = refusal(registry().find, "brevty/brevity", ("metric",))
    assert re.match(r"unknown plugin 'brevty' \(installed: [0-9]+, see: dicast plugins\)", problem.message)
    assert "pip install" not in problem.message
    assert problem.hint == "brevity"


def test_an_unknown_plugin_like_no_other_says_what_to_install(plugin):
    plugin("brevity", GOOD)
    problem = refusal(registry().find, "zzz/fine", ("metric",))
    assert re.match(r"unknown plugin 'zzz' \(installed: [0-9]+, see: dicast plugins\)", problem.message)
    assert problem.message.endswith("; is the package that offers it installed?")
    assert problem.hint is None


@pytest.mark.parametrize(("name", "similar"), [("task", "tasks"), ("cache", "cached"), ("extract", "extractor")])
def test_a_plugin_of_an_extra_that_is_missing_names_the_extra_whatever_else_is_installed(plugin, name, similar):
    plugin(similar, GOOD)
    plugin_registry = registry()
    plugin_registry.scan().pop(name)  # as in an install without the extra
    problem = refusal(plugin_registry.find, f"{name}/command", ("task",))
    assert problem.message.partition("; ")[2].endswith((f"dicast[{name}]", f"'dicast[{name}]'"))
    assert problem.hint is None


def test_unknown_component_names_the_nearest_and_what_is_offered(plugin):
    plugin("brevity", GOOD)
    problem = refusal(registry().find, "brevity/brevty", ("metric", "judge"))
    assert problem.message == "plugin 'brevity' offers no metric 'brevty' (offers: brevity)"
    assert problem.hint == "brevity/brevity"


def test_a_component_of_another_kind_says_what_it_is(plugin):
    plugin("brevity", GOOD)
    problem = refusal(registry().find, "brevity/brevity", ("sink",))
    assert problem.message == "brevity/brevity is a metric, not a sink"


def test_a_name_without_a_plugin_is_refused():
    assert "PLUGIN/brevity" in refusal(registry().find, "brevity", ("metric",)).message


def test_an_import_error_names_plugin_distribution_target_and_cause(broken):
    broken("boom")
    plugin_registry = registry()
    with pytest.raises(PluginError) as caught:
        plugin_registry.load("boom")
    expected = (
        "plugin 'boom' (dicast-boom 0.1.0) failed to import dicast_boom: "
        "ModuleNotFoundError: No module named 'nope_missing' (dicast_boom.py:3). "
        "Install the package of 'nope_missing'; to go on without the plugin, set DICAST_BLOCK=boom"
    )
    assert str(caught.value) == expected
    assert isinstance(caught.value.__cause__, ModuleNotFoundError)
    assert plugin_registry.scan()["boom"].status == "broken"
    assert str(refusal(plugin_registry.load, "boom")) == expected


def test_a_plugin_that_exits_is_an_error_like_any_other(broken):
    broken("quits")
    assert "SystemExit: usage: quits FILE" in refusal(registry().load, "quits").message


def test_a_failing_hook_is_named(broken):
    broken("raises")
    assert "failed in dicast_metrics: RuntimeError: no licence" in refusal(registry().load, "raises").message


def test_a_misspelt_hook_is_refused(broken):
    broken("misspelt")
    message = refusal(registry().load, "misspelt").message
    assert "dicast_metrcs" in message
    assert "dicast_metrics" in message


def test_a_class_that_is_not_frozen_is_refused(broken):
    broken("thawed")
    message = refusal(registry().load, "thawed").message
    assert "dicast_thawed.Thawed" in message
    assert "attrs.frozen" in message


@pytest.mark.parametrize(
    ("hook", "body", "says"),
    [
        ("dicast_metrics", "def Thing(subject): ...", "decorate the function with @dicast.metric"),
        ("dicast_metrics", "class Thing: ...", "not a frozen attrs class"),
        ("dicast_metrics", "@attrs.frozen\nclass Thing:\n    tier = 'proxy'", "metric Thing has no score"),
        (
            "dicast_metrics",
            "@attrs.frozen\nclass Thing:\n    def score(self, s): ...",
            "needs the class attribute tier",
        ),
        ("dicast_sinks", "@attrs.frozen\nclass Thing:\n    def write(self, e): ...", "sink Thing has no close"),
        (
            "dicast_judges",
            "@attrs.frozen\nclass Thing:\n    weight: int = 1\n    def judge(self, s, c): ...",
            "has an option 'weight', which is a slot key",
        ),
        (
            "dicast_judges",
            "@attrs.frozen\nclass Thing:\n    name = 'My-Judge'\n    def judge(self, s, c): ...",
            "has the name 'My-Judge'",
        ),
    ],
)
def test_what_is_no_component_is_refused_with_what_it_lacks(plugin, hook, body, says):
    plugin("thing", offering(hook, body))
    assert says in refusal(registry().load, "thing").message


def test_a_component_that_opens_may_leave_its_methods_to_the_live_object(plugin):
    plugin("thing", offering("dicast_sinks", "@attrs.frozen\nclass Thing:\n    def open(self, run): ..."))
    assert [component.name for component in registry().load("thing")] == ["thing/thing"]


def test_a_metric_and_a_judge_of_one_name_are_refused(plugin):
    judge = "@judge()\ndef both(subject): ...\n@hookimpl\ndef dicast_judges():\n    return [both]\n"
    metric = "@metric(tier='proxy')\ndef both(subject): ...\nother = both\n@hookimpl\ndef dicast_metrics():\n    return [other]\n"
    plugin("both", metric + judge)
    assert (
        "offers both/both twice: both (dicast_both.py:4) and both (dicast_both.py:10)"
        in refusal(registry().load, "both").message
    )


def test_one_name_from_two_distributions_is_refused_naming_both(install):
    for distribution, version in (("dicast-one", "1.0"), ("dicast-two", "2.0")):
        install(distribution, version, {"dicast": {"same": "dicast_same"}})
    plugin_registry = registry()
    assert plugin_registry.scan()["same"].status == "duplicate"
    message = refusal(plugin_registry.load, "same").message
    assert "dicast-one 1.0" in message
    assert "dicast-two 2.0" in message


def test_one_distribution_found_twice_counts_once(install, tmp_path, monkeypatch):
    install("dicast-same", "1.0", {"dicast": {"same": "dicast_same"}})
    monkeypatch.syspath_prepend(str(tmp_path / "editable"))
    install("dicast_same", "1.1", {"dicast": {"same": "dicast_same"}}, folder=tmp_path / "editable")
    plugin = registry().scan()["same"]
    assert (plugin.version, plugin.status) == ("1.1", "not_loaded")


def test_the_kernels_own_name_is_taken(install):
    install("dicast-evil", "6.6", {"dicast": {"dicast": "dicast_evil"}})
    message = refusal(registry().find, "dicast/async", ("executor",)).message
    assert "dicast-kernel" in message
    assert "dicast-evil 6.6" in message


@pytest.mark.parametrize("how", [{"block": ["brevity"]}, {"environ": {"DICAST_BLOCK": "x, brevity"}}])
def test_a_blocked_plugin_is_not_imported_and_naming_it_is_an_error(plugin, how):
    plugin("brevity", GOOD)
    known_values = registry(**how)
    assert known_values.scan()["brevity"].status == "blocked"
    assert "is blocked" in refusal(known_values.load, "brevity").message
    known_values.load_all()
    assert "dicast_brevity" not in sys.modules


def test_loading_all_reports_the_broken_ones_and_loads_the_others(plugin, broken):
    plugin("brevity", GOOD)
    broken("boom")
    broken("quits")
    found = registry().load_all()
    assert (found["boom"].status, found["quits"].status, found["brevity"].status) == ("broken", "broken", "ok")
    assert "nope_missing" in found["boom"].error
    assert found["boom"].components is None


def test_unreadable_metadata_of_one_distribution_does_not_hide_the_others(plugin, install):
    plugin("brevity", GOOD)
    info = install("dicast-odd", "1.0")
    (info / "entry_points.txt").write_text("[dicast]\nodd\n")
    (info / "METADATA").unlink()
    plugin_registry = registry()
    assert plugin_registry.scan()["brevity"].status == "not_loaded"
    assert plugin_registry.find("brevity/brevity", ("metric",))


def test_commands_are_listed_from_metadata(install):
    install("dicast-more", "1.0", {"dicast.commands": {"more": "dicast_more:more"}})
    result = commands()["more"]
    assert (result.distribution, result.target, result.error) == ("dicast-more", "dicast_more:more", None)


def test_a_command_from_two_distributions_names_both(install):
    for distribution in ("dicast-one", "dicast-two"):
        install(distribution, "1.0", {"dicast.commands": {"more": "x:y"}})
    assert "dicast-one 1.0 and dicast-two 1.0" in commands()["more"].error


def test_installed_rubrics_are_listed_by_id():
    assert rubrics()["turn-heuristic-v1"].distribution == "dicast-rubrics"


def test_every_hook_has_a_kind():
    assert set(KIND_OF_HOOK.values()) == set(KINDS)


def test_names_in_snake_case():
    assert [snake_case(name) for name in ("ToolParamsSchema", "Csv", "HTTPSink", "brevity")] == [
        "tool_params_schema",
        "csv",
        "http_sink",
        "brevity",
    ]


def test_the_command_sets_its_collector_before_it_imports_the_kernel():
    code = (
        "import sys; from dicast._kernel.cli import main; "
        "print([m for m in ('attrs', 'click', 'dicast._kernel.values') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_importing_dicast_does_not_look_for_plugins():
    code = (
        "import sys, dicast; dicast.Event, dicast.run; "
        "print([m for m in sys.modules if m.split('.')[0] in ('cattrs', 'yaml') or 'plugins' in m])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


class Scorer:
    def judges(self):
        """Judge nothing."""


class Sink:
    def write(self):
        """Write nothing."""

    def close(self):
        """Close nothing."""


class Nothing:
    """No component."""


@pytest.mark.parametrize(
    ("kind", "cls", "fault"),
    [
        ("judge", Scorer, "has no judge; rename its 'judges' to 'judge'"),
        ("judge", Sink, "has no judge; it is a sink: return it from dicast_sinks"),
        ("metric", Nothing, "has no score"),
    ],
)
def test_a_class_without_a_member_is_told_its_name_or_its_kind(kind, cls, fault):
    assert [*member_faults(kind, cls, cls)] == [fault]


def test_a_plugin_with_a_name_like_an_installed_one_may_still_be_a_package_that_is_missing(plugin):
    plugin("brevity", GOOD)
    text = str(refusal(registry().find, "brevit/short", ("metric",)))
    assert "is the package that offers it installed, did you mean 'brevity'?" in text
