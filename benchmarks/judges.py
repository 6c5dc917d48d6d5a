"""Calls to a judge's model: a whole ``dicast run`` and a bare loop over an HTTP client that posts the very same bodies."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import workload
from processes import DICAST, HERE, Figure, Measured, Wrong, clear, run

LATENCY = 0.1
LOADS = ((500, 50, "<= 1.25"), (5_000, 500, "<= 1.5"))
"""Calls, calls at once, and how many times the bare loop's seconds dicast may take."""
PEER = "httpx_aiohttp"
PRICES = {"free": "free", "priced": "{input_per_mtok: 1, output_per_mtok: 2}"}
LITELLM_LOAD = (500, 50, "<= 1.15")
CPU_MS = "<= 2.5"

PIPELINE = """\
name: benchmark
source: {{rows/jsonl: {{path: rows.jsonl}}}}
judges: [{{llm/judge: {{model: {{{model}}}}}}}]
budget: {{run: 1000 usd, day: 1000 usd}}
executor: {{dicast/async: {{concurrency: {at_once}}}}}
ledger: {{ledger/sqlite: {{path: ledger.db}}}}
"""
OPENAI = "openai/chat: {{base_url: {url}, model: m, price: {price}}}"
LITELLM = "litellm/chat: {{model: openai/m, api_base: {url}, api_key: none, price: free}}"


@dataclass(frozen=True)
class Asked:
    """One process that asked the endpoint: all of it, and its calls alone.

    *calls* are the seconds from the first call's arrival at the endpoint to the last one's answer, by the endpoint's clock;
    *endpoint* is the share of one processor that the endpoint itself took meanwhile.
    """

    whole: Measured
    calls: float
    peak: int
    endpoint: float


