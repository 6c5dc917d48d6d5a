"""Count the lines of the same two extensions in dicast and in other tools, and run those whose tool is installed.

    python benchmarks/extension/count.py          # the table
    python benchmarks/extension/count.py --run    # also run each extension over two outputs

The extensions call the same local function: a metric, and a sink that writes a line for each score. A line counts if it is neither blank, a comment nor a
part of a docstring; the lines by which the tool finds the extension count too, in a second number.
"""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).resolve().parent
TOOLS = {
    "dicast": "dicast",
    "pytest": "pytest",
    "Inspect AI": "inspect_ai",
    "promptfoo": "promptfoo",
    "pydantic-evals": "pydantic_evals",
    "llm": "llm",
}
EXPECTED = [1.0, 0.0]
"""Scores of the two outputs, ``Thank you, please.`` and ``No.``."""


def code_lines(path: Path) -> int:
    """Return the number of lines of a Python file without blanks, comments and docstrings."""
    text = path.read_text(encoding="utf-8")
    lines = {
        number for number, line in enumerate(text.splitlines(), 1) if line.strip() and not line.strip().startswith("#")
    }
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            lines -= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return len(lines)


def settings_lines(folder: Path, name: str) -> int:
    """Return the number of lines of the settings by which the tool finds the extension *name*."""
    files = [folder / f"{name}{suffix}" for suffix in (".toml", ".yaml")]
    return sum(len(file.read_text(encoding="utf-8").splitlines()) for file in files if file.exists())


def cell(tool: str, name: str) -> str:
    """Return the numbers of an extension as ``code + settings``, or a dash if the tool has no place for it."""
    folder = HERE / TOOLS[tool]
    if not (folder / f"{name}.py").exists():
        return "none"
    settings = settings_lines(folder, name)
    return f"{code_lines(folder / f'{name}.py')}" + (f" + {settings}" if settings else "")


def is_installed(module: str) -> bool:
    """Return whether *module* is installed; the folder of its extensions has the same name and is no package."""
    spec = find_spec(module)
    return spec is not None and spec.origin is not None


def scores_of(tool: str) -> list[float]:
    """Run the extensions of *tool* in a new folder, and return the scores that they wrote."""
    with tempfile.TemporaryDirectory() as folder:
        for file in (HERE / TOOLS[tool]).glob("*.py"):
            shutil.copy(file, folder)
        shutil.copy(HERE / "local.py", folder)
        command = [sys.executable, "use.py"]
        environment = os.environ | {"PYTHONPATH": folder}
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"{tool}: {done.stderr or done.stdout}")
        return [float(line.split()[-1]) for line in done.stdout.splitlines()[-2:]]


def main(arguments: list[str]) -> int:
    """Print the table, and run the extensions after ``--run``."""
    print("| tool | metric | sink |\n|---|---|---|")
    for tool in TOOLS:
        print(f"| {tool} | {cell(tool, 'metric')} | {cell(tool, 'sink')} |")
    wrong = 0
    for tool, module in TOOLS.items() if "--run" in arguments else ():
        if not is_installed(module) or not (HERE / module / "use.py").exists():
            print(f"{tool}: not installed, not run")
        else:
            scores = scores_of(tool)
            wrong += scores != EXPECTED
            print(f"{tool}: {scores}")
    return int(wrong > 0)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
