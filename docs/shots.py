"""Script that writes the pictures in docs/pictures: the pages of docs/how-to/reports.md and dashboard.md in Chromium.

uv run python docs/shots.py            # after a page has changed; needs chromium
"""  # noqa: INP001

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

ROOT = Path(__file__).resolve().parents[1]
PICTURES = ROOT / "docs" / "pictures"
DICAST = str(Path(sys.executable).with_name("dicast"))
TOKEN = "a-token-for-pictures"  # noqa: S105
SETTLED = "() => !document.documentElement.hasAttribute('aria-busy')"


def files_of(page: str, folder: Path) -> None:
    """Write the titled blocks of a page as files."""
    shutil.copytree(ROOT / "examples", folder / "examples")
    text = (ROOT / "docs" / "how-to" / page).read_text(encoding="utf-8")
    for name, content in re.findall(r'```\w+ title="([^"]+)"\n(.*?)```', text, re.DOTALL):
        (folder / name).write_text(content, encoding="utf-8")


def call(folder: Path, *arguments: str) -> None:
    """Run the command in *folder*."""
    subprocess.run([DICAST, *arguments], cwd=folder, check=False, stdout=subprocess.DEVNULL)  # noqa: S603


def report(browser: Browser, folder: Path) -> None:
    """Write the picture of a report."""
    files_of("reports.md", folder)
    call(folder, "run", "support.yaml", "--json")
    page = browser.new_page(viewport={"width": 1100, "height": 860}, color_scheme="light")
    page.goto((folder / "out" / "support.html").as_uri())
    page.wait_for_selector(".virtual-row")
    page.screenshot(path=PICTURES / "report.png")


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Run a server over the ledger in *folder*, and yield its address."""
    (folder / "read.token").write_text("another-token-for-pictures")
    (folder / "label.token").write_text(TOKEN)
    tokens = ["--token-file", "read.token", "--label-token-file", "label.token"]
    command = [DICAST, "serve", "--ledger", "ledger.db", "--port", "0", *tokens]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603
        assert process.stdout is not None
        yield process.stdout.readline().split()[-1]
        process.terminate()


@contextmanager
def watched(folder: Path) -> Iterator[None]:
    """Run a watch while this is open."""
    with subprocess.Popen([DICAST, "watch", "watch.yaml"], cwd=folder, stderr=subprocess.DEVNULL) as process:  # noqa: S603
        yield
        process.terminate()


def dashboard(browser: Browser, folder: Path) -> None:
    """Write the pictures of the dashboard: a verdict, a person's verdict, and the agreement of both."""
    files_of("dashboard.md", folder)
    call(folder, "watch", "watch.yaml", "--once")
    with served(folder) as address:
        page = browser.new_page(viewport={"width": 1200, "height": 900}, color_scheme="light")
        page.goto(f"{address}?token={TOKEN}")
        page.get_by_text("live", exact=True).wait_for()
        with watched(folder), (folder / "trace.jsonl").open("a", encoding="utf-8") as trace:
            trace.write((folder / "next.jsonl").read_text(encoding="utf-8"))
            trace.flush()
            page.locator(".line-id", has_text="s2/1").wait_for()
            page.get_by_role("row", name="large").first.wait_for()
            page.wait_for_function(SETTLED)
            page.screenshot(path=PICTURES / "dashboard-live.png")
        page.goto(f"{address}#/run/shop")
        page.wait_for_selector(".virtual-row")
        page.wait_for_function(SETTLED)
        page.locator(".rows").screenshot(path=PICTURES / "dashboard-run.png")
        page.goto(f"{address}#/subject/turn/s1%2F2")
        page.wait_for_selector(".card")
        page.wait_for_function(SETTLED)
        page.screenshot(path=PICTURES / "dashboard-verdict.png")
        for id_, word in (("s1/1", "Good"), ("s1/2", "Bad"), ("s2/1", "Mixed")):
            page.goto(f"{address}#/subject/turn/{id_.replace('/', '%2F')}")
            page.get_by_role("heading", name=id_).wait_for()
            page.get_by_role("button", name=word).click()
            page.get_by_role("button", name="Give the verdict").click()
            page.get_by_text("Recorded in the ledger").wait_for()
        page.goto(f"{address}#/")
        page.wait_for_selector("[data-path$='#within']")
        page.wait_for_function(SETTLED)
        page.screenshot(path=PICTURES / "dashboard.png")
        page.locator("section[aria-labelledby=agreement]").screenshot(path=PICTURES / "dashboard-agreement.png")
        page.close()


def main() -> int:
    """Write the pictures, and return the exit code."""
    browser = shutil.which("chromium")
    if browser is None:
        print("there is no chromium here", file=sys.stderr)
        return 1
    with sync_playwright() as driver:
        live = driver.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        for picture in (report, dashboard):
            with tempfile.TemporaryDirectory() as name:
                picture(live, Path(name))
        live.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
