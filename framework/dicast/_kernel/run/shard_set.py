"""Shards of one run in their ledgers: they are found, and checked to be parts of the same run."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import orjson

from ..classes import frozen
from ..contract.implements import implements
from ..contract.protocols import Ledger
from ..events import RUN_COMPLETED, RUN_STARTED, RUN_STOPPED
from ..leases.hold_lease import live_run_check
from ..leases.protocol import Leasing
from ..records.option_changes import section_changes
from ..report.document import REFUSED
from ..resume.open_runs import MAX_NAMED, shard_of
from ..values import Query, ReadCounts
from ..values.errors import ConfigError, Problem
from ..values.read_counts import sum_counts

NOT_SHARED = ("shard", "file", "outputs", "followers")
"""Members of ``run.started`` that may differ between the shards of a run."""

_READ = ("records", "subjects", "marked", "dropped", "failed", "notes")
"""Members of the document's ``read`` that are not details."""


@frozen
class ShardRecord:
    """Run of one shard in the ledger at *place*.

    :param began: the time of its ``run.started``.
    :param started: the payload of this event.
    :param document: the payload of its end; empty if it has none.
    :param is_complete: True if every subject of the shard was reached.
    """

    place: str
    ledger: Ledger
    run_id: str
    began: str
    started: Mapping[str, Any]
    document: Mapping[str, Any]
    is_complete: bool

    @property
    def number(self) -> int:
        """The number of the shard, from 1."""
        number: int = self.started["shard"]["number"]
        return number

    @property
    def name(self) -> str:
        """The shard, such as ``3/8``."""
        return f"{self.number}/{self.started['shard']['of']}"

    @property
    def common(self) -> dict[str, Any]:
        """The members of ``run.started`` that are equal in all shards of a run."""
        members = {key: value for key, value in self.started.items() if key not in NOT_SHARED}
        return {**members, "setup": {**self.started["setup"], "shard": f"of {self.started['shard']['of']}"}}

    @property
    def reason(self) -> str:
        """The reason why the run of the shard is not complete."""
        stopped = self.document.get("stopped") or {"reason": "its process ended early"}
        return str(stopped["reason"])

    @property
    def run_name(self) -> str:
        """The shard and its run, for a message that starts with the place."""
        return f"shard {self.name} (run {self.run_id})"

    def __str__(self) -> str:
        return f"shard {self.name} (run {self.run_id} in {self.place})"


@frozen
class ShardSet:
    """All shards of a run, in their order.

    :param older: the runs of shards that are left out, because a newer run of the ledger has their place.
    """

    shards: Sequence[ShardRecord]
    older: Sequence[ShardRecord] = ()

    @property
    def first(self) -> ShardRecord:
        """The first shard; its ``run.started`` has what all shards share."""
        return self.shards[0]

    @property
    def began(self) -> str:
        """The time at which the earliest shard started."""
        return min(shard.began for shard in self.shards)

    @property
    def read(self) -> int | None:
        """The number of subjects of the whole source; None if no shard has read all of them."""
        return next((shard.document["shard"]["read"] for shard in self.shards if shard.is_complete), None)

    def counts(self) -> ReadCounts | None:
        """Return the counts of the source, which each complete shard has read as a whole, unless the source offers slices: then the sums of all shards."""
        reads = [shard.document["read"] for shard in self.shards if shard.is_complete]
        if not reads or any(read["records"] is None for read in reads):
            return None
        if not self._has_slices:
            return _counts(reads[0])
        return sum_counts([_counts(read) for read in reads]) if len(reads) == len(self.shards) else None

    @property
    def _has_slices(self) -> bool:
        return any(shard.document["shard"].get("is_slice") for shard in self.shards if shard.is_complete)

    def source_warnings(self) -> list[dict[str, Any]]:
        """Return the warnings about the source; each warning once if the source offers slices."""
        complete = [shard.document["shard"]["warnings"] for shard in self.shards if shard.is_complete]
        if not self._has_slices:
            return [*next(iter(complete), ())]
        warnings = [warning for shard in complete for warning in shard]
        return [warning for number, warning in enumerate(warnings) if warning not in warnings[:number]]

    def stopped(self) -> dict[str, object] | None:
        """Return the reason why the merged run is not complete; None if all shards are.

        If calls were refused, or an endpoint was not reached, in each incomplete shard, it is the reason of the first of them.
        """
        open_ = [shard for shard in self.shards if not shard.is_complete]
        if not open_:
            return None
        names = ", ".join(f"{shard}: {shard.reason}" for shard in open_)
        cause = open_[0].document["stopped"] if all(shard.reason in REFUSED for shard in open_) else {}
        return {"reason": "unfinished_shards", **cause, "shards": names}


