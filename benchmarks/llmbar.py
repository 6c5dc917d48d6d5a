"""A calibrated cascade of recorded judges, from labels to the other half, through the command line.

    DICAST_OUTSIDE_DATA=DATA uv run --group dev python benchmarks/llmbar.py            # about a minute and a half
    DICAST_OUTSIDE_DATA=DATA uv run --group dev python benchmarks/llmbar.py --all      # every prompt; some ten minutes
    DICAST_OUTSIDE_DATA=DATA uv run --group dev python benchmarks/llmbar.py --judge PaLM2/Vanilla --json

The data are LLMBar Natural: 100 pairs on which people agree, and what real judges replied to each in both orders. Which judges are shown was laid down before any was
run: of each model its plain prompt, Vanilla, as the first stage. None is left out, also where no threshold is found. The last stage is GPT-4 with
metrics and a reference, which the benchmark's authors found best. Pairs with even numbers, from 0, are labelled and calibrate; the others are decided. The target is
.8 at alpha .2, as in decisions.py: of 50 labels, a target of .9 at alpha .1 could hold only where none of 22 is wrong.

For each judge it records the replies for ``replay/chat``, judges the labelled half (``ask_all``), calls ``dicast calibrate``, runs the cascade over the other half, and
sees that a changed prompt is refused. Costs are estimates by list prices of 2023 (see decisions.py), since a recorded reply costs nothing.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from decisions import LAST, cost, number

from dicast import ChatRequest, Reply
from dicast.testing import FakeChatModel, run_pipeline
from dicast.toolkit.text_table import TextTable

TARGET, ALPHA = 0.8, 0.2
QUICK, LONG = "a quick look", "a long look"

Pair = Mapping[str, Any]


def main() -> int:
    """Print the table; exit code 2 where the data are not there."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--judge", action="append", help="this judge alone, such as PaLM2/Vanilla; may be repeated")
    parser.add_argument("--all", action="store_true", help="every prompt of every model")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    asked = parser.parse_args()
    path = Path(os.environ.get("DICAST_OUTSIDE_DATA", ""), "llmbar_natural.jsonl.gz")
    if not path.is_file():
        sys.stderr.write(
            f"no recorded judges at {path}: DICAST_OUTSIDE_DATA names the folder of llmbar_natural.jsonl.gz\n"
        )
        return 2
    with gzip.open(path) as file:
        pairs = [json.loads(line) for line in file]
    every = sorted(pairs[0]["judgments"])
    judges = asked.judge or [name for name in every if asked.all or name.endswith("/Vanilla")]
    lines = [decided(pairs, name) for name in judges]
    if asked.json:
        sys.stdout.write(json.dumps({"last_stage": LAST, "target": TARGET, "alpha": ALPHA, "judges": lines}) + "\n")
    else:
        sys.stdout.write("\n".join(table(lines).lines(120)) + "\n")
    return 0 if all(line["refused"] for line in lines) else 1


def decided(pairs: Sequence[Pair], name: str) -> dict[str, Any]:
    """Return the results of a cascade of the judge *name* and the last stage."""
    with tempfile.TemporaryDirectory() as folder:
        return Work(Path(folder), pairs, name).decided()


