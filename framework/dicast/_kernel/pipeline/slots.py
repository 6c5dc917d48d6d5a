"""What the kernel makes of a component where the pipeline uses it, and the digests that tell two pipelines apart."""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any

import attrs
import orjson

from ...toolkit.json_values import MISSING
from ..contract.kinds import parts
from ..contract.protocols import ChatModel, Extractor, Judge, estimate
from ..plan.sections import Pipeline, Scoring, Slot, SlotOptions
from ..values import KINDS, PARENTS, Rubric, Subject
from ..values.json_form import unstructure
from .builder import Built
from .default_ledger import sqlite_ledger
from .describe import describe
from .faults import Fault, Invalid, Path

_SCORES = "scores"
_PAYING = ("metric", "judge", "task", "model")
"""The kinds of components whose calls are reserved and settled."""

_COUNTS = ("name", "distribution", "version", "options", "tier", "weight", "on", "range", "on_failure")


def make_slot(
    built: Built,
    path: str,
    options: Mapping[str, object],
    counting: Mapping[str, object],
    reads: Sequence[object],
    **slot: Any,
) -> Slot:
    """Return the slot of *built*, whose effective *options* stand at *path*; *slot* are the slot options.

    *counting* are the options without those that can change no number, *reads* the digests of what it reads beside them.
    """
    component = built.component
    made = Slot(
        label=getattr(built.beside, "label", None) or component.name,
        name=component.name,
        component=built.live,
        kind=component.kind,
        version=component.version,
        distribution=component.distribution,
        path=path,
        options=options,
        fingerprint="",
        **slot,
    )
    counts = {key: getattr(made, key) for key in _COUNTS}
    rubrics = [
        describe(part, {}, {}) for part in parts(built.live) if isinstance(part, Rubric)
    ]  # also those of no option
    counts |= {"rubrics": rubrics} | ({"reads": reads} if reads else {})
    order = {} if made.shuffle is None else {"shuffle": made.shuffle}  # which changes no number of a subject
    return attrs.evolve(made, setup=digest(counts | order), fingerprint=digest(counts | {"options": counting}))


def unpaid_model(built: Built) -> str | None:
    """Return why *built* is refused that has a chat model or a judge inside and is of a kind that no cap covers; None if it is not."""
    kind = built.component.kind
    if kind in _PAYING or not any(_asks(part) for part in parts(built.live) if part is not built.live):
        return None
    article = "an" if kind[0] in "aeiou" else "a"
    return (
        f"{built.component.name} has a chat model or a judge inside, and no cap covers the calls of {article} {kind.replace('_', ' ')}. "
        "Ask the model in a task, a metric or a judge"
    )


def _asks(part: object) -> bool:
    """Return whether *part* is a chat model or a judge; an option called ``judge`` makes no judge."""
    is_judge = isinstance(part, Judge) and callable(part.judge)
    return not isinstance(part, type) and (is_judge or (isinstance(part, ChatModel) and callable(part.complete)))


def judges_inside(component: Any) -> Iterator[tuple[str, Judge]]:
    """Each judge that stands in a field of *component*, with where it stands there, as the runner calls it when it opens them."""
    for field in attrs.fields(type(component)) if attrs.has(type(component)) else ():
        yield from _judges_at(f".{field.alias}", getattr(component, field.name, None))


def _judges_at(at: str, value: object) -> Iterator[tuple[str, Judge]]:
    if isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from _judges_at(f"{at}[{index}]", item)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _judges_at(f"{at}.{key}", item)
    elif isinstance(value, Judge) and not isinstance(value, type):
        yield at, value
        yield from ((f"{at}{deeper}", judge) for deeper, judge in judges_inside(value))


def preset_metrics(preset: Built, place: Path) -> list[object]:
    """The metrics that *preset* at *place* stands for, as a file would have them, with its slot keys in each; ``as`` comes before.

    :raises Invalid: when it cannot say.
    """
    given = {
        field.metadata.get("keys", (field.name,))[0]: list(value) if isinstance(value, tuple) else value
        for field in attrs.fields(SlotOptions)
        if (value := getattr(preset.beside, field.name)) != field.default
    }
    try:
        return [_member(item, given) for item in preset.live.metrics()]
    except Exception as error:  # the border: a preset is a plugin's code
        message = f"{preset.component.name} cannot say what it stands for: {type(error).__name__}: {error}"
        raise Invalid([Fault(place, message, plugin=True)]) from error


def _member(item: object, given: Mapping[str, object]) -> object:
    match [*item.items()] if isinstance(item, Mapping) else [(item, {})]:
        case [(str(name), Mapping() as options)]:
            label = {"as": f"{given['as']}/{options.get('as', name.rpartition('/')[2])}"} if "as" in given else {}
            return {name: {**given, **options, **label}}
    raise TypeError(f"an item is NAME or {{NAME: {{options}}}}, not {item!r:.100}")


