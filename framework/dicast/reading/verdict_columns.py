"""Verdicts and failures as columns of numbers: readers of many verdicts need no object for each."""

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
from .._kernel.resume.retractions import Place, retracted_labels
from .._kernel.values import RECORDED, Entry, Query
from ..toolkit.money import rounded, scaled_digits
from .columns import growing, kept, low_bytes, rows_with
from .names import Names

if TYPE_CHECKING:
    from .columns import Floats, Ints

VERDICT_TYPES = (EVAL_COMPLETED, EVAL_FAILED)
"""The types of the events that :func:`read_verdicts` reads."""

FAILED, DOWN, ESCALATED, EXHAUSTED, USD_UNKNOWN, MSAT_UNKNOWN, EXACT, RAW = (1 << bit for bit in range(8))
"""Flags of a row, in this order: no score; a thumb down; an escalated cascade; a cap without remaining budget; an unknown amount in usd; an
unknown amount in msat; an amount that needs text; a raw score, which is NaN if the gate of proxies failed."""

_WITHOUT_RAW = bytes(not flags & RAW for flags in range(256))
"""For each value of a byte of flags: 1 if the score is not raw, else 0."""

_DIGITS = 8, 16
"""The first bit of the number of decimals of the amount in usd, and in msat, among a row's flags."""

PLACES = 12, 6
"""The number of decimals of a stored amount in usd, and in msat."""

_MOST = 2**62


class VerdictOrigin(NamedTuple):
    """Fields that many verdicts share."""

    run_id: str
    kind: str
    judge: str
    judge_kind: str | None
    judge_model: str | None
    rubric_id: str | None
    rubric_version: str | None
    fingerprint: str | None
    pricing_version: str | None

    @property
    def is_recorded(self) -> bool:
        """True if another tool gave the score; such scores enter no figure of dicast's own verdicts."""
        return self.judge_kind == RECORDED


Line = tuple[
    tuple[str | None, ...], int, int, float, float, int, int, str, tuple[str | None, str | None] | None
]  # plain tuples, also for the origin: objects of classes would take twice as long
"""One verdict or failure: its :class:`VerdictOrigin`, time, flags, score, confidence, amounts in usd and msat, the subject's id, and the amounts
as text if they are not whole numbers at :data:`PLACES` decimals."""


