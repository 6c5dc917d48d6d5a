"""Links, FIFOs and names that lead elsewhere, planted where a sandbox's files or a workload's runs are taken from."""

from __future__ import annotations

import json
import os
import shutil
import subprocess

import pytest

MADE = [shutil.which("bwrap") or "false", "--unshare-all", "--ro-bind", "/", "/", "true"]
SECRET = "the-owners-secret"

needs_sandbox = pytest.mark.skipif(
    subprocess.run(MADE, capture_output=True, check=False).returncode != 0,
    reason="bubblewrap makes no sandbox here (apt install bubblewrap)",
)
PIPELINE = """\
source: {{rows/jsonl: {{path: rows.jsonl}}}}
metrics:
  - sandbox/command:
      command: "cat link folder/secret pipe out.txt; ls -a"
      output_file: {output_file}
      template: template
      backend: sandbox/bubblewrap
ledger: {{ledger/sqlite: {{path: ledger.db}}}}
"""


@needs_sandbox
def test_links_in_a_template_lead_out_of_nothing_and_a_fifo_is_not_waited_for(attack):
    (attack.folder / "owned").mkdir()
    attack.write("owned/secret", SECRET)
    template = attack.folder / "template"
    template.mkdir()
    (template / "link").symlink_to(attack.folder / "owned" / "secret")
    (template / "folder").symlink_to(attack.folder / "owned")
    (template / "circle").symlink_to("circle")
    os.mkfifo(template / "pipe")
    attack.write("rows.jsonl", '{"id": "1", "output": "what is judged"}\n')
    attack.write("pipeline.yaml", PIPELINE.format(output_file="out.txt"))
    ended = attack.bounded("run", "pipeline.yaml", "--json", gib=16)
    assert json.loads(ended.output)["scored"] == 1, ended
    shown = attack.dicast("show", "1", "--ledger", "ledger.db", "--json").output
    assert "what is judged" in shown
    assert SECRET not in shown


@pytest.mark.parametrize("name", ["../out.txt", "/tmp/out.txt", "a/../../out.txt", ".", ""])
def test_an_output_is_written_nowhere_but_in_the_workspace(attack, name):
    (attack.folder / "template").mkdir()
    attack.write("rows.jsonl", '{"id": "1", "output": "x"}\n')
    attack.write("pipeline.yaml", PIPELINE.format(output_file=json.dumps(name)))
    ended = attack.dicast("check", "pipeline.yaml")
    assert ended.code == 2
    assert "is not the name of a file in the workspace" in ended.errors


@pytest.mark.parametrize("planted", ["runs.jsonl", "suite.yaml", "folder/suite.yaml"])
def test_a_fifo_as_a_workloads_file_is_not_waited_for(attack, planted):
    attack.write("runs.jsonl", "")
    (attack.folder / "folder").mkdir()
    (attack.folder / planted).unlink(missing_ok=True)
    os.mkfifo(attack.folder / planted)
    suite = planted.partition("/")[0] if "suite" in planted else "[]"
    source = f"source: {{workload/runs: {{path: runs.jsonl, workloads: {suite}}}}}\n"
    attack.write("pipeline.yaml", source + "judges: [heuristic/workload]\n")
    ended = attack.bounded("run", "pipeline.yaml", gib=4)
    assert ended.code == 2
    assert "a file" in ended.errors


MULTIPLIED = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]\n" for level in range(1, 10)
)


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        MULTIPLIED,
        "a: &a [*a]\n",
        "a: " + "[" * 5_000 + "]" * 5_000,
        "name: !!python/name:os.system\n",
    ],
    ids=["aliases", "a circle", "brackets", "a tag"],
)
def test_a_workloads_file_that_was_made_to_exhaust_is_refused(attack, text):
    attack.write("runs.jsonl", "")
    attack.write("suite.yaml", text)
    source = "source: {workload/runs: {path: runs.jsonl, workloads: suite.yaml}}\n"
    attack.write("pipeline.yaml", source + "judges: [heuristic/workload]\n")
    ended = attack.bounded("check", "pipeline.yaml", gib=2)
    assert ended.code == 2
    assert "suite.yaml" in ended.errors
