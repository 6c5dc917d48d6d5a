"""Programs that a command has to start, and checks of whether a sandbox has them.

The checks run without any file of the candidate, so that the candidate cannot influence them.
"""

from __future__ import annotations

import json
import posixpath
import re
import shlex
from collections.abc import Iterator, Sequence

import attrs

from dicast import Execution, Limits, Program

from ..workspace.workspace import Workspace

_PLAIN = re.compile(r"[\w@%+=:,./-]+")
_PYTHON = re.compile(r"(?:.*/)?python[\d.]*")
_VARIABLE = re.compile(r"(\w+)=")
_LOOKUPS = ("PATH", "PYTHON", "NODE", "NPM")
_OPERATORS = frozenset("();|&")
_RUNNERS = frozenset(("pytest", "unittest", "nose2", "tox", "jest", "vitest", "mocha", "ava", "tap"))
_SHELLS = ("sh", "bash", "dash", "ksh", "zsh")
_FLAGS = re.compile(r"-[cefilux]+")
_SCRIPTS = ("npm", "pnpm", "yarn")
_PROBE = """PATH="$PATH:/tmp/node_modules/.bin:/node_modules/.bin"
case $1 in */*) test -f "$1" && test -x "$1";; *) command -v "$1" >/dev/null;; esac || { echo no program; exit; }
module=$2; shift 2
test -z "$module" || "$@" -c 'import sys
try: __import__(sys.argv[1])
except ImportError as error: print("no module:", error)' "$module"
"""


@attrs.frozen
class Start:
    """A *program* that has to start; for a Python interpreter also the *module* to run, and the words before it as *python*.

    *folder* is the folder in the workspace where it starts, None if that is not known. *words* is the whole command. *is_script* marks a
    script that a shell reads, so that it need not be executable.
    """

    program: str
    folder: str | None = ""
    python: tuple[str, ...] = ()
    module: str = ""
    words: tuple[str, ...] = ()
    is_script: bool = False

    def probe(self, limits: Limits) -> Program:
        """Return the program that looks up this program in an empty workspace."""
        return Program(("/bin/sh", "-c", _PROBE, "sh", self.program, self.module, *self.python), limits)

    def missing_text(self, execution: Execution) -> str | None:
        """Return a message on the program or module that the probe did not find; None if it found both, or if the probe itself failed."""
        answer = execution.output.strip() if execution.exit == 0 and execution.struck is None else ""
        if answer == "no program":
            return f"there is no program {self.program!r} in the sandbox"
        if answer.startswith("no module: "):
            return f"{self.program} cannot import {self.module!r} in the sandbox ({answer.removeprefix('no module: ')})"
        return None


def first_start(command: str | tuple[str, ...]) -> Start | None:
    """Return the program that has to start before *command* can succeed; None if that is not certain."""
    if not isinstance(command, str):
        return _start(command, "")
    folder: str | None = ""
    rest = _tokens(command)
    while rest:
        words, operator, rest = _first_command(rest)
        if words[:1] == ["cd"] and len(words) == 2 and operator in ("&&", ";"):
            folder = _join_inside(folder, words[1])
            continue
        return _start(words, folder) if operator in ("&&", "") else None
    return None


