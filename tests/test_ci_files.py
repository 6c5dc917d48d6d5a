"""The files by which others use this repository in CI: the composite action, and the hook of pre-commit."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
HOOKS = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
EXPRESSION = re.compile(r"\$\{\{ *(.*?) *\}\}")

needs_bash = pytest.mark.skipif(shutil.which("bash") is None, reason="the action's steps are for bash")


@pytest.fixture
def folder(tmp_path):
    for name in ("answers.jsonl", "pipeline.yaml"):
        shutil.copy(ROOT / "examples" / "qa-rows" / name, tmp_path / name)
    return tmp_path


def environment(**more):
    ours = ("GITHUB_", "GITLAB_", "DICAST_")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return clean | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"} | more


def step(number, folder, more=None, **inputs):
    """Run the action's step as GitHub's runner does: its inputs in the environment, bash with its options."""
    given = {name: one.get("default", "") for name, one in ACTION["inputs"].items()} | inputs
    known = {f"inputs.{name}": value for name, value in given.items()} | {"github.action_path": str(ROOT)}
    wanted = ACTION["runs"]["steps"][number]
    assert not EXPRESSION.search(wanted["run"]), "an input inside a script is code: hand it over in the environment"
    own = {name: EXPRESSION.sub(lambda found: known[found[1]], text) for name, text in wanted["env"].items()}
    (folder / "step.sh").write_text(wanted["run"])
    own |= {"GITHUB_OUTPUT": str(folder / "output"), "GITHUB_STEP_SUMMARY": str(folder / "summary.md")}
    own |= {"GITHUB_ACTIONS": "true", "GITHUB_WORKSPACE": str(folder)} | (more or {})
    command = ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", str(folder / "step.sh")]
    return subprocess.run(command, cwd=folder, env=environment(**own), capture_output=True, text=True, check=False)


def test_the_action_has_what_github_asks_for():
    assert {"name", "description", "runs"} <= ACTION.keys()
    assert ACTION["runs"]["using"] == "composite"
    assert all({"name", "shell", "run"} <= one.keys() for one in ACTION["runs"]["steps"])
    assert all(one["description"] for one in ACTION["inputs"].values())
    used = {name for text in EXPRESSION.findall((ROOT / "action.yml").read_text()) for name in [text]}
    known = {f"inputs.{name}" for name in ACTION["inputs"]} | {"github.action_path", "steps.judge.outputs.exit-code"}
    assert used <= known
    assert {name for name in used if name.startswith("inputs.")} == {f"inputs.{name}" for name in ACTION["inputs"]}


@needs_bash
def test_the_action_judges_and_keeps_the_exit_code(folder):
    done = step(1, folder, pipeline="pipeline.yaml", junit="out/junit results.xml")
    assert done.returncode == 0, done.stderr
    assert (folder / "output").read_text() == "exit-code=0\n"
    assert (folder / "summary.md").read_text().startswith("## `qa-rows`: passed")
    assert (folder / "out" / "junit results.xml").is_file()
    (folder / "output").unlink()
    done = step(1, folder, pipeline="pipeline.yaml", options="--set gate.min_score=0.99 --set 'name=two words'")
    assert done.returncode == 1
    assert (folder / "output").read_text() == "exit-code=1\n"
    assert "## `two words`: failed" in (folder / "summary.md").read_text()
    assert "::error file=pipeline.yaml" in done.stdout


@needs_bash
def test_nothing_in_the_actions_options_is_carried_out(folder):
    done = step(
        1, folder, pipeline="$(touch a).yaml", options="--set name=$(touch${IFS}b) --set 'gate.min_score=`touch c`'"
    )
    assert done.returncode == 2
    assert not {"a", "b", "c"} & {path.name for path in folder.iterdir()}


@needs_bash
def test_options_with_a_quote_that_does_not_end_are_a_wrong_request(folder):
    done = step(1, folder, pipeline="pipeline.yaml", options="--set 'gate.min_score=0.99")
    assert done.returncode == 2
    assert (folder / "output").read_text() == "exit-code=2\n"
    assert "the input options: a quote is not closed" in done.stderr
    assert "Traceback" not in done.stderr
    assert step(0, folder, install="'dicast").returncode != 0


@needs_bash
def test_the_action_takes_what_is_installed_where_that_is_said(folder):
    done = step(0, folder, install="none")
    assert (done.returncode, "version" in done.stdout) == (0, True)


DICAST = """#!/bin/sh
echo "$@" "$GITHUB_TOKEN" >> log
"""


@needs_bash
@pytest.mark.parametrize(
    ("inputs", "call"),
    [
        ({"comment": "comment.md", "comment-token": "t"}, "comment comment.md t\n"),
        ({"comment": "comment.md"}, ""),
        ({"comment": "none.md", "comment-token": "t"}, ""),
        ({"comment-token": "t"}, ""),
    ],
    ids=["posted", "no token", "no file", "no comment"],
)
def test_the_action_posts_the_comment_with_the_token_alone(folder, monkeypatch, inputs, call):
    (folder / "bin").mkdir()
    (folder / "bin" / "dicast").write_text(DICAST)
    (folder / "bin" / "dicast").chmod(0o755)
    (folder / "comment.md").write_text("<!-- dicast ci: a.yaml -->\n")
    done = step(2, folder, more={"PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"}, **inputs)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert ((folder / "log").read_text() if (folder / "log").exists() else "") == call


PARTS = {
    "action.yml": ACTION["runs"]["steps"][0]["run"].replace('"$DICAST_ACTION"', "."),
    ".ci/wheels": (ROOT / ".ci/wheels").read_text(encoding="utf-8"),
    "install.md": (ROOT / "docs/start/install.md").read_text(encoding="utf-8"),
}


@pytest.mark.parametrize("place", PARTS)
def test_whoever_builds_all_wheels_builds_every_part_of_the_repository(place):
    """What is handed to pip or uv holds each member of the workspace, and nothing that is not there."""
    line = next(line for line in PARTS[place].splitlines() if "plugins/*/" in line and "contrib/*/" in line)
    words = line.split()
    folders = {path for word in words[words.index(".") :] for path in ([ROOT] if word == "." else ROOT.glob(word))}
    members = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["uv"]["workspace"]["members"]
    assert folders == {ROOT, *(path.parent for member in members for path in ROOT.glob(f"{member}/pyproject.toml"))}


def paths_of_the_page():
    """Return the folders of the page on installing, with braces and wildcards expanded."""
    words = re.findall(r"(?<![.\w])\./[^\s`]+", PARTS["install.md"])
    for word in words:
        before, brace, after = word.partition("{")
        names, _, end = after.partition("}")
        yield from (f"{before}{name}{end}" for name in names.split(",")) if brace else (word,)


def test_the_page_on_installing_names_folders_that_exist():
    paths = list(paths_of_the_page())
    assert len(paths) > 15
    assert [path for path in paths if not any(ROOT.glob(path.removeprefix("./")))] == []


def test_the_page_on_installing_with_pip_names_each_part_of_a_plain_install():
    paths = set(paths_of_the_page())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    names = {re.match(r"dicast-(\w+)", need)[1] for need in project["dependencies"]} - {"kernel", "rubrics"}
    assert {f"./plugins/{name}" for name in names} <= paths


def entry(folder, *files):
    (hook,) = HOOKS
    command = [*shlex.split(hook["entry"]), *files]
    return subprocess.run(command, cwd=folder, env=environment(), capture_output=True, text=True, check=False)


def test_the_hook_has_what_pre_commit_asks_for():
    (hook,) = HOOKS
    assert {"id", "name", "entry", "language", "files"} <= hook.keys()
    assert re.search(hook["files"], "evals/answers.dicast.yaml")
    assert not re.search(hook["files"], "docker-compose.yaml")


def test_the_hook_checks_all_files_it_is_given(folder):
    shutil.copy(folder / "pipeline.yaml", folder / "b.dicast.yaml")
    assert entry(folder, "pipeline.yaml", "b.dicast.yaml").returncode == 0
    text = (folder / "b.dicast.yaml").read_text().replace("diff/match", "diff/mach")
    (folder / "b.dicast.yaml").write_text(text)
    done = entry(folder, "b.dicast.yaml", "pipeline.yaml")
    assert done.returncode == 2
    assert re.search(r"^b\.dicast\.yaml:\d+:\d+: .*did you mean 'diff/match'", done.stderr, re.MULTILINE)
    assert "pipeline.yaml: ok" in done.stdout


def blocks(page):
    """Return the files of the how-to *page*, as pairs of the name and the content."""
    text = (ROOT / "docs" / "how-to" / f"{page}.md").read_text(encoding="utf-8")
    return re.findall(r'^```\w+ title="([^"]+)"\n(.*?)^```$', text, re.MULTILINE | re.DOTALL)


def page_files(folder, page="ci"):
    """Write the files of the *page* on CI to *folder*; return the files of CI systems by name."""
    found = dict(blocks(page))
    for name, content in found.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    return {name: yaml.safe_load(content) for name, content in found.items() if name.startswith(".")}


def run_line(line, folder, **more):
    return subprocess.run(
        shlex.split(line), cwd=folder, env=environment(**more), capture_output=True, text=True, check=False
    )


def test_the_workflow_on_the_page_judges_as_it_says(tmp_path):
    files = page_files(tmp_path)
    steps = files[".github/workflows/evals.yml"]["jobs"]["judge"]["steps"]
    (line,) = [one["run"] for one in steps if one.get("run", "").startswith("dicast")]
    done = run_line(line, tmp_path, GITHUB_ACTIONS="true", GITHUB_STEP_SUMMARY=str(tmp_path / "summary.md"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "## `capitals`: passed" in (tmp_path / "summary.md").read_text()
    uploaded = next(one["with"]["path"].split() for one in steps if "upload" in one.get("uses", ""))
    assert all([*tmp_path.glob(name)] for name in uploaded)


def test_the_workflow_by_the_action_gives_what_the_action_takes(tmp_path):
    files = page_files(tmp_path)
    steps = files[".github/workflows/evals-by-action.yml"]["jobs"]["judge"]["steps"]
    given = next(one["with"] for one in steps if one.get("uses", "").startswith("./"))
    assert given.keys() <= ACTION["inputs"].keys()
    done = step(1, tmp_path, **given)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_gitlab_job_on_the_page_writes_the_report_that_it_names(tmp_path):
    job = page_files(tmp_path)[".gitlab-ci.yml"]["judge"]
    (line,) = [one for one in job["script"] if one.startswith("dicast")]
    done = run_line(line, tmp_path, GITLAB_CI="true")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / job["artifacts"]["reports"]["junit"]).is_file()
    assert all([*tmp_path.glob(name)] for name in job["artifacts"]["paths"])


def test_the_hook_on_the_page_is_one_that_is_offered(tmp_path):
    (repo,) = page_files(tmp_path)[".pre-commit-config.yaml"]["repos"]
    assert {one["id"] for one in repo["hooks"]} <= {one["id"] for one in HOOKS}


GH = """#!/bin/sh
case "$1 $2" in
  "run list") test -f "$BASELINE" && echo 7 || true ;;
  "run download") cp "$BASELINE" evals/main.json ;;
