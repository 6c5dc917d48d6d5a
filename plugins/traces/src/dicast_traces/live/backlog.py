"""Subjects that are due and have no verdict yet."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Sequence

import attrs

from dicast import Event, Subject

Key = tuple[str, str]
"""A subject's kind and id."""

READ, STARTED, ENDS = "subject.read", "eval.started", ("eval.completed", "eval.failed")


@attrs.define(eq=False)
class Item:
    """A subject that became due at *since*, in seconds since the epoch, and its state: whether it was read, and the labels that have finished."""

    subject: Subject
    trigger: str
    since: float
    read: bool = False
    finished_labels: set[str] = attrs.field(factory=set)

    @property
    def key(self) -> Key:
        """The subject's kind and id."""
        return self.subject.kind, self.subject.id


class Backlog:
    """The state of each due subject up to its verdicts.

    A subject of this process is done when the run reports its verdicts. For an earlier process the rows of the ledger show it, which arrive in
    their order: all the verdicts on a subject are written in one transaction, so one of them is enough, and subjects of a kind without a judge
    are done after their reading. *judged* counts the subjects with a verdict.

    :param done: receives the session of each subject that is done.
    """

    def __init__(self, done: Callable[[str], None]) -> None:
        self._done = done
        self.judged = 0
        self._items: dict[int, Item] = {}
        self._by_key: dict[Key, deque[Item]] = defaultdict(deque)
        self._judged: set[str] = set()
        self._moved: dict[int, Item] = {}

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Item]:
        return iter(self._items.values())

    def add(self, subject: Subject, trigger: str, now: float) -> Item:
        """Add *subject*, which is due at *now* because of *trigger*, and return its item."""
        item = Item(subject, trigger, now)
        self._items[id(item)] = item
        self._by_key[item.key].append(item)
        return item

    def finish(self, item: Item, events: Sequence[Event]) -> None:
        """Remove *item*; *events* are its verdicts and failures, which the ledger has."""
        self.judged += bool(events)
        self._remove(item)

    def observe(self, event: Event) -> None:
        """Update the state of the subject that a row of an earlier process is about."""
        items = self._by_key.get((str(event.subject_kind), str(event.subject_id)))
        if items is None:
            return
        label = str(event.payload.get("judge"))
        match event.type:
            case "subject.read":
                item = next((item for item in items if not item.read), None)
                if item is not None:
                    item.read = True
            case "eval.started":
                item = next((item for item in reversed(items) if item.read), None)
                self._judged.add(str(event.subject_kind))
            case "eval.completed" | "eval.failed":
                item = next((item for item in items if label not in item.finished_labels), None)
                if item is not None:
                    item.finished_labels.add(label)
                self._judged.add(str(event.subject_kind))
            case _:  # spending events of a judgment name its subject too, and do not end it
                return
        if item is not None:
            self._moved[id(item)] = item

    def settle(self) -> None:
        """Remove the subjects that are done. Call it between transactions only."""
        moved, self._moved = self._moved, {}
        for item in moved.values():
            if item.finished_labels or (item.read and item.subject.kind not in self._judged):
                self.judged += bool(item.finished_labels)
                self._remove(item)

    def _remove(self, item: Item) -> None:
        del self._items[id(item)]
        items = self._by_key[item.key]
        items.remove(item)
        if not items:
            del self._by_key[item.key]
        self._done(str(item.subject.session_id))

    def lag(self, now: float) -> float:
        """Return the seconds that the oldest subject has been waiting; 0 without a subject."""
        oldest = next(iter(self._items.values()), None)
        return 0.0 if oldest is None else max(0.0, now - oldest.since)
