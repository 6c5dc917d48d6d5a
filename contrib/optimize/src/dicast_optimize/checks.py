"""Scores of a text by several judges (``validate``), or compared with a baseline (``score-check``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from math import fsum, isfinite
from pathlib import Path
from statistics import stdev
from typing import Any

import orjson

from dicast import ConfigError
from dicast.toolkit.atomic_file import AtomicFile
from dicast.toolkit.files import MAX_DATA_BYTES, error_reason, read_bytes

from .costs import spent
from .evaluation import Evaluation, Item, Stopped, items
from .optimization import Opened
from .spec import Spec


def judged(spec: Spec, parts: Opened, candidate: str) -> dict[str, Any]:
    """Return the score of *candidate* by each judge of the spec, their mean and deviation. A judge that fails has no score."""
    judges = spec.model["judges"]
    evaluations_by_judge = parts.evaluator.judge_with(candidate, _compared_on(spec), judges)
    results = [{"judge": label, **_of_judge(evaluations)} for label, evaluations in evaluations_by_judge.items()]
    scores = [result["score"] for result in results if result["score"] is not None]
    return {
        "ok": bool(scores),
        "judges": results,
        "mean": fsum(scores) / len(scores) if scores else None,
        "stddev": stdev(scores) if len(scores) > 1 else 0.0 if scores else None,
        "min": min(scores, default=None),
        "max": max(scores, default=None),
        "failed": len(results) - len(scores),
        "cost": spent(parts.folder / "ledger.db"),
    }


def _compared_on(spec: Spec) -> list[Item]:
    return items(spec.validated_on, spec.dataset if spec.valset is None else spec.valset)


def _of_judge(evaluations: Sequence[Evaluation]) -> dict[str, Any]:
    scores = [evaluation.score for evaluation in evaluations if evaluation.score is not None]
    failures = [evaluation.failure for evaluation in evaluations if evaluation.failure is not None]
    is_complete = bool(scores) and not failures
    return {"score": fsum(scores) / len(scores) if is_complete else None, "error": failures[0] if failures else None}


def measured(spec: Spec, parts: Opened) -> tuple[float | None, str | None]:
    """Return the score of the spec's own text, or the reason for a missing score."""
    try:
        evaluations = parts.evaluator.ask(spec.seed, _compared_on(spec))
    except Stopped as stopped:
        return None, str(stopped)
    summary = _of_judge(evaluations)
    return summary["score"], summary["error"]


def compared(name: str, score: float | None, error: str | None, entry: object, tolerance: float) -> dict[str, Any]:
    """Compare *score* with its baseline: it passes if it is at most *tolerance* lower, or if there is no baseline yet."""
    baseline = entry.get("baseline") if isinstance(entry, dict) else None
    low = score is not None and baseline is not None and round(score - baseline + tolerance, 9) < 0
    return {
        "name": name,
        "score": score,
        "baseline": baseline,
        "delta": None if score is None or baseline is None else round(score - baseline, 6),
        "error": error,
        "passed": score is not None and not low,
    }


def read_baselines(path: Path) -> dict[str, Any]:
    """Return the baselines in the file at *path*, or none if there is no file.

    :raises ConfigError: if the file has another format.
    """
    try:
        baselines = orjson.loads(read_bytes(path, MAX_DATA_BYTES))
    except FileNotFoundError:
        return {}
    except (OSError, orjson.JSONDecodeError) as error:
        raise ConfigError(f"{path} cannot be read as baselines: {error_reason(error)}") from error
    wrong = (
        [name for name, entry in baselines.items() if not _is_entry(entry)]
        if isinstance(baselines, dict)
        else ["the file"]
    )
    if wrong:
        raise ConfigError(f"{path}: {', '.join(wrong)} is not {{baseline: NUMBER, history: []}}")
    return dict(baselines)


def _is_entry(entry: object) -> bool:
    baseline = entry.get("baseline") if isinstance(entry, dict) else None
    return isinstance(baseline, int | float) and not isinstance(baseline, bool) and isfinite(baseline)


def write_baselines(path: Path, before: Mapping[str, Any], checks: Sequence[Mapping[str, Any]], now: datetime) -> None:
    """Store the scores of *checks* as the baselines, and append them to the histories."""
    after = dict(before)
    at = now.astimezone(UTC).isoformat(timespec="seconds")
    for check in checks:
        score = round(check["score"], 6)
        entry = before.get(check["name"], {})
        history = [*entry.get("history", []), {"score": score, "at": at}]
        after[check["name"]] = {**entry, "baseline": score, "history": history}
    with AtomicFile(path) as file:
        file.write(orjson.dumps(after, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
        file.commit()
