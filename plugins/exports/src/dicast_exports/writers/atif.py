"""Judged sessions as trajectories in the Agent Trajectory Interchange Format (ATIF), a line each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from typing import Any

import attrs
import orjson

from dicast import Event
from dicast.toolkit.atomic_file import AtomicFile
from dicast.toolkit.exporting import ExportCounts, ExportedRun
from dicast.toolkit.media import without_content
from dicast.toolkit.sessions import shown_tool

from ..values import as_text

SCHEMA = "ATIF-v1.6"
_SOURCES = {"user": "user", "assistant": "agent", "system": "system", "developer": "system"}
_USAGE = {
    "prompt_tokens": ("prompt_tokens", "input_tokens"),
    "completion_tokens": ("completion_tokens", "output_tokens"),
}
_EVENTS = ("message.sent", "tool.called", "tool.completed", "tool.failed", "llm.call_completed", "turn.completed", "feedback.explicit",
           "feedback.implicit", "llm.call_failed", "session.ended")  # fmt: skip

Step = dict[str, Any]


def write_trajectories(run: ExportedRun, file: AtomicFile) -> ExportCounts:
    """Write a trajectory for each session whose messages and calls the ledger has, with its verdicts in ``extra.dicast``.

    Sessions are in memory until the end of the run is read: their events may alternate.
    """
    sessions: dict[str, _Trajectory] = {}
    left_out: Counter[str] = Counter()
    for event in run.events(*_EVENTS):
        if event.session_id is not None:
            trajectory = sessions.setdefault(event.session_id, _Trajectory(event.session_id, run.has_content, left_out))
            trajectory.take(event)
    for event in run.results():
        trajectory_of = sessions.get(str(event.session_id))
        if trajectory_of is None:
            left_out["results of subjects without a recorded conversation"] += 1
        else:
            trajectory_of.verdicts.append(_verdict(event, has_content=run.has_content))
    count = 0
    for trajectory in sessions.values():
        if not trajectory.steps:
            left_out["sessions without messages"] += 1
            continue
        file.write(orjson.dumps(trajectory.document(), default=str, option=orjson.OPT_APPEND_NEWLINE))
        count += 1
    return ExportCounts(count, "trajectories", left_out)


@attrs.define
class _Trajectory:
    """One session: its *steps* so far, and the *verdicts* on it and its parts."""

    id: str
    has_content: bool
    left_out: Counter[str]
    steps: list[Step] = attrs.field(factory=list)
    verdicts: list[dict[str, Any]] = attrs.field(factory=list)
    _calls: dict[str, Step] = attrs.field(factory=dict)
    _model_call: Mapping[str, Any] | None = None
    _turn_start: int = 0
    _texts: set[str] = attrs.field(factory=set)

    def take(self, event: Event) -> None:
        """Add *event* to the steps."""
        payload: Mapping[str, Any] = event.payload
        if event.type == "message.sent":
            self._message(event)
        elif event.type == "tool.called":
            self._call(event)
        elif event.type in ("tool.completed", "tool.failed"):
            self._result(event)
        elif event.type == "llm.call_completed":
            self._end_model_call(event)
            self._model_call = payload
        elif event.type == "turn.completed":
            self._end_turn(event)
        else:
            self.left_out[f"events of the type {event.type}"] += 1

    def document(self) -> dict[str, Any]:
        """Return the trajectory."""
        models = list(dict.fromkeys(step["model_name"] for step in self.steps if "model_name" in step))
        agent = {"name": "unknown", "version": "unknown", **({"model_name": models[0]} if models else {})}
        extra = {"exporter": f"dicast {version('dicast-kernel')}", "verdicts": self.verdicts}
        return {
            "schema_version": SCHEMA,
            "session_id": self.id,
            "agent": agent,
            "steps": self.steps,
            "extra": {"dicast": extra},
        }

    def _message(self, event: Event) -> None:
        role = str(event.payload.get("role"))
        source = _SOURCES.get(role)
        step = self._add(event, source or "system", as_text(event.payload.get("text") or ""))
        if source is None:
            step["extra"] = {"role": role}
        payload: Mapping[str, Any] = event.payload
        parts: Sequence[Mapping[str, Any]] = payload.get("parts") or ()
        reasoning = [str(part["text"]) for part in parts if part.get("type") == "reasoning"]
        if reasoning and source == "agent" and self.has_content:
            step["reasoning_content"] = "\n\n".join(reasoning)
        media = sum(part.get("type") not in ("text", "reasoning", "refusal") for part in parts)
        if media:
            self.left_out["images, sounds and files of messages"] += media

    def _end_turn(self, event: Event) -> None:
        """Add the texts of the turn that no message of it has."""
        texts = event.payload.get("signals_extra")
        texts = texts if isinstance(texts, Mapping) else {}
        turn_steps = [step for step in self.steps if step["step_id"] > self._turn_start]
        prompt = texts.get("user_prompt_text")
        if isinstance(prompt, str) and prompt and not any(step["source"] == "user" for step in turn_steps):
            self._add(event, "user", prompt)
            self.steps.insert(self._turn_start, self.steps.pop())
            for number, step in enumerate(self.steps, 1):
                step["step_id"] = number
        final = texts.get("final_response_text") or texts.get("assistant_response_text")
        if isinstance(final, str) and final and final not in self._texts:
            self._add(event, "agent", final)
        self._end_model_call(event)
        self._turn_start, self._texts = len(self.steps), set()

    def _end_model_call(self, event: Event) -> None:
        """Add a step for a call of the model without a text or a tool call, so that its figures are not lost."""
        if self._model_call is not None:
            self._add(event, "agent", "")

    def _call(self, event: Event) -> None:
        step = self.steps[-1] if self.steps else None
        if step is None or step["source"] != "agent" or "observation" in step or self._model_call is not None:
            step = self._add(event, "agent", "")
        call_id = str(event.payload.get("tool_use_id"))
        arguments = event.payload.get("input")
        if not isinstance(arguments, Mapping):
            arguments = {} if arguments is None else {"input": arguments}
        call = {"tool_call_id": call_id, "function_name": shown_tool(event.payload),
                "arguments": without_content(arguments) if self.has_content else {}}  # fmt: skip
        step.setdefault("tool_calls", []).append(call)
        self._calls[call_id] = step

    def _result(self, event: Event) -> None:
        call_id = str(event.payload.get("tool_use_id"))
        step = self._calls.get(call_id)
        if step is None:
            self.left_out["tool results without a call"] += 1
            return
        is_failure = event.type == "tool.failed" or event.payload.get("success") is False
        content = event.payload.get("error") if event.type == "tool.failed" else event.payload.get("output")
        text = as_text("" if content is None else content) if self.has_content else ""
        results = step.setdefault("observation", {"results": []})["results"]
        results.append({"source_call_id": call_id, "content": text})
        if is_failure:
            step.setdefault("extra", {}).setdefault("failed_calls", []).append(call_id)

    def _add(self, event: Event, source: str, text: str) -> Step:
        self._texts.add(text)
        step: Step = {"step_id": len(self.steps) + 1, "timestamp": event.time, "source": source,
                      "message": text if self.has_content else ""}  # fmt: skip
        if source == "agent" and self._model_call is not None:
            call, self._model_call = self._model_call, None
            step |= dict(_of_model(call))
        self.steps.append(step)
        return step


def _of_model(call: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    if call.get("model"):
        yield "model_name", str(call["model"])
    usage = call.get("usage") or {}
    metrics: dict[str, Any] = {
        name: value
        for name, keys in _USAGE.items()
        if (value := next((usage[key] for key in keys if key in usage), None)) is not None
    }
    if call.get("cost_usd") is not None:
        metrics["cost_usd"] = float(call["cost_usd"])
    if metrics:
        yield "metrics", metrics


def _verdict(event: Event, *, has_content: bool) -> dict[str, Any]:
    payload: Mapping[str, Any] = event.payload
    names = ("judge", "score", "raw", "confidence", "tier", "judge_kind", "judge_model", "failure_mode")
    verdict = {name: payload[name] for name in names if payload.get(name) is not None}
    if has_content and payload.get("error_message"):
        verdict["error_message"] = payload["error_message"]
    return {"subject_kind": event.subject_kind, "subject_id": event.subject_id, **verdict}
