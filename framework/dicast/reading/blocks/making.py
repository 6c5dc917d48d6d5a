"""The columns of a block from its lines: many lines of one maker become columns without an event for each."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import accumulate, chain, groupby, islice, repeat
from typing import Any

import attrs

from ..._kernel.events import EVAL_COMPLETED, EVAL_STARTED, SUBJECT_READ
from ..._kernel.values import Event
from ...toolkit.ledger_lines.blocks import Columns
from ...toolkit.ledger_lines.judged import Place
from ...toolkit.ledger_lines.lines import CONTENT, EVENT, EVENT_SIZES, events_of
from ...toolkit.ledger_lines.makers import FIRST_EVENT, JUDGED, SUBJECT, Maker
from ...toolkit.ledger_lines.traced import ITEM_TEXTS, SUBJECTS, TRACED, traces_of
from ..verdict_columns import flags_of, milliseconds
from .block_columns import ABOUT, ACTIVITY, VERDICTS, BlockColumns
from .spent import AGENT

_FLAGGING = frozenset(
    ("flags_negative", "heuristic_flags_negative", "escalated", "budget_exhausted", "escalation_skipped")
)
"""Signals that set flags of a row."""

_ABOUT = frozenset(ABOUT)

_PART = 256
"""Parsed lines of events that are in memory at once: the time of Python's garbage collector grows with their number."""

_SHARED = ("judge", "judge_kind", "judge_model", "rubric_id", "rubric_version", "fingerprint", "judge_pricing_version")

_HASH_DIGITS, _HALF = 16, 2**63
_HALF_BYTES = _HALF.to_bytes(8)


@attrs.frozen
class Layout:
    """Places of values in the lines of a maker, for verdicts without a price. *signals* is the place of signals that may set flags."""

    origin: tuple[str | None, ...]
    eval_id: int
    read: int
    verdict: int
    digest: int
    score: int
    confidence: int
    signals: int | None


def maker_layout(maker: Maker) -> Layout | None:
    """Return the layout of the lines of *maker*; None if each line must be read as events."""
    if sorted(maker.types) != sorted((SUBJECT_READ, EVAL_STARTED, EVAL_COMPLETED)):
        return None
    read, verdict = maker.types.index(SUBJECT_READ), maker.types.index(EVAL_COMPLETED)
    places = [Place(number) for number in range(maker.length)]
    digest = maker.parts[read].payload(places, lambda _: None).get("digest")
    payload = maker.parts[verdict].payload(places, lambda _: None)
    values, eval_id = {key: payload.get(key) for key in _SHARED}, payload.get("eval_id")
    score, confidence, signals = payload.get("score"), payload.get("confidence"), payload.get("signals")
    is_plain = (
        isinstance(digest, Place)
        and isinstance(eval_id, Place)
        and isinstance(score, Place)
        and isinstance(confidence, Place)
        and "raw" not in payload
        and payload.get("subject_id") == Place(SUBJECT)
        and payload.get("subject_kind") == maker.kind
        and isinstance(values["judge"], str)
        and not any(isinstance(value, Place) for value in values.values())
        and values.keys() - payload.keys() <= {"fingerprint", "judge_pricing_version"}
        and (payload.get("judge_cost_usd"), payload.get("judge_cost_msat", "0")) == ("0", "0")
        and (not signals or isinstance(signals, Place) or _FLAGGING.isdisjoint(signals))
    )
    if not is_plain:
        return None
    places_of_values = digest.number, score.number, confidence.number
    signals_place = signals.number if isinstance(signals, Place) else None
    return Layout(
        (maker.run_id, maker.kind, *values.values()), eval_id.number, read, verdict, *places_of_values, signals_place
    )


class Layouts(dict[str, Layout | None]):
    """Layouts by the name of their maker, made on first use."""

    def __init__(self, makers: Mapping[str, Maker]) -> None:
        super().__init__()
        self.makers = makers

    def __missing__(self, name: str) -> Layout | None:
        layout = self[name] = maker_layout(self.makers[name])
        return layout


def columns_of(lines: Iterable[Sequence[Any]], layouts: Layouts, *, has_calls: bool = True) -> BlockColumns:
    """Return the columns of a block with these parsed lines; without *has_calls*, in their first version.

    :raises LookupError: if a line does not have the values of its kind.
    """
    columns, place, makers = BlockColumns(has_calls=has_calls), 0, layouts.makers
    for (kind, name), group in groupby(lines, _kind_and_maker):
        if kind == EVENT:
            place = _add_events(columns, place, group)
        elif kind == JUDGED:
            part, count = list(group), len(makers[name].parts)
            counts = [count if line[0] == JUDGED else count + len(traces_of(line)) for line in part]
            *places, end = accumulate(counts, initial=place)
            if not _add_plain(columns, places, part, makers[name], layouts[name]):
                events = [
                    (start, line, event)
                    for start, line in zip(places, part, strict=True)
                    for event in events_of(line, makers, _no_content)
                ]
                columns.add_events(
                    [start + at for start, _, (at, _) in events],
                    [_event_line(line, at, event) for _, line, (at, event) in events],
                )
            place = end
    return columns


def columns_of_events(lines: Iterable[Sequence[Any]]) -> BlockColumns:
    """Return the columns of a block from the parsed lines of events.

    :raises LookupError: if a line does not have the values of an event.
    :raises TypeError: if a payload is not an object.
    """
    columns = BlockColumns()
    _add_events(columns, 0, iter(lines))
    return columns


def _add_events(columns: BlockColumns, place: int, lines: Iterator[Sequence[Any]]) -> int:
    """Add the events of *lines*, the first with the number *place* in its block, and return the number after the last."""
    while part := list(islice(lines, _PART)):
        _refuse_odd(part)
        columns.add_events(range(place, place + len(part)), part)
        place += len(part)
    return place


