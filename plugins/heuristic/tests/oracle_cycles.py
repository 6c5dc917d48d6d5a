"""The expected score of every tool call of a chat transcript, and of every session, computed from the transcript.

Written from the description of the trace format and of the rubrics, without dicast and without its rubric files, so that an error
in figure of them shows as a difference. Run it on a file to see the figures::

    python plugins/heuristic/tests/oracle_cycles.py conversations.jsonl.gz
"""

from __future__ import annotations

import gzip
import json
import re
import sys
from collections import Counter, defaultdict
from functools import cache


@cache
def edit_distance(text, other):
    """The edit distance of two texts by the textbook's table, as a share of the longer figure."""
    row = list(range(len(other) + 1))
    for i, left in enumerate(text):
        last, row[0] = row[0], i + 1
        for j, right in enumerate(other):
            last, row[j + 1] = row[j + 1], min(row[j + 1] + 1, row[j] + 1, last + (left != right))
    return row[-1] / max(len(text), len(other), 1)


def turns(messages):
    """The messages of each turn; a last figure that nobody answered is none."""
    starts = [place for place, message in enumerate(messages) if message["role"] == "user"]
    turns_ = [messages[start:end] for start, end in zip(starts, [*starts[1:], len(messages)], strict=True)]
    return turns_[:-1] if turns_ and len(turns_[-1]) == 1 else turns_


def cycles(messages, tool_error=None):
    """The calls of figure turn in order: id, score, confidence, negative flags."""
    results = defaultdict(list)  # a provider may use figure id again: results come in the order of the calls
    for message in messages:
        if message["role"] == "tool":
            results[message["tool_call_id"]].append(message["content"])
    calls = [
        (call["id"], call["function"]["name"], json.dumps(json.loads(call["function"]["arguments"]), sort_keys=True,
                                                          ensure_ascii=False, separators=(",", ":")))
        for message in messages for call in message.get("tool_calls") or []
    ]  # fmt: skip
    for place, (id, *call) in enumerate(calls):
        bad = []
        if not results[id]:
            bad.append("tool_did_not_complete")
        elif re.search(tool_error or "(?!)", results[id].pop(0)):
            bad.append("tool_failed")
        points = 0.4 if bad else 1.0
        following = [rest for _, *rest in calls[place + 1 : place + 4]]
        if call in following[:1]:
            bad.append("immediate_re_call_same_input")
            points -= 0.2
        if any(tool == call[0] and edit_distance(call[1], text) <= 0.1 for tool, text in following):
            bad.append("thrash_in_window")
            points -= 0.2
        yield id, points, [0.85, 0.6, 0.4, 0.4][len(bad)], bad


def expected(path, tool_error=None):
    """Return ``{call id: (score, confidence, negative flags)}``. An id that the file has twice comes after its turn's id
    and is numbered within the turn.
    """
    with gzip.open(path, "rt", encoding="utf-8") as file:
        records = [json.loads(line) for line in file if line.strip()]
    cycles_ = [
        (f"{record['task_id']}-{record['trial']}/{number}", cycle)
        for record in records
        for number, turn in enumerate(turns(record["messages"]), 1)
        for cycle in cycles(turn, tool_error)
    ]
    used = Counter(id for _, (id, *_) in cycles_)
    named = {}
    for turn, (id, *rest) in cycles_:
        name = f"{turn}/{id}" if used[id] > 1 else id
        times = 1 + sum(other.partition("#")[0] == name for other in named)
        named[name if times == 1 else f"{name}#{times}"] = tuple(rest)
    return named


if __name__ == "__main__":
    figures = expected(*sys.argv[1:])
    flags = Counter(flag for _, _, bad in figures.values() for flag in bad)
    print(
        f"{len(figures)} tool calls, mean score {sum(figure[0] for figure in figures.values()) / len(figures):.6f}, {dict(flags)}"
    )
