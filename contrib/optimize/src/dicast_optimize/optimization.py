"""Run of an optimization: it opens a folder, searches, and reports."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import attrs

from dicast import ConfigError, DataError, Due, Problem, Run
from dicast.toolkit.atomic_file import AtomicFile

from .costs import LOST, spent
from .evaluation import Evaluation, Evaluator, Stopped, evaluation_run, evaluator_digest, items
from .interval import METHOD, mean_interval
from .journal import NAME, Journal, digest
from .reflect import Reflector, reflection_run
from .search import Candidate, Search
from .spec import Spec
from .summary import efficiency, failure_signal, flattened, score_summary, top_diagnostics

Say = Callable[[str], None]

_EXITS = {"interrupted": 130, "disabled": 0}
_DONE = ("budget", "plateau", "perfect", "idle")
"""Normal ends of a search."""


@attrs.frozen
class Opened:
    """Parts of a running optimization in *folder*."""

    folder: Path
    journal: Journal
    evaluator: Evaluator
    reflector: Reflector


def run_folder(spec: Spec, *, resume: bool) -> Path:
    """Return the folder of the optimization's ledger and journal: ``run_dir``, or a new folder below ``.dicast/optimize``.

    :raises ConfigError: if the folder has an optimization and *resume* is false, or there is none to resume.
    """
    written = spec.optimization.get("run_dir")
    if written is not None:
        folder = Path(spec.folder, written)
        if folder.exists() and not folder.is_dir():
            raise ConfigError(f"run_dir {written} is a file: name a folder, or a new path")
        if not resume and (folder / NAME).exists():
            raise ConfigError(
                f"run_dir {written} has an optimization: continue it with --resume, or name another folder"
            )
        return folder
    above = spec.folder / ".dicast" / "optimize"
    numbers = [int(n) for path in above.glob(f"{spec.name}-*") if (n := path.name.rpartition("-")[2]).isdecimal()]
    if resume and not numbers:
        raise ConfigError(f"there is no optimization of {spec.name} in {above} to resume")
    return above / f"{spec.name}-{max(numbers, default=0) + (not resume)}"


@contextmanager
def opened(spec: Spec, folder: Path, *, resume: bool = False, limit: int | None = None) -> Iterator[Opened]:
    """Open the journal in *folder*, and the evaluator and the model."""
    evaluator = evaluator_digest(spec)
    setup = {
        "seed": digest(spec.seed),
        "dataset": digest(spec.dataset),
        "valset": digest(spec.valset),
        "test": digest(spec.test),
        "evaluator": evaluator,
        "model": digest(dict(spec.model)),
        "objective": digest([spec.optimization.get(name) for name in ("objective", "background")]),
        "intake": digest(spec.document.data.get("intake")),
        "search": digest([spec.optimization.get(name) for name in ("minibatch", "random_seed", "cache", "cache_from")]),
    }
    reuse = bool(spec.optimization.get("cache"))
    journal = Journal(folder, setup, resume=resume, reuse=reuse)
    try:
        if "cache_from" in spec.optimization:
            journal.borrow(Path(spec.folder, spec.optimization["cache_from"]), evaluator)
        session = f"optimize {spec.name}"
        asker = Evaluator(spec, folder, journal, session, limit)
        yield Opened(folder, journal, asker, Reflector(spec, folder, journal, session))
    finally:
        journal.close()


def optimized(spec: Spec, *, resume: bool, say: Say) -> tuple[dict[str, Any], int]:
    """Search, then score the winner on the test split; return the report and the exit code."""
    folder = run_folder(spec, resume=resume)
    check(spec, needs_model=True)
    with opened(spec, folder, resume=resume, limit=spec.budget) as parts:
        search = Search(spec, parts.evaluator, parts.reflector, say)
        search.run()
        stopped = search.stopped
        calls = parts.evaluator.calls
        test: dict[str, Any] | None = None
        if search.best is not None and spec.test is not None and stopped.reason in _DONE:
            say(f"{stopped.reason}: {stopped}; looking at the test split")
            try:
                test = held_back(spec, parts.evaluator, search.best)
            except Stopped as error:
                stopped = error
            except KeyboardInterrupt:
                stopped = Stopped("interrupted", "interrupted")
        report = _report(spec, parts, search, stopped, calls, test)
    if search.best is not None and "output" in spec.optimization:
        _write(Path(spec.folder, spec.optimization["output"]), search.best.text)
    return report, _exit_code(stopped, search)


def check(spec: Spec, *, needs_model: bool) -> None:
    """Open the evaluator and the model without calls, as a check.

    :raises ConfigError: with all problems of both.
    """
    problems: list[Problem] = []
    ways: list[Callable[[Spec, Path, Sequence[Due]], Run]] = [partial(evaluation_run, preflight=True)]
    if needs_model:
        ways.append(reflection_run)
    with TemporaryDirectory(prefix="dicast-") as folder:
        for way in ways:
            try:
                way(spec, Path(folder, "ledger.db"), [])
            except ConfigError as error:
                problems.extend(problem for problem in error.problems if problem not in problems)
            except DataError:
                continue  # it opened without problems; the error is about the empty list of subjects
    if problems:
        raise ConfigError(problems)


def held_back(spec: Spec, evaluator: Evaluator, best: Candidate) -> dict[str, Any]:
    """Return the winner's score on the test split, and its gain over the seed on the same records. No limit of calls applies."""
    split = items("test", spec.test)
    evaluator.limit = None
    winner = evaluator.ask(best.text, split)
    seed = winner if best.text == spec.seed else evaluator.ask(spec.seed, split)
    is_raw = any(evaluation.is_raw for evaluation in winner)
    least, most = (-inf, inf) if is_raw else (-1.0, 1.0)
    both = [
        (evaluation.score, other.score, item.cluster)
        for evaluation, other, item in zip(winner, seed, split, strict=True)
        if evaluation.score is not None and other.score is not None
    ]
    clusters = [cluster for _, _, cluster in both]
    gain = mean_interval([evaluation - other for evaluation, other, _ in both], clusters, least, most)
    return {
        **({"scale": "raw"} if is_raw else {}),
        **_mean(winner, [item.cluster for item in split]),
        "ci_method": METHOD,
        "failed": sum(evaluation.score is None for evaluation in winner),
        "seed": _mean(seed, [item.cluster for item in split]),
        "gain": {"value": gain["score"], "ci_low": gain["ci_low"], "ci_high": gain["ci_high"], "n": gain["n"]},
    }


