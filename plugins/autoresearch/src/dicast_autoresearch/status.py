"""State of a session: a table and a trend for the terminal, and one self-contained page."""

from __future__ import annotations

import html
import math
from collections.abc import Iterator, Sequence
from typing import Any

from dicast.toolkit.printable import one_line

from .decision import confidence
from .log import Experiment, Log, unit_of
from .session import Session

_BARS = "▁▂▃▄▅▆▇█"
_WIDTH = 60
_ROWS = 15


def document(session: Session, log: Log) -> dict[str, Any]:
    """Return the session's state as JSON data."""
    current, before = log.current, log.before()
    counts = {
        status: sum(experiment.status == status for experiment in current)
        for status in ("keep", "discard", "crash", "checks_failed")
    }
    best = before.best(session.direction)
    return {
        "name": session.name,
        "primary": session.primary,
        "unit": unit_of(session.primary),
        "direction": session.direction,
        "segment": log.segment,
        "runs": len(current),
        "counts": counts,
        "baseline": before.values[0] if before.values else None,
        "best": best,
        "improvement": None if best is None or not before.values else best - before.values[0],
        "confidence": confidence(before.values, before.kept_values, session.direction),
        "runs_left": None if session.runs is None else max(0, session.runs - max(0, len(current) - 1)),
        "last": None if not current else {"experiment": current[-1].experiment, "status": current[-1].status},
    }


def text(session: Session, log: Log) -> str:
    """Return the session's state for a terminal of 80 columns."""
    return "\n".join(_lines(session, log))


def _lines(session: Session, log: Log) -> Iterator[str]:
    state = document(session, log)
    unit = f" {state['unit']}" if state["unit"] else ""
    yield f"{one_line(session.name)}: {one_line(session.primary)}{unit}, {session.direction.replace('_', ' ')}"
    yield f"{state['runs']} experiments in segment {log.segment}: " + ", ".join(
        f"{count} {status}" for status, count in state["counts"].items() if count
    )
    if state["best"] is None:
        yield "nothing was kept yet"
        return
    yield f"baseline {state['baseline']:g}, best {state['best']:g} ({state['improvement']:+g}{unit})"
    sure = state["confidence"]
    if sure is not None:
        words = "likely real" if sure >= 2 else "marginal" if sure >= 1 else "within the noise"
        yield f"confidence {sure:.2f}: {words}"
    yield f"trend of the best kept value: {trend(log.current, session)}"
    yield ""
    for experiment in log.current[-_ROWS:]:
        value = "-" if experiment.primary_metric is None else f"{experiment.primary_metric:g}"
        yield f"{experiment.experiment:>4}  {experiment.status:<13} {value:>12}  {one_line(experiment.description)[:45]}"


def best_so_far(experiments: Sequence[Experiment], session: Session) -> list[float]:
    """Return the best kept value after each experiment, from the first kept one on."""
    pick = max if session.direction == "higher_is_better" else min
    bests: list[float] = []
    for experiment in experiments:
        value = experiment.primary_metric if experiment.status == "keep" else None
        if value is not None and math.isfinite(value):
            bests.append(pick([*bests[-1:], value]))
        elif bests:
            bests.append(bests[-1])
    return bests


def trend(experiments: Sequence[Experiment], session: Session) -> str:
    """Return the best kept value over the experiments, one character each, at most 60."""
    values = best_so_far(experiments, session)[-_WIDTH:]
    low, high = min(values, default=0.0), max(values, default=0.0)
    if low == high:
        return _BARS[3] * len(values)
    return "".join(_BARS[round((value - low) / (high - low) * (len(_BARS) - 1))] for value in values)


_PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1"><title>{title}</title>
<style>
:root {{ color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif; }}
body {{ margin: 2rem auto; max-width: 60rem; padding: 0 1rem; }}
table {{ border-collapse: collapse; width: 100%; }} td, th {{ border-bottom: 1px solid #8886; padding: .3rem .5rem; text-align: left; vertical-align: top; }}
td.n {{ text-align: right; font-variant-numeric: tabular-nums; }} .keep {{ font-weight: 600; }}
svg {{ width: 100%; height: auto; }} .wide {{ overflow-x: auto; }}
</style></head><body>
<h1>{title}</h1><p>{summary}</p>
<figure>{chart}<figcaption>Best kept value (line) and every measured value (dots), by experiment.</figcaption></figure>
<div class="wide"><table><thead><tr><th>#</th><th>status</th><th>{primary}</th><th>change</th><th>learned</th><th>next</th></tr></thead>
<tbody>{rows}</tbody></table></div>
</body></html>
"""

BEGINS = _PAGE.partition("{title}")[0].encode()
"""First bytes of a page. Only files that start with them are replaced."""


def page(session: Session, log: Log) -> str:
    """Return one page that loads nothing; it escapes all text of the log."""
    quoted = html.escape
    rows = "".join(
        f"<tr class='{quoted(experiment.status)}'><td class='n'>{experiment.experiment}</td><td>{quoted(experiment.status)}</td>"
        f"<td class='n'>{'-' if experiment.primary_metric is None else f'{experiment.primary_metric:g}'}</td>"
        f"<td>{quoted(experiment.description)}</td><td>{quoted(experiment.learned)}</td><td>{quoted(experiment.next_action_hint)}</td></tr>"
        for experiment in log.current
    )
    summary = "<br>".join(quoted(line) for line in list(_lines(session, log))[1:4])
    names = {"title": quoted(session.name), "primary": quoted(session.primary)}
    return _PAGE.format(**names, summary=summary, chart=_chart(log.current, session), rows=rows)


def _chart(experiments: Sequence[Experiment], session: Session) -> str:
    values = [
        (at, experiment.primary_metric)
        for at, experiment in enumerate(experiments)
        if experiment.primary_metric is not None
    ]
    if not values:
        return ""
    low, high = min(value for _, value in values), max(value for _, value in values)
    wide, tall = max(len(experiments) - 1, 1), (high - low) or 1.0

    def place(at: float, value: float) -> str:
        return f"{20 + 760 * at / wide:.1f},{180 - 160 * (value - low) / tall:.1f}"

    best = best_so_far(experiments, session)
    first = len(experiments) - len(best)
    line = " ".join(place(first + at, value) for at, value in enumerate(best))
    dots = "".join("<circle cx='{}' cy='{}' r='3'/>".format(*place(at, value).split(",")) for at, value in values)
    return (
        f"<svg viewBox='0 0 800 200' role='img' aria-label='trend'><polyline points='{line}' fill='none' "
        f"stroke='currentColor' stroke-width='2'/><g fill='currentColor' opacity='.6'>{dots}</g>"
        f"<text x='20' y='12' font-size='11' fill='currentColor'>{high:g}</text>"
        f"<text x='20' y='198' font-size='11' fill='currentColor'>{low:g}</text></svg>"
    )
