"""Labels made from the scores of other tools: ``--gold recorded/NAME``."""

from __future__ import annotations

from .._kernel.contract.protocols import Ledger
from .._kernel.events import EVAL_COMPLETED, RUN_STARTED
from .._kernel.values import RECORDED_PREFIX, Query
from .._kernel.values.errors import ConfigError, Problem
from .._kernel.values.names import nearest
from ..toolkit.gold import GoldLabel


def labels_of_scores(ledger: Ledger, label: str) -> list[GoldLabel]:
    """Return the scores with *label* as labels of the outputs that their runs read, the newest of each subject and run.

    A label of a run with a task is about the output of the source, not about the output of the task, and names no run.

    :raises ConfigError: if *ledger* has no score with *label*, or if its scores are not in [0, 1].
    """
    tasks = {
        entry.event.run_id
        for entry in ledger.read(Query(types=(RUN_STARTED,)))
        if entry.event.payload.get("task") is not None
    }
    labels: dict[tuple[str | None, str | None, str], GoldLabel] = {}
    others, count = set[str](), 0
    for entry in ledger.read(Query(types=(EVAL_COMPLETED,))):
        event, name = entry.event, str(entry.event.payload["judge"])
        if not name.startswith(RECORDED_PREFIX):
            continue
        others.add(name)
        if name != label:
            continue
        count += 1
        score = event.payload["score"]
        if score is None:
            if event.payload.get("raw") is not None:
                raise ConfigError(f"{label} has a raw scale, but labels are scores in [0, 1]; choose another label")
            continue
        run = None if event.run_id in tasks else event.run_id
        kind, subject_id = str(event.subject_kind), str(event.subject_id)
        signals = event.payload["signals"]
        by = signals.get("by") if isinstance(signals, dict) else None
        labels[run, kind, subject_id] = GoldLabel(
            subject_id,
            float(score),  # type: ignore[arg-type]  # a verdict's score is a number
            kind,
            by if isinstance(by, str) else None,
            event.session_id,
            run=run,
        )
    if not count:
        names = ", ".join(sorted(others)) or "none"
        message = f"the ledger has no scores with the label {label} (recorded labels: {names}); judge a file that has them first"
        raise ConfigError(Problem(message, value=label, hint=nearest(label, others)))
    if not labels:
        raise ConfigError(f"the {count:,} verdicts of {label} are categories without a score; choose another label")
    return list(labels.values())
