"""What is answered about runs, their rows, and single subjects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from math import inf, isnan
from typing import Any

from dicast import ConfigError, Entry, Ledger, named_run
from dicast.reading import (
    FAILED,
    MSAT_UNKNOWN,
    RAW,
    USD_UNKNOWN,
    VerdictColumns,
    VerdictOrigin,
    past_runs,
    read_verdicts,
    run_document,
)

from .documents import without_rationale, written

Values = Mapping[str, Any]
Document = dict[str, Any]


class NotFound(ConfigError):
    """What is asked for is not in the ledger."""


def runs(ledger: Ledger, given: Values) -> Document:
    """The runs, the one that began last first; those after *cursor* where it is given."""
    left_out = given["without"]
    found = iter(past_runs(ledger, given["name"], None))
    if left_out is not None:
        found = (one for one in found if one["name"] != left_out)
    if (kind := given["without_kind"]) is not None:
        found = (one for one in found if one["kind"] != kind)
    if given["cursor"] is not None:
        found = _after(found, given["cursor"])
    page = list(islice(found, given["limit"] + 1))
    more = len(page) > given["limit"]
    page = page[: given["limit"]]
    return {"data": page, "next_cursor": page[-1]["run_id"] if more else None}


def _after(found: Iterator[dict[str, Any]], cursor: str) -> Iterator[dict[str, Any]]:
    if not any(one["run_id"] == cursor for one in found):
        raise NotFound(f"no run {cursor!r:.100} is in the list: cursor is what next_cursor said, for the same name")
    return found


def run(ledger: Ledger, given: Values) -> Document:
    """One run: how it is listed, and the document of its end where it has one."""
    run_id = known(ledger, given["run_id"])
    listed = next(one for one in past_runs(ledger) if one["run_id"] == run_id)
    return {"run": listed, "document": without_rationale(run_document(ledger, run_id))}


def rows(ledger: Ledger, given: Values) -> Document:
    """Verdicts and failures of a run, a page of them."""
    run_id = known(ledger, given["run_id"])
    found = read_verdicts(ledger, run_id)
    chosen = list(_chosen(found, given))
    if given["order"] == "score":
        chosen.sort(key=lambda row: (found.flags[row] & FAILED == 0, _order(found.scores[row]), row))
    start = 0
    if given["cursor"] is not None:
        start = next((place + 1 for place, row in enumerate(chosen) if found.seqs[row] == given["cursor"]), len(chosen))
    page = chosen[start : start + given["limit"]]
    more = start + given["limit"] < len(chosen)
    return {
        "run_id": run_id,
        "total": len(chosen),
        "data": [row_of(found, row) for row in page],
        "next_cursor": found.seqs[page[-1]] if more and page else None,
    }


def _chosen(found: VerdictColumns, given: Values) -> Iterator[int]:
    judge, kind, failed, subject = (given[name] for name in ("judge", "subject_kind", "failed", "subject"))
    low, high, seq = given["min_score"], given["max_score"], given["seq"]
    wanted = [judge in (None, origin.judge) and kind in (None, origin.kind) for origin in found.origins]
    for row, (code, flag, score) in enumerate(zip(found.codes, found.flags, found.scores, strict=True)):
        if not wanted[code] or (subject is not None and found.ids[row] != subject):
            continue
        if seq is not None and found.seqs[row] != seq:
            continue
        if flag & FAILED:
            if failed is not False and low is None and high is None:
                yield row
        elif flag & RAW:  # a score in [0, 1] is asked for
            if not failed and low is None and high is None:
                yield row
        elif not failed and (low is None or score >= low) and (high is None or score <= high):
            yield row


def _order(score: float) -> float:
    return -inf if isnan(score) else score


def row_of(found: VerdictColumns, row: int) -> Document:
    """One row of the columns: a verdict, or a failure, which has no score."""
    origin: VerdictOrigin = found.origins[found.codes[row]]
    flag = found.flags[row]
    failed = bool(flag & FAILED)
    return {
        "seq": found.seqs[row],
        "run_id": origin.run_id,
        "subject_kind": origin.kind,
        "subject_id": found.ids[row],
        "judge": origin.judge,
        "failed": failed,
        "score": None if failed or flag & RAW else found.scores[row],
        **({"raw": None if isnan(found.scores[row]) else found.scores[row]} if flag & RAW else {}),
        "confidence": None if failed else found.confidences[row],
        "judge_kind": origin.judge_kind,
        "judge_model": origin.judge_model,
        "rubric_id": origin.rubric_id,
        "rubric_version": origin.rubric_version,
        "judge_cost_usd": None if failed or flag & USD_UNKNOWN else f"{found.usd_of([row]):f}",
        "judge_cost_msat": None if failed or flag & MSAT_UNKNOWN else f"{found.msat_of([row]):f}",
        "created_at": written(found.times[row]),
    }


def live_rows(entries: Sequence[Entry]) -> list[Document]:
    """Verdicts and failures as they come, in the shape of :func:`rows`."""
    found = VerdictColumns().add(entries)
    return [row_of(found, row) for row in range(len(found.ids))]


def known(ledger: Ledger, run_id: str) -> str:
    """The whole id of the run that *run_id* means.

    :raises NotFound: when the ledger has none, or several.
    """
    try:
        return named_run(ledger, run_id)
    except ConfigError as error:
        raise NotFound(str(error)) from error