def with_children(built: Built, before: Sequence[Slot]) -> Built:
    """*built*; a judge whose option ``children`` names whose verdicts it reads, by default the last such judge *before* it."""
    labels = children_labels(built.live, before)
    if getattr(built.live, "children", labels) is None and labels:
        return attrs.evolve(built, live=attrs.evolve(built.live, children=labels[-1]))
    return built


def children_labels(judge: Slot | object, others: Sequence[Slot]) -> list[str]:
    """The labels of the *others* that judge what the subjects of *judge* are made of."""
    component = judge.component if isinstance(judge, Slot) else judge
    parents = getattr(component, "accepts", ())
    kinds = [child for child, parent in PARENTS.items() if parent in parents]
    return [slot.label for slot in others if kinds and any(map(slot.accepts, kinds))]


def digest(data: object) -> str:
    """The SHA-256 of *data* as canonical JSON, in hex."""
    return sha256(orjson.dumps(data, option=orjson.OPT_SORT_KEYS)).hexdigest()


def digests(
    of: Callable[[Slot], str], singles: Mapping[str, Slot | None], scoring: Scoring, lists: Mapping[str, Sequence[Slot]]
) -> Mapping[str, str]:
    """The digest *of* each slot, and of the scoring, by the name a user knows it by."""
    apart = ("pass_at", "combine" if scoring.combine == "all" else "")  # no score's, and as before there was the option
    scored = {key: value for key, value in unstructure(scoring).items() if key not in apart}
    if scoring.audit is not None and scoring.audit.strata is None:
        scored["audit"] = {key: value for key, value in scored["audit"].items() if key != "strata"}  # likewise
    return {
        **{section: of(slot) for section, slot in singles.items() if slot is not None},
        "scoring": digest(scored),
        **{f"{section}[{slot.label}]": of(slot) for section, slots in lists.items() for slot in slots},
    }


def clash(one: Extractor, other: Extractor) -> str | None:
    """A place under ``metrics`` that both extractors write, or None."""
    for mine in one.writes:
        for theirs in other.writes:
            if f"{mine}.".startswith(f"{theirs}.") or f"{theirs}.".startswith(f"{mine}."):
                return max(mine, theirs, key=len)
    return None


def names(value: object) -> tuple[str, ...] | None:
    """The names that *value* holds, or None: what a plugin calls criteria may be something else."""
    several = tuple(value) if isinstance(value, Collection) and not isinstance(value, str) else (None,)
    return several if all(isinstance(one, str) for one in several) else None


def named(component: object) -> dict[Path, str] | None:
    """The criteria that an extractor, an aggregate or a comparison is about alone, by where its options name them.

    None where it has no option for them, whatever else it calls so.
    """
    if getattr(component, "source_field", _SCORES) != _SCORES:
        return {}
    one, several = getattr(component, "criterion", MISSING), getattr(component, "criteria", MISSING)
    if one and isinstance(one, str):
        return {("criterion",): one}
    if (found := names(several)) is not None:
        return {("criteria", index): name for index, name in enumerate(found)}
    return {} if isinstance(one, str | None) or several is None else None


def scored(extractors: Sequence[Extractor], criteria: Sequence[str]) -> Sequence[str]:
    """The names of the scores that *extractors* make of *criteria*; nothing where one of them may make others.

    That is one that writes to the scores as a whole, and has no option for criteria or reads some alone.
    """
    if not extractors or any(_SCORES in one.writes and named(one) != {} for one in extractors):
        return ()
    written = [place for one in extractors for place in one.writes]
    return [*dict.fromkeys([*criteria, *(place.rpartition(".")[2] for place in written if "." in place)])]


def finest_kind(source: Slot | None) -> tuple[str, ...]:
    """The finest kind of subject that *source* yields; nothing if it does not say."""
    kinds = tuple(getattr(source.component, "kinds", ())) if source is not None else ()
    known = [kind for kind in KINDS if kind in kinds]
    return tuple(known or kinds)[:1]


def costs(component: object) -> bool:
    """Whether a call of *component*, or of a judge inside it, may cost money, as far as can be said without a subject."""
    return any(_costs(part) for part in parts(component) if hasattr(part, "estimate"))


def _costs(component: Any) -> bool:
    try:
        cost = estimate(component, Subject("row", "0"))
    except Exception:  # an estimate that needs a real subject says nothing yet; the runner asks it for each
        return False
    return not cost.is_zero


def ledger_slot(pipeline: Pipeline) -> Slot:
    """The pipeline's ledger, or the default one."""
    return pipeline.ledger or ledger_at(None)


def ledger_at(path: pathlib.Path | None) -> Slot:
    """The SQLite ledger at *path*, or the default one."""
    found, live = sqlite_ledger(path)
    return Slot(found.name, found.name, live, found.kind, found.version, found.distribution, "ledger", {}, "")
