"""How much longer pytest takes to start where dicast-pytest is installed and not used: at most 20 ms.

    uv run python benchmarks/pytest_start.py

Both collect one empty test without any other plugin, and take turns. What counts is the CPU time of each at its quickest: what else the
machine does makes a run longer and never shorter.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

BAR_MS = 20
ROUNDS = 20


def started(folder: Path, *options: str) -> float:
    """The milliseconds of CPU that one run takes."""
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # a user's pytest keeps what it has compiled
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options]
    before = computed()
    subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True)
    return (computed() - before) * 1000


def computed() -> float:
    """The seconds for which the processes that were waited for have computed."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> int:
    """Print the difference; return 1 where it is over the bar."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "test_nothing.py").write_text("def test_nothing():\n    pass\n")
        used = ("-p", "dicast_pytest.plugin")
        started(folder), started(folder, *used)  # what is compiled is kept
        pairs = [(started(folder), started(folder, *used)) for _ in range(ROUNDS)]
    without, with_ = (min(side) for side in zip(*pairs, strict=True))
    more = with_ - without
    print(f"without {without:.0f} ms, with dicast-pytest {with_:.0f} ms: {more:+.1f} ms (bar {BAR_MS} ms)")
    return int(more > BAR_MS)


if __name__ == "__main__":
    sys.exit(main())
