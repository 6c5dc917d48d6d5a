"""Messages about a plugin's faults: each names the plugin, the fault, the author's line and the fix."""

from __future__ import annotations

import re

import pytest

from dicast import PluginError
from dicast._kernel.contract.plugin_errors import author_place, describe_error, place_of
from dicast._kernel.contract.registry import Registry
from dicast._kernel.contract.requirements import version_conflicts
from dicast.testing import run_pipeline, sample

GOOD = "@metric(tier='proxy')\ndef brevity(subject): return Score(1.0)\n"
HOOK = "@hookimpl\ndef dicast_metrics():\n    return [brevity]\n"
FIRST = 4
"""Line of a module of the fixture ``plugin`` at which the test's own source starts."""

MODULES = {
    "raises": ("x = 1\ny = x / 0\n", "failed to import dicast_x: ZeroDivisionError: division by zero (dicast_x.py:5). Correct that line, or install another version"),
    "needs": ("import nope_missing\n", "ModuleNotFoundError: No module named 'nope_missing' (dicast_x.py:4)"),
    "wrong syntax": ("def x(:\n", "SyntaxError: invalid syntax (dicast_x.py:4)"),
    "exits": ("import sys\nsys.exit('no licence')\n", "SystemExit: no licence (dicast_x.py:5)"),
    "library": ("import json\njson.loads('{')\n", "(dicast_x.py:5)"),
    "no mark": (
        f"{GOOD}def dicast_metrics(): return [brevity]\n",
        "dicast_metrics has no @hookimpl, so it is not a hook; add @dicast.hookimpl to dicast_metrics (dicast_x.py:6)",
    ),
    "no mark, near": (
        f"{GOOD}def dicast_metric(): return [brevity]\n",
        "dicast_metric has no @hookimpl, so it is not a hook; add @dicast.hookimpl to dicast_metrics (dicast_x.py:6)",
    ),
    "near": (f"{GOOD}{HOOK.replace('metrics', 'metrcs')}", "unknown hook 'dicast_metrcs', did you mean 'dicast_metrics'?"),
    "takes": (f"{GOOD}{HOOK.replace('()', '(config)')}", "dicast_metrics takes no arguments, so remove config (dicast_x.py:6)"),
    "none": (f"{GOOD}@hookimpl\ndef dicast_metrics():\n    [brevity]\n", "dicast_metrics returned None, not a list of classes (dicast_x.py:6)"),
    "class": (f"{GOOD}{HOOK.replace('[brevity]', 'brevity')}", "dicast_metrics returned <class 'dicast_x.brevity'>, not a list"),
    "later": (f"{GOOD}{HOOK.replace('def', 'async def')}", "dicast_metrics returned a coroutine, not a list of classes (dicast_x.py:6)"),
    "hook raises": (f"{GOOD}{HOOK.replace('return [', 'return 1 / 0 * [')}", "failed in dicast_metrics: ZeroDivisionError: division by zero (dicast_x.py:8)"),
    "function": ("def brevity(subject): ...\n" + HOOK, "or decorate the function with @dicast.metric (dicast_x.py:4)"),
    "method": (
        "@attrs.frozen\nclass brevity:\n    tier = 'proxy'\n    def scor(self, subject): ...\n" + HOOK,
        "metric brevity has no score; rename its 'scor' to 'score' (dicast_x.py:4)",
    ),
    "kind": (
        "@attrs.frozen\nclass brevity:\n    tier = 'proxy'\n    def judge(self, subject, children): ...\n" + HOOK,
        "metric brevity has no score; it is a judge: return it from dicast_judges (dicast_x.py:4)",
    ),
    "tier": ("@metric(tier='cheap')\ndef brevity(subject): ...\n", "a metric's tier is 'proxy' or 'truth', not 'cheap' (dicast_x.py:4)"),
    "twice": (
        f"{GOOD}other = brevity\n@metric(tier='proxy', name='brevity')\ndef short(subject): ...\n{HOOK.replace('brevity', 'other, short')}",
        "offers x/brevity twice: brevity (dicast_x.py:4) and short (dicast_x.py:7)",
    ),
    "metaclass": (
        f"class Meta(type):\n    def __getattr__(cls, name): raise RuntimeError(name)\n@attrs.frozen\nclass brevity(metaclass=Meta):\n    x: int = 1\n{HOOK}",
        "RuntimeError: ",
    ),
}  # fmt: skip


