"""What a terminal shows, at two widths, drawn and plain, against files in ``tests/golden/screens``.

``python tests/test_screens.py`` writes the files anew; ``cat`` of one with ``.ansi`` shows it as the terminal did.
"""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import runpy
import struct
import subprocess
import sys
import tempfile
import termios
import threading
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from unittest.mock import patch

import pytest

from dicast._kernel.cli import main
from dicast._kernel.contract.registry import Registry
from dicast.toolkit.installing import how_to_install
from dicast.toolkit.terminal import drawn as rich_text
from dicast.toolkit.text_table import TextTable

GOLDEN = Path(__file__).with_name("golden") / "screens"
CASE_PICTURES = GOLDEN / "cases"
CASES = runpy.run_path(str(Path(__file__).with_name("screen_cases.py")))
MISSING = ("openai", "llm", "parquet")
LONGER = {"head-80.ansi", "suite-80.ansi"}
"""Screens that have a table of rows or several experiments after the summary."""
WIDTHS = (80, 120)
COMMANDS = {
    "show": ("show", "r2"),
    "show-run": ("show", "last"),
    "show-run-full": ("show", "last", "--full"),
    "compare": ("compare", "before", "after", "--allow-incomparable"),
    "runs": ("runs",),
    "plugins": ("plugins", "shown"),
    "run": ("run", "after.yaml"),  # the last, for the others would show its run
}
ROWS = [
    {"id": "r1", "input": "The capital of France?", "output": "Paris", "reference": "Paris"},
    {"id": "r2", "input": "The capital of Spain?", "output": "TODO: it is Madrid", "reference": "Madrid"},
    {"id": "r3", "input": "The capital of Italy?", "output": "Milan", "reference": "Rome"},
    {"id": "r4 [red]\x1b[31m", "input": "The capital of Japan?", "output": "東京", "reference": "東京"},
    {"id": "r5", "input": "The capital of Peru?"},
]
PIPELINE = """
name: {name}
source: {{rows/jsonl: {{path: {name}.jsonl}}}}
metrics: [proxy/format, proxy/keywords: {{as: tidy, forbidden: [TODO]}}, diff/match: {{as: correct}}]
gate: {gate}
"""
FILES = {
    "before": "[{on: tidy, min_pass_rate: 0.1}, {on: correct, min_score: 0.9, min_coverage: 0.5}]",
    "after": "[{on: tidy, min_pass_rate: 0.5, bound: interval, min_coverage: 0.8}, {on: correct, min_score: 0.2}]",
}
SHOWN = '''
from dicast import Score, hookimpl, metric

@metric(tier="proxy")
def brevity(subject, *, words: int = 120):
    """1.0 up to *words* words, then falling off: a summary that is as long as such a summary may become.

    :param words: how many words are few enough, for a text that is to be read by somebody who has a minute and no more.
    """
    return Score(1.0)

@hookimpl
def dicast_metrics():
    return [brevity]
'''


def drawn(width, *arguments):
    """What ``dicast`` prints on a terminal of *width* columns."""
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
    said = bytearray()
    reader = threading.Thread(target=_read, args=(ours, said))
    reader.start()
    with open(its, "w") as out, redirect_stdout(out):
        main([*arguments])
    reader.join()
    return said.decode().replace("\r\n", "\n")


def _read(terminal, said):
    try:
        while part := os.read(terminal, 65536):
            said += part
    except OSError:  # the other side is closed
        pass
    os.close(terminal)


def written(*arguments):
    """What ``dicast`` prints into a file."""
    with tempfile.TemporaryFile("w+") as file:
        with redirect_stdout(file):
            main([*arguments])
        file.seek(0)
        return file.read()


