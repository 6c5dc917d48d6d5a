"""Answers about runs, their rows, and single subjects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from math import inf, isnan
from typing import Any

from dicast import ConfigError, Entry, Ledger, Query, named_run
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
from .tables import run_spending

Values = Mapping[str, Any]
Document = dict[str, Any]


class NotFound(ConfigError):
    """A requested item that is not in the ledger."""


def runs(ledger: Ledger, values: Values) -> Document:
    """Return the runs, newest start first; with a cursor, the runs after it. Each has the ``gate_label``, which :func:`gate_label` describes."""
    left_out = values["without"]
    runs = past_runs(ledger, values["name"], spending=run_spending)
    if left_out is not None:
        runs = (run for run in runs if run["name"] != left_out)
    if (kind := values["without_kind"]) is not None:
        runs = (run for run in runs if run["kind"] != kind)
    if values["failing"]:
        runs = _failing(runs)
    if values["cursor"] is not None:
        runs = _after(runs, values["cursor"])
    page = list(islice(runs, values["limit"] + 1))
    has_more = len(page) > values["limit"]
    page = [{**run, "gate_label": _gate_label(ledger, run)} for run in page[: values["limit"]]]
    return {"data": page, "next_cursor": page[-1]["run_id"] if has_more else None}


def _failing(runs: Iterable[Document]) -> Iterator[Document]:
    """Yield the newest run of each pipeline whose gate passed or failed, if it failed."""
    names: set[str] = set()
    for run in runs:
        if run["gate"] in ("passed", "failed") and run["name"] not in names:
            names.add(run["name"])
            if run["gate"] == "failed":
                yield run


def _after(runs: Iterator[dict[str, Any]], cursor: str) -> Iterator[dict[str, Any]]:
    if not any(run["run_id"] == cursor for run in runs):
        raise NotFound(f"no run {cursor!r:.100} is in the list: cursor is the next_cursor of a page for the same name")
    return runs


def run(ledger: Ledger, values: Values) -> Document:
    """Return one run as in the list of runs, the document of its end if it has one, and the prompts of its task, if the run recorded prompts."""
    run_id = full_run_id(ledger, values["run_id"])
    listed = listed_run(ledger, run_id)
    document = without_rationale(run_document(ledger, run_id))
    started: Mapping[str, Any] = next(ledger.read(Query(run_id, ("run.started",), limit=1))).event.payload
    return {
        "run": {**listed, "gate_label": gate_label(document)},
        "document": document,
        "prompts": started.get("prompts"),
    }


def listed_run(ledger: Ledger, run_id: str) -> Document:
    """Return the run with this full id as in the list of runs."""
    return next(run for run in past_runs(ledger, spending=run_spending) if run["run_id"] == run_id)


def _gate_label(ledger: Ledger, run: Mapping[str, Any]) -> str | None:
    return None if run["ended_at"] is None else gate_label(run_document(ledger, run["run_id"]))


def gate_label(document: Mapping[str, Any] | None) -> str | None:
    """Return the label that the gate of a run is about: of the first clause that did not pass, else of the first clause.

    Without a gate it is the label of the score, else the first label; None if the run has not ended.
    """
    if document is None:
        return None
    labels = figures_by_label(document)
    clauses = sorted((document.get("gate") or {}).get("clauses") or (), key=lambda clause: clause["passed"] is True)
    names = [clause["on"] for clause in clauses] + [(document.get("score") or {}).get("label"), *labels]
    return next((name for name in (label_of(document, name) for name in names) if name in labels), None)


def figures_by_label(document: Mapping[str, Any]) -> Mapping[str, Mapping[str, Any]]:
    """Return the figures of each label of a run, then of each of several metrics. The only metric is the label ``metrics``."""
    labels, metrics = document.get("labels") or {}, document.get("metrics") or {}
    return {
        **labels,
        **({name: figures for name, figures in metrics.items() if label_of(document, name) == name}),
        **labels,
    }


def label_of(document: Mapping[str, Any], name: str | None) -> str | None:
    """Return the label of *name*: ``metrics`` for the only metric of a run, else *name*."""
    labels, metrics = document.get("labels") or {}, document.get("metrics") or {}
    return "metrics" if [*metrics] == [name] and name not in labels and "metrics" in labels else name


def trend(ledger: Ledger, values: Values) -> Document:
    """Return the figures of a label in the last runs of a pipeline, the oldest first. ``labels`` are all labels of these runs.

    ``gate_lines`` are the lines of the newest run's gate for the mean and the pass rate of the label; a figure without a line is left out.
    """
    listed = (
        run
        for run in past_runs(ledger, values["name"], spending=run_spending)
        if run["kind"] != "tool" and run["ended_at"] is not None
    )
    runs = [(run, run_document(ledger, run["run_id"]) or {}) for run in islice(listed, values["limit"])]
    labels = list(dict.fromkeys(name for _, document in runs for name in figures_by_label(document)))
    label_name = next((label_of(document, values["label"]) for _, document in runs), values["label"])
    label = label_name or next((name for _, document in runs if (name := gate_label(document)) is not None), None)
    if values["label"] is not None and label not in labels:
        raise ConfigError(f"label: the runs have no label {label!r:.100}; they have {', '.join(labels) or 'none'}")
    data = [_trend_point(run, figures_by_label(document).get(str(label))) for run, document in reversed(runs)]
    return {
        "name": values["name"],
        "label": label,
        "labels": labels,
        "gate_lines": _gate_lines(runs, label),
        "data": data,
    }


def _gate_lines(runs: Sequence[tuple[Any, Mapping[str, Any]]], label: str | None) -> Document:
    clauses = (runs[0][1].get("gate") or {}).get("clauses") or () if runs else ()
    figures = {"min_score": "mean", "min_pass_rate": "pass_rate"}
    return {
        figures[clause["rule"]]: clause["line"]
        for clause in clauses
        if clause["rule"] in figures and label_of(runs[0][1], clause["on"]) == label and clause["line"] is not None
    }


def _trend_point(run: Mapping[str, Any], figures: Mapping[str, Any] | None) -> Document:
    by_name = figures or {}
    passes = by_name.get("passes") or {}
    return {
        **{name: run[name] for name in ("run_id", "started_at", "gate", "cost", "unsettled")},
        **{name: by_name.get(name) for name in ("mean", "ci_low", "ci_high", "pass_rate", "scored", "failed", "total")},
        "pass_ci_low": passes.get("ci_low"),
        "pass_ci_high": passes.get("ci_high"),
    }


def rows(ledger: Ledger, values: Values) -> Document:
    """Return a page of a run's verdicts and failures."""
    run_id = full_run_id(ledger, values["run_id"])
    rows = read_verdicts(ledger, run_id)
    chosen = list(_chosen(rows, values))
    if values["order"] == "score":
        chosen.sort(key=lambda row: (rows.flags[row] & FAILED == 0, _order(rows.scores[row]), row))
    start = 0
    if values["cursor"] is not None:
        start = next((place + 1 for place, row in enumerate(chosen) if rows.seqs[row] == values["cursor"]), len(chosen))
    page = chosen[start : start + values["limit"]]
    has_more = start + values["limit"] < len(chosen)
    return {
        "run_id": run_id,
        "total": len(chosen),
        "data": [row_of(rows, row) for row in page],
        "next_cursor": rows.seqs[page[-1]] if has_more and page else None,
    }


