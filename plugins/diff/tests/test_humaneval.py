"""The canonical solutions of HumanEval: any two layouts of one are equivalent, and no two that differ in an operator."""

from __future__ import annotations

import ast
import gzip
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from dicast import Subject
from dicast_diff import Match

ROOT = Path(__file__).resolve().parents[3]

OPERATORS = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult, ast.FloorDiv: ast.Mod, ast.Mod: ast.FloorDiv, ast.Pow: ast.Mult,
    ast.BitXor: ast.BitOr, ast.BitOr: ast.BitAnd, ast.BitAnd: ast.BitOr, ast.LShift: ast.RShift, ast.RShift: ast.LShift,
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
    ast.And: ast.Or, ast.Or: ast.And, ast.USub: ast.UAdd, ast.UAdd: ast.USub, ast.Not: ast.Invert, ast.Invert: ast.Not,
}  # fmt: skip
"""What each operator is changed to; the first one of a solution is, in the order of its text."""

WITHOUT = (16, 17, 19, 22, 23, 27, 28, 29, 33, 34, 38, 84, 86, 105, 116, 162)
"""Solutions without any operator: in them the name of the first function that is called is changed."""


@pytest.fixture(scope="module")
def solutions():
    path = Path(os.environ.get("DICAST_OUTSIDE_DATA", ROOT.parent / "shared" / "data"), "human_eval.jsonl.gz")
    if not path.is_file():
        pytest.skip(f"{path.name} is not in {path.parent}; DICAST_OUTSIDE_DATA names the folder that has it")
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [row["prompt"] + row["canonical_solution"] for row in map(json.loads, lines)]


def by_ruff(solutions, folder):
    """In single quotes and narrow lines, as black never writes it."""
    for number, code in enumerate(solutions):
        (folder / f"s{number}.py").write_text(code, encoding="utf-8")
    (folder / "ruff.toml").write_text('line-length = 50\nindent-width = 2\nformat.quote-style = "single"\n')
    ruff = shutil.which("ruff", path=Path(sys.executable).parent) or "ruff"
    subprocess.run([ruff, "format", "-q", "--no-cache", "."], cwd=folder, check=True)
    return [(folder / f"s{number}.py").read_text(encoding="utf-8") for number in range(len(solutions))]


def by_black(solutions, folder):
    import black

    mode = black.Mode(line_length=100, preview=True)
    return [black.format_str(code, mode=mode) for code in solutions]


def by_unparse(solutions, folder):
    """Without comments, and every parenthesis that is not needed."""
    return [ast.unparse(ast.parse(code)) for code in solutions]


def values(outputs, references):
    match = Match(strictness="ast_equivalent")
    pairs = enumerate(zip(outputs, references, strict=True))
    return [
        match.score(Subject("row", str(number), output=first, reference=other)).value
        for number, (first, other) in pairs
    ]


def mutated(code: str) -> tuple[str, str]:
    """Return *code* with a change, and the kind of the change: the first operator of its last function, or else the first call."""
    tree = ast.parse(code)
    function = next(node for node in reversed(tree.body) if isinstance(node, ast.FunctionDef))
    nodes = [node for node in ast.walk(function) if hasattr(node, "lineno")]
    for node in sorted(nodes, key=lambda node: (node.lineno, node.col_offset)):
        if hasattr(node, "op"):
            node.op = OPERATORS[type(node.op)]()
            return ast.unparse(tree), "operator"
        if hasattr(node, "ops"):
            node.ops[0] = OPERATORS[type(node.ops[0])]()
            return ast.unparse(tree), "operator"
    called = next(node.func for node in nodes if isinstance(node, ast.Call))
    name = "id" if isinstance(called, ast.Name) else "attr"
    setattr(called, name, f"{getattr(called, name)}_changed")
    return ast.unparse(tree), "call"


@pytest.mark.outside_data
@pytest.mark.parametrize(("one", "other"), [(by_black, by_ruff), (by_black, by_unparse), (by_ruff, by_unparse)])
def test_solutions_in_two_formats_are_equivalent(solutions, one, other, tmp_path):
    first, second = one(solutions, tmp_path), other(solutions, tmp_path)
    assert sum(a != b for a, b in zip(first, second, strict=True)) > 160
    assert values(first, second).count(1.0) == len(solutions) == 164
    assert values(first, solutions).count(1.0) == values(second, solutions).count(1.0) == 164


@pytest.mark.slow
@pytest.mark.outside_data
def test_solutions_with_one_operator_changed_are_not(solutions, tmp_path):
    changed, what = zip(*map(mutated, solutions), strict=True)
    assert values(changed, solutions).count(0.0) == 164
    assert values(by_ruff(changed, tmp_path), by_black(solutions, tmp_path)).count(0.0) == 164
    assert [number for number, value_ in enumerate(what) if value_ == "call"] == list(WITHOUT)
