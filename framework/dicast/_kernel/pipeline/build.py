"""Builder of a pipeline from its file. Every component is made and checked; nothing is opened or run."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...toolkit.overwriting import is_same_file
from ..classes import evolve
from ..contract.protocols import splits_runs
from ..contract.registry import Registry
from ..plan.sections import (
    SECTIONS,
    Budget,
    Pipeline,
    Plugins,
    Scoring,
    Slot,
    SourceOptions,
    TaskOptions,
)
from ..values.names import nearest
from ..values.paths import descriptor
from .experiment import ExperimentSections
from .faults import Fault, Part
from .faults import Path as Address
from .gate import GatedLabels, GateSection
from .metrics import MetricSections
from .only import OnlyLabels
from .parts import Placed, SectionBuilder
from .raw_scale import metric_faults
from .read import Document, PipelineFile, Source, read_pipeline
from .slots import digests, kind_notes
from .stops import check_stops, with_score_label

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
    """Read, check and build a pipeline: a file (Path), YAML text (str) or a mapping; for a suite, one *experiment*.

    :param needs_source: True if a pipeline without a source is invalid; otherwise its source is None.
    :param ready: finished components by the names that the pipeline uses for them.
    :raises ConfigError: with every problem.
    :raises PluginError: when every problem is caused by installed plugins.
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
    """Check and build the pipeline *file*. Arguments and errors are the same as for :func:`load_pipeline`."""
    document = file.document(experiment)
    plugins = document.data.get("plugins")
    block = plugins.get("block") if isinstance(plugins, dict) else None
    names = [name for name in block if isinstance(name, str)] if isinstance(block, list) else []
    building = _Building(document, Registry(names, file.environ), ready or {}, needs_source=needs_source)
    pipeline = building.pipeline()
    if building.faults or document.problems or pipeline is None:
        from .problems import refusal  # needed for invalid files alone

        raise refusal(document, building.faults) from next((f.cause for f in building.faults if f.cause), None)
    if not splits_runs(pipeline.executor.component):
        return pipeline
    from .plain_spec import plain_spec  # few executors need the pipeline as data

    return evolve(pipeline, spec=plain_spec(file, experiment, ready or ()))


