"""Runs to report on, and the browser that shows them."""

from __future__ import annotations

import contextlib
import io
import json
import os
from importlib.metadata import entry_points
from pathlib import Path

import pytest


def call(folder, *arguments, code=0):
    """Run ``dicast`` in *folder*, in this process; return its output."""
    (command,) = entry_points(group="console_scripts", name="dicast")
    printed, errors = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    with contextlib.chdir(folder), contextlib.redirect_stdout(printed), contextlib.redirect_stderr(errors):
        exit_code = command.load()(list(map(str, arguments)))  # given arguments, it leaves the process to its owner
    assert exit_code == code, printed.buffer.getvalue() + errors.buffer.getvalue()
    return printed.buffer.getvalue().decode()


def written(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


@pytest.fixture(scope="session")
def dicast():
    """Return a function that runs the command: ``dicast(FOLDER, "run", "pipeline.yaml", code=1)``."""
    return call


@pytest.fixture(scope="session")
def write_rows():
    """Return a function that writes JSON lines: ``write_rows(PATH, ROWS)``."""
    return written


@pytest.fixture(scope="session")
def outside_data():
    """Return the folder of the outside data sets."""
    folder = os.environ.get("DICAST_OUTSIDE_DATA")
    if not folder:
        pytest.skip("DICAST_OUTSIDE_DATA names no folder")
    return Path(folder)


class Tab:
    """A page in a browser that records forbidden actions: requests, dialogs, console errors."""

    def __init__(self, browser, file, *, hash="", width=1280, theme="light", wait=".virtual-row"):
        self.context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=theme)
        self.page = self.context.new_page()
        self.requests, self.dialogs, self.complaints = [], [], []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("dialog", self._dismiss)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.goto(f"{Path(file).as_uri()}{hash}")
        if wait:
            self.page.wait_for_selector(wait)

    def _dismiss(self, dialog):
        self.dialogs.append(dialog.message)
        dialog.dismiss()

    def __enter__(self):
        return self.page

    def __exit__(self, *error):
        self.context.close()
        if error[0] is None:
            assert self.dialogs == []
            assert self.complaints == []
            assert len(self.requests) == 1, self.requests


@pytest.fixture
def open_page(chromium):
    """Return a function that opens a file: ``with open_page(FILE) as page``."""
    return lambda file, **options: Tab(chromium, file, **options)


ROWS = [
    {"id": "turkey", "input": "Turkey", "output": "Ankara", "reference": "Ankara", "session_id": "a"},
    {"id": "peru", "input": "Peru", "output": "The capital is Lima", "reference": "Lima", "session_id": "a"},
    {"id": "kenya", "input": "Kenya", "output": "Nairobi", "reference": "Nairobi", "session_id": "b"},
    {"id": "norway", "input": "Norway", "output": "Oslo", "session_id": "c"},
    {"id": "ghana", "input": "Ghana", "output": "", "reference": "Accra", "session_id": "c"},
    {"id": "chile", "input": "Chile", "output": "Santiago de Chile, as far as I know", "reference": "Santiago"},
]
"""One has no reference, and so no score."""

PIPELINE = """name: capitals
source: {rows/jsonl: {path: rows.jsonl}}
metrics:
  - proxy/length: {max: 20, weight: 0.3}
  - diff/match: {as: right}
  - diff/similarity: {as: like.ness}
aggregates: [stats/distribution, stats/score_stats]
baseline: {run: last, compare: [stats/paired, stats/flips]}
gate: [{min_score: 0.6, min_coverage: 0.8}, {on: right, min_pass_rate: 0.9, bound: interval}]
sinks: [{report/html: {path: out/report.html}}]
ledger: {ledger/sqlite: {path: ledger.db}}
"""


@pytest.fixture(scope="session")
def capitals(tmp_path_factory):
    """Return a folder with two runs, the second compared with the first, and its document as printed."""
    folder = tmp_path_factory.mktemp("capitals")
    (folder / "pipeline.yaml").write_text(PIPELINE)
    before = [{**row, "output": row["output"].replace("The capital is ", "")} for row in ROWS]
    written(folder / "rows.jsonl", [{**before[0], "output": "Istanbul"}, *before[1:]])
    call(folder, "run", "pipeline.yaml", "--json", code=1)
    written(folder / "rows.jsonl", ROWS)
    (folder / "document.json").write_text(call(folder, "run", "pipeline.yaml", "--json", code=1))
    return folder
