"""Experiments of a suite that did not start."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .document import exit_code

SUITE_ENDS = (130, 2, 70)
"""Exit codes of an experiment after which no further experiment of the suite starts."""


def not_started(started: Mapping[str, Any], done: Mapping[str, Any]) -> Sequence[str]:
    """Return the experiments of the suite that did not start because of the end of this run; empty for a run that did not end its suite.

    :param started: the payload of ``run.started`` of the run.
    :param done: its document.
    """
    suite = started.get("suite")
    if suite is None or exit_code(dict(done)) not in SUITE_ENDS:
        return ()
    order, name = suite["experiments"], str(started.get("file")).partition("#")[2]
    return order[order.index(name) + 1 :] if name in order else ()
