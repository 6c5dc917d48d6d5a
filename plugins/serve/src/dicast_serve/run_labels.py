"""Labels of people on the outputs of one run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from dicast import Event, Ledger
from dicast.reading import JudgedOutputs, decides, given_labels
from dicast.toolkit.gold import GoldLabel

from .tables import Key, Table

GivenLabel = tuple[Event, GoldLabel]
"""A label with its event."""

NOBODY = "nobody named"
"""Name of labelers in labels without one."""

DIGESTS = "digests"
"""Key of the digests of outputs among the results that a table keeps."""


@attrs.frozen
class RunLabels:
    """The labels of a run's outputs, by subject, the oldest first. A label that names another output of its subject is not among them."""

    by_subject: Mapping[Key, Sequence[GivenLabel]]

    @classmethod
    def of(cls, ledger: Ledger, table: Table) -> RunLabels:
        """Read the labels of the run of *table*."""
        kinds = list(dict.fromkeys(table.column("kinds")))
        keyed = [
            ((kind, label.subject_id), event, label)
            for event, label in given_labels(ledger)
            for kind in ([label.kind] if label.kind else kinds)
            if (kind, label.subject_id) in table.numbers
        ]
        digests = _digests(ledger, table, {key for key, _, _ in keyed})
        by_subject: dict[Key, list[GivenLabel]] = {}
        for key, event, label in keyed:
            if None in (label.output_digest, digests[key]) or label.output_digest == digests[key]:
                by_subject.setdefault(key, []).append((event, label))
        return cls(by_subject)

    def labeled_by(self, person: str | None) -> set[Key]:
        """Return the subjects that *person* has labeled; decisions between labels do not count."""
        return {
            key
            for key, entries in self.by_subject.items()
            if any(label.labeller == person and not decides(label) for _, label in entries)
        }

    def labeled(self) -> set[Key]:
        """Return the subjects that anybody has labeled."""
        return {key for key, entries in self.by_subject.items() if any(not decides(label) for _, label in entries)}

    def decided(self) -> set[Key]:
        """Return the subjects with a decision between different labels."""
        return {key for key, entries in self.by_subject.items() if any(decides(label) for _, label in entries)}

    def newest(self, person: str | None) -> tuple[Key, GivenLabel] | None:
        """Return the newest label or decision of *person*, with its subject."""
        entries = [
            (key, entry) for key, several in self.by_subject.items() for entry in several if entry[1].labeller == person
        ]
        return max(entries, key=lambda item: (item[1][0].time, item[1][0].run_id), default=None)


def _digests(ledger: Ledger, table: Table, keys: set[Key]) -> dict[Key, str | None]:
    """Return the digests of the outputs of *keys*, at least. They are kept with the table, which is read again if its run grows."""
    digests: dict[Key, str | None] = table.results.setdefault(DIGESTS, {})
    if missing := keys - digests.keys():
        run_id = table.document["run_id"]
        outputs = JudgedOutputs(ledger, {id for _, id in missing}, run_id)
        for key in missing:
            output = outputs.of(run_id, *key)
            digests[key] = None if output is None else output.digest
    return digests
