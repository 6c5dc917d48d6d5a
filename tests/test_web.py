"""The built files of the pages are what their sources make."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from random import Random

import pytest

from dicast.toolkit.decimals import decimal_text, percent_text

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


def sums(seed, count):
    """Means of shares with a known text in decimals, each summed in its own way, and halves of the last digit with the noise of a sum."""
    draw = Random(seed)
    for n in (400, 300, 128, 7):
        for _ in range(count):
            total = draw.randrange(n + 1)
            yield total / n
            yield total * (1 / n)
    for _ in range(count):
        yield draw.randrange(10_000) / 10_000 + draw.choice((-1, 0, 1)) * 1e-15


@pytest.mark.slow
def test_a_page_and_the_terminal_round_alike(chromium):
    """Both round the same number, the terminal as it is, a page as the API writes it, with six decimals."""
    numbers = [-value if place % 5 == 0 else value for place, value in enumerate(sums(7, 12_500))]
    source = (WEB / "src" / "decimals.js").read_text().replace("export ", "")
    page = chromium.new_page()
    script = f"(tokens) => {{ {source}\n return tokens.map((token) => [decimalText(token, 3), decimalText(token, 4), decimalText(token, 1, 2)]); }}"
    shown = page.evaluate(script, [repr(round(value, 6)) for value in numbers])
    page.context.close()
    expected = [[decimal_text(value, 3), decimal_text(value, 4), percent_text(value, 1)] for value in numbers]
    assert len(numbers) > 100_000
    assert [pair for pair in zip(numbers, shown, expected, strict=True) if pair[1] != pair[2]] == []


@pytest.mark.parametrize(
    ("value", "places", "text"),
    [
        (0.7505, 3, "0.751"),  # its nearest float is below
        (0.7504999999, 3, "0.751"),
        (0.4575, 3, "0.458"),
        (0.3125, 3, "0.313"),
        (-0.0004, 3, "0.000"),
        (-2.5, 0, "-3"),
        (1e-9, 3, "0.000"),
        (1e21, 1, "1000000000000000000000.0"),
        (1.7e308, 0, "17" + "0" * 307),
        (float("inf"), 3, "inf"),
    ],
)
def test_halves_of_the_decimal_form_are_rounded_away_from_zero(value, places, text):
    assert decimal_text(value, places) == text


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
