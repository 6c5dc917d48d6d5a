"""Truth metrics that compare an output with its reference."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dicast import Classes, Metric, hookimpl
from dicast.toolkit.named_classes import NamedClasses

if TYPE_CHECKING:
    from .entails import Entails
    from .match import Match
    from .numeric import Numeric
    from .similarity import Similarity
    from .structure import Json

__all__ = ["Entails", "Json", "Match", "Numeric", "Similarity"]

_METRICS = NamedClasses(
    __name__,
    {
        "match": ".match:Match",
        "numeric": ".numeric:Numeric",
        "json": ".structure:Json",
        "similarity": ".similarity:Similarity",
        "entails": ".entails:Entails",
    },
)
__getattr__ = _METRICS.attribute


@hookimpl
def dicast_metrics() -> Classes[Metric]:
    """Offer the comparisons."""
    return _METRICS
