"""Plugins whose hooks return classes that are imported on first use."""

from __future__ import annotations

import sys

import pytest

from dicast import PluginError
from dicast._kernel.contract.registry import Registry

PLUGIN = """
from dicast import hookimpl
from dicast.toolkit.named_classes import NamedClasses

_METRICS = NamedClasses(__name__, {"long": "dicast_x_long:Long", "short": "dicast_x_short:Short"})
__getattr__ = _METRICS.attribute

@hookimpl
def dicast_metrics():
    return _METRICS
"""
METRIC = """
import attrs
from dicast import Score

@attrs.frozen
class %s:
    tier = "proxy"

    def score(self, subject):
        return Score(1.0)
"""
LONG, SHORT = METRIC % "Long", METRIC % "Short"


@pytest.fixture
def installed(install):
    """Install the plugin ``x`` with the modules of its two classes, and return a registry."""

    def make(long=LONG, short=SHORT, extra=""):
        modules = {"dicast_x": PLUGIN + extra, "dicast_x_long": long, "dicast_x_short": short}
        install("dicast-x", groups={"dicast": {"x": "dicast_x"}}, **modules)
        return Registry(environ={})

    return make


def names(components):
    return [component.name for component in components]


def refusal(call, *arguments):
    with pytest.raises(PluginError) as error:
        call(*arguments)
    return str(error.value)


def test_a_pipeline_imports_only_the_classes_that_it_names(installed):
    registry = installed()
    assert registry.find("x/short", ("metric",)).name == "x/short"
    assert "dicast_x_long" not in sys.modules
    assert names(registry.load("x")) == ["x/long", "x/short"]
    assert registry.find("x/long", ("metric",)) is registry.load("x")[0]


def test_a_list_of_another_hook_may_be_next_to_named_classes(installed):
    judge = """
from dicast import Judgment, judge

@judge(accepts=["row"])
def stern(subject):
    return Judgment(0.0)

@hookimpl
def dicast_judges():
    return [stern]
"""
    registry = installed(extra=judge)
    assert registry.find("x/stern", ("judge",)).kind == "judge"
    assert "dicast_x_long" not in sys.modules
    assert registry.find("x/long", ("metric",)).kind == "metric"


def test_an_unknown_name_has_the_names_of_all_classes(installed):
    message = refusal(installed().find, "x/lonk", ("metric",))
    assert message.startswith("plugin 'x' offers no metric 'lonk' (offers: long, short)")


def test_a_class_of_another_kind_is_refused(installed):
    assert refusal(installed().find, "x/long", ("sink",)) == "x/long is a metric, not a sink"


def test_a_class_that_cannot_be_imported_is_refused_with_the_line_and_spares_the_other_classes(installed):
    registry = installed(long="import nowhere_to_be_found\n")
    assert registry.find("x/short", ("metric",)).name == "x/short"
    message = refusal(registry.find, "x/long", ("metric",))
    assert message.startswith("plugin 'x' (dicast-x 0.1.0) failed in dicast_metrics: ")
    assert "nowhere_to_be_found" in message
    assert "dicast_x_long.py:1" in message
    assert registry.find("x/short", ("metric",)).name == "x/short"
    assert registry.attempt("x").error == message


def test_a_place_without_the_class_is_refused(installed):
    message = refusal(installed(long="Lonk = 1\n").find, "x/long", ("metric",))
    assert "has no attribute 'Long'" in message


def test_a_class_with_another_name_than_its_key_is_refused(installed):
    message = refusal(installed(long=LONG.replace("tier", 'name = "lengthy"\n    tier')).find, "x/long", ("metric",))
    assert "dicast_metrics: x/lengthy has the key 'long' in NamedClasses; write its name (" in message


def test_the_package_has_the_classes_as_attributes(installed):
    installed()
    import dicast_x

    assert dicast_x.Short is dicast_x._METRICS[1] is dicast_x._METRICS.named("short")
    assert dicast_x._METRICS[:] == [*dicast_x._METRICS]
    with pytest.raises(AttributeError, match="module 'dicast_x' has no attribute 'Middle'"):
        dicast_x.Middle  # noqa: B018