esac
"""


@needs_bash
@pytest.mark.slow
@pytest.mark.parametrize("has_baseline", [True, False])
def test_a_pull_request_is_compared_with_the_artifact_of_the_main_branch(tmp_path, has_baseline):
    """The steps of the page on GitHub's runner, with a stand-in for gh that has the artifact."""
    (main := tmp_path / "main").mkdir()
    (request := tmp_path / "request").mkdir()
    page_files(request, "main-baseline")
    files = page_files(main, "main-baseline")
    better, worse, _ = [text for name, text in blocks("main-baseline") if name.endswith(".jsonl")]
    (main / "evals" / "capitals.jsonl").write_text(better)
    (request / "evals" / "capitals.jsonl").write_text(worse)
    steps = {item.get("name"): item for item in files[".github/workflows/evals.yml"]["jobs"]["judge"]["steps"]}
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "gh").write_text(GH)
    (tmp_path / "bin" / "gh").chmod(0o755)
    variables = {"GITHUB_ACTIONS": "true", "BASELINE": str(main / steps["Keep its results"]["with"]["path"])}

    def judged(name, folder):
        (tmp_path / "step.sh").write_text(steps[name]["run"])
        command = ["bash", "--noprofile", "--norc", "-e", str(tmp_path / "step.sh")]
        variables["PATH"] = os.pathsep.join([str(tmp_path / "bin"), environment()["PATH"]])
        return subprocess.run(command, cwd=folder, env=environment(**variables), capture_output=True, check=False)

    if has_baseline:
        assert judged("Judge the main branch", main).returncode == 0
    done = judged("Judge the pull request", request)
    assert done.returncode == has_baseline, done.stderr
    assert (request / "comment.md").is_file() is has_baseline
    if has_baseline:
        assert "| `city` | **worse** | -0.8333 |" in (request / "comment.md").read_text()


