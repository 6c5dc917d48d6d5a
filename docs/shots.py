"""Writes docs/pictures/report.png, the page of docs/how-to/reports.md as Chromium shows it.

uv run python docs/shots.py            # after the page has changed; needs chromium
"""  # noqa: INP001

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "how-to" / "reports.md"
PICTURE = ROOT / "docs" / "pictures" / "report.png"


def main() -> int:
    """Write the picture; returns the exit code."""
    browser = shutil.which("chromium")
    if browser is None:
        print("there is no chromium here", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as name, sync_playwright() as driver:
        folder = Path(name)
        shutil.copytree(ROOT / "examples", folder / "examples")
        found = re.search(r'```yaml title="support.yaml"\n(.*?)```', PAGE.read_text(encoding="utf-8"), re.DOTALL)
        assert found is not None
        (folder / "support.yaml").write_text(found[1], encoding="utf-8")
        command = [str(Path(sys.executable).with_name("dicast")), "run", "support.yaml", "--json"]
        subprocess.run(command, cwd=folder, check=False, stdout=subprocess.DEVNULL)  # noqa: S603
        live = driver.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        page = live.new_page(viewport={"width": 1100, "height": 860}, color_scheme="light")
        page.goto((folder / "out" / "support.html").as_uri())
        page.wait_for_selector(".virtual-row")
        page.screenshot(path=PICTURE)
        live.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
