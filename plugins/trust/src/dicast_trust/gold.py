"""What people say of subjects: labels from a file or from a ledger, one for each subject."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path

import attrs
import orjson

from dicast import ConfigError, DataError, Event, GoldLabel, InputCheck, InputFile, Ledger, Problem, Query, gold_labels

LABEL_GIVEN = "label.given"
"""The event of a label: ``{subject, score, labeller}``."""

ADJUDICATED = "adjudicated"
"""A label with ``adjudicated: true`` decides where labels of a subject differ."""

WEIGHT = "weight"
DRAWN = "drawn"
RANDOMLY = ("random", "imported", None)
"""How subjects are drawn whose labels say something of all; of imported ones the user has to know."""

LEDGER = "ledger"
"""In place of a file of labels: those that the ledger has."""

_SHOWN = 20


@attrs.frozen
class Gold:
    """One label a subject, in the order in which they were given.

    *labels* are by kind and id of the subject, the kind "" where a file does not say it; *digest* is the SHA-256 of the file, or of
    the ledger's labels; *source* is how the user named them. *lines* are the places in a file, by kind and id likewise.
    """

    labels: Mapping[tuple[str, str], GoldLabel] = attrs.field(repr=False)
    digest: str
    source: str
    lines: Mapping[tuple[str, str], int] = attrs.field(repr=False, factory=dict)

    def of(self, kind: str, id: str) -> GoldLabel | None:
        """The label of a subject; one without a kind is about every subject with its id."""
        return self.labels.get((kind, id)) or self.labels.get(("", id))


def decides(label: GoldLabel) -> bool:
    """Whether *label* decides where labels of its subject differ; in CSV the word says so."""
    return label.others.get(ADJUDICATED) in (True, "true")


def read_gold(source: Path | str, ledger: Ledger | None = None) -> Gold:
    """The labels in the file *source*, or with the word ``ledger`` those of *ledger*.

    :raises DataError: naming every bad line; also where the labels of a subject differ, or are weighted.
    """
    if str(source) == LEDGER and ledger is not None and not Path(LEDGER).exists():
        return ledger_gold(ledger)
    with InputFile.opened(Path(source)) as file, InputCheck(file) as check:
        lines = list(gold_labels(file, check))
        if (apart := next(((number, key) for number, label in lines if (key := _apart(label))), None)) is not None:
            number, key = apart
            wrong = (
                f"labels with {'a' if key == WEIGHT else 'such a'} {key!r} were not drawn with equal chances, and nothing that is said about all subjects would hold; "
                "label subjects that are drawn at random (dicast label --random N), and leave the column out"
            )
            file.fault(Problem(wrong, path=key), number, check)
        for number, problem in _differing(
            lines, " on line {}", "keep one of the two lines, or mark it as adjudicated: true"
        ):
            file.fault(problem, number, check)
        digest = check.finish(len(lines))
    places = {(label.kind, label.subject_id): number for number, label in reversed(lines)}
    return Gold(_one_each(label for _, label in lines), digest, file.label, places)


def _apart(label: GoldLabel) -> str | None:
    """The key by which *label* says that its subject was not drawn with the chance of all others."""
    return WEIGHT if WEIGHT in label.others else None if label.others.get(DRAWN) in RANDOMLY else DRAWN


def given_labels(ledger: Ledger) -> list[tuple[Event, GoldLabel]]:
    """Every label that *ledger* has, with its event, the oldest first; of one labeller's on a subject the newest."""
    newest: dict[tuple[str, str, str | None, bool], tuple[Event, GoldLabel]] = {}
    for entry in ledger.read(Query(types=(LABEL_GIVEN,))):
        event = entry.event
        label = from_event(event)
        key = (label.kind, label.subject_id, label.labeller, decides(label))
        newest[key] = event, label
    return list(newest.values())


def randomly_given(ledger: Ledger) -> list[tuple[Event, GoldLabel]]:
    """Those of :func:`given_labels` whose subjects were drawn at random."""
    return [(event, label) for event, label in given_labels(ledger) if event.payload.get(DRAWN) in RANDOMLY]


def from_event(event: Event) -> GoldLabel:
    """The label that an event ``label.given`` holds."""
    payload = event.payload
    score, labeller, kind = payload["score"], payload.get("labeller"), payload.get("subject_kind")
    others = {ADJUDICATED: True} if payload.get(ADJUDICATED) is True else {}
    return GoldLabel(
        str(payload["subject"]),
        float(score),  # type: ignore[arg-type]  # the command that writes it has checked
        str(kind or ""),
        None if labeller is None else str(labeller),
        event.session_id,
        others,
    )


def ledger_gold(ledger: Ledger) -> Gold:
    """The labels that *ledger* has of subjects drawn at random; those drawn otherwise (stratified, disagreements) say nothing of all.

    :raises ConfigError: where there are none.
    :raises DataError: where two differ and nobody has decided between them.
    """
    labels = [label for _, label in randomly_given(ledger)]
    if not labels and (given := len(given_labels(ledger))):
        raise ConfigError(
            f"none of the {given} labels in the ledger is of subjects drawn at random, so that they say nothing of all: dicast label FILE --random N"
        )
    if not labels:
        raise ConfigError(
            "the ledger has no labels; dicast label FILE gives some, dicast labels import FILE takes them from a file"
        )
    step = "decide between them with dicast labels adjudicate"
    problems = [problem for _, problem in _differing(list(enumerate(labels, 1)), "", step)]
    if problems:
        raise DataError(problems[:_SHOWN])
    told = [[label.kind, label.subject_id, label.score, label.labeller] for label in labels]
    return Gold(_one_each(labels), sha256(orjson.dumps(told)).hexdigest(), "the ledger's labels")


def _differing(lines: Sequence[tuple[int, GoldLabel]], where: str, step: str) -> Iterable[tuple[int, Problem]]:
    """What to say of each subject with labels that differ, with the line of the later one; *where* is the first one, *step* what to do."""
    first: dict[tuple[str, str], tuple[int, GoldLabel]] = {}
    decided = {(label.kind, label.subject_id) for _, label in lines if decides(label)}
    for number, label in lines:
        subject = (label.kind, label.subject_id)
        line, before = first.setdefault(subject, (number, label))
        if before.score != label.score and subject not in decided:
            named = before.labeller or label.labeller
            who = f" ({before.labeller or 'nobody named'} and {label.labeller or 'nobody named'})" if named else ""
            wrong = f"subject {label.subject_id!r} has two labels that differ, {before.score:g}{where.format(line)} and {label.score:g}{who}; {step}"
            yield number, Problem(wrong, path="score", value=label.score)


def _one_each(labels: Iterable[GoldLabel]) -> dict[tuple[str, str], GoldLabel]:
    """One label a subject, at the place of its first; what was decided stands before what was not."""
    found: dict[tuple[str, str], GoldLabel] = {}
    for label in labels:
        subject = (label.kind, label.subject_id)
        if subject not in found or decides(label):
            found[subject] = label
    return found
