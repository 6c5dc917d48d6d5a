"""``report/html``: how long 10,000 rows take to write, how large the page is, and how soon and how smoothly Chromium shows it."""

from __future__ import annotations

import json
import random
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from processes import DICAST, Figure, Wrong, run

ROWS = 10_000
WORDS = (
    "account",
    "answer",
    "because",
    "cancel",
    "could",
    "delivery",
    "flight",
    "however",
    "invoice",
    "order",
    "please",
)
PIPELINE = """name: report
source: {rows/jsonl: {path: rows.jsonl}}
metrics: [proxy/format, {proxy/length: {max: 900}}, {proxy/keywords: {forbidden: [invoice7]}}, diff/match]
ledger: {ledger/sqlite: {path: ledger.db}}
"""
CHROMIUM = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")


def measure(folder: Path, count: int | None) -> Iterator[Figure]:
    """All of it, over *count* rows."""
    rows = count or ROWS
    name = f"report.{rows}"
    _write(folder, rows)
    run([DICAST, "run", "pipeline.yaml", "--json"], folder, codes=(0, 1))
    done = run([DICAST, "report", "--ledger", "ledger.db", "--json"], folder)
    bare = run([DICAST, "--version"], folder)
    if (shown := json.loads(done.output)["runs"][0]["shown"]) != rows:
        raise Wrong(f"the page has {shown} of {rows} rows")
    yield Figure(f"{name}.write_wall", done.wall - bare.wall, "s", "<= 3")
    yield Figure(f"{name}.write_cpu", done.cpu - bare.cpu, "s")
    yield Figure(f"{name}.write_peak", done.peak_mb, "MB")
    yield Figure(f"{name}.size", (folder / "report.html").stat().st_size / 1e6, "MB", "<= 12")
    yield from _shown(folder / "report.html", name, rows)


def _write(folder: Path, rows: int) -> None:
    draw = random.Random(4)
    (folder / "pipeline.yaml").write_text(PIPELINE)
    with (folder / "rows.jsonl").open("w") as file:
        for number in range(rows):
            said = " ".join(f"{draw.choice(WORDS)}{draw.randrange(60)}" for _ in range(draw.randrange(30, 160)))
            asked = " ".join(f"{draw.choice(WORDS)}{draw.randrange(60)}" for _ in range(40))
            right = said if draw.random() < 0.7 else asked
            row = {"id": f"row-{number}", "input": asked, "output": said, "reference": right}
            file.write(json.dumps(row) + "\n")


def _shown(page: Path, name: str, rows: int) -> Iterator[Figure]:
    """First paint, the rows, and the frames while the table is scrolled from end to end, in headless Chromium."""
    browser = next(filter(None, map(shutil.which, CHROMIUM)), None)
    if browser is None:
        yield from (Figure(f"{name}.{what}", None, "s") for what in ("first_paint", "rows_shown", "longest_frame"))
        return
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        live = driver.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        tab = live.new_page(viewport={"width": 1280, "height": 900})
        began = time.perf_counter()
        tab.goto(page.as_uri())
        tab.wait_for_selector(".virtual-row")
        whole = time.perf_counter() - began
        paints: Any = tab.evaluate("performance.getEntriesByType('paint').map((one) => [one.name, one.startTime])")
        yield Figure(f"{name}.first_paint", dict(paints)["first-contentful-paint"] / 1000, "s", "<= 1.5")
        yield Figure(f"{name}.rows_shown", whole, "s")
        began = time.perf_counter()
        tab.fill("input[type=search]", "account7 delivery11")
        tab.wait_for_selector(f".count:not(:has-text('{rows:,} of'))")
        yield Figure(f"{name}.searched", time.perf_counter() - began, "s")
        tab.fill("input[type=search]", "")
        tab.wait_for_selector(f".count:has-text('{rows:,} of')")
        frames: list[float] = tab.evaluate(_SCROLL)
        yield Figure(f"{name}.median_frame", sorted(frames)[len(frames) // 2], "ms", "<= 34")
        yield Figure(f"{name}.longest_frame", max(frames), "ms")
        live.close()


_SCROLL = """async () => {
  const box = document.querySelector('.virtual');
  const frames = [];
  let last = performance.now();
  for (let step = 1; step <= 120; step++) {
    box.scrollTop = (box.scrollHeight * step) / 120;
    await new Promise((next) => requestAnimationFrame(next));
    const now = performance.now();
    frames.push(now - last);
    last = now;
  }
  return frames;
}"""
