"""Write replies.jsonl: invented replies of a model to the judges of pipeline.yaml.

Each reply belongs to one exact request: run this script again, in this folder, after any change of the conversations, of a
judge's options or of its rubric: ``python by_hand.py`` (it needs ``dicast[agent,replay]`` and pytest).
"""  # noqa: INP001

from __future__ import annotations

import json
from pathlib import Path

from dicast import ChatRequest, Reply
from dicast.testing import FakeChatModel, run_pipeline

# What stands in the question -> the dimensions that are not 1.
FAULTS: dict[str, dict[str, float]] = {
    "aisle seat, booking QX7": {},
    "add a bag": {"done": 0.0, "truthfully_reported": 0.0, "recovery": 0.0},
    "the fare of booking LM4": {"done": 0.3, "right_tools": 0.0, "none_missing": 0.0, "covers_task": 0.5},
    "Send my receipt": {"right_values": 0.5, "nothing_made_up": 0.0, "done": 0.5, "none_missing": 0.5},
    "cancel booking VB1": {
        "nothing_else_done": 0.0,
        "rules_kept": 0.5,
        "no_forbidden_action": 0.0,
        "required_steps": 0.0,
    },
    "flight to Oslo": {"done": 0.0, "none_superfluous": 0.3, "economy": 0.0, "recovery": 0.0, "order": 0.5},
}


def reply(request: ChatRequest) -> Reply:
    """The verdict on the turn in *request*, under the seal of the call."""
    question = request.messages[-1].content
    faults = next(FAULTS[key] for key in FAULTS if key in question)
    seal = next(line.removeprefix("seal: ") for line in question.splitlines() if line.startswith("seal: "))
    assert request.schema is not None  # a judge asks for a JSON object
    verdict = {key: faults.get(key, 1.0) for key in request.schema["properties"]}
    verdict |= {"seal": seal, "confidence": 0.9, "rationale": "Written by hand."}
    return Reply(json.dumps(verdict), model="written by hand")


if __name__ == "__main__":
    replies = Path("replies.jsonl")
    replies.unlink(missing_ok=True)
    pipeline = Path("pipeline.yaml").read_text(encoding="utf-8")
    recording = pipeline.replace("{path: replies.jsonl}", "{path: replies.jsonl, record: by_hand}")
    run_pipeline(recording, components={"by_hand": FakeChatModel(reply)})
    print(f"{len(replies.read_text(encoding='utf-8').splitlines()) - 1} replies")