def refusal(name):
    with pytest.raises(PluginError) as caught:
        Registry((), {}).load(name)
    return str(caught.value)


@pytest.mark.parametrize("fault", MODULES)
def test_a_broken_module_is_refused_with_the_plugin_the_fault_and_the_line(plugin, fault):
    source, message = MODULES[fault]
    plugin("x", source)
    text = refusal("x")
    assert text.startswith("plugin 'x' (dicast-x 0.1.0)")
    assert message in text


def test_all_faults_of_hooks_are_reported_at_once(plugin):
    plugin("x", f"{GOOD}{HOOK.replace('metrics', 'metrcs')}{HOOK.replace('metrics()', 'judges(config)')}")
    assert "unknown hook 'dicast_metrcs'" in refusal("x")
    assert "dicast_judges takes no arguments" in refusal("x")


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("dicast_y", "names the module 'dicast_y', and there is no module 'dicast_y'"),
        ("dicast_brevit", "there is no module 'dicast_brevit', did you mean 'dicast_brevity'?"),
        ("dicast_brevity:plugn", "names 'plugn' of dicast_brevity, which has no such name, did you mean 'plugin'?"),
        ("dicast brevity", "names 'dicast brevity', not MODULE or MODULE:NAME"),
        ("", "names '', not MODULE or MODULE:NAME"),
    ],
)
def test_an_entry_point_that_leads_nowhere_is_named_with_its_correction(install, target, message):
    install("dicast-x", "1.0", {"dicast": {"x": target}}, dicast_brevity="plugin = 1")
    text = refusal("x")
    assert message in text
    assert text.endswith(f'Correct x = "{target}" under [project.entry-points.dicast], and install the package again')


@pytest.mark.parametrize("module", ["import nope_missing", "import dicast"])
def test_a_plugin_for_another_version_of_dicast_is_refused_with_both_versions(plugin, module):
    info = plugin("x", module)
    (info / "METADATA").write_text("Name: dicast-x\nVersion: 0.1.0\nRequires-Dist: dicast-kernel>=99\n")
    text = refusal("x")
    assert "plugin 'x' (dicast-x 0.1.0): it requires dicast-kernel>=99" in text
    assert "nope_missing" not in text
    assert re.search(r"it requires dicast-kernel>=99, and [\d.]+ is installed; .*install 'dicast-kernel>=99'", text)


def test_the_error_of_a_pipeline_has_the_plugins_exception_as_its_cause(plugin):
    plugin("x", "import nope_missing")
    with pytest.raises(PluginError) as caught:
        run_pipeline("metrics: [x/brevity]")
    causes, error = [], caught.value
    while error := error.__cause__:
        causes.append(type(error))
    assert causes[-1] is ModuleNotFoundError


METRIC = """
@attrs.frozen
class Fault:
    tier = "truth"
    def score(self, subject):
        {body}
    {more}
@hookimpl
def dicast_metrics(): return [Fault]
"""
LINE = FIRST + 5


@pytest.mark.parametrize(
    ("body", "more", "message"),
    [
        ("return Failure('missing', 'no')", "", "unknown failure kind 'missing', did you mean 'missing_input'?"),
        ("return Score(2)", "", "value must be a finite number in [0, 1], got 2"),
        ("return Score(1.0, basis='truht')", "", "unknown basis 'truht', did you mean 'truth'?"),
        ("return Score(1.0, cost=Cost(0.1))", "", "a cost is an int, a string or a Decimal, never float: 0.1"),
        ("subject.context['seen'] = True", "", "are read-only"),
        ("subject.output['seen'] = True", "", "are read-only"),
        ("subject.output = None", "", "FrozenInstanceError"),
        ("import json; json.loads('{')", "", "JSONDecodeError"),
    ],
)  # fmt: skip
def test_a_fault_in_a_call_has_the_authors_line(plugin, body, more, message):
    plugin("x", METRIC.format(body=body, more=more))
    run = run_pipeline("metrics: [x/fault]", subjects=[sample({"a": 1})])
    (event,) = run.of("eval.failed")
    assert message in event.payload["error_message"]
    assert event.payload["error_message"].endswith(f"(dicast_x.py:{LINE})")


