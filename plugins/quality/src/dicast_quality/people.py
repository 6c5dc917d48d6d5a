"""Labels of all people together: one label for each output, by a rule."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import attrs

from dicast import ConfigError, Ledger
from dicast.reading import Gold, decides, given_labels
from dicast.reading.gold import outputs_of_labels
from dicast.toolkit.gold import GoldLabel

PEOPLE = "people"
"""The name of the labels of all people together, in place of a file."""

RULE = "the label that decides between people, else the label of more than half of them; outputs without such a label are left out"

Key = tuple[str, str, str | None, str | None]
"""Kind, id, digest of the output, and run of a label."""


def is_people(source: Path | str) -> bool:
    """Return whether *source* names the labels of all people, and not a file."""
    return str(source) == PEOPLE and not Path(source).exists()


@attrs.frozen
class PooledLabels:
    """One label for each output that people have labeled, with the number of outputs by the way in which the label was chosen.

    *equal* outputs have equal labels of people, or a single label; for *majority* outputs more than half of the people agree; *adjudicated* outputs have a label
    that decides; *ties* have neither and no label. *labelers* are numbers of labels by name.
    """

    gold: Gold
    labelers: dict[str, int]
    equal: int
    majority: int
    adjudicated: int
    ties: int

    @classmethod
    def of(cls, labels: Sequence[GoldLabel]) -> PooledLabels:
        """Pool *labels*. Each labeler has at most one label for an output."""
        by_output: dict[Key, list[GoldLabel]] = {}
        labelers: dict[str, int] = {}
        copies: set[Key] = set()
        for label, keys in outputs_of_labels(labels):
            if not decides(label):
                name = label.labeller or "nobody named"
                labelers[name] = labelers.get(name, 0) + 1
            copies.update(keys[: len(keys) > 1])
            for key in keys:
                by_output.setdefault(key, []).append(label)
        chosen: dict[Key, GoldLabel] = {}
        counts = dict.fromkeys(("equal", "majority", "adjudicated", "ties"), 0)
        tied: set[tuple[str, str]] = set()
        for key, of_output in by_output.items():
            way, winner = _pooled(of_output)
            counts[way] += key not in copies
            if winner is None:
                tied.add(key[:2])
            else:
                chosen[key] = attrs.evolve(winner, output_digest=key[2], run=key[3])
        # A label without an output would replace the label of an output that is left out.
        chosen = {key: label for key, label in chosen.items() if key not in copies or key[:2] not in tied}
        return cls(Gold(chosen, source="the labels of people"), labelers, **counts)

    def document(self) -> dict[str, Any]:
        """Return the counts and the rule as JSON data."""
        names = ("equal", "majority", "adjudicated", "ties")
        return {"labellers": self.labelers, **{name: getattr(self, name) for name in names}, "rule": RULE}


def read_people(ledger: Ledger) -> PooledLabels:
    """Return the labels of all people in *ledger*.

    :raises ConfigError: if the ledger has no labels.
    """
    labels = [label for _, label in given_labels(ledger)]
    if not labels:
        raise ConfigError("the ledger has no labels; label subjects in the dashboard or by dicast label FILE")
    return PooledLabels.of(labels)


def people_lines(document: dict[str, Any]) -> Iterable[str]:
    """Yield the counts of pooled labels as lines."""
    people = ", ".join(f"{name} {count:,}" for name, count in document["labellers"].items())
    yield f"people: {RULE}"
    yield f"  labels: {people}"
    yield (
        f"  outputs: {document['equal']:,} with equal labels, {document['majority']:,} by majority, "
        f"{document['adjudicated']:,} decided, {document['ties']:,} left out"
    )


def _pooled(labels: Sequence[GoldLabel]) -> tuple[str, GoldLabel | None]:
    """Return the way in which the label of an output is chosen, and the label."""
    decisions = [label for label in labels if decides(label)]
    if decisions:
        return "adjudicated", decisions[-1]
    by_score: dict[float, list[GoldLabel]] = {}
    for label in labels:
        by_score.setdefault(label.score, []).append(label)
    largest = max(by_score.values(), key=len)
    if 2 * len(largest) <= len(labels):
        return "ties", None
    return "equal" if len(by_score) == 1 else "majority", largest[0]
