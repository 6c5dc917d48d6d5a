"""Labels from gold files and from a ledger, and the outputs that they are about."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path

import orjson

from .._kernel.classes import define, evolve, field, frozen
from .._kernel.contract.protocols import Ledger
from .._kernel.events import RUN_STARTED
from .._kernel.resume.named_runs import known_run
from .._kernel.resume.retractions import place_of_label, retracted_labels
from .._kernel.values import RECORDED_PREFIX, Event, Query
from .._kernel.values.errors import ConfigError, DataError, Problem
from ..toolkit.gold import GoldLabel, gold_labels
from ..toolkit.input_file import InputCheck, InputFile
from .outputs import JudgedOutput, JudgedOutputs
from .recorded_gold import labels_of_scores

LABEL_GIVEN = "label.given"
"""The event of a label: ``{subject, subject_kind, score, labeller, output_digest, drawn}``."""

ADJUDICATED = "adjudicated"
"""The key of a label that decides between different labels of a subject, if its value is true."""

WEIGHT = "weight"
DRAWN = "drawn"
RANDOMLY = ("random", "imported", None)
"""Values of ``drawn`` whose labels are a random sample of all subjects. For imported labels the user vouches for it."""

LEDGER = "ledger"
"""The name of the ledger's labels in place of a file."""

_LISTED = 20

Subject = tuple[str, str]
"""A subject's kind and id; the kind is "" if the file has no kind."""

Key = tuple[str, str, str | None, str | None]
"""Kind, id, digest of the output, and run of a label."""


@frozen
class Gold:
    """One label for each subject and output, in the order in which they were given.

    *digest* is the SHA-256 of the file, or of the ledger's labels; *source* is the user's name for them; *lines* are the subjects' lines in a file.
    """

    entries: Mapping[Key, GoldLabel] = field(repr=False)
    digest: str = ""
    source: str = ""
    lines: Mapping[Subject, int] = field(repr=False, factory=dict)
    by_subject: Mapping[Subject, Sequence[GoldLabel]] = field(init=False, repr=False, eq=False)

    def __attrs_post_init__(self) -> None:
        labels: dict[Subject, list[GoldLabel]] = {}
        for label in self.entries.values():
            labels.setdefault((label.kind, label.subject_id), []).append(label)
        object.__setattr__(self, "by_subject", labels)

    @property
    def subjects(self) -> list[Subject]:
        """The labeled subjects, in the order of their first label."""
        return list(self.by_subject)

    @property
    def ids(self) -> frozenset[str]:
        """The ids of the labeled subjects."""
        return frozenset(id for _, id in self.by_subject)

    def labels_of(self, kind: str, id: str) -> Sequence[GoldLabel]:
        """Return the labels with the kind and the id of a subject; if there are none, the labels with its id and no kind."""
        return self.by_subject.get((kind, id)) or self.by_subject.get(("", id), ())

    @property
    def names_outputs(self) -> bool:
        """True if a label names the output that it is about."""
        return any(label.output_digest or label.run for label in self.entries.values())


def decides(label: GoldLabel) -> bool:
    """Return True if *label* decides between different labels of its subject: its ``adjudicated`` is true, in CSV the word ``true``."""
    return label.others.get(ADJUDICATED) in (True, "true")


def read_gold(source: Path | str, ledger: Ledger | None = None, *, draws: bool = False) -> Gold:
    """Return the labels in the file *source*.

    ``-`` is standard input, ``ledger`` the labels of *ledger*, and ``recorded/NAME`` the scores of another tool in *ledger*.

    :param draws: refuse labels of a file whose subjects were not drawn with equal chances, and leave such labels of a ledger out.
    :raises DataError: with every bad line; also if two labels of one output differ and no label decides between them.
    :raises ConfigError: if the ledger has no labels.
    """
    label = Path(source).as_posix()
    if label.startswith(RECORDED_PREFIX) and ledger is not None and not Path(source).exists():
        return recorded_gold(ledger, label)
    if str(source) == LEDGER and ledger is not None and not Path(LEDGER).exists():
        return ledger_gold(ledger, draws=draws)
    with InputFile.opened(Path(source)) as file, InputCheck(file) as check:
        lines = list(gold_labels(file, check))
        if draws and (
            selective := next(((number, key) for number, label in lines if (key := _selective_key(label))), None)
        ):
            number, key = selective
            wrong = (
                f"labels with {'a' if key == WEIGHT else 'such a'} {key!r} were not drawn with equal chances, and nothing that is said about all subjects would hold; "
                "label subjects that are drawn at random (dicast label --random N), and leave the column out"
            )
            file.fault(Problem(wrong, path=key), number, check)
        step = "keep one of the two lines, or mark it as adjudicated: true"
        for number, problem in _differing(lines, " on line {}", step):
            file.fault(problem, number, check)
        digest = check.finish(len(lines))
    places = {(label.kind, label.subject_id): number for number, label in reversed(lines)}
    return Gold(_by_output(label for _, label in lines), digest, file.label, places)


def _selective_key(label: GoldLabel) -> str | None:
    """Return the key of *label* that shows that its subject was not drawn with equal chances; None if there is no such key."""
    return WEIGHT if WEIGHT in label.others else None if label.others.get(DRAWN) in RANDOMLY else DRAWN


