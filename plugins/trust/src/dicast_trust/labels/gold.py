"""Labels of subjects, as :mod:`dicast.reading` reads them, and names shared by this plugin's commands."""

from __future__ import annotations

from dicast.reading import (
    Gold,
    LabeledOutputs,
    decides,
    from_event,
    given_labels,
    is_in_ledger,
    random_labels,
    read_gold,
)
from dicast.reading.gold import ADJUDICATED, DRAWN, LABEL_GIVEN, RANDOMLY, WEIGHT, Subject, outputs_of_labels

__all__ = [
    "ADJUDICATED",
    "DRAWN",
    "LABEL_GIVEN",
    "RANDOMLY",
    "WEIGHT",
    "Gold",
    "LabeledOutputs",
    "Subject",
    "decides",
    "from_event",
    "given_labels",
    "is_in_ledger",
    "outputs_of_labels",
    "random_labels",
    "read_gold",
]
