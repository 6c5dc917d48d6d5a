"""Checks for presets."""

from __future__ import annotations

from typing import Any

from .._kernel.plan.sections import SlotOptions
from .conformance import Conformance
from .pipeline import Bench


class PresetConformance(Conformance):
    """Checks for a preset. Name it with ``preset = "plugin/name"``."""

    kind = "preset"
    preset: str

    def use(self, component: Any, bench: Bench) -> object:
        """Return the metrics."""
        return list(component.metrics())

    def test_every_metric_can_be_built(self, component: Any, bench: Bench) -> None:
        """The metrics of the preset exist and accept its options, including slot keys such as ``as``."""
        items = list(component.metrics())
        assert items, "a preset has at least one metric"
        builder = bench.builder()
        builder.component({self.named: dict(self.options)}, (self.kind,))
        for item in items:
            builder.component(item, ("metric", "judge"), SlotOptions)

    def test_metrics_are_the_same_each_time(self, component: Any) -> None:
        """A resumed run uses the same metrics."""
        assert list(component.metrics()) == list(component.metrics())
