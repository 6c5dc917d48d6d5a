"""Verdicts and failures as columns: what a reader of many of them needs, without an object for each."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from itertools import compress
from math import nan
from typing import TYPE_CHECKING, Any, NamedTuple

import attrs

from .._kernel.events import EVAL_COMPLETED, EVAL_FAILED
from .._kernel.values import Entry, Event, Query
from .columns import code_of, growing
from .names import Names

if TYPE_CHECKING:
    from .columns import Floats, Ints

TYPES = (EVAL_COMPLETED, EVAL_FAILED)
"""The events that :func:`judged` is about."""

FAILED, DOWN, ESCALATED, EXHAUSTED, USD_UNKNOWN, MSAT_UNKNOWN, EXACT, RAW = (1 << bit for bit in range(8))
"""What a flag says: that there is no score; a thumb down; a cascade that asked on; a cap that left no room; amounts that are not
known; amounts that do not fit into a number; a score on a scale of its own, NaN if the proxies held the subject back."""

_DIGITS = 8, 16
"""From which bit of a flag on it holds how many decimals the amounts were written with."""

PLACES = 12, 6
"""How many decimals an amount in usd, and in msat, has as a number."""

_MOST = 2**62


class Maker(NamedTuple):
    """What many verdicts have in common."""

    run_id: str
    kind: str
    judge: str
    judge_kind: str | None
    judge_model: str | None
    rubric_id: str | None
    rubric_version: str | None
    fingerprint: str | None
    pricing_version: str | None


Line = tuple[
    tuple[str | None, ...], int, int, float, float, int, int, str, tuple[str | None, str | None] | None
]  # a plain tuple, as is the maker in it: a class of either takes as long as all the rest
"""One verdict or failure: its :class:`Maker`, time, flags, score, confidence, amounts in usd and msat, the subject's id, and the amounts
as they were written where they are no whole numbers of :data:`PLACES`."""


@attrs.define
class Judged:
    """Verdicts and failures, one a row, in the order of the ledger.

    *times* are milliseconds since 1970 in UTC, *makers* by the numbers in *codes*, *flags* as :data:`FAILED` and the others say. Of a
    failure score and confidence are 0. *numbers* are those of the subjects among *names*. *exact* has by row the amounts that do not fit
    into *usd* and *msat*.
    """

    seqs: Ints = attrs.field(factory=lambda: array("q"))
    times: Ints = attrs.field(factory=lambda: array("q"))
    codes: Ints = attrs.field(factory=lambda: array("i"))
    flags: Ints = attrs.field(factory=lambda: array("i"))
    scores: Floats = attrs.field(factory=lambda: array("d"))
    confidences: Floats = attrs.field(factory=lambda: array("d"))
    usd: Ints = attrs.field(factory=lambda: array("q"))
    msat: Ints = attrs.field(factory=lambda: array("q"))
    numbers: Ints = attrs.field(factory=lambda: array("i"))
    names: Names = attrs.field(factory=Names)
    makers: list[Maker] = attrs.field(factory=list)
    exact: dict[int, tuple[str | None, str | None]] = attrs.field(factory=dict)
    memo: dict[object, Any] = attrs.field(factory=dict, init=False, repr=False, eq=False)
    """What readers have made of all rows, and of what else the ledger had then, kept with them."""
    _ids: list[str] = attrs.field(factory=list, init=False, repr=False, eq=False)

    @property
    def ids(self) -> list[str]:
        """The id of each row's subject."""
        if len(self._ids) != len(self.numbers):
            self._ids = list(map(str, self.names.texts_of(self.numbers)))
        return self._ids

    def add(self, entries: Iterable[Entry]) -> Judged:
        """Add the rows of *entries*; what is neither a verdict nor a failure is left out."""
        codes: dict[tuple[str | None, ...], int] = {maker: code for code, maker in enumerate(self.makers)}
        times: dict[str, int] = {}
        shared = bool(self.numbers)  # names that are not only its own
        for entry in entries:
            line = line_of(entry.event, times)
            if line is not None:
                self._grow()
                self.names, shared = (self.names.copied(), False) if shared else (self.names, False)
                code = codes.setdefault(line[0], len(codes))
                if code == len(self.makers):
                    self.makers.append(Maker(*line[0]))  # type: ignore[arg-type]  # nine of them, as line_of has them
                self._put(entry.seq, code, line)
        return self

    def of_run(self, run_id: str) -> Judged:
        """The rows of one run."""
        wanted = [maker.run_id == run_id for maker in self.makers]
        if all(wanted) or all(wanted[code] for code in set(self.codes)):
            return self
        return self.only([wanted[code] for code in self.codes])

    def only(self, chosen: Sequence[object]) -> Judged:
        """The rows for which *chosen* is true."""
        columns = (array(code_of(one), compress(one, chosen)) for one in self._columns())
        made: Callable[..., Judged] = Judged
        places = (
            {row: place for place, row in enumerate(compress(range(len(self.codes)), chosen))} if self.exact else {}
        )
        exact = {places[row]: texts for row, texts in self.exact.items() if row in places}
        return made(*columns, self.names, self.makers, exact)

    def unit_scores(self) -> Judged:
        """Return the rows without scores on a scale of their own."""
        return self.only([not flag & RAW for flag in self.flags]) if any(flag & RAW for flag in self.flags) else self

    def _columns(self) -> tuple[Any, ...]:
        figures = self.scores, self.confidences, self.usd, self.msat
        return (self.seqs, self.times, self.codes, self.flags, *figures, self.numbers)

    def _grow(self) -> None:
        if isinstance(self.seqs, memoryview):
            seqs, times, codes, flags, scores, confidences, usd, msat, numbers = map(growing, self._columns())
            self.seqs, self.times, self.codes, self.flags, self.numbers = seqs, times, codes, flags, numbers
            self.scores, self.confidences, self.usd, self.msat = scores, confidences, usd, msat

    def _put(self, seq: int, code: int, line: Line) -> None:
        _, time, flags, score, confidence, usd, msat, id, exact = line
        if exact is not None:
            self.exact[len(self.codes)] = exact
        values = seq, time, code, flags, score, confidence, usd, msat, self.names.number(id)
        for column, value in zip(self._columns(), values, strict=True):
            column.append(value)

    def usd_of(self, rows: Iterable[int]) -> Decimal:
        """The sum of the known amounts in usd of *rows*, with as many decimals as the one that was written with most."""
        return self._sum(rows, "usd")

    def msat_of(self, rows: Iterable[int]) -> Decimal:
        """Likewise in msat."""
        return self._sum(rows, "msat")

    def _sum(self, rows: Iterable[int], unit: str) -> Decimal:
        amounts, flags = self.usd if unit == "usd" else self.msat, self.flags
        paid = [row for row in rows if amounts[row] or flags[row] & EXACT]
        digits = max((self.decimals(flags[row], unit) for row in paid), default=0)
        exact = [row for row in paid if flags[row] & EXACT] if self.exact else ()
        return self.amount(unit, sum(amounts[row] for row in paid), digits, exact)

    @staticmethod
    def decimals(flags: Any, unit: str) -> Any:
        """How many decimals the amount in *unit* was written with, by what *flags* say."""
        return flags >> _DIGITS[unit == "msat"] & 255

    def amount(self, unit: str, whole: int, digits: int, exact: Iterable[int]) -> Decimal:
        """A sum in *unit* of which *whole* is that of the numbers and *exact* are the rows that hold it as text, with so many decimals."""
        place, apart = int(unit == "msat"), Decimal(0)
        for row in exact:
            if (text := self.exact[row][place]) is not None:
                apart += Decimal(text)
        found = Decimal(whole).scaleb(-PLACES[place]).quantize(Decimal(1).scaleb(-digits)) if whole else Decimal(0)
        return found + apart if apart else found


