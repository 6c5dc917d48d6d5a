"""What litellm's own price list says, read without importing litellm, which takes seconds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import attrs
import orjson

from dicast import ChatRequest, Cost, Price, Usage

_LIST = "model_prices_and_context_window_backup.json"
_MTOK = Decimal(1_000_000)
_MODES = ("chat", "completion", "responses", None)


@attrs.frozen
class Tariff:
    """What a model costs, in usd per million tokens.

    :param price: for tokens that no prompt cache is about.
    :param version: the price list it comes from; None for prices of the user's own.
    :param cache_read: for input read from the cache; as other input where None.
    :param cache_write: for input written to the cache; as other input where None.
    """

    price: Price
    version: str | None = None
    cache_read: Decimal | None = None
    cache_write: Decimal | None = None

    def cost(self, usage: Usage, read: int = 0, written: int = 0) -> Cost:
        """What *usage* costs, of whose input tokens *read* came from the cache and *written* went there."""
        plain = self.price.input_per_mtok
        cost = self.price.cost(usage, self.version)
        extra = sum(
            tokens * ((plain if own is None else own) - plain)
            for tokens, own in ((read, self.cache_read), (written, self.cache_write))
        )
        if not extra or cost.amount is None:
            return cost
        return attrs.evolve(cost, amount=cost.amount + extra / _MTOK)

    def most(self, request: ChatRequest, marked: bool) -> Cost:
        """What one try of *request* may cost; *marked* says that all of its input may be written to the cache."""
        tokens = request.input_tokens
        dearer = marked and self.cache_write is not None and self.cache_write > self.price.input_per_mtok
        return self.cost(Usage(tokens, request.max_output_tokens), written=tokens if dearer else 0)


def listed(model: str) -> Tariff | None:
    """The prices that litellm lists for *model*; None where it lists none per token.

    A model is found as litellm finds it: under its whole name, or without what says the provider, of whom the entry then is.
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
    found: Mapping[str, Mapping[str, Any]] = orjson.loads((Path(spec.origin).parent / _LIST).read_bytes())
    return found


def _names(model: str) -> Iterator[tuple[str, str | None]]:
    yield model, None
    provider, _, rest = model.partition("/")
    while rest:
        yield rest, provider
        rest = rest.partition("/")[2]


def _is_of(entry: Mapping[str, Any], provider: str) -> bool:
    own = str(entry.get("litellm_provider"))
    return own.startswith(provider) or provider.startswith(own)


def _tariff(entry: Mapping[str, Any]) -> Tariff | None:
    read, written = _per_mtok(entry, "input_cost_per_token"), _per_mtok(entry, "output_cost_per_token")
    if read is None or written is None or entry.get("mode") not in _MODES:
        return None
    return Tariff(
        Price(read, written),
        f"litellm {version('litellm')}",
        _per_mtok(entry, "cache_read_input_token_cost"),
        _per_mtok(entry, "cache_creation_input_token_cost"),
    )


def _per_mtok(entry: Mapping[str, Any], name: str) -> Decimal | None:
    amount = entry.get(name)
    return Decimal(str(amount)) * _MTOK if isinstance(amount, int | float) else None
