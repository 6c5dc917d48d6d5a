"""The measured tree is the kept tree, and projects with untracked dependencies run unchanged."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys

import pytest

from .conftest import have_ended

DAEMON = """
import glob, os, sys, time
here = sys.argv[1]
while True:
    for path in [here, *glob.glob("/tmp/dicast-autoresearch-*/*/*/slow.py"), *glob.glob(os.environ.get("TMPDIR", "/tmp") + "/dicast-autoresearch-*/*/*/slow.py")]:
        try: open(path, "w").write("def work(n): return 285, -500\\n")
        except OSError: pass
"""
LEAVES = f"""
Path("slow.py").write_text(source(48))
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for fd in range(3): os.close(fd)
        os.execve(sys.executable, [sys.executable, "-c", {DAEMON!r}, os.path.abspath("slow.py"), "leaves-48"], {{}})
    os._exit(0)
"""


@pytest.mark.slow
def test_a_process_that_a_proposer_leaves_behind_does_not_reach_what_is_measured(repository, place):
    repository.init()
    before = repository.state()
    repository.loop(LEAVES, 1)
    kept_entry = repository.entries()[-1]
    assert have_ended("leaves-48")
    # it may have written before it ended: then both have that
    assert kept_entry["status"] == "keep"
    assert f", {kept_entry['primary_metric']:g}\n" in repository.kept_content()
    assert repository.state() == before


def test_the_command_starts_with_the_committed_files_although_the_checks_changed_them(repository, place):
    repository.init()
    code = (
        "text = source(48) + \"import sys\\nif 'checks.py' in sys.argv[0]: open('slow.py', 'w').write(%r)\\n\""
        " % source(-500)\nPath('slow.py').write_text(text)"
    )
    repository.loop(code, 1)
    assert (repository.statuses(), repository.entries()[-1]["primary_metric"]) == (["keep", "keep"], 48)


def python_project(repository, *, in_place):
    root = repository.root
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(root / ".venv")], check=True)
    (site,) = (root / ".venv").glob("lib/python*/site-packages")
    (site / "helper.py").write_text("FACTOR = 2\n")
    if in_place:
        (site / "__editable__.project.pth").write_text(f"{root / 'src'}\n")
    repository.write(".gitignore", ".venv/\n__pycache__/\n")
    repository.write("src/project/__init__.py", "COST = 100\n")
    way = "" if in_place else "import sys; sys.path.insert(0, 'src')\n"
    repository.write(
        "measure.py",
        f"{way}import helper, os, project\nassert os.environ['UV_NO_SYNC'] == '1'\nprint(f'METRIC cost={{project.COST * helper.FACTOR}}')\n",
    )
    repository.git("add", "-A")
    repository.commit("project")
    return [
        "init", "--primary", "cost", "--direction", "lower", "--command", ".venv/bin/python measure.py",
        "--scope", "src",
    ]  # fmt: skip


FASTER = "Path('src/project/__init__.py').write_text('COST = 40\\n')"


@pytest.mark.slow
@pytest.mark.parametrize("in_place", [True, False], ids=["editable", "plain"])
def test_a_python_project_with_an_ignored_venv_runs_as_it_is(repository, place, in_place):
    words = python_project(repository, in_place=in_place)
    assert repository.json(*words)["linked"] == [".venv"]
    before = repository.state()
    command = ["loop", "--propose", repository.proposer(FASTER), "--runs", "1"]
    if in_place and place == "copies":
        assert "imports the project from" in repository.dicast(*command, code=2).err
    else:
        result = repository.json(*command)
        assert (result["baseline"], result["best"]) == (200, 80)
    assert repository.state() == before


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("node") is None, reason="there is no Node.js")
def test_a_node_project_with_node_modules_runs_as_it_is(repository, place):
    repository.write("node_modules/dep/index.js", "module.exports = 2;\n")
    repository.write(".gitignore", "node_modules\n")
    repository.write("app.js", "module.exports = 100;\n")
    repository.write("measure.js", "console.log(`METRIC cost=${require('./app') * require('dep')}`);\n")
    repository.git("add", "-A")
    repository.commit("project")
    words = ["--primary", "cost", "--direction", "lower", "--command", "node measure.js", "--scope", "app.js"]
    assert repository.json("init", *words)["linked"] == ["node_modules"]
    before = repository.state()
    code = (
        "Path('app.js').write_text('module.exports = 40;')\n"
        "try: Path('node_modules/dep/index.js').write_text('module.exports = 0;')\n"
        "except OSError: pass\n"
    )
    result = repository.loop(code, 1)
    assert (result["baseline"], result["best"]) == (200, 80)
    assert repository.state() == before


@pytest.mark.slow
def test_untracked_paths_are_linked_on_request_and_shown(repository, place):
    repository.write("data/numbers.txt", "100")
    repository.write("measure.py", "print('METRIC cost=' + open('data/numbers.txt').read())\n")
    repository.git("add", "measure.py")
    repository.commit("reads data")
    python = shlex.quote(sys.executable)
    words = [
        "init",
        "--primary",
        "cost",
        "--direction",
        "lower",
        "--command",
        f"{python} measure.py",
        "--scope",
        "slow.py",
    ]
    assert repository.json(*words)["left_out"] == ["data"]
    done = repository.dicast("loop", "--propose", "true", code=2)
    assert "Not in the checkout, --link PATH adds them: data" in done.err
    assert repository.json(*words, "--link", "data", "--link", "data/numbers.txt")["linked"] == ["data"]
    assert repository.loop("Path('slow.py').write_text(source(9))", 1)["baseline"] == 100
    assert repository.statuses() == ["keep", "discard"]
    for path, message in (("no-such", "there is no such path"), ("measure.py", "git tracks it")):
        assert message in repository.dicast(*words, "--link", path, code=2).err


def test_a_scope_that_git_ignores_is_refused(repository):
    repository.write(".gitignore", "own.json\n")
    repository.write("own.json", "{}")
    done = repository.dicast(
        "init", "--primary", "cost", "--direction", "lower", "--command", "true", "--scope", "own.json", code=2
    )
    assert "--scope own.json: git ignores it" in done.err
