"""Which subjects are to be labelled, and what of them is shown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any

import attrs
import orjson

from dicast import ConfigError, Event, Ledger, Query, Subject

from .outcomes import Outcome
from .verdicts import Stage

STRATA = 5
"""So many parts of equal size, by the first stage's confidence, a stratified draw takes from in turn."""

_HALF = 0.5
_SHOWN = 4_000
"""How many characters of a text a labeller is shown at most."""

_TALK = ("turn.completed", "tool.called", "tool.completed", "tool.failed")


def read_subjects(ledger: Ledger, runs: Sequence[str] = ()) -> dict[tuple[str, str], Subject]:
    """The subjects that *ledger* has read in *runs*, or in any, with their content, as they were read last.

    :raises ConfigError: when the ledger keeps digests in place of contents.
    """
    found: dict[tuple[str, str], Subject] = {}
    known: dict[str, Mapping[str, Any]] = {}
    digests = 0
    for entry in ledger.read(Query(types=("subject.read",))):
        event, digest = entry.event, str(entry.event.payload["digest"])
        content = event.payload.get("content")
        if isinstance(content, Mapping):
            known[digest] = content
        if (runs and event.run_id not in runs) or (not runs and "from_run" in event.payload):
            continue  # of what was judged again, which dicast doctor may have put a canary into, the first reading counts
        if digest not in known:
            digests += 1
            continue
        kind, id = str(event.subject_kind), str(event.subject_id)
        found[kind, id] = Subject(kind, id, **_parts(known[digest]), session_id=event.session_id)
    if not found and digests:
        raise ConfigError(
            "the ledger keeps digests in place of what was judged (content: digest), so that nobody can be shown it; label a file of your own, and "
            "import it with dicast labels import FILE"
        )
    return found


def _parts(content: Mapping[str, Any]) -> dict[str, Any]:
    return {name: content.get(name) for name in ("input", "output", "reference")} | {
        "context": content.get("context") or {}
    }


def in_random_order(keys: Sequence[tuple[str, str]], seed: int) -> list[tuple[str, str]]:
    """*keys* by a keyed hash: each seed has one order, whatever else there is."""
    return sorted(keys, key=lambda key: sha256(f"{seed}\n{key[0]}\n{key[1]}".encode()).digest())


def stratified(keys: Sequence[tuple[str, str]], stage: Stage, seed: int) -> list[tuple[str, str]]:
    """*keys* in a random order that takes from five parts by the stage's confidence in turn."""
    sure = sorted((key for key in keys if key in stage.outcomes), key=lambda key: stage.outcomes[key].confidence)
    size = max(1, -(-len(sure) // STRATA))
    parts = [in_random_order(sure[at : at + size], seed) for at in range(0, len(sure), size)]
    return [part[at] for at in range(size) for part in parts if at < len(part)]


def audited(ledger: Ledger) -> set[tuple[str, str]]:
    """The subjects whose kept verdicts an audit by people has drawn."""
    found = set()
    for entry in ledger.read(Query(types=("eval.completed",))):
        payload: Mapping[str, Any] = entry.event.payload
        audit = (payload.get("signals") or {}).get("audit")
        if isinstance(audit, Mapping) and audit.get("against") == "gold":
            found.add((str(payload["subject_kind"]), str(payload["subject_id"])))
    return found


def disagreements(
    keys: Sequence[tuple[str, str]], stages: Sequence[Stage], pass_at: float = _HALF
) -> list[tuple[str, str]]:
    """*keys* on which two stages, or a judge and its confidence, are most at odds: first those on different sides, then the least sure."""

    def rank(key: tuple[str, str]) -> tuple[bool, float]:
        outcomes = [one for stage in stages if (one := stage.outcomes.get(key)) is not None and one.score is not None]
        sides = {_passes(one, pass_at) for one in outcomes}
        return len(sides) < 2, min((one.confidence for one in outcomes), default=0.0)

    return sorted(keys, key=rank)


def _passes(one: Outcome, pass_at: float) -> bool:
    return one.score is not None and one.score >= pass_at


@attrs.frozen
class Evidence:
    """What a labeller is shown of a subject: what was judged, and nothing that a judge has said of it."""

    subject: Subject
    talk: Sequence[Event] = ()

    def lines(self) -> Iterator[str]:
        """The evidence as text; whatever is printed is escaped by the terminal's writer."""
        subject = self.subject
        yield f"{subject.kind} {subject.id}"
        for name in ("input", "output", "reference"):
            if (value := getattr(subject, name)) is not None:
                yield from ("", f"{name.upper()}", _shown(value))
        if subject.kind == "row" and subject.context:
            yield from ("", "CONTEXT", *(f"{key}: {_shown(value)}" for key, value in subject.context.items()))
        if self.talk:
            yield from ("", "WHAT HAPPENED", *(_told(event) for event in self.talk))


def evidence(ledger: Ledger, subject: Subject) -> Evidence:
    """What there is to show of *subject*: of a turn or a session also its messages and calls of tools."""
    if subject.kind == "row" or subject.session_id is None:
        return Evidence(subject)
    talk = [entry.event for entry in ledger.read(Query(types=_TALK, session_id=subject.session_id))]
    if subject.kind == "turn":
        talk = [event for event in talk if event.turn_id == subject.id and event.type != "turn.completed"]
    known = {(event.type, event.time, orjson.dumps(event.payload, default=dict)): event for event in talk}
    return Evidence(subject, tuple(known.values()))  # several runs may have told of it


def _told(event: Event) -> str:
    payload: Mapping[str, Any] = event.payload
    if event.type == "turn.completed":
        said = payload.get("signals_extra") or {}
        reply = said.get("final_response_text") or said.get("assistant_response_text")
        return f"user: {_shown(said.get('user_prompt_text'))}\nassistant: {_shown(reply)}"
    name = payload.get("tool_name")
    if event.type == "tool.called":
        return f"called {name} {_shown(payload.get('input'))}"
    if event.type == "tool.failed":
        return f"{name} failed: {_shown(payload.get('error'))}"
    return f"{name} returned {_shown(payload.get('output'))}"


def _shown(value: object) -> str:
    text = value if isinstance(value, str) else orjson.dumps(value, default=dict).decode()
    if len(text) <= _SHOWN:
        return text
    return f"{text[: _SHOWN // 2]}\n[… {len(text) - _SHOWN:,} characters left out …]\n{text[-_SHOWN // 2 :]}"