def judged(ledger: Any, run_id: str | None = None) -> Judged:
    """The verdicts and failures in *ledger*, or of one run: as it keeps them, else out of its events."""
    if not hasattr(ledger, "judged"):
        return Judged().add(ledger.read(Query(run_id, TYPES)))
    kept: Judged = ledger.judged(run_id)
    return kept


def line_of(event: Event, times: dict[str, int] | None = None) -> Line | None:
    """Return the line of an event of :data:`TYPES`, or None if a required field is missing from the payload.

    *times* keeps what times come to, for whoever has many with the same one. Written flat: this runs for every verdict of every run.
    """
    payload: Mapping[str, Any] = event.payload
    time = None if times is None else times.get(event.time)
    try:
        if time is None:
            time = _ms(event.time)
            if times is not None:
                times[event.time] = time
        id, kind, judge = payload["subject_id"], payload["subject_kind"], payload["judge"]
        if not (isinstance(id, str) and isinstance(kind, str) and isinstance(judge, str)):
            return None
        if event.type == EVAL_FAILED:
            maker = event.run_id, kind, judge, None, None, None, None, None, None
            return maker, time, FAILED, 0.0, 0.0, 0, 0, id, None
        get = payload.get
        maker = (
            *(event.run_id, kind, judge, payload["judge_kind"], payload["judge_model"], payload["rubric_id"]),
            *(payload["rubric_version"], get("fingerprint"), get("judge_pricing_version")),
        )
        usd, msat, signals = payload["judge_cost_usd"], get("judge_cost_msat", "0"), get("signals")
        flags, dollars, millis, exact = _flags(signals) if signals else 0, 0, 0, None
        if usd != "0" or msat != "0":
            flags, dollars, millis, exact = _priced(flags, usd, msat)
        raw, confidence = payload["score"] is None and "raw" in payload, float(payload["confidence"])
        score = payload["raw"] if raw else payload["score"]
        score, flags = nan if raw and score is None else float(score), flags | RAW * raw
        hash(maker)  # raises TypeError for what no ledger of ours has written
    except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError):
        return None
    return (maker, time, flags, score, confidence, dollars, millis, id, exact) if raw or 0 <= score <= 1 else None


