"""What presets must do."""

from __future__ import annotations

from typing import Any

from .conformance import Conformance
from .pipeline import Bench


class PresetConformance(Conformance):
    """What a preset must do. ``preset = "plugin/name"`` says which one."""

    kind = "preset"
    preset: str

    def test_every_metric_can_be_built(self, component: Any, bench: Bench) -> None:
        """The metrics it names exist, and take the options it gives them."""
        items = list(component.metrics())
        assert items, "a preset stands for at least one metric"
        builder = bench.builder()
        builder.component({self.named: dict(self.options)}, (self.kind,))
        for item in items:
            builder.component(item, ("metric", "judge"))

    def test_metrics_are_the_same_each_time(self, component: Any) -> None:
        """A run that was interrupted is taken up by the same metrics."""
        assert list(component.metrics()) == list(component.metrics())
