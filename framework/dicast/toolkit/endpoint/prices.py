"""Prices of models, by the list that the package genai-prices ships. No list is fetched."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

import attrs

from ..._kernel.values import Cost, Usage

_NEEDED = ("input_mtok", "output_mtok")
_UNCOUNTED = "requests_kcount"
"""A price for each request, which usage does not report."""


@attrs.frozen
class ListedPrice:
    """The prices of one *model* of a *provider*; *version* names the list."""

    provider: Any
    model: Any
    version: str

    def cost(self, usage: Usage) -> Cost:
        """Return the present cost of *usage*."""
        return self._cost(usage, datetime.now(UTC))

    def most(self, usage: Usage) -> Cost:
        """Return the highest cost of *usage* within a day: some prices depend on the hour."""
        now = datetime.now(UTC)
        hours = range(24) if isinstance(self.model.prices, list) else range(1)
        costs = (self._cost(usage, now + timedelta(hours=hour)) for hour in hours)
        return max(costs, key=lambda cost: cost.amount or 0)

    def _cost(self, usage: Usage, moment: datetime) -> Cost:
        import genai_prices

        tokens = genai_prices.Usage(
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            cache_read_tokens=usage.cached_input_tokens or None,
            cache_write_tokens=usage.cache_written_tokens or None,
        )
        price = self.model.calc_price(tokens, self.provider, genai_request_timestamp=moment)
        return Cost(price.total_price, "usd", self.version)


@lru_cache(64)
def listed_price(model: str, address: str | None) -> ListedPrice | None:
    """Return the listed price of *model* at the endpoint *address*; None if the list has no provider with this address, or no such model.

    :param address: the endpoint; None to find the provider by the model's name.

    A model whose listed price is 0, or depends on more than tokens, counts as not listed. The plugin depends on genai-prices.
    """
    import genai_prices  # 0.2 s to import, and only prices that are not given need it
    from genai_prices import data_snapshot

    try:
        provider, listed = data_snapshot.get_snapshot().find_provider_model(model, None, None, address)
    except LookupError:
        return None
    variants = [condition.prices for condition in listed.prices] if isinstance(listed.prices, list) else [listed.prices]
    for variant in variants:
        values = vars(variant)
        if any(values.get(name) is None for name in _NEEDED) or values.get(_UNCOUNTED):
            return None
    price = ListedPrice(provider, listed, f"genai-prices {genai_prices.__version__}")
    return None if price.cost(Usage(1000, 1000)).is_zero else price
