"""Reasons in a comment: a provider that refused, an endpoint without a connection, a budget that allows no call."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from dicast import Query, read_ledger
from dicast.reporting import code

Document = Mapping[str, Any]

_REFUSED = ("refused_by_provider", "endpoint_unreachable")
"""Reasons for a stop after which the key, the address or the model may be wrong."""

_CALL_FAULT = re.compile(
    r"(?:[^:\s]+/[^:\s]+: )?(\S[^\n]*? at https?://[^\n]*?: (?:HTTP \d{3}\b|no connection to [^;\n]*))"
)
"""The model, the address and the status in the message of a failed call; the provider's own text follows, and may quote a key."""

_QUERY = re.compile(r"\?[^\s:]*(?=[:\s]|$)")


def is_judged(done: Document) -> bool:
    """Return whether any label of the run of the document *done* has a score of any subject."""
    tallies = (*done["metrics"].values(), *done["judges"].values())
    return bool(done["scored"]) or any(tally["scored"] for tally in tallies)


def reason_lines(done: Document, file: str, ledger: Path | None) -> Iterator[str]:
    """Yield the causes for a run without a result, and the next step, as lines of a list; nothing for other runs.

    :param file: the pipeline file, for the next step.
    :param ledger: the ledger with the run, which has the caps.
    """
    stopped = done["stopped"] or {}
    messages = [str(stopped.get("message") or "")] if stopped.get("reason") in _REFUSED else []
    if not is_judged(done):
        messages += [failure.get("error_message") or "" for failure in done["failed_subjects"]]
    faults = dict.fromkeys(fault for message in messages if (fault := call_fault(message)) is not None)
    if "url" in stopped and not faults:
        faults = {
            f"{stopped['model']} at {_QUERY.sub('', stopped['url'])}: no connection after {stopped['calls']:,} calls": None
        }
    if first_fault := next(iter(faults), None):
        yield f"- {code(first_fault, 500)}"
    command = f"dicast ci {file}"
    caps = [] if is_judged(done) else [*_cap_lines(done, ledger)]
    yield from caps
    if first_fault or stopped.get("reason") in _REFUSED:
        yield f"- next: correct the key, the address or the model, then {code(command)} with the same options"
    elif caps:
        yield f"- next: raise the cap in the section `budget`, then {code(command)} with the same options"


def call_fault(message: str) -> str | None:
    """Return the model, the address without a query, and the status in the *message* of a failed call; None without them."""
    match = _CALL_FAULT.match(message)
    return None if match is None else _QUERY.sub("", match[1])


def _cap_lines(done: Document, ledger: Path | None) -> Iterator[str]:
    """Yield a line for each cap that forbade calls, with its amount and the cost of the first call."""
    query = Query(run_id=str(done["run_id"]), types=("budget.throttled",))
    events = (
        []
        if ledger is None or not done["throttled"]
        else read_ledger(ledger, lambda live: [entry.event for entry in live.read(query)])
    )
    first: dict[str, Document] = {}
    for event in events:
        first.setdefault(str(event.payload["reason"]), event.payload)
    for reason, count in done["throttled"].items():
        calls = f"{count:,} call{'s' * (count != 1)}"
        if (cap := first.get(reason)) is None:
            yield f"- the budget ({code(reason)}) forbade {calls}"
        else:
            amount, cost = (f"{cap[name]} {cap['unit']}" for name in ("limit", "projected"))
            yield f"- the budget ({code(reason)}, {amount}) forbade {calls}; the first may cost up to {cost}"