def _flags(signals: Mapping[str, Any]) -> int:
    get = signals.get
    flags = 0
    for found in (get("flags_negative"), get("heuristic_flags_negative")):
        if found and isinstance(found, list | tuple) and "explicit_thumbs_down" in found:
            flags = DOWN
    if get("escalated") is True:
        flags |= ESCALATED
    if get("budget_exhausted") is True or get("escalation_skipped") == "budget_exhausted":
        flags |= EXHAUSTED
    return flags


def _priced(flags: int, *texts: Any) -> tuple[int, int, int, tuple[str | None, str | None] | None]:
    """*flags* with what they say of the amounts *texts*, in usd and msat; these as numbers, and as texts where they are none."""
    amounts = [0, 0]
    exact = False
    for unit, text in enumerate(texts):
        if text is None:
            flags |= (USD_UNKNOWN, MSAT_UNKNOWN)[unit]
            continue
        amount = Decimal(text)
        whole = amount.scaleb(PLACES[unit])
        digits = max(0, -int(amount.as_tuple().exponent))
        if whole != whole.to_integral_value() or abs(whole) > _MOST or digits > PLACES[unit]:
            exact = True
        elif amount:
            amounts[unit], flags = int(whole), flags | digits << _DIGITS[unit]
    if exact:
        return flags & 0xFF | EXACT, 0, 0, tuple(None if text is None else f"{Decimal(text):f}" for text in texts)  # type: ignore[return-value]
    return flags, *amounts, None  # type: ignore[return-value]


def _ms(time: str) -> int:
    """An ISO 8601 time in milliseconds since 1970; one without an offset is UTC."""
    moment = datetime.fromisoformat(time)
    return milliseconds(moment if moment.tzinfo else moment.replace(tzinfo=UTC))


def milliseconds(moment: datetime) -> int:
    """*moment* (aware) in whole milliseconds since 1970, rounded down."""
    passed = moment - datetime(1970, 1, 1, tzinfo=UTC)
    return (passed.days * 86_400 + passed.seconds) * 1000 + passed.microseconds // 1000
