"""Writes replies.jsonl: invented replies of a model with vision to the judge of pipeline.yaml.

A recorded reply is found by its exact request, so run this script again, from this folder, after any change of the
rows, of the pictures, of the judge's options or of its rubric: ``python by_hand.py`` (it needs ``dicast[replay]`` and pytest).
"""  # noqa: INP001

from __future__ import annotations

import json
from pathlib import Path

import yaml

from dicast import ChatRequest, Reply
from dicast.testing import FakeChatModel, run_pipeline

# Text of the question -> rationale, score, confidence.
VERDICTS = {
    "A red circle": ("The picture shows one red circle, as the answer says.", 1.0, 0.9),
    "A blue triangle": ("The color is right, and the shape is a square.", 0.3, 0.9),
    "Two green dots": ("There are two dots, and both are green.", 1.0, 0.9),
}


def reply(request: ChatRequest) -> Reply:
    """The verdict on the row in *request*, under the seal of the call."""
    question = request.messages[-1]
    rationale, score, confidence = next(VERDICTS[key] for key in VERDICTS if key in question.content)
    seal = next(line.removeprefix("seal: ") for line in question.content.splitlines() if line.startswith("seal: "))
    verdict = {"seal": seal, "score": score, "confidence": confidence, "rationale": rationale}
    return Reply(json.dumps(verdict), model="written by hand", media={"image": len(question.media)})


if __name__ == "__main__":
    replies = Path("replies.jsonl")
    replies.unlink(missing_ok=True)
    pipeline = yaml.safe_load(Path("pipeline.yaml").read_text(encoding="utf-8"))
    pipeline["define"]["grader"]["replay/chat"]["record"] = "by_hand"
    run_pipeline(yaml.safe_dump(pipeline), components={"by_hand": FakeChatModel(reply)})
    print(f"{len(replies.read_text(encoding='utf-8').splitlines()) - 1} replies")
