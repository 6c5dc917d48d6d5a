"""Where a row's time goes: the CPU shares of a run's modules, by sampling. ``python benchmarks/shares.py [ROWS]``

A sample counts for every module that is on the stack, so shares of modules that call each other overlap.
"""

from __future__ import annotations

import signal
import sys
import tempfile
from collections import Counter
from pathlib import Path
from types import FrameType

import workload

SECONDS = 0.001
SHOWN = 40


def main(rows: int) -> None:
    import dicast

    shares: Counter[str] = Counter()
    samples = 0

    def sample(_: int, frame: FrameType | None) -> None:
        nonlocal samples
        samples += 1
        seen = set()
        while frame is not None:
            path = Path(frame.f_code.co_filename)
            seen.add(f"{path.parent.name}/{path.stem} {frame.f_code.co_name}")
            frame = frame.f_back
        shares.update(seen)

    with tempfile.TemporaryDirectory() as name:
        workload.write(Path(name), rows)
        signal.signal(signal.SIGPROF, sample)
        signal.setitimer(signal.ITIMER_PROF, SECONDS, SECONDS)
        dicast.run(Path(name) / "pipeline.yaml")
        signal.setitimer(signal.ITIMER_PROF, 0)
    for place, count in shares.most_common(SHOWN):
        print(f"{count / samples:6.1%}  {place}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 50_000)
