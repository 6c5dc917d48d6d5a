"""Slots of components in a pipeline, and the digests that distinguish two pipelines."""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any

import attrs
import orjson

from ...toolkit.json_values import MISSING
from ..contract.implements import implements
from ..contract.kinds import parts
from ..contract.plugin_errors import error_text
from ..contract.protocols import ChatModel, Extractor, Judge, estimate
from ..plan.sections import Pipeline, Scoring, Slot, SlotOptions
from ..values import KINDS, PARENTS, Rubric, Subject
from .builder import Built
from .default_ledger import ledger_component
from .describe import describe
from .faults import Fault, Invalid, Path

_SCORES = "scores"
_PAYING = ("metric", "judge", "task", "model")
"""Kinds of components whose calls are reserved and settled."""

_COUNTS = ("name", "distribution", "version", "options", "tier", "weight", "on", "range", "on_failure")
"""Members of a slot that its digests cover."""


def make_slot(
    built: Built,
    path: str,
    options: Mapping[str, object],
    counting: Mapping[str, object],
    reads: Sequence[object],
    **slot: Any,
) -> Slot:
    """Return the slot of *built*, whose effective *options* are at *path*; *slot* are the slot options.

    *counting* are the options that can change a score; *reads* are the digests of further inputs.
    """
    component = built.component
    draft = Slot(
        label=getattr(built.slot_options, "label", None) or component.name,
        name=component.name,
        component=built.live,
        kind=component.kind,
        version=component.version,
        distribution=component.distribution,
        path=path,
        options=options,
        counting=counting,
        fingerprint="",
        **slot,
    )
    counts = {key: getattr(draft, key) for key in _COUNTS}
    rubrics = [
        describe(part, {}, {}) for part in parts(built.live) if isinstance(part, Rubric)
    ]  # includes rubrics that are no option
    counts |= {"rubrics": rubrics} | ({"reads": reads} if reads else {})
    order = {} if draft.shuffle is None else {"shuffle": draft.shuffle}  # the order changes no score
    return attrs.evolve(draft, setup=digest(counts | order), fingerprint=digest(counts | {"options": counting}))


def unpaid_model(built: Built) -> str | None:
    """Return the reason to refuse *built* if it has a chat model or a judge inside and no cap covers its kind; else None."""
    kind = built.component.kind
    if kind in _PAYING or not any(_is_model_or_judge(part) for part in parts(built.live) if part is not built.live):
        return None
    article = "an" if kind[0] in "aeiou" else "a"
    return (
        f"{built.component.name} has a chat model or a judge inside, but no cap covers the calls of {article} {kind.replace('_', ' ')}. "
        "Call the model in a task, a metric or a judge"
    )


def _is_model_or_judge(part: object) -> bool:
    """Return True if *part* is a chat model or a judge; an option called ``judge`` makes no judge."""
    is_judge = implements(part, Judge) and callable(part.judge)
    return not isinstance(part, type) and (is_judge or (implements(part, ChatModel) and callable(part.complete)))


def judges_inside(component: Any) -> Iterator[tuple[str, Judge]]:
    """Yield the address and the judge for each judge in *component*, at any depth. The address, such as ``.stages[0]``, is part of the judge's label."""
    for field in attrs.fields(type(component)) if attrs.has(type(component)) else ():
        yield from _judges_at(f".{field.alias}", getattr(component, field.name, None))


def _judges_at(at: str, value: object) -> Iterator[tuple[str, Judge]]:
    if isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from _judges_at(f"{at}[{index}]", item)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _judges_at(f"{at}.{key}", item)
    elif implements(value, Judge) and not isinstance(value, type):
        yield at, value
        yield from ((f"{at}{deeper}", judge) for deeper, judge in judges_inside(value))


def preset_metrics(preset: Built, place: Path) -> list[object]:
    """Return the metrics of *preset* at *place*, as a file would have them, with its slot keys in each; its ``as`` becomes a prefix.

    :raises Invalid: when the preset raises.
    """
    slot_keys = {
        field.metadata.get("keys", (field.name,))[0]: list(value) if isinstance(value, tuple) else value
        for field in attrs.fields(SlotOptions)
        if (value := getattr(preset.slot_options, field.name)) != field.default
    }
    try:
        return [_member(item, slot_keys) for item in preset.live.metrics()]
    except Exception as error:  # code of a plugin
        message = f"{preset.component.name} cannot list its metrics: {type(error).__name__}: {error_text(error)}"
        raise Invalid([Fault(place, message, plugin=True)]) from error


def _member(item: object, slot_keys: Mapping[str, object]) -> object:
    match [*item.items()] if isinstance(item, Mapping) else [(item, {})]:
        case [(str(name), Mapping() as options)]:
            label = (
                {"as": f"{slot_keys['as']}/{options.get('as', name.rpartition('/')[2])}"} if "as" in slot_keys else {}
            )
            return {name: {**slot_keys, **options, **label}}
    raise TypeError(f"an item is NAME or {{NAME: {{options}}}}, not {item!r:.100}")


def with_children(built: Built, before: Sequence[Slot]) -> Built:
    """Return *built*; if it reads child verdicts without naming a judge, it gets the last suitable judge *before* it."""
    labels = children_labels(built.live, before)
    if getattr(built.live, "children", labels) is None and labels:
        return attrs.evolve(built, live=attrs.evolve(built.live, children=labels[-1]))
    return built


