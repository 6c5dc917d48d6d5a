"""Command ``dicast compare``: the differences of two runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import orjson

from dicast import (
    ConfigError,
    InputPath,
    Ledger,
    LedgerRefused,
    Problem,
    read_ledger,
)
from dicast.toolkit.printable import one_line
from dicast.toolkit.terminal import print_lines

from ..pairs.paired import Paired
from .comparisons import DEFAULT_NAMES, PAIRED, find_full_name, parse_choice
from .lines import lines
from .pair import Pair, find_pair

LAST = "last"
"""Default of B."""


@click.command()
@click.argument("a", required=False)
@click.argument("b", default=LAST, required=False)
@click.option(
    "--compare",
    "names",
    multiple=True,
    metavar="NAME",
    help='Only this comparison, such as bayes, or with options: \'{"flips": {"pass_at": 0.5, "fail_at": 0.4}}\'; may be repeated.',
)
@click.option(
    "--difference",
    type=click.FloatRange(0, min_open=True),
    metavar="NUMBER",
    help="The smallest difference of scores that matters; 0.05 by default, none on a raw scale.",
)
@click.option(
    "--gold",
    type=click.Path(path_type=Path),
    help="Labels of both runs' outputs that correct the differences: JSON lines {subject_id, score, arm}.",
)
@click.option("--allow-incomparable", is_flag=True, help="Compare runs that differ in more than their task, too.")
@click.option(
    "--unweighted",
    is_flag=True,
    help="Count each subject of a weighted sample once: the differences are about the sample.",
)
@click.option(
    "--ledger",
    type=click.Path(path_type=Path),
    help="Path of the ledger. Default: $DICAST_LEDGER, else .dicast/ledger.db.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document to stdout and nothing else.")
def compare(
    a: str | None,
    b: str,
    names: tuple[str, ...],
    difference: float | None,
    gold: Path | None,
    allow_incomparable: bool,
    unweighted: bool,
    ledger: Path | None,
    as_json: bool,
) -> None:
    """Compare run B to run A. If both runs judged the same subjects, the subjects are compared in pairs.

    A and B are ids of runs, names of pipelines (the newest run counts), 'last', or files of jsonl/rows; two files need no ledger.
    Without B it is the newest run; without A it is the run of the same name before B. Runs of tools do not count.
    Differences are B minus A.
    """
    selection = [parse_choice(name) for name in names] or [(name, None) for name in DEFAULT_NAMES]
    full_names = dict.fromkeys(name for name, _ in selection)
    configured = {name: comparison for name, comparison in selection if comparison is not None}
    if PAIRED in configured and gold is not None:
        message = "--gold is an option of stats/paired, but --compare sets its options; set gold there"
        raise ConfigError(Problem(message, path="--compare"))
    paired = Paired(difference=difference, gold=None if gold is None else InputPath(gold))

    def read(live: Ledger | None) -> tuple[Pair, Mapping[str, Any]]:
        pair = find_pair(live, a, b, allow_incomparable=allow_incomparable)
        if not unweighted:
            pair.refuse_weights("--unweighted counts each subject once, so that the differences are about the sample")
        return pair, pair.document([*full_names], paired, configured)

    try:
        pair, document = read_ledger(ledger, read)
    except LedgerRefused:
        if ledger is not None or a is None or not (Path(a).is_file() and Path(b).is_file()):
            raise
        pair, document = read(None)
    if as_json:
        click.echo(orjson.dumps(document, option=orjson.OPT_INDENT_2))
        return
    print_lines(one_line(part) if isinstance(part, str) else part for part in lines(pair.a, pair.b, document))


def read_comparison(
    ledger: Ledger,
    *,
    a: str,
    b: str,
    compare: Sequence[str] = (),
    difference: float | None = None,
    allow_incomparable: bool = False,
) -> Mapping[str, Any]:
    """Return the document that ``dicast compare --json`` prints for the runs *a* and *b* of *ledger*.

    :raises ConfigError: if there are no such runs, they are not comparable, or their subjects have weights.
    """
    full_names = [find_full_name(name) for name in dict.fromkeys(compare or DEFAULT_NAMES)]
    pair = find_pair(ledger, a, b, allow_incomparable=allow_incomparable)
    pair.refuse_weights("dicast compare A B --unweighted counts each subject once")
    return pair.document(full_names, Paired(difference=difference))
