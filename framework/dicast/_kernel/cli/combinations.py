"""Options of ``dicast run`` that exclude each other."""

from __future__ import annotations

from collections.abc import Mapping

from .options import refuse_options

_EXCLUSIONS = {
    "head": ("--head N starts a separate run of N subjects", ("limit", "resume", "out")),
    "metric_lines": ("--metric-lines prints METRIC lines alone", ("as_json", "head")),
    "watch": ("--watch runs again and again", ("resume", "metric_lines", "as_json")),
    "shard": ("--shard judges a part of the subjects", ("head", "watch", "metric_lines", "experiment")),
}
"""Parameters that exclude others, with the reason."""


def refuse_combinations(params: Mapping[str, object]) -> None:
    """Refuse parameters that exclude each other; *params* has the value of each parameter.

    :raises click.UsageError: naming the options to remove.
    """
    for name, (reason, exclusions) in _EXCLUSIONS.items():
        if _is_set(params[name]):
            refuse_options(reason, {_option(other): _is_set(params[other]) for other in exclusions})


def _is_set(value: object) -> bool:
    return not (value is None or value is False or value == ())


def _option(name: str) -> str:
    return "--json" if name == "as_json" else f"--{name.replace('_', '-')}"
