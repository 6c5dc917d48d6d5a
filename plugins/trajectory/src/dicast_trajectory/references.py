"""Reference calls: of the pipeline file, of a file of their own, or of the row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from dicast import DataError, Failure, Problem, Subject
from dicast.toolkit.input_file import InputCheck, InputFile
from dicast.toolkit.json_values import MISSING, lookup

from .calls import Call, parse_calls

_IDS = ("subject_id", "id")


@attrs.frozen
class References:
    """The reference calls of each subject.

    *everywhere* are those of all subjects, *by_id* those of a file by the id of a subject or its session. Without both, a subject's own
    reference counts, or the value in *column* of its row.
    """

    metric: str
    everywhere: Sequence[Call] | None = None
    by_id: Mapping[str, Sequence[Call]] | None = None
    column: str | None = None

    def of(self, subject: Subject) -> Sequence[Call] | Failure:
        """Return the reference calls of *subject*, or the failure that it has none that can be read."""
        if self.everywhere is not None:
            return self.everywhere
        if self.by_id is not None:
            for id_ in (subject.id, subject.session_id):
                if id_ is not None and id_ in self.by_id:
                    calls = self.by_id[id_]
                    return self._whole_session(subject) or calls if id_ != subject.id else calls
            return self._missing(subject, "the file of references has no line with its id")
        value = self._of_row(subject)
        if value is MISSING or value is None:
            return self._missing(subject, f"it has none in {'reference' if self.column is None else repr(self.column)}")
        if isinstance(value, Mapping) and subject.id in value:  # by the ids of the turns
            return self._parsed(value[subject.id], subject)
        of_session = subject.kind == "turn" and subject.reference is None
        return (self._whole_session(subject) if of_session else None) or self._parsed(value, subject)

    def _of_row(self, subject: Subject) -> Any:
        if self.column is not None:
            value = lookup(subject.context, self.column)
            return lookup(subject.columns, self.column) if value is MISSING else value
        return lookup(subject.context, "reference") if subject.reference is None else subject.reference

    def _whole_session(self, subject: Subject) -> Failure | None:
        """Return the failure of a turn of a session with several turns and one list of calls."""
        turns = {event.turn_id for event in subject.trail.events} - {None, subject.id}
        if subject.kind != "turn" or not turns:
            return None
        advice = f"write on: [session], or the calls of each turn by its id ({subject.id!r})"
        return self._missing(subject, f"its session has {len(turns) + 1} turns and one list of calls; {advice}")

    def _parsed(self, value: object, subject: Subject) -> Sequence[Call] | Failure:
        try:
            return parse_calls(value)
        except ValueError as error:
            return self._missing(subject, f"its reference cannot be read: {error}")

    def _missing(self, subject: Subject, why: str) -> Failure:
        return Failure("missing_input", f"{self.metric} compares with reference calls, and of {subject.id!r} {why}")


def read_references(path: Path) -> Mapping[str, Sequence[Call]]:
    """Return the calls of each id in a file of JSON lines ``{"id": ID, "calls": […]}``.

    :raises DataError: with every line that is no such object.
    """
    by_id: dict[str, Sequence[Call]] = {}
    with InputFile.opened(path) as file, InputCheck(file) as check:
        for number, record in file.objects(check=check, unique=True):
            try:
                id_, calls = _entry(record)
            except ValueError as error:
                file.fault(str(error), number, check)
                continue
            check.add_id(id_, number)
            by_id[id_] = calls
        check.finish(len(by_id))
    return by_id


def _entry(record: Mapping[str, Any]) -> tuple[str, Sequence[Call]]:
    id_ = next((record[key] for key in _IDS if key in record), None)
    if isinstance(id_, bool) or not isinstance(id_, str | int) or id_ == "":
        raise ValueError('the line has no \'id\' of a subject or session; write {"id": ID, "calls": […]}')
    return str(id_), parse_calls(record.get("reference", record))


def check_inline(calls: Sequence[object], option: str) -> Sequence[Call]:
    """Return the calls in the pipeline file.

    :raises DataError: naming the value that is no call.
    """
    try:
        return parse_calls(list(calls))
    except ValueError as error:
        raise DataError(Problem(str(error), path=option)) from error