def given_labels(ledger: Ledger) -> list[tuple[Event, GoldLabel]]:
    """Return the labels in *ledger*, each with its event, the oldest first. Only the newest label of a labeller on an output counts.

    Retracted labels do not count: the labeller's previous label does.
    """
    retracted = retracted_labels(ledger)
    newest: dict[tuple[object, ...], tuple[Event, GoldLabel]] = {}
    for entry in ledger.read(Query(types=(LABEL_GIVEN,))):
        event = entry.event
        if retracted and place_of_label(event) in retracted:
            continue
        label = from_event(event)
        newest[(*_key(label), label.labeller, decides(label))] = event, label
    return list(newest.values())


def random_labels(ledger: Ledger) -> list[tuple[Event, GoldLabel]]:
    """Return the labels of :func:`given_labels` whose subjects were drawn at random."""
    return [(event, label) for event, label in given_labels(ledger) if event.payload.get(DRAWN) in RANDOMLY]


def from_event(event: Event) -> GoldLabel:
    """Return the label in an event ``label.given``."""
    payload = event.payload
    score, labeller, kind = payload["score"], payload.get("labeller"), payload.get("subject_kind")
    digest = payload.get("output_digest")
    fields = {ADJUDICATED: True} if payload.get(ADJUDICATED) is True else {}
    return GoldLabel(
        str(payload["subject"]),
        float(score),  # type: ignore[arg-type]  # the command that writes it has checked
        str(kind or ""),
        None if labeller is None else str(labeller),
        event.session_id,
        fields,
        None if digest is None else str(digest),
    )


def ledger_gold(ledger: Ledger, *, draws: bool = True) -> Gold:
    """Return the labels in *ledger*; with *draws* only labels of subjects drawn at random, which represent all subjects.

    :raises ConfigError: if there are no such labels.
    :raises DataError: if two labels of one output differ and no label decides between them.
    """
    labels = [label for _, label in (random_labels if draws else given_labels)(ledger)]
    if not labels and (count := len(given_labels(ledger))):
        raise ConfigError(
            f"none of the {count} labels in the ledger is of subjects drawn at random, so that they say nothing of all: dicast label FILE --random N"
        )
    if not labels:
        raise ConfigError(
            "the ledger has no labels; dicast label FILE gives some, dicast labels import FILE takes them from a file"
        )
    step = "decide between them with dicast labels adjudicate"
    problems = [problem for _, problem in _differing(list(enumerate(labels, 1)), "", step)]
    if problems:
        raise DataError(problems[:_LISTED])
    listed = [[*_key(label), label.score, label.labeller] for label in labels]
    return Gold(_by_output(labels), sha256(orjson.dumps(listed)).hexdigest(), "the ledger's labels")


def recorded_gold(ledger: Ledger, label: str) -> Gold:
    """Return the scores of another tool with *label* as labels.

    :raises ConfigError: if the ledger has no such scores, or they are not in [0, 1].
    """
    labels = labels_of_scores(ledger, label)
    listed = [[*_key(item), item.score, item.labeller] for item in labels]
    return Gold(_by_output(labels), sha256(orjson.dumps(listed)).hexdigest(), label)


def is_in_ledger(source: Path | str) -> bool:
    """Return True if *source* names labels of a ledger and not a file."""
    return (str(source) == LEDGER or Path(source).as_posix().startswith(RECORDED_PREFIX)) and not Path(source).exists()


def _key(label: GoldLabel) -> Key:
    return label.kind, label.subject_id, label.output_digest, label.run


def outputs_of_labels(labels: Iterable[GoldLabel]) -> Iterator[tuple[GoldLabel, tuple[Key, ...]]]:
    """Yield each label with its own key, followed by the keys of further outputs that it is about.

    A label that names no output is about every output of its subject that other labels name, except outputs that its labeller has labeled
    separately. A label that decides has no such exception.
    """
    labels = list(labels)
    labellers: dict[Subject, dict[Key, set[str | None]]] = {}
    for label in labels:
        if _names_output(label):
            of_subject = labellers.setdefault((label.kind, label.subject_id), {})
            of_subject.setdefault(_key(label), set()).add(label.labeller)
    for label in labels:
        named = {} if _names_output(label) else labellers.get((label.kind, label.subject_id), {})
        keys = (key for key, who in named.items() if label.labeller not in who or decides(label))
        yield label, (_key(label), *keys)


def _names_output(label: GoldLabel) -> bool:
    return label.output_digest is not None or label.run is not None


