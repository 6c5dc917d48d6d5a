"""A text by several judges, and scores against a baseline: ``validate`` and ``score-check``."""

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
from dicast.toolkit.files import MAX_DATA_BYTES, read_bytes

from .costs import spent
from .evaluation import Evaluation, Item, Stopped, items
from .optimization import Opened
from .spec import Spec


def judged(spec: Spec, parts: Opened, candidate: str) -> dict[str, Any]:
    """What each of the spec's judges says of *candidate*, and how far they agree; a judge that fails has no score."""
    judges = spec.model["judges"]
    found = parts.evaluator.judge_with(candidate, _compared_on(spec), judges)
    each = [{"judge": label, **_of_judge(evaluations)} for label, evaluations in found.items()]
    scores = [one["score"] for one in each if one["score"] is not None]
    return {
        "ok": bool(scores),
        "judges": each,
        "mean": fsum(scores) / len(scores) if scores else None,
        "stddev": stdev(scores) if len(scores) > 1 else 0.0 if scores else None,
        "min": min(scores, default=None),
        "max": max(scores, default=None),
        "failed": len(each) - len(scores),
        "cost": spent(parts.folder / "ledger.db"),
    }


def _compared_on(spec: Spec) -> list[Item]:
    return items(spec.validated_on, spec.dataset if spec.valset is None else spec.valset)


def _of_judge(found: Sequence[Evaluation]) -> dict[str, Any]:
    scores = [one.score for one in found if one.score is not None]
    failures = [one.failure for one in found if one.failure is not None]
    whole = bool(scores) and not failures
    return {"score": fsum(scores) / len(scores) if whole else None, "error": failures[0] if failures else None}


def measured(spec: Spec, parts: Opened) -> tuple[float | None, str | None]:
    """The score of the spec's own text, or why it has none."""
    try:
        found = parts.evaluator.ask(spec.seed, _compared_on(spec))
    except Stopped as stopped:
        return None, str(stopped)
    told = _of_judge(found)
    return told["score"], told["error"]


def compared(name: str, score: float | None, error: str | None, entry: object, tolerance: float) -> dict[str, Any]:
    """Whether *score* is no more than *tolerance* below the baseline's; a text without a baseline passes and says so."""
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
    """The baselines in the file at *path*; one that is not there has none.

    :raises ConfigError: when it is no such file.
    """
    try:
        found = orjson.loads(read_bytes(path, MAX_DATA_BYTES))
    except FileNotFoundError:
        return {}
    except (OSError, orjson.JSONDecodeError) as error:
        raise ConfigError(f"{path} cannot be read as baselines: {error}") from error
    wrong = [name for name, entry in found.items() if not _is_entry(entry)] if isinstance(found, dict) else ["the file"]
    if wrong:
        raise ConfigError(f"{path}: {', '.join(wrong)} is no {{baseline: NUMBER, history: []}}")
    return dict(found)


def _is_entry(entry: object) -> bool:
    baseline = entry.get("baseline") if isinstance(entry, dict) else None
    return isinstance(baseline, int | float) and not isinstance(baseline, bool) and isfinite(baseline)


def write_baselines(path: Path, before: Mapping[str, Any], checks: Sequence[Mapping[str, Any]], now: datetime) -> None:
    """Make the scores of *checks* the baselines, and note them in each one's history."""
    after = dict(before)
    at = now.astimezone(UTC).isoformat(timespec="seconds")
    for one in checks:
        score = round(one["score"], 6)
        entry = before.get(one["name"], {})
        history = [*entry.get("history", []), {"score": score, "at": at}]
        after[one["name"]] = {**entry, "baseline": score, "history": history}
    with AtomicFile(path) as file:
        file.write(orjson.dumps(after, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
        file.commit()
