from pathlib import Path

from pydantic_evals.reporting import EvaluationReport


def write_lines(report: EvaluationReport, path: Path) -> None:
    with path.open("a") as file:
        for case in report.cases:
            for score in case.scores.values():
                file.write(f"{case.name} {score.value}\n")