def _differing(lines: Sequence[tuple[int, GoldLabel]], where: str, step: str) -> Iterable[tuple[int, Problem]]:
    """Yield a problem for each label that differs from an earlier label of the same output, with the number of its line.

    :param where: the words for the line of the earlier label, with ``{}`` for its number.
    """
    first: dict[Key, tuple[int, GoldLabel]] = {}
    spread = list(outputs_of_labels(label for _, label in lines))
    decided = {key for label, keys in spread if decides(label) for key in keys}
    for (number, label), (_, keys) in zip(lines, spread, strict=True):
        earlier = [(key, *first.setdefault(key, (number, label))) for key in keys]
        conflicts = (entry for entry in earlier if entry[2].score != label.score and entry[0] not in decided)
        if (conflict := next(conflicts, None)) is not None:
            _, line, before = conflict
            named = before.labeller or label.labeller
            who = f" ({before.labeller or 'nobody named'} and {label.labeller or 'nobody named'})" if named else ""
            wrong = f"subject {label.subject_id!r} has two labels that differ, {before.score:g}{where.format(line)} and {label.score:g}{who}; {step}"
            yield number, Problem(wrong, path="score" if where else None, value=label.score)


def _by_output(labels: Iterable[GoldLabel]) -> dict[Key, GoldLabel]:
    """Return one label for each subject and output, in the order of the first labels; a label that decides replaces other labels."""
    labels_by_key: dict[Key, GoldLabel] = {}
    for label, (first_key, *other_keys) in outputs_of_labels(labels):
        if first_key not in labels_by_key or decides(label):
            labels_by_key[first_key] = label
        if decides(label):
            labels_by_key.update({key: evolve(label, output_digest=key[2], run=key[3]) for key in other_keys})
    return labels_by_key


@define
class LabeledOutputs:
    """Labels matched with the outputs that runs judged.

    A label that names an output (``output_digest`` or ``run``) is about this output only. A label that names no output is about every output
    from the source. If a task made the output, :meth:`check` refuses such a label, unless *any_output* is set.
    """

    gold: Gold
    any_output: bool = False
    _outputs: JudgedOutputs | None = None
    _of_run: dict[str, str] = field(factory=dict)
    _unnamed: dict[Subject, str] = field(factory=dict)

    @classmethod
    def of(cls, ledger: Ledger, gold: Gold, *, any_output: bool = False, run_id: str | None = None) -> LabeledOutputs:
        """Return the matched labels of *gold*. The outputs are read only if a label names an output or a task made outputs.

        :param run_id: the run whose verdicts are compared with labels; None for all runs.
        :raises ConfigError: if a label names a run that the ledger does not have.
        """
        started = ledger.read(Query(run_id, (RUN_STARTED,)))
        has_tasks = any(entry.event.payload.get("task") is not None for entry in started)
        runs = {label.run for label in gold.entries.values() if label.run is not None}
        of_run = {run: known_run(ledger, run) for run in sorted(runs)}
        outputs = JudgedOutputs(ledger, gold.ids, run_id) if has_tasks or gold.names_outputs else None
        return cls(gold, any_output, outputs, of_run)

    @property
    def is_selective(self) -> bool:
        """True if a label may be about the output of one run and not of another."""
        return self._outputs is not None

    def label(self, run_id: str, kind: str, id: str) -> GoldLabel | None:
        """Return the label of the output that a run judged, None if it has no label."""
        labels = self.gold.labels_of(kind, id)
        if not labels or self._outputs is None:
            return labels[0] if labels else None
        output = self._outputs.of(run_id, kind, id) or JudgedOutput()
        named = [label for label in labels if self._is_about(label, run_id, output, kind, id)]
        if named:
            return named[0]
        plain = next((label for label in labels if label.output_digest is None and label.run is None), None)
        if plain is not None and output.is_made and not self.any_output:
            self._unnamed[kind, id] = run_id
            return None
        return plain

    def excludes(self, run_id: str, kind: str, id: str) -> bool:
        """Return True if the subject has labels, but no label is about the output that the run judged."""
        return bool(self.gold.labels_of(kind, id)) and self.label(run_id, kind, id) is None

    def _is_about(self, label: GoldLabel, run_id: str, output: JudgedOutput, kind: str, id: str) -> bool:
        if label.output_digest is None and label.run is None:
            return False
        if self.any_output:
            return True
        if label.output_digest is not None and label.output_digest != output.digest:
            return False
        if label.run is None:
            return True
        run = self._of_run[label.run]
        if run == run_id:
            return True
        output_of_run = None if self._outputs is None else self._outputs.of(run, kind, id)
        return output_of_run is not None and output_of_run.digest is not None and output_of_run.digest == output.digest

    def check(self) -> None:
        """Check that each label that :meth:`label` left out for lack of an output is allowed.

        :raises ConfigError: if such labels are about outputs of a task, which they must name.
        """
        if not self._unnamed:
            return
        (kind, id), run_id = next(iter(self._unnamed.items()))
        line = self.gold.lines.get((kind, id), self.gold.lines.get(("", id)))
        count = len(self._unnamed)
        named = f"{count:,} label{'s' * (count > 1)} in {self.gold.source} (the first is of {kind} {id!r})"
        message = (
            f"{named} do not say which output they are about, and a task made the outputs (run {run_id}): add output_digest or run to each row, "
            "label the outputs again (dicast label), or add --any-output to compare them with every output"
        )
        raise ConfigError(Problem(message, self.gold.source if line else None, line, path="output_digest"))


def all_labels(gold: Gold) -> Iterator[GoldLabel]:
    """Yield the labels in the order in which they were given."""
    yield from gold.entries.values()
