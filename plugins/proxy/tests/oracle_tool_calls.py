"""The expected results of ``proxy/was_repeated`` and ``proxy/tool_params_schema`` for every tool call of a chat transcript.

Written from the metrics' description, without dicast. Run it on a file to see the figures::

    python plugins/proxy/tests/oracle_tool_calls.py conversations.jsonl.gz
"""

from __future__ import annotations

import gzip
import json
import sys
import unicodedata
from collections import Counter, defaultdict

import jsonschema

DATE = {"type": "string", "pattern": "^2024-05-[0-3][0-9]$"}
CITY = {"type": "string", "pattern": "^[A-Z]{3}$"}
FLIGHT = {
    "type": "object",
    "properties": {"flight_number": {"type": "string", "pattern": "^HAT[0-9]{3}$"}, "date": DATE},
    "required": ["flight_number", "date"],
    "additionalProperties": False,
}
TOOLS = {
    "search_direct_flight": {
        "type": "object",
        "properties": {"origin": CITY, "destination": CITY, "date": DATE},
        "required": ["origin", "destination", "date"],
        "additionalProperties": False,
    },
    "calculate": {
        "type": "object",
        "properties": {"expression": {"type": "string", "pattern": "^[0-9+*/(). -]+$", "maxLength": 24}},
        "required": ["expression"],
    },
    "update_reservation_flights": {
        "type": "object",
        "$defs": {"flight": FLIGHT},
        "properties": {
            "reservation_id": {"type": "string", "minLength": 6, "maxLength": 6},
            "cabin": {"enum": ["basic_economy", "economy", "business"]},
            "flights": {"type": "array", "items": {"$ref": "#/$defs/flight"}, "minItems": 1, "maxItems": 3},
            "payment_id": {"type": "string", "pattern": "^(credit_card|gift_card)_[0-9]+$"},
        },
        "required": ["reservation_id", "cabin", "flights", "payment_id"],
        "additionalProperties": False,
    },
}


def frozen(value):
    """Return a form that is equal for equal JSON values alone: an integer equals a float of the same value, and a boolean is no number."""
    if isinstance(value, dict):
        return "object", frozenset((unicodedata.normalize("NFC", key), frozen(item)) for key, item in value.items())
    if isinstance(value, list):
        return "list", tuple(map(frozen, value))
    if isinstance(value, str):
        return "text", unicodedata.normalize("NFC", value)
    return ("number" if type(value) in (int, float) else "word"), value


def turns(messages):
    """The messages of each turn; a last one that nobody answered is none."""
    starts = [place for place, message in enumerate(messages) if message["role"] == "user"]
    turns_ = [messages[start:end] for start, end in zip(starts, [*starts[1:], len(messages)], strict=True)]
    return turns_[:-1] if turns_ and len(turns_[-1]) == 1 else turns_


def expected(path):
    """Return ``{call id: (session, not repeated, valid)}``. An id that the file has twice comes after its turn's id and is numbered
    within the turn.
    """
    checks = {name: jsonschema.Draft202012Validator(schema) for name, schema in TOOLS.items()}
    with gzip.open(path, "rt", encoding="utf-8") as file:
        records = [json.loads(line) for line in file if line.strip()]
    verdicts = []
    for record in records:
        session, seen = f"{record['task_id']}-{record['trial']}", set()
        for number, turn in enumerate(turns(record["messages"]), 1):
            for message in turn:
                for call in message.get("tool_calls") or []:
                    tool, params = call["function"]["name"], json.loads(call["function"]["arguments"])
                    key = tool, frozen(params)
                    valid = tool in checks and checks[tool].is_valid(params)
                    verdicts.append((f"{session}/{number}", call["id"], (session, key not in seen, valid)))
                    seen.add(key)
    used, times, named = Counter(id for _, id, _ in verdicts), defaultdict(int), {}
    for turn, id, verdict in verdicts:
        name = f"{turn}/{id}" if used[id] > 1 else id
        times[name] += 1
        named[name if times[name] == 1 else f"{name}#{times[name]}"] = verdict
    return named


if __name__ == "__main__":
    figures = expected(sys.argv[1]).values()
    print(f"{len(figures)} calls, {sum(new for _, new, _ in figures)} new, {sum(valid for *_, valid in figures)} valid")
