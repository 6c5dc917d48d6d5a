"""The report on a suite's runs, as a JSON document and as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from textwrap import wrap
from typing import Any

import attrs

from dicast import mean

from .figures import Provenance, Row, Signal, Sum, is_successful, rows, signals
from .judged import Judged, Reading

MAX_SHOWN = 10
"""The number of failed assertions in the text."""

_WIDTH = 80


@attrs.frozen
class Report:
    """The results of a :class:`Reading`."""

    reading: Reading
    table: Sequence[Row]
    signals: Mapping[str, Signal]
    provenance: Provenance

    @classmethod
    def of(cls, reading: Reading) -> Report:
        """Put the figures together."""
        table = rows(reading.judged)
        return cls(reading, table, signals(table), Provenance.of(reading.judged))

    @property
    def savings(self) -> tuple[Sum, Sum]:
        """Return the savings on successful work, and on all work."""
        all_of_it = self.reading.judged
        return Sum.of(run.saved for run in all_of_it if is_successful(run)), Sum.of(run.saved for run in all_of_it)

    @property
    def mean(self) -> float | None:
        """The suite's mean: every workload and model weighs the same, however often it was run."""
        return _mean(self.table)

    def document(self) -> dict[str, Any]:
        """Return the JSON document. Amounts are decimal strings, or null if a price is unknown."""
        judged = self.reading.judged
        won, total = self.savings
        models = dict.fromkeys(row.model for row in self.table)
        return {
            "runs": [{"run_id": run_id, "name": name} for run_id, name in self.reading.runs],
            "judge": self.reading.judge,
            "data": [self._row(row) for row in self.table],
            "workloads": [_signal(signal) for signal in self.signals.values()],
            "suite": {
                "workloads": len(self.signals),
                "runs": len(judged),
                "failed": sum(row.failed for row in self.table),
                "mean": self.mean,
                "models": {
                    str(model): _mean([row for row in self.table if row.model == model]) for model in models if model
                },
                "cost_usd": _text(Sum.of(run.cost for run in judged).total),
            },
            "savings": {
                "successful_usd": _text(won.total),
                "total_usd": _text(total.total),
                "successful_runs": sum(map(is_successful, judged)),
                **(
                    {
                        "known_successful_usd": _text(won.known),
                        "known_total_usd": _text(total.known),
                        "unpriced": total.unknown,
                    }
                    if total.unknown
                    else {}
                ),
            },
            "provenance": self._provenance(),
        }

    def _row(self, row: Row) -> dict[str, Any]:
        unused_rubrics = sorted({name for run in row.judged if (name := _not_followed(run))})
        return {
            "workload": row.workload,
            "model": row.model,
            "runs": len(row.judged),
            "failed": row.failed,
            "quality": row.quality,
            "mean": row.mean,
            "std": row.std,
            "confidence": row.confidence,
            "noisy": row.noisy,
            "signal_strength": self.signals[row.workload].strength,
            "successful": sum(map(is_successful, row.judged)),
            "cost_usd": _text(row.sum(lambda run: run.cost).total),
            "baseline_cost_usd": _text(row.sum(lambda run: run.baseline).total),
            "savings_usd": _text(row.sum(lambda run: run.saved).total),
            "assertions": {
                "checked": sum(_count(run, "assertions_checked") for run in row.judged),
                "failed": sum(_count(run, "assertion_failures") for run in row.judged),
                "unchecked": sum(_count(run, "assertions_unchecked") for run in row.judged),
                "failures": [{"run": run.id, "assertion": text} for run in row.judged for text in _failures(run)],
            },
            **({"rubric_requested": unused_rubrics} if unused_rubrics else {}),
        }

    def _provenance(self) -> dict[str, Any]:
        provenance = self.provenance
        named = {
            "models": list(provenance.models),
            "seeds": list(provenance.seeds),
            "start": provenance.start,
            "end": provenance.end,
        }
        return {**provenance.pinned, **named, "mixed": {key: list(values) for key, values in provenance.mixed.items()}}

    def lines(self) -> Iterator[str]:
        """Yield the report as text."""
        yield (
            "workloads judged by "
            + self.reading.judge
            + ", "
            + ", ".join(f"run {id_} ({name})" for id_, name in self.reading.runs)
        )
        yield from self._pins()
        heads = ("workload", "model", "runs", "quality", "mean ± std", "signal", "cost", "saved")
        yield from _aligned([heads, *map(self._cells, self.table)])
        yield from self._advice()
        judged = len(self.reading.judged) - sum(row.failed for row in self.table)
        mean = "none" if self.mean is None else f"{self.mean:.4f}"
        yield f"suite mean: {mean} over {len(self.signals)} workloads, {judged:,} of {len(self.reading.judged):,} runs judged"
        yield self._headline()

    def _pins(self) -> Iterator[str]:
        provenance = self._provenance()
        mixed: Mapping[str, Sequence[object]] = provenance.pop("mixed")
        pins = [f"{key} {_plain(value)}" for key, value in provenance.items() if value not in (None, [])]
        if pins:
            yield from wrap(
                "  " + ", ".join(pins), _WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
            )
        for key, values in mixed.items():
            yield f"  MIXED {key}: {', '.join(map(_plain, values))}; these runs are not of one suite, compare them with care"

    def _cells(self, row: Row) -> tuple[str, ...]:
        mean = "-" if row.mean is None else f"{row.mean:.2f}"
        spread = f" ± {row.std:.2f}{' NOISY' if row.noisy else ''}" if row.std is not None else ""
        failed = f" (+{row.failed} not judged)" if row.failed else ""
        cost, saved = row.sum(lambda run: run.cost), row.sum(lambda run: run.saved)
        return (
            row.workload,
            row.model or "-",
            f"{len(row.scores)}{failed}",
            row.quality or "-",
            mean + spread,
            self.signals[row.workload].strength,
            _dollars(cost),
            _dollars(saved),
        )

    def _advice(self) -> Iterator[str]:
        for row in self.table:
            for name in sorted({name for run in row.judged if (name := _not_followed(run))}):
                who = " by ".join(filter(None, (row.workload, row.model)))
                yield f"  {who}: its block asks for rubric: {name}, and it was judged without a model; put llm/judge beside it in hybrid/cascade"
        failures = [f"{run.id}: {text}" for run in self.reading.judged for text in _failures(run)]
        if failures:
            yield f"failed assertions: {len(failures):,}"
            yield from (f"  {text}" for text in failures[:MAX_SHOWN])
        if len(failures) > MAX_SHOWN:
            yield "  … (--json lists them all)"
        if unchecked := sum(_count(run, "assertions_unchecked") for run in self.reading.judged):
            yield f"assertions not checked, because the runs do not bring their figures: {unchecked:,}"

    def _headline(self) -> str:
        won, total = self.savings
        if total.unknown == len(self.reading.judged):
            return "savings on successful work: unknown, no run has both cost_usd and baseline_cost_usd"
        unpriced = f", besides {total.unknown:,} runs whose price is not known" if total.unknown else ""
        return f"savings on successful work: {_money(won.known)} of {_money(total.known)} total{unpriced}"


