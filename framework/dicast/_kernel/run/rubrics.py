"""The rubrics that a run judges by, held against those of the runs before it."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256

from ..contract.kinds import parts
from ..contract.protocols import Ledger
from ..events import RUN_STARTED
from ..pipeline.sections import Pipeline
from ..values import Query, Rubric
from ..values.errors import ConfigError, Problem


def unchanged_rubrics(pipeline: Pipeline, ledger: Ledger) -> Mapping[str, str]:
    """The digest of each rubric's text, by id and version.

    :raises ConfigError: naming each whose text is another than in an earlier run of this ledger, under the same version.
    """
    slots = (*pipeline.metrics, *pipeline.judges)
    found = [part for slot in slots for part in parts(slot.component) if isinstance(part, Rubric)]
    digests = {f"{rubric.id} {rubric.version}": sha256(rubric.text.encode()).hexdigest() for rubric in found}
    changed: dict[str, str] = {}
    for entry in ledger.read(Query(types=(RUN_STARTED,))) if digests else ():
        before = entry.event.payload.get("rubrics")
        earlier = before if isinstance(before, Mapping) else {}
        changed |= {name: entry.event.run_id for name in digests if earlier.get(name, digests[name]) != digests[name]}
    if changed:
        raise ConfigError(
            Problem(
                f"the text of rubric {name} is not what it was in run {run_id}; give the changed one a new version",
                value=name,
            )
            for name, run_id in changed.items()
        )
    return digests
