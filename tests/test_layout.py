"""The shape of the house: sizes, names, versions and who may import whom. Measured from the files; nothing is imported."""

from __future__ import annotations

import ast
import re
import shutil
import statistics
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.metadata import requires
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
KERNEL = ROOT / "framework" / "dicast"
PLUGINS = sorted(path.parent for path in ROOT.glob("plugins/*/pyproject.toml"))
CONTRIB = sorted(path.parent for path in ROOT.glob("contrib/*/pyproject.toml"))
MEMBERS = [ROOT / "framework", *PLUGINS, ROOT / "rubrics"]
HOOKS = KERNEL / "_kernel" / "contract" / "hooks.py"

MODULE_LINES = 400
FUNCTION_MEDIAN, FUNCTION_P90, FUNCTION_MAX = 8, 25, 60
FOLDER_BARS = tomllib.loads((ROOT / "tests" / "folder_bars.toml").read_text(encoding="utf-8"))
"""Bars in lines of code for each folder of the kernel, each plugin and each room of a large plugin (docs/adr/0081).

A bar was set 10 % above the folder's size. A larger one needs a record.
"""
CORE = ("values", "plan", "contract", "timing", "stream", "asking")
"""The folders of the closed core, in the order to read them (docs/adr/0096)."""
BLOCKS = re.MULTILINE | re.DOTALL
VAGUE = {"utils", "util", "helpers", "helper", "manager", "base"}


def project(folder: Path) -> dict[str, Any]:
    return tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))


