"""Install each tool and the two extensions, run them, and measure the steps.

    python benchmarks/extension/measure.py --wheels WHEELS [TOOL …]

WHEELS has the wheels of dicast, as in docs/start/install.md. The tools of Python are installed by pip into new virtual environments, promptfoo by npm into a
new folder. The first pass fills the caches of pip and npm and is not measured. The quickest of the other passes counts, because other programs only slow a
pass.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path

from count import EXPECTED, HERE, TOOLS

PROJECT = """[project]
name = "polite"
version = "0.1.0"

{points}
[build-system]
requires = ["setuptools>=77"]
build-backend = "setuptools.build_meta"

[tool.setuptools]
py-modules = [{modules}]
"""
OUTPUTS = ("Thank you, please.", "No.")


@dataclass(frozen=True)
class Way:
    """Steps of an author with one tool.

    *requirements* are the arguments of the installer. *install* and *run* are the further commands, and *prepare* makes the
    outputs. *files* are the files that the author writes next to the
    extensions, and *data* the files with the two outputs.
    """

    requirements: Sequence[str]
    run: Sequence[str]
    install: Sequence[str] = ()
    prepare: Sequence[str] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    data: Mapping[str, str] = field(default_factory=dict)


PIPELINE = """source: {rows/jsonl: {path: outputs.jsonl}}
metrics: [polite/polite]
sinks: [lines/lines: {path: out.txt}]
"""
TEST = """import pytest


@pytest.mark.parametrize("text", ["Thank you, please.", "No."])
def test_output(text, polite):
    polite(text)
"""
EVAL = """prompts: ["{{text}}"]
providers: [echo]
tests:
  - {vars: {text: "Thank you, please."}, description: a}
  - {vars: {text: "No."}, description: b}
defaultTest:
"""
LOG = """import sqlite_utils

