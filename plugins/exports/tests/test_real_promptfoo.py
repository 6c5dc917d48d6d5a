"""Results that the real promptfoo writes with its echo provider."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest

from dicast_exports import Promptfoo

pytestmark = pytest.mark.slow

PROMPTFOO = "promptfoo@0.121.20"
CONFIG = """
prompts: ["Say {{word}}"]
providers: [echo]
tests:
  - vars: {word: hello}
    assert:
      - {type: contains, value: hello}
      - {type: equals, value: "Say bye", metric: exact}
  - vars: {word: bye}
    assert:
      - {type: equals, value: "Say bye", metric: exact}
      - {type: javascript, value: "output.length > 3"}
"""
FORMS = ("json", "jsonl", "yaml")


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Return a folder with the results in each form. npx takes promptfoo from npm's cache: its installation takes minutes."""
    npx = shutil.which("npx")
    if npx is None:
        pytest.skip("node is not installed")
    folder = tmp_path_factory.mktemp("promptfoo")
    settings = {
        "PROMPTFOO_DISABLE_TELEMETRY": "1",
        "PROMPTFOO_DISABLE_UPDATE": "1",
        "PROMPTFOO_CONFIG_DIR": str(folder),
    }
    options = {"env": os.environ | settings, "cwd": folder, "capture_output": True, "text": True}
    call = [npx, "--no", "--offline", PROMPTFOO]
    if subprocess.run([*call, "--version"], check=False, **options).returncode:
        pytest.skip(f"{PROMPTFOO} is not in npm's cache: npx --yes {PROMPTFOO} --version puts it there")
    (folder / "promptfooconfig.yaml").write_text(CONFIG)
    outputs = [word for form in FORMS for word in ("-o", f"results.{form}")]
    done = subprocess.run([*call, "eval", *outputs, "--no-cache"], check=False, **options)
    assert (folder / "results.json").exists(), done.stdout + done.stderr
    return folder


@pytest.mark.parametrize("form", FORMS)
def test_results_of_the_real_tool_are_rows_with_its_scores(results, read, form):
    rows = read(Promptfoo, results / f"results.{form}")
    hello, bye = rows.ids
    assert [due.subject.input for due in rows.dues] == ["Say hello", "Say bye"]
    assert [due.subject.output for due in rows.dues] == ["Say hello", "Say bye"]
    assert rows.scores(hello) == {"promptfoo": (0.5, "recorded"), "contains": (1.0, "truth"), "exact": (0.0, "truth")}
    assert rows.scores(bye) == {"promptfoo": (1.0, "recorded"), "exact": (1.0, "truth"), "javascript": (1.0, "truth")}
    assert rows.failures == {}
    assert rows.counts.details["unknown"] == {}
