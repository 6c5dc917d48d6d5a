"""Identity of a judge in a card: digest, fingerprint and models."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Any

import orjson

from dicast import ALL_METRICS

Card = Mapping[str, Any]


def card_digest(card: Card) -> str:
    """Return the SHA-256 of *card* as canonical JSON, without its own ``digest``."""
    content = {key: value for key, value in card.items() if key != "digest"}
    return sha256(orjson.dumps(content, option=orjson.OPT_SORT_KEYS)).hexdigest()


def label_fingerprint(fingerprints: Mapping[str, str], label: str) -> str | None:
    """Return the fingerprint of the judge, the metric or all metrics called *label*; None if there is no such label.

    :param fingerprints: the fingerprints of a run or a pipeline.
    """
    if label != ALL_METRICS:
        return fingerprints.get(f"judges[{label}]") or fingerprints.get(f"metrics[{label}]")
    parts = [f"{key}={value}" for key, value in sorted(fingerprints.items()) if key.startswith("metrics[")]
    return sha256("\n".join([fingerprints.get("scoring", ""), *parts]).encode()).hexdigest() if parts else None


def models_of(models: Mapping[str, Iterable[str]], label: str, fingerprints: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the models that answered *label* or a judge inside it, by the asking label.

    :param models: the names of the models that answered, by the asking label.
    """
    metrics = [key[len("metrics[") : -1] for key in fingerprints if key.startswith("metrics[")]
    labels = metrics if label == ALL_METRICS else [label]
    return {
        asking: sorted(names)
        for asking, names in sorted(models.items())
        if any(asking == name or asking.startswith((f"{name}.", f"{name}[")) for name in labels)
    }
