"""The built files of the pages are what their sources make."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

WEB = Path(__file__).resolve().parents[1] / "web"
PACKAGE = json.loads((WEB / "package.json").read_text())
PAGES = json.loads(re.search(r"^const pages = (\[.*?\]);$", (WEB / "build.mjs").read_text(), re.MULTILINE)[1])
BUILT = ("LICENSES.txt", *(f"{page}.{kind}" for page in PAGES for kind in ("css", "js")))


def test_the_built_files_are_there_and_nothing_else():
    assert sorted(path.name for path in (WEB / "dicast_web").iterdir()) == sorted(BUILT)


@pytest.mark.parametrize("section", ["dependencies", "devDependencies"])
def test_libraries_have_exact_versions(section):
    assert [name for name, version in PACKAGE[section].items() if not re.fullmatch(r"\d+\.\d+\.\d+", version)] == []


def test_each_library_has_its_licence_in_the_wheel():
    text = (WEB / "dicast_web" / "LICENSES.txt").read_text()
    assert [name for name, version in PACKAGE["dependencies"].items() if f"{name} {version}\n" not in text] == []


def test_no_script_makes_markup_of_what_it_is_given():
    """Text is set as text: nothing in the sources, and nothing that a page evaluates, turns a string into elements or code."""
    unsafe = re.compile(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|dangerouslySet|javascript:"
    )
    found = [path.name for path in (WEB / "src").rglob("*.js") if unsafe.search(path.read_text())]
    assert found == []


@pytest.mark.slow
def test_the_sources_make_the_built_files(tmp_path):
    if shutil.which("npm") is None:
        pytest.skip("there is no npm here, which installs the libraries that the pages are built of")
    for name in ("package.json", ".npmrc", "build.mjs"):
        shutil.copy(WEB / name, tmp_path)
    shutil.copytree(WEB / "src", tmp_path / "src")
    (tmp_path / "built").mkdir()
    installed = subprocess.run(["npm", "install"], cwd=tmp_path, capture_output=True, text=True, check=False)
    if installed.returncode:
        pytest.skip(f"npm cannot install the libraries here: {installed.stderr[-300:]}")
    subprocess.run(["node", "build.mjs", "built"], cwd=tmp_path, check=True)
    differing = [
        name for name in BUILT if (tmp_path / "built" / name).read_bytes() != (WEB / "dicast_web" / name).read_bytes()
    ]
    assert differing == [], "npm run build in web/ writes them anew"
