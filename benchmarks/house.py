"""Measure the kernel's house: names defined twice, import circles, and the route of a row; ``python benchmarks/house.py``.

A name counts as defined twice where two modules define a public class or function of it at their top. Circles count imports
inside functions and for type checking too. The route is that of one row of a small pipeline with three free metrics: *moves* are the steps from one kernel
module to another while a row of the batch is judged, *entered* the kernel modules that run at least one function.
"""

from __future__ import annotations

import ast
import sys
import tempfile
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from types import FrameType

ROOT = Path(__file__).resolve().parent.parent
KERNEL = ROOT / "framework" / "dicast"
LEDGER_LINES = KERNEL / "toolkit" / "ledger_lines"
"""Code of ledgers, which are plugins: several of them share it."""


def sources(root: Path = ROOT) -> dict[str, Path]:
    """Every module of the kernel and the plugins, by its dotted name."""
    homes = [root / "framework", *root.glob("plugins/*/src"), *root.glob("contrib/*/src"), root / "rubrics" / "src"]
    found = {}
    for home in homes:
        for path in home.glob("dicast*/**/*.py"):
            if "templates" not in path.parts:
                parts = path.relative_to(home).with_suffix("").parts
                found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imported(name: str, path: Path, modules: Mapping[str, Path]) -> set[str]:
    """Return the modules among *modules* that module *name* imports, in functions and for type checking included."""
    found = set()
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*above, *filter(None, [node.module])])
            inner = {f"{base}.{alias.name}" for alias in node.names}
            found |= inner & set(modules) or {base}
    return (found & set(modules)) - {name}


def circles(modules: Mapping[str, Path]) -> list[list[str]]:
    """The modules that import one another in circles, each set of them in the order of their names."""
    graph = {name: imported(name, path, modules) for name, path in modules.items()}
    reached = {name: _reached(name, graph) for name in graph}
    sets = {frozenset(one for one in reached[name] if name in reached[one]) for name in graph}
    return sorted(sorted(names) for names in sets if names)


def _reached(name: str, graph: Mapping[str, set[str]]) -> set[str]:
    """Return the modules that *name* imports, directly and indirectly."""
    found: set[str] = set()
    waiting = [name]
    while waiting:
        new = graph[waiting.pop()] - found
        found |= new
        waiting += new
    return found


def homonyms(modules: Mapping[str, Path]) -> dict[str, list[str]]:
    """The public classes and functions of the kernel that two or more modules define, each with its modules."""
    found: dict[str, dict[str, None]] = {}
    for name, path in modules.items():
        if KERNEL in path.parents and LEDGER_LINES not in path.parents and "testing" not in name:
            for node in ast.parse(path.read_text(encoding="utf-8")).body:
                if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.name[0] != "_":
                    found.setdefault(node.name, {})[name] = None  # overloads are one
    return {name: [*where] for name, where in sorted(found.items()) if len(where) > 1}


TICKS = ("Ticker.__call__", "Timer.look")
"""What a timer's signal calls, wherever the run is."""


def route(rows: int, folder: Path) -> list[str]:
    """The kernel modules that a run of *rows* rows goes through, a step whenever it is another than before."""
    import dicast

    (folder / "rows.jsonl").write_text("".join(f'{{"id": "{row}", "output": "x"}}\n' for row in range(rows)))
    pipeline = {
        "source": {"rows/jsonl": {"path": str(folder / "rows.jsonl")}},
        "metrics": ["proxy/format", "proxy/length", "proxy/keywords"],
        "ledger": {"ledger/sqlite": {"path": str(folder / f"{rows}.db")}},
    }
    steps: list[str] = []

    def called(frame: FrameType, event: str, _: object) -> None:
        path = frame.f_code.co_filename
        name = frame.f_code.co_qualname
        is_kernel = path.startswith(str(KERNEL)) and not path.startswith(str(LEDGER_LINES))
        if event == "call" and is_kernel and "<" not in name and name not in TICKS:
            steps.append(path.removeprefix(str(KERNEL) + "/"))

    before = sys.getprofile()
    sys.setprofile(called)
    try:
        dicast.run(pipeline)
    finally:
        sys.setprofile(before)
    return [steps[0], *(after for step, after in pairwise(steps) if step != after)]


def moves(fewer: int = 20, more: int = 40) -> tuple[float, int]:
    """Return the moves between modules for one more row, and the number of modules that a run enters."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        route(1, folder)  # what is imported and cached once belongs to no row
        # three times: a busy machine passes batches on sooner
        short, long = (min((route(rows, folder) for _ in range(3)), key=len) for rows in (fewer, more))
    return (len(long) - len(short)) / (more - fewer), len(set(long))


def main() -> None:
    """Print the figures, and the names behind them."""
    modules = sources()
    twice = homonyms(modules)
    print(f"modules: {len(modules)}")
    found = circles(modules)
    print(f"import circles: {len(found)}")
    for names in found:
        print("  " + "\n    ".join(names))
    each, entered = moves()
    print(f"moves between modules for one more row: {each:.1f}")
    print(f"kernel modules that a run enters: {entered}")
    print(f"names defined twice: {len(twice)}")
    for name, where in twice.items():
        print(f"  {name}")
        for module in where:
            print(f"    {module.removeprefix('dicast.')}")


if __name__ == "__main__":
    main()
