"""Command ``dicast compare``: the differences of two runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import click
import orjson

from dicast import (
    Comparison,
    ConfigError,
    InputPath,
    Ledger,
    LedgerRefused,
    Problem,
    Query,
    Results,
    component,
    nearest,
    read_ledger,
    results,
    started_runs,
)
from dicast.reporting import pair_passes
from dicast.toolkit.json_values import read_json
from dicast.toolkit.printable import one_line
from dicast.toolkit.terminal import print_lines

from ..pairs.flips import Flips
from ..pairs.outliers import Outliers
from ..pairs.paired import Paired
from ..pairs.practical import Practical
from ..pairs.referee_alignment import RefereeAlignment
from ..unpaired.assumptions import Assumptions
from ..unpaired.bayes import Bayes
from ..unpaired.category_effects import CategoryEffects
from ..unpaired.cliffs_delta import CliffsDelta
from ..unpaired.criteria_effects import CriteriaEffects
from ..unpaired.distribution_shift import DistributionShift
from ..unpaired.score_delta import ScoreDelta
from ..unpaired.significance import Significance
from .flips import list_flips
from .lines import lines

DEFAULT_COMPARISONS = (Paired, Significance, CliffsDelta, ScoreDelta)
"""Comparisons that are made by default, in the order of display."""

_OTHER_COMPARISONS = (
    Bayes,
    Practical,
    Assumptions,
    DistributionShift,
    Outliers,
    Flips,
    CategoryEffects,
    CriteriaEffects,
)

COMPARISONS: Mapping[str, Callable[[], Comparison]] = {
    f"stats/{one.name}": one for one in (*DEFAULT_COMPARISONS, *_OTHER_COMPARISONS)
}
"""Comparisons that need no options, by their names in pipelines."""

_PAIRED = f"stats/{Paired.name}"
_NEEDS_OPTIONS = f"stats/{RefereeAlignment.name}"
_NOT_CONFIGURED: Mapping[str, Comparison] = {}

TASK = "task"
"""Section in which comparable runs may differ."""

LAST = "last"
"""Default of B."""

_MAX_NAMES = 3
"""Largest number of other runs in a message."""

UNKNOWN = "fingerprints"
"""Entry in the differences if a run has no fingerprints, as in a file of records."""


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
    ledger: Path | None,
    as_json: bool,
) -> None:
    """Compare run B to run A. If both runs judged the same subjects, the subjects are compared in pairs.

    A and B are ids of runs, names of pipelines (the newest run counts), 'last', or files of jsonl/rows; two files need no ledger.
    Without B it is the newest run; without A it is the run of the same name before B. Runs of tools do not count.
    Differences are B minus A.
    """
    selection = [_parse_choice(name) for name in names] or [
        (f"stats/{comparison.name}", None) for comparison in DEFAULT_COMPARISONS
    ]
    names_in_order, configured = (
        dict.fromkeys(name for name, _ in selection),
        {name: comparison for name, comparison in selection if comparison is not None},
    )
    if _PAIRED in configured and gold is not None:
        message = "--gold is an option of stats/paired, but --compare sets its options; set gold there"
        raise ConfigError(Problem(message, path="--compare"))
    paired = Paired(difference=difference, gold=None if gold is None else InputPath(gold))

    def read(live: Ledger | None) -> tuple[Pair, Mapping[str, Any]]:
        pair = _pair(live, a, b, allow_incomparable=allow_incomparable)
        return pair, pair.document([*names_in_order], paired, configured)

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

    :raises ConfigError: if there are no such runs, or they are not comparable.
    """
    full_names = [
        _full_name(name)
        for name in dict.fromkeys(compare or [f"stats/{comparison.name}" for comparison in DEFAULT_COMPARISONS])
    ]
    pair = _pair(ledger, a, b, allow_incomparable=allow_incomparable)
    return pair.document(full_names, Paired(difference=difference))


def _pair(live: Ledger | None, a: str | None, b: str, *, allow_incomparable: bool) -> Pair:
    later = results(live, b)
    pair = Pair(results(live, a) if a is not None else _previous_run(live, later), later)
    if pair.a.run_id == pair.b.run_id:
        raise ConfigError(_same_run_text(live, pair.a, str(a), b))
    if not pair.comparable and not allow_incomparable:
        raise ConfigError(pair.refusal())
    return pair


