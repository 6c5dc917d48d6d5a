"""Reference calls: from the pipeline file, a separate file, or the row of a subject."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from dicast import DataError, Failure, Problem, Subject
from dicast.toolkit.input_file import InputCheck, InputFile
from dicast.toolkit.json_values import MISSING, lookup

from .calls import Call, parse_calls

_IDS = ("subject_id", "id")
_EXCLUDED = "; on_failure: exclude in the slot leaves such subjects to the other metrics"


@attrs.frozen
class References:
    """The reference calls of each subject.

    *for_all* is one list for all subjects. *by_id* has the lists of a file by the id of a subject or session. Without both, the
    reference of the subject is used, or the value in *column* of its row.
    """

    metric: str
    for_all: Sequence[Call] | None = None
    by_id: Mapping[str, Sequence[Call]] | None = None
    column: str | None = None

    @property
    def ids(self) -> Collection[str]:
        """The ids in the file of references; none without a file."""
        return () if self.by_id is None else self.by_id.keys()

    def of(self, subject: Subject) -> Sequence[Call] | Failure:
        """Return the reference calls of *subject*, or a Failure if they are missing or cannot be read."""
        if self.for_all is not None:
            return self.for_all
        if self.by_id is not None:
            for id_ in (subject.id, subject.session_id):
                if id_ is not None and id_ in self.by_id:
                    calls = self.by_id[id_]
                    return self._whole_session(subject) or calls if id_ != subject.id else calls
            return self._missing(subject, f"the file of references has no line with this id{_EXCLUDED}")
        value = self._of_row(subject)
        if value is MISSING or value is None:
            return self._missing(
                subject, f"no value in {'reference' if self.column is None else repr(self.column)}{_EXCLUDED}"
            )
        if isinstance(value, Mapping) and subject.id in value:  # an object with a list for each turn's id
            return self._parsed(value[subject.id], subject)
        of_session = subject.kind == "turn" and subject.reference is None
        return (self._whole_session(subject) if of_session else None) or self._parsed(value, subject)

    def _of_row(self, subject: Subject) -> Any:
        if self.column is not None:
            value = lookup(subject.context, self.column)
            return lookup(subject.columns, self.column) if value is MISSING else value
        return lookup(subject.context, "reference") if subject.reference is None else subject.reference

    def _whole_session(self, subject: Subject) -> Failure | None:
        """Return a Failure if *subject* is one of several turns of a session that has only one list of calls."""
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
        return Failure("missing_input", f"{self.metric} compares with reference calls; {subject.id!r}: {why}")


def read_references(path: Path) -> Mapping[str, Sequence[Call]]:
    """Return the calls of each id in a file of JSON lines ``{"id": ID, "calls": […]}``.

    :raises DataError: with every line that is not such an object.
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
    """Return *calls* of the pipeline file, parsed.

    :raises DataError: names the value that is not a call.
    """
    try:
        return parse_calls(list(calls))
    except ValueError as error:
        raise DataError(Problem(str(error), path=option)) from error
