"""Judge cards of ``dicast doctor`` in a gate: decide if a card lets the scores of a judge count."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import orjson

from ...toolkit.files import MAX_DATA_BYTES, UnreadableFile, read_bytes
from ..plan.clauses import CARD_BARS, Clause
from ..plan.sections import METRICS

Card = Mapping[str, Any]


def card_digest(card: Card) -> str:
    """Return the SHA-256 of *card* as canonical JSON, without its own ``digest``."""
    content = {key: value for key, value in card.items() if key != "digest"}
    return sha256(orjson.dumps(content, option=orjson.OPT_SORT_KEYS)).hexdigest()


def label_fingerprint(fingerprints: Mapping[str, str], label: str) -> str | None:
    """Return the fingerprint of the judge, the metric or all metrics called *label*, from the *fingerprints* of a run or a pipeline.

    None if there is no such label.
    """
    if label != METRICS:
        return fingerprints.get(f"judges[{label}]") or fingerprints.get(f"metrics[{label}]")
    parts = [f"{key}={value}" for key, value in sorted(fingerprints.items()) if key.startswith("metrics[")]
    return sha256("\n".join([fingerprints.get("scoring", ""), *parts]).encode()).hexdigest() if parts else None


def models_of(models: Mapping[str, Iterable[str]], label: str, fingerprints: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the models that answered *label* or a judge inside it.

    *models* has the names of the models that answered, by the component that called them.
    """
    metrics = [key[len("metrics[") : -1] for key in fingerprints if key.startswith("metrics[")]
    labels = metrics if label == METRICS else [label]
    return {
        caller: sorted(names)
        for caller, names in sorted(models.items())
        if any(caller == label_ or caller.startswith((f"{label_}.", f"{label_}[")) for label_ in labels)
    }


def why_not(
    clause: Clause, label: str, fingerprints: Mapping[str, str], models: Mapping[str, Iterable[str]]
) -> str | None:
    """Return the reason why the card that *clause* requires does not permit the scores of *label*; None if it does."""
    path = clause.require_card
    assert path is not None  # checked by the caller
    card = _read(path)
    if isinstance(card, str):
        return card
    judges = [judge for judge in card["judges"] if judge.get("label") == label]
    if not judges:
        expected = ", ".join(str(judge.get("label")) for judge in card["judges"])
        return f"the card {path} is for {expected or 'no judge'}, not {label}"
    (judge, *_) = judges
    if judge.get("fingerprint") != label_fingerprint(fingerprints, label):
        return f"the card {path} is for another {label}: its options, prompt, rubric or version have changed; run dicast doctor again"
    card_models, current = judge.get("models") or {}, models_of(models, label, fingerprints)
    for caller, names in current.items():
        if unexpected := [name for name in names if name not in card_models.get(caller, [])]:
            expected = ", ".join(card_models.get(caller, [])) or "no model"
            return f"the card {path} is for {expected}, but {', '.join(unexpected)} answered {caller}; run dicast doctor again"
    return _bars(clause, path, judge)


def _read(path: Path) -> Card | str:
    """Return the card at *path*, or a message if it is invalid."""
    try:
        card: Any = orjson.loads(read_bytes(path, MAX_DATA_BYTES))
    except UnreadableFile as error:
        return f"the card {path} cannot be read: {error.strerror}"
    except OSError:
        return f"there is no card at {path}; dicast doctor FILE --gold GOLD --out {path} writes one"
    except orjson.JSONDecodeError as error:
        return f"the card {path} is not JSON: {error}"
    judges = card.get("judges") if isinstance(card, dict) else None
    if not isinstance(judges, list) or not all(isinstance(judge, dict) for judge in judges):
        return f"{path} is no judge card; dicast doctor FILE --gold GOLD --out {path} writes one"
    if card.get("digest") != card_digest(card):
        return f"the card {path} was edited after dicast doctor wrote it: its digest does not match"
    result: Card = card
    return result


def _bars(clause: Clause, path: Path, judge: Card) -> str | None:
    """Return the reason why *judge* misses a bar, with the lines of *clause* in place of the card's own; None if it reaches all."""
    lines: Mapping[str, float] = {name: line for name in CARD_BARS if (line := getattr(clause, name)) is not None}
    if not lines and judge.get("can_gate") is True:
        return None
    missed = [reason for bar in _listed(judge.get("bars")) if (reason := _missed(bar, lines))]
    return f"according to the card {path}, {judge['label']} cannot gate: {'; '.join(missed)}" if missed else None


def _missed(bar: Card, lines: Mapping[str, float]) -> str | None:
    name, value = str(bar.get("rule")), bar.get("value")
    line = lines.get(name, bar.get("line"))
    if not isinstance(value, int | float) or not isinstance(line, int | float):
        return (
            None if bar.get("passed") is True and name not in lines else str(bar.get("reason") or f"{name} is unknown")
        )
    if value >= line if bar.get("at") == "least" else value <= line:
        return None
    return f"{bar.get('what', name)} is {value:.4g}, and {name} is {line:g}"


def _listed(bars: object) -> Sequence[Card]:
    return [bar for bar in bars if isinstance(bar, dict)] if isinstance(bars, list) else []
