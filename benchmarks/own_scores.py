"""One share of the rows through ``diff/match`` in a plain loop: ``own_scores.py rows.jsonl FIRST STEP``."""

from __future__ import annotations

import json
import sys
from itertools import islice
from pathlib import Path

from dicast import Score, Subject
from dicast_diff import Match

if __name__ == "__main__":
    path, first, step = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    metric = Match(strictness="ast_equivalent", language="python")
    with Path(path).open(encoding="utf-8") as file:
        for line in islice(file, first, None, step):
            row = json.loads(line)
            score = metric.score(Subject("row", row["id"], output=row["output"], reference=row["reference"]))
            assert isinstance(score, Score)
            assert score.value == 1.0