def _mean(evaluations: Sequence[Evaluation], clusters: Sequence[object]) -> dict[str, Any]:
    scored = [
        (evaluation.score, cluster)
        for evaluation, cluster in zip(evaluations, clusters, strict=True)
        if evaluation.score is not None
    ]
    ends = (-inf, inf) if any(evaluation.is_raw for evaluation in evaluations) else (0.0, 1.0)
    return mean_interval([score for score, _ in scored], [cluster for _, cluster in scored], *ends)


def _report(
    spec: Spec, parts: Opened, search: Search, stopped: Stopped, calls: int, test: Mapping[str, Any] | None
) -> dict[str, Any]:
    best, ledger = search.best, parts.folder / "ledger.db"
    scored = [candidate for candidate in search.candidates if candidate.score is not None]
    scores = [candidate.score for candidate in scored if candidate.score is not None]
    failures = parts.evaluator.counts.document()
    return {
        "name": spec.name,
        **({"scale": "raw"} if search.is_raw else {}),
        "best": None if best is None else {"candidate": best.text, "score": best.score, "on": spec.validated_on},
        "test": test,
        "calls": calls,
        "test_calls": parts.evaluator.calls - calls,
        "reflections": parts.reflector.calls,
        "cost": spent(ledger),
        "spend_lost": spent(ledger, LOST),
        "stopped": {"reason": stopped.reason, "message": str(stopped)},
        "early_stopped": stopped.reason == "plateau",
        "score_summary": score_summary(scores),
        "unscored_candidates": search.unscored,
        "failed_evaluations": failures,
        "top_diagnostics": top_diagnostics({} if best is None else best.metrics, None if best is None else best.score),
        "plateau_detected": None if search.is_raw else flattened(scores),
        "evaluator_failure_signal": failure_signal([candidate.metrics for candidate in scored], scores, failures),
        "budget_utilization": {
            "budget": spec.budget,
            "calls": calls,
            "efficiency": efficiency(len(search.candidates), calls),
        },
        "resumed": parts.journal.replayed > 0,
        "run_dir": str(parts.folder),
        "ledger": {"path": str(ledger)},
    }


def _exit_code(stopped: Stopped, search: Search) -> int:
    """Return 0 after a normal end; 5 without money for a first candidate; 3 after other ends, or if no proposal has a score."""
    if stopped.reason in _DONE and search.best is not None:
        return 3 if search.has_only_seed else 0
    if stopped.reason == "money" and not search.candidates:
        return 5
    return _EXITS.get(stopped.reason, 3)


def _write(path: Path, text: str) -> None:
    with AtomicFile(path) as file:
        file.write(text.encode())
        file.commit()
