"""Options of the next command of a run that another command called."""

from __future__ import annotations

from collections.abc import Sequence

from .merge import merge_shards
from .runs import run, unrecorded_options


def unrecorded_words(words: Sequence[str], *, merges: bool = False) -> list[str]:
    """Return :func:`unrecorded_options` of the *words* after ``dicast run FILE``, or after ``dicast merge`` if *merges*; wrong words are left out."""
    if merges:
        params = merge_shards.make_context("merge", [*words], resilient_parsing=True).params
        return unrecorded_options(params["ledger"])
    params = run.make_context("run", ["FILE", *words], resilient_parsing=True).params
    return unrecorded_options(params["ledger"], params["out"] or (), yes=bool(params["yes"]))