def _mean(table: Sequence[Row]) -> float | None:
    means = [row.mean for row in table if row.mean is not None]
    return mean(means) if means else None


def _signal(signal: Signal) -> dict[str, Any]:
    return {
        "workload": signal.workload,
        "signal_strength": signal.strength,
        "declared": signal.declared,
        "gap": signal.gap,
        "cheapest": signal.cheapest,
        "dearest": signal.dearest,
    }


def _not_followed(run: Judged) -> str | None:
    """Return the rubric in a workload's block, if its verdict has another rubric."""
    block = run.context.get("evaluate")
    rubric = block.get("rubric") if isinstance(block, Mapping) else None
    return str(rubric) if rubric in ("llm", "hybrid") and run.judge_kind == "heuristic" else None


def _failures(run: Judged) -> list[str]:
    value = run.context.get("assertion_failures")
    return [str(text) for text in value] if isinstance(value, list) else []


def _count(run: Judged, key: str) -> int:
    value = run.context.get(key)
    return len(value) if isinstance(value, list | tuple) else value if isinstance(value, int) else 0


def _text(amount: Decimal | None) -> str | None:
    return None if amount is None else format(amount, "f")


def _money(amount: Decimal) -> str:
    """Return an amount with all its digits, two of them at least: ``-$0.125``."""
    plain = amount.normalize()
    exponent = plain.as_tuple().exponent
    places = max(2, -exponent if isinstance(exponent, int) else 0)
    return f"{'-' if plain < 0 else ''}${abs(plain):.{places}f}"


def _dollars(amounts: Sum) -> str:
    return (
        f"{_money(amounts.known)}+?"
        if amounts.unknown and amounts.known
        else "?"
        if amounts.unknown
        else _money(amounts.known)
    )


def _plain(value: object) -> str:
    if isinstance(value, list):
        return " ".join(map(str, value))
    return (
        {None: "not given", True: "true", False: "false"}.get(value, str(value))
        if value is None or isinstance(value, bool)
        else str(value)
    )


def _aligned(table: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(len(row[column]) for row in table) for column in range(len(table[0]))]
    for row in table:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
