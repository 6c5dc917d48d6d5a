"""Whether a judge card, which ``dicast doctor`` writes, lets a judge's scores decide a gate."""

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
    """The SHA-256 of *card* as canonical JSON, without its own ``digest``."""
    told = {key: value for key, value in card.items() if key != "digest"}
    return sha256(orjson.dumps(told, option=orjson.OPT_SORT_KEYS)).hexdigest()


def label_fingerprint(fingerprints: Mapping[str, str], label: str) -> str | None:
    """What tells the judge, the metric or all metrics called *label* from others, by the *fingerprints* of a run or a pipeline.

    None where there is no such label.
    """
    if label != METRICS:
        return fingerprints.get(f"judges[{label}]") or fingerprints.get(f"metrics[{label}]")
    parts = [f"{key}={value}" for key, value in sorted(fingerprints.items()) if key.startswith("metrics[")]
    return sha256("\n".join([fingerprints.get("scoring", ""), *parts]).encode()).hexdigest() if parts else None


def models_of(models: Mapping[str, Iterable[str]], label: str, fingerprints: Mapping[str, str]) -> dict[str, list[str]]:
    """Those of *models*, the names of the models that answered by who asked them, that answered *label* or a judge inside it."""
    metrics = [key[len("metrics[") : -1] for key in fingerprints if key.startswith("metrics[")]
    whose = metrics if label == METRICS else [label]
    return {
        asked: sorted(names)
        for asked, names in sorted(models.items())
        if any(asked == one or asked.startswith((f"{one}.", f"{one}[")) for one in whose)
    }


def why_not(
    clause: Clause, label: str, fingerprints: Mapping[str, str], models: Mapping[str, Iterable[str]]
) -> str | None:
    """Why the card that *clause* requires does not vouch for the scores of *label*; None where it does."""
    path = clause.require_card
    assert path is not None  # the caller has looked
    found = _read(path)
    if isinstance(found, str):
        return found
    judges = [judge for judge in found["judges"] if judge.get("label") == label]
    if not judges:
        known = ", ".join(str(judge.get("label")) for judge in found["judges"])
        return f"the card {path} is about {known or 'nobody'}, not {label}"
    (judge, *_) = judges
    if judge.get("fingerprint") != label_fingerprint(fingerprints, label):
        return f"the card {path} is of another {label}: its options, prompt, rubric or version have changed since; run dicast doctor again"
    asked, now = judge.get("models") or {}, models_of(models, label, fingerprints)
    for who, names in now.items():
        if others := [name for name in names if name not in asked.get(who, [])]:
            known = ", ".join(asked.get(who, [])) or "no model"
            return f"the card {path} is of {known}, and {', '.join(others)} answered {who}; run dicast doctor again"
    return _bars(clause, path, judge)


def _read(path: Path) -> Card | str:
    """The card at *path*, or what is wrong with it."""
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
        return f"the card {path} was edited after dicast doctor wrote it: its digest does not fit"
    found: Card = card
    return found


def _bars(clause: Clause, path: Path, judge: Card) -> str | None:
    """Why *judge* does not reach every bar, with the lines of *clause* in place of its own."""
    own: Mapping[str, float] = {name: line for name in CARD_BARS if (line := getattr(clause, name)) is not None}
    if not own and judge.get("can_gate") is True:
        return None
    missed = [why for bar in _listed(judge.get("bars")) if (why := _missed(bar, own))]
    return f"by the card {path} {judge['label']} cannot gate: {'; '.join(missed)}" if missed else None


def _missed(bar: Card, own: Mapping[str, float]) -> str | None:
    name, value = str(bar.get("rule")), bar.get("value")
    line = own.get(name, bar.get("line"))
    if not isinstance(value, int | float) or not isinstance(line, int | float):
        return (
            None if bar.get("passed") is True and name not in own else str(bar.get("reason") or f"{name} is not known")
        )
    if value >= line if bar.get("at") == "least" else value <= line:
        return None
    return f"{bar.get('what', name)} is {value:.4g}, and {name} is {line:g}"


def _listed(bars: object) -> Sequence[Card]:
    return [bar for bar in bars if isinstance(bar, dict)] if isinstance(bars, list) else []
