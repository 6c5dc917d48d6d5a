"""The rows that are judged, and the pipeline that judges them. Every call makes the same ones."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

CHECKS = ("format", "keywords", "length", "match")
KEYWORD, FORBIDDEN = "verdict", "todo"
SHORTEST, LONGEST = 100, 1000

_NOUNS = "river stone market signal window garden paper engine metric sample report policy ledger harbour copper bridge"
_PROSE = " ".join(random.Random(7).choices(_NOUNS.split(), k=2000))
_BODY = 420

# Threshold 0: all four checks run on every row, as in the loops dicast is compared with.
PIPELINE = """\
name: benchmark
source: {rows/jsonl: {path: rows.jsonl}}
metrics:
  - proxy/format: {require_json: true}
  - proxy/keywords: {required: [verdict], forbidden: [TODO]}
  - proxy/length: {min: 100, max: 1000}
  - diff/match: {strictness: exact}
scoring: {threshold: 0}
ledger: {ledger/sqlite: {path: ledger.db}}
"""
CSV_SINK = "sinks: [csv/rows: {path: rows.csv}]\n"


def rows(count: int, sessions: int = 0) -> Iterator[dict[str, Any]]:
    """Rows with an output of about 500 characters, in *sessions* sessions of neighbours (0: none).

    One output in ten is no JSON, one in three lacks the keyword; half of the references are equal to the output, a quarter
    differ at the end and a quarter at the start.
    """
    for number in range(count):
        start = number * 37 % (len(_PROSE) - _BODY)
        answer = KEYWORD if number % 3 else "nothing"
        output = json.dumps({"id": number, "answer": answer, "text": _PROSE[start : start + _BODY]})
        if number % 10 == 0:
            output = output[:-2]
        reference = (output, f"{output} more", output, f"Not {output}")[number % 4]
        row = {"id": f"row-{number:07}", "input": f"Summarise note {number}.", "output": output, "reference": reference}
        yield row | {"session_id": f"session-{number * sessions // count}"} if sessions else row


def write(folder: Path, count: int, *, sessions: int = 0, sinks: str = "") -> None:
    """Put ``rows.jsonl`` and ``pipeline.yaml`` into *folder*."""
    with (folder / "rows.jsonl").open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows(count, sessions))
    (folder / "pipeline.yaml").write_text(PIPELINE + sinks, encoding="utf-8")


def is_json(text: str) -> bool:
    """The plain version of ``proxy/format``."""
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def has_keywords(text: str) -> bool:
    """The plain version of ``proxy/keywords``."""
    folded = text.casefold()
    return FORBIDDEN not in folded and KEYWORD in folded


def has_length(text: str) -> bool:
    """The plain version of ``proxy/length``."""
    return SHORTEST <= len(text) <= LONGEST


def check(output: str, reference: str) -> tuple[bool, bool, bool, bool]:
    """All four checks in the order of :data:`CHECKS`; ``diff/match`` is the comparison."""
    return is_json(output), has_keywords(output), has_length(output), output == reference