rows = [{"id": "a", "response": "Thank you, please."}, {"id": "b", "response": "No."}]
sqlite_utils.Database("logs.db")["responses"].insert_all(rows, pk="id")
"""


def read(*parts: str) -> str:
    """Return the text of a file of this folder."""
    return HERE.joinpath(*parts).read_text(encoding="utf-8")


def promptfoo_settings() -> str:
    """Return the configuration with the lines of both extensions."""
    metric = "".join(f"  {line}\n" for line in read("promptfoo", "metric.yaml").splitlines())
    return EVAL + metric + read("promptfoo", "sink.yaml")


def ways() -> dict[str, Way]:
    """Return the way of each tool."""
    rows = "".join(f'{{"id": "{id}", "output": "{text}"}}\n' for id, text in zip("ab", OUTPUTS, strict=True))
    return {
        "dicast": Way(
            ["dicast"],
            ["dicast run pipeline.yaml"],
            ["pip install ."],
            files={"pipeline.yaml": PIPELINE},
            data={"outputs.jsonl": rows},
        ),
        "pytest": Way(["pytest"], ["pytest -q --lines out.txt"], ["pip install ."], files={"test_outputs.py": TEST}),
        "Inspect AI": Way(
            ["inspect-ai"], ["python use.py"], ["pip install ."], files={"use.py": read("inspect_ai", "use.py")}
        ),
        "promptfoo": Way(
            ["promptfoo"],
            ["npx promptfoo eval --no-cache -c promptfooconfig.yaml"],
            files={"promptfooconfig.yaml": promptfoo_settings()},
        ),
        "pydantic-evals": Way(
            ["pydantic-evals"], ["python use.py"], files={"use.py": read("pydantic_evals", "use.py")}
        ),
        "llm": Way(["llm"], ["llm polite"], ["llm install ."], ["python log.py"], data={"log.py": LOG}),
    }


def write_files(tool: str, way: Way, folder: Path) -> list[Path]:
    """Write the files of the author, and the files that the author has already; return the former."""
    shutil.copy(HERE / "local.py", folder)
    for name, text in way.data.items():
        (folder / name).write_text(text, encoding="utf-8")
    written = [folder / f"{name}.py" for name in ("metric", "sink") if (HERE / TOOLS[tool] / f"{name}.py").exists()]
    for path in written:
        shutil.copy(HERE / TOOLS[tool] / path.name, path)
    files = dict(way.files)
    if "." in " ".join(way.install):
        points = "".join(
            f"{file.read_text(encoding='utf-8')}\n" for file in sorted((HERE / TOOLS[tool]).glob("*.toml"))
        )
        first, *others = re.findall(r"^\[.*\]\n", points, re.MULTILINE)
        points = first + points.replace(first, "") if others else points
        modules = ", ".join(f'"{path.stem}"' for path in [folder / "local.py", *written])
        files["pyproject.toml"] = PROJECT.format(points=points, modules=modules)
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    return [*written, *(folder / name for name in files)]


def call(command: str | Sequence[str], folder: Path, environment: Mapping[str, str]) -> str:
    """Run *command* in *folder*; return its output.

    :raises SystemExit: if the command fails, except a test or an evaluation that fails on the bad output.
    """
    arguments = command.split() if isinstance(command, str) else list(command)
    done = subprocess.run(arguments, cwd=folder, env=dict(environment), capture_output=True, text=True, check=False)
    bad_output = arguments[0] in ("pytest", "npx") and done.returncode in (1, 100)
    if done.returncode and not bad_output:
        raise SystemExit(f"{' '.join(arguments)}: {done.stderr or done.stdout}")
    return done.stdout


@dataclass(frozen=True)
class Clock:
    """Seconds of the wall and of the CPU, with all child processes that ended."""

    wall: float
    cpu: float

    @classmethod
    def now(cls) -> Clock:
        """Return the present times."""
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return cls(time.perf_counter(), used.ru_utime + used.ru_stime)

    def since(self, start: Clock) -> Clock:
        """Return the times from *start* to here."""
        return Clock(self.wall - start.wall, self.cpu - start.cpu)

    def __str__(self) -> str:
        return f"{self.wall:.0f} ({self.cpu:.0f})"


def measure(tool: str, wheels: Path | None) -> tuple[int, int, Clock, Clock]:
    """Return the number of written files and of commands, the times of the tool's installation, and the times from there to the scores."""
    way = ways()[tool]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        bin_folder, project = folder / ".venv" / "bin", folder / "polite"
        project.mkdir()
        environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "VIRTUAL"))}
        environment |= {"PATH": f"{bin_folder}:{environment['PATH']}", "HOME": environment.get("HOME", name)}
        environment |= {"LLM_USER_PATH": str(project), "DICAST_LEDGER": str(project / "ledger.db")}
        environment |= {"PROMPTFOO_DISABLE_TELEMETRY": "1", "PROMPTFOO_DISABLE_UPDATE": "1"}
        environment |= {"PROMPTFOO_CONFIG_DIR": str(folder), "PROMPTFOO_PYTHON": sys.executable}
        installer = ["npm", "install", "--no-audit", "--no-fund", *way.requirements]
        if tool != "promptfoo":
            subprocess.run([sys.executable, "-m", "venv", folder / ".venv"], check=True)
            links = ["--find-links", str(wheels)] if tool == "dicast" else []
            installer = ["pip", "install", "-q", *links, *way.requirements]
        start = Clock.now()
        call(installer, project, environment)
        installation = Clock.now().since(start)
        written = write_files(tool, way, project)
        for command in way.prepare:
            call(command, project, environment)
        start = Clock.now()
        output = [call(command, project, environment) for command in (*way.install, *way.run)][-1]
        use = Clock.now().since(start)
        lines = output if tool == "llm" else (project / "out.txt").read_text() if tool != "pydantic-evals" else output
        scores = [float(line.split()[-1]) for line in lines.splitlines()[-2:]]
        if sorted(scores) != sorted(EXPECTED):
            raise SystemExit(f"{tool}: {scores}")
        return len(written), 1 + len(way.install) + len(way.run), installation, use


def main(arguments: Sequence[str]) -> int:
    """Print the table of the steps; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tools", nargs="*", metavar="TOOL", help=f"one of {', '.join(TOOLS)}; all by default")
    parser.add_argument("--wheels", type=Path, help="the folder with the wheels of dicast")
    parser.add_argument("--passes", type=int, default=3, help="number of measured passes")
    parser.add_argument("--filled", action="store_true", help="the caches have all packages: measure each pass")
    options = parser.parse_args(arguments)
    print("| tool | files | commands | installation | from there to the scores |\n|---|---|---|---|---|")
    for tool in options.tools or TOOLS:
        if not options.filled:
            measure(tool, options.wheels)
        results = [measure(tool, options.wheels) for _ in range(options.passes)]
        files, commands = results[0][:2]
        installation, use = (min((result[column] for result in results), key=attrgetter("wall")) for column in (2, 3))
        print(f"| {tool} | {files} | {commands} | {installation} | {use} |", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