def remove_baseline(evals):
    (evals / "main.json").unlink()


def edit_baseline(evals):
    text = (evals / "main.json").read_text()
    (evals / "main.json").write_text(text.replace("1.0", "0.5", 1))


def cut_baseline(evals):
    lines = (evals / "main.json").read_text().splitlines(keepends=True)
    (evals / "main.json").write_text("".join(lines[:-1]))


def change_metric(evals):
    text = (evals / "capitals.dicast.yaml").read_text()
    (evals / "capitals.dicast.yaml").write_text(text.replace("check/contains: {as: city", "check/equals: {as: city"))


def change_input(evals):
    text = (evals / "capitals.jsonl").read_text()
    (evals / "capitals.jsonl").write_text(text.replace("What is the capital of Turkey?", "Name it."))


def change_rows(evals):
    text = (evals / "capitals.jsonl").read_text()
    (evals / "capitals.jsonl").write_text(text.replace('"turkey"', '"finland"'))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("row", "change", "codes"),
    [
        ("| file is missing | `dicast ci` refuses to run (exit code 2)", remove_baseline, (2, 2)),
        ("| file was edited or cut | refused (exit code 2)", edit_baseline, (2, 2)),
        ("| file was edited or cut | refused (exit code 2)", cut_baseline, (2, 2)),
        ("| has another judge or metric of the label, or another scoring | not comparable: the gate passes", change_metric, (0, 3)),
        ("| has more than 5 % other rows, or rows with another input or reference | likewise", change_input, (0, 3)),
        ("| has more than 5 % other rows, or rows with another input or reference | likewise", change_rows, (0, 3)),
    ],
    ids=["missing", "edited", "cut", "metric", "input", "rows"],
)  # fmt: skip
def test_a_baseline_that_does_not_fit_has_the_exit_codes_of_the_page(tmp_path, row, change, codes):
    assert row in (ROOT / "docs/how-to/main-baseline.md").read_text(encoding="utf-8")
    page_files(tmp_path, "main-baseline")
    first = next(text for name, text in blocks("main-baseline") if name.endswith(".jsonl"))
    (tmp_path / "evals" / "capitals.jsonl").write_text(first)
    for line in ("dicast ci evals/capitals.dicast.yaml", "dicast baseline save main capitals --file evals/main.json"):
        assert run_line(line, tmp_path).returncode == 0
    change(tmp_path / "evals")
    for file, code in zip(("regression", "strict"), codes, strict=True):
        done = run_line(f"dicast ci evals/{file}.dicast.yaml --comment {file}.md", tmp_path)
        assert done.returncode == code, done.stdout + done.stderr
        assert "main.json" in (tmp_path / f"{file}.md").read_text()