def _tokens(text: str) -> list[str]:
    """Return the words and operators of the shell's *text*; none for several lines, or quotes that only a shell understands."""
    if "\n" in text.strip() or "`" in text or "$(" in text:
        return []
    try:
        lexer = shlex.shlex(text, posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        return list(lexer)
    except ValueError:
        return []


def _first_command(tokens: list[str]) -> tuple[list[str], str, list[str]]:
    """Return the first command of *tokens*, the operator after it, and the rest."""
    for at, token in enumerate(tokens):
        if set(token) <= _OPERATORS:
            return tokens[:at], token, tokens[at + 1 :]
    return tokens, "", []


def _join_inside(folder: str | None, name: str) -> str | None:
    is_known = folder is not None and _PLAIN.fullmatch(name) and not name.startswith(("/", "-"))
    return posixpath.normpath(posixpath.join(folder or "", name)) if is_known else None


def _start(words: Sequence[str], folder: str | None) -> Start | None:
    rest = list(words)
    while rest and ((assignment := _VARIABLE.match(rest[0])) or rest[0] == "exec"):
        if assignment and any(part in assignment[1] for part in _LOOKUPS):
            return None
        rest.pop(0)
    if not rest or not _PLAIN.fullmatch(rest[0]):
        return None
    python, module = _module(rest) if _PYTHON.fullmatch(rest[0]) else ((), "")
    return Start(rest[0], folder, python, module, tuple(rest))


def _module(words: Sequence[str]) -> tuple[tuple[str, ...], str]:
    """Return the interpreter with its options, and the top package of the module that it runs by ``-m``."""
    at = 1
    while at < len(words) - 1 and words[at].startswith("-") and "c" not in words[at]:
        if words[at] == "-m":
            top = words[at + 1].partition(".")[0]
            return (tuple(words[:at]), top) if top.isidentifier() else ((), "")
        at += 2 if words[at] in ("-X", "-W") else 1
    return (), ""


def required_starts(command: str | tuple[str, ...], workspace: Workspace) -> Iterator[Start]:
    """Yield all programs that have to start, including those started by ``env``, a shell, a script's first line and the script of ``npm test``."""
    start = first_start(command)
    while start is not None:
        yield start
        start = _inner_start(start, workspace)


def _inner_start(start: Start, workspace: Workspace) -> Start | None:
    """Return the first program that *start* itself starts; None if that is not certain."""
    name = posixpath.basename(start.program)
    if start.is_script or ("/" in start.program and not start.program.startswith("/")):
        return _interpreter_start(start, workspace)
    if name == "env":
        return _start(start.words[1:], start.folder) if not start.words[1:2] or start.words[1][:1] != "-" else None
    if name in _SHELLS:
        return _shell_start(start)
    package = workspace.file(posixpath.join(start.folder or "", "package.json")) if _is_npm(start) else None
    inner = first_start(test_script(package))
    if inner is not None and inner.folder == "" and b"pretest" not in (package or b""):
        return attrs.evolve(inner, folder=start.folder)
    return None


def _shell_start(start: Start) -> Start | None:
    """Return the program that a shell runs: the command after ``-c``, or a script, which need not be executable."""
    at = next((at for at, word in enumerate(start.words[1:], 1) if not _FLAGS.fullmatch(word)), None)
    if at is None or start.words[at].startswith("-"):
        return None
    if any("c" in word for word in start.words[1:at]):
        inner = first_start(start.words[at])
        folder = None if inner is None or inner.folder is None else _join_inside(start.folder, inner.folder or ".")
        return inner and attrs.evolve(inner, folder=folder)
    word = start.words[at]
    is_known = _PLAIN.fullmatch(word) and not word.startswith("/")
    return Start(word, start.folder, words=(word,), is_script=True) if is_known else None


def _interpreter_start(start: Start, workspace: Workspace) -> Start | None:
    """Return the interpreter in the first line of a script in the workspace; None for a script that a shell reads itself."""
    path = None if start.is_script else _join_inside(start.folder, start.program)
    line = (workspace.file(path) or b"").partition(b"\n")[0] if path else b""
    words = line[2:].decode(errors="replace").split(None, 1) if line.startswith(b"#!") else []
    return _start(" ".join(words).split() if words[:1] == ["/usr/bin/env"] else words, start.folder)


def _is_npm(start: Start) -> bool:
    arguments = start.words[1:3]
    return (
        start.program in _SCRIPTS
        and start.folder is not None
        and (arguments[:1] in (("test",), ("t",)) or arguments == ("run", "test"))
    )


def test_script(package: bytes | None) -> str:
    """Return the script ``test`` of a ``package.json``; empty if there is none, or npm's placeholder."""
    try:
        command = json.loads(package or b"{}").get("scripts", {}).get("test", "")
    except (ValueError, AttributeError):
        return ""
    return command if isinstance(command, str) and "no test specified" not in command else ""


def find_in_workspace(start: Start, workspace: Workspace, output_file: str, *, patch: bool) -> str | bool:
    """Return True if *start* is or may be in the workspace, so that no sandbox has to be asked; else False, or the problem as text.

    A *patch* may add any program except a test runner, so other missing programs are not certain to be missing.
    """
    runs = start.module or start.program
    if not start.is_script and (start.module or "/" not in start.program):
        may = patch and runs not in _RUNNERS
        return may or any(
            _provides(name, runs, start) for name in (*workspace.names, *(() if patch else (output_file,)))
        )
    if start.program.startswith("/"):
        return start.program.startswith("/tmp/")  # noqa: S108  # inside
    path = _join_inside(start.folder, start.program)
    if patch or path is None or path.startswith("..") or path == output_file or workspace.is_linked(path):
        return True
    if path not in workspace.names:
        return f"there is no {path!r} in the workspace"
    return True if start.is_script or workspace.is_executable(path) else f"{path!r} in the workspace is not executable"


def _provides(name: str, runs: str, start: Start) -> bool:
    parts = name.split("/")
    if start.module:
        return runs in parts[:-1] or parts[-1].partition(".")[0] == runs
    return parts[-3:] == ["node_modules", ".bin", runs]