def measure(folder: Path, count: int | None, repeats: int, peers: Path | None) -> Iterator[Figure]:
    """Each load in turn, dicast and bare loop one after the other; *count* calls, a tenth at once, in place of the loads."""
    loads = [(count, max(1, count // 10), LOADS[0][2])] if count else LOADS
    python = peers and peers / PEER / "bin" / "python"
    for calls, at_once, target in loads:
        floor = [python, HERE / "bare_loop.py", PEER] if python and python.exists() else None
        yield from _load(folder, calls, at_once, repeats, target, floor)
    calls, at_once, target = (*loads[0][:2], LITELLM_LOAD[2]) if count else LITELLM_LOAD
    yield from _litellm(folder, calls, at_once, repeats, target)


def _load(
    folder: Path, calls: int, at_once: int, repeats: int, target: str, floor: Sequence[Any] | None
) -> Iterator[Figure]:
    write_rows(folder, calls)
    _dicast(folder, calls, at_once, OPENAI, "free", record="bodies.jsonl")
    floors: list[Asked] = []
    runs: dict[str, list[Asked]] = {name: [] for name in PRICES}
    for _ in range(repeats):
        floors += [_bare(folder, calls, at_once, floor)] if floor else []
        for name, price in PRICES.items():
            runs[name].append(_dicast(folder, calls, at_once, OPENAI, price))
    yield from _floor_figures(f"judges.{calls}.bare_loop", floors)
    for name, asked in runs.items():
        yield from _figures(f"judges.{calls}.{name}", calls, at_once, asked, floors, target)


def _litellm(folder: Path, calls: int, at_once: int, repeats: int, target: str) -> Iterator[Figure]:
    write_rows(folder, calls)
    _dicast(folder, calls, at_once, LITELLM, "free", record="bodies.jsonl")
    floors, runs = [], []
    for _ in range(repeats):
        floors.append(_bare(folder, calls, at_once, [sys.executable, HERE / "bare_loop.py", "litellm"]))
        runs.append(_dicast(folder, calls, at_once, LITELLM, "free"))
    yield from _floor_figures("judges.litellm.bare_loop", floors)
    # most of the CPU is litellm's own
    yield from _figures("judges.litellm.dicast", calls, at_once, runs, floors, target, cpu="")


def _floor_figures(name: str, floors: Sequence[Asked]) -> Iterator[Figure]:
    yield Figure(f"{name}_wall", median(each.whole.wall for each in floors) if floors else None, "s")
    yield Figure(f"{name}_calls", median(each.calls for each in floors) if floors else None, "s")
    yield Figure(f"{name}_cpu", median(each.whole.cpu for each in floors) if floors else None, "s")


def _figures(
    name: str,
    calls: int,
    at_once: int,
    runs: Sequence[Asked],
    floors: Sequence[Asked],
    target: str,
    cpu: str = CPU_MS,
) -> Iterator[Figure]:
    yield Figure(f"{name}_wall", median(each.whole.wall for each in runs), "s")
    yield Figure(f"{name}_calls", median(each.calls for each in runs), "s")
    pairs = list(zip(runs, floors, strict=True)) if floors else []
    wall = median(run.whole.wall / floor.whole.wall for run, floor in pairs) if pairs else None
    alone = median(run.calls / floor.calls for run, floor in pairs) if pairs else None
    yield Figure(f"{name}_wall_ratio", wall, "x the bare loop's process", target)
    yield Figure(f"{name}_calls_ratio", alone, "x the bare loop's calls", target)
    yield Figure(f"{name}_cpu_per_call", median(each.whole.cpu for each in runs) / calls * 1e3, "ms", cpu)
    yield Figure(f"{name}_at_once", min(each.peak for each in runs), "calls", f">= {at_once}")
    yield Figure(f"{name}_endpoint", median(each.endpoint for each in runs), "processors")


def write_rows(folder: Path, count: int) -> None:
    """Put ``rows.jsonl`` into *folder*: every subject has a prompt of its own."""
    lines = (json.dumps({key: row[key] for key in ("id", "input", "output")}) for row in workload.rows(count))
    (folder / "rows.jsonl").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def write_pipeline(folder: Path, model: str, at_once: int) -> None:
    """Put ``pipeline.yaml`` into *folder*."""
    (folder / "pipeline.yaml").write_text(PIPELINE.format(model=model, at_once=at_once), encoding="utf-8")


def _dicast(folder: Path, calls: int, at_once: int, model: str, price: str, record: str | None = None) -> Asked:
    clear(folder, "ledger.db*", *([record] if record else []))
    with endpoint(folder, record) as url:
        write_pipeline(folder, model.format(url=url, price=price), at_once)
        done = run([DICAST, "run", "pipeline.yaml", "--json"], folder)
        asked = _asked(done, url, calls)
    if (scored := json.loads(done.output)["scored"]) != calls:
        raise Wrong(f"dicast scored {scored} of {calls} rows")
    return asked


def _bare(folder: Path, calls: int, at_once: int, command: Sequence[Any]) -> Asked:
    with endpoint(folder) as url:
        done = run([*command, url, "bodies.jsonl", str(at_once)], folder)
        return _asked(done, url, calls)


def _asked(done: Measured, url: str, calls: int) -> Asked:
    found = stats(url)
    if found["count"] != calls:
        raise Wrong(f"the endpoint was asked {found['count']} times in place of {calls}")
    seconds = found["last"] - found["first"]
    return Asked(done, seconds, found["peak"], found["cpu"] / seconds)


@contextmanager
def endpoint(folder: Path, record: str | None = None, latency: float = LATENCY, *, vary: bool = False) -> Iterator[str]:
    """Serve ``chat_endpoint.py`` while the block runs, and give its URL; *record* is the file that takes the bodies."""
    command = [sys.executable, HERE / "chat_endpoint.py", "--latency", str(latency)]
    with subprocess.Popen(
        [*command, *(["--record", record] if record else []), *(["--vary"] if vary else [])],
        cwd=folder,
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stdout is not None
        try:
            yield server.stdout.readline().strip()
        finally:
            server.terminate()


def stats(url: str) -> dict[str, Any]:
    """Return the counts of calls that the endpoint at *url* reports."""
    with urllib.request.urlopen(f"{url.removesuffix('/v1')}/stats") as answer:
        return dict(json.load(answer))
