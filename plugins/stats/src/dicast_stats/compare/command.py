"""Command ``dicast compare``: the differences of two runs."""

from __future__ import annotations

import shlex
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
    Results,
    read_ledger,
)
from dicast.commands import ledger_path
from dicast.toolkit.printable import one_line
from dicast.toolkit.terminal import Line, Part, print_lines

from ..pairs.paired import Paired
from .comparisons import DEFAULT_NAMES, PAIRED, find_full_name, parse_choice
from .lines import lines
from .pair import Pair, find_pair

LAST = "last"
"""Default of B."""
SHOWN_OF_RUN = 6
"""Number of characters at the end of a run's id that the printed command has, as in ``dicast runs``."""


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
@click.option("--full", is_flag=True, help="Also print the tables of the comparisons, and the subjects that changed.")
@click.option(
    "--margin",
    "--difference",
    "margin",
    type=click.FloatRange(0, min_open=True),
    metavar="NUMBER",
    help="The largest difference of scores that does not matter; 0.02 by default, none on a raw scale.",
)
@click.option(
    "--fail-on",
    type=click.Choice(["worse", "difference"]),
    help="Exit with code 1 if a label is worse, or if a label is better or worse; with 3 if no label can be compared.",
)
@click.option(
    "--gold",
    type=click.Path(path_type=Path),
    help="Labels of both runs' outputs that correct the differences: JSON lines {subject_id, score, arm}.",
)
@click.option("--allow-incomparable", is_flag=True, help="Also compare runs with other judges, or over other inputs.")
@click.option(
    "--unweighted",
    is_flag=True,
    help="Count each subject of a weighted sample once: the differences are about the sample.",
)
@ledger_path
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document to stdout and nothing else.")
def compare(
    a: str | None,
    b: str,
    names: tuple[str, ...],
    full: bool,
    margin: float | None,
    fail_on: str | None,
    gold: Path | None,
    allow_incomparable: bool,
    unweighted: bool,
    ledger: Path | str | None,
    as_json: bool,
) -> int:
    """Compare two runs: better, worse or unknown.

    The answer for each label is "better" or "worse" with the name of the better run, "no difference found", or "cannot tell" with the number
    of further pairs that are needed. Subjects of both runs are compared in pairs. The task, its model and the outputs may differ; the judges
    and the inputs have to be equal.

    A and B are ids of runs, names of pipelines (the newest run over all subjects counts), 'last', or files of jsonl/rows; two files need no ledger.
    Without B it is the newest run; without A it is the run of the same name before B. Runs of tools do not count.
    Differences are B minus A.
    """
    is_full = full or as_json or bool(names) or gold is not None
    selection = [parse_choice(name) for name in names] or [(name, None) for name in DEFAULT_NAMES if is_full]
    full_names = dict.fromkeys(name for name, _ in selection)
    configured = {name: comparison for name, comparison in selection if comparison is not None}
    if PAIRED in configured and gold is not None:
        message = "--gold is an option of stats/paired, but --compare sets its options; set gold there"
        raise ConfigError(Problem(message, path="--compare"))
    paired = Paired(difference=margin, gold=None if gold is None else InputPath(gold))

    def read(live: Ledger | None) -> tuple[Pair, Mapping[str, Any]]:
        pair = find_pair(live, a, b, allow_incomparable=allow_incomparable)
        if not unweighted:
            pair.refuse_weights("--unweighted counts each subject once, so that the differences are about the sample")
        return pair, pair.document([*full_names], paired, configured, margin)

    try:
        pair, document = read_ledger(ledger, read)
    except LedgerRefused:
        if ledger is not None or a is None or not (Path(a).is_file() and Path(b).is_file()):
            raise
        pair, document = read(None)
    if as_json:
        click.echo(orjson.dumps(document, option=orjson.OPT_INDENT_2))
    else:
        option = _ledger_option(ledger)
        flags = {"--allow-incomparable": allow_incomparable, "--unweighted": unweighted}
        options = [*(() if margin is None else ("--margin", str(margin))), *(flag for flag, on in flags.items() if on)]
        runs = (_repeat_name(a, pair.a), _repeat_name(b, pair.b))
        details = f"{shlex.join(['dicast', 'compare', *runs, '--full', *options])}{option}"
        text = lines(pair.a, pair.b, document, is_full=is_full, details=details, ledger=option)
        print_lines(map(_in_one_line, text))
    return _exit_code(document["answers"], fail_on)


def _repeat_name(name: str | None, run: Results) -> str:
    """Return *name* for a printed command; the end of the id of *run* for ``last`` and for an omitted name, which a later run changes."""
    return run.run_id[-SHOWN_OF_RUN:] if name in (None, LAST) else name


def _ledger_option(ledger: Path | str | None) -> str:
    """Return the option that names *ledger* in a printed command. A URL, which may have a password, is left out."""
    place = "PLACE" if isinstance(ledger, str) else shlex.quote(str(ledger))
    return "" if ledger is None else f" --ledger {place}"


def _in_one_line(part: Part) -> Part:
    """Return *part*, with its text in one line."""
    if isinstance(part, Line):
        return Line(one_line(part.text))
    return one_line(part) if isinstance(part, str) else part


def _exit_code(answers: Mapping[str, Any], fail_on: str | None) -> int:
    """Return 1 if *fail_on* names the answer of a label, 3 if it names an answer and no label has pairs, else 0."""
    failing = {None: (), "worse": ("worse",), "difference": ("better", "worse")}[fail_on]
    if any(answer["answer"] in failing for answer in answers.values()):
        return 1
    return 3 if failing and not any(answer["n"] for answer in answers.values()) else 0


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
    return pair.document(full_names, Paired(difference=difference), margin=difference)
