"""Reader of a clause of the gate, with the keys that plugins add."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from ...toolkit.installing import how_to_install
from ..classes import evolve
from ..contract.implements import implements
from ..contract.plugin_errors import in_brackets, place_of
from ..contract.registry import CLAUSE_EXTRAS, Offer, gate_clauses, load_gate_clause
from ..plan.clauses import Bound, Clause, GateClause
from ..values.errors import PluginError
from ..values.names import nearest
from . import types as hints
from .faults import Fault, Invalid
from .structure import Structurer


def clause_keys() -> Collection[str]:
    """Return every key that a clause may have, including keys of plugins that are not installed."""
    return {*_kernel_keys(), *gate_clauses(), *CLAUSE_EXTRAS}


def clause_classes() -> tuple[list[type[Any]], dict[str, str]]:
    """Load the classes of all installed plugins' keys; return them, and the errors by key."""
    classes, errors = dict[type[Any], None](), dict[str, str]()
    for key in gate_clauses():
        try:
            classes[load_gate_clause(key)] = None
        except PluginError as error:
            errors[key] = str(error)
    return [*classes], errors


def read_clause(structurer: Structurer, data: object) -> Clause:
    """Return the clause in *data*; a plugin's class is loaded only for one of its keys.

    :raises Invalid: with every fault.
    """
    kernel_keys = _kernel_keys()
    if not isinstance(data, Mapping) or kernel_keys.issuperset(data):
        clause: Clause = structurer.structure(data, Clause)
        return clause
    offers, faults = gate_clauses(), list[Fault]()
    added = [key for key in data if key not in kernel_keys and key in offers]
    missing = [key for key in data if key not in kernel_keys and key not in offers and key in CLAUSE_EXTRAS]
    for key in missing:
        extra = CLAUSE_EXTRAS[key]
        message = f"the option {key!r} of the gate needs the plugin {extra}; {how_to_install(extra)}"
        faults.append(Fault(structurer.path, message, key, None, key, plugin=True))
    clause = Clause()
    with structurer.at(faults=faults):
        rest = {key: value for key, value in data.items() if key not in (*added, *missing)}
        clause = structurer.options(rest, Clause, extra_keys=offers)
    parts = [*_read_parts(structurer, {key: data[key] for key in added}, offers, faults)]
    if faults:
        raise Invalid(faults)
    bounds = part_bounds(parts)
    bound = clause.bound if "bound" in data or not bounds else bounds[0]
    return evolve(clause, parts=tuple(parts), bound=bound)


def part_bounds(parts: Iterable[GateClause]) -> list[Bound]:
    """Return the values of ``bound`` that the rules of plugins in *parts* take; the first is the default."""
    return [bound for part in parts for bound in getattr(part, "bounds", ())]


def _read_parts(
    structurer: Structurer, data: Mapping[str, object], offers: Mapping[str, Offer], faults: list[Fault]
) -> Iterator[GateClause]:
    """Yield an object of each plugin's class for its keys in *data*; faults are added to *faults*."""
    by_class: dict[type[Any], dict[str, object]] = {}
    for key, value in data.items():
        try:
            by_class.setdefault(load_gate_clause(key), {})[key] = value
        except PluginError as error:
            faults.append(Fault(structurer.path, str(error), key, None, key, plugin=True))
    for cls, options in by_class.items():
        with structurer.at(faults=faults):
            part = structurer.options(options, cls)
            if implements(part, GateClause):
                yield part
            else:
                key = next(iter(options))
                message = f"{offers[key].distribution}: {missing_members(cls)}"
                faults.append(Fault(structurer.path, message, key, None, key, plugin=True))


def missing_members(cls: type[Any]) -> str:
    """Return the message that *cls* lacks members of a gate clause, with the nearest names and the line of *cls*."""
    missing = [name for name in ("label_key", "faults", "decide") if not hasattr(cls, name)]
    names = [name for name in vars(cls) if not name.startswith("_")]
    fixes = [f"; rename its {near!r} to {name!r}" for name in missing if (near := nearest(name, names))]
    return f"{cls.__qualname__} has no {', '.join(missing)}{''.join(fixes)}{in_brackets(place_of(cls))}"


def _kernel_keys() -> set[str]:
    return {key for field in hints.fields(Clause) for key in hints.keys(field)}
