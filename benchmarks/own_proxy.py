"""Print the least CPU seconds of proxy metrics as JSON: ``python own_proxy.py syntax MB | schema CALLS | repeated STEPS``."""

from __future__ import annotations

import json
import random
import re
import sys
import time
from collections.abc import Callable

import orjson

from dicast import Subject, TraceEvent
from dicast_proxy import Syntax, ToolParamsSchema, WasRepeated

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
    """Return ``{mb, metric, bare}``: CPU seconds of the metric, and of one regular expression's loop."""
    text = prose(int(megabytes) * 10**6)
    subject, metric = Subject("row", "1", output=text), Syntax()
    if (score := metric.score(subject)) != Syntax().score(Subject("row", "2", output="()")):
        raise SystemExit(f"the prose should pass, and is {score}")
    bare = least(lambda: sum(1 for _ in MARKS.finditer(text)))
    return {"mb": len(text.encode()) / 1e6, "metric": least(lambda: metric.score(subject)), "bare": bare}


TYPES = ("string", "integer", "boolean", "number", "array")
VALUES = ("economy", 2, True, 152.5, ["HAT136", "HAT039"])


def schema(calls: str) -> dict[str, float]:
    """``{calls, metric, bare, invalid}``: a schema of ten fields, the library alone, and calls with one field wrong."""
    import jsonschema_rs

    names = [f"field_{number}" for number in range(10)]
    fields = {name: {"type": TYPES[number % 5]} for number, name in enumerate(names)}
    tool = {"type": "object", "properties": fields, "required": names, "additionalProperties": False}
    params = {name: VALUES[number % 5] for number, name in enumerate(names)}
    metric, library = ToolParamsSchema(tools={"book": tool}), jsonschema_rs.Draft202012Validator(tool)
    good, bad = (
        [Subject("row", str(number), output={"tool": "book", "params": one}) for number in range(int(calls))]
        for one in (params, {**params, "field_1": "two"})
    )
    if (metric.score(good[0]).value, metric.score(bad[0]).value) != (1.0, 0.0):
        raise SystemExit("the calls are not judged as they should be")
    return {
        "calls": len(good),
        "metric": least(lambda: [metric.score(subject) for subject in good]),
        "bare": least(lambda: [library.is_valid(params) for _ in good]),
        "invalid": least(lambda: [metric.score(subject) for subject in bad]),
    }


def repeated(steps: str) -> dict[str, float]:
    """``{one, each, bare}``: the last call by its history, each call by all before it, and each call's JSON put into a set."""
    calls = [
        {
            "tool_name": f"tool_{number % 7}",
            "input": {"query": f"flights {number}", "page": number, "all": True, "price": number * 1.25},
        }
        for number in range(int(steps))
    ]
    events = tuple(
        TraceEvent("tool.called", {"tool_use_id": f"u{number}", **call}) for number, call in enumerate(calls)
    )
    last = Subject("row", "1", {"execution_history": calls}, {"tool": "tool_1", "params": {"query": "none"}})
    session, metric = Subject("session", "1", events=events), WasRepeated()
    if (metric.score(last).value, metric.score(session).value) != (1.0, 1.0):
        raise SystemExit("no call repeats another one")
    return {
        "one": least(lambda: metric.score(last)),
        "each": least(lambda: metric.score(session)),
        "bare": least(lambda: {orjson.dumps(call, option=orjson.OPT_SORT_KEYS) for call in calls}),
    }


if __name__ == "__main__":
    print(json.dumps({"syntax": syntax, "schema": schema, "repeated": repeated}[sys.argv[1]](*sys.argv[2:])))
