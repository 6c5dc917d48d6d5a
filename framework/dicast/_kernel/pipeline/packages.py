"""Installed packages with entry points of dicast next to plugins: commands, rubrics, readers of ledgers, and keys of the gate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from ..classes import frozen
from ..contract.registry import Offer, load_offer, offers, offers_by_name
from ..contract.requirements import version_conflicts
from ..values.errors import RequestError
from .rubrics import load_rubric

GROUPS = ("commands", "rubrics", "readers", "gate_clauses")
"""Entry-point groups next to ``dicast``, each after ``dicast.``."""


@frozen
class Package:
    """Installed distribution with entry points in some of :data:`GROUPS`. *errors* are the reasons why some cannot be used."""

    distribution: str
    version: str
    names: Mapping[str, tuple[str, ...]]
    errors: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.distribution} {self.version}"


def packages(*, load: bool) -> list[Package]:
    """Return the installed packages with entry points in :data:`GROUPS`, by name.

    Read metadata alone, unless *load* asks to import each command and to read each rubric.
    """
    entries = [(group, offer) for group in GROUPS for offer in offers(f"dicast.{group}")]
    by_name = {group: offers_by_name(f"dicast.{group}") for group in GROUPS}
    owners = sorted({(offer.distribution, offer.version) for _, offer in entries})
    listed = []
    for distribution, version in owners:
        own_offers = [
            (group, offer) for group, offer in entries if (offer.distribution, offer.version) == (distribution, version)
        ]
        names = {group: tuple(sorted(offer.name for g, offer in own_offers if g == group)) for group in GROUPS}
        conflicts = version_conflicts(distribution)
        tried = load and not conflicts
        errors = [
            error for group, offer in own_offers for error in _errors(group, by_name[group][offer.name], load=tried)
        ]
        listed.append(Package(distribution, version, names, (*conflicts, *errors)))
    return listed


def _errors(group: str, offer: Offer, *, load: bool) -> Iterator[str]:
    """Yield the reason why *offer*, the first of its name, cannot be used."""
    if offer.error:
        yield offer.error
    elif load:
        try:
            if group == "rubrics":
                load_rubric(offer.name, Path())
            else:
                load_offer(f"dicast.{group}", offer)
        except RequestError as error:
            yield str(error)