def masked(text):
    """*text* without what differs from run to run."""
    listed = json.loads(written("runs", "--json"))["runs"]
    for number, run in enumerate(reversed(listed), 1):
        text = text.replace(run["run_id"], f"RUN-{number:022}").replace(run["run_id"][-6:], f"RUN-{number:02}")
    text = re.sub(r"\b20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", "YYYY-MM-DDTHH:MM:SS.mmmZ", text)
    return re.sub(r"\b\d\d-\d\d \d\d:\d\d\b", "MM-DD HH:MM", re.sub(r"\b[0-9a-f]{64}\b", "DIGEST", text))


@contextmanager
def shop():
    """A folder with two pipelines that were run, one after the other, and a plugin."""
    with tempfile.TemporaryDirectory() as name, chdir(name):
        info = Path("site/dicast_shown-1.0.dist-info")
        info.mkdir(parents=True)
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: dicast-shown\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text("[dicast]\nshown = dicast_shown\n")
        Path("site/dicast_shown.py").write_text(SHOWN)
        for file, gate in FILES.items():
            rows = ROWS if file == "after" else [{**row, "output": "Rome"} for row in ROWS]
            Path(f"{file}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
            Path(f"{file}.yaml").write_text(PIPELINE.format(name=file, gate=gate))
        sys.path.insert(0, str(Path("site").resolve()))
        try:
            for file in FILES:
                written("run", f"{file}.yaml")
            yield
        finally:
            del sys.path[0]
            sys.modules.pop("dicast_shown", None)


def screens():
    """Every screen by the name of its file."""
    found = {}
    for width in WIDTHS:
        with shop():
            for name, arguments in COMMANDS.items():
                for kind, more in (("ansi", []), ("txt", ["--plain"])):
                    found[f"{name}-{width}.{kind}"] = masked(drawn(width, *arguments, *more))
    return found


def case_screens():
    """Return the screens of :mod:`screen_cases` by the names of their files."""
    pictures = {}
    for width in WIDTHS:
        with case_folder() as folder:
            for name, arguments in CASES["COMMANDS"].items():
                errors = StringIO()
                with redirect_stderr(errors), without_extras():
                    output = drawn(width, *arguments)
                text = output + errors.getvalue().replace(how_to_install(*MISSING), "INSTALL")
                text = re.sub(r"installed: \d+", "installed: N", text.replace(str(folder), "FOLDER"))
                pictures[f"{name}-{width}.ansi"] = masked(text)
    return pictures


@contextmanager
def case_folder():
    """Make the folder of the cases the current folder."""
    with tempfile.TemporaryDirectory() as name, chdir(name):
        folder = Path(name).resolve()
        CASES["write_cases"](folder)
        sys.path.insert(0, str(folder / "site"))
        try:
            yield folder
        finally:
            del sys.path[0]
            sys.modules.pop("dicast_shaky", None)


@contextmanager
def without_extras():
    """Hide the plugins in :data:`MISSING`, as in an environment without their extras."""
    scan = Registry.scan
    with patch.object(Registry, "scan", lambda self: {k: v for k, v in scan(self).items() if k not in MISSING}):
        yield


@pytest.fixture
def terminal(monkeypatch):
    """An environment with a terminal that has colours."""
    for variable in [name for name in os.environ if name.startswith("DICAST_")]:
        monkeypatch.delenv(variable)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")


def test_screens_are_as_they_were(terminal):
    found = screens()
    assert {path.name for path in GOLDEN.iterdir() if path.is_file()} == set(found)
    for name, text in found.items():
        assert text == (GOLDEN / name).read_text(encoding="utf-8"), f"{name}; if that is meant: python {__file__}"


@pytest.mark.slow
def test_screens_of_the_cases_equal_their_pictures(terminal):
    pictures = case_screens()
    assert {path.name for path in CASE_PICTURES.iterdir()} == set(pictures)
    for name, text in pictures.items():
        assert text == (CASE_PICTURES / name).read_text(encoding="utf-8"), f"{name}; to draw it anew: python {__file__}"


def test_summaries_of_the_cases_fit_on_one_screen():
    """A screen has 24 rows; a summary leaves two for the command and the prompt."""
    for path in CASE_PICTURES.glob("*-80.ansi"):
        text = re.sub("\x1b[^a-zA-Z]*[a-zA-Z]", "", path.read_text(encoding="utf-8"))
        if text.startswith("gate: ") and path.name not in LONGER:
            assert len(text.splitlines()) <= 22, path.name
            assert all(len(line) <= 80 for line in text.splitlines()), path.name


def test_plain_text_is_that_of_a_pipe(terminal, monkeypatch):
    with shop():
        for arguments in [
            ("show", "last"),
            ("show", "r2"),
            ("runs",),
            ("compare", "before", "after", "--allow-incomparable"),
        ]:
            piped = written(*arguments)
            assert "\x1b" not in piped
            assert "\x1b" in drawn(100, *arguments)
            assert drawn(100, "--plain", *arguments) == drawn(100, *arguments, "--plain") == piped
            for name, value in (("NO_COLOR", "1"), ("TERM", "dumb")):
                with monkeypatch.context() as patched:
                    patched.setenv(name, value)
                    assert drawn(100, *arguments) == piped


def test_what_others_wrote_steers_no_terminal_and_is_no_markup(terminal):
    with shop():
        shown = drawn(80, "show", "r4 [red]\x1b[31m")
    assert r"r4 [red]\u001b[31m" in shown
    assert set(re.findall("\x1b[^a-zA-Z]*[a-zA-Z]", shown)) <= {
        f"\x1b[{n}m" for n in ("0", "1", "32", "1;31", "1;33", "2")
    }


def test_names_of_columns_and_cells_are_escaped_where_they_are_drawn():
    table = TextTable(["\x1b[2J[b]", "wide 東京"], [["\x1b]0;title\x07", "[red]x[/red]\n"], ["\u202e", ":smile:"]])
    shown = re.sub("\x1b\\[[01]m", "", rich_text([table, "\x9b2J \x1b[2J [i]\tx"], 80))
    assert [line.split("  ")[0] for line in shown.splitlines()] == [
        r"\u001b[2J[b]",
        r"\u001b]0;title\u0007",
        r"\u202e",
        r"\u009b2J \u001b[2J [i]",
    ]
    assert r"[red]x[/red]\n" in shown
    assert ":smile:" in shown


def test_no_colour_stands_alone(terminal):
    """Without its colours the screen says in words what passed and what failed."""
    with shop():
        for arguments in (("show", "last"), ("runs",)):
            words = re.sub("\x1b[^a-zA-Z]*[a-zA-Z]", "", drawn(80, *arguments)).split()
            for word in re.findall("\x1b\\[(?:1;)?3[0-9]m([^\x1b]+)", drawn(80, *arguments)):
                assert word.split()[-1] in {"passed", "failed", "undecided", "missing_input", "warning"}
                assert word.split()[-1] in {one.strip(":") for one in words}


def test_rich_is_imported_where_something_is_drawn_and_nowhere_else():
    code = "import sys; from dicast._kernel.cli import main; main(['plugins']); print('rich' in sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=200)
    assert done.stderr == "False\n"


def test_a_process_draws_on_the_terminal_it_has(terminal):
    with shop():
        ours, its = pty.openpty()
        fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        said = bytearray()
        reader = threading.Thread(target=_read, args=(ours, said))
        with subprocess.Popen(
            [sys.executable, "-m", "dicast", "show", "last"], stdout=its, stderr=its, stdin=its
        ) as process:
            os.close(its)
            reader.start()
            process.wait(200)
        reader.join()
        assert said.decode().replace("\r\n", "\n") == drawn(80, "show", "last")


if __name__ == "__main__":
    os.environ |= {"TERM": "xterm-256color"}
    GOLDEN.mkdir(exist_ok=True)
    for name, text in screens().items():
        (GOLDEN / name).write_text(text, encoding="utf-8")
        print(name, file=sys.stderr)
    CASE_PICTURES.mkdir(exist_ok=True)
    for name, text in case_screens().items():
        (CASE_PICTURES / name).write_text(text, encoding="utf-8")
        print(name, file=sys.stderr)