def _counts(read: Mapping[str, Any]) -> ReadCounts:
    details = {name: value for name, value in read.items() if name not in _READ}
    notes = tuple(read.get("notes", ()))
    return ReadCounts(read["records"], read["marked"], read["dropped"], read["failed"], details, notes)


def find_shards(ledgers: Iterable[tuple[str, Ledger]]) -> ShardSet:
    """Return the shards in *ledgers*, each with its place.

    :raises ConfigError: with every shard that is missing, doubled, foreign, or still under way.
    """
    by_place = dict[str, list[ShardRecord]]()
    damaged = list[Problem]()
    for place, ledger in ledgers:
        if (check := ledger.verify()).ok:
            by_place[place] = [*shard_records(place, ledger)]
        else:
            message = (
                f"the ledger is damaged at row {check.bad_seq}: {check.reason}; copy it again from the job of the shard"
            )
            damaged.append(Problem(message, file=place))
    if damaged:
        raise ConfigError(damaged)
    records = [record for found in by_place.values() for record in found]
    problems = [
        Problem("the ledger has no run of a shard; dicast run FILE --shard I/N records one", file=place)
        for place, found in by_place.items()
        if not found
    ]
    if not records:
        raise ConfigError(problems)
    model = _model([max(records, key=_age) for records in by_place.values() if records])
    shards, older = list[ShardRecord](), list[ShardRecord]()
    for found in by_place.values():
        fitting = [record for record in found if record.common == model.common]
        if found and not fitting:
            problems += [_foreign(record, model) for record in found]
        newest = {record.number: record for record in sorted(fitting, key=_age)}
        shards += newest.values()
        if fitting:
            older += [record for record in found if record not in newest.values()]
    problems += [*_doubled(shards), *_missing(shards, older, model), *_running(shards), *_unequal(shards)]
    if problems:
        raise ConfigError(problems)
    return ShardSet(sorted(shards, key=lambda shard: shard.number), older)


def _age(record: ShardRecord) -> str:
    return record.run_id  # ids grow with time


def _model(newest: Sequence[ShardRecord]) -> ShardRecord:
    """Return a shard of the run that most ledgers have, by the *newest* shard of each; of equally many, the newest."""
    keys = [orjson.dumps(record.common, option=orjson.OPT_SORT_KEYS) for record in newest]
    ledgers = Counter(keys)
    return max(zip(newest, keys, strict=True), key=lambda item: (ledgers[item[1]], _age(item[0])))[0]


def shard_records(place: str, ledger: Ledger) -> Iterable[ShardRecord]:
    """Yield the runs of shards in *ledger*."""
    for entry in ledger.read(Query(types=(RUN_STARTED,))):
        started: Mapping[str, Any] = entry.event.payload
        if shard_of(started) is None:
            continue
        run_id = entry.event.run_id
        ends = ledger.read(Query(run_id, (RUN_COMPLETED, RUN_STOPPED), newest_first=True, limit=1))
        end = next((entry.event for entry in ends), None)
        is_complete = end is not None and end.type == RUN_COMPLETED
        yield ShardRecord(
            place, ledger, run_id, entry.event.time, started, {} if end is None else end.payload, is_complete
        )


def _foreign(record: ShardRecord, model: ShardRecord) -> Problem:
    names = _differences(record.common, model.common)
    differs = f"{', '.join(names)} {'differs' if len(names) == 1 else 'differ'}"
    advice = "merge shards of one file, one data set and one number of shards"
    message = f"{record.run_name} is no part of the run of {model}: {differs}; {advice}"
    return Problem(message, file=record.place)


