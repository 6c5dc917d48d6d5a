"""No run writes over a file that it reads."""

from __future__ import annotations

import pytest

from dicast import ConfigError, RequestError, run
from dicast.toolkit.overwriting import is_same_file, refuse_overwrite

PIPELINE = """
include: rest.yaml
source: {rows/jsonl: {path: rows.jsonl}}
judges: [evaluator/judge: {objective: "Is it right?", model: {openai/chat: {base_url: "http://127.0.0.1:9/v1", model: m, price: free}}}]
sinks: [jsonl/rows: {path: %s}]
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.jsonl").write_text('{"id": "1", "output": "x"}\n')
    (tmp_path / "rest.yaml").write_text("metrics: [evaluator/command: {command: [python3, evaluate.py]}]\n")
    (tmp_path / "evaluate.py").write_text("print('{\"score\": 1}')\n")
    (tmp_path / "soft").symlink_to("rows.jsonl")
    (tmp_path / "hard").hardlink_to(tmp_path / "rows.jsonl")
    return tmp_path


@pytest.mark.parametrize("name", ["rows.jsonl", "soft", "hard", "rest.yaml", "pipeline.yaml", "evaluate.py"])
def test_a_sink_that_would_write_over_a_file_of_the_run_is_refused(folder, name):
    (folder / "pipeline.yaml").write_text(PIPELINE % name)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises(RequestError, match=f"would overwrite .*{name}; use another file"):
        run(folder / "pipeline.yaml")
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_files_are_the_same_through_links(folder):
    assert is_same_file(folder / "soft", folder / "hard")
    assert not is_same_file(folder / "rows.jsonl", folder / "rest.yaml")
    assert is_same_file(folder / "new", folder / "x" / ".." / "new")


def test_an_output_that_is_an_input_is_refused_with_the_inputs_name(folder):
    with pytest.raises(ConfigError, match="the command reads this file as the data set"):
        refuse_overwrite(folder / "hard", {"the data set": folder / "rows.jsonl"})
    refuse_overwrite(folder / "new", [folder / "rows.jsonl"])
    refuse_overwrite(None, [folder / "rows.jsonl"])