@attrs.frozen
class Pair:
    """Two runs: *a* is the baseline, *b* the variant."""

    a: Results
    b: Results

    @property
    def differs(self) -> list[str]:
        """Return the sections and components whose fingerprints differ."""
        return self.b.differs(self.a)

    @property
    def comparable(self) -> bool:
        """Return whether the runs differ at most in their task."""
        return set(self.differs) <= {TASK}

    def refusal(self) -> str:
        """Return the message that the runs are not comparable, with the fix."""
        sections = ", ".join(key for key in self.differs if key != TASK)
        cause = (
            "a file of records has no fingerprints"
            if sections == UNKNOWN
            else f"they differ in more than the task: {sections}"
        )
        fix = "--allow-incomparable compares them anyway, and reports the differences"
        return f"runs {self.a.run_id} and {self.b.run_id} are not comparable: {cause}; {fix}"

    def document(
        self,
        names: Sequence[str],
        with_options: Paired | None = None,
        configured: Mapping[str, Comparison] = _NOT_CONFIGURED,
    ) -> Mapping[str, Any]:
        """Return the JSON document with the comparisons *names*.

        *configured* has comparisons with options by name. Without one for ``stats/paired``, *with_options* is used.
        """
        comparisons: Mapping[str, Comparison] = {_PAIRED: with_options or Paired(), **configured}
        paired: Mapping[str, Any] = comparisons[_PAIRED].compare(self.a, self.b)
        documents = {
            name: paired if name == _PAIRED else (comparisons.get(name) or COMPARISONS[name]()).compare(self.a, self.b)
            for name in names
        }
        pair_counts = pair_passes(self.a, self.b)
        open_ = {label for label in (*self.a.raw, *self.b.raw) if self.b.pass_at.get(label) is None}
        passes = {label: counts.json() for label, counts in pair_counts.counted().items()}
        passes = {label: {**one, "reasons": ["raw_scale"]} if label in open_ else one for label, one in passes.items()}
        return {
            "comparable": self.comparable,
            "differs": self.differs,
            "a": {"run_id": self.a.run_id, "name": self.a.name},
            "b": {"run_id": self.b.run_id, "name": self.b.name},
            "comparisons": documents,
            "label": pair_counts.label,
            "passes": passes,
            "flips": None if passes.keys() and passes.keys() <= open_ else list_flips(pair_counts, self.a, self.b),
            **({"reasons": ["raw_scale"]} if passes.keys() and passes.keys() <= open_ else {}),
            "sentences": paired["sentences"],
            "words": paired["words"],
        }


def _previous_run(live: Ledger | None, later: Results) -> Results:
    """Return the newest finished run of the same name that started before the run *later*.

    :raises ConfigError: if there is none.
    """
    runs = [] if live is None else [entry.event for entry in started_runs(live.read)]
    ids = [run.run_id for run in runs]
    for run in runs[ids.index(later.run_id) + 1 :] if later.run_id in ids else ():
        completion = Query(run_id=run.run_id, types=("run.completed",), limit=1)
        is_whole = run.payload.get("limit") is None and not run.payload.get("preview")
        if live is not None and is_whole and run.payload["name"] == later.name and any(live.read(completion)):
            return results(live, run.run_id)
    raise ConfigError(
        f"no run of {later.name!r} has ended before run {later.run_id}: name A; dicast runs lists the runs"
    )


def _same_run_text(live: Ledger | None, run: Results, *selectors: str) -> str:
    """Return the message that all *selectors* select *run*."""
    if live is None:
        return f"A and B are the same file, {run.run_id}; give another file"
    finished = (entry.event for entry in live.read(Query(types=("run.completed",), newest_first=True)))
    other_runs = {
        run_completed.run_id: f"{run_completed.run_id} ({run_completed.payload['name']})"
        for run_completed in finished
        if run_completed.run_id != run.run_id
    }
    examples = (
        f"such as {', '.join([*other_runs.values()][:_MAX_NAMES])}"
        if other_runs
        else "but this ledger has no other finished run"
    )
    words = " and ".join(repr(word) for word in dict.fromkeys(selectors))
    return f"A and B ({words}) are the same run, {run.run_id} ({run.name}); give the id of another run, {examples}"


def _parse_choice(choice: str) -> tuple[str, Comparison | None]:
    """Return the full name of the comparison in ``NAME`` or ``{NAME: {options}}``, and the comparison if it has or needs options.

    :raises ConfigError: if there is no such comparison, or its options are wrong.
    """
    options: object = {}
    name = choice
    if choice.lstrip().startswith("{"):
        try:
            ((name, options),) = read_json(choice).items()
            if not isinstance(options, Mapping):
                raise TypeError(f"the options of {name} are not an object")
        except (ValueError, TypeError) as error:
            message = f"it is not a JSON object of one comparison and its options, {{NAME: {{OPTION: VALUE}}}}: {error}"
            raise ConfigError(Problem(message, path="--compare", value=choice)) from error
    full_name = _full_name(name, [*COMPARISONS, _NEEDS_OPTIONS])
    if not options and full_name in COMPARISONS:
        return full_name, None
    if not options:
        message = f'{full_name} needs options: --compare \'{{"{full_name}": {{"referee_fields": ["COLUMN"]}}}}\''
        raise ConfigError(Problem(message, path="--compare", value=choice))
    return full_name, component("comparison", {full_name: options})  # type: ignore[dict-item]  # it reports wrong options


def _full_name(name: str, names: Sequence[str] = ()) -> str:
    """Return the full name of the comparison *name*, which may lack the name of the plugin.

    :raises ConfigError: if there is none.
    """
    full_names = {
        short: full_name for full_name in names or COMPARISONS for short in (full_name, full_name.partition("/")[2])
    }
    if name in full_names:
        return full_names[name]
    message = f"no comparison {name!r}; there are {', '.join(names or COMPARISONS)}"
    raise ConfigError(Problem(message, path="--compare", value=name, hint=nearest(name, full_names)))