def _chosen(rows: VerdictColumns, values: Values) -> Iterator[int]:
    judge, kind, failed, subject = (values[name] for name in ("judge", "subject_kind", "failed", "subject"))
    low, high, seq = values["min_score"], values["max_score"], values["seq"]
    is_chosen = [judge in (None, origin.judge) and kind in (None, origin.kind) for origin in rows.origins]
    for row, (code, flag, score) in enumerate(zip(rows.codes, rows.flags, rows.scores, strict=True)):
        if not is_chosen[code] or (subject is not None and rows.ids[row] != subject):
            continue
        if seq is not None and rows.seqs[row] != seq:
            continue
        if flag & FAILED:
            if failed is not False and low is None and high is None:
                yield row
        elif flag & RAW:  # a raw score has no place in [0, 1]
            if not failed and low is None and high is None:
                yield row
        elif not failed and (low is None or score >= low) and (high is None or score <= high):
            yield row


def _order(score: float) -> float:
    return -inf if isnan(score) else score


def row_of(rows: VerdictColumns, row: int) -> Document:
    """Return one row of the columns: a verdict, or a failure, which has no score."""
    origin: VerdictOrigin = rows.origins[rows.codes[row]]
    flag = rows.flags[row]
    failed = bool(flag & FAILED)
    return {
        "seq": rows.seqs[row],
        "run_id": origin.run_id,
        "subject_kind": origin.kind,
        "subject_id": rows.ids[row],
        "judge": origin.judge,
        "failed": failed,
        "score": None if failed or flag & RAW else rows.scores[row],
        **({"raw": None if isnan(rows.scores[row]) else rows.scores[row]} if flag & RAW else {}),
        "confidence": None if failed else rows.confidences[row],
        "judge_kind": origin.judge_kind,
        "judge_model": origin.judge_model,
        "rubric_id": origin.rubric_id,
        "rubric_version": origin.rubric_version,
        "judge_cost_usd": None if failed or flag & USD_UNKNOWN else f"{rows.usd_of([row]):f}",
        "judge_cost_msat": None if failed or flag & MSAT_UNKNOWN else f"{rows.msat_of([row]):f}",
        "created_at": written(rows.times[row]),
    }


def live_rows(entries: Sequence[Entry]) -> list[Document]:
    """Return new verdicts and failures in the shape of :func:`rows`."""
    rows = VerdictColumns().add(entries)
    return [row_of(rows, row) for row in range(len(rows.ids))]


def full_run_id(ledger: Ledger, run_id: str) -> str:
    """Return the full id of the run that *run_id* refers to.

    :raises NotFound: when no run or several runs match.
    """
    try:
        return named_run(ledger, run_id)
    except ConfigError as error:
        raise NotFound(str(error)) from error
