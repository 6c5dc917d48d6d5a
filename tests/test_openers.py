"""Only one module opens files that users name: it checks their kind and bounds their size. Measured from the source."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = [ROOT / "framework" / "dicast", *sorted(ROOT.glob("plugins/*/src")), *sorted(ROOT.glob("contrib/*/src"))]

ALLOWED = {
    "contrib/llamacpp/src/dicast_llamacpp/file.py": "reads the source of an installed package",
    "contrib/postgres/src/dicast_postgres/versions.py": "statements inside the distribution",
    "contrib/segments/src/dicast_segments/stores.py": "a folder, to write its names to the disk",
    "contrib/sql/src/dicast_sql/command.py": "the result in its own temporary folder",
    "framework/dicast/toolkit/files.py": "the opener",
    "framework/dicast/toolkit/input_file.py": "unpacks gzip",
    "framework/dicast/toolkit/process_tree.py": "files of /proc about processes",
    "framework/dicast/toolkit/databases.py": "a database, behind check_regular",
    "framework/dicast/toolkit/installing.py": "metadata of a distribution",
    "framework/dicast/_kernel/contract/registry.py": "metadata of a distribution",
    "framework/dicast/_kernel/contract/requirements.py": "metadata of a distribution",
    "framework/dicast/_kernel/pipeline/rubrics.py": "rubrics inside a distribution",
    "framework/dicast/_kernel/leases/hold_lease.py": "files of /proc about processes",
    "framework/dicast/_kernel/cli/new.py": "templates inside the distribution",
    "framework/dicast/_kernel/cli/outputs.py": "the table that the run has just written",
    "framework/dicast/testing/watching.py": "files of /proc about threads",
    "plugins/ledger/src/dicast_ledger/format4/counting.py": "a copy of the database in memory",
    "framework/dicast/_processes/worker.py": "the null device",
    "framework/dicast/testing/sinks.py": "the conformance kit reads what a sink wrote",
    "framework/dicast/testing/members.py": "the conformance kit reads the source of a plugin",
    "plugins/otel/src/dicast_otel/spool.py": "the database of received spans, which dicast makes",
    "plugins/cache/src/dicast_cache/cache/store.py": "a database, behind check_regular",
    "plugins/check/src/dicast_check/run_python.py": "a process without dicast; the parent compared the digest of the file",
    "plugins/github/src/dicast_github/command.py": "its own temporary file",
    "plugins/ledger/src/dicast_ledger/file.py": "a database, behind check_regular",
    "plugins/litellm/src/dicast_litellm/prices.py": "a list inside a distribution",
    "plugins/patterns/src/dicast_patterns/store.py": "a database, behind check_regular",
    "plugins/cache/src/dicast_cache/replay/recording.py": "appends to the recording, behind check_regular",
    "plugins/report/src/dicast_report/page.py": "scripts inside the distribution",
    "plugins/sandbox/src/dicast_sandbox/workspace/archive.py": "archives in memory",
    "plugins/sandbox/src/dicast_sandbox/backends/docker/program.py": "archives in memory",
    "plugins/sandbox/src/dicast_sandbox/backends/none.py": "a report of the program in its own temporary folder",
    "plugins/sandbox/src/dicast_sandbox/backends/bubblewrap/reaper.py": "files of /proc about processes",
    "plugins/sandbox/src/dicast_sandbox/workspace/repository.py": "archives in memory",
    "plugins/sandbox/src/dicast_sandbox/backends/bubblewrap/watch.py": "files of /proc about processes",
    "plugins/serve/src/dicast_serve/pages.py": "scripts inside the distribution",
    "plugins/traces/src/dicast_traces/live/tail.py": "a regular file that grows, of which it reads parts",
    "plugins/trust/src/dicast_trust/cards/canaries.py": "a list inside the distribution",
    "contrib/pytest/src/dicast_pytest/sharing.py": "its own temporary file",
}
"""Modules that open files by themselves, and which files."""

_INSIDE = "sandbox/src/dicast_sandbox/inside/"
"""Programs that run in a sandbox, without dicast."""

_FUNCTIONS = {"open", "os.open", "io.open", "sqlite3.connect", "tarfile.open", "gzip.open", "np.load"}
_METHODS = {"read_text", "read_bytes"}
_LAST_NAMES = {name.rpartition(".")[2] for name in _FUNCTIONS} | _METHODS


def _opens(module: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield each call that opens a file to read it, with its line."""
    for call in ast.walk(module):
        if not isinstance(call, ast.Call):
            continue
        if getattr(call.func, "attr", getattr(call.func, "id", "")) not in _LAST_NAMES:
            continue
        name = ast.unparse(call.func)
        first = call.args[0] if call.args else None
        if name == "sqlite3.connect" and isinstance(first, ast.Constant) and first.value == "":
            continue  # a temporary database
        if (
            name in _FUNCTIONS
            or isinstance(call.func, ast.Attribute)
            and call.func.attr in _METHODS
            or isinstance(call.func, ast.Attribute)
            and call.func.attr == "open"
            and _is_read(call)
        ):
            yield call.lineno, name


def _is_read(call: ast.Call) -> bool:
    """Return whether *call* of a method ``open`` has the mode of a file that is read; components have such a method too."""
    first = call.args[0] if call.args else None
    mode = first.value if isinstance(first, ast.Constant) else None
    keywords = {keyword.arg for keyword in call.keywords}
    if isinstance(mode, str):
        return "r" in mode or "+" in mode
    return first is None and bool(keywords & {"encoding", "buffering", "errors", "newline"})


@cache
def _places() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for path in (path for folder in FOLDERS for path in folder.rglob("*.py") if "templates" not in path.parts):
        name = str(path.relative_to(ROOT))
        calls = [f"{name}:{line} {call}" for line, call in _opens(ast.parse(path.read_text(encoding="utf-8")))]
        if calls and _INSIDE not in name:
            found[name] = calls
    return found


def test_files_of_the_user_are_opened_by_one_module():
    outside = [call for name, calls in _places().items() if name not in ALLOWED for call in calls]
    assert outside == [], "use dicast.toolkit.files, or InputFile for a file of lines"


def test_every_exception_is_still_needed():
    assert sorted(set(ALLOWED) - set(_places())) == []


@pytest.mark.parametrize(
    ("code", "count"),
    [
        ("open(path)", 1),
        ("path.open('rb')", 1),
        ("path.open(encoding='utf-8')", 1),
        ("path.read_text()", 1),
        ("os.open(path, os.O_RDONLY)", 1),
        ("path.open('x')", 0),
        ("component.open(run)", 0),
        ("read_text(path)", 0),
        ("sqlite3.connect('')", 0),
    ],
)
def test_a_call_that_opens_a_file_is_recognized(code, count):
    assert len(list(_opens(ast.parse(code)))) == count
