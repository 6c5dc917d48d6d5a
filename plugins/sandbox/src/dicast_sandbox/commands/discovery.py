"""Detection of the test command of a workspace, from its files."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection

from .starts import test_script

SEARCHED_FILES = (
    "pyproject.toml, pytest.ini, setup.cfg, setup.py, a folder tests or a file test_*.py (pytest), package.json with a script 'test', "
    "Cargo.toml, go.mod, a Makefile with a target 'test'"
)
"""Files that determine the test command of a workspace, in order of precedence."""

_PYTHON = ("pyproject.toml", "pytest.ini", "setup.cfg", "setup.py")
_TESTS = re.compile(r"tests?/.*\.py|test_[^/]*\.py|[^/]*_test\.py")
_MAKEFILES = ("GNUmakefile", "makefile", "Makefile")
_TARGET = re.compile(rb"^test\s*::?(?!=)", re.MULTILINE)


def find_test_command(names: Collection[str], read: Callable[[str], bytes | None]) -> str | None:
    """Return the test command of a workspace with files of these *names*; None if no file indicates one."""
    if any(name in names for name in _PYTHON) or any(map(_TESTS.fullmatch, names)):
        return "python3 -m pytest"
    if "package.json" in names and test_script(read("package.json")):
        return "npm test"
    if "Cargo.toml" in names:
        return "cargo test"
    if "go.mod" in names:
        return "go test ./..."
    makefile = next((name for name in _MAKEFILES if name in names), None)
    return "make test" if makefile and _TARGET.search(read(makefile) or b"") else None
