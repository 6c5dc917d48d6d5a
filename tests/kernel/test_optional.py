"""Optional members that the kernel looks for in components are in ``dicast.optional``, and so in the docs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import dicast
from dicast import optional

KERNEL = Path(dicast.__file__).parent
TEMPLATES = KERNEL / "_kernel" / "cli" / "templates"
COMPONENTS = sorted(path for path in TEMPLATES.glob("*.py.tmpl") if "# For example: " in path.read_text())
ELSEWHERE = {
    "character", "compare_op", "implicit", "value",  # of PyYAML and attrs
    "CSafeLoader", "sched_getaffinity", "setitimer", "killpg", "EDQUOT", "strerror", "O_BINARY", "O_NONBLOCK", "O_CLOEXEC", "__code__", "__name__", "__self__", "MADV_HUGEPAGE", "get_source", "id", "to_dict", "__wrapped__", "__func__", "__path__", "__file__", "__mro__", "attr",  # of Python, and of data frames
    "label", "responses", "name", "tier", "cost", "signals", "pytestmark", "amount", "judge", "score", "problems", "scan", "first_places",  # of our own classes, of every component, of tests
    "former_distribution",  # of a module of hooks
    "baseline", "bounds",  # of rules of a gate, as ``GateClause`` documents them
}  # fmt: skip
"""Names that the kernel looks for in other objects than components."""


def members():
    protocols = [protocol for name, protocol in vars(optional).items() if name.startswith("Has")]
    return {name for protocol in protocols for name in vars(protocol) if not name.startswith("_")}


def test_whatever_the_kernel_looks_for_in_a_component_is_listed():
    source = "".join(path.read_text() for path in KERNEL.rglob("*.py") if path.name != "optional.py")
    looked_for = set(re.findall(r'(?:getattr|hasattr)\([^",]+, "(\w+)"', source))
    assert len(looked_for) > 40
    assert looked_for - members() - ELSEWHERE == set()


def test_no_member_is_listed_that_nobody_looks_for():
    source = "".join(path.read_text() for path in KERNEL.rglob("*.py") if path.name != "optional.py")
    plugins = "".join(path.read_text() for path in KERNEL.parents[1].glob("plugins/*/src/**/*.py"))
    used = {name for name in members() if re.search(rf'"{name}"|\.{name}\b', source + plugins)}
    assert members() - used == set()


def test_a_new_component_of_a_kind_with_members_names_some():
    protocols = [protocol for name, protocol in vars(optional).items() if name.startswith("Has")]
    kinds = {path.name.partition(".")[0] for path in TEMPLATES.glob("*.py.tmpl") if not path.name.startswith("test_")}
    with_members = {
        kind
        for kind in kinds
        if any(re.search(rf"\b{kind.replace('_', ' ')}s\b", item.__doc__, re.IGNORECASE) for item in protocols)
    }
    assert with_members - {path.name.partition(".")[0] for path in COMPONENTS} == set()


@pytest.mark.parametrize("path", COMPONENTS, ids=lambda path: path.name)
def test_a_new_component_names_members_that_fit_its_kind(path):
    (listed,) = re.findall(r"^# For example: (.+)$", path.read_text(), re.MULTILINE)
    kind = path.name.partition(".")[0].replace("_", " ")
    protocols = [protocol for name, protocol in vars(optional).items() if name.startswith("Has")]
    fits = re.compile(rf"any kind|\b{kind}s\b", re.IGNORECASE)
    fitting = {name for item in protocols if fits.search(item.__doc__) for name in vars(item)}
    assert set(listed.split(", ")) <= fitting