def packed_columns(makers: Mapping[str, Maker]) -> Columns:
    """Return the function that makes the stored columns of a block."""
    layouts = Layouts(makers)
    return lambda lines: columns_of(lines, layouts).packed()


def _kind_and_maker(line: Sequence[Any]) -> tuple[Any, str]:
    return (JUDGED, line[1]) if line[0] in SUBJECTS else (line[0], "")


def _no_content(digest: str) -> None:
    return None


def _refuse_odd(lines: Sequence[Sequence[Any]]) -> None:
    """Refuse lines of events without the values of an event.

    :raises TypeError: if a payload is not an object.
    :raises LookupError: if a line has another number of values.
    """
    if not EVENT_SIZES.issuperset(map(len, lines)):
        raise LookupError(f"the line of an event does not have {' or '.join(map(str, sorted(EVENT_SIZES)))} values")
    if {type(line[CONTENT - 1]) for line in lines} - {dict}:
        raise TypeError("the payload of an event is not an object")


def _event_line(line: Sequence[Any], at: int, event: Event) -> Sequence[Any]:
    """Return the event at the place *at* in the *line* of a judged subject as the line of an event. A call has the digest of its texts."""
    texts = traces_of(line)[at - 1][ITEM_TEXTS:] if event.type == AGENT else ()
    subject = event.session_id, event.turn_id, event.subject_kind, event.subject_id, event.sensitivity
    return EVENT, event.id, event.type, event.time, event.run_id, *subject, event.payload, *texts


def _trace_line(line: Sequence[Any], item: Sequence[Any], run_id: str) -> Sequence[Any]:
    """Return the trace event *item* in the *line* of a judged subject as the line of an event, whose id may be short. No table has the id."""
    id_, type_, time, turn, payload, *texts = item
    subject = line[SUBJECT + 1], line[SUBJECT + 2] if turn == 0 else turn, None, None, "user_controlled"
    return EVENT, id_, type_, time, run_id, *subject, payload, *texts


def _add_plain(
    columns: BlockColumns, starts: Sequence[int], lines: Sequence[Sequence[Any]], maker: Maker, layout: Layout | None
) -> bool:
    """Add lines of one maker; return False, and add nothing, if a line must be read as events. *starts* are the places of the first events."""
    if layout is None:
        return False
    values, count, at = list(zip(*lines, strict=False)), len(lines), FIRST_EVENT + 2 * layout.verdict + 1
    signals = () if layout.signals is None else values[layout.signals]
    has_signals, ids, sessions = any(signals), values[SUBJECT], values[SUBJECT + 1]
    eval_ids = values[layout.eval_id] if has_signals else ()
    if {*map(type, ids), *map(type, eval_ids)} != {str}:
        return False
    try:
        flags = [flags_of(items) if items else 0 for items in signals] if has_signals else [0] * count
        scores = array("d", values[layout.score])
        confidences = array("d", values[layout.confidence])
        hashes = _hashes(values[layout.digest])
        for time in set(values[at]):
            _add_milliseconds(time, columns.times)
        times = array("q", map(columns.times.__getitem__, values[at]))
    except (TypeError, ValueError, OverflowError, AttributeError):
        return False
    if not (min(scores) >= 0 and max(scores) <= 1):
        return False
    traces = list(map(traces_of, lines)) if TRACED in values[0] else []
    if has_signals and not any(traces):
        columns.mention(*chain.from_iterable(zip(ids, sessions, strict=True)))
        columns.end(eval_ids)
    numbers = columns.numbers_of(ids)
    columns.mention(*dict.fromkeys(sessions))
    rows, zeros = columns.tables[VERDICTS.name], array("q", [0]) * count
    counts = map(len, traces) if traces else repeat(0)
    places = [start + layout.verdict + number for start, number in zip(starts, counts, strict=False)]
    rows.extend(places, layout.origin, numbers, times, array("i", flags), scores, confidences, zeros, zeros)
    rows, reading = columns.tables[ACTIVITY.name], (maker.run_id, SUBJECT_READ, maker.kind)
    if any(traces):
        for start, id_, hash_, line, items in zip(starts, ids, hashes, lines, traces, strict=True):
            rows.add(start + layout.read, (reading, hash_, id_, None))
            for at, item in enumerate(items, 1):
                if item[1] in _ABOUT:
                    event = _trace_line(line, item, maker.run_id)
                    columns.add_row(ACTIVITY, start + at, event)
                    if item[1] == AGENT:
                        columns.add_call(start + at, event)
    else:
        rows.extend([start + layout.read for start in starts], reading, numbers, hashes)
    return True


def _hashes(digests: Sequence[str]) -> array[int]:
    """Return the first 64 bits of *digests* as numbers, less 2^63: all at once if each has as many.

    :raises ValueError: if one of them is not hexadecimal.
    """
    count = len(digests)
    try:
        first = bytes.fromhex("".join([digest[:_HASH_DIGITS] for digest in digests]))
    except ValueError:
        first = b""
    if len(first) != len(_HALF_BYTES) * count:
        return array("q", [int(digest[:_HASH_DIGITS], 16) - _HALF for digest in digests])
    numbers = int.from_bytes(first) ^ int.from_bytes(_HALF_BYTES * count)
    hashes = array("q", numbers.to_bytes(len(first)))
    if sys.byteorder == "little":
        hashes.byteswap()
    return hashes


def _add_milliseconds(time: str, times: dict[str, int]) -> None:
    if time not in times:
        moment = datetime.fromisoformat(time)
        times[time] = milliseconds(moment if moment.tzinfo else moment.replace(tzinfo=UTC))
