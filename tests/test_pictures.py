"""The pictures in docs/pictures against pages that are drawn now: their sizes, and the luminance of their blocks.

Fonts differ between machines, and so do the pixels of a text. A text keeps its place and its share of dark pixels in another font; a missing
panel, an empty page or the other theme does not.
"""

from __future__ import annotations

import base64
import importlib.util
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[1]
PICTURES = ROOT / "docs" / "pictures"
NAMES = sorted(path.stem for path in PICTURES.glob("*.png"))

GRID = 24
"""Blocks of a picture in a row and in a column."""

SIZE = 0.03
"""Largest difference of a width or a height, as a share."""

MEAN, PANEL = 8.0, 8.0
"""Largest differences of luminance, of 255: the mean of the blocks' differences, and the difference of the mean of any 5 x 5 blocks.

Measured: the same page differs by 0.01 and 0.1 at most; in Liberation, DejaVu Serif or DejaVu Sans Condensed by 5.3 and 7.2. A panel of the dark
pages that is gone differs by 10.4 at least, a large panel of the light pages by 8.4, an empty page by 12.5, the other theme by 200.
"""

BLOCKS = """async ([source, grid]) => {
  const image = await createImageBitmap(new Blob([Uint8Array.from(atob(source), (letter) => letter.charCodeAt(0))]));
  const context = new OffscreenCanvas(image.width, image.height).getContext("2d");
  context.drawImage(image, 0, 0);
  const { data } = context.getImageData(0, 0, image.width, image.height);
  const sums = new Float64Array(grid * grid), counts = new Float64Array(grid * grid);
  for (let y = 0, place = 0; y < image.height; y++) {
    for (let x = 0; x < image.width; x++, place += 4) {
      const block = Math.floor((y * grid) / image.height) * grid + Math.floor((x * grid) / image.width);
      sums[block] += 0.2126 * data[place] + 0.7152 * data[place + 1] + 0.0722 * data[place + 2];
      counts[block]++;
    }
  }
  return { size: [image.width, image.height], blocks: [...sums.map((sum, block) => sum / counts[block])] };
}"""


ERASED = """async ([source, ...box]) => {
  const image = await createImageBitmap(new Blob([Uint8Array.from(atob(source), (letter) => letter.charCodeAt(0))]));
  const canvas = new OffscreenCanvas(image.width, image.height), context = canvas.getContext("2d");
  context.drawImage(image, 0, 0);
  const [red, green, blue] = context.getImageData(2, image.height / 2, 1, 1).data;
  context.fillStyle = `rgb(${red} ${green} ${blue})`;
  context.fillRect(...box);
  const bytes = new Uint8Array(await (await canvas.convertToBlob()).arrayBuffer());
  return btoa(bytes.reduce((text, byte) => text + String.fromCharCode(byte), ""));
}"""


def measure(page, image):
    """Return the size of a PNG *image*, and the mean luminance of each of its blocks."""
    return page.evaluate(BLOCKS, [base64.b64encode(image).decode(), GRID])


def differences(first, second):
    """Return the mean difference of blocks, and the largest difference of the mean of 5 x 5 blocks."""
    gaps = [a - b for a, b in zip(first["blocks"], second["blocks"], strict=True)]
    starts = range(GRID - 4)
    panels = [
        sum(gaps[(top + row) * GRID + left + column] for row in range(5) for column in range(5)) / 25
        for top in starts
        for left in starts
    ]
    return sum(map(abs, gaps)) / len(gaps), max(map(abs, panels))


def is_alike(first, second):
    """Return whether two measured pictures show the same page."""
    sizes = zip(first["size"], second["size"], strict=True)
    mean, panel = differences(first, second)
    return all(abs(a - b) <= SIZE * b for a, b in sizes) and mean <= MEAN and panel <= PANEL


def erased(page, image, left, top, width, height):
    """Return a PNG *image* in which a box is filled with the color of the page's margin."""
    source = page.evaluate(ERASED, [base64.b64encode(image).decode(), left, top, width, height])
    return base64.b64decode(source)


@pytest.fixture(scope="module")
def shots():
    spec = importlib.util.spec_from_file_location("shots", ROOT / "docs" / "shots.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def page(chromium):
    page = chromium.new_page()
    yield page
    page.close()


@pytest.fixture(scope="module")
def kept(page):
    return {name: measure(page, (PICTURES / f"{name}.png").read_bytes()) for name in NAMES}


def test_pictures_are_few_and_small():
    assert len(NAMES) <= 12
    assert {name for name in NAMES if (PICTURES / f"{name}.png").stat().st_size > 60_000} == set()


def test_the_pages_look_as_their_pictures_do(shots, chromium, page, kept, tmp_path):
    shots.draw(chromium, tmp_path)
    now = {path.stem: measure(page, path.read_bytes()) for path in tmp_path.glob("*.png")}
    assert now.keys() == kept.keys()
    changed = {name: differences(now[name], kept[name]) for name in NAMES if not is_alike(now[name], kept[name])}
    assert changed == {}, "if the change is intended: python docs/shots.py"


def test_another_font_is_no_difference(shots, chromium, page, kept, tmp_path):
    fonts = """document.addEventListener("DOMContentLoaded", () => {
      document.documentElement.style.setProperty("--text", "DejaVu Serif");
      document.documentElement.style.setProperty("--serif", "DejaVu Sans");
    });"""
    camera = shots.Camera(chromium, tmp_path, fonts)
    (tmp_path / "work").mkdir()
    shots.report(camera, tmp_path / "work")
    camera.close()
    for path in tmp_path.glob("*.png"):
        assert is_alike(measure(page, path.read_bytes()), kept[path.stem]), path.stem
        assert path.read_bytes() != (PICTURES / path.name).read_bytes()


@pytest.mark.parametrize(
    ("name", "box"),
    [
        ("dashboard-dark", (46, 198, 588, 225)),
        ("dashboard-dark", (46, 633, 588, 140)),
        ("dashboard-dark", (646, 630, 588, 154)),
        ("report", (82, 126, 1116, 250)),
        ("report", (833, 420, 365, 252)),
        ("report-phone", (0, 565, 375, 250)),
        ("report-dark", (0, 0, 1280, 900)),
        ("dashboard", (0, 0, 1280, 900)),
    ],
    ids=["last-run", "pending", "by-day", "gate-and-labels", "coverage", "phone-tile", "empty-dark-page", "empty-page"],
)
def test_a_missing_panel_is_a_difference(page, kept, name, box):
    fault = erased(page, (PICTURES / f"{name}.png").read_bytes(), *box)
    assert not is_alike(measure(page, fault), kept[name])


@pytest.mark.parametrize("name", ["dashboard", "dashboard-phone", "report", "report-phone"])
def test_the_other_theme_and_the_other_width_are_differences(kept, name):
    assert not is_alike(kept[f"{name}-dark"], kept[name])
    other = name.removesuffix("-phone") if name.endswith("-phone") else f"{name}-phone"
    assert not is_alike(kept[other], kept[name])