class Work:
    """A folder with the pipeline, the rows and the recorded replies."""

    def __init__(self, folder: Path, pairs: Sequence[Pair], name: str) -> None:
        self._folder, self._pairs, self._judges = folder, pairs, {QUICK: name, LONG: LAST}
        self._gold = {pair["id"]: float(str(pair["label"]) == "1") for pair in pairs}
        self._rows = [
            {"id": pair["id"], "input": pair["input"], "output": pair["output_1"], "reference": pair["output_2"]}
            for pair in pairs
        ]

    def decided(self) -> dict[str, Any]:
        """Calibrate on one half, and decide the other."""
        self._record()
        self._write("rows.jsonl", self._rows[::2])
        self._write(
            "gold.jsonl", [{"subject_id": row["id"], "score": self._gold[row["id"]]} for row in self._rows[::2]]
        )
        self._pipeline(ask_all=True)
        self._dicast("run", "cascade.yaml")
        rules = ("--agree", "winner", "--target", str(TARGET), "--alpha", str(ALPHA))
        done = self._dicast("calibrate", "cascade.yaml", "--gold", "gold.jsonl", *rules, "--json", allowed=(0, 3))
        (stage,) = json.loads(done.stdout)["stages"]
        self._write("rows.jsonl", self._rows[1::2])
        self._pipeline(calibration="calibration.json")
        self._dicast("run", "cascade.yaml", allowed=(0, 3))
        listed = self._dicast("verdicts", "--ledger", "ledger.db", "--run", "last", "--json").stdout
        found = self._summed(json.loads(listed)["verdicts"])
        self._pipeline(calibration="calibration.json", more=["is short"])
        changed = self._dicast("run", "cascade.yaml", allowed=(2,))
        told = {"judge": self._judges[QUICK], "exit_code": done.returncode, "threshold": stage["threshold"]}
        told |= {"labels_kept": stage["kept"]["labels"], "errors": stage["errors"], "upper": stage["upper"]}
        return told | found | {"refused": "criteria was" in changed.stderr}

    def _summed(self, verdicts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        right = {one["subject_id"]: one["score"] == self._gold[one["subject_id"]] for one in verdicts}
        kept = [one["subject_id"] for one in verdicts if one["calibrated"]]
        share = len(kept) / len(verdicts)
        own, dear = (cost([*self._pairs], name) for name in self._judges.values())
        alone = [
            {order["winner"] for order in pair["judgments"][LAST].values()} == {str(pair["label"])}
            for pair in self._pairs[1::2]
        ]
        return {
            "n": len(verdicts),
            "kept": share,
            "kept_agreement": sum(right[id] for id in kept) / len(kept) if kept else None,
            "agreement": sum(right.values()) / len(right),
            "last_agreement": sum(alone) / len(alone),
            "usd": None if own is None or dear is None else 1000 * (own + (1 - share) * dear),
            "last_usd": None if dear is None else 1000 * dear,
        }

    def _pipeline(self, *, more: Sequence[str] = (), **options: Any) -> None:
        (self._folder / "cascade.yaml").write_text(json.dumps(self._text(more, options) | {"ledger": LEDGER}))

    def _text(self, more: Sequence[str], options: Mapping[str, Any], **recording: Any) -> dict[str, Any]:
        replies = str(self._folder / "replies.jsonl")
        judges = [
            {"llm/pairwise": {"model": "grader", "labels": ["Output (a)", "Output (b)"], "criteria": [text, *added]}}
            for text, added in ((QUICK, more), (LONG, ()))
        ]
        return {
            "define": {"grader": {"replay/chat": {"path": replies, **recording}}},
            "source": {"rows/jsonl": {"path": str(self._folder / "rows.jsonl")}},
            "judges": [{"hybrid/cascade": {"as": "pair", "stages": judges, **options}}],
        }

    def _record(self) -> None:
        """Write the replies of both judges in both orders as a recording."""
        recorded = {row["id"]: (row, pair["judgments"]) for row, pair in zip(self._rows, self._pairs, strict=True)}

        def reply(request: ChatRequest) -> Reply:
            asked = "\n".join(str(message.content) for message in request.messages)
            name = next(name for text, name in self._judges.items() if text in asked)
            row, judgments = next(
                one
                for one in recorded.values()
                if all(one[0][key] in asked for key in ("input", "output", "reference"))
            )
            swapped = asked.rfind(f"\n{row['reference']}\n") < asked.rfind(
                f"\n{row['output']}\n"
            )  # the input may have either, too
            winner = judgments[name][f"swap={swapped}"]["winner"]
            shown = {"2": "Output (a)", "1": "Output (b)"} if swapped else {"1": "Output (a)", "2": "Output (b)"}
            return Reply(shown.get(str(winner), "neither"), model=name.partition("/")[0])

        self._write("rows.jsonl", self._rows)
        text = self._text((), {"ask_all": True}, record="model")
        run_pipeline(json.dumps(text), components={"model": FakeChatModel(reply)})

    def _write(self, name: str, lines: Sequence[Mapping[str, Any]]) -> None:
        (self._folder / name).write_text("".join(json.dumps(line) + "\n" for line in lines))

    def _dicast(self, *arguments: str, allowed: Sequence[int] = (0, 3)) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "dicast", *arguments]
        done = subprocess.run(command, cwd=self._folder, capture_output=True, text=True, check=False)
        if done.returncode not in allowed:
            raise SystemExit(f"{' '.join(arguments)}: exit code {done.returncode}\n{done.stderr}")
        return done


LEDGER = {"ledger/sqlite": {"path": "ledger.db"}}


def table(lines: Sequence[Mapping[str, Any]]) -> TextTable:
    """The lines for a reader; costs are of a thousand verdicts."""
    heads = ("judge", "threshold", "upper", "kept", "of these", "cascade", "last alone", "usd/1000", "last alone")
    return TextTable(heads, [*_rows(lines)], right=heads[1:], uncut=("judge",))


def _rows(lines: Sequence[Mapping[str, Any]]) -> Iterator[list[str | None]]:
    for line in lines:
        yield [
            line["judge"],
            *(number(line["threshold"], 2), number(line["upper"], 3), f"{line['kept']:.2f}"),
            *(number(line["kept_agreement"], 2), f"{line['agreement']:.2f}", f"{line['last_agreement']:.2f}"),
            *(number(line["usd"], 2), number(line["last_usd"], 2)),
        ]


if __name__ == "__main__":
    sys.exit(main())