def modules(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*.py") if "templates" not in path.parts)


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


@dataclass(frozen=True)
class Module:
    """The measures of a module, without its tree, which takes much memory."""

    functions: dict[str, int]
    """The length of each function, by line and name."""
    imports: list[tuple[int, str]]
    """Each absolute import as (line, dotted name); ``from a import b`` gives ``a.b``."""
    texts: frozenset[int]
    """The lines of docstrings and other texts that are statements."""


@cache
def module(path: Path) -> Module:
    """Parse the module at *path* once for all tests."""
    functions: dict[str, int] = {}
    imports: list[tuple[int, str]] = []
    texts: set[int] = set()
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            functions[f"{node.lineno} {node.name}"] = length(node)
        elif isinstance(node, ast.Import):
            imports += ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            imports += ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            texts.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return Module(functions, imports, frozenset(texts))


def length(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines from ``def`` to the end, without the docstring."""
    first = function.body[0]
    docstring = 0
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
        docstring = (first.end_lineno or first.lineno) - first.lineno + 1
    return (function.end_lineno or function.lineno) - function.lineno + 1 - docstring


def functions(folder: Path) -> dict[str, int]:
    """Return the length of every function under *folder*, by place."""
    return {
        f"{path.relative_to(ROOT)}:{place}": lines
        for path in modules(folder)
        for place, lines in module(path).functions.items()
    }


def sources() -> list[Path]:
    return [KERNEL, *(plugin / "src" for plugin in PLUGINS + CONTRIB)]


def requirements(text: list[str]) -> dict[str, str]:
    """Distribution name to version range."""
    pattern = re.compile(r"([A-Za-z0-9._-]+)(?:\[[^]]*\])?\s*([^;]*)")
    return {match[1]: match[2].strip() for line in text if (match := pattern.match(line))}


# Sizes


@pytest.mark.parametrize("folder", sources(), ids=lambda path: str(path.relative_to(ROOT)))
def test_no_function_is_longer_than_the_bar(folder):
    assert {place: lines for place, lines in functions(folder).items() if lines > FUNCTION_MAX} == {}


@pytest.mark.parametrize("part", ["kernel", "plugins"])
def test_functions_are_short_as_a_rule(part):
    folders = [KERNEL] if part == "kernel" else [plugin / "src" for plugin in PLUGINS]
    lengths = sorted(lines for folder in folders for lines in functions(folder).values())
    if len(lengths) < 2:
        pytest.skip("no functions yet")
    assert statistics.median(lengths) <= FUNCTION_MEDIAN
    assert statistics.quantiles(lengths, n=10)[-1] <= FUNCTION_P90


@pytest.mark.parametrize("folder", sources(), ids=lambda path: str(path.relative_to(ROOT)))
def test_no_module_is_longer_than_the_bar(folder):
    lines = {
        str(path.relative_to(ROOT)): len(path.read_text(encoding="utf-8").splitlines()) for path in modules(folder)
    }
    assert {name: n for name, n in lines.items() if n > MODULE_LINES and not name.endswith("__init__.py")} == {}


GUIDE = ROOT / "docs" / "how-to" / "first-contribution.md"


@cache
def guide_changes() -> dict[Path, list[str]]:
    """Return the lines that the guide adds to each file and that the file does not have; a clone that followed the guide has them all."""
    text = GUIDE.read_text(encoding="utf-8")
    added = {ROOT / name: block for name, block in re.findall(r'^```python title="(.+?)"\n(.*?)^```', text, BLOCKS)}
    for diff in re.findall(r"^```diff\n(.*?)^```", text, BLOCKS):
        for name, hunks in re.findall(r"^\+\+\+ b/(\S+)\n(.*?)(?=^---|\Z)", diff, BLOCKS):
            added[ROOT / name] = "\n".join(line[1:] for line in hunks.splitlines() if line.startswith("+"))
    present = {path: set(path.read_text(encoding="utf-8").splitlines()) if path.is_file() else set() for path in added}
    return {path: [line for line in block.splitlines() if line not in present[path]] for path, block in added.items()}


@pytest.mark.parametrize("diff", re.findall(r"^```diff\n(.*?)^```", GUIDE.read_text(encoding="utf-8"), BLOCKS))
def test_the_changes_of_the_guide_apply(diff):
    """They may have been made: the guide ends with these tests."""
    command = ["git", "apply", "--check", "-"]
    tries = [
        subprocess.run([*command, *way], cwd=ROOT, input=diff, capture_output=True, text=True, check=False)
        for way in ([], ["--reverse"])
    ]
    assert 0 in [tried.returncode for tried in tries], f"{GUIDE.relative_to(ROOT)}: {tries[0].stderr}"


def test_modules_leave_room_for_the_lines_of_the_guide():
    lines = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in guide_changes() if path.is_file()}
    over = {str(path): n for path, n in lines.items() if n + len(guide_changes()[path]) > MODULE_LINES}
    assert over == {}, f"{GUIDE.relative_to(ROOT)} adds lines to these modules: split them"


@cache
def code_lines(path: Path) -> int:
    """Return the number of lines that hold code: no blank lines, comments and docstrings."""
    texts = module(path).texts
    lines = enumerate(path.read_text(encoding="utf-8").split("\n"), 1)
    return sum(bool(line.strip()) and not line.lstrip().startswith("#") and n not in texts for n, line in lines)


MAKE_LEDGER = """
import asyncio
from pathlib import Path
from dicast import Event
from dicast_ledger import Sqlite

async def write():
    async with Sqlite(Path("ledger.db")).open() as live:
        live.append([Event("1", "run.started", "2026-03-01T12:00:00.000Z", "R", {})])

asyncio.run(write())
"""


def test_importing_dicast_brings_in_nothing_that_only_a_run_needs():
    """Which takes as long as all else in it."""
    heavy = ("asyncio", "ssl", "yaml", "dicast._kernel.run.run", "numpy", "aiohttp", "httpx")
    asked = f"import sys, dicast; print([name for name in {heavy} if name in sys.modules])"
    found = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_reading_a_ledger_file_brings_in_no_event_loop_and_nothing_that_builds_pipelines(tmp_path):
    subprocess.run([sys.executable, "-c", MAKE_LEDGER], cwd=tmp_path, check=True)
    heavy = ("asyncio", "ssl", "yaml", "cattrs", "dicast._kernel.pipeline.slots", "numpy")
    read = "found = dicast.read_ledger(Path('ledger.db'), lambda live: live.head().seq)"
    asked = f"import sys, dicast; from pathlib import Path; {read}; print(found, [one for one in {heavy} if one in sys.modules])"
    command = [sys.executable, "-c", asked]
    found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "1 []"


def folder_lines(folder: Path) -> int:
    return sum(code_lines(path) for path in modules(folder))


def measured_folders() -> list[str]:
    """Return the folders that have a bar: of the framework, of the kernel, the packages of plugins, and rooms of packages with several."""
    packages = [
        path for source in sources()[1:] for path in sorted(source.iterdir()) if (path / "__init__.py").exists()
    ]
    folders = [KERNEL, KERNEL / "_kernel", *packages]
    inner = [path for folder in folders for path in sorted(folder.iterdir()) if (path / "__init__.py").exists()]
    return [str(path.relative_to(ROOT)) for path in (*packages, *inner)]


def test_every_folder_has_a_bar():
    assert sorted(FOLDER_BARS) == sorted(measured_folders())


@pytest.mark.parametrize("folder", FOLDER_BARS)
def test_each_folder_stays_within_its_bar_and_leaves_room_for_the_guide(folder):
    lines, bar = folder_lines(ROOT / folder), FOLDER_BARS[folder]
    room = sum(len(added) for path, added in guide_changes().items() if path.is_relative_to(ROOT / folder))
    assert lines + room <= bar, (
        f"{lines} lines, and {GUIDE.relative_to(ROOT)} adds {room}, which a reader of the guide may not miss"
    )


@pytest.mark.parametrize("folder", sources(), ids=lambda path: str(path.relative_to(ROOT)))
def test_no_module_has_a_name_that_says_nothing(folder):
    names = [path for path in folder.rglob("*") if path.name != "__pycache__"]
    assert [str(path.relative_to(ROOT)) for path in names if VAGUE & set(re.split(r"[_\-.]", path.name))] == []


# Names and versions


@pytest.mark.parametrize("folder", PLUGINS + CONTRIB, ids=lambda path: path.name)
def test_folder_entry_point_and_package_are_one_word(folder):
    """A folder with several plugins has a package or a subpackage for each."""
    metadata = project(folder)["project"]
    assert metadata["name"] == f"dicast-{folder.name}".replace("_", "-")
    plugins, package = metadata["entry-points"]["dicast"], f"dicast_{folder.name}"
    assert plugins in ({name: f"dicast_{name}" for name in plugins}, {name: f"{package}.{name}" for name in plugins})
    assert (folder / "src" / f"dicast_{folder.name}" / "__init__.py").is_file()
    assert (folder / "src" / f"dicast_{folder.name}" / "py.typed").is_file()
    assert (folder / "README.md").is_file()


@pytest.mark.parametrize("folder", PLUGINS, ids=lambda path: path.name)
def test_a_plugins_pyproject_holds_metadata_only(folder):
    assert set(project(folder).get("tool", {})) <= {"uv"}


def test_kernel_and_plugins_have_one_version():
    versions = {folder.name: project(folder)["project"]["version"] for folder in [ROOT, *MEMBERS]}
    assert len(set(versions.values())) == 1, versions


VERSIONS = ("3.11", "3.12", "3.13", "3.14")
"""The versions of Python that CI runs, where the machine has them."""


def test_the_versions_of_python_are_the_same_wherever_they_are_named():
    prefix = "Programming Language :: Python :: 3."
    for folder in [ROOT, *MEMBERS, *CONTRIB]:
        metadata = project(folder)["project"]
        named = [line.rpartition(" ")[2] for line in metadata.get("classifiers", []) if line.startswith(prefix)]
        assert named in ([*VERSIONS], []), folder
        assert named or folder not in (ROOT, ROOT / "framework")
        assert metadata["requires-python"] == f">={VERSIONS[0]}", folder
    first, last = VERSIONS[0], VERSIONS[-1]
    said = {
        path: " ".join((ROOT / path).read_text(encoding="utf-8").split())
        for path in ("README.md", "CONTRIBUTING.md", ".ci/run")
    }
    assert f"CI runs {', '.join(VERSIONS[:-1])} and {last}" in said["README.md"]
    assert f"Python from {first} to {last}" in said["CONTRIBUTING.md"]
    assert f"3.1[{first[-1]}-{last[-1]}]" in said[".ci/run"]
    assert f"for version in {' '.join(VERSIONS)}; do" in said[".ci/run"]  # lists versions that were not run


def test_the_tests_run_on_a_version_that_is_claimed():
    assert f"{sys.version_info.major}.{sys.version_info.minor}" in VERSIONS


@pytest.mark.parametrize("folder", [ROOT, *MEMBERS], ids=lambda path: path.name)
def test_siblings_are_required_as_a_range(folder):
    metadata = project(folder)["project"]
    major, minor = (int(part) for part in metadata["version"].split(".")[:2])
    extras = [line for lines in metadata.get("optional-dependencies", {}).values() for line in lines]
    ranges = requirements(metadata.get("dependencies", []) + extras)
    wrong = {
        name: text
        for name, text in ranges.items()
        if name.startswith("dicast-") and text != f">={major}.{minor},<{major}.{minor + 1}"
    }
    assert wrong == {}


def test_every_plugin_is_part_of_the_distribution():
    root = project(ROOT)
    extras = [line for lines in root["project"].get("optional-dependencies", {}).values() for line in lines]
    offered = requirements(root["project"]["dependencies"] + extras)
    expected = {"dicast-kernel", "dicast-rubrics"} | {project(plugin)["project"]["name"] for plugin in PLUGINS}
    assert expected <= set(offered)
    assert expected <= set(root["tool"]["uv"]["sources"])


def test_every_plugin_is_under_the_import_contracts():
    linter = project(ROOT)["tool"]["importlinter"]
    packages = {path.parent.name for plugin in PLUGINS + CONTRIB for path in plugin.glob("src/*/__init__.py")}
    independence = next(contract for contract in linter["contracts"] if contract["type"] == "independence")
    assert set(linter["root_packages"]) == {"dicast"} | packages
    assert set(independence["modules"]) == packages


def test_the_closed_core_is_held_by_an_import_contract():
    linter = project(ROOT)["tool"]["importlinter"]
    contract = next(contract for contract in linter["contracts"] if contract["name"].startswith("The closed core"))
    closed = {f"dicast._kernel.{name}" for name in (*CORE, "classes", "events")}
    folders = {f"dicast._kernel.{path.parent.name}" for path in (KERNEL / "_kernel").glob("*/__init__.py")}
    assert set(contract["source_modules"]) == closed
    assert set(contract["forbidden_modules"]) == folders - closed
    assert not linter.get("exclude_type_checking_imports")
    assert contract.keys() == {"name", "type", "source_modules", "forbidden_modules"}


def test_every_dependency_has_a_tested_version():
    root = project(ROOT)
    groups = [line for lines in root["dependency-groups"].values() for line in lines]
    needed = set(requirements(groups))
    for folder in [ROOT, *MEMBERS]:
        metadata = project(folder)["project"]
        extras = [line for lines in metadata.get("optional-dependencies", {}).values() for line in lines]
        needed |= set(requirements(metadata.get("dependencies", []) + extras))
    pinned = requirements(root["tool"]["uv"]["constraint-dependencies"])
    assert all(version.startswith("==") for version in pinned.values())
    missing = {name.lower() for name in needed if not name.startswith("dicast")} - set(pinned)
    assert missing == set(), "run .ci/upgrade"


def test_a_plain_install_has_fewer_than_25_distributions():
    own = {project(folder)["project"]["name"]: folder for folder in [ROOT, *MEMBERS]}
    found: set[tuple[str, str]] = set()
    wanted = [Requirement("dicast")]
    while wanted:
        requirement = wanted.pop()
        name = canonicalize_name(requirement.name)
        for extra in {"", *requirement.extras} - {extra for known, extra in found if known == name}:
            found.add((name, extra))
            if name in own:
                metadata = project(own[name])["project"]
                lines = metadata["optional-dependencies"][extra] if extra else metadata.get("dependencies", [])
            else:
                lines = requires(name) or []
            needed = map(Requirement, lines)
            wanted += [one for one in needed if one.marker is None or one.marker.evaluate({"extra": extra})]
    found = {name for name, _ in found}
    assert {"dicast-kernel", "orjson", "markdown-it-py"} <= found
    assert len(found) < 25, sorted(found)
    page = (ROOT / "docs" / "start" / "install.md").read_text()
    assert f"A plain install has {len(found)} distributions" in page


def test_no_lock_file_is_tracked():
    if not (ROOT / ".git").exists() or shutil.which("git") is None:
        pytest.skip("not a git checkout")
    listed = subprocess.run(["git", "ls-files", "*uv.lock"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert listed.stdout == ""


# Boundaries


@pytest.mark.parametrize("folder", PLUGINS + CONTRIB, ids=lambda path: path.name)
def test_plugins_and_their_tests_import_the_public_api_alone(folder):
    packages = {path.parent.name for path in folder.glob("src/*/__init__.py")}
    for path in modules(folder):
        for line, name in module(path).imports:
            place = f"{path.relative_to(ROOT)}:{line} imports {name}"
            assert not name.startswith("dicast._"), place
            assert not name.startswith("dicast_") or name.split(".")[0] in packages, place


@pytest.mark.parametrize("folder", ["examples", "benchmarks"])
def test_nobody_else_imports_private_modules(folder):
    found = [(path, name) for path in modules(ROOT / folder) for _, name in module(path).imports]
    assert [(str(path), name) for path, name in found if name.startswith("dicast._")] == []


def test_rubrics_hold_no_python():
    assert list((ROOT / "rubrics").rglob("*.py")) == []


# Hooks


def hooks() -> dict[str, str]:
    """Hook name to docstring."""
    nodes = [node for node in parsed(HOOKS).body if isinstance(node, ast.FunctionDef)]
    return {node.name: ast.get_docstring(node) or "" for node in nodes if node.name.startswith("dicast_")}


@pytest.mark.parametrize("name", hooks())
def test_every_hook_says_what_it_is_for_and_shows_it(name):
    assert "Called by the kernel" in hooks()[name]
    assert "Example::" in hooks()[name]


def test_hooks_take_no_arguments():
    nodes = [node for node in parsed(HOOKS).body if isinstance(node, ast.FunctionDef)]
    assert [node.name for node in nodes if node.name.startswith("dicast_") and ast.unparse(node.args)] == []


def test_hooks_page_lists_exactly_the_hooks():
    page = (ROOT / "docs" / "reference" / "hooks.md").read_text(encoding="utf-8")
    assert re.findall(r"^## `(dicast_\w+)\(\)`$", page, re.MULTILINE) == list(hooks())
