"""Every code block of the README and the documentation works.

The blocks of a page are used in their order, in a new folder with a copy of ``examples/``:

- A block with ``title="NAME"`` is that file. A copy of a file of ``examples/`` has the same data.
- The ``python`` blocks of a page without a title are one program; pytest runs ``test_….py``.
- A ``toml`` block with an entry point makes the page's module an installed package.
- A ``yaml`` block with a ``source`` is a pipeline and passes ``dicast check``, or is run by a ``console`` block.
- A ``json`` block is JSON, a ``sql`` block is SQLite's.
- ``JUDGE_URL`` and ``BATCH_URL``, without a server, and ``JUDGE_KEY`` are in the environment.

tests/test_followed_pages.py runs the commands.

``docs/generate.py`` writes the plugins' pages of ``docs/reference``; their blocks are in the plugins' READMEs.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import attrs
import pytest
import yaml

from dicast._kernel.cli import main

ROOT = Path(__file__).resolve().parents[1]
READMES = [
    ROOT / "framework" / "README.md",
    *sorted(ROOT.glob("plugins/*/README.md")),
    *sorted(ROOT.glob("contrib/*/README.md")),
]
REFERENCE = [
    ROOT / "docs" / "reference" / f"{name}.md"
    for name in ("index", "dicast", *[path.parent.name for path in READMES[1:]])
]
"""Pages of the plugins, written by ``docs/generate.py``."""
WALK = ROOT / "docs" / "how-to" / "first-contribution.md"
"""Page that changes the repository itself; tests/test_first_contribution.py follows it."""
WRITTEN = {path for path in (ROOT / "docs").rglob("*.md") if "adr" not in path.parts}
PAGES = [ROOT / "README.md", *sorted(WRITTEN - {WALK} - {*REFERENCE}), *REFERENCE]
EVERY_PAGE = [
    *PAGES,
    WALK,
    *READMES,
    ROOT / "CONTRIBUTING.md",
    ROOT / "SECURITY.md",
    ROOT / "CHANGELOG.md",
    *sorted((ROOT / "docs" / "adr").glob("*.md")),
]
BLOCK = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
JUDGE = dict.fromkeys(("JUDGE_URL", "BATCH_URL"), "http://127.0.0.1:9/v1") | {"JUDGE_KEY": "no-key"}
LANGUAGES = {"bash", "console", "json", "jsonl", "markdown", "python", "sql", "text", "toml", "yaml"}


def place(page: Path) -> str:
    return str(page.relative_to(ROOT).with_suffix(""))


@attrs.frozen
class Block:
    language: str
    info: str
    text: str

    @property
    def title(self) -> str | None:
        match = re.search(r'title="([^"]+)"', self.info)
        return match and match[1]

    @property
    def exit_code(self) -> int:
        match = re.search(r"exit=(\d+)", self.info)
        return int(match[1]) if match else 0


def blocks(page: Path, language: str | None = None) -> list[Block]:
    parts = [Block(*match.groups()) for match in BLOCK.finditer(page.read_text(encoding="utf-8"))]
    return [block for block in parts if language in {None, block.language}]


def pages_with(
    language: str, slow: tuple[str, ...] = (), needs: Callable[[Block], object] = bool
) -> pytest.MarkDecorator:
    """Return a test parameter for each page with a block in *language* that the test *needs*; *slow* pages are marked."""
    pages = [page for page in PAGES if any(map(needs, blocks(page, language)))]
    marked = [pytest.param(page, marks=[pytest.mark.slow] if place(page) in slow else []) for page in pages]
    return pytest.mark.parametrize("page", marked, ids=place)


def is_test(block: Block) -> bool:
    return (block.title or "").startswith("test_")


def makes_sandboxes() -> bool:
    command = [shutil.which("bwrap") or "false", "--unshare-all", "--ro-bind", "/", "/", "true"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


@pytest.fixture
def folder(tmp_path: Path, page: Path) -> Path:
    """Folder with the examples, the page's titled files and its plugin."""
    if page.stem in ("sandbox", "sandboxes") and not makes_sandboxes():
        pytest.skip("bubblewrap makes no sandbox here (apt install bubblewrap)")
    shutil.copytree(ROOT / "examples", tmp_path / "examples", ignore=shutil.ignore_patterns("out"))
    for block in blocks(page):
        if block.title:
            (tmp_path / block.title).parent.mkdir(parents=True, exist_ok=True)
            with (tmp_path / block.title).open("a" if "append" in block.info else "w", encoding="utf-8") as file:
                file.write(block.text)
    program = [block.text for block in blocks(page, "python") if not block.title]
    (tmp_path / "page.py").write_text("\n".join(program), encoding="utf-8")
    for block in blocks(page, "toml"):
        install(tomllib.loads(block.text)["project"], tmp_path)
    return tmp_path