@pytest.mark.parametrize(
    ("body", "more", "message", "line"),
    [
        ("return 0.5", "", "returned 0.5, not a Score", LINE - 1),
        ("return Score(1.0)", "def estimate(self, subject): return 0.1", "its estimate is 0.1, not a Cost", LINE + 1),
        ("return Score(1.0)", "def estimate(self, subject): return Cost(0.1)", "never float: 0.1", LINE + 1),
    ],
)
def test_a_wrong_answer_or_estimate_has_the_line_of_its_method(plugin, body, more, message, line):
    plugin("x", METRIC.format(body=body, more=more))
    run = run_pipeline("metrics: [x/fault]", subjects=[sample("x")])
    (event,) = run.of("eval.failed")
    assert message in event.payload["error_message"]
    assert event.payload["error_message"].endswith(f"(dicast_x.py:{line})")


def test_a_function_made_into_a_metric_has_its_line_too(plugin):
    plugin(
        "x",
        "@metric(tier='truth')\ndef half(subject):\n    return 0.5\n@hookimpl\ndef dicast_metrics(): return [half]\n",
    )
    (event,) = run_pipeline("metrics: [x/half]", subjects=[sample("x")]).of("eval.failed")
    assert event.payload["error_message"].endswith("not a Score (dicast_x.py:4)")


def test_a_place_is_below_its_package_and_the_plugins_own_lines_win():
    def raising():
        return re.compile("(")

    with pytest.raises(re.error) as caught:
        raising()
    line = raising.__code__.co_firstlineno + 1
    assert author_place(caught.value, __name__) == f"tests/kernel/test_author_lines.py:{line}"
    assert re.match(r"(re/)?_?\w+\.py:\d+$", author_place(caught.value, "another.package"))
    assert describe_error(caught.value, __name__).endswith(f"(tests/kernel/test_author_lines.py:{line})")
    assert place_of(raising) == f"tests/kernel/test_author_lines.py:{line - 1}"
    assert place_of(len) == ""


def test_an_error_without_lines_of_a_plugin_has_no_place():
    assert author_place(ValueError("never raised")) == ""


@pytest.mark.parametrize(
    ("requirement", "is_met"),
    [
        ("dicast-kernel>=0.1,<0.2", True),
        ("dicast_kernel (>=0.1)", True),
        ("dicast-kernel~=0.1.0", True),
        ("dicast-kernel==0.1.*", True),
        ("dicast-kernel!=0.1.0", False),
        ("dicast-kernel>0.1", False),
        ("dicast-kernel<0.1", False),
        ("dicast-kernel==0.1", True),
        ("dicast-kernel~=0.2", False),
        ("dicast-kernel[testing]>=1", False),
        ("dicast-kernel>=1; extra == 'x'", True),
        ("dicast-absent>=1", True),
        ("numpy>=99", True),
        ("dicast-kernel @ file:///here", True),
    ],
)
def test_requirements_on_dicast_are_compared_by_release(install, requirement, is_met):
    info = install("dicast-x", "1.0")
    (info / "METADATA").write_text(f"Name: dicast-x\nVersion: 1.0\nRequires-Dist: {requirement}\n")
    assert (version_conflicts("dicast-x") == []) == is_met


def test_requirements_are_read_without_the_description(install, monkeypatch):
    info = install("dicast-x", "1.0")
    head = "Name: dicast-x\nVersion: 1.0\nRequires-Dist: dicast-kernel<0.1\n"
    (info / "METADATA").write_text(f"{head}\nRequires-Dist: dicast-kernel<0.0.1\n")
    monkeypatch.setattr("importlib.metadata.Distribution.metadata", property(pytest.fail))
    assert [conflict.partition(",")[0] for conflict in version_conflicts("dicast-x")] == [
        "it requires dicast-kernel<0.1"
    ]
