"""Detection of the format of a file by its content: each installed source is asked, the most specific first.

A source takes part with a class method ``detect`` (:class:`~dicast.optional.HasDetect`), if its plugin is in the entry-point group
``dicast.formats``. Other plugins are not imported.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs

from .._kernel.contract.registry import Registry, formats
from .._kernel.values.errors import ConfigError, Problem
from .beginning import Beginning


@attrs.frozen
class Detection:
    """The format of a file: its *title* for the user (``a Codex session``), and its *version* if the file has one.

    *options* are the options of the source for this file, in addition to its path. If several sources detect a file, the highest
    *specificity* wins: a format that is a kind of another format has a higher specificity. *component* is the name of the source
    (``transcripts/codex``); :func:`detections` sets it.
    """

    title: str
    version: str | None = None
    options: Mapping[str, Any] = attrs.field(factory=dict)
    specificity: int = 0
    component: str = ""


def detected(beginning: Beginning, registry: Registry | None = None) -> Detection | None:
    """Return the most specific detection of a file by the installed sources, None if no source detects it.

    :raises ConfigError: if two sources detect it equally well; it lists both.
    """
    ranked = sorted(detections(beginning, registry), key=lambda detection: -detection.specificity)
    best = [detection for detection in ranked if detection.specificity == ranked[0].specificity]
    if len(best) > 1:
        names = " and ".join(f"{detection.title} ({detection.component})" for detection in best)
        raise ConfigError(Problem(f"the file looks like {names}; name the source in a pipeline"))
    return best[0] if best else None


def detections(beginning: Beginning, registry: Registry | None = None) -> Iterator[Detection]:
    """Yield the detections of a file by all installed sources. A plugin that does not load is passed over; ``dicast plugins`` reports it."""
    yield from detections_by(detecting_sources(registry), beginning)


def detections_by(sources: Sequence[tuple[str, Any]], beginning: Beginning) -> Iterator[Detection]:
    """Yield the detections of a file by *sources*, as :func:`detecting_sources` returns them: for a command that looks at many files."""
    for name, source in sources:
        detection = source.detect(beginning)
        if detection is not None:
            yield attrs.evolve(detection, component=name)


def detecting_sources(registry: Registry | None = None) -> Sequence[tuple[str, Any]]:
    """Return the sources that detect their format, by the names of their components."""
    registry = Registry() if registry is None else registry
    plugins = [registry.attempt(name) for name in formats() if name in registry.scan()]
    components = (component for plugin in plugins for component in plugin.components or ())
    return [(item.name, item.cls) for item in components if item.kind == "source" and hasattr(item.cls, "detect")]
