"""The rows of a page in the baseline: their values and their outputs."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Self

import attrs

from .contents import Contents, contents, texts
from .marking import Marking
from .subjects import STARTED, Key, Read, SubjectResults, event_of, read_subjects


@attrs.frozen
class OlderRows:
    """The results of subjects in the baseline, by *marking*, and their *contents*."""

    marking: Marking
    subjects: Mapping[Key, SubjectResults]
    contents: Contents

    @classmethod
    def of(cls, read: Read, run_id: str, keys: Collection[Key], *, content: bool) -> Self:
        """Read the subjects *keys* of the run *run_id*, without *content* only their results."""
        started = event_of(read, run_id, STARTED)
        subjects: dict[Key, SubjectResults] = {}
        for subject in read_subjects(read, run_id):
            if subject.key in subjects:
                subjects[subject.key].merge(subject)
            elif subject.key in keys:
                subjects[subject.key] = subject
        marking = Marking.of({} if started is None else started.payload)
        return cls(marking, subjects, contents(read, run_id, subjects if content else ()))

    def values(self, key: Key) -> dict[str, float]:
        """Return the value of each label."""
        subject = self.subjects.get(key)
        return {} if subject is None else self.marking.all_values(subject)

    def output(self, key: Key) -> str | None:
        """Return the output as text; None if the baseline has none."""
        subject = self.subjects.get(key)
        return None if subject is None else texts(self.contents.of(key), subject.record)[0][1]