@attrs.define
class VerdictColumns:
    """Verdicts and failures, one per row, in the order of the ledger.

    *times* are milliseconds since 1970 in UTC, *codes* are indices into *origins*, *flags* are bits such as :data:`FAILED`. A failure has
    score and confidence 0. *numbers* are the numbers of the subjects' ids in *names*. *exact* maps rows to amounts as text if the amounts do not
    fit into *usd* and *msat*.
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
    origins: list[VerdictOrigin] = attrs.field(factory=list)
    exact: dict[int, tuple[str | None, str | None]] = attrs.field(factory=dict)
    memo: dict[object, Any] = attrs.field(factory=dict, init=False, repr=False, eq=False)
    """Results that readers computed from all rows and the rest of the ledger, cached with the rows."""
    _ids: list[str] = attrs.field(factory=list, init=False, repr=False, eq=False)

    @property
    def ids(self) -> list[str]:
        """The id of each row's subject."""
        if len(self._ids) != len(self.numbers):
            self._ids = list(map(str, self.names.texts_of(self.numbers)))
        return self._ids

    def add(self, entries: Iterable[Entry]) -> VerdictColumns:
        """Add a row for each verdict and failure among *entries*."""
        codes: dict[tuple[str | None, ...], int] = {origin: code for code, origin in enumerate(self.origins)}
        times: dict[str, int] = {}
        is_shared = len(self.names) > 0  # other columns may use the names too
        for entry in entries:
            event = entry.event
            line = line_of(event.type, event.time, event.run_id, event.payload, times)
            if line is not None:
                self._grow()
                self.names, is_shared = (self.names.copy(), False) if is_shared else (self.names, False)
                code = codes.setdefault(line[0], len(codes))
                if code == len(self.origins):
                    self.origins.append(VerdictOrigin(*line[0]))  # type: ignore[arg-type]  # nine items, as in line_of
                self._put(entry.seq, code, line)
        return self

    def of_run(self, run_id: str) -> VerdictColumns:
        """Return the rows of one run."""
        rows = rows_with(self.codes, [origin.run_id == run_id for origin in self.origins])
        return self if rows is None else self.only(rows)

    def only(self, selected: Sequence[object]) -> VerdictColumns:
        """Return the rows for which *selected* is true."""
        columns = kept(self._columns(), selected)
        make: Callable[..., VerdictColumns] = VerdictColumns
        places = (
            {row: place for place, row in enumerate(compress(range(len(self.codes)), selected))} if self.exact else {}
        )
        exact = {places[row]: texts for row, texts in self.exact.items() if row in places}
        return make(*columns, self.names, self.origins, exact)

    def unit_scores(self) -> VerdictColumns:
        """Return the rows without raw scores, the same object each time, so that its :attr:`memo` serves the next reader too."""
        low = low_bytes(self.flags)
        if low.isascii():  # RAW is the highest bit of a byte
            return self
        if "unit scores" not in self.memo:
            self.memo["unit scores"] = self.only(low.translate(_WITHOUT_RAW))
        columns: VerdictColumns = self.memo["unit scores"]
        return columns

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

    @property
    def pricing_version(self) -> str | None:
        """The version of the price list of the newest verdict that has one; None without such a verdict."""
        priced = {code for code, origin in enumerate(self.origins) if origin.pricing_version is not None}
        newest = next((code for code in reversed(self.codes) if code in priced), None) if priced else None
        return None if newest is None else self.origins[newest].pricing_version

    def usd_of(self, rows: Iterable[int]) -> Decimal:
        """Return the sum of the known amounts in usd of *rows*, with the largest number of decimals among them."""
        return self._sum(rows, "usd")

    def msat_of(self, rows: Iterable[int]) -> Decimal:
        """Return the sum of the known amounts in msat of *rows*, with the largest number of decimals among them."""
        return self._sum(rows, "msat")

    def _sum(self, rows: Iterable[int], unit: str) -> Decimal:
        amounts, flags = self.usd if unit == "usd" else self.msat, self.flags
        paid = [row for row in rows if amounts[row] or flags[row] & EXACT]
        digits = max((self.decimals(flags[row], unit) for row in paid), default=0)
        exact = [row for row in paid if flags[row] & EXACT] if self.exact else ()
        return self.amount(unit, sum(amounts[row] for row in paid), digits, exact)

    @staticmethod
    def decimals(flags: Any, unit: str) -> Any:
        """Return the number of decimals of the amount in *unit*, which *flags* contain."""
        return flags >> _DIGITS[unit == "msat"] & 255

    def amount(self, unit: str, total: int, digits: int, exact: Iterable[int]) -> Decimal:
        """Return the sum in *unit* of *total*, an integer with :data:`PLACES` decimals, and of the amounts as text of the rows *exact*. *total* is rounded to *digits* decimals."""
        place, exact_part = int(unit == "msat"), Decimal(0)
        for row in exact:
            if (text := self.exact[row][place]) is not None:
                exact_part += Decimal(text)
        amount = rounded(Decimal(total).scaleb(-PLACES[place]), digits) if total else Decimal(0)
        return amount + exact_part if exact_part else amount


def read_verdicts(ledger: Any, run_id: str | None = None) -> VerdictColumns:
    """Return the verdicts and failures in *ledger*, or in one run, without the verdicts of retracted labels.

    They are the ledger's own columns if it has them, else columns made from its events.
    """
    columns: VerdictColumns
    if hasattr(ledger, "verdict_columns"):
        columns = ledger.verdict_columns(run_id)
    else:
        columns = VerdictColumns().add(ledger.read(Query(run_id, VERDICT_TYPES)))
    retracted = retracted_labels(ledger)
    return _without_retracted(columns, retracted) if retracted else columns


def read_pricing_version(ledger: Any, run_id: str | None = None) -> str | None:
    """Return the version of the price list of the newest verdict that has one, in *ledger* or in one run; None without such a verdict."""
    if not hasattr(ledger, "pricing_version"):
        return read_verdicts(ledger, run_id).pricing_version
    version: str | None = ledger.pricing_version(run_id)
    return version


def _without_retracted(columns: VerdictColumns, retracted: frozenset[Place]) -> VerdictColumns:
    """Return *columns* without the verdicts of *retracted* labels."""
    runs = {run_id for run_id, _, _ in retracted}
    codes = {code for code, origin in enumerate(columns.origins) if origin.run_id in runs}
    if not codes:
        return columns
    rows = [row for row, code in enumerate(columns.codes) if code in codes]
    ids = columns.names.texts_of(columns.numbers[row] for row in rows)
    origins = [columns.origins[columns.codes[row]] for row in rows]
    places = zip(rows, origins, ids, strict=True)
    dropped = {row for row, origin, id in places if (origin.run_id, origin.kind, id) in retracted}
    return columns.only([row not in dropped for row in range(len(columns.codes))]) if dropped else columns