def git(folder, *arguments):
    identity = ("-c", "user.name=Reader", "-c", "user.email=reader@localhost", "-c", "init.defaultBranch=main")
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


def open_request(folder, added=None):
    """Judge the main branch of the page in *folder*, and return the folder of a pull request; the baseline's file is in no commit.

    :param added: a file below ``evals`` that the pull request adds, and the main branch lacks.
    """
    (request := folder / "request").mkdir()
    page_files(request, "main-baseline")
    (request / "evals" / "capitals.jsonl").write_text(
        next(text for name, text in blocks("main-baseline") if name.endswith(".jsonl"))
    )
    for line in ("dicast ci evals/capitals.dicast.yaml", "dicast baseline save main capitals --file evals/main.json"):
        assert run_line(line, request).returncode == 0
    (request / ".gitignore").write_text("main.json\n")
    git(request, "init", "-q")
    git(request, "add", "evals", ".gitignore")
    if added is not None:
        git(request, "rm", "-q", "--cached", f"evals/{added}")
    git(request, "commit", "-q", "-m", "main")
    git(folder, "clone", "-q", "--bare", "request", "origin.git")
    git(request, "remote", "add", "origin", str(folder / "origin.git"))
    git(request, "fetch", "-q", "origin")
    git(request, "checkout", "-q", "-b", "change")
    return request