def _differences(left: Mapping[str, Any], right: Mapping[str, Any]) -> list[str]:
    """Return the names of the members that differ; of the digests in ``setup`` each name, without members that follow from them."""
    keys = [key for key in {**left, **right} if left.get(key) != right.get(key)]
    setup = {**left["setup"], **right["setup"]}
    changed = [key for key in setup if left["setup"].get(key) != right["setup"].get(key)]
    names = ["the number of shards" if key == "shard" else _section_changes(key, left, right) for key in changed]
    return [*names, *([] if changed else [key for key in keys if key not in ("setup", "fingerprints", "options")])]


def _section_changes(section: str, left: Mapping[str, Any], right: Mapping[str, Any]) -> str:
    """Return the *section* with its options that differ between two shards; shards of older versions have none."""
    sides = [run.get("options", {}).get(section, {}) for run in (right, left)]
    before, after = ({**side.get("counting", {}), **side.get("others", {})} for side in sides)
    return section_changes(section, before, after)


def _doubled(shards: Sequence[ShardRecord]) -> Iterable[Problem]:
    by_number: dict[int, list[ShardRecord]] = {}
    for shard in shards:
        by_number.setdefault(shard.number, []).append(shard)
    for doubles in by_number.values():
        if len(doubles) > 1:
            places = ", ".join(f"run {double.run_id} in {double.place}" for double in doubles)
            yield Problem(f"shard {doubles[0].name} is there {len(doubles)} times: {places}; name one of these ledgers")


def _missing(shards: Sequence[ShardRecord], older: Sequence[ShardRecord], model: ShardRecord) -> Iterable[Problem]:
    of = model.started["shard"]["of"]
    absent = sorted({*range(1, of + 1)}.difference(shard.number for shard in shards))
    if not absent:
        return
    places = {shard.place for shard in shards}
    place = next(iter(places)) if len(places) == 1 and len(shards) > 1 else None
    names = ", ".join(f"{number}/{of}" for number in absent)
    nouns = ("shard", "is", "it", "ledger") if len(absent) == 1 else ("shards", "are", "them", "ledgers")
    noun, verb, pronoun, ledgers = nouns
    commands = "; ".join(_shard_command(model, number, place or f"shard-{number}.db") for number in absent[:MAX_NAMED])
    rest = f"; {len(absent) - MAX_NAMED:,} more in the same way" if len(absent) > MAX_NAMED else ""
    yield Problem(
        f"{noun} {names} {verb} missing: no ledger has a run that fits; judge {pronoun}, and merge the {ledgers}, too: {commands}{rest}"
    )
    for record in older:
        if record.number in absent and record.started["shard"]["of"] == of:
            yield _foreign(record, model)


def _shard_command(model: ShardRecord, number: int, place: str) -> str:
    """Return the command that judges the shard with the *number* like *model*, in the ledger at *place*."""
    started = model.started
    options = {
        "--set": started["shard"].get("set"),
        "--only": started["shard"].get("only"),
        "--filter": started.get("filter"),
        "--limit": () if started["limit"] is None else (str(started["limit"]),),
    }
    words = [word for option, values in options.items() for value in values or () for word in (option, value)]
    part = f"{number}/{started['shard']['of']}"
    return shlex.join(["dicast", "run", started["shard"]["file"], "--shard", part, "--ledger", place, *words])


def _running(shards: Sequence[ShardRecord]) -> Iterable[Problem]:
    for shard in shards:
        if is_running(shard):
            yield Problem(f"{shard.run_name} is still running; wait for its end", file=shard.place)


def is_running(shard: ShardRecord) -> bool:
    """Return True if a process may still carry out the run of *shard*."""
    if shard.is_complete or not implements(shard.ledger, Leasing) or shard.ledger.lease_of(shard.run_id) is None:
        return False
    return live_run_check(shard.ledger)(shard.run_id)


def _unequal(shards: Sequence[ShardRecord]) -> Iterable[Problem]:
    """Yield the problem of complete shards that have not read the same number of subjects."""
    reads = {str(shard): shard.document["shard"]["read"] for shard in shards if shard.is_complete}
    if len({*reads.values()}) > 1:
        listed = ", ".join(f"{name}: {read:,} subjects" for name, read in reads.items())
        yield Problem(
            f"the source gave different subjects to the shards: {listed}; its order must not change between runs"
        )
