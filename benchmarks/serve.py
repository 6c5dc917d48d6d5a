"""Time commands that read many verdicts, answers of ``dicast serve`` and its first page; measure the server's memory.

    uv run python benchmarks/serve.py --verdicts 1000000
    uv run python benchmarks/serve.py --ledger BIG.db     # made by own_reading.py

Each figure of a command is the median of three whole processes. A fresh server gives each answer of the first page once. Chromium then
opens the page of a second server. The seconds are followed by CPU seconds:
use these on a busy machine. Making the ledger takes some three minutes and 3 GB for a million verdicts.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import attrs

REPEATS = 3
TOKEN = "a-token-for-measuring"
ANSWER_SECONDS, PAGE_SECONDS, MEGABYTES = 1.0, 1.5, 300
"""The targets."""
ASKED = (
    *("/runs?limit=20&without=labels", "/judges", "/analytics/quality?subject_kind=turn", "/analytics/backlog"),
    *(f"/analytics/agreement{part}?judge=a&judge=b&subject_kind=turn&window=0.15" for part in ("", "/days")),
    *("/analytics/cost", "/analytics/cost?include_eval=true", "/analytics/savings"),
)
WINDOW = ("--from", "2026-01-01", "--to", "2100-01-01")
COMMANDS = (
    ("quality", *WINDOW),
    ("quality", "--latest", *WINDOW),
    ("quality", "--group-by", "judge_kind", *WINDOW),
    ("agreement", "--judge", "a", "--judge", "b"),
    ("cost",),
    ("cost", "--include-eval"),
    ("cost", "--include-eval", "--group-by", "day"),
    ("runs",),
)
STAGES = (
    ("the page is drawn", "document.querySelector('#last')"),
    ("the last run and its gate", "document.querySelector('[data-path^=\"/runs\"]')"),
    ("quality by model", "document.querySelector('[data-path*=\"mean_score\"]')"),
    ("everything", "document.querySelector('#dashboard[aria-busy]') === null"),
)


@attrs.frozen
class Server:
    """A server that runs."""

    address: str
    pid: int

    def ask(self, path: str) -> float:
        """The seconds that an answer takes."""
        request = urllib.request.Request(self.address + path, headers={"authorization": f"Bearer {TOKEN}"})
        began = time.perf_counter()
        with urllib.request.urlopen(request) as answer:
            answer.read()
        return time.perf_counter() - began

    def cpu(self) -> float:
        """The seconds of CPU that it has had."""
        fields = Path(f"/proc/{self.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def megabytes(self) -> float:
        """The most memory that it has had, in MB."""
        lines = Path(f"/proc/{self.pid}/status").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1000


@contextmanager
def served(ledger: Path, folder: Path) -> Iterator[Server]:
    """A server over *ledger* that has just started."""
    (folder / "token").write_text(TOKEN, encoding="ascii")
    dicast = str(Path(sys.executable).with_name("dicast"))
    command = [dicast, "serve", "--ledger", str(ledger), "--port", "0", "--token-file", "token"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield Server(process.stdout.readline().split()[-1].rstrip("/"), process.pid)
        process.terminate()


def timed(ledger: Path, command: Sequence[str]) -> tuple[float, float]:
    """The median of the seconds that a command takes, and of its CPU."""
    dicast = str(Path(sys.executable).with_name("dicast"))
    took = []
    for _ in range(REPEATS):
        began, before = time.perf_counter(), os.times()
        subprocess.run([dicast, *command, "--ledger", str(ledger), "--json"], check=True, stdout=subprocess.DEVNULL)
        after = os.times()
        cpu = after.children_user + after.children_system - before.children_user - before.children_system
        took.append((time.perf_counter() - began, cpu))
    return statistics.median(one for one, _ in took), statistics.median(cpu for _, cpu in took)


def first_page(server: Server) -> Iterator[tuple[str, float]]:
    """The seconds until each stage of the first page."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page()
        began = time.perf_counter()
        page.goto(f"{server.address}/?token={TOKEN}")
        for name, shown in STAGES:
            page.wait_for_function(f"() => {shown}", timeout=300_000)
            yield name, time.perf_counter() - began
        browser.close()


def measured(ledger: Path, folder: Path) -> Iterator[tuple[str, float, float, float | None]]:
    """Each figure with its target, and the CPU that it took."""
    for command in COMMANDS:
        seconds, cpu = timed(ledger, command)
        yield f"dicast {' '.join(command)}, s", seconds, ANSWER_SECONDS, cpu
    with served(ledger, folder) as server:
        for path in ASKED:
            before = server.cpu()
            seconds = server.ask(path)
            yield f"{path}, s", seconds, ANSWER_SECONDS, server.cpu() - before
        yield "memory after these, MB", server.megabytes(), MEGABYTES, None
    if shutil.which("chromium") is None:
        return
    with served(ledger, folder) as server:
        for name, seconds in first_page(server):
            yield f"first page, {name}, s", seconds, PAGE_SECONDS, server.cpu()
        yield "memory with the page open, MB", server.megabytes(), MEGABYTES, None


def main() -> int:
    """Print the figures; a missed target is information."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--verdicts", type=int, default=1_000_000)
    parser.add_argument("--ledger", type=Path)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    figures = []
    with tempfile.TemporaryDirectory() as name:
        folder, ledger = Path(name), given.ledger and given.ledger.absolute()
        if ledger is None:
            maker = Path(__file__).with_name("own_reading.py")
            subprocess.run([sys.executable, str(maker), name, str(given.verdicts)], check=True)
            ledger = folder / "ledger.db"
        for what, value, target, cpu in measured(ledger, folder):
            figures.append({"name": what, "value": round(value, 2), "target": target, "cpu": cpu and round(cpu, 2)})
            if not given.json:
                took = "" if cpu is None else f", {cpu:.2f} s of CPU"
                print(f"{what}: {value:.2f} ({target:g}) {'ok' if value <= target else 'MISSED'}{took}", flush=True)
    if given.json:
        print(json.dumps(figures, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
