"""Sections ``metrics`` and ``judges`` of a pipeline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, get_args

from ..classes import evolve
from ..plan.sections import METRICS, PASS_AT, Scoring, Slot, SlotOptions, Tier
from ..values import RECORDED_PREFIX
from ..values.names import nearest
from .builder import Built
from .faults import Part
from .faults import Path as Address
from .parts import Placed, SectionBuilder
from .slots import children_labels, costs, finest_kind, preset_metrics, with_children

_TIERS: tuple[Tier, ...] = get_args(Tier)
_METRIC_KINDS = ("metric", "judge")


class MetricSections:
    """Builder of the sections ``metrics`` and ``judges`` of a pipeline."""

    def __init__(self, sections: SectionBuilder) -> None:
        self._sections, self._file = sections, sections.file
        self._lines = set[Address]()

    def read(self, source: Slot | None) -> list[Placed]:
        """Return the metrics, proxies first; metrics without kinds of subjects judge the kind of *source*."""
        section = self._file.get("metrics", [])
        lists: dict[Tier | None, Any] = {None: section}
        if isinstance(section, Mapping):
            lists = {tier: section[tier] for tier in _TIERS if tier in section}
            for key in section:
                if key not in _TIERS:
                    message = f"metrics are a list, or {{proxy: [], truth: []}}, not {key!r}"
                    self._sections.fault(("metrics",), message, key, nearest(key, _TIERS), key)
        metrics = []
        for tier, items in lists.items():
            top: Address = ("metrics",) if tier is None else ("metrics", tier)
            for placed in self._sections.components(top, items, (*_METRIC_KINDS, "preset"), SlotOptions):
                for path, built in self._members(*placed):
                    default_tier = built.component.tier or "truth"  # a judge has no tier
                    metrics.append((path, self._judging_slot(path, built, tier or default_tier, finest_kind(source))))
        return metrics

    def _members(self, path: Address, built: Built) -> list[tuple[Address, Built]]:
        """Return the metrics of a preset; for a metric or judge, only itself."""
        if built.component.kind != "preset":
            return [(path, built)]
        place, items = (*path, Part(built.component.name)), list[object]()
        with self._sections.structurer.at(faults=self._sections.faults):
            items = preset_metrics(built, place)
        return self._sections.components(place, items, _METRIC_KINDS, SlotOptions)

    def judges(self) -> list[Placed]:
        """Return the judges; each may read the verdicts of the judges before it."""
        judges: list[Placed] = []
        for path, built in self._sections.components(
            ("judges",), self._file.get("judges", []), ("judge",), SlotOptions
        ):
            slot = self._judging_slot(path, with_children(built, [slot for _, slot in judges]), "truth", ())
            judges.append((path, slot))
        return judges

    def with_line(self, metrics: list[Placed], scoring: Scoring) -> list[Placed]:
        """Return *metrics*; an only metric has the number ``scoring.pass_at`` as its own line, because it is the same judgment as all metrics together.

        An only metric with another number of its own is a fault.
        """
        line = scoring.pass_at
        if len(metrics) != 1 or line == "all" or metrics[0][1].is_raw:
            return metrics
        ((path, slot),) = metrics
        if slot.pass_at != line and path in self._lines:
            message = f"{slot.label}, the only metric, passes at {slot.pass_at:g}, but scoring.pass_at is {line:g}; write the number in one of the two places"
            self._sections.fault((*path, Part(slot.name), "pass_at"), message, slot.pass_at)
        return [(path, evolve(slot, pass_at=line))]

    def _judging_slot(self, path: Address, built: Built, tier: str, default_on: tuple[str, ...]) -> Slot:
        """Return the slot of a metric or judge, with its slot options."""
        options: SlotOptions = built.slot_options
        accepts = tuple(getattr(built.live, "accepts", ()))
        refused = [kind for kind in options.on if accepts and kind not in accepts]
        if refused:
            place = (*path, Part(built.component.name), "on")
            self._sections.fault(
                place, f"{built.component.name} judges {', '.join(accepts)}, not {refused[0]}", refused[0]
            )
        if tier == "proxy" and costs(built.live):
            message = f"{built.component.name} costs money, but proxies always run; move it to 'truth'"
            self._sections.fault(path, message)
        if options.label == METRICS:
            self._sections.fault(
                path, f"the label {METRICS!r} belongs to the combined verdict; choose another with 'as'"
            )
        label = options.label or built.component.name
        if label.startswith(RECORDED_PREFIX):
            message = (
                f"labels with {RECORDED_PREFIX} belong to scores that other tools recorded; choose another with 'as'"
            )
            self._sections.fault(path, message, label)
        scale, line = self._scale(path, built), options.pass_at
        is_raw = scale is None and bool(getattr(built.live, "needs_range", False))
        if line is None and not is_raw:
            line = getattr(built.live, "default_pass_at", PASS_AT)
        elif line is not None and not is_raw and not 0 <= line <= 1:
            message = f"invalid value for pass_at, expected a number from 0 to 1, got {line:g}"
            self._sections.fault((*path, Part(built.component.name), "pass_at"), message, line)
        if options.pass_at is not None:
            self._lines.add(path)
        on = options.on or accepts or default_on
        return self._sections.slot(path, built, tier=tier, on=on, range=scale, pass_at=line, is_raw=is_raw)

    def _scale(self, path: Address, built: Built) -> tuple[float, float] | None:
        """Return the slot's range, from worst to best."""
        scale: tuple[float, float] | None = built.slot_options.range
        lower_is_better = getattr(built.live, "lower_is_better", False)
        if scale is None and lower_is_better:
            message = f"{built.component.name} has a raw scale; set its bounds, as in range: [0, 100]"
            self._sections.fault((*path, Part(built.component.name)), message)
        return (scale[1], scale[0]) if scale is not None and lower_is_better else scale

    def check_children(self, judges: Sequence[Placed]) -> None:
        """Report a judge that reads the verdicts of a label that it cannot read."""
        slots = tuple(slot for _, slot in judges)
        for path, slot in judges:
            chosen, labels = getattr(slot.component, "children", None), children_labels(slot, slots)
            if labels and chosen not in (None, *labels):
                message = f"{slot.name} reads the verdicts of one of {', '.join(labels)}, not {chosen!r}"
                place = (*path, Part(slot.name), "children")
                self._sections.fault(place, message, chosen, nearest(str(chosen), labels))
