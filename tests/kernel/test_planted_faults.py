"""The kit fails on each planted fault with a message that names it, and passes the good component of each kind."""

from __future__ import annotations

import importlib
import inspect
import itertools
import re
import sys

import pytest
from tests.kernel import planted

from dicast._kernel.values.clock import Clock
from dicast.testing import (
    GOLDEN,
    AggregateConformance,
    ChatModelConformance,
    ComparisonConformance,
    EarlyStopConformance,
    ExecutorConformance,
    ExtractorConformance,
    GateClauseConformance,
    JudgeConformance,
    LedgerConformance,
    MetricConformance,
    PresetConformance,
    RubricConformance,
    SinkConformance,
    SourceConformance,
    TaskConformance,
)
from dicast.testing.pipeline import Bench, typical_events

CONTRACTS = {
    "metric": (MetricConformance, planted.METRIC, "x/brief", {}),
    "judge": (JudgeConformance, planted.JUDGE, "x/calm", {}),
    "sink": (SinkConformance, planted.SINK, "x/ids", {"path": "out/ids.json"}),
    "source": (SourceConformance, planted.SOURCE, "x/numbers", {}),
    "model": (ChatModelConformance, planted.MODEL, "x/echo", {}),
    "ledger": (LedgerConformance, planted.LEDGER, "x/memory", {}),
    "task": (TaskConformance, planted.TASK, "x/upper", {}),
    "extractor": (ExtractorConformance, planted.EXTRACTOR, "x/words", {}),
    "aggregate": (AggregateConformance, planted.AGGREGATE, "x/total", {}),
    "comparison": (ComparisonConformance, planted.COMPARISON, "x/more_rows", {}),
    "early_stop": (EarlyStopConformance, planted.EARLY_STOP, "x/enough", {}),
    "preset": (PresetConformance, planted.PRESET, "x/short", {}),
    "executor": (ExecutorConformance, planted.EXECUTOR, "x/few", {}),
    "clause": (GateClauseConformance, planted.CLAUSE, "least_scored", {"least_scored": 2}),
    "rubric": (RubricConformance, planted.RUBRIC, "tone-v1", {}),
}
HEADER_LINES = 3
"""Number of lines that the fixture ``plugin`` writes before a module."""
INVALID = {"least_scored": -1}
"""Options of a clause that has a fault."""
FREE_LOOP = "test_leaves_the_event_loop_free"
QUICK = [subject for subject in GOLDEN if subject.id != "very-long"]
"""Subjects without the mebibyte, for a bar of 40 ms."""
OWN_PROCESS = "test_loads_by_entry_point_in_a_fresh_process"
"""Check in a process of its own, which tests of the kit cover."""


@pytest.fixture
def conform(plugin, install, tmp_path):
    """Return a function that runs a check of the kit on the good component of a kind, or on a changed source."""
    count = itertools.count()

    def prepare(kind, source, check):
        contract, _, name, options = CONTRACTS[kind]
        added = {"subjects": QUICK} if check == FREE_LOOP and hasattr(contract, "subjects") else {}
        folder = tmp_path / f"run-{next(count)}"
        (folder / "out").mkdir(parents=True)
        if kind == "rubric":
            package = tmp_path / "site" / "dicast_x"
            package.mkdir(exist_ok=True)
            (package / "__init__.py").touch()
            (package / "tone-v1.md").write_text(source)
            install("dicast-x", "0.1.0", {"dicast.rubrics": {"tone-v1": "dicast_x"}})
        elif kind == "clause":
            header = "import attrs\n"
            groups = {"dicast.gate_clauses": {"least_scored": "dicast_x:LeastScored"}}
            install("dicast-x", "0.1.0", groups, dicast_x=header + source)
        else:
            plugin("x", source)
        return type("TestX", (contract,), {kind: name, "options": options, "invalid": INVALID, **added})(), folder

    def run(kind, source, check=None):
        contract, folder = prepare(kind, source, check)
        names = [name for name in dir(contract) if name.startswith("test_") and name != OWN_PROCESS]
        return {name: complaint(contract, name, folder) for name in names if check in (None, name)}

    yield run
    sys.modules.pop("dicast_x", None)


def complaint(contract, name, folder):
    """Run a check; return its message, or None if it passes."""
    try:
        bench = Bench(folder)
        method = getattr(contract, name)
        makers = {
            "bench": lambda: bench,
            "component": lambda: bench.build(contract.kind, contract.named, contract.options),
            "events": typical_events,
            "clock": Clock,
            "cls": lambda: importlib.import_module("dicast_x").LeastScored,
        }
        wanted = [*inspect.signature(method).parameters]
        with pytest.MonkeyPatch.context() as monkeypatch:
            method(**{key: monkeypatch if key == "monkeypatch" else makers[key]() for key in wanted})
    except (Exception, pytest.fail.Exception) as error:
        return f"{type(error).__name__}: {error}"
    return None


def source_of(fault):
    good = CONTRACTS[fault.kind][1]
    assert fault.old in good
    return good.replace(fault.old, fault.new)


def line_of(fault):
    """Return the first changed line in the plugin's module."""
    lines = zip(CONTRACTS[fault.kind][1].splitlines(), source_of(fault).splitlines(), strict=False)
    return HEADER_LINES + next(number for number, (old, new) in enumerate(lines, 1) if old != new)


def test_there_are_faults_of_every_kind_and_eight_wrong_metrics():
    assert {fault.kind for fault in planted.FAULTS} == set(CONTRACTS)
    assert len(planted.FAULTS) >= 30
    assert len(planted.WRONG_METRICS) == 8


@pytest.mark.slow
@pytest.mark.parametrize("kind", CONTRACTS)
def test_a_good_component_passes_every_check(conform, kind):
    complaints = conform(kind, CONTRACTS[kind][1])
    assert {name: text for name, text in complaints.items() if text} == {}


@pytest.mark.parametrize("fault", planted.FAULTS, ids=lambda fault: f"{fault.kind}: {fault.name}")
def test_a_planted_fault_is_named(conform, monkeypatch, fault):
    for module in ("conformance", "watching"):
        monkeypatch.setattr(f"dicast.testing.{module}.BLOCKED_SECONDS", 0.04)
    for module in ("judging", "models", "experiments"):
        monkeypatch.setattr(f"dicast.testing.{module}.CANCEL_SECONDS", 0.05)
    message = conform(fault.kind, source_of(fault), fault.check)[fault.check]
    assert message is not None, f"{fault.check} passes"
    line = line_of(fault)
    pattern = fault.message.replace("LINE", str(line)).replace("NEXT", str(line + 1))
    assert re.search(pattern, message, re.DOTALL), message
