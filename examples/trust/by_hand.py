"""Write answers.jsonl, gold.jsonl and replies.jsonl: answered sums, the right answers, and two judges' replies.

No model replied. The quick judge is right and confident about small sums, unsure and often wrong about large sums.
The slow judge is right. Each reply belongs to one exact request: run this script again, in this folder, after any change of the judges'
options or of their rubric: ``python by_hand.py`` (it needs ``dicast[replay]`` and pytest).
"""  # noqa: INP001

from __future__ import annotations

import json
import random
import re
from pathlib import Path

import yaml

from dicast import ChatRequest, Reply
from dicast.testing import FakeChatModel, run_pipeline

COUNT = 48
QUICK = "Say at a glance"


def answers() -> list[dict[str, str]]:
    """Return sums; three in ten have a wrong answer."""
    draw, rows = random.Random(7), []
    for number in range(COUNT):
        most = 20 if number % 3 else 9_999
        one, other = draw.randint(2, most), draw.randint(2, most)
        said = one + other + (draw.choice([-10, -1, 1, 10]) if draw.random() < 0.3 else 0)
        rows.append({"id": f"a{number:02}", "question": f"What is {one} + {other}?", "answer": f"It is {said}."})
    return rows


def is_right(question: str, answer: str) -> bool:
    """Whether the answer is the sum."""
    one, other = map(int, re.findall(r"\d+", question))
    return one + other == int(re.findall(r"\d+", answer)[0])


def reply(request: ChatRequest) -> Reply:
    """Return a judge's reply to the answer in *request*, with the seal of the call."""
    shown = request.messages[-1].content
    question, answer = re.findall(r"What is \d+ \+ \d+\?", shown)[0], re.findall(r"It is -?\d+\.", shown)[0]
    right, draw = is_right(question, answer), random.Random(question)
    quick = any(QUICK in str(message.content) for message in request.messages)
    large = len(question) > len("What is 20 + 20?")
    if quick and large and draw.random() < 0.4:
        right = not right
    score, confidence = (0.9 if right else 0.1), (0.6 if quick and large else 0.95)
    seal = next(line.removeprefix("seal: ") for line in shown.splitlines() if line.startswith("seal: "))
    verdict = {"seal": seal, "score": score, "confidence": confidence, "rationale": "The sum was checked."}
    return Reply(json.dumps(verdict), model="written by hand")


def write(name: str, lines: list[dict[str, object]]) -> None:
    """Write JSON lines."""
    Path(name).write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")


if __name__ == "__main__":
    rows = answers()
    write("answers.jsonl", [{**row} for row in rows])
    gold = random.Random(8).sample(rows, len(rows))
    write(
        "gold.jsonl",
        [
            {"subject_id": row["id"], "label": "pass" if is_right(row["question"], row["answer"]) else "fail"}
            for row in gold
        ],
    )
    replies = Path("replies.jsonl")
    replies.unlink(missing_ok=True)
    pipeline = yaml.safe_load(Path("pipeline.yaml").read_text(encoding="utf-8"))
    pipeline["define"]["grader"]["replay/chat"]["record"] = "by_hand"
    pipeline["judges"][0]["hybrid/cascade"]["ask_all"] = True
    del pipeline["sinks"]
    run_pipeline(yaml.safe_dump(pipeline), components={"by_hand": FakeChatModel(reply)})
    print(f"{len(replies.read_text(encoding='utf-8').splitlines()) - 1} replies")
