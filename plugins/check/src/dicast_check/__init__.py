"""Checks under familiar names (``contains``, ``equals``, ``is_json`` and others), and a row's own list of checks."""

from __future__ import annotations

from dicast import hookimpl

from .assertions import Assertions
from .code import Javascript, Python
from .limits import MaxCost, MaxLatency
from .measures import IsRefusal, Levenshtein, RougeN, WordCount
from .structure import ContainsJson, IsJson
from .texts import Contains, ContainsAll, ContainsAny, Equals, Icontains, OneOf, Regex, StartsWith


@hookimpl
def dicast_metrics() -> list[type]:
    """Offer the checks."""
    return [
        Contains,
        Icontains,
        ContainsAny,
        ContainsAll,
        StartsWith,
        Regex,
        Equals,
        OneOf,
        IsJson,
        ContainsJson,
        Levenshtein,
        RougeN,
        WordCount,
        IsRefusal,
        MaxLatency,
        MaxCost,
        Python,
        Javascript,
        Assertions,
    ]
