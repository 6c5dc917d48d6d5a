"""Builds a pipeline from its file: every component made and checked, nothing opened, nothing run."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from ...toolkit.overwriting import is_same_file
from ..contract.registry import Registry
from ..plan.sections import (
    METRICS,
    PASS_AT,
    SECTIONS,
    Budget,
    Pipeline,
    Plugins,
    Scoring,
    Slot,
    SlotOptions,
    SourceOptions,
    TaskOptions,
    Tier,
)
from ..values.names import nearest
from ..values.paths import descriptor
from .builder import Built
from .faults import Part
from .faults import Path as Address
from .gate import GateParts
from .labels import file_labels
from .misplaced import belongs
from .parts import Placed
from .problems import refusal
from .raw_scale import metric_faults, raw_labels
from .read import Document, PipelineFile, Source, read_pipeline
from .slots import children_labels, costs, digests, finest_kind, preset_metrics, with_children

_TIERS: tuple[Tier, ...] = get_args(Tier)
_METRIC_KINDS = ("metric", "judge")
_EXECUTOR = "dicast/async"


def load_pipeline(
    source: Source,
    overrides: Mapping[str, object] | Sequence[str] = (),
    environ: Mapping[str, str] = os.environ,
    *,
    needs_source: bool = True,
    ready: Mapping[str, object] | None = None,
    experiment: str | None = None,
) -> Pipeline:
    """Read, check and build a pipeline: a file (Path), YAML text (str) or a mapping; of a suite, one *experiment*.

    :param needs_source: whether a pipeline without a source is wrong; else its source is None.
    :param ready: components that are built already, under the names by which the pipeline refers to them.
    :raises ConfigError: with everything that is wrong.
    :raises PluginError: when nothing but installed plugins is.
    """
    file = read_pipeline(source, overrides, environ)
    return build_pipeline(file, needs_source=needs_source, ready=ready, experiment=experiment)


def build_pipeline(
    file: PipelineFile,
    *,
    needs_source: bool = True,
    ready: Mapping[str, object] | None = None,
    experiment: str | None = None,
) -> Pipeline:
    """Check and build a pipeline that was read; it takes and raises what :func:`load_pipeline` does."""
    document = file.document(experiment)
    plugins = document.data.get("plugins")
    block = plugins.get("block") if isinstance(plugins, dict) else None
    names = [name for name in block if isinstance(name, str)] if isinstance(block, list) else []
    building = _Building(document, Registry(names, file.environ), ready or {}, needs_source=needs_source)
    pipeline = building.pipeline()
    if building.faults or document.problems or pipeline is None:
        raise refusal(document, building.faults)
    return pipeline


class _Building(GateParts):
    """The building of one pipeline; what is wrong is added to *faults*, and the rest is still built."""

    def __init__(
        self, document: Document, registry: Registry, ready: Mapping[str, object], *, needs_source: bool
    ) -> None:
        super().__init__(document, registry, ready)
        self._needs_source = needs_source

    def pipeline(self) -> Pipeline | None:
        """Build all sections; None when the pipeline cannot be built."""
        executor = self._single("executor", "executor", _EXECUTOR)
        self._check_sections(executor)
        self._builder.reads = self._needs_source
        source = self._single("source", "source", beside=SourceOptions)
        self._builder.reads = True
        task = self._single("task", "task", beside=TaskOptions)
        extractors = self._extractors(task)
        metrics, judges = self._metrics(source), self._judges()
        scoring, gate = self._section("scoring", Scoring, Scoring()), self._gate()
        budget, disabled = self._section("budget", Budget, Budget()), self._section("disabled", bool, False)
        self._section("plugins", Plugins, None)
        trust = self._section("trust", tuple[Path, ...], ())
        aggregates, stops = self._labelled("aggregates", "aggregate"), self._labelled("early_stop", "early_stop")
        self._check_criteria(aggregates, self._scored)
        baseline, sinks = self._baseline(), self._labelled("sinks", "sink")
        ledger = self._single("ledger", "ledger")
        self._check_labels([*metrics, *judges])
        for at, message, value in metric_faults(metrics, scoring, task):
            self._fault(at, message, value)
        scored, open_ended = (_slots(metrics), _slots(judges)), bool(extractors) and not self._scored
        stops = self._with_label(stops, gate, file_labels(*scored, self._criteria))
        self._check_gate(gate, *scored, () if task or extractors else (*stops, *sinks), open_ended=open_ended)
        self._check_stops(stops, gate, source, file_labels(*scored, self._criteria), raw_labels(scored[0]))
        self._check_children(judges)
        self._check_files([(("source",), source), (("ledger",), ledger), *sinks])
        self._builder.check_unused(self.faults)
        name = self._section("name", str, _stem(self._document.file))
        if executor is None or self.faults:
            return None
        placed = {"metrics": metrics, "judges": judges, "extractors": extractors}
        placed |= {"aggregates": aggregates, "early_stop": stops}
        lists, singles = {section: _slots(those) for section, those in placed.items()}, {"source": source, "task": task}
        return Pipeline(
            name=name if self._document.experiment is None else f"{name}/{self._document.experiment}",
            experiment=self._document.experiment,
            file=self._document.file,
            base=self._document.base,
            source=source,
            task=task,
            scoring=scoring,
            budget=budget,
            gate=gate,
            baseline=baseline,
            sinks=_slots(sinks),
            ledger=ledger,
            executor=executor,
            disabled=disabled or budget.disabled,
            trust=trust,
            fingerprints=digests(lambda slot: slot.fingerprint, singles, scoring, lists),
            setup=digests(lambda slot: slot.setup, singles, scoring, lists),
            criteria=self._criteria,
            **lists,
        )

    def _check_sections(self, executor: Slot | None) -> None:
        for key in self._file:
            if key not in SECTIONS:
                place = belongs(key, self._file[key], executor)
                told = f"unknown section {key!r}" + (f"; {place}" if place else "")
                self._fault((), told, key, None if place else nearest(key, SECTIONS), key)
        if self._needs_source and "source" not in self._file:
            self._fault((), "the pipeline needs a source, such as source: {rows/jsonl: {path: FILE}}")
        metrics = self._file.get("metrics")
        others = any(self._file.get(section) for section in ("judges", "task", "extractors"))
        if not (any(metrics.values()) if isinstance(metrics, Mapping) else metrics) and not others:
            self._fault((), "the pipeline needs metrics or judges, or a task: nothing would be judged")
        define = self._file.get("define", {})
        if not isinstance(define, Mapping):
            self._fault(("define",), "define is a mapping of names to components")
            return
        for key in define:
            if "/" in key:
                self._fault(("define",), f"{key!r} under define: a name of your own has no slash", key, None, key)

    def _metrics(self, source: Slot | None) -> list[Placed]:
        given = self._file.get("metrics", [])
        lists: dict[Tier | None, Any] = {None: given}
        if isinstance(given, Mapping):
            lists = {tier: given[tier] for tier in _TIERS if tier in given}
            for key in given:
                if key not in _TIERS:
                    message = f"metrics are a list, or {{proxy: [], truth: []}}, not {key!r}"
                    self._fault(("metrics",), message, key, nearest(key, _TIERS), key)
        made = []
        for tier, items in lists.items():
            top: Address = ("metrics",) if tier is None else ("metrics", tier)
            for placed in self._list(top, items, (*_METRIC_KINDS, "preset"), SlotOptions):
                for path, built in self._members(*placed):
                    own = built.component.tier or "truth"  # a judge has no tier of its own
                    made.append((path, self._judging(path, built, tier or own, finest_kind(source))))
        return made

    def _members(self, path: Address, built: Built) -> list[tuple[Address, Built]]:
        """The metrics that a preset stands for; of anything else, itself."""
        if built.component.kind != "preset":
            return [(path, built)]
        place, items = (*path, Part(built.component.name)), list[object]()
        with self._structurer.at(faults=self.faults):
            items = preset_metrics(built, place)
        return self._list(place, items, _METRIC_KINDS, SlotOptions)

    def _judges(self) -> list[Placed]:
        made: list[Placed] = []
        for path, built in self._list(("judges",), self._file.get("judges", []), ("judge",), SlotOptions):
            slot = self._judging(path, with_children(built, [slot for _, slot in made]), "truth", ())
            made.append((path, slot))
        return made

    def _judging(self, path: Address, built: Built, tier: str, default_on: tuple[str, ...]) -> Slot:
        """Make the slot of a metric or judge, whose options had slot options beside."""
        beside: SlotOptions = built.beside
        accepts = tuple(getattr(built.live, "accepts", ()))
        refused = [kind for kind in beside.on if accepts and kind not in accepts]
        if refused:
            place = (*path, Part(built.component.name), "on")
            self._fault(place, f"{built.component.name} judges {', '.join(accepts)}, not {refused[0]}", refused[0])
        if tier == "proxy" and costs(built.live):
            message = f"{built.component.name} costs money, and proxies always run: move it to 'truth'"
            self._fault(path, message)
        if beside.label == METRICS:
            self._fault(path, f"the label {METRICS!r} belongs to the combined verdict; choose another with 'as'")
        scale, line = self._scale(path, built), beside.pass_at
        is_raw = scale is None and bool(getattr(built.live, "needs_range", False))
        if line is None and not is_raw:
            line = getattr(built.live, "default_pass_at", PASS_AT)
        elif line is not None and not is_raw and not 0 <= line <= 1:
            message = f"invalid value for pass_at, expected a number from 0 to 1, got {line:g}"
            self._fault((*path, Part(built.component.name), "pass_at"), message, line)
        on = beside.on or accepts or default_on
        return self._slot(path, built, tier=tier, on=on, range=scale, pass_at=line, is_raw=is_raw)

    def _scale(self, path: Address, built: Built) -> tuple[float, float] | None:
        """Return the slot's range, from worst to best."""
        scale: tuple[float, float] | None = built.beside.range
        falls = getattr(built.live, "lower_is_better", False)
        if scale is None and falls:
            message = f"{built.component.name} gives any number: write what it lies between, as in range: [0, 100]"
            self._fault((*path, Part(built.component.name)), message)
        return (scale[1], scale[0]) if scale is not None and falls else scale

    def _check_files(self, placed: Sequence[tuple[Address, Slot | None]]) -> None:
        """Find a sink that would write over the source, the ledger, another sink, or any file that the pipeline reads."""
        own = {file for _, slot in placed if slot is not None and isinstance(file := _path(slot), Path)}
        first = dict.fromkeys(self._document.files(), "a file of the pipeline")
        first |= {
            file: f"{text}, which the run reads," for file, text in self._builder.written.items() if file not in own
        }
        first |= {file: f"{file.name}, which the run reads," for file in self._contents.files}
        for path, slot in placed:
            file = None if slot is None else _path(slot)
            if slot is None or not isinstance(file, Path):
                continue
            other = next((known for known in first if is_same_file(file, known)), None)
            if other is not None and path[0] in ("sinks", "ledger"):
                message = f"{slot.path} would write over {first[other]}: {file}; give it a file of its own"
                self._fault((*path, Part(slot.name), "path"), message, self._builder.written.get(file))
            first.setdefault(file, slot.path)

    def _check_children(self, judges: Sequence[Placed]) -> None:
        for path, slot in judges:
            named, labels = getattr(slot.component, "children", None), children_labels(slot, _slots(judges))
            if labels and named not in (None, *labels):
                message = f"{slot.name} reads the verdicts of one of {', '.join(labels)}, not {named!r}"
                self._fault((*path, Part(slot.name), "children"), message, named, nearest(str(named), labels))


def _path(slot: Slot) -> Any:
    return getattr(slot.component, "path", None)


def _slots(placed: Sequence[Placed]) -> tuple[Slot, ...]:
    return tuple(slot for _, slot in placed)


def _stem(file: str) -> str:
    return "pipeline" if file.startswith("<") or descriptor(Path(file)) is not None else Path(file).stem
