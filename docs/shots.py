"""Script that writes the pictures in docs/pictures: pages of a report and of the dashboard in Chromium.

uv run python docs/shots.py            # after a page has changed; needs chromium

The data are the blocks of docs/how-to/reports.md and dashboard.md. Dates, times, ids of runs and latencies are replaced in the page before
a picture, so the pictures are the same at each time. tests/test_pictures.py draws them again and compares.
"""  # noqa: INP001

from __future__ import annotations

import base64
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, ViewportSize, sync_playwright

ROOT = Path(__file__).resolve().parents[1]
PICTURES = ROOT / "docs" / "pictures"
DICAST = str(Path(sys.executable).with_name("dicast"))
TOKEN = "a-token-for-pictures"  # noqa: S105
SETTLED = "() => document.querySelector('#dashboard[aria-busy]') === null"
DESK, PHONE = ViewportSize(width=1280, height=900), ViewportSize(width=375, height=1200)
TIMEOUT = 200_000
"""Largest wait for a part of a page, in milliseconds."""

COLORS = 128
"""Largest number of colors in a picture. Rare colors are among them, since similar colors are one."""

FIXED = r"""() => {
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const fixed = texts.currentNode.data
      .replace(/\b01[0-9A-HJKMNP-TV-Z]{24}\b/g, "01JNB5E8G0PICTURE00000000A")
      .replace(/^[0-9A-HJKMNP-TV-Z]{6}$/, "00000A")
      .replace(/\b20\d\d-\d\d-\d\d\b/g, "2026-03-02")
      .replace(/\b\d\d:\d\d:\d\d\b/g, "10:00:00")
      .replace(/(?<!:)\b\d\d:\d\d\b(?!:)/g, "10:00")
      .replace(/\b[\d.]+ m?s\b/g, "1 ms");
    if (fixed !== texts.currentNode.data) texts.currentNode.data = fixed;
  }
  return new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(() => drawn())));
}"""
"""Dates, times, ids and latencies as fixed values."""

INDEXED = r"""async ([source, most]) => {
  const image = await createImageBitmap(new Blob([Uint8Array.from(atob(source), (letter) => letter.charCodeAt(0))]));
  const context = new OffscreenCanvas(image.width, image.height).getContext("2d");
  context.drawImage(image, 0, 0);
  const pixels = new Uint32Array(context.getImageData(0, 0, image.width, image.height).data.buffer);
  const counts = new Map();
  for (const pixel of pixels) counts.set(pixel, (counts.get(pixel) ?? 0) + 1);
  const split = (pixel) => [pixel & 255, (pixel >> 8) & 255, (pixel >> 16) & 255];
  const far = (a, b) => (a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2 + (a[2] - b[2]) ** 2;
  const colors = [];
  for (const [pixel] of [...counts].sort((a, b) => b[1] - a[1] || a[0] - b[0])) {
    const color = split(pixel);
    if (colors.length < most && colors.every((other) => far(color, other) >= 64)) colors.push(color);
  }
  const places = new Map();
  for (const pixel of counts.keys()) {
    const distances = colors.map((color) => far(color, split(pixel)));
    places.set(pixel, distances.indexOf(Math.min(...distances)));
  }
  let indexes = "";
  for (const pixel of pixels) indexes += String.fromCharCode(places.get(pixel));
  return { width: image.width, height: image.height, colors: colors.flat(), indexes: btoa(indexes) };
}"""
"""The most frequent colors of an image that differ by 8 levels or more, and the index of the nearest for each pixel."""


def chunk(kind: bytes, content: bytes) -> bytes:
    """Return a chunk of a PNG file."""
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def compress(page: Page, image: bytes) -> bytes:
    """Return a PNG *image* with a palette of its most frequent colors: a third of its length."""
    indexed: dict[str, Any] = page.evaluate(INDEXED, [base64.b64encode(image).decode(), COLORS])
    width, pixels = indexed["width"], base64.b64decode(indexed["indexes"])
    lines = b"".join(b"\0" + pixels[start : start + width] for start in range(0, len(pixels), width))
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, indexed["height"], 8, 3, 0, 0, 0))
    body = chunk(b"PLTE", bytes(indexed["colors"])) + chunk(b"IDAT", zlib.compress(lines, 9))
    return b"\x89PNG\r\n\x1a\n" + head + body + chunk(b"IEND", b"")


