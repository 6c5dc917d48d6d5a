"""``dicast.run`` alone, timed as the peers are, after its imports: ``python own_run.py PIPELINE``."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import dicast

IMPORTS = {
    "metrics": ["proxy/format", "diff/match"],
    "ledger": {"ledger/sqlite": {"path": "imports.db"}},
}
"""A pipeline for one subject, which brings in what the measured one needs."""


def main(pipeline: Path) -> None:
    dicast.run(IMPORTS, subjects=[dicast.Subject("row", "1", output="a", reference="a")])
    began = time.perf_counter()
    done = dicast.run(pipeline)
    print(json.dumps({"rows": done.scored, "seconds": time.perf_counter() - began}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
