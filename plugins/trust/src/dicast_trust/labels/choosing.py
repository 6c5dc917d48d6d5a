"""Choice of subjects to label, and the evidence to show of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs
import orjson

from dicast import ConfigError, Ledger, PluginError, Query, Subject, run_kind
from dicast.reading import output_digest, reader
from dicast.toolkit.media import without_content
from dicast.toolkit.random_order import in_random_order

from ..verdicts.outcomes import Outcome
from ..verdicts.stages import Stage
from .agents import AgentEvidence, agent_evidence

STRATA = 5
"""Number of parts of equal size, by the first stage's confidence, in a stratified draw."""

_HALF = 0.5

Key = tuple[str, str]
"""A subject's kind and id."""


@attrs.frozen
class Judged:
    """Subject as the run *run_id* judged it: its output is the judged output, also if a task made it."""

    subject: Subject
    run_id: str

    @property
    def output_digest(self) -> str:
        """Digest that a label of this output has."""
        return output_digest(self.subject.output)


def read_subjects(
    ledger: Ledger, runs: Sequence[str] = (), judged_in: Mapping[Key, str] | None = None
) -> dict[Key, Judged]:
    """Return the subjects that *ledger* has read, with the judged outputs.

    :param runs: the runs to read; by default all runs except tools' runs, such as the runs of ``dicast label`` and ``dicast doctor``.
    :param judged_in: the run that counts for a subject; by default the last run that read it.
    :raises ConfigError: if the ledger keeps digests in place of contents.
    """
    tools = _tool_runs(ledger)
    subjects: dict[Key, Judged] = {}
    contents: dict[str, Mapping[str, Any]] = {}
    responses: dict[tuple[str, str, str], object] = {}
    digests = 0
    for entry in ledger.read(Query(types=("subject.read", "record.completed"))):
        event, payload = entry.event, entry.event.payload
        key = str(event.subject_kind), str(event.subject_id)
        if event.type == "record.completed":
            responses[event.run_id, *key] = payload.get("response")
            continue
        digest, content = str(payload["digest"]), payload.get("content")
        if isinstance(content, Mapping):
            contents[digest] = content
        if event.run_id not in runs if runs else event.run_id in tools:
            continue
        if digest not in contents:
            digests += 1
            continue
        run_of_subject = None if judged_in is None else judged_in.get(key)
        if run_of_subject in (None, event.run_id) or key not in subjects:
            subjects[key] = Judged(Subject(*key, **_parts(contents[digest]), session_id=event.session_id), event.run_id)
    if not subjects and digests:
        raise ConfigError(
            "the ledger keeps digests in place of contents (content: digest), so dicast label cannot show them; label the subjects in a file, and "
            "import it with dicast labels import FILE"
        )
    with_task = _task_runs(ledger)
    return {key: _with_output(subject, responses, with_task) for key, subject in subjects.items()}


def _with_output(judged: Judged, responses: Mapping[tuple[str, str, str], object], with_task: set[str]) -> Judged:
    """Return *judged* with the output that the task of its run made."""
    if judged.run_id not in with_task:
        return judged
    response = responses.get((judged.run_id, judged.subject.kind, judged.subject.id))
    output = response.get("content") if isinstance(response, Mapping) else None
    return attrs.evolve(judged, subject=attrs.evolve(judged.subject, output=output))


def _task_runs(ledger: Ledger) -> set[str]:
    started = ledger.read(Query(types=("run.started",)))
    return {entry.event.run_id for entry in started if entry.event.payload.get("task") is not None}


def _tool_runs(ledger: Ledger) -> set[str]:
    """Return the runs of tools: of people's labels, and of ``dicast doctor``, which may add canaries to the judged outputs."""
    started = ledger.read(Query(types=("run.started",)))
    return {entry.event.run_id for entry in started if run_kind(entry.event.payload) == "tool"}


def _parts(content: Mapping[str, Any]) -> dict[str, Any]:
    return {name: content.get(name) for name in ("input", "output", "reference")} | {
        "context": content.get("context") or {}
    }


