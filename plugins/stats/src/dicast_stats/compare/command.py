"""``dicast compare``: what one run has over another, from a ledger."""

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
from .flips import flips
from .lines import lines

SHOWN = (Paired, Significance, CliffsDelta, ScoreDelta)
"""The comparisons that are made where none is named, in the order in which they are shown."""

_MORE = (Bayes, Practical, Assumptions, DistributionShift, Outliers, Flips, CategoryEffects, CriteriaEffects)

COMPARISONS: Mapping[str, Callable[[], Comparison]] = {f"stats/{one.name}": one for one in (*SHOWN, *_MORE)}
"""All that need no option, by the names that they have in pipelines."""

_PAIRED = f"stats/{Paired.name}"
_NEEDS_OPTIONS = f"stats/{RefereeAlignment.name}"
_NONE_GIVEN: Mapping[str, Comparison] = {}

TASK = "task"
"""The section in which two runs that are compared may differ."""

LAST = "last"
"""The run that B is where the command names none."""

_NAMED = 3
"""How many other runs are named to choose from."""

UNKNOWN = "fingerprints"
"""What is said to differ where a run has no fingerprints, as a file of records has none."""


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
    help="The least difference of scores that matters; 0.05 by default, and none on a scale of its own.",
)
@click.option(
    "--gold",
    type=click.Path(path_type=Path),
    help="Labels of both runs' outputs, which correct the differences: JSON lines {subject_id, score, arm}.",
)
@click.option("--allow-incomparable", is_flag=True, help="Compare runs that differ in more than their task, too.")
@click.option(
    "--ledger", type=click.Path(path_type=Path), help="The ledger; $DICAST_LEDGER or .dicast/ledger.db without it."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document to stdout, and nothing else there.")
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
    """Say what run B has over run A. Where both have judged the same subjects, these are compared one by one.

    A and B are ids of runs, names of pipelines (the newest run counts), 'last', or files of jsonl/rows; two files need no ledger.
    Without B it is the newest run; without A it is the run of the same name before B. Runs of tools do not count.
    Differences are B less A.
    """
    asked = [_chosen(name) for name in names] or [(f"stats/{one.name}", None) for one in SHOWN]
    chosen, given = dict.fromkeys(name for name, _ in asked), {name: one for name, one in asked if one is not None}
    if _PAIRED in given and gold is not None:
        message = "--gold is an option of stats/paired, which --compare gives options already; write gold there"
        raise ConfigError(Problem(message, path="--compare"))
    paired = Paired(difference=difference, gold=None if gold is None else InputPath(gold))

    def read(live: Ledger | None) -> tuple[Pair, Mapping[str, Any]]:
        pair = _pair(live, a, b, allow_incomparable=allow_incomparable)
        return pair, pair.document([*chosen], paired, given)

    try:
        pair, found = read_ledger(ledger, read)
    except LedgerRefused:
        if ledger is not None or a is None or not (Path(a).is_file() and Path(b).is_file()):
            raise
        pair, found = read(None)
    if as_json:
        click.echo(orjson.dumps(found, option=orjson.OPT_INDENT_2))
        return
    print_lines(one_line(part) if isinstance(part, str) else part for part in lines(pair.a, pair.b, found))


def read_comparison(
    ledger: Ledger,
    *,
    a: str,
    b: str,
    compare: Sequence[str] = (),
    difference: float | None = None,
    allow_incomparable: bool = False,
) -> Mapping[str, Any]:
    """What ``dicast compare --json`` prints of the runs *a* and *b* of *ledger*.

    :raises ConfigError: when there are no such runs, or they are not to be compared.
    """
    chosen = [_known(name) for name in dict.fromkeys(compare or [f"stats/{one.name}" for one in SHOWN])]
    pair = _pair(ledger, a, b, allow_incomparable=allow_incomparable)
    return pair.document(chosen, Paired(difference=difference))


def _pair(live: Ledger | None, a: str | None, b: str, *, allow_incomparable: bool) -> Pair:
    later = results(live, b)
    pair = Pair(results(live, a) if a is not None else _before(live, later), later)
    if pair.a.run_id == pair.b.run_id:
        raise ConfigError(_same(live, pair.a, str(a), b))
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
        """The sections and components whose fingerprints differ."""
        return self.b.differs(self.a)

    @property
    def comparable(self) -> bool:
        """Whether the runs differ in their task at most."""
        return set(self.differs) <= {TASK}

    def refusal(self) -> str:
        """Why the runs are not compared, and what to do."""
        more = ", ".join(key for key in self.differs if key != TASK)
        why = (
            "a file of records does not say how they were made"
            if more == UNKNOWN
            else f"they differ in more than the task: {more}"
        )
        asked = "--allow-incomparable compares them all the same, and says what differs"
        return f"runs {self.a.run_id} and {self.b.run_id} are not comparable: {why}; {asked}"

    def document(
        self, names: Sequence[str], with_options: Paired | None = None, given: Mapping[str, Comparison] = _NONE_GIVEN
    ) -> Mapping[str, Any]:
        """The JSON document, with the comparisons *names*, those *given* as they are; the paired one is else *with_options*."""
        made: Mapping[str, Comparison] = {_PAIRED: with_options or Paired(), **given}
        paired: Mapping[str, Any] = made[_PAIRED].compare(self.a, self.b)
        found = {
            name: paired if name == _PAIRED else (made.get(name) or COMPARISONS[name]()).compare(self.a, self.b)
            for name in names
        }
        pairs = pair_passes(self.a, self.b)
        open_ = {label for label in (*self.a.raw, *self.b.raw) if self.b.pass_at.get(label) is None}
        passes = {label: counts.json() for label, counts in pairs.counted().items()}
        passes = {label: {**one, "reasons": ["raw_scale"]} if label in open_ else one for label, one in passes.items()}
        return {
            "comparable": self.comparable,
            "differs": self.differs,
            "a": {"run_id": self.a.run_id, "name": self.a.name},
            "b": {"run_id": self.b.run_id, "name": self.b.name},
            "comparisons": found,
            "label": pairs.label,
            "passes": passes,
            "flips": None if passes.keys() and passes.keys() <= open_ else flips(pairs, self.a, self.b),
            **({"reasons": ["raw_scale"]} if passes.keys() and passes.keys() <= open_ else {}),
            "sentences": paired["sentences"],
            "words": paired["words"],
        }


def _before(live: Ledger | None, later: Results) -> Results:
    """Return the newest finished run of the same name that started before the run *later*.

    :raises ConfigError: if there is none.
    """
    runs = [] if live is None else [entry.event for entry in started_runs(live.read)]
    ids = [run.run_id for run in runs]
    for run in runs[ids.index(later.run_id) + 1 :] if later.run_id in ids else ():
        ended = Query(run_id=run.run_id, types=("run.completed",), limit=1)
        is_whole = run.payload.get("limit") is None and not run.payload.get("preview")
        if live is not None and is_whole and run.payload["name"] == later.name and any(live.read(ended)):
            return results(live, run.run_id)
    raise ConfigError(
        f"no run of {later.name!r} has ended before run {later.run_id}: name A; dicast runs lists the runs"
    )


def _same(live: Ledger | None, run: Results, *given: str) -> str:
    """What to say where *given* both lead to *run*."""
    if live is None:
        return f"A and B are the same file, {run.run_id}; give another one"
    finished = (entry.event for entry in live.read(Query(types=("run.completed",), newest_first=True)))
    others = {one.run_id: f"{one.run_id} ({one.payload['name']})" for one in finished if one.run_id != run.run_id}
    which = (
        f"such as {', '.join([*others.values()][:_NAMED])}" if others else "of which this ledger has no finished one"
    )
    words = " and ".join(repr(word) for word in dict.fromkeys(given))
    return f"A and B ({words}) are the same run, {run.run_id} ({run.name}); give the id of another one, {which}"


def _chosen(written: str) -> tuple[str, Comparison | None]:
    """The whole name of the comparison that is *written* as ``NAME`` or ``{NAME: {options}}``, and itself where it has, or needs, options."""
    options: object = {}
    name = written
    if written.lstrip().startswith("{"):
        try:
            ((name, options),) = read_json(written).items()
            if not isinstance(options, Mapping):
                raise TypeError(f"the options of {name} are no object")
        except (ValueError, TypeError) as error:
            message = f"it is no JSON object of one comparison and its options, {{NAME: {{OPTION: VALUE}}}}: {error}"
            raise ConfigError(Problem(message, path="--compare", value=written)) from error
    whole = _known(name, [*COMPARISONS, _NEEDS_OPTIONS])
    if not options and whole in COMPARISONS:
        return whole, None
    if not options:
        message = f'{whole} needs options: --compare \'{{"{whole}": {{"referee_fields": ["COLUMN"]}}}}\''
        raise ConfigError(Problem(message, path="--compare", value=written))
    return whole, component("comparison", {whole: options})  # type: ignore[dict-item]  # which says what is wrong with them


def _known(name: str, names: Sequence[str] = ()) -> str:
    """The whole name of the comparison *name*, which may be without the plugin's.

    :raises ConfigError: when there is none.
    """
    known = {short: whole for whole in names or COMPARISONS for short in (whole, whole.partition("/")[2])}
    if name in known:
        return known[name]
    message = f"no comparison {name!r}; there are {', '.join(names or COMPARISONS)}"
    raise ConfigError(Problem(message, path="--compare", value=name, hint=nearest(name, known)))