class Camera:
    """A browser that writes pictures of its pages.

    :param target: the folder of the pictures.
    :param setup: a script that each page runs first.
    """

    def __init__(self, browser: Browser, target: Path, setup: str = "") -> None:
        self._target, self._maker = target, browser.new_page()
        context = browser.new_context(viewport=DESK, color_scheme="light", reduced_motion="reduce")
        context.add_init_script(setup or "0")
        self.page = context.new_page()
        self.page.set_default_timeout(TIMEOUT)

    def close(self) -> None:
        """Close the pages."""
        self._maker.context.close()
        self.page.context.close()

    def shoot(self, name: str, part: str | None = None) -> None:
        """Write the picture of the window, or of a *part* of the page."""
        self.page.wait_for_function(SETTLED)
        self.page.evaluate(FIXED)
        image = self.page.locator(part).screenshot() if part else self.page.screenshot()
        (self._target / f"{name}.png").write_bytes(compress(self._maker, image))

    def shoot_all(self, name: str) -> None:
        """Write four pictures of the page: at the width of a desk and of a phone, in both themes."""
        for suffix, size in (("", DESK), ("-phone", PHONE)):
            self.page.set_viewport_size(size)
            for theme in ("light", "dark"):
                self.page.emulate_media(color_scheme=theme)
                self.page.get_by_role(
                    "button", name=f"Use the {'light' if theme == 'dark' else 'dark'} theme"
                ).wait_for()
                self.shoot(f"{name}{suffix}{'-dark' if theme == 'dark' else ''}")
        self.page.set_viewport_size(DESK)
        self.page.emulate_media(color_scheme="light")


def files_of(page: str, folder: Path) -> None:
    """Write the titled blocks of a page as files."""
    shutil.copytree(ROOT / "examples", folder / "examples")
    text = (ROOT / "docs" / "how-to" / page).read_text(encoding="utf-8")
    for name, content in re.findall(r'```\w+ title="([^"]+)"\n(.*?)```', text, re.DOTALL):
        (folder / name).write_text(content, encoding="utf-8")


def call(folder: Path, *arguments: str) -> None:
    """Run the command in *folder*."""
    subprocess.run([DICAST, *arguments], cwd=folder, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # noqa: S603


def report(camera: Camera, folder: Path) -> None:
    """Write the pictures of a report."""
    files_of("reports.md", folder)
    call(folder, "run", "support.yaml", "--json")
    camera.page.goto((folder / "out" / "support.html").as_uri())
    camera.page.wait_for_selector(".virtual-row")
    camera.shoot_all("report")


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Run a server over the ledger in *folder*, and yield its address."""
    (folder / "read.token").write_text("another-token-for-pictures")
    (folder / "label.token").write_text(TOKEN)
    tokens = ["--token-file", "read.token", "--label-token-file", "label.token"]
    command = [DICAST, "serve", "--ledger", "ledger.db", "--port", "0", *tokens]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:  # noqa: S603
        assert process.stdout is not None
        try:
            yield process.stdout.readline().split()[-1]
        finally:
            process.terminate()


@contextmanager
def watched(folder: Path) -> Iterator[None]:
    """Run a watch while this is open."""
    command = [DICAST, "watch", "watch.yaml"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:  # noqa: S603
        try:
            yield
        finally:
            process.terminate()


def dashboard(camera: Camera, folder: Path) -> None:
    """Write the pictures of the dashboard: a watch, a verdict, a person's verdict, and the agreement of both."""
    files_of("dashboard.md", folder)
    call(folder, "watch", "watch.yaml", "--once")
    page = camera.page
    with served(folder) as address:
        page.goto(f"{address}?token={TOKEN}")
        page.get_by_text("live", exact=True).wait_for()
        with watched(folder), (folder / "trace.jsonl").open("a", encoding="utf-8") as trace:
            trace.write((folder / "next.jsonl").read_text(encoding="utf-8"))
            trace.flush()
            page.locator(".line-id", has_text="s2/1").wait_for()
            page.get_by_role("row", name="large").first.wait_for()
            page.get_by_text("✓ 2 pass").wait_for()
            camera.shoot("dashboard-live")
        page.goto(f"{address}#/run/shop")
        page.wait_for_selector(".gate")  # the end of the watch moves the rows
        page.wait_for_selector(".virtual-row")
        page.get_by_text("This is the only run of shop that has ended.").wait_for()
        camera.shoot("dashboard-run", ".rows")
        page.goto(f"{address}#/subject/turn/s1%2F2")
        page.wait_for_selector(".card")
        camera.shoot("dashboard-verdict")
        for id_, word in (("s1/1", "Pass"), ("s1/2", "Fail"), ("s2/1", "Half")):
            page.goto(f"{address}#/subject/turn/{id_.replace('/', '%2F')}")
            page.get_by_role("heading", name=id_).wait_for()
            page.get_by_role("button", name=word).click()
            page.get_by_role("button", name="Give the verdict").click()
            page.get_by_text("Recorded in the ledger").wait_for()
        page.goto(f"{address}#/")
        page.wait_for_selector("[data-path$='#within']")
        camera.shoot("dashboard-agreement", "section[aria-labelledby=agreement]")
        camera.shoot_all("dashboard")


def draw(browser: Browser, target: Path, setup: str = "") -> None:
    """Write all pictures to the folder *target*; each page runs the script *setup* first."""
    camera = Camera(browser, target, setup)
    for picture in (report, dashboard):
        with tempfile.TemporaryDirectory() as name:
            picture(camera, Path(name))
    camera.close()


def main() -> int:
    """Write the pictures, and return the exit code."""
    browser = shutil.which("chromium-headless-shell") or shutil.which("chromium")
    if browser is None:
        print("there is no chromium here", file=sys.stderr)
        return 1
    with sync_playwright() as driver:
        live = driver.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        draw(live, PICTURES)
        live.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
