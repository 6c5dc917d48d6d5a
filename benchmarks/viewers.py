"""Time a run alone and while ``dicast serve`` answers five viewers of its ledger.

    uv run python benchmarks/viewers.py --pairs 5

A viewer does what a browser with the dashboard's first page does, but for drawing it: it reads the news as they come, and asks for all figures
whenever a round begins. They are in this process, and take little of the processor. The ledger has 200,000 verdicts before the run. A pair is one
run alone and one with viewers, in turn the one or the other first; the ratios within pairs show the loss, also on a machine with other work.
The seconds are followed by the CPU seconds of the run and of the server.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import attrs
import workload
from processes import DICAST, HERE

VIEWERS, TARGET = 5, 1.1
TOKEN = "a-token-for-measuring"
AGREE = "judge=a&judge=b&subject_kind=turn&window=0.15"
FIGURES = (
    *("/judges", "/runs?limit=20&without=labels", "/runs?name=benchmark&limit=30", "/analytics/backlog"),
    *("/analytics/quality?subject_kind=turn", f"/analytics/agreement?{AGREE}&worst=5"),
    *(f"/analytics/agreement/days?{AGREE}", "/analytics/cost?include_eval=true", "/analytics/savings"),
)


@attrs.frozen
class Took:
    """A run's seconds and CPU seconds, the server's CPU seconds meanwhile, and the viewers' number of answers."""

    seconds: float
    cpu: float
    server: float = 0.0
    answers: int = 0


class Viewer:
    """One who looks on."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session
        self.answers = 0

    async def look(self, **headers: str) -> None:
        """Ask for all figures at once."""
        await asyncio.gather(*(self._ask(path, headers) for path in FIGURES))

    async def _ask(self, path: str, headers: dict[str, str]) -> None:
        async with self._session.get(path, headers=headers) as answer:
            answer.raise_for_status()
            await answer.read()
        self.answers += 1

    async def stay(self) -> None:
        """Read events and ask in each round; a disconnected viewer connects again."""
        last: dict[str, str] = {}
        async with asyncio.TaskGroup() as looks:
            while True:
                async with self._session.get("/events?brief=true", headers=last) as stream:
                    async for line in stream.content:
                        if line.startswith(b"id: "):
                            last = {"last-event-id": line[4:].strip().decode()}
                        elif line.startswith(b'data: {"name"'):
                            looks.create_task(self.look(**{"dicast-round": json.loads(line[6:])["name"]}))
                await asyncio.sleep(2)


def cpu_of(pid: int) -> float:
    """The seconds of CPU that a process has had."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@asynccontextmanager
async def viewed(folder: Path) -> AsyncIterator[tuple[int, Sequence[Viewer]]]:
    """A server over the ledger in *folder* that has answered its viewers, who stay."""
    (folder / "token").write_text(TOKEN, encoding="ascii")
    command = [DICAST, "serve", "--ledger", "ledger.db", "--port", "0", "--token-file", "token"]
    server = await asyncio.create_subprocess_exec(*command, cwd=folder, stdout=subprocess.PIPE)
    assert server.stdout is not None
    address = (await server.stdout.readline()).decode().split()[-1].rstrip("/")
    headers = {"authorization": f"Bearer {TOKEN}"}
    async with aiohttp.ClientSession(address, headers=headers, timeout=aiohttp.ClientTimeout(total=None)) as session:
        viewers = [Viewer(session) for _ in range(VIEWERS)]
        await asyncio.gather(*(viewer.look() for viewer in viewers))
        staying = [asyncio.create_task(viewer.stay()) for viewer in viewers]
        yield server.pid, viewers
        for one in staying:
            one.cancel()
        await asyncio.gather(*staying, return_exceptions=True)
    server.terminate()
    await server.wait()


async def run(folder: Path) -> tuple[float, float]:
    """The seconds that a run takes, and its CPU."""
    began, before = time.perf_counter(), os.times()
    command = [DICAST, "run", "pipeline.yaml", "--json"]
    done = await asyncio.create_subprocess_exec(*command, cwd=folder, stdout=subprocess.DEVNULL)
    if await done.wait():
        raise SystemExit(f"the run ended with {done.returncode}")
    after = os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return time.perf_counter() - began, cpu


def copied(base: Path, folder: Path) -> None:
    """Put a copy of *base* where the last run has written."""
    for old in folder.glob("ledger.db*"):
        old.unlink()
    shutil.copy(base, folder / "ledger.db")


async def took(folder: Path, base: Path, *, looked_on: bool) -> Took:
    """Time a run that continues a copy of *base*."""
    await asyncio.to_thread(copied, base, folder)
    if not looked_on:
        return Took(*await run(folder))
    async with viewed(folder) as (pid, viewers):
        before = cpu_of(pid)
        seconds, cpu = await run(folder)
        return Took(seconds, cpu, cpu_of(pid) - before, sum(viewer.answers for viewer in viewers))


async def main() -> int:
    """Print the figures; a missed target is information."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=60_000)
    parser.add_argument("--verdicts", type=int, default=200_000)
    parser.add_argument("--pairs", type=int, default=5)
    given = parser.parse_args()
    ratios = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        workload.write(folder, given.rows)
        (folder / "before").mkdir()
        maker = [sys.executable, str(HERE / "own_reading.py"), str(folder / "before"), str(given.verdicts)]
        await (await asyncio.create_subprocess_exec(*maker)).wait()
        base = folder / "before" / "ledger.db"
        for number in range(given.pairs):
            order = (False, True) if number % 2 else (True, False)
            pair = {looked_on: await took(folder, base, looked_on=looked_on) for looked_on in order}
            alone, seen = pair[False], pair[True]
            ratios.append((seen.seconds / alone.seconds, seen.cpu / alone.cpu))
            print(
                f"alone {alone.seconds:.1f} s, {alone.cpu:.1f} s of CPU; with viewers {seen.seconds:.1f} s, {seen.cpu:.1f} s of CPU;"
                f" the server's CPU {seen.server:.1f} s, {seen.answers} answers",
                flush=True,
            )
    wall, cpu = (statistics.median(column) for column in zip(*ratios, strict=True))
    print(f"seconds with five viewers, of those alone: {wall:.2f} ({TARGET:g}) {'ok' if wall <= TARGET else 'MISSED'}")
    print(f"CPU of the run with five viewers, of that alone: {cpu:.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