class _Building:
    """Builder of one pipeline. Faults are added to the sections' *faults*, and the rest is still built."""

    def __init__(
        self, document: Document, registry: Registry, ready: Mapping[str, object], *, needs_source: bool
    ) -> None:
        self._document, self._file, self._needs_source = document, document.data, needs_source
        self._sections = SectionBuilder(document, registry, ready)
        self._experiment, self._gate = ExperimentSections(self._sections), GateSection(self._sections)
        self._metrics = MetricSections(self._sections)

    @property
    def faults(self) -> list[Fault]:
        """The faults of all sections."""
        return self._sections.faults

    def pipeline(self) -> Pipeline | None:
        """Build all sections; None when the pipeline cannot be built."""
        sections, experiment = self._sections, self._experiment
        executor = sections.single("executor", "executor", _EXECUTOR)
        self._check_sections(executor)
        sections.builder.reads = self._needs_source
        source = sections.single("source", "source", slot_class=SourceOptions)
        sections.builder.reads = True
        task = sections.single("task", "task", slot_class=TaskOptions)
        extractors = experiment.extractors(task)
        only = OnlyLabels(sections, self._document.only)
        metrics, judges = only.keep(self._metrics.read(source), self._metrics.judges(), experiment.criteria)
        scoring, gate = only.scoring(metrics), only.gate(self._gate.read())
        budget, disabled = sections.section("budget", Budget, Budget()), sections.section("disabled", bool, False)
        sections.section("plugins", Plugins, None)
        trust = sections.section("trust", tuple[Path, ...], ())
        aggregates, stops = sections.labeled("aggregates", "aggregate"), sections.labeled("early_stop", "early_stop")
        experiment.check_criteria(aggregates, experiment.score_names)
        baseline, sinks = experiment.baseline(), sections.labeled("sinks", "sink")
        ledger = sections.single("ledger", "ledger")
        sections.check_labels([*metrics, *judges])
        metrics = self._with_scale(metrics, scoring, task)
        is_open = bool(extractors) and not experiment.score_names
        labels = GatedLabels(_slots(metrics), _slots(judges), experiment.score_names, experiment.criteria, is_open)
        stops = with_score_label(sections, stops, gate, labels.declared)
        self._gate.check(gate, scoring, labels, () if task or extractors else (*stops, *sinks))
        check_stops(sections, stops, gate, source, labels, has_metrics=bool(task or extractors))
        self._metrics.check_children(judges)
        self._check_files([(("source",), source), (("ledger",), ledger), *sinks])
        sections.builder.check_unused(self.faults)
        name = sections.section("name", str, _stem(self._document.file))
        if executor is None or self.faults:
            return None
        placed = {"metrics": metrics, "judges": judges, "extractors": extractors}
        placed |= {"aggregates": aggregates, "early_stop": stops}
        lists, singles = {section: _slots(slots) for section, slots in placed.items()}, {"source": source, "task": task}
        return Pipeline(
            name=name if self._document.experiment is None else f"{name}/{self._document.experiment}",
            experiment=self._document.experiment,
            file=self._document.file,
            named=self._document.named,
            base=self._document.base,
            source=source,
            task=task,
            scoring=scoring,
            budget=budget,
            gate=gate,
            baseline=baseline,
            place=self._document.place_parts,
            sinks=_slots(sinks),
            ledger=ledger,
            executor=executor,
            disabled=disabled or budget.disabled,
            trust=trust,
            fingerprints=digests(lambda slot: slot.fingerprint, singles, scoring, lists),
            setup=digests(lambda slot: slot.setup, singles, scoring, lists),
            criteria=experiment.criteria,
            notes=(*self._document.notes, *only.warnings, *kind_notes(source, _slots([*metrics, *judges]))),
            files=self._files([ledger, *_slots(sinks)]),
            **lists,  # type: ignore[arg-type]  # no list is called spec
        )

    def _with_scale(self, metrics: list[Placed], scoring: Scoring, task: Slot | None) -> list[Placed]:
        """Return *metrics* with the line of ``scoring.pass_at``, and report the faults of metrics on a raw scale."""
        for at, message, value in metric_faults(metrics, scoring, task):
            self._sections.fault(at, message, value)
        return self._metrics.with_line(metrics, scoring)

    def _files(self, written: Sequence[Slot | None]) -> tuple[Path, ...]:
        """Return the files and folders that the pipeline is made of or reads, without the files that *written* write."""
        outputs = {_path(slot) for slot in written if slot is not None}
        sections = self._sections
        files = dict.fromkeys([*self._document.files(), *sections.builder.written, *sections.contents.inputs])
        return tuple(path for path in files if path not in outputs and (path.is_file() or path.is_dir()))

    def _check_sections(self, executor: Slot | None) -> None:
        for key in self._file:
            if key not in SECTIONS:
                from .clause import clause_keys
                from .unknown_keys import right_place  # needed for invalid files alone

                place = right_place(key, self._file[key], executor, clause_keys())
                words = (section for section in SECTIONS if key in section.split("_"))
                hint = None if place else nearest(key, SECTIONS) or next(words, None)
                if hint is None and not place:
                    place = f"the sections are {', '.join(SECTIONS)}"
                message = f"unknown section {key!r}" + (f"; {place}" if place else "")
                self._sections.fault((), message, key, hint, key)
        if self._needs_source and "source" not in self._file:
            self._sections.fault((), "the pipeline needs a source, such as source: {rows/jsonl: {path: FILE}}")
        metrics = self._file.get("metrics")
        has_others = any(self._file.get(section) for section in ("judges", "task", "extractors"))
        if not (any(metrics.values()) if isinstance(metrics, Mapping) else metrics) and not has_others:
            self._sections.fault((), "the pipeline needs metrics, judges or a task; otherwise nothing is judged")
        define = self._file.get("define", {})
        if not isinstance(define, Mapping):
            self._sections.fault(("define",), "define is a mapping of names to components")
            return
        for key in define:
            if "/" in key:
                self._sections.fault(
                    ("define",), f"{key!r} under define: your own name must not contain a slash", key, None, key
                )

    def _check_files(self, placed: Sequence[tuple[Address, Slot | None]]) -> None:
        """Report a sink that would overwrite the source, the ledger, another sink, or any file that the pipeline reads."""
        slot_files = {file for _, slot in placed if slot is not None and isinstance(file := _path(slot), Path)}
        first = dict.fromkeys(self._document.files(), "a file of the pipeline")
        first |= {
            file: f"{text}, which the run reads,"
            for file, text in self._sections.builder.written.items()
            if file not in slot_files
        }
        first |= {file: f"{file.name}, which the run reads," for file in self._sections.contents.files}
        for path, slot in placed:
            file = None if slot is None else _path(slot)
            if slot is None or not isinstance(file, Path):
                continue
            other = next((file_ for file_ in first if is_same_file(file, file_)), None)
            if other is not None and path[0] in ("sinks", "ledger"):
                message = f"{slot.path} would overwrite {first[other]}: {file}; use another file"
                self._sections.fault(
                    (*path, Part(slot.name), "path"), message, self._sections.builder.written.get(file)
                )
            first.setdefault(file, slot.path)


def _path(slot: Slot) -> Any:
    return getattr(slot.component, "path", None)


def _slots(placed: Sequence[Placed]) -> tuple[Slot, ...]:
    return tuple(slot for _, slot in placed)


def _stem(file: str) -> str:
    return "pipeline" if file.startswith("<") or descriptor(Path(file)) is not None else Path(file).stem
