"""Decision quality per dollar of every recorded judge in reach: alone, and as the first stage of a calibrated cascade.

    DICAST_OUTSIDE_DATA=DATA uv run --extra trust python benchmarks/decisions.py            # about ten seconds
    DICAST_OUTSIDE_DATA=DATA uv run --extra trust python benchmarks/decisions.py --json

The judges are those of LLMBar Natural, 100 pairs on which people agree, each asked in both orders. A judge's confidence is 1 where both orders have the
same winner and 0.5 where not. The last stage is GPT-4 with metrics and a reference. Each half of the pairs calibrates (target .8, alpha .2: fifty labels show no more) and the
other half is decided; both directions are added up. What a verdict costs is estimated: four characters a token, list prices of 2023, and
for a model without one nothing is said.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

try:
    from dicast.toolkit.gold import GoldLabel
    from dicast.toolkit.text_table import TextTable
    from dicast_trust.calibration.document import Calibration
    from dicast_trust.verdicts.outcomes import Outcome
    from dicast_trust.verdicts.rules import Rules
    from dicast_trust.verdicts.stages import Stage
except ModuleNotFoundError as error:
    sys.exit(f"there is no {error.name}: uv run --extra trust python benchmarks/decisions.py")

LAST = "GPT-4/Metrics_Reference"
RULES = Rules(target=0.8, alpha=0.2, agree="winner", signals="confidence")
PRICES = {"GPT-4": (30.0, 60.0), "ChatGPT": (1.5, 2.0), "ChatGPT-0301": (1.5, 2.0), "PaLM2": (2.0, 2.0)}
"""Usd per million tokens of input and output: OpenAI's and Google's lists of 2023. LLaMA2 and Falcon have no list price."""

CHARACTERS, RULE_CHARACTERS = 4, 900
"""Characters a token, and those of a prompt beside the pair."""

Pair = Mapping[str, Any]
Said = dict[str, tuple[float, float]]
"""Of each pair, the score (1 where output 1 wins) and the confidence."""


def main() -> int:
    """Print the table; exit code 2 where the data are not there."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    as_json = parser.parse_args().json
    path = Path(os.environ.get("DICAST_OUTSIDE_DATA", ""), "llmbar_natural.jsonl.gz")
    if not path.is_file():
        sys.stderr.write(
            f"no recorded judges at {path}: DICAST_OUTSIDE_DATA names the folder of llmbar_natural.jsonl.gz\n"
        )
        return 2
    with gzip.open(path) as file:
        pairs = [json.loads(line) for line in file]
    lines = sorted(decisions(pairs), key=lambda line: (-line["cascade_agreement"], line["judge"]))
    if as_json:
        sys.stdout.write(json.dumps({"last_stage": LAST, "judges": lines}, indent=2) + "\n")
    else:
        sys.stdout.write("\n".join(table(lines).lines(120)) + "\n")
    return 0


def decisions(pairs: list[Pair]) -> Iterator[dict[str, Any]]:
    """Yield each judge's decisions and cost."""
    gold = {pair["id"]: float(str(pair["label"]) == "1") for pair in pairs}
    last, last_cost = said(pairs, LAST), cost(pairs, LAST)
    for name in sorted(pairs[0]["judgments"]):
        own, own_cost = said(pairs, name), cost(pairs, name)
        kept = right = right_kept = 0
        for part in (0, 1):
            known, rest = pairs[part::2], pairs[1 - part :: 2]
            threshold = calibrated(known, own, gold)
            for pair in rest:
                is_kept = threshold is not None and own[pair["id"]][1] >= threshold
                decided = own[pair["id"]][0] if is_kept else last[pair["id"]][0]
                kept, right = kept + is_kept, right + (decided == gold[pair["id"]])
                right_kept += is_kept and decided == gold[pair["id"]]
        whole = None if own_cost is None or last_cost is None else own_cost + (1 - kept / len(pairs)) * last_cost
        alone = sum(own[key][0] == label for key, label in gold.items())
        yield {
            "judge": name,
            "agreement": alone / len(pairs),
            "usd": None if own_cost is None else 1000 * own_cost,
            "right_per_usd": None if not own_cost else alone / len(pairs) / own_cost,
            "kept": kept / len(pairs),
            "kept_agreement": right_kept / kept if kept else None,
            "cascade_agreement": right / len(pairs),
            "cascade_usd": None if whole is None else 1000 * whole,
            "cascade_right_per_usd": None if not whole else right / len(pairs) / whole,
        }


def said(pairs: list[Pair], name: str) -> Said:
    """The verdicts of a judge, from both orders: sure where both name the same winner. An order without an answer counts for half."""
    found = {}
    for pair in pairs:
        votes = [{"1": 1.0, "2": 0.0}.get(one["winner"], 0.5) for one in pair["judgments"][name].values()]
        score = votes[0] if len(set(votes)) == 1 else 0.5
        found[pair["id"]] = score, 1.0 if score != 0.5 else 0.5
    return found


def calibrated(pairs: list[Pair], own: Said, gold: Mapping[str, float]) -> float | None:
    """Return the lowest confidence at which the judge decides alone, by the labels of *pairs*."""
    stage, labels = Stage("judge", None), {}  # type: ignore[arg-type]  # nobody asks for its slot
    for pair in pairs:
        key = "row", pair["id"]
        score, confidence = own[pair["id"]]
        stage.outcomes[key] = Outcome(*key, None, "recorded", score, confidence, None, None, None, {})
        labels[key] = GoldLabel(key[1], gold[key[1]], "row")
    return Calibration.of_labels(labels, [stage], RULES).steps[0].climb.threshold


def cost(pairs: list[Pair], name: str) -> float | None:
    """Return a judge's mean cost of a verdict with both orders asked, in usd; None without a price."""
    prices = PRICES.get(name.split("/", maxsplit=1)[0])
    if prices is None:
        return None
    shown = sum(len(pair["input"]) + len(pair["output_1"]) + len(pair["output_2"]) + RULE_CHARACTERS for pair in pairs)
    replied = sum(len(one["completion"] or "") for pair in pairs for one in pair["judgments"][name].values())
    return (2 * shown * prices[0] + replied * prices[1]) / CHARACTERS / 1e6 / len(pairs)


def table(lines: list[dict[str, Any]]) -> TextTable:
    """The lines for a reader; costs are of a thousand verdicts."""
    heads = ("judge", "alone", "usd/1000", "right/usd", "kept", "of these", "cascade", "usd/1000", "right/usd")
    rows = [
        [
            line["judge"],
            *(f"{line['agreement']:.2f}", number(line["usd"], 2), number(line["right_per_usd"], 0)),
            *(f"{line['kept']:.2f}", number(line["kept_agreement"], 2), f"{line['cascade_agreement']:.2f}"),
            *(number(line["cascade_usd"], 2), number(line["cascade_right_per_usd"], 0)),
        ]
        for line in lines
    ]
    return TextTable(heads, rows, right=heads[1:], uncut=("judge",))


def number(value: float | None, digits: int) -> str | None:
    """*value* with so many digits; None stays it."""
    return None if value is None else f"{value:.{digits}f}"


if __name__ == "__main__":
    sys.exit(main())
