"""What proxy metrics take, as JSON: ``python own_proxy.py syntax MB``. CPU seconds, the least of a few."""

from __future__ import annotations

import json
import random
import re
import sys
import time
from collections.abc import Callable

from dicast import Subject
from dicast_proxy import Syntax

TIMES = 5
MARKS = re.compile(r"[()\[\]{}\"'`\\]")
PLAIN = (
    *("the", "report", "of", "a", "committee", "says", "that", "nobody", "knew", "when", "it", "began", "and", "most"),
    *("agree", "with", "what", "was", "found", "there"),
)
MARKED = ("it's", "didn't", "the owners'", "(see below)", '"not before May"', "`rows/csv`", "[1]", "'90s", "f(x)")


def prose(size: int) -> str:
    """Sentences with an apostrophe, quotation or bracket to every dozen words, *size* characters of them."""
    draw = random.Random(5)
    one = [" ".join(_sentence(draw) for _ in range(6)) for _ in range(2_000)]
    text = "\n\n".join(one)
    return "\n\n".join([text] * (size // len(text) + 1))


def _sentence(draw: random.Random) -> str:
    words = [draw.choice(MARKED) if draw.random() < 1 / 12 else draw.choice(PLAIN) for _ in range(draw.randint(6, 20))]
    return f"{' '.join(words).capitalize()}."


def least(work: Callable[[], object]) -> float:
    """The fewest CPU seconds that *work* takes."""
    spent = []
    for _ in range(TIMES):
        begun = time.process_time()
        work()
        spent.append(time.process_time() - begun)
    return min(spent)


def syntax(megabytes: str) -> dict[str, float]:
    """``{mb, metric, bare}``: the metric, and a loop over what one regular expression finds of its marks."""
    text = prose(int(megabytes) * 10**6)
    subject, metric = Subject("row", "1", output=text), Syntax()
    if (score := metric.score(subject)) != Syntax().score(Subject("row", "2", output="()")):
        raise SystemExit(f"the prose should pass, and is {score}")
    bare = least(lambda: sum(1 for _ in MARKS.finditer(text)))
    return {"mb": len(text.encode()) / 1e6, "metric": least(lambda: metric.score(subject)), "bare": bare}


if __name__ == "__main__":
    print(json.dumps({"syntax": syntax}[sys.argv[1]](*sys.argv[2:])))
