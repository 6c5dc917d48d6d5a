"""Runs of mypy --strict and of strict basedpyright over files, as an author runs them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CACHE = ROOT / ".mypy_cache" / "authors"
MYPY_LINE = re.compile(r"(?P<path>.+?):(?P<line>\d+): error: (?P<message>.*)")


def mypy_errors(*paths, search=()):
    """Return the errors of mypy --strict for files: path, line and message. *search* are the folders of modules that the files import."""
    command = ["--strict", "--config-file=", f"--cache-dir={CACHE}", "--no-error-summary", "--explicit-package-bases"]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *command, *paths],
        env={**os.environ, "MYPYPATH": os.pathsep.join(map(str, search))},
        check=False,
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    matches = map(MYPY_LINE.match, done.stdout.splitlines())
    return [((ROOT / match["path"]).resolve(), int(match["line"]), match["message"]) for match in matches if match]


def basedpyright_errors(folder, *paths, **rules):
    """Return the errors of strict basedpyright for files: path, line and message. Its configuration, with *rules*, is written to *folder*."""
    settings = {
        "include": [str(path) for path in paths],
        "pythonVersion": "3.11",
        "typeCheckingMode": "strict",
        **rules,
    }
    config = folder / "pyrightconfig.json"
    config.write_text(json.dumps(settings))
    command = ["basedpyright", "-p", str(config), "--outputjson", "--pythonpath", sys.executable]
    done = subprocess.run([sys.executable, "-m", *command], check=False, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return [
        (Path(item["file"]).resolve(), item["range"]["start"]["line"] + 1, item["message"])
        for item in json.loads(done.stdout)["generalDiagnostics"]
        if item["severity"] == "error"
    ]
