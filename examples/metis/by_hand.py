"""Write replies.jsonl: invented replies of a model to the judge of pipeline.yaml.

Each reply belongs to one exact request: run this script again, in this folder, after any change of the
trace, of the judge's options or of its rubric: ``python by_hand.py`` (it needs ``dicast[replay]`` and pytest).
"""  # noqa: INP001

from __future__ import annotations

import json
from pathlib import Path

import yaml

from dicast import ChatRequest, Reply
from dicast.testing import FakeChatModel, run_pipeline

# What stands in the question -> rationale, score, confidence.
VERDICTS = {
    "Why does test_export fail?": (
        "The test that failed first passes after the edit, and the answer says why.",
        0.9,
        0.9,
    ),
    "Now run the whole suite.": (
        "The only run of the suite did not succeed, and the answer says that all tests pass.",
        0.0,
        0.9,
    ),
    "show me what fails": ("The run fails, as was asked to be shown, and the answer names the tests.", 1.0, 0.8),
    "retry limit of the importer": ("The limit was not found, which the answer admits.", 0.2, 0.8),
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
