"""Options of a run as its start records them, so that a comparison names the options that differ and their values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

import orjson

from ..plan.sections import Pipeline, Slot
from ..records.option_changes import section_changes, text_digest

_MASK = "***"
"""A secret in the options of a slot. It is left out, because a secret is no difference."""

_LONGEST = 80
"""The most characters of a value that is recorded as it is."""

_MEMBERS = ("version", "tier", "weight", "on", "range", "on_failure")
"""Members of a slot that can change a score."""

_PACE = ("timeout", "retries", "requests_per_minute", "tokens_per_minute")
"""Options that a resumed run may change if they change no score. A price may not change: the cost of a run has one price."""


def option_texts(pipeline: Pipeline, *, keeps_content: bool) -> dict[str, dict[str, dict[str, str]]]:
    """Return the options of the task, the extractors, the metrics and the judges by section and path: ``counting`` ones can change a score.

    Each value is its JSON. A long text, or any text if the ledger keeps no content, is its digest, and so is the value of an environment
    variable, except for the host of an address: it may be a secret.
    """
    lists = {"metrics": pipeline.metrics, "judges": pipeline.judges, "extractors": pipeline.extractors}
    slots = {f"{section}[{slot.label}]": slot for section, listed in lists.items() for slot in listed}
    slots |= {"task": pipeline.task} if pipeline.task is not None else {}
    named = pipeline.named if keeps_content else None
    return {section: _slot_texts(slot, named) for section, slot in slots.items()}


def name_changes(
    pipeline: Pipeline, keeps_content: bool, section: str, recorded: Mapping[str, Mapping[str, Mapping[str, str]]]
) -> str:
    """Return the options of *section* in which *pipeline* differs from the *recorded* options of a run, with both values; empty if unknown."""
    options = option_texts(pipeline, keeps_content=keeps_content)
    return section_changes("", _flat(recorded.get(section)), _flat(options.get(section)))


def changes_pace_alone(pipeline: Pipeline, keeps_content: bool, section: str, started: Mapping[str, Any]) -> bool:
    """Return whether *section* of *pipeline* differs in time limits, retries and rates alone from the run with the payload *started*."""
    recorded = started.get("options", {}).get(section)
    if recorded is None or started["fingerprints"].get(section) != pipeline.fingerprints.get(section):
        return False
    before, after = _flat(recorded), _flat(option_texts(pipeline, keeps_content=keeps_content).get(section))
    changed = [path for path in {*before, *after} if before.get(path) != after.get(path)]
    return bool(changed) and all(path.rpartition(".")[2] in _PACE for path in changed)


def _flat(kinds: Mapping[str, Mapping[str, str]] | None) -> dict[str, str]:
    return {path: text for texts in (kinds or {}).values() for path, text in texts.items()}


def _slot_texts(slot: Slot, named: Mapping[str, str] | None) -> dict[str, dict[str, str]]:
    members = {name: getattr(slot, name) for name in _MEMBERS}
    counting = {path: _text(value, named) for path, value in _leaves({**members, **slot.counting})}
    every = {path: _text(value, named) for path, value in _leaves(slot.options)}
    others = {path: text for path, text in every.items() if path not in counting}
    return {"counting": counting, **({"others": others} if others else {})}


def _leaves(value: object, path: str = "") -> Iterator[tuple[str, object]]:
    """Yield the path and the value of each leaf; a list or a mapping that is empty is a leaf."""
    inside: Iterator[tuple[object, object]] | None = None
    if isinstance(value, Mapping) and value:
        inside = iter(value.items())
    elif isinstance(value, list | tuple) and value:
        inside = iter(enumerate(value))
    if inside is None:
        if value != _MASK:
            yield path, value
        return
    for key, item in inside:
        step = f"[{key}]" if isinstance(value, list | tuple) else f".{key}"
        yield from _leaves(item, f"{path}{step}".removeprefix("."))


def _text(value: object, named: Mapping[str, str] | None) -> str:
    text = orjson.dumps(value, default=str).decode()
    if not isinstance(value, str):
        return text
    digest = text_digest(value)
    if named is None or len(value) > _LONGEST or "\n" in value:
        return digest
    if value in named:
        address = urlsplit(value) if value.startswith(("http://", "https://")) and "@" not in value else None
        host = "" if address is None else f" at {address.scheme}://{address.netloc}"
        return f"{named[value]}{host} ({digest})"
    return text
