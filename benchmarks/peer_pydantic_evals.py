"""The same four checks as evaluators of pydantic-evals, its report saved: ``python peer_pydantic_evals.py ROWS OUT``."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic_evals import Case, Dataset
from pydantic_evals.evaluators import Evaluator, EvaluatorContext
from pydantic_evals.reporting import EvaluationReportAdapter
from workload import has_keywords, has_length, is_json

Context = EvaluatorContext[Any, Any, Any]


@dataclass
class Format(Evaluator):
    def evaluate(self, ctx: Context) -> bool:
        return is_json(ctx.output)


@dataclass
class Keywords(Evaluator):
    def evaluate(self, ctx: Context) -> bool:
        return has_keywords(ctx.output)


@dataclass
class Length(Evaluator):
    def evaluate(self, ctx: Context) -> bool:
        return has_length(ctx.output)


@dataclass
class Match(Evaluator):
    def evaluate(self, ctx: Context) -> bool:
        return bool(ctx.output == ctx.expected_output)


def main(rows: Path, out: Path) -> None:
    loaded = [json.loads(line) for line in rows.read_text(encoding="utf-8").splitlines()]
    outputs = {row["input"]: row["output"] for row in loaded}

    async def task(question: str) -> str:
        return outputs[question]

    cases = [Case(name=row["id"], inputs=row["input"], expected_output=row["reference"]) for row in loaded]
    dataset = Dataset(name="benchmark", cases=cases, evaluators=[Format(), Keywords(), Length(), Match()])
    began = time.perf_counter()
    report = dataset.evaluate_sync(task, max_concurrency=50, progress=False)
    out.write_bytes(EvaluationReportAdapter.dump_json(report))
    print("\n" + json.dumps({"rows": len(report.cases), "seconds": time.perf_counter() - began}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
