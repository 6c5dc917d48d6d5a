"""Write replies.jsonl: invented replies of a model to the judges of pipeline.yaml.

Each reply belongs to one exact request: run this script again, in this folder, after any change of the answers, of a
judge's options or of its rubric: ``python by_hand.py`` (it needs ``dicast[rag,replay]`` and pytest).
"""  # noqa: INP001

from __future__ import annotations

import json
from pathlib import Path

from dicast import ChatRequest, Reply
from dicast.testing import FakeChatModel, run_pipeline

# What stands in the question -> the dimensions that are not 1.
FAULTS: dict[str, dict[str, float]] = {
    "How long may I take": {},
    "Who pays": {"supported": 0.5},
    "return a bulb": {"addressed": 0.0, "to_the_point": 0.0, "useful": 0.5, "noise_left_out": 0.0},
    "my money back": {"addressed": 0.0, "useful": 0.3, "ranked_first": 0.0, "found": 0.0, "sufficient": 0.0},
    "the guarantee": {"uncontradicted": 0.5, "useful": 0.5, "not_misled": 0.0, "noise_left_out": 0.0},
}


def reply(request: ChatRequest) -> Reply:
    """The verdict on the answer in *request*, under the seal of the call."""
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