def children_labels(judge: Slot | object, slots: Sequence[Slot]) -> list[str]:
    """Return the labels of the *slots* that judge the parts of the subjects of *judge*."""
    component = judge.component if isinstance(judge, Slot) else judge
    parents = getattr(component, "accepts", ())
    kinds = [child for child, parent in PARENTS.items() if parent in parents]
    return [slot.label for slot in slots if kinds and any(map(slot.accepts, kinds))]


def digest(data: object) -> str:
    """Return the SHA-256 of *data* as canonical JSON, in hex."""
    return sha256(orjson.dumps(data, option=orjson.OPT_SORT_KEYS)).hexdigest()


def digests(
    digest_of: Callable[[Slot], str],
    singles: Mapping[str, Slot | None],
    scoring: Scoring,
    lists: Mapping[str, Sequence[Slot]],
) -> Mapping[str, str]:
    """Return the digest of each slot, computed by *digest_of*, and of the scoring, by the name that users know."""
    excluded = (
        "pass_at",
        "combine" if scoring.combine == "all" else "",
    )  # no part of a score; and compatible with versions before the option
    scored = {key: value for key, value in attrs.asdict(scoring).items() if key not in excluded}
    if scoring.audit is not None and scoring.audit.strata is None:
        scored["audit"] = {
            key: value for key, value in scored["audit"].items() if key != "strata"
        }  # compatible as well
    return {
        **{section: digest_of(slot) for section, slot in singles.items() if slot is not None},
        "scoring": digest(scored),
        **{f"{section}[{slot.label}]": digest_of(slot) for section, slots in lists.items() for slot in slots},
    }


def clash(extractor: Extractor, other: Extractor) -> str | None:
    """Return a place under ``metrics`` that both extractors write, or None."""
    for place in extractor.writes:
        for other_place in other.writes:
            if f"{place}.".startswith(f"{other_place}.") or f"{other_place}.".startswith(f"{place}."):
                return max(place, other_place, key=len)
    return None


def names(value: object) -> tuple[str, ...] | None:
    """Return the names in *value*; None if *value* is no collection of texts, because a plugin may use the option's name for another purpose."""
    several = tuple(value) if isinstance(value, Collection) and not isinstance(value, str) else (None,)
    return several if all(isinstance(name, str) for name in several) else None


def own_criteria(component: object) -> dict[Path, str] | None:
    """Return the criteria that an extractor, an aggregate or a comparison is limited to, by the place in its options.

    Empty without a limit. None if it has no option for criteria; an option with such a name and other values does not count.
    """
    if getattr(component, "source_field", _SCORES) != _SCORES:
        return {}
    criterion, several = getattr(component, "criterion", MISSING), getattr(component, "criteria", MISSING)
    if criterion and isinstance(criterion, str):
        return {("criterion",): criterion}
    if (criteria := names(several)) is not None:
        return {("criteria", index): name for index, name in enumerate(criteria)}
    return {} if isinstance(criterion, str | None) or several is None else None


def score_names(extractors: Sequence[Extractor], criteria: Sequence[str]) -> Sequence[str]:
    """Return the names of the scores that *extractors* make of *criteria*; empty if the names are not known before the run.

    They are unknown if an extractor writes all scores at once, unless it has an option for criteria that sets no limit.
    """
    if not extractors or any(_SCORES in extractor.writes and own_criteria(extractor) != {} for extractor in extractors):
        return ()
    written = [place for extractor in extractors for place in extractor.writes]
    return [*dict.fromkeys([*criteria, *(place.rpartition(".")[2] for place in written if "." in place)])]


def finest_kind(source: Slot | None) -> tuple[str, ...]:
    """Return the finest kind of subject that *source* yields; empty if it does not declare kinds."""
    kinds = tuple(getattr(source.component, "kinds", ())) if source is not None else ()
    ordered = [kind for kind in KINDS if kind in kinds]
    return tuple(ordered or kinds)[:1]


def kind_notes(source: Slot | None, slots: Sequence[Slot]) -> Iterator[tuple[str, str]]:
    """Yield a warning for each of *slots* that accepts no kind of subject that *source* declares: it judges nothing."""
    kinds = tuple(getattr(source.component, "kinds", ())) if source is not None else ()
    for slot in slots:
        if source is not None and kinds and not any(map(slot.accepts, kinds)):
            accepted, yielded = " and ".join(slot.on), " and ".join(kinds)
            fix = "use a judge or metric of that kind, or a source with other subjects"
            yield (
                "unaccepted_kind",
                f"{slot.label} judges subjects of kind {accepted}, and {source.name} yields {yielded}, so it judges nothing; {fix}",
            )


def costs(component: object) -> bool:
    """Return True if a call of *component*, or of a judge inside it, may cost money, as far as known without a subject."""
    return any(_costs(part) for part in parts(component) if hasattr(part, "estimate"))


def _costs(component: Any) -> bool:
    try:
        cost = estimate(component, Subject("row", "0"))
    except Exception:  # an estimate that needs a real subject is unknown here; the runner calls it for each subject
        return False
    return not cost.is_zero


def ledger_slot(pipeline: Pipeline) -> Slot:
    """Return the pipeline's ledger, or the default ledger."""
    return pipeline.ledger or ledger_at(None)


def ledger_at(place: pathlib.Path | str | None) -> Slot:
    """Return the ledger at *place*, or the default ledger."""
    component, live = ledger_component(place)
    return Slot(
        component.name,
        component.name,
        live,
        component.kind,
        component.version,
        component.distribution,
        "ledger",
        {},
        "",
    )
