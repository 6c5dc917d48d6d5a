"""Pages and their workflows for CI name the extras of their commands: a clone has no extras before ``uv sync`` installs them."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from dicast._kernel.cli.group import EXTRAS

ROOT = Path(__file__).resolve().parents[1]
PAGES = [
    ROOT / "README.md",
    *(
        page
        for folder in ("start", "how-to", "concepts", "reference")
        for page in sorted((ROOT / "docs" / folder).glob("*.md"))
    ),
]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
OPTIONAL = PROJECT["optional-dependencies"]
PLAIN = set(re.findall(r"dicast-([\w-]+)", " ".join(PROJECT["dependencies"]))) | {
    extra for extra, needs in OPTIONAL.items() if set(needs) <= set(PROJECT["dependencies"])
}
"""Plugins of a plain install."""
BLOCK = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
SYNC = re.compile(r"uv\s+sync((?:\s+--(?:inexact|extra\s+[\w-]+))+)")
TITLED = re.compile(r'^```\w+ title="([^"]+)"\n(.*?)^```$', re.MULTILINE | re.DOTALL)
"""A file of a page: its name and its content."""
COMPONENT = re.compile(r"(?<![\w/.])([a-z_]+)/[a-z_]+(?![\w/.-])")


def plugins_of(extra: str) -> set[str]:
    """Return the plugins that *extra* installs, also by other extras."""
    text = " ".join(OPTIONAL[extra])
    inner = ",".join(re.findall(r"dicast\[([\w,-]+)\]", text))
    return {extra, *re.findall(r"dicast-([\w-]+)", text)} | {p for e in inner.split(",") if e for p in plugins_of(e)}


def needed(command: str, files: dict[str, str]) -> set[str]:
    """Return the plugins outside a plain install that the shell lines *command* use, in the pipelines *files* or of the repository."""
    names = {EXTRAS[name] for name in re.findall(r"^\$ dicast (\w+)", command, re.MULTILINE) if name in EXTRAS}
    for name in re.findall(r"[\w./-]+\.ya?ml", command):
        text = files.get(name) or ((ROOT / name).read_text() if (ROOT / name).is_file() else "")
        text = re.sub(r"#.*", "", text)
        names |= {plugin.replace("_", "-") for plugin in COMPONENT.findall(text)} & set(OPTIONAL)
    return names - PLAIN


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_extras_are_named_above_the_first_command_that_needs_them(page):
    text, files, missing = page.read_text(), dict[str, str](), dict[str, int]()
    for block in BLOCK.finditer(text):
        if (title := re.search(r'title="([^"]+)"', block[2])) is not None:
            files[title[1]] = block[3]
        if block[1] == "console":
            named = {
                extra for sync in SYNC.findall(text[: block.start()]) for extra in re.findall(r"extra\s+([\w-]+)", sync)
            }
            installed = {plugin for extra in named for plugin in plugins_of(extra)}
            for plugin in needed(block[3], files) - installed:
                missing.setdefault(plugin, text[: block.start()].count("\n") + 1)
    assert not missing, (
        f"write `uv sync --inexact --extra {' --extra '.join(sorted(missing))}` above line {min(missing.values())}"
    )


def workflows() -> Iterator[tuple[str, str, dict[str, str]]]:
    """Yield the name, the text of the job and the files of each job in the workflows of the pages."""
    for page in PAGES:
        titled = [(block[1], block[2]) for block in TITLED.finditer(page.read_text())]
        files = dict(reversed(titled))  # the first of each name
        for name, text in titled:
            if name.startswith((".github/workflows/", ".gitlab-ci")):
                document = yaml.safe_load(text)
                for job, content in document.get("jobs", document).items():
                    yield f"{page.stem}-{name.rpartition('/')[2]}-{job}", content, files


def steps_of(job: Any) -> list[tuple[str, dict[str, str]]]:
    """Return the shell lines of each step of *job*, with the step's environment; for a step by the action the lines of the action."""
    if "script" in job:
        return [(step, {}) for step in job["script"]]
    steps = [step for step in job["steps"] if "run" in step or step["uses"].startswith("./")]
    return [(step.get("run") or f"dicast ci {step['with']['pipeline']} --junit", step.get("env", {})) for step in steps]


def used_extras(command: str, files: dict[str, str], *, has_report: bool) -> set[str]:
    """Return the plugins outside a plain install that the shell lines *command* need."""
    names = {EXTRAS[name] for name in re.findall(r"\bdicast (\w+) ", command) if name in EXTRAS}
    names |= {"junit"} if "--junit" in command or (has_report and "dicast ci" in command) else set()
    for name in re.findall(r"[\w./-]+\.ya?ml", command):
        text = files.get(name, "")
        names |= {plugin.replace("_", "-") for plugin in COMPONENT.findall(text)} & set(OPTIONAL)
        names |= {"stats"} if "baseline:" in text else set()
    return names - PLAIN


@pytest.mark.parametrize(("job", "files"), [pytest.param(job, files, id=name) for name, job, files in workflows()])
def test_a_workflow_installs_the_extras_of_its_commands(job, files):
    steps = steps_of(job)
    installed = {
        extra
        for text, _ in steps
        for line in text.splitlines()
        if "uv sync" in line
        for extra in re.findall(r"--extra ([\w-]+)", line)
    }
    uses = [step for step in job.get("steps", ()) if str(step.get("uses", "")).startswith("./")]
    installed |= {extra for step in uses for extra in ("github", "junit", *step["with"].get("extras", "").split(","))}
    has_report = "junit" in job.get("artifacts", {}).get("reports", {})
    needs = set().union(*(used_extras(text, files, has_report=has_report) for text, _ in steps if "dicast " in text))
    assert needs <= installed
    assert installed - needs <= {"openai"}, "the model's plugin stands for the reader's own; others are too many"


@pytest.mark.parametrize(("job", "files"), [pytest.param(job, files, id=name) for name, job, files in workflows()])
def test_each_step_of_a_workflow_that_reads_a_pipeline_has_the_key_of_the_model(job, files):
    if "script" in job:
        pytest.skip("GitLab gives the variables of a project to each job")
    for text, env in steps_of(job):
        if re.search(r"\bdicast (run|ci|merge) ", text):
            assert env.get("OPENAI_API_KEY") == "${{ secrets.OPENAI_API_KEY }}", text


def test_every_command_of_a_plugin_outside_a_plain_install_has_an_extra():
    offered = {}
    for path in ROOT.glob("*/*/pyproject.toml"):
        project = tomllib.loads(path.read_text())["project"]
        plugin = project["name"].removeprefix("dicast-")
        commands = project.get("entry-points", {}).get("dicast.commands", {})
        offered |= {name: plugin for name in commands if "." not in name and plugin not in PLAIN}
    assert {name: plugin for name, plugin in EXTRAS.items() if name in offered} == offered
