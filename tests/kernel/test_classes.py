"""The kernel's classes have the same repr, comparison and hash as attrs classes."""

from __future__ import annotations

import subprocess
import sys

import attrs
import pytest

from dicast._kernel.classes import define, field, frozen


def pair(make, reference):
    """The same class made by the kernel and by attrs."""

    def made(decorate):
        @decorate
        class Point:
            x: object
            y: int = 2
            memo: dict = field(factory=dict, repr=False, eq=False)
            late: object = field(init=False)

        return Point

    return made(make), made(reference)


@pytest.mark.parametrize(("make", "reference"), [(frozen, attrs.frozen), (define, attrs.define)])
def test_one_is_printed_and_compared_as_one_of_attrs(make, reference):
    ours, theirs = pair(make, reference)
    for x in (1, float("nan"), "text"):
        assert repr(ours(x)) == repr(theirs(x)) == f"Point(x={x!r}, y=2, late=NOTHING)"
    for cls in (ours, theirs):
        first_value, equal, other = cls(1, memo={1: 1}), cls(1), cls(2)
        for item in (first_value, equal, other):
            object.__setattr__(item, "late", None)
        assert first_value == equal
        assert first_value != other
        assert first_value != (1, 2, None)
        nan = float("nan")
        first, second = cls(nan), cls(nan)
        for item in (first, second):
            object.__setattr__(item, "late", None)
        assert first != second
    assert ours(1).__eq__(theirs(1)) is NotImplemented


def test_what_is_frozen_has_a_hash_and_what_is_not_has_none():
    point = frozen(type("Point", (), {"__annotations__": {"x": int}}))
    assert len({point(1), point(1), point(2)}) == 2
    changing = define(type("Changing", (), {"__annotations__": {"x": int}}))
    with pytest.raises(TypeError, match="unhashable"):
        hash(changing(1))


def test_one_that_holds_itself_can_be_printed():
    knot = define(type("Knot", (), {"__annotations__": {"inside": object}}))(None)
    knot.inside = knot
    assert repr(knot) == "Knot(inside=...)"


def test_methods_of_its_own_stay_and_comparison_can_be_left_out():
    own = frozen(type("Own", (), {"__annotations__": {"x": int}, "__repr__": lambda self: "own"}))
    assert repr(own(1)) == "own"
    alone = frozen(eq=False)(type("Alone", (), {"__annotations__": {"x": int}}))
    assert alone(1) != alone(1)
    assert len({alone(1), alone(1)}) == 2


def test_what_reads_a_ledger_imports_nothing_that_only_a_run_needs():
    commands = ("past_runs", "records", "show")
    heavy = ("asyncio", "yaml", "dicast._kernel.pipeline.build", "dicast._kernel.run.run")
    imports = ", ".join(f"dicast._kernel.cli.{name}" for name in commands)
    requests = f"import sys, dicast.commands, {imports}; print([name for name in {heavy} if name in sys.modules])"
    output = subprocess.run([sys.executable, "-c", requests], capture_output=True, text=True, check=True)
    assert output.stdout.strip() == "[]"


def test_a_run_of_free_metrics_imports_nothing_of_tasks_shards_and_earlier_processes(tmp_path):
    (tmp_path / "rows.jsonl").write_text('{"id": "a", "output": "yes"}\n')
    pipeline = "source: {rows/jsonl: {path: rows.jsonl}}\nmetrics: [proxy/length: {min: 1}]\nledger: {ledger/sqlite: {path: l.db}}\n"
    (tmp_path / "p.yaml").write_text(pipeline)
    unneeded = ("asking.task", "asking.recorded_unit", "asking.earlier_units", "run.shard_run")
    code = (
        "import sys; from dicast._kernel.cli import main; main(['run', 'p.yaml']); "
        f"print([name for name in {unneeded} if f'dicast._kernel.{{name}}' in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.splitlines()[-1] == "[]"


def test_one_without_fields_equals_its_like():
    empty, other = (frozen(type(name, (), {})) for name in ("Empty", "Other"))
    assert (empty(), hash(empty()), repr(empty())) == (empty(), hash(empty()), "Empty()")
    assert empty() != other()
