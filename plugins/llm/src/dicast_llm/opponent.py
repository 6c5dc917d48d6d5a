"""What an output is compared with: the subject's reference, or what an earlier run had."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import attrs
import orjson

from dicast import ConfigError, Entry, Failure, Query, RunContext, Subject

Read = Callable[[Query], Iterator[Entry]]


def text_of(value: object) -> str:
    """*value* as text: a string as it is, any other JSON value as compact JSON."""
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def reference(subject: Subject) -> str | Failure:
    """The subject's reference."""
    if subject.reference is None:
        return Failure("missing_input", f"{subject.kind} {subject.id} has no reference to be compared with")
    return text_of(subject.reference)


@attrs.frozen
class EarlierRun:
    """The outputs of the run *run_id*, read from the ledger one by one; *places* says where each subject's stands."""

    run_id: str
    read: Read
    places: Mapping[tuple[str, str], int]

    @classmethod
    def find(cls, wanted: str, run: RunContext) -> EarlierRun:
        """The run *wanted*, or for ``last`` the newest one that began before *run*.

        :raises ConfigError: when there is none.
        """
        read = run.read
        run_id = _newest(read, run.run_id) if wanted == "last" else wanted
        query = Query(run_id=run_id, types=("subject.read",))
        events = () if run_id is None else ((entry.seq, entry.event) for entry in read(query))
        places = {(str(event.subject_kind), str(event.subject_id)): seq for seq, event in events}
        if run_id is None or not places:
            raise ConfigError(f"opponent {wanted!r}: the ledger has no such run with subjects in it")
        return cls(run_id, read, places)

    def output(self, subject: Subject) -> str | Failure:
        """What the run had as the output of *subject*."""
        place = self.places.get((subject.kind, subject.id))
        who = f"{subject.kind} {subject.id}"
        if place is None:
            return Failure("missing_input", f"{who} was not read in run {self.run_id}")
        content = next(
            (entry.event.payload.get("content") for entry in self.read(Query(after=place - 1, limit=1))), None
        )
        if not isinstance(content, Mapping) or content.get("output") is None:
            return Failure("missing_input", f"the ledger has no output of {who} in run {self.run_id}")
        if content.get("input") != subject.input:
            return Failure("missing_input", f"{who} had another input in run {self.run_id}")
        return text_of(content["output"])


def _newest(read: Read, before: str) -> str | None:
    """The run that began last before the one called *before*: ids of runs grow with time."""
    found = (entry.event.run_id for entry in read(Query(types=("run.started",), newest_first=True)))
    return next((run_id for run_id in found if run_id < before), None)
