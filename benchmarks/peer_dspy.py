"""The same four checks as a metric of dspy.Evaluate, its results saved: ``python peer_dspy.py ROWS OUT``."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import dspy
from workload import check


class Ready(dspy.Module):
    """A program whose answer is there already."""

    def forward(self, input: str, output: str) -> dspy.Prediction:
        return dspy.Prediction(output=output)


def metric(example: dspy.Example, prediction: dspy.Prediction, _trace: Any = None) -> float:
    return sum(check(prediction.output, example.reference)) / 4


def main(rows: Path, out: Path) -> None:
    loaded = [json.loads(line) for line in rows.read_text(encoding="utf-8").splitlines()]
    examples = [dspy.Example(**row).with_inputs("input", "output") for row in loaded]
    # One thread: the checks only compute, more of them are slower.
    evaluate = dspy.Evaluate(
        devset=examples, metric=metric, num_threads=1, display_progress=False, save_as_json=str(out)
    )
    began = time.perf_counter()
    result = evaluate(Ready())
    print("\n" + json.dumps({"rows": len(result.results), "seconds": time.perf_counter() - began}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