def install(project: dict, folder: Path) -> None:
    """Install the page's module as the package of *project*, by metadata next to it."""
    metadata = folder / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    )
    lines = []
    for group, points in project["entry-points"].items():
        lines += [f"[{group}]", *(f"{key} = {points[key]}" for key in points)]
    (metadata / "entry_points.txt").write_text("\n".join(lines))


def run(folder: Path, *command: str, timeout: float = 300) -> subprocess.CompletedProcess[str]:
    ours = ("DICAST_", "PYTEST_")
    environ = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return subprocess.run(
        [sys.executable, "-W", "error", *command],
        cwd=folder,
        env=environ | JUDGE | {"PYTHONPATH": os.pathsep.join((str(folder), str(folder / "src")))},
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


@pytest.fixture
def dicast(page, folder, monkeypatch, capfd):
    """``dicast(…)``: run a command in the page's folder."""

    def inside(*command: str) -> subprocess.CompletedProcess[str]:
        capfd.readouterr()
        code = main(list(command))
        return subprocess.CompletedProcess(command, code, *capfd.readouterr())

    for name in [name for name in os.environ if name.startswith("DICAST_")]:
        monkeypatch.delenv(name)
    for name, value in JUDGE.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(folder / "src")
    monkeypatch.syspath_prepend(folder)
    before = set(sys.modules)
    yield inside
    for name in set(sys.modules) - before:
        if Path(getattr(sys.modules[name], "__file__", None) or ROOT).is_relative_to(folder):
            del sys.modules[name]


@pytest.mark.parametrize("page", PAGES, ids=place)
def test_blocks_are_of_a_language_that_is_checked(page):
    assert {block.language for block in blocks(page)} <= LANGUAGES
    assert page.read_text(encoding="utf-8").count("```") == 2 * len(blocks(page)), "a fence without a language"


@pages_with("python", slow=("docs/how-to/notebooks", "docs/how-to/python"), needs=lambda block: not block.title)
def test_python_runs(page, folder):
    done = run(folder, "page.py")
    assert done.returncode == 0, done.stderr


@pages_with(
    "python",
    slow=(
        "docs/how-to/plugins",
        "docs/how-to/judge-plugin",
        "docs/how-to/write-a-reader",
        "docs/how-to/pytest",
        "docs/reference/hooks",
        "docs/reference/pytest",
    ),
    needs=is_test,
)
def test_tests_pass(page, folder):
    files = [block.title for block in blocks(page, "python") if is_test(block)]
    spared = ("-p", "no:cacheprovider", "-p", "no:schemathesis")  # as in pyproject.toml
    done = run(folder, "-m", "pytest", "-q", *spared, *files, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr


@pages_with("yaml")
def test_pipelines_pass_check(page, folder, dicast):
    commands = "".join(block.text for block in blocks(page, "console"))
    for number, block in enumerate(blocks(page, "yaml")):
        run_commands = [f"$ dicast run {block.title}{option}\n" for option in ("", " --full")]
        if "source" not in yaml.safe_load(block.text) or any(command in commands for command in run_commands):
            continue  # no pipeline, or one that is run
        file = folder / (block.title or f"block{number}.yaml")
        file.write_text(block.text, encoding="utf-8")
        done = dicast("check", "--json", str(file.relative_to(folder)))
        result = json.loads(done.stdout or "null")
        if f"$ dicast watch {block.title}" in commands:  # check names the lines that only dicast run refuses
            result.pop("warnings", None)
        assert (done.returncode, result) == (0, {"ok": True, "errors": []}), done.stderr


@pages_with("yaml")
def test_quoted_files_are_the_files(page):
    for block in blocks(page, "yaml"):
        if block.title and (ROOT / block.title).exists():
            assert yaml.safe_load(block.text) == yaml.safe_load((ROOT / block.title).read_text(encoding="utf-8"))


@pages_with("json")
def test_json_is_json(page):
    assert all(json.loads(block.text) for block in blocks(page, "json"))


@pages_with("sql")
def test_sql_is_sqlites(page):
    for block in blocks(page, "sql"):
        sqlite3.connect(":memory:").executescript(block.text).connection.close()


@pytest.mark.parametrize("page", EVERY_PAGE, ids=place)
def test_each_row_of_a_table_has_as_many_cells_as_the_head(page):
    cells, is_code = None, False
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        is_code ^= line.lstrip().startswith("```")
        if is_code or not line.startswith("|"):
            cells = None
            continue
        count = len(re.findall(r"(?<!\\)\|", line))
        assert line.endswith("|"), f"{place(page)}:{number}"
        assert count == (cells := cells or count), f"{place(page)}:{number}"


def test_reference_pages_are_up_to_date():
    done = run(ROOT, "docs/generate.py", "--check")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("page", [page for page in REFERENCE if page.stem != "index"], ids=place)
def test_reference_pages_have_an_example_that_runs(page):
    sources = [yaml.safe_load(block.text).get("source") for block in blocks(page, "yaml") if block.title]
    assert any(sources)
    assert any(
        re.search(r"^\$ dicast (run|check) \S+\.yaml$", block.text, re.MULTILINE) for block in blocks(page, "console")
    )


@pytest.mark.parametrize("readme", READMES, ids=place)
def test_readmes_leave_options_to_the_reference(readme):
    plugin = "dicast" if readme.parent.name == "framework" else readme.parent.name
    page = ROOT / "docs" / "reference" / f"{plugin}.md"
    if re.search(r"^\| option \| type \|", page.read_text(encoding="utf-8"), re.MULTILINE):
        assert os.path.relpath(page, readme.parent) in readme.read_text(encoding="utf-8").splitlines()[-1]


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page: its headings in the form of GitHub and Python-Markdown."""
    headings = re.findall(r"^#+ (.+)$", BLOCK.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", EVERY_PAGE, ids=place)
def test_links_lead_somewhere(page):
    prose = BLOCK.sub("", page.read_text(encoding="utf-8"))
    for link in re.findall(r"\]\(([^)]+)\)", prose):
        target, _, anchor = link.partition("#")
        file = page.parent / target if target else page
        assert "://" in link or file.exists(), link
        assert "://" in link or not anchor or anchor in anchors(file), link


def test_the_tests_that_the_threat_model_names_are_there():
    pages = sorted((ROOT / "docs" / "concepts").glob("threat-model*.md"))
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    paths = re.findall(r"`((?:[\w-]+/)*tests/[\w/]+\.py)`", text)
    assert len(paths) > 40
    assert [path for path in paths if not (ROOT / path).is_file()] == []


def test_every_page_is_in_the_sites_navigation():
    config = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    listed = [
        page for entry in config["nav"] for page in ([entry] if isinstance(entry, str) else next(iter(entry.values())))
    ]
    pages = [str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md")]
    assert sorted(listed) == sorted(pages)


@pytest.mark.parametrize("page", sorted(page for page in WRITTEN if page.parent.name != "reference"), ids=place)
def test_a_page_has_at_most_2000_words_outside_its_code(page):
    assert len(BLOCK.sub("", page.read_text(encoding="utf-8")).split()) <= 2000, "split it by the tasks of its readers"


@pytest.mark.parametrize("record", sorted((ROOT / "docs" / "adr").glob("*.md")), ids=lambda path: path.stem)
def test_decision_records_are_short_and_whole(record):
    text = record.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 40
    assert text.startswith(f"# {record.name[:4]}: ")
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == ["Context", "Decision", "Consequences", "Rejected"]


def test_readme_gives_two_commands_that_set_themselves_up():
    lines = [line for block in blocks(ROOT / "README.md", "bash") for line in block.text.splitlines()]
    example = "examples/support-turns/pipeline.yaml"
    assert lines == [f"pip install uv && uv run dicast run {example}", "pip install uv && uv run --group dev pytest"]
    assert (ROOT / example).is_file()


def test_readme_shows_the_summary_that_is_printed(tmp_path):
    shutil.copytree(ROOT / "examples", tmp_path / "examples", ignore=shutil.ignore_patterns("out"))
    done = run(tmp_path, "-m", "dicast", "run", "examples/qa-rows/pipeline.yaml")
    (summary,) = (block.text for block in blocks(ROOT / "README.md", "text"))
    ids = re.compile(r"run \w+|show \w+(?= --full)")  # they change from run to run
    assert ids.sub("", summary) == ids.sub("", done.stdout)


def test_the_recorded_terminal_is_up_to_date():
    assert run(ROOT, "docs/record.py", "--check").returncode == 0, "to fix it: uv run python docs/record.py"
