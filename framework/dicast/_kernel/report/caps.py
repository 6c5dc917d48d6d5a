"""Lines about calls that a cap of the budget forbade."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from ...toolkit.money import amount_text, amounts_text
from ..values import Event

_OPTIONS = {"run_cap": "budget.run", "daily_cap": "budget.day", "session_cap": "budget.session"}
"""The option of the pipeline file for each cap."""

_FIGURES = ("limit", "projected", "unit", "scope", "spent")
"""Members of ``budget.throttled`` in the document; events of older versions have no ``spent``."""

_CapKey = tuple[str, str, str]
"""Reason, limit and unit of a cap."""


class ThrottledCalls:
    """Numbers of calls that caps forbade, by cap, with each cap and the highest cost of the most expensive of its calls.

    A resumed run may have another cap with the same name.
    """

    def __init__(self) -> None:
        self._counts, self._caps = Counter[_CapKey](), dict[_CapKey, dict[str, Any]]()

    def add(self, event: Event) -> None:
        """Count the call of a ``budget.throttled`` event."""
        payload: Mapping[str, Any] = event.payload
        key = str(payload["reason"]), str(payload["limit"]), str(payload["unit"])
        self._counts[key] += 1
        cap = self._caps.setdefault(key, {name: payload[name] for name in _FIGURES if name in payload})
        if "cap" in payload:
            cap |= {"limit": payload["cap"], "share": payload["limit"]}
        cap["projected"] = max(cap["projected"], payload["projected"], key=Decimal)
        if "spent" in cap and payload["scope"] == cap["scope"]:
            cap["spent"] = max(cap["spent"], payload["spent"], key=Decimal)

    def figures(self) -> dict[str, Any]:
        """Return ``throttled``, and ``caps`` if there is a cap, for the run's document: of caps with one name the newest."""
        counts, caps = Counter[str](), dict[str, Mapping[str, Any]]()
        for key, count in self._counts.items():
            counts[key[0]] += count
            caps[key[0]] = self._caps[key]
        return {"throttled": dict(sorted(counts.items())), **({"caps": dict(sorted(caps.items()))} if caps else {})}


def cap_lines(done: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for each cap that forbade calls in the run of the document *done*, and a line with the subjects left out.

    A line has the number of calls, the cap, the cost of the run and the cost of the most expensive call; under ``budget.day`` and ``budget.session``
    also the spending of all runs in the scope. Older documents have the number alone.
    """
    for reason, count in done["throttled"].items():
        text = f"calls not made because of the {reason}: {count:,}"
        if (cap := done.get("caps", {}).get(reason)) is not None:
            call = "this call" if count == 1 else "the most expensive of these calls"
            limit, cost = (f"{cap[name]} {cap['unit']}" for name in ("limit", "projected"))
            if (option := _OPTIONS.get(reason)) is None:  # no cap forbade the call: its cost has no bound
                text += f"; an earlier call of the component cost {cost}, and it estimates nothing"
            else:
                limit += (
                    f", of which each part of the run has {amount_text(cap['share'])} {cap['unit']}"
                    if "share" in cap
                    else ""
                )
                text += f"; {option} is {limit}, {_spent_text(done, cap)}, and {call} may cost up to {cost}"
        yield text
    left_out = done["failures"].get("throttled_no_heuristic", 0) + done["unaffordable"]
    if done["throttled"] and left_out:
        yield f"subjects left out because of the budget: {left_out:,} of {done['subjects']:,}"


def reached_caps(done: Mapping[str, Any]) -> dict[str, str]:
    """Return the value of each option whose cap left out subjects of the run of the document *done*, with its unit; empty without such subjects."""
    if not (done["failures"].get("throttled_no_heuristic") or done["unaffordable"]):
        return {}
    caps: Mapping[str, Mapping[str, Any]] = done.get("caps", {})  # documents of older versions have none
    return {_OPTIONS[reason]: f"{cap['limit']} {cap['unit']}" for reason, cap in caps.items() if reason in _OPTIONS}


def raise_caps_text(caps: Mapping[str, str]) -> str:
    """Return the step before a run is resumed that the *caps* of :func:`reached_caps` stopped."""
    limits = " and ".join(f"{option} is {limit}" for option, limit in caps.items())
    wait = ", or wait for the next day (UTC)" if "budget.day" in caps else ""
    return f"raise the cap{'s' * (len(caps) > 1)}: {limits}{wait}"


def _spent_text(done: Mapping[str, Any], cap: Mapping[str, Any]) -> str:
    """Return the cost of the run; for the cap of a day or a session also the spending of all runs before the first forbidden call."""
    cost_of_run = amounts_text(done["cost"]) or "nothing"
    kind, _, name = cap.get("scope", "").partition(":")
    if "spent" not in cap or kind not in ("day", "session"):
        return f"this run spent {cost_of_run}"
    spent = amounts_text({cap["unit"]: cap["spent"]}) or "nothing"
    whose = f"of {name.partition(' ')[2]} " if " " in name else ""
    runs, own = f"all runs {whose}in this ledger spent {spent} of it", f"(this run: {cost_of_run})"
    if kind == "session":
        return f"{runs} in the session {own}"
    return f"{runs} on {name.partition(' ')[0]} {own}, the day ends at 00:00 UTC"