def line_of(type_: str, written: str, run_id: str, payload: Any, times: dict[str, int] | None = None) -> Line | None:
    """Return the line of an event of :data:`VERDICT_TYPES`, or None if a required field is missing from the payload.

    The values are those of the event: no caller needs an object for each. *times* caches parsed times, for callers with many events of one time. The code is
    flat because it runs for every verdict of every run.

    :param written: the time of the event.
    """
    times = {} if times is None else times
    try:
        time = times.get(written)
        if time is None:
            time = times[written] = _ms(written)
        id, kind, judge = payload["subject_id"], payload["subject_kind"], payload["judge"]
        if not (isinstance(id, str) and isinstance(kind, str) and isinstance(judge, str)):
            return None
        if type_ == EVAL_FAILED:
            origin = run_id, kind, judge, None, None, None, None, None, None
            return origin, time, FAILED, 0.0, 0.0, 0, 0, id, None
        get = payload.get
        model, rubric, version = payload["judge_model"], payload["rubric_id"], payload["rubric_version"]
        facts = model, rubric, version, get("fingerprint"), get("judge_pricing_version")
        origin = run_id, kind, judge, payload["judge_kind"], *facts
        usd, msat, signals = payload["judge_cost_usd"], get("judge_cost_msat", "0"), get("signals")
        flags, dollars, millis, exact = flags_of(signals) if signals else 0, 0, 0, None
        if usd != "0" or msat != "0":
            flags, dollars, millis, exact = _priced(flags, usd, msat)
        raw, confidence = payload["score"] is None and "raw" in payload, float(payload["confidence"])
        score = payload["raw"] if raw else payload["score"]
        score, flags = nan if raw and score is None else float(score), flags | RAW * raw
        hash(origin)  # raises TypeError for a payload that dicast did not write
    except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError):
        return None
    return (origin, time, flags, score, confidence, dollars, millis, id, exact) if raw or 0 <= score <= 1 else None


def flags_of(signals: Mapping[str, Any]) -> int:
    """Return the flags of a verdict with these signals: :data:`DOWN`, :data:`ESCALATED` and :data:`EXHAUSTED`."""
    get = signals.get
    flags = 0
    for names in (get("flags_negative"), get("heuristic_flags_negative")):
        if names and isinstance(names, list | tuple) and "explicit_thumbs_down" in names:
            flags = DOWN
    if get("escalated") is True:
        flags |= ESCALATED
    if get("budget_exhausted") is True or get("escalation_skipped") == "budget_exhausted":
        flags |= EXHAUSTED
    return flags


def _priced(flags: int, *texts: Any) -> tuple[int, int, int, tuple[str | None, str | None] | None]:
    """Return *flags* with the flags of the amounts *texts* (usd, msat), both amounts as integers, and both as text if one does not fit."""
    amounts = [0, 0]
    exact = False
    for unit, text in enumerate(texts):
        if text is None:
            flags |= (USD_UNKNOWN, MSAT_UNKNOWN)[unit]
            continue
        plain = scaled_digits(text, PLACES[unit])
        if plain is not None and plain[0] <= _MOST:
            amounts[unit], digits = plain
            flags |= digits << _DIGITS[unit] if amounts[unit] else 0
            continue
        amount = Decimal(text)
        scaled = amount.scaleb(PLACES[unit])
        digits = max(0, -int(amount.as_tuple().exponent))
        if scaled != scaled.to_integral_value() or abs(scaled) > _MOST or digits > PLACES[unit]:
            exact = True
        elif amount:
            amounts[unit], flags = int(scaled), flags | digits << _DIGITS[unit]
    if exact:
        return flags & 0xFF | EXACT, 0, 0, tuple(None if text is None else f"{Decimal(text):f}" for text in texts)  # type: ignore[return-value]
    return flags, *amounts, None  # type: ignore[return-value]


def _ms(time: str) -> int:
    """Return an ISO 8601 time in milliseconds since 1970; a time without an offset is UTC."""
    moment = datetime.fromisoformat(time)
    return milliseconds(moment if moment.tzinfo else moment.replace(tzinfo=UTC))


def milliseconds(moment: datetime) -> int:
    """Return *moment*, an aware datetime, in whole milliseconds since 1970, rounded down."""
    passed = moment - datetime(1970, 1, 1, tzinfo=UTC)
    return (passed.days * 86_400 + passed.seconds) * 1000 + passed.microseconds // 1000
