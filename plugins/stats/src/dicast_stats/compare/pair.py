"""Two runs that ``dicast compare`` compares, and their document."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

import attrs

from dicast import Comparison, ConfigError, Ledger, Query, Results, results, started_runs
from dicast.reporting import ALL_METRICS, PassRule, find_faults, pair_passes

from ..changes.label_changes import label_changes
from ..pairs.paired import Paired
from .comparisons import COMPARISONS, PAIRED
from .flips import list_flips

UNKNOWN = "fingerprints"
"""Entry in the differences if a run has no fingerprints, as in a file of records."""

_MAX_NAMES = 3
"""Largest number of other runs in a message."""

_MAX_READ = 20
"""Largest number of other runs that are read in search of runs to name."""

_NOT_CONFIGURED: Mapping[str, Comparison] = {}


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
    def faults(self) -> list[str]:
        """Return the reasons why the runs are not comparable: other judges, metrics or scoring, or other inputs of the paired subjects."""
        return find_faults(self.a, self.b)

    @property
    def comparable(self) -> bool:
        """Return whether the runs differ at most in their task and their outputs."""
        return not self.faults

    def refusal(self) -> str:
        """Return the message that the runs are not comparable, with the fix."""
        sections = ", ".join(self.faults)
        cause = (
            "a file of records has no fingerprints"
            if sections == UNKNOWN
            else f"they differ in more than the task and the outputs: {sections}"
        )
        fix = "--allow-incomparable compares them anyway, and reports the differences"
        return f"runs {self.a.run_id} and {self.b.run_id} are not comparable: {cause}; {fix}"

    @property
    def weighted(self) -> list[str]:
        """Return the ids of the runs whose subjects have weights."""
        return [run.run_id for run in (self.a, self.b) if run.weighted()]

    def refuse_weights(self, fix: str) -> None:
        """Refuse runs whose subjects have weights; *fix* is what the user can do.

        :raises ConfigError: naming the runs.
        """
        if self.weighted:
            runs = f"run{'s' * (len(self.weighted) > 1)} {' and '.join(self.weighted)}"
            message = f"the subjects of {runs} have weights, because a sample drew them, and comparisons count each subject once"
            raise ConfigError(f"{message}; compare runs over all subjects; {fix}")

    def document(
        self,
        names: Sequence[str],
        with_options: Paired | None = None,
        configured: Mapping[str, Comparison] = _NOT_CONFIGURED,
        margin: float | None = None,
    ) -> Mapping[str, Any]:
        """Return the JSON document with the change of each label by the *margin*, and with the comparisons *names*.

        *configured* has comparisons with options by name. Without one for ``stats/paired``, *with_options* is used.
        """
        comparisons: Mapping[str, Comparison] = {PAIRED: with_options or Paired(), **configured}
        documents: dict[str, Any] = {
            name: (comparisons.get(name) or COMPARISONS[name]()).compare(self.a, self.b) for name in names
        }
        pair_counts = pair_passes(self.a, self.b)
        undecided = {label for label in (*self.a.raw, *self.b.raw) if self.b.pass_at.get(label) is None}
        passes = {label: label_counts.json() for label, label_counts in pair_counts.counted().items()}
        passes = {
            label: {**counts, "reasons": ["raw_scale"]} if label in undecided else counts
            for label, counts in passes.items()
        }
        for label, lines in differing_lines(self.a, self.b, passes).items():
            passes[label] |= {"pass_at": lines}
        answers = {label: change.json() for label, change in label_changes(self.a, self.b, margin).items()}
        passes = {label: passes[label] for label in dict.fromkeys([*answers, *passes]) if label in passes}
        sentences = [f"{label}: {answer['words']}" for label, answer in answers.items()]
        if (
            getattr(paired := comparisons[PAIRED], "gold", None) is not None
        ):  # the sentences have the corrections by labels
            corrected: Any = documents.get(PAIRED) or paired.compare(self.a, self.b)
            sentences = corrected["sentences"]
        is_undecided = bool(passes) and passes.keys() <= undecided
        return {
            "comparable": self.comparable,
            "differs": self.differs,
            **({"faults": faults} if (faults := self.faults) else {}),
            "answers": answers,
            **({"unweighted": self.weighted} if self.weighted else {}),
            "a": {"run_id": self.a.run_id, "name": self.a.name},
            "b": {"run_id": self.b.run_id, "name": self.b.name},
            "comparisons": documents,
            "label": pair_counts.label,
            "passes": passes,
            "flips": None if is_undecided else list_flips(pair_counts, self.a, self.b),
            **({"reasons": ["raw_scale"]} if is_undecided else {}),
            "sentences": sentences,
            "words": ". ".join(sentences) or "no label is in both runs",
        }


def differing_lines(a: Results, b: Results, labels: Iterable[str]) -> Mapping[str, Mapping[str, object]]:
    """Return for each of *labels* that passes by another line in the run *a* than in *b* both lines, and the line that counts both runs.

    The line of all metrics together is a mapping of the metrics to their lines if each of them has to pass.
    """
    if a.rule is None or b.rule is None:
        return {}
    counts = b.rule if (b.started_at or 0) >= (a.started_at or 0) else a.rule
    lines = {label: [_line(rule, label) for rule in (a.rule, b.rule, counts)] for label in labels}
    return {label: dict(zip(("a", "b", "counted"), of, strict=True)) for label, of in lines.items() if of[0] != of[1]}


def _line(rule: PassRule, label: str) -> object:
    if label == ALL_METRICS and rule.every:
        return {metric: rule.line(metric) for metric in rule.metrics}
    return rule.line(label)


def find_pair(live: Ledger | None, a: str | None, b: str, *, allow_incomparable: bool) -> Pair:
    """Return the runs *a* and *b*; without *a*, the run before *b* with the same name.

    :raises ConfigError: if there are no such runs, they are the same run, or they are not comparable and *allow_incomparable* is false.
    """
    later = results(live, b)
    pair = Pair(results(live, a) if a is not None else _previous_run(live, later), later)
    if pair.a.run_id == pair.b.run_id:
        raise ConfigError(_same_run_text(live, pair.a, str(a), b))
    if not pair.comparable and not allow_incomparable:
        raise ConfigError(pair.refusal())
    return pair


def _previous_run(live: Ledger | None, later: Results) -> Results:
    """Return the newest finished run of the same name that started before the run *later*.

    :raises ConfigError: if there is none.
    """
    entries = () if live is None or later.started_at is None else started_runs(live.read, limited=False)
    for run in (entry.event for entry in entries if entry.seq < (later.started_at or 0)):
        completion = Query(run_id=run.run_id, types=("run.completed",), limit=1)
        if live is not None and run.payload["name"] == later.name and any(live.read(completion)):
            return results(live, run.run_id)
    raise ConfigError(
        f"no run of {later.name!r} has ended before run {later.run_id}: name A; dicast runs lists the runs"
    )


def _same_run_text(live: Ledger | None, run: Results, *selectors: str) -> str:
    """Return the message that all *selectors* select *run*."""
    if live is None:
        return f"A and B are the same file, {run.run_id}; give another file"
    finished = (entry.event for entry in live.read(Query(types=("run.completed",), newest_first=True)))
    names = {completed.run_id: completed.payload["name"] for completed in finished if completed.run_id != run.run_id}
    accepted = (run_id for run_id in islice(names, _MAX_READ) if _accepts(live, run, run_id))
    examples = [f"{run_id} ({names[run_id]})" for run_id in islice(accepted, _MAX_NAMES)]
    fix = f"give the id of another run, such as {', '.join(examples)}" if examples else "dicast runs lists the runs"
    words = " and ".join(repr(word) for word in dict.fromkeys(selectors))
    return f"A and B ({words}) are the same run, {run.run_id} ({run.name}); {fix}"


def _accepts(live: Ledger, run: Results, other_id: str) -> bool:
    """Return whether ``dicast compare`` accepts *run* with the run *other_id*: they are comparable, and have a label in common."""
    try:
        other = results(live, other_id)
    except ConfigError:  # it has no scores, for example
        return False
    pair = Pair(other, run)
    return pair.comparable and not pair.weighted and bool(label_changes(other, run, None))
