"""Part of a run that judges one shard: the sections that it leaves to the merge, its share of the caps, and its record."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from decimal import ROUND_FLOOR, Decimal
from typing import Any

import attrs

from ...toolkit.money import amount_text
from ..asking.call import Call
from ..asking.day_share import DayShare
from ..contract.protocols import Source
from ..plan.secret_mask import SecretMask
from ..plan.sections import Pipeline
from ..resume.open_runs import RunCommand
from ..source.shard import Shard, ShardSubjects, SliceSubjects, slice_of
from ..source.source import is_live
from ..values import Cost, Due
from ..values.errors import ConfigError, DataError, Problem

OUT = "--out "
"""Beginning of the label of a sink that an option asks for; such a sink takes the subjects of the shard."""

_SMALLEST = Decimal("1e-12")
"""Step to which the share of a cap is rounded down."""


def shard_pipeline(pipeline: Pipeline) -> Pipeline:
    """Return *pipeline* without the sections that are about all subjects: aggregates, the baseline and the sinks of the file. The gate is needed for labels.

    :raises ConfigError: for an early stop, which cannot know the subjects of other shards.
    """
    if pipeline.early_stop:
        message = "early_stop decides by the subjects before, and a shard has only some of them; remove early_stop, or --shard"
        raise ConfigError(Problem(message, file=pipeline.file, path="early_stop"))
    sinks = tuple(slot for slot in pipeline.sinks if slot.label.startswith(OUT))
    return attrs.evolve(pipeline, aggregates=(), baseline=None, sinks=sinks)


def refuse_without_digest(source: Source, name: str, data: Mapping[str, str], option: str = "--shard") -> None:
    """Refuse a *source* whose subjects cannot be compared between shards.

    :param data: the digest of the data; empty if the source computes none.
    :param option: the option or the executor that splits the run.
    :raises ConfigError: for a live source, or a source without a digest.
    """
    if is_live(source):
        raise ConfigError(f"{option} needs a source that ends, but a live source does not; remove {option}")
    if "data" not in data:
        message = f"{name} computes no digest of its data, so nobody can know if all shards read the same"
        raise ConfigError(f"{message}; remove {option}")


def refuse_other_data(shard: Shard, name: str, data: Mapping[str, str]) -> None:
    """Refuse *data* that differ from the data of the run that started *shard*.

    :raises DataError: with both digests.
    """
    if shard.digest is not None and data["data"] != shard.digest:
        digests = f"{data['data']:.12} here, {shard.digest:.12} where the run was started"
        raise DataError(
            f"{name} reads other data than the run of the shard: {digests}; give all machines the same data"
        )


def shard_record(shard: Shard, command: RunCommand | None, mask: SecretMask) -> dict[str, Any]:
    """Return the member ``shard`` of ``run.started``: the shard, and the words of the *command* with which the merge reads the pipeline file again.

    :raises ConfigError: without a file, or if the command has a secret, which is never recorded.
    """
    if command is None:
        raise ConfigError("a shard needs a pipeline file, which dicast merge reads again")
    if any(mask.text(setting) != setting for setting in command.settings):
        message = "--shard records the values of --set for dicast merge, and a value of --set is a secret"
        raise ConfigError(f"{message}; write ${{NAME}} in the file, and set the variable NAME")
    numbers = {"number": shard.number, "of": shard.of}
    words = {"file": command.file, "set": [*command.settings], "only": [*command.only]}
    return {**numbers, **words, **({} if shard.run_id is None else {"run": shard.run_id})}


class ShardRun:
    """One *shard* of a run of *pipeline*, with its share of the caps: the rest of the caps is for the other shards.

    *limits* has the share of the run's cap. *day* is the share of the day's cap, which holds in addition to the whole cap of the day: in
    a ledger of several shards both hold. It is a share of the allotment, if the process of the run has taken one.
    """

    def __init__(self, shard: Shard, pipeline: Pipeline) -> None:
        budget = pipeline.budget
        self.limits = attrs.evolve(budget, run=_shares(budget.run, shard.of))
        if shard.allotment is None:
            self.day = DayShare(f"shard {shard}", _shares(budget.day, shard.of))
        else:
            id_, amounts = shard.allotment
            self.day = DayShare(f"shard {shard} of {id_}", _shares(amounts, shard.of), is_daily=False)
        self._shard = shard
        self._subjects: ShardSubjects | SliceSubjects = ShardSubjects(shard)
        self._has_paid_calls = False

    def refuse_unfit(self, source: Source, name: str, data: Mapping[str, str]) -> None:
        """Refuse a *source*, called *name*, with *data* that the shard cannot be judged on.

        :raises RequestError: as :func:`refuse_without_digest` and :func:`refuse_other_data`.
        """
        refuse_without_digest(source, name, data)
        refuse_other_data(self._shard, name, data)

    def part_of(self, source: Source, name: str) -> Source | None:
        """Return the slice of *source*, called *name*, that the shard reads; None if the shard reads all subjects, and picks its own, as shards of one size do."""
        part = None if self._shard.size is not None else slice_of(source, name, self._shard)
        self._subjects = self._subjects if part is None else part
        return part

    def pick(self, subjects: AsyncIterator[Due], limit: int | None, calls: Iterable[Call]) -> AsyncIterator[Due]:
        """Yield the subjects of the shard among at most *limit* of *subjects*, for the components of *calls*."""
        self._has_paid_calls = any(call.estimate is not None for call in calls)
        return self._subjects.pick(subjects, limit)

    def members(self, done: Mapping[str, Any], warnings: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Return the members of the shard's document that differ from *done*, the document of its subjects.

        :param warnings: the warnings about the source, which the merge repeats.
        """
        shard, read = self._shard, self._subjects.read
        message = f"shard {shard}: {done['subjects']:,} of {read:,} subjects; dicast merge adds the gate, aggregates, comparisons and sinks"
        subjects = self._subjects
        span = {} if shard.size is None or isinstance(subjects, SliceSubjects) else {"span": subjects.span}
        kind = {"is_slice": True} if isinstance(subjects, SliceSubjects) else {}
        members: dict[str, Any] = {
            "shard": {
                "number": shard.number,
                "of": shard.of,
                "read": read,
                **span,
                **kind,
                "warnings": [*warnings],
                "notice": message + self._notice(),
            },
        }
        if not done["subjects"] and done["stopped"] is None:
            members["undecided"] = []  # a shard without subjects is complete
        return members

    def _notice(self) -> str:
        """Return the words about the caps; empty if no call can cost anything."""
        caps = [("run", cost) for cost in self.limits.run] + [("day", cost) for cost in self.day.limits]
        if not caps or not self._has_paid_calls:
            return ""
        return f"; its caps are 1/{self._shard.of} of the file's: " + ", ".join(
            f"{scope} {amount_text(cost.amount)} {cost.unit}" for scope, cost in caps
        )


def _shares(caps: Sequence[Cost], of: int) -> tuple[Cost, ...]:
    """Return *caps* divided by *of*, rounded down: the shares never add up to more than a cap."""
    return tuple(attrs.evolve(cap, amount=_share(cap.amount, of)) for cap in caps)


def _share(amount: Decimal | None, of: int) -> Decimal | None:
    return None if amount is None else (amount / of).quantize(_SMALLEST, ROUND_FLOOR).normalize()