def follow(block, request, change):
    """Run the lines of *block* in the folder *request*, and *change* the files of the main branch at its comment."""
    for line in block.splitlines():
        if line.startswith("#"):
            change(request.parent / "main" / "evals")
        else:
            done = run_line(shlex.join(["bash", "-c", line]), request)
            assert done.returncode == 0, done.stdout + done.stderr
    assert not (request.parent / "main").exists()


@needs_bash
@pytest.mark.slow
def test_the_commands_of_the_page_merge_a_change_of_rows_under_exit3(tmp_path):
    """The block ``norun elsewhere`` of the page: main's outputs are judged by the rows of the pull request."""
    request = open_request(tmp_path)
    change_input(request / "evals")
    assert run_line("dicast ci evals/strict.dicast.yaml", request).returncode == 3
    page = (ROOT / "docs/how-to/main-baseline.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```bash norun elsewhere\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    follow(block, request, change_input)
    strict = request / "evals" / "strict.dicast.yaml"
    strict.write_text(strict.read_text().replace("main.json", "bridge.json"))
    done = run_line("dicast ci evals/strict.dicast.yaml", request)
    assert done.returncode == 0, done.stdout + done.stderr


def change_metric(evals):
    text = (evals / "capitals.dicast.yaml").read_text()
    (evals / "capitals.dicast.yaml").write_text(text.replace('"{{ city }}"', '"{{ city }}", ignore_case: true'))


@needs_bash
@pytest.mark.slow
@pytest.mark.parametrize(
    ("added", "change", "options"),
    [
        (None, change_metric, ""),
        ("strict.dicast.yaml", change_metric, ""),
        (None, lambda evals: None, "--set metrics.city.ignore_case=true --set gate.max_drop=0.03 --only city"),
    ],
    ids=["main_has_the_file", "main_lacks_the_file", "the_job_sets_the_option"],
)
def test_the_commands_of_the_comment_merge_a_change_of_a_metric(tmp_path, added, change, options):
    """The gate of the main branch's file needs main.json, which a checkout lacks; a file that the pull request adds is copied."""
    request = open_request(tmp_path, added)
    change(request / "evals")
    line = f"dicast ci evals/strict.dicast.yaml {options} --comment comment.md"
    assert run_line(line, request).returncode == 3
    comment = (request / "comment.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```bash\n(.*?)^```$", comment, re.MULTILINE | re.DOTALL)
    assert 'see "Changed rows or judges" in dicast\'s page "Compare with the main branch"' in comment
    page = (ROOT / "docs/how-to/main-baseline.md").read_text(encoding="utf-8")
    assert page.startswith("# Compare with the main branch\n")
    assert "\n## Changed rows or judges\n" in page
    follow(block, request, change)
    strict = request / "evals" / "strict.dicast.yaml"
    strict.write_text(strict.read_text().replace("main.json", "bridge.json"))
    done = run_line(line, request)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "**no difference found**" in (request / "comment.md").read_text(encoding="utf-8")


def test_the_merging_job_of_the_page_keeps_the_ledger_and_the_report_that_it_names():
    """The comment's --resume needs the ledger of the job, and a reader of the artifact the report."""
    text = next(text for name, text in blocks("ci-shards") if name.endswith("evals.yml"))
    steps = yaml.safe_load(text)["jobs"]["gate"]["steps"]
    (line,) = [step["run"] for step in steps if "--merge" in step.get("run", "")]
    (upload,) = [step for step in steps if step.get("uses", "").startswith("actions/upload-artifact@")]
    ledger, report = (re.search(rf"--{option} (\S+)", line)[1] for option in ("ledger", "junit"))
    assert {f"{ledger}*", report} == {*upload["with"]["path"].split()}
    assert upload["if"] == "always()"