def stratified(keys: Sequence[tuple[str, str]], stage: Stage, seed: int) -> list[tuple[str, str]]:
    """Return *keys* in a random order that takes from five parts, by the stage's confidence, in turn."""
    by_confidence = sorted(
        (key for key in keys if key in stage.outcomes), key=lambda key: stage.outcomes[key].confidence
    )
    size = max(1, -(-len(by_confidence) // STRATA))
    parts = [in_random_order(by_confidence[at : at + size], seed) for at in range(0, len(by_confidence), size)]
    return [part[at] for at in range(size) for part in parts if at < len(part)]


def audited(ledger: Ledger) -> set[tuple[str, str]]:
    """Return the subjects whose kept verdicts an audit by people has drawn."""
    subjects = set()
    for entry in ledger.read(Query(types=("eval.completed",))):
        payload: Mapping[str, Any] = entry.event.payload
        audit = (payload.get("signals") or {}).get("audit")
        if isinstance(audit, Mapping) and audit.get("against") == "gold":
            subjects.add((str(payload["subject_kind"]), str(payload["subject_id"])))
    return subjects


def disagreements(
    keys: Sequence[tuple[str, str]], stages: Sequence[Stage], pass_at: float = _HALF
) -> list[tuple[str, str]]:
    """Return *keys* by how much the stages disagree: first keys with scores on different sides of *pass_at*, then the least confident verdicts."""

    def rank(key: tuple[str, str]) -> tuple[bool, float]:
        outcomes = [
            outcome
            for stage in stages
            if (outcome := stage.outcomes.get(key)) is not None and outcome.score is not None
        ]
        sides = {_passes(outcome, pass_at) for outcome in outcomes}
        return len(sides) < 2, min((outcome.confidence for outcome in outcomes), default=0.0)

    return sorted(keys, key=rank)


def _passes(outcome: Outcome, pass_at: float) -> bool:
    return outcome.score is not None and outcome.score >= pass_at


@attrs.frozen
class Evidence:
    """Evidence of a subject that a judge sees, for a labeler, without any verdict of a judge.

    *agents* is the evidence of the sub-agents that it started, *thoughts* the number of its reasoning texts, which are not shown. *is_pair* is
    True if the judge compares two outputs.
    """

    judged: Judged
    sections: Sequence[Mapping[str, Any]]
    chars: int = 0
    total_chars: int = 0
    reason: str | None = None
    agents: Sequence[AgentEvidence] = ()
    thoughts: int = 0
    is_pair: bool = False

    def lines(self) -> Iterator[str]:
        """Yield the evidence as text; the terminal's writer escapes it."""
        subject = self.judged.subject
        yield f"{subject.kind} {subject.id}  of run {self.judged.run_id}"
        if self.chars < self.total_chars:
            yield f"cut as for the judge: {self.chars:,} of {self.total_chars:,} characters"
        for section in self.sections:
            cut = f" (cut: {'; '.join(section['cut'])})" if section["cut"] else ""
            yield from ("", f"{section['title']}{cut}", str(section["text"]))
        for agent in self.agents:
            yield from agent.lines()
        if self.thoughts:
            texts = f"{self.thoughts:,} text{'s' * (self.thoughts != 1)}"
            yield from ("", f"its reasoning ({texts}) is folded: dicast show {subject.id!r} --run {self.judged.run_id}")
        if self.reason is not None:
            yield from ("", f"nothing to show: {self.reason}")


def evidence(ledger: Ledger, judged: Judged, judges: Sequence[object] = ()) -> Evidence:
    """Return the evidence of a subject as the first of *judges* that asks a model sees it, else as ``llm/judge`` does by default."""
    subject = _traced(ledger, judged) or judged.subject
    try:
        read_evidence = reader("evidence")
    except PluginError:  # dicast-llm is not installed
        return Evidence(judged, list(_plain(subject)))
    document = read_evidence(ledger, subject=subject, judges=judges)
    agents = list(agent_evidence(ledger, subject, judged.run_id))
    shown = document["sections"], document["chars"], document["whole"], document.get("reason")
    texts = "\n".join(str(section["text"]) for section in document["sections"])
    thoughts = sum(thought not in texts for thought in _thoughts(subject))
    return Evidence(judged, *shown, agents, thoughts, is_pair=document.get("is_pair", False))


def _thoughts(subject: Subject) -> Iterator[str]:
    """Yield the reasoning texts of the subject's turn or session."""
    trail = subject.trail.events if subject.kind == "session" else list(subject.trail)
    turns = None if subject.kind == "session" else subject.id if subject.kind == "turn" else subject.parent_id
    parts: Any = (event.payload.get("parts") for event in trail if turns in (None, event.turn_id))
    for part in (part for each in parts for part in each or ()):
        if part.get("type") == "reasoning" and part.get("text"):
            yield str(part["text"])


def _traced(ledger: Ledger, judged: Judged) -> Subject | None:
    """Return the subject with its trace events and the conversation before it; None without a trace."""
    subject = judged.subject
    if subject.session_id is None or subject.kind == "row":
        return None
    try:
        read_judged = reader("judged_subject")
    except PluginError:  # dicast-traces is not installed
        return None
    names = {"subject_kind": subject.kind, "subject_id": subject.id, "session_id": subject.session_id}
    traced: Subject | None = read_judged(ledger, run_id=judged.run_id, **names)["subject"]
    return (
        traced
        if traced is None or not (traced.events or traced.trail.stop)
        else attrs.evolve(traced, output=subject.output)
    )


def _plain(subject: Subject) -> Iterator[Mapping[str, Any]]:
    parts = {"INPUT": subject.input, "OUTPUT": subject.output, "REFERENCE": subject.reference, **subject.context}
    for title, value in parts.items():
        if value is not None:
            plain = without_content(value)
            text = plain if isinstance(plain, str) else orjson.dumps(plain, default=dict).decode()
            yield {"title": title, "text": text, "cut": ()}
