"""What every turn of a chat transcript must score, straight from the transcript.

Written from the description of the trace format and of the turn rubric, without dicast and without its rubric file, so that an
error in one of them shows as a difference. Run it on a file to see the figures::

    python tests/oracle_turns.py conversations.jsonl.gz
"""

from __future__ import annotations

import gzip
import json
import re
import sys

REFUSALS = [
    f"{start} {what}"
    for start, whats in {
        "i cannot": ["help", "assist", "do that"],
        "i can't": ["help", "assist", "do that"],
        "i'm": ["unable to", "not able to"],
        "i am": ["unable to", "not able to"],
        "i won't": ["help"],
        "i refuse": ["to"],
        "sorry, i": ["can't", "cannot"],
    }.items()
    for what in whats
]


def conversations(path):
    """The records of a gzipped file of JSON lines."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.strip()]


def cut(messages):
    """The turns: each a list of messages, the first from the user; a last one that nobody answered is none."""
    turns = []
    for message in messages:
        if message["role"] == "user":
            turns.append([])
        if turns:
            turns[-1].append(message)
    if turns and len(turns[-1]) == 1:
        del turns[-1]
    return turns


def score(turn, tool_error=None):
    """The score, the confidence and the negative flags of one turn."""
    points, bad = 1.5, []
    last = turn[-1]
    if not (last["role"] == "assistant" and last.get("content") and not last.get("tool_calls")):
        points -= 0.25
        bad.append("stop_reason_unclean")
    if tool_error and any(m["role"] == "tool" and re.search(tool_error, m["content"]) for m in turn):
        points -= 0.25
        bad.append("tool_failed")
    if sum(len(m.get("tool_calls") or []) for m in turn) > 20:
        points -= 0.1
        bad.append("tool_cycle_count_excessive")
    result = points / 1.5
    texts = [m["content"] for m in turn if m["role"] == "assistant" and m.get("content")]
    if texts:
        start = texts[-1].strip().lower().replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")[:160]
        if not start:
            result *= 0.4
            bad.append("empty_assistant_response")
        elif any(phrase in start for phrase in REFUSALS):
            result *= 0.5
            bad.append("assistant_refusal_detected")
    return result, {0: 0.9, 1: 0.55}.get(len(bad), 0.35), bad


def expected(path, tool_error=None):
    """``{turn id: (score, confidence, negative flags)}`` for a file whose sessions are named TASK-TRIAL."""
    return {
        f"{record['task_id']}-{record['trial']}/{number}": score(turn, tool_error)
        for record in conversations(path)
        for number, turn in enumerate(cut(record["messages"]), 1)
    }


if __name__ == "__main__":
    figures = expected(*sys.argv[1:])
    mean = sum(value for value, _, _ in figures.values()) / len(figures)
    print(f"{len(figures)} turns, mean score {mean:.6f}")
