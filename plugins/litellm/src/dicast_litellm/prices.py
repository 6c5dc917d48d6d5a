"""Prices from litellm's own list, read without importing litellm, which takes seconds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import attrs
import orjson

from dicast import Cost, Price, Usage

_LIST = "model_prices_and_context_window_backup.json"
_MTOK = Decimal(1_000_000)
_MODES = ("chat", "completion", "responses", None)


@attrs.frozen
class Tariff:
    """The prices of a model; *version* names their list, None for prices of the user's own."""

    price: Price
    version: str | None = None

    def cost(self, usage: Usage) -> Cost:
        """Return the cost of *usage*."""
        return self.price.cost(usage, self.version)

    def most(self, usage: Usage, *, marked: bool) -> Cost:
        """Return the highest cost of *usage*; *marked* if all of its input may be written to a prompt cache."""
        stored = attrs.evolve(usage, cache_written_tokens=usage.input_tokens if marked else 0)
        return max((self.cost(usage), self.cost(stored)), key=lambda cost: cost.amount or 0)


def listed(model: str) -> Tariff | None:
    """Return the prices that litellm lists for *model*; None if it lists no price per token.

    A model is found by litellm's rules: by its full name, or without the provider's prefix if the entry belongs to that provider.
    """
    prices = _prices()
    for name, provider in _names(model):
        entry = prices.get(name)
        if entry is not None and (provider is None or _is_of(entry, provider)):
            return _tariff(entry)
    return None


def _prices() -> Mapping[str, Mapping[str, Any]]:
    spec = find_spec("litellm")
    if spec is None or spec.origin is None:
        return {}
    prices: Mapping[str, Mapping[str, Any]] = orjson.loads((Path(spec.origin).parent / _LIST).read_bytes())
    return prices


def _names(model: str) -> Iterator[tuple[str, str | None]]:
    yield model, None
    provider, _, rest = model.partition("/")
    while rest:
        yield rest, provider
        rest = rest.partition("/")[2]


def _is_of(entry: Mapping[str, Any], provider: str) -> bool:
    entry_provider = str(entry.get("litellm_provider"))
    return entry_provider.startswith(provider) or provider.startswith(entry_provider)


def _tariff(entry: Mapping[str, Any]) -> Tariff | None:
    read, written = _per_mtok(entry, "input_cost_per_token"), _per_mtok(entry, "output_cost_per_token")
    if read is None or written is None or entry.get("mode") not in _MODES:
        return None
    caches = (_per_mtok(entry, name) for name in ("cache_read_input_token_cost", "cache_creation_input_token_cost"))
    return Tariff(Price(read, written, *caches), f"litellm {version('litellm')}")


def _per_mtok(entry: Mapping[str, Any], name: str) -> Decimal | None:
    amount = entry.get(name)
    return Decimal(str(amount)) * _MTOK if isinstance(amount, int | float) else None
