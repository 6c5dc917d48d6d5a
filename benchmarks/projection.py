"""Compare each call's reservation with its cost by the endpoint's own count of tokens.

``uv run python benchmarks/projection.py [FOLDER] [--rows 40]`` lets Gemma 3 270M, behind an OpenAI-compatible server on loopback, judge
questions of several lengths, or LLMBar's pairs where FOLDER has them, at 0.15 and 0.60 usd per million tokens. It prints the least and
the median ratio, once with Gemma's tokenizer and once with the estimate from bytes. The least has to be 1 or more.

Where FOLDER has LLMBar, it first prints what the limit of a reply decides (``--recorded`` prints nothing else): the reasons that LLMBar's
judges wrote of 100 pairs, as verdicts of ``llm/judge``, counted by the tokenizer of gpt-4o, under several ``max_output_tokens``. Of each: the
median ratio, the part of it that is the question's, the reply's tokens at the median, and how many replies the limit cuts.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import statistics
import sys
from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path

import splintr

from dicast import ChatRequest, Failure, Price, Reply, Subject, Usage
from dicast.testing import run_pipeline
from dicast_llm.judge import LlmJudge
from dicast_openai.chat import Chat

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from model_server import ModelServer

DATA = "llmbar_natural.jsonl.gz"
TEXT = "The committee met on Tuesday, read the report and asked for two changes before it agreed to print it. "
NAMES = {"with the tokenizer": "gemma-3-270m", "from bytes": "some-model"}
LIMITS = (256, 192, 160, 128)
JUDGES = ("GPT-4", "ChatGPT", "PaLM2", "Falcon")
A_MESSAGE, A_REQUEST = 3, 3
"""What OpenAI says that its template adds."""
PRICE = {"input_per_mtok": 0.15, "output_per_mtok": 0.60}


def rows_of(folder: Path | None, count: int) -> Iterator[Subject]:
    """Questions with answers of 1 to 60 sentences, or LLMBar's with their first answers."""
    if folder is None:
        for number in range(count):
            yield Subject("row", str(number), "Sum this up. " + TEXT * 3, TEXT * (1 + number * 60 // count))
        return
    with gzip.open(folder / DATA, "rt", encoding="utf-8") as lines:
        for number, line in zip(range(count), lines, strict=False):
            pair = json.loads(line)
            yield Subject("row", str(number), pair["input"], pair["output_1"])


def ratios(name: str, url: str, rows: Sequence[Subject]) -> list[float]:
    """Return, for every call, its reservation divided by its cost."""
    model = {"openai/chat": {"base_url": url, "model": name, "price": PRICE, "timeout": 300}}
    judge = {"llm/judge": {"model": model, "seal": False, "retries": 0}}
    ready = json.dumps({"judges": [judge], "executor": {"dicast/async": {"concurrency": 2}}})
    held, found = dict[str, Decimal](), list[float]()
    for event in run_pipeline(ready, subjects=rows).events:
        said = event.payload
        if event.type == "spend.reserved":
            held[str(said["reservation_id"])] = Decimal(str(said["amount"]))
        elif event.type == "spend.settled":
            found.append(float(held[str(said["reservation_id"])] / Decimal(str(said["amount"]))))
    return found


class Recorded:
    """A chat model with *reasons* in its verdicts, priced as gpt-4o-mini; *seen* lists each call's reservation and count."""

    def __init__(self, limit: int) -> None:
        price = Price(*(Decimal(str(amount)) for amount in PRICE.values()))
        self.chat = Chat("gpt-4o-mini", base_url="http://127.0.0.1:9/v1", price=price)
        self.limit, self.reasons = limit, ""
        self.seen: list[tuple[float, float, int]] = []
        self.tokenizer = splintr.Tokenizer.from_pretrained("o200k_base")

    def count(self, text: str) -> int:
        """The tokens of *text*."""
        return len(self.tokenizer.encode_ordinary(text))

    async def complete(self, request: ChatRequest) -> Reply | Failure:
        """Reply, and keep the ratio of the whole, that of the question, and the reply's tokens."""
        seal = request.messages[-1].content.rpartition("seal: ")[2].split("\n")[0]
        text = json.dumps({"seal": seal, "score": 0.7, "confidence": 0.9, "rationale": self.reasons})
        asked = sum(self.count(message.content) + A_MESSAGE for message in request.messages) + A_REQUEST
        asked += self.count(json.dumps(request.schema, separators=(",", ":")))
        written = self.count(text)
        cost = self.chat.cost(Usage(asked, min(written, self.limit))).amount
        most = self.chat.estimate(request).amount
        self.seen.append((float(most / cost), self.chat.most_input_tokens(request) / asked, written))
        return Reply(text)


async def under(limit: int, name: str, folder: Path) -> str:
    """The line of the table for the judge *name* under *limit*."""
    model = Recorded(limit)
    judge = LlmJudge(model, max_output_tokens=limit, retries=0)
    with gzip.open(folder / DATA, "rt", encoding="utf-8") as lines:
        for pair in map(json.loads, lines):
            model.reasons = pair["judgments"].get(f"{name}/CoT", {}).get("swap=False", {}).get("completion")
            if model.reasons:
                await judge.judge(Subject("row", pair["id"], pair["input"], pair["output_1"]), ())
    whole, asked, written = zip(*model.seen, strict=True)
    if min(whole) < 1:
        raise SystemExit(f"{name} under {limit}: a call cost more than its projection")
    cut = sum(tokens > limit for tokens in written)
    median = statistics.median
    return f"| {name} | {limit} | {median(whole):.2f} | {median(asked):.2f} | {median(written):.0f} | {cut} of {len(written)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--rows", type=int, default=40)
    parser.add_argument("--recorded", action="store_true")
    options = parser.parse_args()
    if options.folder is not None:
        print(
            "| reasons of | limit | ratio | of the question | reply | cut |\n| --- | ---: | ---: | ---: | ---: | ---: |"
        )
        for name in JUDGES:
            for limit in LIMITS:
                print(asyncio.run(under(limit, name, options.folder)))
    if options.recorded:
        return
    rows = list(rows_of(options.folder, options.rows))
    server = ModelServer("--context", 8192)
    try:
        for words, name in NAMES.items():
            found = ratios(name, server.base_url, rows)
            print(f"{words:>20}: {len(found)} calls, least {min(found):.3f}, median {statistics.median(found):.2f}")
            if min(found) < 1:
                raise SystemExit(f"{words}: a call cost more than its projection")
    finally:
        server.stop()


if __name__ == "__main__":
    main()
