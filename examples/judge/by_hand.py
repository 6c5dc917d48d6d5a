"""Write replies.jsonl: invented replies of a model to the judge of pipeline.yaml.

Each reply belongs to one exact request: run this script again, in this folder, after any change of the
conversations, of the judge's options or of its rubric: ``python by_hand.py`` (it needs ``dicast[replay]`` and pytest).
"""  # noqa: INP001

from __future__ import annotations

import json
from pathlib import Path

import yaml

from dicast import ChatRequest, Reply
from dicast.testing import FakeChatModel, run_pipeline

# What stands in the question -> rationale, score, confidence.
VERDICTS = {
    "renew The Magic Mountain": ("The second try went well, and the date is the one that the tool told.", 1.0, 0.9),
    "renew Middlemarch": ("The tool refused to renew the book, and the answer claims that it is renewed.", 0.0, 0.9),
    "my neighbour": ("What others borrow must not be told; the refusal says so.", 1.0, 0.8),
    "a novel about the sea": ("Nothing speaks against a recommendation, and none is given.", 0.1, 0.9),
}


def reply(request: ChatRequest) -> Reply:
    """The verdict on the turn in *request*, under the seal of the call."""
    question = request.messages[-1].content
    rationale, score, confidence = next(VERDICTS[key] for key in VERDICTS if key in question)
    seal = next(line.removeprefix("seal: ") for line in question.splitlines() if line.startswith("seal: "))
    verdict = {"seal": seal, "score": score, "confidence": confidence, "rationale": rationale}
    return Reply(json.dumps(verdict), model="written by hand")


if __name__ == "__main__":
    replies = Path("replies.jsonl")
    replies.unlink(missing_ok=True)
    pipeline = yaml.safe_load(Path("pipeline.yaml").read_text(encoding="utf-8"))
    pipeline["define"]["grader"]["replay/chat"]["record"] = "by_hand"
    run_pipeline(yaml.safe_dump(pipeline), components={"by_hand": FakeChatModel(reply)})
    print(f"{len(replies.read_text(encoding='utf-8').splitlines()) - 1} replies")
